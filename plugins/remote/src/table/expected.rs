//! Objects that will be read soon, in that order: what is asked for before somebody reads them.

use std::{
    collections::{HashSet, VecDeque},
    ops::Range,
    sync::Arc,
};

use super::{Anew, BLOCK, Known, Opened, Table, ahead_until};

/// So many objects at most are open, or on their way to be, before all of their bytes are asked for.
const OPENINGS: usize = 32;

/// What is expected to be read: URLs, and how many bytes of each from its start.
#[derive(Default)]
pub(super) struct Expected {
    queue: VecDeque<(Arc<str>, u64)>,
    /// Those in the queue.
    urls: HashSet<Arc<str>>,
}

impl Expected {
    /// Whether this one is still to be asked for.
    pub(super) fn holds(&self, url: &Arc<str>) -> bool {
        self.urls.contains(url)
    }
}

/// What to ask for now.
#[derive(Debug)]
pub(crate) enum Ask {
    /// An object: who it is, and its first block.
    Open(Arc<str>),
    Blocks(Known, Vec<Range<u64>>),
}

impl Table {
    /// Notes that somebody will read the first `bytes` of an object, after those that were noted before it.
    pub(crate) fn expect(&mut self, url: &Arc<str>, bytes: u64) {
        if self.expected.urls.insert(url.clone()) {
            self.expected.queue.push_back((url.clone(), bytes.min(self.ahead)));
        }
    }

    /// What there is room for of what is expected, the first first: of no object blocks are asked for while one before it wants room, or
    /// would if it was known; but some are opened meanwhile, so that there is no answer to wait for once there is room. All of it is on its
    /// way from now on; whoever is told to open must call [`opened`](Table::opened).
    pub(crate) fn asks(&mut self) -> Vec<Ask> {
        let (mut asks, mut at, mut full) = (Vec::new(), 0, false);
        // Of those that are not known yet: how many there are, and what they may want.
        let (mut opening, mut left) = (0, 0_u64);
        // Their first blocks are an eighth of the memory at most, and all of them make way for those that are read before.
        let window = usize::try_from(self.memory / 8 / BLOCK).unwrap_or(OPENINGS).clamp(1, OPENINGS);
        while at < window
            && let Some((url, bytes)) = self.expected.queue.get(at).cloned()
        {
            if !self.objects.contains_key(&url) && !self.may_open(opening + 1) {
                break;
            }
            match self.open(&url, Anew::Nothing) {
                Ok(Opened::Ask) => asks.push(Ask::Open(url)),
                Ok(Opened::Opening) => {
                    at += 1;
                    opening += 1;
                    left = left.saturating_add(bytes.div_ceil(BLOCK));
                }
                // Whoever reads it is told.
                Err(_) => self.unexpect(&url),
                Ok(Opened::Known(_)) if full => at += 1,
                Ok(Opened::Known(known)) => {
                    let (mut runs, until) = (Vec::new(), ahead_until(&known, bytes));
                    self.ahead_of(&mut runs, &known, 0..until, left, self.memory / 2);
                    if !runs.is_empty() {
                        asks.push(Ask::Blocks(known.clone(), runs));
                    }
                    if self.has(&known, until) {
                        self.unexpect(&url);
                        self.will_read(&known, bytes);
                    } else {
                        (full, at) = (true, at + 1);
                    }
                }
            }
        }
        asks
    }

    /// Notes that somebody reads an object now. Those that were expected before it were read already, or will not be.
    pub(super) fn is_read(&mut self, known: &Known) {
        while self.expected.urls.contains(&known.url)
            && let Some((url, bytes)) = self.expected.queue.pop_front()
        {
            self.expected.urls.remove(&url);
            if url == known.url {
                self.will_read(known, bytes);
            }
        }
    }

    /// Forgets that an object will be read.
    pub(super) fn unexpect(&mut self, url: &Arc<str>) {
        if self.expected.urls.remove(url) {
            self.expected.queue.retain(|(expected, _)| expected != url);
        }
    }

    /// Whether the blocks before this one are here or on their way.
    fn has(&self, known: &Known, end: u64) -> bool {
        let object = self.objects.get(&known.url);
        object.is_some_and(|object| (0..end).all(|index| object.blocks.contains_key(&index)))
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, Error};

    use super::{
        super::{Found, RUN},
        *,
    };
    use crate::fetch::Identity;

    const MIB: u64 = 1 << 20;

    type Url = Arc<str>;

    fn url(number: usize) -> Url {
        Arc::from(format!("{number}"))
    }

    fn open(table: &mut Table, url: &Url, size: u64) {
        let first = Buffer::from(vec![0; size.min(BLOCK) as usize]);
        table.opened(url, Ok((Identity { size, tag: None }, first)));
    }

    /// The objects that are opened, and how many blocks of each other one are asked for.
    fn asks(table: &mut Table) -> (Vec<Url>, Vec<(Url, u64)>) {
        let (mut opens, mut blocks) = (Vec::new(), Vec::new());
        for ask in table.asks() {
            match ask {
                Ask::Open(url) => opens.push(url),
                Ask::Blocks(known, runs) => {
                    blocks.push((known.url, runs.iter().map(|run| run.end - run.start).sum()));
                }
            }
        }
        (opens, blocks)
    }

