//! Files of lines and records, through the real plugins: the same samples however they are cut, on every executor, and after
//! every resume.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use forebay_loader::{ErrorKind, Executor, Sample, Value};
use forebay_tests::{ALL, Setting, build, error_of, line, registry, within_deadline};

/// What a graph gives, in words.
fn read(graph: &str, setting: Setting) -> Vec<String> {
    let mut loader =
        build(&line(graph), &registry(), setting).unwrap_or_else(|error| panic!("{graph}: {error}"));
    let words = |sample: &Sample| format!("{:016x} {sample:?}", sample.uid());
    let samples =
        loader.epoch(0).map(|sample| words(&sample.unwrap_or_else(|error| panic!("{graph}: {error}"))));
    samples.collect()
}

fn rows(count: usize) -> String {
    let row = |at: usize| match at % 7 {
        3 => String::new(),
        5 => format!("[{at}, {{\"a\": 1}}]"),
        6 => format!("{{\"id\": {at}, \"more\": \"{}\"}}\r", "long ".repeat(at)),
        _ => format!("{{\"id\": {at}, \"box\": {{\"x\": {}.5}}, \"text\": \"grün\\n{at}\"}}", at * 3),
    };
    let rows: Vec<_> = (0..count).map(row).collect();
    format!("\u{feff}{}", rows.join("\n"))
}

fn table(count: usize) -> String {
    let row = |at: usize| match at % 5 {
        1 => format!("{at},\"two\nlines, \"\"{at}\"\"\",{at}.25\r\n"),
        2 => format!("{at},,\n"),
        3 => "\n".to_owned(),
        _ => format!("{at},plain {at},1e{at}\n"),
    };
    (0..count).fold("id,\"some\ntext\",number\n".to_owned(), |table, at| table + &row(at))
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Checks that all these pipes give as many samples, and the same, for every size of a block and with the bytes at hand or not.
fn cut_alike(file: &str, cutter: &str, reader: &str, expected: usize) -> Vec<String> {
    let whole = read(&format!("files {file} | {cutter} block=100000 | {reader}"), Setting::INLINE);
    assert_eq!(whole.len(), expected);
    for block in [1, 7, 64, 300] {
        for open in ["mmap", "none"] {
            let graph = format!("files {file} open={open} | {cutter} block={block} | {reader}");
            assert_eq!(read(&graph, Setting::INLINE), whole, "{graph}");
        }
    }
    whole
}

#[test]
fn rows_are_the_same_however_a_file_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "rows.jsonl", &rows(100));
    let whole = cut_alike(&file, "lines", "json_lines", 86);
    assert_eq!(read(&format!("files {file} | json_lines"), Setting::INLINE), whole);
    assert!(whole[1].contains("rows.jsonl#") && whole[1].contains("grün\\n1"), "{}", whole[1]);
    for rows in [1, 3, 1000] {
        for rest in ["", "open=none"] {
            let graph = format!("files {file} {rest} | lines rows={rows} index=beside | json_lines");
            assert_eq!(read(&graph, Setting::INLINE), whole, "{graph}");
        }
    }
    assert!(fs::metadata(format!("{file}.index")).is_ok());
    let some = cut_alike(&file, "lines", "json_lines fields=[/box/x, id, /1/a]", 86);
    assert!(some[1].contains("\"/box/x\": Float(3.5), \"id\": Int(1), \"/1/a\": Null"), "{}", some[1]);
    assert!(some[4].contains("\"id\": Null, \"/1/a\": Int(1)"), "{}", some[4]);
    cut_alike(&file, "lines", "text_lines", 100);
    let kept = cut_alike(&file, "lines", "text_lines field=row skip_blank=true", 86);
    assert!(!kept.iter().any(|line| line.contains("\\r")) && kept[0].contains("\"row\": Str"), "{}", kept[0]);
}

#[test]
fn records_are_the_same_however_a_file_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "table.csv", &table(60));
    let text = cut_alike(&file, "csv_blocks", "csv", 48);
    assert!(text[1].contains("\"some\\ntext\": Str(\"two\\nlines, \\\"1\\\"\")"), "{}", text[1]);
    let typed = cut_alike(&file, "csv_blocks", "csv types=auto fields=[number, id]", 48);
    assert!(typed[1].contains("\"number\": Float(1.25), \"id\": Int(1)"), "{}", typed[1]);
    assert!(typed[2].contains("\"number\": Null"), "{}", typed[2]);
    let bare = cut_alike(&file, "csv_blocks header=false", "csv fields=column_3", 49);
    assert!(bare[0].contains("Str(\"number\")"), "{}", bare[0]);
    let tabs = write(folder.path(), "table.tsv", "a\ta\n1,5\t2\n");
    let tabs = read(&format!("files {tabs} | csv_blocks | csv"), Setting::INLINE);
    assert!(tabs[0].contains("{\"a\": Str(\"1,5\"), \"a_2\": Str(\"2\")}"), "{}", tabs[0]);
}

