//! How well graphs shuffle: figures of known shuffles, and that those which should be better are.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use forebay_loader::{Quality, quality};
use forebay_tests::{line, registry, within_deadline};

fn of(text: &str) -> Option<Quality> {
    quality(&line(text), &registry(), 7).unwrap()
}

#[test]
fn whole_shuffles_are_whole_and_small_ones_are_not() {
    within_deadline(|| {
        for whole in [
            "range 4096 | shuffle 4096",
            "range 4096 | random_sampler",
            "range 4096 | map 'x=value' | shuffle 9999 | batch 7",
        ] {
            let found = of(whole).unwrap();
            assert!(found.entropy.found > found.entropy.full * 0.99, "{whole}: {found:?}");
            assert!((found.moved.found / found.moved.full - 1.0).abs() < 0.05, "{whole}: {found:?}");
            assert_eq!(found.samples, 4096);
        }
        let small = of("range 4096 | shuffle 16 | skip 0").unwrap();
        assert!(small.entropy.found < small.entropy.full * 0.6 && small.moved.found < 30.0, "{small:?}");
        assert_eq!((small.node.as_str(), of("range 9 | batch 2")), ("shuffle", None));
        // Two that follow one another are better than each.
        let two = of("range 4096 | shuffle 16 | shuffle @two 16").unwrap();
        assert!(two.entropy.found > small.entropy.found && two.node == "two", "{two:?}");
    });
}

#[test]
fn shards_that_are_shuffled_and_interleaved_come_near_a_whole_shuffle() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..64 {
        let text: String = (0..64).map(|row| format!("{file} {row}\n")).collect();
        fs::write(folder.path().join(format!("{file:02}.txt")), text).unwrap();
    }
    let files = format!("files '{}/*.txt' open=none", folder.path().display());
    let buffer = of(&format!("{files} | lines rows=64 | text_lines | shuffle 100")).unwrap();
    let all =
        of(&format!("{files} | shuffle 64 | lines rows=4 interleave=16 | text_lines | shuffle 100")).unwrap();
    assert!(buffer.together.found > 0.25 && all.together.found < 0.12, "{buffer:?} and {all:?}");
    let (least, most) = (0.8 * all.entropy.full, 0.9 * all.entropy.full);
    assert!(buffer.entropy.found < least && all.entropy.found > most, "{buffer:?} and {all:?}");
    assert!(all.moved.found > 0.8 * all.moved.full && buffer.moved.found < 0.1 * buffer.moved.full);
}

#[test]
fn what_has_no_place_without_a_shuffle_is_told() {
    let drawn = quality(&line("range 100 | random_sampler replacement=true"), &registry(), 7).unwrap_err();
    assert!(drawn.message().contains("no place in the order"), "{drawn}");
}
