//! Messages that a stranger meets: each shows what was found, what was meant, and what to do.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use forebay_loader::{FileKind, Registry, Search};
use forebay_tests::{
    Setting, build,
    command::{forebay, json},
    error_of, folder_of, line, plugin_file, registry, seed,
};

/// What the command says on standard error.
fn told(args: &[&str]) -> String {
    String::from_utf8_lossy(&forebay(&[], args).stderr).into_owned()
}

fn shown(args: &[&str]) -> String {
    String::from_utf8_lossy(&forebay(&[], args).stdout).into_owned()
}

#[test]
fn one_size_serves_every_bucket_and_a_wrong_list_is_answered_with_a_right_one() {
    let registry = registry();
    let graph = |sizes: &str| line(&format!("range 9 | bucket_by_length value boundaries=[2, 4, 6] {sizes}"));
    let batches = |sizes: &str| build(&graph(sizes), &registry, Setting::INLINE).unwrap().epoch(0).count();
    assert_eq!(batches("sizes=16"), batches("sizes=[16, 16, 16, 16]"));
    let (error, _) = error_of(&graph("sizes=[16, 8]"), &registry, Setting::INLINE);
    assert_eq!(error.message(), "found 2 sizes, expected one for each of 4 buckets: sizes=[16,16,16,16]");
    // One value where a list is wanted, and ranges in words.
    let problem = line("range 9 | bucket_by_length value boundaries=2 sizes=1").problems(&registry);
    let expected =
        "option `boundaries` is 2, expected a list of whole numbers from 1 to 1000000000: boundaries=[2]";
    assert_eq!(problem[0].message(), expected);
}

#[test]
fn a_lookup_without_a_row_shows_both_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let table = file("labels.csv", "id,class\n000000.jpg,3\n000001.jpg,4\n");
    let photo = file("000000.jpg", "");
    let graph = line(&format!(
        "files @photos '{photo}' open=none ; files '{table}' | csv_blocks | csv @rows ; lookup <photos, rows> right=id"
    ));
    let (error, _) = error_of(&graph, &registry(), Setting::INLINE);
    let expected = r#"no row has its key "000000"; the table has "000000.jpg" and 1 more"#;
    assert_eq!((error.message(), error.get("sample")), (expected, Some(photo.as_str())));
}

#[test]
fn a_misspelt_path_is_answered_with_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    for name in ["train/cats", "train/dogs", "val"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("train/dogs/1.txt"), "dog").unwrap();
    fs::write(folder.path().join("graph.toml"), "").unwrap();
    for (args, hint) in [
        (
            &["head", &format!("{root}/trian")][..],
            format!("no `trian` in `{root}`; did you mean `{root}/train`?"),
        ),
        (&["run", &format!("{root}/trian/cats/*.txt")], format!("did you mean `{root}/train`?")),
        (&["run", &format!("files '{root}/train/cat/1.txt'")], format!("did you mean `{root}/train/cats`?")),
        (
            &["run", &format!("files '{root}/train/*/*' | label root='{root}/tain'")],
            format!("did you mean `{root}/train`?"),
        ),
        (&["run", &format!("{root}/grpah.toml")], format!("did you mean `{root}/graph.toml`?")),
        (
            &["plugins", "why", &format!("{root}/train/dogs/1.tx")],
            format!("did you mean `{root}/train/dogs/1.txt`?"),
        ),
        (
            &["run", &format!("files '{root}/*.txt'")],
            "no file matches; the folder has `graph.toml`, `train`, `val`".to_owned(),
        ),
        (&["head", &format!("{root}/val")], "no file is in this folder, nor below it".to_owned()),
        (
            &["run", "range 9", "--resume", &format!("{root}/graph.tml")],
            format!("did you mean `{root}/graph.toml`?"),
        ),
        (&["audit", &format!("{root}/graph.tml")], format!("did you mean `{root}/graph.toml`?")),
        (&["head", "exampels"], "did you mean `examples`?".to_owned()),
        (&["head", "shufle"], "did you mean `shuffle`?".to_owned()),
    ] {
        let text = told(args);
        assert!(text.contains(&hint), "{args:?}: {text}");
    }
}

#[test]
fn a_text_without_quotes_and_a_list_without_brackets_are_answered_with_what_to_type() {
    let registry = registry();
    for (graph, expected) in [
        ("range 9 | rename value=x", "write rename 'value=x'"),
        ("range 9 | map x=value*2", "write map 'x=value*2'"),
        ("range 9 | cast value=f32", "write cast 'value=f32'"),
        ("range @a 5 ; range @b 5 ; mix <a, b> weights=1", "expected a list of numbers: weights=[1]"),
        ("range 9 | batch 4 drop_lst=true", "did you mean `drop_last`?"),
    ] {
        let problems = line(graph).problems(&registry);
        assert_eq!(problems.len(), 1, "{graph}: {problems:?}");
        assert!(problems[0].message().contains(expected), "{}", problems[0]);
    }
    let error = registry.choose("x", b"", Some("jpegg")).err().unwrap();
    assert!(error.message().contains("did you mean `jpeg`?"), "{error}");
}