#[test]
fn the_first_record_shows_what_stands_between_fields() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |name: &str, text: &str, options: &str| {
        let file = write(folder.path(), name, text);
        read(&format!("files {file} | csv_blocks {options} | csv"), Setting::INLINE).remove(0)
    };
    for (name, text) in [
        ("x.csv", "a;b\n1,5;2\n"),
        ("x.csv", "\u{feff}\n\"a\";\"b\"\n1,5;2\n"),
        ("x.csv", "a\tb\n1,5\t2\n"),
        ("x.psv", "a|b\n1,5|2\n"),
        ("x.csv", "\"a\",b\n\"1,5\",2\n"),
    ] {
        let row = rows(name, text, "");
        assert!(row.contains("{\"a\": Str(\"1,5\"), \"b\": Str(\"2\")}"), "{text:?}: {row}");
    }
    // One comma is enough, one that is told holds, and a single column has commas.
    assert!(rows("x.csv", "a;b;c,d\n1;2,3\n", "").contains("\"a;b;c\": Str(\"1;2\")"));
    assert!(rows("x.csv", "a;b\n1,5;2\n", "separator='|'").contains("\"a;b\": Str(\"1,5;2\")"));
    assert!(rows("x.csv", "a\n5\n", "").contains("{\"a\": Str(\"5\")}"));
}

#[test]
fn an_array_may_lie_anywhere_in_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "doc.json",
        r#"{"n": [0], "d/\u0061ta": [7, {"rows": [{"a": 1}, {"b": 2}, 3]}], "z": {}} "#,
    );
    let items = read(&format!("files {file} | json_array at='/d~1ata/1/rows'"), Setting::INLINE);
    let ends: Vec<_> =
        items.iter().map(|item| item.split_once(' ').unwrap().1.rsplit('/').next().unwrap()).collect();
    assert_eq!(
        ends,
        ["doc.json#0 {\"a\": Int(1)}", "doc.json#1 {\"b\": Int(2)}", "doc.json#2 {\"value\": Int(3)}"]
    );
    let registry = registry();
    for (text, byte) in [("[1, 2", "5"), ("[1] 2", "4"), ("{\"a\": [1}", "8"), ("[1 2]", "3"), ("3", "0")] {
        let file = write(folder.path(), "bad.json", text);
        let at = if text.starts_with('{') { "at=/a" } else { "" };
        let error = error_of(&line(&format!("files {file} | json_array {at}")), &registry, Setting::INLINE).0;
        assert_eq!((error.kind(), error.get("byte")), (ErrorKind::Corrupt, Some(byte)), "{text}: {error}");
    }
}

#[test]
fn every_executor_gives_the_same_rows_and_goes_on_from_any_of_them() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let (lines, csv) =
            (write(folder.path(), "rows.jsonl", &rows(40)), write(folder.path(), "table.csv", &table(40)));
        let array = write(folder.path(), "array.json", "[1, {\"a\": 2}, [3], {\"b\": \"4\"} ]");
        let graphs = [
            format!("files {lines} | lines block=90 | json_lines"),
            format!("files {lines} open=none | lines block=90 | text_lines"),
            format!("files {lines} open=none | lines rows=1 index=beside | shuffle 20 | json_lines"),
            format!("files {csv} | csv_blocks block=90 | csv types=auto"),
            format!("files {array} | json_array"),
        ];
        let registry = registry();
        for graph in graphs {
            let truth = read(&graph, Setting::INLINE);
            for executor in ALL.into_iter().chain([Executor::Processes(2)]) {
                assert_eq!(read(&graph, Setting { executor, ..Setting::INLINE }), truth, "{graph}");
            }
            let setting = Setting { marks: true, chunk: Some(3), ..Setting::INLINE };
            for stop in 0..truth.len() {
                let mut loader = build(&line(&graph), &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                assert_eq!(epoch.by_ref().take(stop).map(Result::unwrap).count(), stop);
                let snapshot = epoch.snapshot().unwrap();
                drop(epoch);
                let mut loader = build(&line(&graph), &registry, setting).unwrap();
                let rest = loader.resume(&snapshot).unwrap().map(Result::unwrap);
                let rest: Vec<_> = rest.map(|sample| format!("{:016x} {sample:?}", sample.uid())).collect();
                assert_eq!(rest, truth[stop..], "{graph} after {stop}");
            }
        }
    });
}

