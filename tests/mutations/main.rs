//! Damaged files: cut off at every byte, with every byte changed, and spliced. Each parser refuses them or reads them; none panics or
//! goes on for ever.
//!
//! Each plugin has its parsers in its `format.rs`. The files are the plugins' seeds, and small ones of the corpora where those are there; see
//! `fuzz/README.md` for how they are found.
#![expect(clippy::unwrap_used, reason = "seeds are there to be read")]

mod seeds;

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
};

use forebay_formats::{FORMATS, Parser, parser_called, parsers};
use forebay_testkit::Damage;
use forebay_tests::within_deadline;
use seeds::seeds;

/// The largest file that is damaged.
const LARGEST: u64 = 4096;
/// How many files of the corpora each parser is given, beside seeds.
const OF_CORPORA: usize = 3;
/// At so many bytes each file is damaged, at most.
const PLACES: usize = 375;

#[test]
fn damaged_files_are_refused_or_read() {
    let (parsers, mut tried) = (parsers(), Vec::new());
    let names: BTreeSet<_> = parsers.iter().map(|parser| parser.name).collect();
    assert_eq!(names.len(), parsers.len(), "two parsers have one name");
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let mine = parsers.iter().copied().skip(half).step_by(2);
            scope.spawn(move || {
                mine.map(|parser| (parser.name, within_deadline(move || damage(parser)))).collect::<Vec<_>>()
            })
        });
        halves.into_iter().for_each(|half| tried.extend(half.join().unwrap()));
    });
    assert_eq!(tried.len(), parsers.len());
    for (name, count) in tried {
        // What only the corpora have may be missing.
        assert!(count > 50 || name == "hdf5", "{name}: {count}");
    }
}

#[test]
fn a_fuzz_target_finds_every_parser() {
    // As a target does, when it is compiled.
    const FIRST: fn(&[u8]) = parser_called(FORMATS[0].1.parsers[0].name);
    assert!(std::ptr::fn_addr_eq(FIRST, FORMATS[0].1.parsers[0].parse));
    for parser in parsers() {
        assert!(std::ptr::fn_addr_eq(parser_called(parser.name), parser.parse), "{}", parser.name);
    }
}

/// Reads all damaged files of a parser; how many there were.
fn damage(parser: &Parser) -> usize {
    let seeds: Vec<_> = seeds(parser, LARGEST, OF_CORPORA)
        .into_iter()
        .map(|path| (path.display().to_string(), Damage::new(fs::read(path).unwrap(), PLACES)))
        .collect();
    let mut tried = 0;
    let mut read = |what: &dyn Fn() -> String, bytes: &[u8]| {
        tried += 1;
        let done = catch_unwind(AssertUnwindSafe(|| (parser.parse)(bytes)));
        assert!(done.is_ok(), "{} panics over {}", parser.name, what());
    };
    for (at, (name, damage)) in seeds.iter().enumerate() {
        let whole = damage.whole();
        read(&|| name.clone(), whole);
        for form in 0..damage.forms() {
            read(&|| format!("{name}: {}", damage.describe(form)), &damage.form(form));
        }
        // Its first part and the last of another, and the other way round.
        let (other, with) = &seeds[(at + 1) % seeds.len()];
        let with = with.whole();
        for (first, last) in [(whole, with), (with, whole)] {
            let spliced = [&first[..first.len() * 2 / 3], &last[last.len() / 3..]].concat();
            read(&|| format!("{name} spliced with {other}"), &spliced);
        }
    }
    tried
}
