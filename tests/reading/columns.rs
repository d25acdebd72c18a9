//! Files of columns: the same samples on every executor, and Arrow columns in worker processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use forebay_loader::{Executor, Value, View, open};
use forebay_tests::{ALL, Run, Setting, build, line, registry, run, within_deadline};

/// An Arrow stream of two columns and three batches, as pyarrow 26 wrote it: `id` int32 0 to 8, `bird` text.
const BIRDS: &[u8] = include_bytes!("../columns/birds.arrows");

/// A stream as Arrow 0.14.1 wrote it (apache/arrow-testing, generated_map.stream): messages begin with their length alone.
const OLD: &[u8] = include_bytes!("../columns/old.stream");

fn graph(rest: &str) -> (tempfile::TempDir, forebay_loader::Graph) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one.arrows", "two.arrows"] {
        fs::write(folder.path().join(name), BIRDS).unwrap();
    }
    let text = format!("files '{}/*.arrows' | row_groups {rest}", folder.path().display());
    let graph = line(&text);
    (folder, graph)
}

fn compare(rest: &str) -> Run {
    let rest = rest.to_owned();
    within_deadline(move || {
        let registry = registry();
        let (_folder, graph) = graph(&rest);
        let mut expected = None;
        for executor in ALL {
            for chunk in [Some(1), None] {
                let setting = Setting { executor, chunk, ..Setting::INLINE };
                let found = run(&mut build(&graph, &registry, setting).unwrap(), 0).unwrap();
                assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{rest}: {setting:?}");
            }
        }
        expected.unwrap()
    })
}

#[test]
fn rows_are_the_same_on_every_executor() {
    compare("| read_rows | take 8");
    compare("columns=['id'] filter='id > 2 and id != 5' | read_rows");
}

#[test]
fn columns_are_the_same_on_every_executor() {
    compare("| read_columns size=2");
}

#[test]
fn arrow_columns_come_out_of_worker_processes_as_they_are() {
    within_deadline(|| {
        let registry = registry();
        let (_folder, graph) = graph("| read_columns arrow=true | rogue_map");
        let mut seen = Vec::new();
        for executor in [Executor::Inline, Executor::Processes(2)] {
            let mut loader = build(&graph, &registry, Setting { executor, ..Setting::INLINE }).unwrap();
            let mut all = Vec::new();
            for sample in loader.epoch(0) {
                let sample = sample.unwrap();
                let value = sample.get("bird").unwrap();
                assert!(matches!(value.view(), View::Arrow(_)));
                let parts = value.arrow().unwrap();
                all.push((parts.format, parts.name, parts.length, parts.buffers[2].clone()));
            }
            assert!(!all.is_empty());
            seen.push(all);
        }
        assert_eq!(seen[0], seen[1]);
    });
}

#[test]
fn folders_of_partitions_that_are_opened_by_path_are_fields() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let path = folder.path().to_str().unwrap();
        for year in ["2025", "2026"] {
            let place = folder.path().join(format!("year={year}/place=grey%20heron"));
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("part-0.parquet"), include_bytes!("../columns/birds.parquet")).unwrap();
        }
        let graph = open(path, &registry).unwrap();
        assert!(graph.to_string().contains("hive=true"), "{graph}");
        let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
        let rows: Vec<_> = loader.epoch(0).map(|sample| sample.unwrap()).collect();
        let years: Vec<_> = rows.iter().map(|row| row.get("year").and_then(Value::as_i64).unwrap()).collect();
        assert!(years.len() > 2 && years.is_sorted(), "{years:?}");
        assert_eq!((years[0], years[years.len() - 1]), (2025, 2026));
        assert_eq!(rows[0].get("place").and_then(Value::as_str), Some("grey heron"));
        // A file in no such folder has no such field.
        let one = format!("{path}/year=2025/place=grey%20heron");
        assert!(!open(&one, &registry).unwrap().to_string().contains("hive"));
    });
}

#[test]
fn streams_are_found_by_their_bytes_of_whatever_age() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for (name, bytes, expected) in
            [("old", OLD, true), ("new", BIRDS, true), ("cut", &OLD[..200], false), ("no", &OLD[4..], false)]
        {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let graph = open(path.to_str().unwrap(), &registry).unwrap();
            assert_eq!(graph.to_string().contains("row_groups"), expected, "{name}: {graph}");
            if expected {
                let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
                assert!(loader.epoch(0).inspect(|row| assert!(row.is_ok(), "{row:?}")).count() > 1, "{name}");
                assert_eq!(loader.quarantine().len(), 0, "{name}");
            }
        }
    });
}
