//! Every pipe that knows no format, and every one for pictures, goes through one check: the same on every executor and with any
//! chunks, saved after every sample and gone on with elsewhere, a second epoch, no samples, one and no end of them, and options that
//! are refused by name.
//!
//! What each is by definition stands beside its code; a pipe that is missing here fails the test.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{collections::BTreeSet, fs};

use forebay_loader::{
    Error, Executor, Graph, Loader, Registry,
    graph::{Catalog as _, Kind, List, PipeSpec},
};
use forebay_tests::{
    Setting, build,
    child::{self, Outcome},
    line, read, registry, root, within_deadline,
};
use serde_json::json;
use tempfile::TempDir;

#[path = "pipes/cases.rs"]
mod cases;

use cases::{CASES, PICTURES, ending, short, uncounted};

/// The plugins whose pipes are checked.
const PLUGINS: [&str; 2] = ["forebay-pipes", "forebay-image"];

/// How many samples an endless input has, how many are looked at, and how many no node may have given by then.
const ENDLESS: &str = "1000000000000";
const SOME: usize = 20;
const FAR: u64 = 100_000;

/// A run that has room for a mebibyte between its segments.
const NARROW: Setting = Setting { budget: Some(1 << 20), ..Setting::INLINE };

fn graph(case: &str, count: impl ToString) -> Graph {
    let text = case.replace("PICTURES", PICTURES).replace("FOLDER", &cache());
    line(&text.replace('N', &count.to_string()))
}

thread_local! {
    /// A folder for what is kept, of each thread its own.
    static CACHE: TempDir = tempfile::tempdir().unwrap();
}

fn cache() -> String {
    CACHE.with(|folder| folder.path().to_str().unwrap().to_owned())
}

/// Lets go of what was kept, so that each run writes as well as reads.
fn forget() {
    CACHE.with(|folder| drop(fs::remove_dir_all(folder.path().join("forebay-samples"))));
}

/// What an epoch gives, with the error that ends it as text.
fn epoch(graph: &Graph, registry: &Registry, setting: Setting, epoch: u64) -> (Vec<String>, Option<String>) {
    forget();
    let mut loader = build(graph, registry, setting).unwrap_or_else(|error| panic!("{graph}: {error}"));
    let (samples, failed) = read(loader.epoch(epoch));
    (samples, failed.as_ref().map(Error::to_string))
}

/// The pipes of a case.
fn pipes(case: &&str) -> Vec<String> {
    graph(case, 5).nodes().iter().map(|node| node.pipe.clone()).collect()
}

#[test]
fn every_pipe_is_here() {
    let registry = registry();
    let named: BTreeSet<String> = CASES.iter().flat_map(pipes).collect();
    let manifests = PLUGINS.map(|name| {
        registry
            .plugins()
            .iter()
            .map(|record| record.manifest())
            .find(|manifest| manifest.name == name)
            .unwrap()
    });
    let all: Vec<_> =
        manifests.iter().flat_map(|manifest| &manifest.pipes).filter(|pipe| !pipe.is_part()).collect();
    assert!(all.len() > 60 && CASES.len() > 80, "{} pipes, {} cases", all.len(), CASES.len());
    let missing: Vec<_> =
        all.iter().filter(|pipe| !named.contains(&pipe.name)).map(|pipe| &pipe.name).collect();
    assert!(missing.is_empty(), "these pipes are checked by nothing here: {missing:?}");
}

#[test]
fn every_pipe_gives_the_same_however_it_runs() {
    let registry = registry();
    for case in CASES.iter() {
        let registry = registry.clone();
        within_deadline(move || {
            for count in [0, 1, 40] {
                let graph = graph(case, count);
                let truth = epoch(&graph, &registry, Setting::INLINE, 2);
                for (executor, chunk) in [
                    (Executor::Inline, Some(1)),
                    (Executor::Threads(1), Some(3)),
                    (Executor::Threads(3), None),
                    (Executor::Threads(2), Some(1)),
                ] {
                    let setting = Setting { executor, chunk, ..Setting::INLINE };
                    assert_eq!(epoch(&graph, &registry, setting, 2), truth, "{graph}: {setting:?}");
                }
                // An epoch is the same whichever came before it.
                let mut loader =
                    build(&graph, &registry, Setting { epochs: 3, ..Setting::threads(2) }).unwrap();
                for number in [0, 2, 2] {
                    let (samples, failed) = read(loader.epoch(number));
                    if number == 2 {
                        assert_eq!(
                            (samples, failed.as_ref().map(Error::to_string)),
                            truth,
                            "{graph}: a later epoch"
                        );
                    }
                }
            }
        });
    }
}

