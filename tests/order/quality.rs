//! How well graphs shuffle: figures of known shuffles, and that those which should be better are.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use forebay_loader::{Measure, Quality, quality};
use forebay_tests::{
    command::{forebay, json},
    line, registry, within_deadline,
};

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
fn how_much_is_read_before_the_first_sample_comes_h4() {
    within_deadline(|| {
        for (text, read) in [
            ("range 4096 | shuffle 16", 16),
            ("range 4096 | shuffle 16 initial=4 | batch 8", 4),
            ("range 4096 | shuffle 9999", 4096),
            ("range 4096 | shuffle 1", 1),
            ("range 4096 | random_sampler", 0),
            ("range 4096 | batch 8 | shuffle 4", 4),
            ("range 0 | shuffle 4", 0),
        ] {
            assert_eq!(of(text).unwrap().before_first, Some(read), "{text}");
        }
    });
}

#[test]
fn of_what_comes_in_blocks_only_what_is_taken_counts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "x\n".repeat(1000)).unwrap();
    for (size, read) in [(100, 100), (300, 300), (5000, 1000)] {
        let text = format!(
            "files '{}/a.txt' open=none | lines rows=64 | text_lines | shuffle {size}",
            folder.path().display()
        );
        assert_eq!(of(&text).unwrap().before_first, Some(read), "{text}");
    }
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
    assert!(drawn.message().contains("do not come without the shuffle"), "{drawn}");
}

/// What the command prints of a graph's quality, a row a line, without the gaps between cells.
fn printed(graph: &str) -> Vec<String> {
    let output = forebay(&[], &["explain", graph, "--quality"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let section = text.split_once("\nshuffle quality, ").unwrap().1.split_once("\nas TOML").unwrap().0;
    let tight = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    section.lines().map(tight).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_command_prints_the_figures_beside_those_of_a_full_shuffle() {
    for text in ["range 4096 | shuffle 16 | batch 8", "range 4096 | random_sampler"] {
        let found = quality(&line(text), &registry(), 0).unwrap().unwrap();
        let row = |name: &str, decimals: usize, factor: f64, measure: Measure, unit: &str| {
            let figure = |number: f64| format!("{:.decimals$} {unit}", factor * number);
            format!("{name} {} {}", figure(measure.found), figure(measure.full))
        };
        assert_eq!(
            printed(text),
            [
                format!("of the 4096 samples that `{}` gives in epoch 0", found.node),
                "here a full shuffle".to_owned(),
                row("entropy of the distance of neighbours", 2, 1.0, found.entropy, "bits"),
                row("moved by, on average", 0, 1.0, found.moved, "places"),
                row("follow one of the same file", 2, 100.0, found.together, "%"),
                format!("read before the first sample {} samples 4096 samples", found.before_first.unwrap()),
            ],
            "{text}"
        );
        let told = json(&forebay(&[], &["explain", text, "--quality", "--json"]))["quality"].clone();
        assert_eq!(told, serde_json::to_value(&found).unwrap(), "{text}");
    }
    // A buffer of sixteen leaves neighbours together, a sampler does not.
    let bits = |text: &str| {
        let printed = printed(text);
        let words: Vec<_> = printed[2].split(' ').collect();
        [6, 8].map(|at| words[at].parse::<f64>().unwrap())
    };
    let [small, full] = bits("range 4096 | shuffle 16");
    assert!(small < 0.6 * full, "{small} of {full} bits");
    let [whole, full] = bits("range 4096 | random_sampler");
    assert!(whole > 0.99 * full, "{whole} of {full} bits");
}

#[test]
fn the_command_says_that_nothing_shuffles() {
    for more in [&[][..], &["--json"]] {
        let output = forebay(&[], &[&["explain", "range 9 | batch 2", "--quality"], more].concat());
        let (out, error) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let told = format!("{out}{error}");
        assert!(told.contains("--quality: nothing in this graph shuffles"), "{told}");
        assert!(!told.contains("shuffle quality"), "{told}");
        assert_eq!(output.status.code(), Some(2), "{told}");
    }
    // Unasked, nothing is run and nothing told.
    let plain = json(&forebay(&[], &["explain", "range 4096 | shuffle 16", "--json"]));
    assert!(plain.get("quality").is_none() && plain.get("nodes").is_some(), "{plain}");
}
