//! The file of a run that went on after others is not judged without theirs, and says which are needed.

use std::{fs, path::Path};

use forebay_loader::{audit, graph::Graph};
use forebay_tests::{
    command::{forebay, json},
    line, registry, within_deadline,
};

use super::{Executor, audited, rank};

const ROWS: usize = 3000;

fn graph(folder: &Path) -> String {
    let file = folder.join("rows.jsonl");
    let rows: String = (0..ROWS).map(|row| format!("{{\"n\": {row}}}\n")).collect();
    fs::write(&file, rows).unwrap();
    format!("files '{}' | lines | json_lines | shuffle 500 | map 'r=random()'", file.display())
}

#[test]
fn ranks_that_go_on_as_one_are_judged_together_and_not_alone() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let text = graph(folder.path());
        for most in [10, 900, 1400] {
            let file = |name: &str| folder.path().join(format!("{name}-{most}"));
            let files = [file("0"), file("1"), file("new")];
            let saved = [0, 1].map(|at| rank(&text, &registry, (at, 2), &files[at as usize], None, most));
            rank(&text, &registry, (0, 1), &files[2], Some(&saved[0]), usize::MAX);

            let alone = audit(&files[2..]).unwrap().remove(0);
            assert!(!alone.judged && !alone.exactly_once && alone.offences.is_empty(), "{most}: {alone}");
            for rank in 0..2 {
                let needed =
                    format!("the first {most} deliveries of rank {rank} of 2 are not in these files");
                assert!(alone.unfinished.contains(&needed), "{most}: {alone}");
            }
            let without_one = audit(&[&files[0], &files[2]]).unwrap().remove(0);
            assert!(!without_one.judged && without_one.unfinished.len() == 1, "{most}: {without_one}");
            assert!(without_one.to_string().contains("rank 1 of 2"), "{most}: {without_one}");

            let all = audit(&files).unwrap().remove(0);
            assert!(all.judged && all.exactly_once, "{most}: {all}");
            assert_eq!(all.delivered, ROWS as u64, "{most}: {all}");
        }
    });
}

/// What one process delivered before may be in another file, too.
#[test]
fn a_run_that_goes_on_in_another_file_is_judged_with_the_first() {
    within_deadline(|| {
        let registry = registry();
        let folder = tempfile::tempdir().unwrap();
        let texts = [
            graph(folder.path()),
            "range 3000 | map 'x=1/(value % 7)' on_error=skip | shuffle 100 | batch 8".to_owned(),
            "range 300 | repeat 3 | batch 7 | shuffle 5".to_owned(),
        ];
        for (at, text) in texts.iter().enumerate() {
            for executor in [Executor::Inline, Executor::Threads(2)] {
                let file = |name: &str| folder.path().join(format!("{name}-{at}-{executor}"));
                let (first, second) = (file("first"), file("second"));
                let graph: Graph = line(text);
                let mut loader = audited(&graph, executor, &first).build(&registry).unwrap();
                let mut epoch = loader.epoch(0);
                assert!(epoch.by_ref().take(50).all(|sample| sample.is_ok()), "{text}");
                let snapshot = epoch.snapshot().unwrap();
                drop(epoch);
                loader.finish().unwrap();
                let mut loader = audited(&graph, executor, &second).build(&registry).unwrap();
                assert!(loader.resume(&snapshot).unwrap().all(|sample| sample.is_ok()), "{text}");
                loader.finish().unwrap();

                let alone = audit(&[&second]).unwrap().remove(0);
                assert!(!alone.judged && alone.offences.is_empty(), "{text} on {executor}: {alone}");
                let both = audit(&[&first, &second]).unwrap().remove(0);
                assert!(both.judged && both.exactly_once, "{text} on {executor}: {both}");
            }
        }
    });
}

#[test]
fn the_command_ends_well_when_it_cannot_judge_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = graph(folder.path());
    for rank in ["0", "1"] {
        let (of, saved, file) = (format!("{rank}/2"), path(&format!("s{rank}")), path(rank));
        let args = ["run", &text, "--rank", &of, "--snapshot", &saved, "--limit", "900", "--audit", &file];
        assert!(forebay(&[], &args).status.success());
    }
    let args = ["run", &text, "--rank", "0/1", "--resume", &path("s0"), "--audit", &path("new"), "--json"];
    let run = forebay(&[], &args);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let told = json(&run)["audit"]["epochs"][0].clone();
    assert_eq!((&told["judged"], &told["offences"]), (&false.into(), &serde_json::json!([])), "{told}");
    let alone = forebay(&[], &["audit", &path("new")]);
    let text = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert_eq!(alone.status.code(), Some(1), "what was not judged is not exactly once: {text}");
    assert!(text.contains("not judged") && text.contains("rank 1 of 2"), "{text}");
    let all = forebay(&[], &["audit", &path("0"), &path("1"), &path("new")]);
    assert!(all.status.success(), "{all:?}");
}