#[test]
fn a_bad_line_is_an_error_with_its_place_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "bad.jsonl", "{\"a\": 1}\n{\"a\": tru}\n{\"a\": 3} 4\n{\"a\": 5}\n");
    let registry = registry();
    let graph = line(&format!("files {file} | lines | json_lines"));
    let (error, before) = error_of(&graph, &registry, Setting::INLINE);
    assert_eq!(
        (error.get("byte"), error.get("file"), before),
        (Some("15"), Some(file.as_str()), 1),
        "{error}"
    );
    // Not that of the block, which is that of its first row.
    assert_eq!(error.get("sample"), Some(file.as_str()), "{error}");
    let quotes = write(folder.path(), "quotes.csv", "a,b\n1,2\n3,\"4\n5,6\n");
    let graph = line(&format!("files {quotes} | csv_blocks | csv"));
    let (error, before) = error_of(&graph, &registry, Setting::INLINE);
    assert_eq!((error.get("byte"), before), (Some("10"), 1), "{error}");
    let kept = read(&format!("files {file} | lines | json_lines on_error=skip"), Setting::INLINE);
    assert_eq!(kept.len(), 2);
    let cases = [
        ("json_lines fields=[a, a]", "x.jsonl", "", ErrorKind::Invalid),
        ("json_lines duplicates=refuse", "x.jsonl", "{\"a\": 1, \"a\": 2}", ErrorKind::Corrupt),
        ("json_lines duplicates=refuse fields=a", "x.jsonl", "{\"a\": 1, \"a\": 2}", ErrorKind::Corrupt),
        ("csv_blocks | csv", "x.csv", "a,b\n1\n", ErrorKind::Corrupt),
        ("csv_blocks | csv", "x.csv", "a,b\n1,\"2\n", ErrorKind::Corrupt),
        ("csv_blocks | csv types=int", "x.csv", "a,b\n1,2.5\n", ErrorKind::Corrupt),
        ("csv_blocks | csv fields=c", "x.csv", "a,b\n1,2\n", ErrorKind::Invalid),
        ("csv", "x.csv", "a,b\n1,2\n", ErrorKind::Invalid),
    ];
    for (pipes, name, text, kind) in cases {
        let file = write(folder.path(), name, text);
        let error = error_of(&line(&format!("files {file} | {pipes}")), &registry, Setting::INLINE).0;
        assert_eq!(error.kind(), kind, "{pipes}: {error}");
    }
    let file = write(folder.path(), "x.csv", "a,b\n1\n1,2,3\n");
    let filled = read(&format!("files {file} | csv_blocks | csv ragged=fill"), Setting::INLINE);
    assert!(filled[0].ends_with("\"b\": Null}") && filled[1].ends_with("\"b\": Str(\"2\")}"), "{filled:?}");
}

#[test]
fn rules_say_what_becomes_of_what_json_leaves_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.jsonl");
    fs::write(&file, b"{\"a\": 1, \"b\": \"\xff\\ud800\", \"a\": 123456789012345678901234567890}\n").unwrap();
    let file = file.to_str().unwrap();
    let rules = "invalid_utf8=replace big_integers=text";
    for fields in ["", "fields=[a, b]"] {
        let row = read(&format!("files {file} | json_lines {rules} {fields}"), Setting::INLINE).remove(0);
        let big = "\"a\": Str(\"123456789012345678901234567890\"), \"b\": Str(\"\u{fffd}\u{fffd}\")";
        assert!(row.contains(big), "{row}");
        let row =
            read(&format!("files {file} | json_lines {rules} {fields} duplicates=first"), Setting::INLINE);
        assert!(row[0].contains("\"a\": Int(1)"), "{row:?}");
    }
}

#[test]
fn rows_of_one_kind_share_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "rows.jsonl", &"{\"a\": 1, \"b\": {\"c\": 2}}\n".repeat(50));
    let graph = line(&format!("files {file} | lines block=100 | json_lines"));
    let registry = registry();
    let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
    let rows: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
    assert_eq!(rows.len(), 50);
    assert!(rows.iter().all(|row| row.schema().is(rows[0].schema())));
    assert_eq!(rows[49].get("a").and_then(Value::as_i64), Some(1));
}
