//! No two samples of a pass have one uid, however pipes stand behind each other that give a sample several times: else random
//! maps would draw the same for both, and no audit could tell them apart.

use std::collections::{BTreeSet, HashSet};

use forebay_loader::{
    Registry,
    graph::{Class, Uids},
};
use forebay_tests::{Setting, build, line, registry, uids, within_deadline};

use super::{KINDS, audit_of};

const BASES: [&str; 3] = [
    "range 5",
    "range 3 | random_sampler replacement=true num_samples=7",
    "range @a 2 ; range @b 4 ; mix <a, b>",
];

/// What makes several samples of one, or brings some together that may be one; a `%` tells two of them in one graph apart.
const MAKERS: &[&str] = &[
    "repeat 2",
    "repeat_each 2",
    "flat_map '[value, value + 1]'",
    "batch 3 | unbatch",
    "batch 3 | repeat 2 | unbatch",
    "batch 4 | unbatch | shuffle 9 | batch 2 | unbatch",
    "batch 3 | rebatch 2 | unbatch",
    "batch 2 drop_last=true | batch 2 | unbatch level=2",
    "window 2 shift=1 | unbatch",
    "pad_to_length multiple=1% | select value",
    "group_by 'value > 2' size=2 | unbatch",
    "cache",
    "map 'tokens=[value, value, value]' | pack 2 fields=tokens method=concat | map 'value=tokens[0]' | select value",
    "collect | random_sampler replacement=true num_samples=9",
    "fork @f% ; concat <f%, f%.1>",
    "fork @f% ; mux <f%, f%.1>",
    "fork @f% ; skip @s% <f%> 2 ; zip <s%, f%.1> mode=longest prefix=['', 'b%-'] | map 'value=1' | select value",
];

/// With what cannot stand behind another, since it wants keys that come once, or files.
const OTHERS: [&str; 2] = [
    "range 5 | fork @f ; map @m <f.1> 'value=value + 3' ; zip_by_key <f, m> key=value join=outer prefix=['', 'b-'] | map 'value=1' | select value | repeat 2 | repeat_each 2",
    "files '../plugins/pipes/src/*.rs' | repeat 2 | group | repeat 2 | repeat_each 2",
];

fn graphs() -> Vec<String> {
    let at = |maker: &str, level: usize| maker.replace('%', &level.to_string());
    let mut graphs = OTHERS.map(str::to_owned).to_vec();
    for base in BASES {
        for one in MAKERS {
            let thrice = [at(one, 1), at(one, 2), at(one, 3)].join(" | ");
            graphs.push(format!("{base} | {thrice}"));
            for other in MAKERS {
                graphs.push(format!("{base} | {} | {}", at(one, 1), at(other, 2)));
            }
        }
    }
    graphs
}

/// The pipes that may make uids, but for sources; what a sampler draws again is named by whoever gets it, alike for all of them.
fn making(registry: &Registry) -> BTreeSet<&str> {
    let pipes = registry.plugins().iter().filter(|record| record.manifest().name == "forebay-pipes");
    let pipes = pipes.flat_map(|record| &record.manifest().pipes).filter(|pipe| !pipe.is_part());
    let makes = |class: Class, uids: Uids| class == Class::FlatMap || uids != Uids::Kept;
    pipes
        .filter(|pipe| makes(pipe.class, pipe.audit.uids) && pipe.layout.inputs.1 > 0 && !pipe.is_sampler())
        .map(|pipe| pipe.name.as_str())
        .collect()
}

#[test]
fn uids_come_once_however_pipes_are_stacked() {
    within_deadline(|| {
        let registry = registry();
        let graphs = graphs();
        let named: HashSet<String> = graphs
            .iter()
            .flat_map(|text| line(text).nodes().iter().map(|node| node.pipe.clone()).collect::<Vec<_>>())
            .collect();
        let missing: Vec<_> = making(&registry).into_iter().filter(|pipe| !named.contains(*pipe)).collect();
        assert!(missing.is_empty(), "in no graph here: {missing:?}");
        let mut wrong = Vec::new();
        for text in &graphs {
            let found = uids(&mut build(&line(text), &registry, Setting::INLINE).unwrap(), 0)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let distinct: HashSet<_> = found.iter().collect();
            assert!(found.len() >= 4, "{text}: {} samples", found.len());
            if distinct.len() < found.len() {
                wrong.push(format!("{text}: {} of {}", distinct.len(), found.len()));
            }
        }
        assert!(wrong.is_empty(), "{} graphs give uids twice:\n{}", wrong.len(), wrong.join("\n"));
    });
}

/// What cuts a file into pieces, and what reads them.
const PIECES: [(&str, &str); 7] = [
    ("json/seeds/words.txt open=none | lines rows=2", "text_lines"),
    ("json/seeds/rows.jsonl open=none | lines rows=1", "json_lines"),
    ("json/seeds/birds.csv open=none | csv_blocks block=64", "csv"),
    ("arrow/seeds/groups.parquet open=none | row_groups", "read_rows"),
    ("arrow/seeds/groups.parquet open=none | row_groups", "read_columns size=2"),
    ("tar/seeds/gnu.tar open=none | tar_pieces samples=1", "untar_pieces"),
    ("hdf5/seeds/chunks.h5 open=none | hdf5_pieces piece_bytes=40", "hdf5_rows"),
];

#[test]
fn pieces_that_are_given_again_have_rows_of_their_own() {
    within_deadline(|| {
        let registry = registry();
        let found =
            |text: &str| uids(&mut build(&line(text), &registry, Setting::INLINE).unwrap(), 0).unwrap();
        for (cut, read) in PIECES {
            let cut = format!("files ../plugins/{cut}");
            let once = found(&format!("{cut} | {read}"));
            for again in ["repeat 2", "repeat_each 2", "collect | random_sampler replacement=true"] {
                let text = format!("{cut} | {again} | {read}");
                let given = found(&text);
                let distinct: HashSet<_> = given.iter().collect();
                assert_eq!(distinct.len(), given.len(), "{text}");
                if !again.contains("replacement") {
                    assert!(once.iter().all(|uid| distinct.contains(uid)), "{text}: the first keep theirs");
                }
                assert!(audit_of(&text, &registry, KINDS[0]).exactly_once, "{text}");
            }
        }
    });
}

#[test]
fn audits_follow_uids_through_stacked_pipes() {
    within_deadline(|| {
        let registry = registry();
        for (at, text) in graphs().iter().enumerate() {
            let executor = KINDS[usize::from(at.is_multiple_of(40)) + usize::from(at.is_multiple_of(80))];
            let found = audit_of(text, &registry, executor);
            assert!(found.exactly_once, "{text} on {executor}: {found}");
        }
    });
}
