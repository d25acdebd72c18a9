//! What is asked for, kept and told, by calls in an order that is known.
#![expect(clippy::single_range_in_vec_init, reason = "a list of runs, which often has one")]

use super::*;

const MIB: u64 = 1 << 20;

fn known(table: &mut Table, name: &str, size: u64) -> Known {
    let url = Arc::from(name);
    assert!(matches!(table.open(&url, Anew::Changed), Ok(Opened::Ask)));
    let first = Buffer::from(vec![0; size.min(BLOCK) as usize]);
    table.opened(&url, Ok((Identity { size, tag: None }, first)));
    let Ok(Opened::Known(known)) = table.open(&url, Anew::Nothing) else { panic!("it is not known") };
    known
}

/// Reads as the store does, with all that was asked for there at once; gives the runs that were asked for.
fn read(table: &mut Table, known: &Known, bytes: Range<u64>) -> Vec<Range<u64>> {
    let ahead = table.reads(known, &bytes);
    let mut asked = Vec::new();
    for index in bytes.start / BLOCK..bytes.end.div_ceil(BLOCK) {
        for run in table.wanted(known, &(bytes.start.max(index * BLOCK)..bytes.end), ahead) {
            for index in run.clone() {
                table.arrived(known, index, Buffer::from(vec![index as u8; BLOCK as usize]));
            }
            asked.push(run);
        }
        assert!(matches!(table.find(known, index, &mut false, BLOCK), Ok(Found::Here(_))));
        check(table);
    }
    asked
}

fn check(table: &Table) {
    let blocks = || table.objects.values().flat_map(|object| object.blocks.values());
    let here = |block: &&Block| matches!(block, Block::Here { read: true, .. });
    assert_eq!(table.held, blocks().count() as u64 * BLOCK);
    assert_eq!(table.unread, blocks().filter(|block| !here(block)).count() as u64 * BLOCK);
    assert_eq!(table.used.len(), blocks().filter(here).count());
    let waiting = blocks().filter(|block| matches!(block, Block::Here { read: false, .. }));
    assert_eq!(table.waiting.len(), waiting.count());
}

#[test]
fn whoever_goes_forwards_has_more_and_more_asked_for_ahead() {
    let mut table = Table::new(64 * MIB, 8 * MIB);
    let known = known(&mut table, "a", 30 * MIB);
    assert_eq!(read(&mut table, &known, 0..512), []);
    assert_eq!(read(&mut table, &known, 0..MIB), [1..8]);
    assert_eq!(read(&mut table, &known, MIB..2 * MIB), [8..16, 16..24]);
    let rest: Vec<_> = (2..30).flat_map(|at| read(&mut table, &known, at * MIB..(at + 1) * MIB)).collect();
    assert_eq!(rest.iter().map(|run| run.end - run.start).sum::<u64>(), 120 - 24);
    assert_eq!(rest.len(), 12, "{rest:?}");
}

#[test]
fn whoever_jumps_has_only_asked_for_what_is_read() {
    let mut table = Table::new(64 * MIB, 8 * MIB);
    let known = known(&mut table, "a", 100 * MIB);
    for at in [90, 40, 70, 10, 55] {
        let first = at * 4;
        assert_eq!(read(&mut table, &known, at * MIB..at * MIB + 10), [first..first + 1]);
    }
    // A look here and there at the head is no reading forwards.
    for at in [0, 100, 50, 400, 200_000] {
        assert_eq!(read(&mut table, &known, at..at + 100), []);
    }
}

#[test]
fn memory_is_bounded_and_one_long_read_does_not_fill_it() {
    let mut table = Table::new(16 * MIB, 8 * MIB);
    let known = known(&mut table, "a", 1000 * MIB);
    let asked = read(&mut table, &known, 0..1000 * MIB);
    assert_eq!(asked.iter().map(|run| run.end - run.start).sum::<u64>(), 4000 - 1);
    assert!(asked.iter().all(|run| run.end - run.start <= RUN) && asked.len() <= 501, "{}", asked.len());
    assert!(table.held <= 16 * MIB);
    // What was read last is still here, what was read first is not.
    assert_eq!(read(&mut table, &known, 999 * MIB..1000 * MIB), []);
    assert_eq!(read(&mut table, &known, 0..10), [0..1]);
}