    #[test]
    fn objects_are_opened_at_once_and_fetched_in_their_order_while_there_is_room() {
        let mut table = Table::new(64 * MIB, 16 * MIB);
        (0..100).for_each(|number| table.expect(&url(number), 16 * MIB));
        assert_eq!(asks(&mut table), ((0..OPENINGS).map(url).collect(), Vec::new()));
        assert_eq!(asks(&mut table), (Vec::new(), Vec::new()));
        // The second is known first; that the first has yet to come does not hold it up.
        open(&mut table, &url(1), 10 * MIB);
        assert_eq!(asks(&mut table), (vec![url(OPENINGS)], vec![(url(1), 39)]));
        (0..OPENINGS + 1)
            .filter(|&number| number != 1)
            .for_each(|number| open(&mut table, &url(number), 10 * MIB));
        // Half of the memory, less the first blocks; then one is open for each that was asked for.
        assert_eq!(asks(&mut table), (vec![url(OPENINGS + 1)], vec![(url(0), 39), (url(2), 15)]));
        open(&mut table, &url(OPENINGS + 1), 10 * MIB);
        assert_eq!(asks(&mut table), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_is_opened_without_room_for_its_bytes_takes_an_eighth_of_the_memory_at_most() {
        for (memory, opened) in [(MIB, 1), (4 * MIB, 2), (16 * MIB, 8), (64 * MIB, OPENINGS)] {
            let mut table = Table::new(memory, 16 * MIB);
            (0..100).for_each(|number| table.expect(&url(number), 8 * MIB));
            assert_eq!(asks(&mut table).0.len(), opened);
            (0..opened).for_each(|number| open(&mut table, &url(number), 100 * MIB));
            // What is left of the half is for the first.
            let left = (memory / 2 / BLOCK - opened as u64 + 1) / RUN * RUN;
            let asked = left.min(32).saturating_sub(1);
            assert_eq!(asks(&mut table).1.first(), (asked > 0).then(|| (url(0), asked)).as_ref());
        }
    }

    #[test]
    fn room_is_left_for_those_before_that_are_not_known_yet() {
        let mut table = Table::new(16 * MIB, 16 * MIB);
        (0..3).for_each(|number| table.expect(&url(number), 4 * MIB));
        asks(&mut table);
        // Of eight MiB the two before it may want all.
        open(&mut table, &url(2), 4 * MIB);
        assert_eq!(asks(&mut table), (Vec::new(), Vec::new()));
        open(&mut table, &url(0), MIB);
        assert_eq!(asks(&mut table).1, [(url(0), 3), (url(2), 7)]);
        open(&mut table, &url(1), 4 * MIB);
        assert_eq!(asks(&mut table).1, [(url(1), 15)]);
    }

    #[test]
    fn what_was_opened_long_before_its_turn_is_kept() {
        let mut table = Table::new(4 * MIB, 4 * MIB);
        let first = Buffer::from(vec![0; BLOCK as usize]);
        let read_all = |table: &mut Table, url: &Url| {
            let Ok(Opened::Known(known)) = table.open(url, Anew::Nothing) else { panic!() };
            table.reads(&known, &(0..2 * MIB));
            table.wanted(&known, &(0..2 * MIB), 0);
            for index in 0..8 {
                table.arrived(&known, index, first.clone());
                assert!(matches!(table.find(&known, index, &mut false, BLOCK), Ok(Found::Here(_))));
            }
        };
        (0..8).for_each(|number| table.expect(&url(number), 2 * MIB));
        for number in 0..8 {
            for opened in asks(&mut table).0 {
                open(&mut table, &opened, 2 * MIB);
            }
            asks(&mut table);
            let known = table.objects.get(&url(number)).map(|object| object.blocks.contains_key(&0));
            assert_eq!(known, Some(true), "{number}");
            read_all(&mut table, &url(number));
        }
    }

    #[test]
    fn what_is_read_makes_room_for_what_comes_next() {
        let mut table = Table::new(16 * MIB, 16 * MIB);
        (0..3).for_each(|number| table.expect(&url(number), 16 * MIB));
        asks(&mut table);
        (0..3).for_each(|number| open(&mut table, &url(number), 4 * MIB));
        assert_eq!(asks(&mut table).1, [(url(0), 15), (url(1), 7)]);
        let Ok(Opened::Known(known)) = table.open(&url(0), Anew::Nothing) else { panic!() };
        table.reads(&known, &(0..4 * MIB));
        for index in 0..16 {
            table.arrived(&known, index, Buffer::from(vec![0; BLOCK as usize]));
            assert!(matches!(table.find(&known, index, &mut false, BLOCK), Ok(Found::Here(_))));
        }
        assert_eq!(asks(&mut table).1, [(url(1), 8), (url(2), 15)]);
    }

    #[test]
    fn what_nobody_reads_is_forgotten_when_something_behind_it_is_read() {
        let mut table = Table::new(16 * MIB, 16 * MIB);
        (0..OPENINGS + 100).for_each(|number| table.expect(&url(number), MIB));
        asks(&mut table);
        let last = url(OPENINGS + 98);
        assert!(matches!(table.open(&last, Anew::Nothing), Ok(Opened::Ask)));
        open(&mut table, &last, MIB);
        let Ok(Opened::Known(known)) = table.open(&last, Anew::Nothing) else { panic!() };
        assert!(table.reads(&known, &(0..10)) > 0);
        assert_eq!(asks(&mut table), (vec![url(OPENINGS + 99)], vec![]));
    }

    #[test]
    fn an_object_that_fails_holds_up_nobody() {
        let mut table = Table::new(16 * MIB, 16 * MIB);
        (0..3).for_each(|number| table.expect(&url(number), MIB));
        asks(&mut table);
        table.opened(&url(0), Err(Error::invalid("gone")));
        open(&mut table, &url(1), 2 * MIB);
        open(&mut table, &url(2), 3 * MIB);
        let Ok(Opened::Known(known)) = table.open(&url(2), Anew::Nothing) else { panic!() };
        asks(&mut table);
        // Nor is one asked for again and again.
        table.failed(&known, 1..12, &Error::invalid("gone"));
        assert_eq!(asks(&mut table), (Vec::new(), Vec::new()));
    }
}