#[test]
fn plugins_show_shows_pipes_decoders_and_stores() {
    for (name, parts) in [
        ("mix", ["forebay-pipes", "pipe mix: ", "weights"]),
        ("png", ["forebay-image", "decoder png: ", "priority 128"]),
        ("s3", ["forebay-remote", "store remote: ", "s3"]),
    ] {
        let text = shown(&["plugins", "show", name]);
        assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
        let object = json(&forebay(&[], &["plugins", "show", name, "--json"]));
        let plugin = object["offered_by"][0]["plugin"].as_str().unwrap();
        assert!(plugin.starts_with(parts[0]), "{object}");
    }
    let text = told(&["plugins", "show", "shufle"]);
    assert!(text.contains("called `shufle`; did you mean `shuffle`"), "{text}");
}

#[test]
fn explain_shows_a_few_of_many_paths_on_a_line() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..60 {
        fs::write(folder.path().join(format!("{at:02}.jsonl")), "{\"a\": 1}\n").unwrap();
        fs::write(folder.path().join(format!("{at:02}.csv")), "a,b\n1,2\n").unwrap();
    }
    let text = shown(&["explain", &folder.path().display().to_string()]);
    assert!(text.contains("… 55 more]"), "{text}");
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest < 1500, "{longest}: {text}");
    // What is to be kept has them all.
    let toml: String =
        text.split_once("as TOML").unwrap().1.lines().map(|line| format!("{line}\n")).collect();
    let graph = forebay_loader::Graph::from_toml(&toml).unwrap();
    assert_eq!(build(&graph, &registry(), Setting::INLINE).unwrap().epoch(0).count(), 120);
}

/// The file of a plugin under another name of the same length.
fn renamed(plugin: &str, name: &str, folder: &Path) {
    let mut bytes = fs::read(plugin_file(plugin)).unwrap();
    let (from, to) = (format!("\"name\":\"{plugin}\""), format!("\"name\":\"{name}\""));
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    fs::write(folder.join("libother.so"), bytes).unwrap();
}

#[test]
fn of_two_plugins_that_open_the_same_files_every_way_chooses_the_first_found() {
    let (folder, other) = (folder_of(&["forebay-tar", "forebay-image"]), tempfile::tempdir().unwrap());
    let more = folder_of(&["forebay-files", "forebay-pipes"]);
    renamed("forebay-tar", "aardvark-xx", other.path());
    let file = seed("gnu.tar").to_str().unwrap().to_owned();
    for (first, second, expected) in
        [(folder.path(), other.path(), "forebay-tar"), (other.path(), folder.path(), "aardvark-xx")]
    {
        let search = Search::nowhere().first(more.path()).first(second).first(first);
        let registry = Registry::new(search).unwrap();
        let kind = FileKind::of(&file, &registry).unwrap();
        assert!(kind.plugin.as_ref().unwrap().starts_with(expected), "{kind:?}");
        assert_eq!(kind.opened_by[0], "untar", "as a graph names it");
        assert_eq!(registry.plugin_of("untar").unwrap().manifest().name, expected);
        let ranking = registry.rank_openers("tar", &FileKind::head_of(&file, &registry).unwrap()).unwrap();
        assert_eq!((ranking[0].pipe.as_str(), ranking[1].score > 0), ("untar", true), "{ranking:?}");
    }
    // Decoders of one name likewise.
    fs::remove_file(other.path().join("libother.so")).unwrap();
    renamed("forebay-image", "aardvark-imag", other.path());
    let search = Search::nowhere().first(other.path()).first(folder.path());
    let registry = Registry::new(search).unwrap();
    let best = &registry.rank("png", b"\x89PNG\r\n\x1a\n")[0];
    assert!(best.plugin.starts_with("forebay-image"), "{best:?}");
}

#[test]
fn why_knows_the_pipes_that_open_files() {
    for (file, verdict) in [
        ("gnu.tar", "opened by untar (forebay-tar"),
        ("flat.parquet", "opened by row_groups | read_rows (forebay-arrow"),
        ("baseline.jpg", "decoded by jpeg (forebay-image"),
    ] {
        let output = forebay(&[], &["plugins", "why", seed(file).to_str().unwrap()]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{file}: {output:?}");
        assert!(text.lines().next().unwrap().contains(verdict), "{file}: {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let strange = folder.path().join("strange.h5");
    fs::write(&strange, [7; 600]).unwrap();
    let output = forebay(&[], &["plugins", "why", strange.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("left as bytes") && text.contains("hdf5_pieces"), "{text}");
}
