//! What `decode` leaves as bytes: it is told, and an error where somebody meant it to be decoded.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
};

use forebay_tests::{
    Setting, builder,
    command::{forebay, json},
    copy, line, plugin_file, registry, root, within_deadline,
};

const EXECUTORS: [&str; 3] = ["inline", "threads:2", "processes:2"];

fn picture() -> Vec<u8> {
    fs::read(root().join("plugins/image/seeds/rgb.png")).unwrap()
}

/// A folder with two pictures.
fn pictures() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "b.png"] {
        fs::write(folder.path().join(name), picture()).unwrap();
    }
    folder
}

/// A folder with copies of these plugins, which the test may change.
fn plugins(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    names.iter().for_each(|name| drop(copy(&plugin_file(name), folder.path())));
    folder
}

fn library(folder: &Path, name: &str) -> PathBuf {
    folder.join(plugin_file(name).file_name().unwrap())
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn fields_without_a_decoder_are_told_with_how_many_and_why() {
    let (plugins, pictures) = (plugins(&["forebay-files", "forebay-pipes"]), pictures());
    let here = [("FOREBAY_PLUGIN_PATH", plugins.path().to_str().unwrap())];
    let graph = format!("files {} | group | decode", pictures.path().display());
    let says = "decode: field `png` stays bytes in 2 samples: no decoder for extension `png`";
    for executor in EXECUTORS {
        let output = forebay(&here, &["run", &graph, "--json", "--executor", executor]);
        assert!(output.status.success() && told(&output).contains(says), "{executor}: {output:?}");
        let nodes = &json(&output)["nodes"];
        let note = &nodes[2]["notes"][0];
        assert_eq!(
            (&note["what"], &note["times"]),
            (&"field `png` stays bytes".into(), &2.into()),
            "{nodes}"
        );
        assert!(note["why"].as_str().unwrap().contains("none has this extension"), "{note}");
        assert_eq!(nodes[1]["notes"], serde_json::json!([]), "{nodes}");
    }
    for command in ["head", "dump"] {
        let output = forebay(&here, &[command, &graph]);
        assert!(output.status.success() && told(&output).contains(says), "{command}: {output:?}");
    }
    let head = json(&forebay(&here, &["head", &graph, "--json"]));
    assert_eq!(head["nodes"][0]["notes"][0]["times"], 2, "{head}");
    let quiet = forebay(&here, &["run", &graph, "--quiet"]);
    assert!(quiet.status.success() && told(&quiet).is_empty(), "{quiet:?}");
    // A decoder that is left out counts as none, in worker processes too.
    let off = [("FOREBAY_PLUGIN_RANK", "png:NONE")];
    for executor in EXECUTORS {
        let output = forebay(&off, &["run", &graph, "--executor", executor]);
        assert!(output.status.success(), "{executor}: {output:?}");
        let says = "`png` stays bytes in 2 samples";
        assert!(told(&output).contains(says), "{executor}: {}", told(&output));
    }
    // Whoever says that all must be decoded hears of it at once.
    let strict = forebay(&here, &["run", &format!("{graph} strict=true")]);
    assert!(strict.status.code() == Some(1) && told(&strict).contains("field: png"), "{strict:?}");
}

#[test]
fn a_plugin_that_was_refused_is_an_error_of_what_it_claims() {
    let (pictures, all) = (pictures(), ["forebay-files", "forebay-pipes", "forebay-image"]);
    let path = pictures.path().to_str().unwrap();
    let graph = format!("files {path} | group | decode");
    let by_content = format!("files {path} | rename 'bytes=x' | decode");
    let check = |plugins: &Path, trust: &[&str], reason: &str| {
        let here = [("FOREBAY_PLUGIN_PATH", plugins.to_str().unwrap())];
        for executor in EXECUTORS {
            for graph in [&graph, &by_content] {
                let args = [&["run", graph, "--executor", executor][..], trust].concat();
                let output = forebay(&here, &args);
                let told = told(&output);
                assert_eq!(output.status.code(), Some(1), "{executor}: {graph}: {told}");
                for part in ["forebay-image, was refused", "libforebay_image.so", reason] {
                    assert!(told.contains(part), "{executor}: {graph}: {part:?} is not in: {told}");
                }
            }
        }
        // By path both are told of, after the survey.
        let output = forebay(&here, &[&["run", path][..], trust].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(told(&output).contains("2 times, first here"), "{}", told(&output));
        // Left out on purpose it claims nothing.
        let here = [here[0], ("FOREBAY_PLUGIN_SKIP", "forebay-image")];
        let output = forebay(&here, &[&["run", &graph][..], trust].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(told(&output).contains("stays bytes in 2 samples"), "{}", told(&output));
    };
    let writable = plugins(&all);
    fs::set_permissions(library(writable.path(), "forebay-image"), Permissions::from_mode(0o666)).unwrap();
    check(writable.path(), &[], "anyone may write to it");

    let lock = plugins(&all[..2]);
    let file = lock.path().join("plugins.lock");
    let here = [("FOREBAY_PLUGIN_PATH", lock.path().to_str().unwrap())];
    let locked = forebay(&here, &["plugins", "lock", file.to_str().unwrap()]);
    assert!(locked.status.success(), "{locked:?}");
    let unlocked = plugins(&all);
    check(unlocked.path(), &["--trust", &format!("locked:{}", file.display())], "lock");
}

#[test]
fn a_library_that_is_cut_off_is_listed_and_claims_what_can_still_be_read() {
    let (pictures, plugins) = (pictures(), plugins(&["forebay-files", "forebay-pipes", "forebay-image"]));
    let here = [("FOREBAY_PLUGIN_PATH", plugins.path().to_str().unwrap())];
    let file = library(plugins.path(), "forebay-image");
    let whole = fs::read(&file).unwrap();
    let begins = |at: &usize| {
        let len = u64::from_ne_bytes(whole[at + 32..at + 40].try_into().unwrap()) as usize;
        whole.get(at + 40..at + 40 + len).is_some_and(|json| json.starts_with(b"{"))
    };
    let places = whole.windows(8).enumerate().filter(|(_, window)| *window == b"FOREBAY\0");
    let manifest = places.map(|(at, _)| at).find(begins).unwrap();
    let graph = format!("files {} | group | decode", pictures.path().display());
    for (len, readable) in
        [(0, false), (20, false), (1000, false), (manifest, false), (whole.len() - 1, true)]
    {
        fs::write(&file, &whole[..len]).unwrap();
        let list = forebay(&here, &["plugins", "list", "--json"]);
        assert_eq!(list.status.code(), Some(1), "{len}: {list:?}");
        let refused = json(&list)["refused"][0].clone();
        assert!(
            refused["reason"].as_str().is_some_and(|told| told.contains(&format!("cut off after {len} "))),
            "{refused}"
        );
        let doctor = forebay(&here, &["plugins", "doctor"]);
        let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert!(
            doctor.status.code() == Some(1) && found.contains("the library is cut off"),
            "{len}: {found}"
        );
        let run = forebay(&here, &["run", &graph]);
        if readable {
            assert!(run.status.code() == Some(1) && told(&run).contains("was refused"), "{len}: {run:?}");
        } else {
            // Nobody knows what it was for, so it is told of where something has no decoder.
            assert!(told(&run).contains("1 plugin file was refused"), "{len}: {}", told(&run));
        }
    }
}

#[test]
fn a_damaged_picture_is_an_error_of_decode_whatever_its_field_is_called() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for (class, name, cut) in
            [("x", "1.png", 0), ("x", "2.png", 30), ("y", "3.png", 0), ("y", "4.png", 20)]
        {
            fs::create_dir_all(folder.path().join(class)).unwrap();
            let whole = picture();
            fs::write(folder.path().join(class).join(name), &whole[..whole.len() - cut]).unwrap();
        }
        let path = folder.path().display();
        let graph = format!(
            "files {path} | label ['x', 'y'] root='{path}' | decode on_error=quarantine | resize 4 | batch 2"
        );
        let mut loader = builder(&line(&graph), Setting::INLINE).build(&registry).unwrap();
        assert_eq!(loader.epoch(0).map(Result::unwrap).count(), 1);
        let lost = loader.quarantine();
        assert_eq!(lost.len(), 2, "{lost:?}");
        assert!(lost.iter().all(|lost| lost.node == "decode" && lost.error.get("field") == Some("bytes")));
    });
}
