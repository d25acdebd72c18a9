//! Pipes that put samples together which do not follow one another, or cut one in pieces, say which are in what they give.

use std::{fs, path::Path};

use forebay_loader::{EpochAudit, Executor, Registry, What, audit};
use forebay_tests::{line, registry, within_deadline};

use super::{KINDS, audit_of, audited, check, outcome};

const BUCKETS: &str = "map 'n=value % 7' | bucket_by_length @merges n boundaries=[3, 5] sizes=[4, 3, 2]";
const TOKENS: &str = "map 'n=1 + value % 7' | max_tokens @merges n most=20 buffer=5";
const ROWS: &str = "map 'tokens=[value, value, value]' | pack @merges";

#[test]
fn what_is_in_merged_samples_is_followed() {
    within_deadline(|| {
        let registry = registry();
        for (text, given, delivered) in [
            (format!("range 100 | shuffle 9 | {BUCKETS} | shuffle 5"), 100, 100),
            (format!("range 100 | {TOKENS} | padded_batch 2 uids=batches"), 100, 100),
            (format!("range 30 | repeat 2 | {BUCKETS} uids=of"), 60, 60),
            (format!("range 100 | {ROWS} 8 bins=3 fields=tokens | shuffle 9"), 100, 100),
            (format!("range 50 | {ROWS} 8 fields=tokens method=concat uids=of | ragged_batch 4"), 50, 50),
            (
                format!("range 50 | repeat 2 | {ROWS} 2 bins=3 fields=tokens too_long=split | batch 2"),
                100,
                100,
            ),
        ] {
            for executor in KINDS {
                let found = audit_of(&text, &registry, executor);
                assert!(found.exactly_once && found.left_out.is_empty(), "{text} on {executor}: {found}");
                let counts = (found.given, found.delivered);
                assert_eq!(counts, (given, delivered), "{text} on {executor}: {found}");
            }
            check(&line(&text), &registry, &[Executor::Inline, Executor::Threads(2)], 5);
        }
        // What is left out on purpose is counted: lengths that are 0, rows and batches that are not full.
        for (text, left) in [
            ("range 70 | map 'n=value % 7' | max_tokens @merges n most=20 buffer=5".to_owned(), 10),
            (format!("range 9 | {ROWS} 8 fields=tokens method=concat drop_last=true"), 1),
            (format!("range 30 | {BUCKETS} drop_last=true"), 4),
        ] {
            let found = audit_of(&text, &registry, Executor::Threads(2));
            let [out] = &found.left_out[..] else { panic!("{text}: {found}") };
            assert!(found.exactly_once, "{text}: {found}");
            assert_eq!((&*out.node, out.samples, out.failed), ("merges", left, false), "{text}: {found}");
            assert_eq!(found.delivered, found.given - left, "{text}: {found}");
        }
    });
}

/// The audit of a run of which what `merges` gave is changed: `change` is shown what is in each that it gave.
fn changed(text: &str, registry: &Registry, change: impl Fn(&mut Vec<Vec<String>>)) -> EpochAudit {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let mut loader = audited(&line(text), Executor::Inline, &file).build(registry).unwrap();
    assert!(outcome(&mut loader, 0, usize::MAX).2.is_none());
    loader.finish().unwrap();
    assert!(audit(&[&file]).unwrap()[0].exactly_once);
    rewrite(&file, change);
    audit(&[&file]).unwrap().remove(0)
}

/// The graphs here have one node that says what is in each that it gives, which is what the `=` are in.
fn rewrite(file: &Path, change: impl Fn(&mut Vec<Vec<String>>)) {
    let text = fs::read_to_string(file).unwrap();
    let is = |row: &&str| row.starts_with("{\"gave\"") && row.contains('=');
    let uids = |row: &str| row.split('"').nth(3).unwrap().to_owned();
    // Each as its uid and those in it.
    let words = |row: &str| {
        let row = uids(row);
        row.split(' ')
            .map(|word| word.split(['=', ',']).map(str::to_owned).collect())
            .collect::<Vec<Vec<_>>>()
    };
    let lengths: Vec<usize> = text.lines().filter(is).map(|row| words(row).len()).collect();
    let mut all: Vec<Vec<String>> = text.lines().filter(is).flat_map(words).collect();
    change(&mut all);
    let joined = |word: Vec<String>| format!("{}={}", word[0], word[1..].join(","));
    let mut all = all.into_iter().map(joined);
    let mut lengths = lengths.into_iter();
    let rows = text.lines().map(|row| match is(&row) {
        false => row.to_owned(),
        true => {
            let words: Vec<_> = all.by_ref().take(lengths.next().unwrap()).collect();
            row.replacen(&uids(row), &words.join(" "), 1)
        }
    });
    fs::write(file, rows.collect::<Vec<_>>().join("\n") + "\n").unwrap();
}

#[test]
fn who_loses_a_member_is_named_with_it() {
    within_deadline(|| {
        let registry = registry();
        for text in [
            format!("range 40 | shuffle 9 | {BUCKETS}"),
            format!("range 40 | shuffle 9 | {ROWS} 8 bins=3 fields=tokens"),
        ] {
            let found = changed(&text, &registry, |all| drop(all[1].pop()));
            assert_eq!((found.exactly_once, found.offences.len()), (false, 1), "{text}: {found}");
            let offence = &found.offences[0];
            assert_eq!((offence.what, &*offence.node, offence.samples), (What::Missing, "merges", 1));
            assert!(offence.last_seen.contains("`shuffle`") && found.delivered == 39, "{text}: {found}");
            let key = offence.named[0].key.as_deref().unwrap();
            assert!(key.starts_with("range#"), "{text}: {found}");

            let twice = |all: &mut Vec<Vec<String>>| {
                let member = all[1][1].clone();
                all[1].push(member);
            };
            let invented = |all: &mut Vec<Vec<String>>| all[1].push("abcdef".to_owned());
            let again = |all: &mut Vec<Vec<String>>| all[2] = all[1].clone();
            for (whats, found) in [
                (&[What::Twice][..], changed(&text, &registry, twice)),
                (&[What::Unknown][..], changed(&text, &registry, invented)),
                (&[What::Twice, What::Missing][..], changed(&text, &registry, again)),
            ] {
                let node = |what: &What| {
                    found.offences.iter().any(|offence| offence.what == *what && offence.node == "merges")
                };
                assert!(whats.iter().all(node), "{text}: {found}");
            }
        }
        // In another batch too: of buckets that is once too often, of rows it may be another piece.
        let also = |all: &mut Vec<Vec<String>>| {
            let member = all[1][1].clone();
            all[2].push(member);
        };
        let buckets = changed(&format!("range 40 | {BUCKETS}"), &registry, also);
        assert!(buckets.offences.iter().any(|offence| offence.what == What::Twice), "{buckets}");
        let rows = changed(&format!("range 40 | {ROWS} 8 bins=3 fields=tokens"), &registry, also);
        assert!(rows.exactly_once && rows.delivered == 40, "{rows}");
        // Who may leave samples out at any time cannot be told from who loses them.
        let tokens = changed(&format!("range 40 | {TOKENS}"), &registry, |all| drop(all[1].pop()));
        assert!(
            tokens.exactly_once && tokens.to_string().contains("1 sample left out by `merges`"),
            "{tokens}"
        );
    });
}