#[test]
fn every_pipe_goes_on_where_it_was_saved() {
    let registry = registry();
    for case in CASES.iter() {
        let registry = registry.clone();
        within_deadline(move || {
            let graph = graph(case, 25);
            let (truth, failed) = epoch(&graph, &registry, Setting::INLINE, 1);
            assert_eq!(failed, None, "{graph}");
            // Up to where the end was seen too, behind which comes the next epoch.
            let next = epoch(&graph, &registry, Setting::INLINE, 2).0;
            for asked in 0..=truth.len() + 1 {
                let taken = asked.min(truth.len());
                let exact = Setting { chunk: Some(1 + asked % 3), marks: true, ..Setting::INLINE };
                let mut loader = build(&graph, &registry, exact).unwrap();
                let mut samples = loader.epoch(1);
                assert_eq!(samples.by_ref().take(asked).filter(Result::is_ok).count(), taken);
                let snapshot = samples.snapshot().unwrap();
                let mut other = build(&graph, &registry, Setting::threads(2)).unwrap();
                let (rest, failed) = read(other.resume(&snapshot).unwrap());
                assert_eq!(
                    (&rest[..], failed.map(|error| error.to_string())),
                    (if asked > taken { &next[..] } else { &truth[taken..] }, None),
                    "{graph} after {asked}"
                );
            }
        });
    }
}

#[test]
fn every_pipe_runs_with_processes() {
    let registry = registry();
    within_deadline(move || {
        for case in CASES.iter() {
            let graph = graph(case, 40);
            let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
            assert_eq!(
                epoch(&graph, &registry, setting, 1),
                epoch(&graph, &registry, Setting::INLINE, 1),
                "{graph}"
            );
        }
    });
}

#[test]
fn every_pipe_goes_on_where_it_was_saved_with_processes() {
    let registry = registry();
    within_deadline(move || {
        let inline = Setting { chunk: Some(2), marks: true, ..Setting::INLINE };
        let processes = Setting { executor: Executor::Processes(2), ..inline };
        for case in CASES.iter() {
            let graph = graph(case, 25);
            let (truth, failed) = epoch(&graph, &registry, Setting::INLINE, 1);
            assert_eq!(failed, None, "{graph}");
            let taken = truth.len() / 2;
            for (before, after) in [(processes, inline), (inline, processes)] {
                forget();
                let mut loader = build(&graph, &registry, before).unwrap();
                let mut samples = loader.epoch(1);
                assert_eq!(samples.by_ref().take(taken).filter(Result::is_ok).count(), taken, "{graph}");
                let snapshot = samples.snapshot().unwrap();
                let mut other = build(&graph, &registry, after).unwrap();
                let (rest, failed) = read(other.resume(&snapshot).unwrap());
                assert!(failed.is_none(), "{graph}: {failed:?}");
                assert_eq!(rest, truth[taken..], "{graph}: {after:?} after {taken}");
            }
        }
    });
}

#[test]
fn every_pipe_says_how_many_samples_it_gives_or_is_known_not_to() {
    let registry = registry();
    let mut known = BTreeSet::new();
    for case in CASES.iter() {
        for count in [0, 1, 40] {
            let graph = graph(case, count);
            let (samples, failed) = epoch(&graph, &registry, Setting::INLINE, 1);
            let said = build(&graph, &registry, Setting::INLINE).unwrap().len().unwrap();
            let uncounted = pipes(case).iter().any(|pipe| uncounted().any(|one| one == pipe));
            match said {
                // As if none failed.
                Some(_) if failed.is_some() || case.contains("on_error") => {}
                Some(said) => assert_eq!(said, samples.len() as u64, "{graph}"),
                None => assert!(
                    uncounted,
                    "{graph}: of one of its pipes nobody knows: its file says `counted = false`"
                ),
            }
            known.extend(said.map(|_| pipes(case)).into_iter().flatten());
        }
    }
    // One that is known in some cases and not in others.
    let both: Vec<_> = uncounted().filter(|pipe| known.contains(*pipe)).collect();
    assert!(both.is_empty(), "{both:?} are known");
}

/// A loader of a case without an end, or of one that stands for it.
fn endless(text: &str, registry: &Registry, setting: Setting) -> Loader {
    forget();
    let graph = graph(text, ENDLESS);
    build(&graph, registry, setting).unwrap_or_else(|error| panic!("{graph}: {error}"))
}

/// Its first samples, by which no node may be far ahead.
fn first(text: &str, registry: &Registry, executor: Executor) -> Vec<String> {
    let mut loader = endless(text, registry, Setting { executor, ..NARROW });
    let (samples, failed) = read(loader.epoch(2).take(SOME));
    assert!(failed.is_none(), "{text} on {executor}: {failed:?}");
    for node in loader.stats().nodes {
        assert!(node.samples < FAR, "{text} on {executor}: {} gave {} samples", node.node, node.samples);
    }
    samples
}