#[test]
fn what_nobody_came_for_makes_room_after_a_while() {
    let mut table = Table::new(16 * MIB, 12 * MIB);
    let lost = known(&mut table, "lost", 100 * MIB);
    let wanted = table.wanted(&lost, &(0..0), 12 * MIB);
    assert_eq!(wanted.len(), 6);
    for index in wanted.into_iter().flatten() {
        table.arrived(&lost, index, Buffer::from(vec![0; BLOCK as usize]));
    }
    let other = known(&mut table, "other", 100 * MIB);
    let run = |table: &mut Table, at: u64| read(table, &other, at * MIB..(at + 1) * MIB);
    let early: u64 = (0..4).flat_map(|at| run(&mut table, at)).map(|run| run.end - run.start).max().unwrap();
    let late: u64 = (4..90).flat_map(|at| run(&mut table, at)).map(|run| run.end - run.start).max().unwrap();
    assert!(early < RUN && late == RUN, "{early} {late}");
}

#[test]
fn a_block_that_fails_is_told_to_those_who_wait_and_can_be_asked_for_again() {
    let mut table = Table::new(16 * MIB, 0);
    let known = known(&mut table, "a", 10 * MIB);
    assert_eq!(table.wanted(&known, &(MIB..2 * MIB), 0), [4..8]);
    let (mut one, mut two) = (false, false);
    assert!(matches!(table.find(&known, 4, &mut one, 1), Ok(Found::Coming)));
    assert!(matches!(table.find(&known, 4, &mut two, 1), Ok(Found::Coming)));
    table.failed(&known, 4..8, &Error::invalid("gone"));
    check(&table);
    assert!(table.find(&known, 4, &mut one, 1).is_err());
    assert!(matches!(table.find(&known, 4, &mut false, 1), Ok(Found::Coming)));
    assert!(table.find(&known, 4, &mut two, 1).is_err());
    assert!(matches!(table.find(&known, 4, &mut false, 1), Ok(Found::Missing)));
    assert_eq!(table.wanted(&known, &(MIB..2 * MIB), 0), [4..8]);
    check(&table);
}

#[test]
fn bytes_of_an_object_that_changed_are_never_given() {
    let mut table = Table::new(16 * MIB, 0);
    let old = known(&mut table, "a", 10 * MIB);
    assert_eq!(table.wanted(&old, &(MIB..2 * MIB), 0), [4..8]);
    table.changed(&old, &Error::invalid("changed"));
    check(&table);
    assert!(table.find(&old, 0, &mut false, 1).is_err() && table.open(&old.url, Anew::Failed).is_err());
    let new = known(&mut table, "a", 10 * MIB);
    assert_eq!(table.wanted(&new, &(MIB..2 * MIB), 0), [4..8]);
    table.arrived(&old, 4, Buffer::from_static(b"old"));
    assert!(matches!(table.find(&new, 4, &mut false, 1), Ok(Found::Coming)));
    assert!(table.find(&old, 4, &mut false, 1).is_err());
    assert_eq!(table.wanted(&old, &(0..MIB), 0), []);
    check(&table);
}

#[test]
fn what_could_not_be_opened_is_asked_for_again_by_whoever_comes_next() {
    let mut table = Table::new(16 * MIB, 0);
    let url = Arc::from("a");
    assert!(matches!(table.open(&url, Anew::Failed), Ok(Opened::Ask)));
    table.opened(&url, Err(Error::invalid("not now")));
    // Who waited is told.
    assert!(table.open(&url, Anew::Nothing).is_err());
    assert!(matches!(table.open(&url, Anew::Failed), Ok(Opened::Ask)));
    assert!(matches!(table.open(&url, Anew::Failed), Ok(Opened::Opening)));
}

#[test]
fn an_object_that_was_forgotten_goes_on_as_it_was_known() {
    let mut table = Table::new(16 * MIB, 0);
    let old = known(&mut table, "old", 10 * MIB);
    table.changed(&old, &Error::invalid("changed"));
    let new = known(&mut table, "old", 10 * MIB);
    table.objects.clear();
    table.used.clear();
    table.waiting.clear();
    (table.held, table.unread) = (0, 0);
    assert_eq!(table.wanted(&new, &(MIB..2 * MIB), 0), [4..8]);
    assert!(matches!(table.find(&new, 4, &mut false, 1), Ok(Found::Coming)));
    // One that is opened anew is never taken for one that was known before.
    assert!(table.find(&old, 4, &mut false, 1).is_err());
    check(&table);
}
