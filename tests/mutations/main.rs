//! Damaged files: cut off at every byte, with every byte changed, and spliced. Each parser refuses them or reads them; none panics or
//! goes on for ever.
//!
//! The files are those in `seeds/`, and small ones of the corpora where those are there; see `fuzz/README.md` for how they are found.
#![expect(clippy::unwrap_used, reason = "seeds are there to be read")]

#[expect(unreachable_pub, reason = "a library too, for `fuzz/`")]
mod parsers;
#[expect(unreachable_pub, reason = "a library too, for `fuzz/`")]
mod seeds;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
};

use forebay_core::{Buffer, DType};
use forebay_testkit::Damage;
use forebay_tests::{seed, within_deadline};
use parsers::{PARSERS, Parser};
use seeds::seeds;

/// The largest file that is damaged.
const LARGEST: u64 = 4096;
/// How many files of the corpora each parser is given, beside those in `seeds/`.
const OF_CORPORA: usize = 3;
/// At so many bytes each file is damaged, at most.
const PLACES: usize = 375;

#[test]
fn damaged_files_are_refused_or_read() {
    let mut tried = Vec::new();
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                let mine = PARSERS.iter().skip(half).step_by(2);
                mine.map(|parser| (parser.0, within_deadline(move || damage(parser)))).collect::<Vec<_>>()
            })
        });
        halves.into_iter().for_each(|half| tried.extend(half.join().unwrap()));
    });
    assert_eq!(tried.len(), PARSERS.len());
    for (name, count) in tried {
        // What only the corpora have may be missing.
        assert!(count > 50 || name == "hdf5", "{name}: {count}");
    }
}

/// The reference encoder wrote them of one another.
#[test]
fn flac_gives_the_samples_of_the_wav_it_was_made_of() {
    for name in ["mono", "stereo"] {
        let bytes = |extension: &str| {
            Buffer::from(fs::read(seed(&format!("{name}.{extension}"))).unwrap())
        };
        for dtype in [DType::ANY, DType::F32] {
            let wav = forebay_audio::parse_wav(&bytes("wav"), dtype).unwrap();
            assert_eq!(forebay_audio::parse_flac(&bytes("flac"), dtype).unwrap(), wav, "{name}");
        }
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
        let done = catch_unwind(AssertUnwindSafe(|| parser.1(bytes)));
        assert!(done.is_ok(), "{} panics over {}", parser.0, what());
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