/// How many samples come first of an endless input, which are the same on threads, and after a resume from either to the other.
fn check_endless(text: &str, registry: &Registry) -> usize {
    let truth = first(text, registry, Executor::Inline);
    assert_eq!(first(text, registry, Executor::Threads(2)), truth, "{text}");
    let taken = truth.len().min(7);
    let exact = Setting { chunk: Some(3), marks: true, ..NARROW };
    let threads = Setting { executor: Executor::Threads(2), ..NARROW };
    for (before, after) in [(exact, threads), (threads, exact)] {
        let mut loader = endless(text, registry, before);
        let mut samples = loader.epoch(2);
        assert_eq!(samples.by_ref().take(taken).filter(Result::is_ok).count(), taken, "{text}");
        let snapshot = samples.snapshot().unwrap();
        let mut other = endless(text, registry, after);
        let (rest, failed) = read(other.resume(&snapshot).unwrap().take(SOME - taken));
        assert!(failed.is_none(), "{text}: {after:?}: {failed:?}");
        assert_eq!(rest, truth[taken..], "{text}: {before:?}, then {after:?}");
    }
    truth.len()
}

/// All cases with endless inputs, those that stand for others among them; and the pipes that are in none of them.
fn endless_cases(registry: &Registry) -> (Vec<&'static str>, Vec<String>) {
    let is_ending = |case: &&&str| ending().any(|one| one.graph == **case);
    let (last, mut cases): (Vec<&str>, Vec<&str>) = CASES.iter().partition(is_ending);
    for case in &cases {
        let graph = graph(case, 987_654).check(registry).unwrap();
        for source in graph.nodes().iter().filter(|node| node.inputs.is_empty()) {
            assert_eq!(source.options.get("stop"), Some(&json!(987_654)), "{case} is not endless: list it");
        }
    }
    cases.extend(ending().filter_map(|case| case.instead.as_deref()));
    let checked: BTreeSet<_> = cases.iter().flat_map(pipes).collect();
    let left: BTreeSet<_> = last.iter().flat_map(pipes).filter(|pipe| !checked.contains(pipe)).collect();
    (cases, left.into_iter().collect())
}

#[test]
fn every_pipe_runs_over_an_endless_input() {
    // In children, which a pipe that never comes back, or takes whatever it gets, cannot leave.
    if child::is_child() {
        let registry = registry();
        return child::serve(|case| Ok(json!(check_endless(case.to_str().unwrap(), &registry))), 20);
    }
    let registry = registry();
    let (cases, left) = endless_cases(&registry);
    assert_eq!(left, ["collect"], "all other pipes go without an end");
    let name = "pipes::every_pipe_runs_over_an_endless_input";
    let mut failed = Vec::new();
    for (case, outcome) in cases.iter().zip(child::read_all(name, &root().join("tests"), &cases)) {
        let count = short().find(|short| short.graph == *case).map_or(SOME, |short| short.samples);
        match outcome {
            Outcome::Read(found) if found == json!(count) => {}
            Outcome::Read(found) => failed.push(format!("{case}: {found} samples, expected {count}")),
            Outcome::Refused(why) | Outcome::Crashed(why) => failed.push(format!("{case}: {why}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    within_deadline(move || {
        for case in cases {
            let truth = first(case, &registry, Executor::Inline);
            assert_eq!(first(case, &registry, Executor::Processes(2)), truth, "{case}");
        }
    });
}

/// A node of a graph that runs `pipe`, with one option more.
fn with_option(case: &str, pipe: &PipeSpec, option: &str, value: serde_json::Value) -> Option<Graph> {
    let mut text: serde_json::Value = serde_json::from_str(&graph(case, 9).to_json().unwrap()).unwrap();
    let node = text["node"].as_array_mut()?.iter_mut().find(|node| node["pipe"] == pipe.name.as_str())?;
    node.as_object_mut()?.insert(option.to_owned(), value);
    Some(Graph::from_json(&text.to_string()).unwrap())
}

#[test]
fn every_bad_option_is_refused_by_its_name() {
    let registry = registry();
    let mut refused = 0;
    for case in CASES.iter() {
        for node in graph(case, 9).nodes() {
            let Some(pipe) = registry.pipe(&node.pipe) else { continue };
            for option in &pipe.options {
                let reserved = ["name", "pipe", "inputs", "on", "on_error", "unordered"];
                assert!(!reserved.contains(&option.name.as_str()), "{}: {}", pipe.name, option.name);
                let mut wrong = vec![serde_json::json!({"a": {"b": 1}})];
                if let (Some(min), List::No) = (option.min.as_ref().and_then(|min| min.as_i64()), option.list)
                {
                    wrong.push((min - 1).into());
                }
                let most = option.max.as_ref().and_then(|max| max.as_i64()?.checked_add(1));
                if let (Some(more), List::No) = (most, option.list) {
                    wrong.push(more.into());
                }
                if option.kind == Kind::Bool {
                    wrong.push("yes".into());
                }
                if !option.choices.is_empty() {
                    wrong.push("none of them".into());
                }
                for value in wrong.into_iter().filter(|_| option.kind != Kind::Any) {
                    let Some(graph) = with_option(case, pipe, &option.name, value.clone()) else { continue };
                    let error = build(&graph, &registry, Setting::INLINE).err();
                    let error = error.unwrap_or_else(|| panic!("{graph} takes {value} for {}", option.name));
                    assert!(error.to_string().contains(&option.name), "{}: {error}", option.name);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 200, "{refused} options were refused");
}
