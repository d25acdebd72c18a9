//! The command with real plugins: what the environment says, what runs print, and how bad input ends.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use forebay_loader::registry::Manifest;
use forebay_tests::{Cargo, PLUGINS, folder_of, plugin_file, root, within_deadline};
use serde_json::Value;
use tempfile::TempDir;

/// The command, built once and moved away from the plugins that cargo put beside it.
fn command() -> &'static Path {
    static FOLDER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let built = Cargo::workspace(&root()).arg("--bin").arg("forebay").build("forebay");
        let path = folder.path().join("forebay");
        fs::copy(built, &path).unwrap();
        (folder, path)
    });
    path
}

/// All plugins, as `FOREBAY_PLUGIN_PATH` has them.
fn all() -> OsString {
    env::join_paths(PLUGINS.map(plugin_file)).unwrap()
}

/// Runs the command at the root of the repository with nothing of the environment but what is given.
fn forebay(variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(args).current_dir(root()).env_clear().env("FOREBAY_PLUGIN_SYSTEM_PATH", "");
    command.env("HOME", "/nowhere").env("FOREBAY_PLUGIN_PATH", all()).envs(variables.iter().copied());
    within_deadline(move || command.output().unwrap())
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The plugins that the command finds, with their files.
#[track_caller]
fn found(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let list = json(&forebay(variables, &["plugins", "list", "--json"]));
    let text = |plugin: &Value, key: &str| plugin[key].as_str().unwrap().to_owned();
    list["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| (text(plugin, "name"), text(plugin, "file")))
        .collect()
}

fn names(found: &[(String, String)]) -> Vec<&str> {
    found.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn plugins_are_found_in_the_folders_that_the_environment_names() {
    let found_here = found(&[]);
    assert_eq!(names(&found_here), PLUGINS);
    assert!(found_here.iter().all(|(name, file)| Path::new(file) == plugin_file(name)));

    let folder = folder_of(&["forebay-json", "forebay-pipes"]);
    let path = folder.path().to_str().unwrap();
    for variables in [
        &[("FOREBAY_PLUGIN_PATH", path)][..],
        &[("FOREBAY_PLUGIN_PATH", ""), ("FOREBAY_PLUGIN_SYSTEM_PATH", path)],
    ] {
        let moved = found(variables);
        assert_eq!(names(&moved), ["forebay-json", "forebay-pipes"]);
        assert!(moved.iter().all(|(_, file)| Path::new(file).starts_with(path)), "{moved:?}");
    }
}

#[test]
fn plugins_are_found_in_the_users_folder() {
    let target = Manifest::read(&plugin_file("forebay-json")).unwrap().target;
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join(format!("forebay/plugins/1-{target}"));
    fs::create_dir_all(&folder).unwrap();
    forebay_tests::copy(&plugin_file("forebay-json"), &folder);
    let mut list = Command::new(command());
    list.args(["plugins", "list", "--json"]).env_clear().env("XDG_DATA_HOME", data.path());
    let plugins = json(&list.output().unwrap())["plugins"].clone();
    assert_eq!(plugins[0]["name"], "forebay-json", "{plugins}");
    assert!(Path::new(plugins[0]["file"].as_str().unwrap()).starts_with(&folder), "{plugins}");
}

#[test]
fn plugins_can_be_switched_off_and_left_out() {
    assert_eq!(found(&[("FOREBAY_NO_PLUGINS", "1")]), []);
    let fewer = found(&[("FOREBAY_PLUGIN_SKIP", "forebay-rogue, forebay-image")]);
    assert_eq!(names(&fewer), ["forebay-files", "forebay-json", "forebay-pipes", "forebay-tar"]);
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("x.json");
    fs::write(&picture, "{}").unwrap();
    let why = |rank: &str| {
        let rank = [("FOREBAY_PLUGIN_RANK", rank)];
        String::from_utf8(forebay(&rank, &["plugins", "why", picture.to_str().unwrap(), "--json"]).stdout)
            .unwrap()
    };
    assert!(
        why("json:7").contains("\"priority\":7") || why("json:7").contains("\"priority\": 7"),
        "{}",
        why("json:7")
    );
    assert!(why("json:NONE").contains("left out by FOREBAY_PLUGIN_RANK"), "{}", why("json:NONE"));
    let bad = forebay(&[("FOREBAY_PLUGIN_RANK", "json")], &["plugins", "list"]);
    assert!(!bad.status.success());
    assert!(String::from_utf8_lossy(&bad.stderr).contains("FOREBAY_PLUGIN_RANK"), "{bad:?}");
}

#[test]
fn photos_have_one_digest_however_they_are_run_and_wherever_the_plugins_are() {
    let moved = folder_of(&PLUGINS);
    let moved = [("FOREBAY_PLUGIN_PATH", moved.path().to_str().unwrap())];
    let mut digests = Vec::new();
    for (variables, executor) in [
        (&[][..], "inline"),
        (&[], "threads:1"),
        (&[], "threads:2"),
        (&[], "threads:4"),
        (&[], "threads:2"),
        (&moved, "threads:2"),
    ] {
        let args = ["run", "examples/photos.toml", "--digest", "--json", "--executor", executor];
        let output = forebay(variables, &args);
        assert!(output.status.success(), "{output:?}");
        let report = json(&output);
        assert!(report["batches"].as_u64().unwrap() >= 2, "{report}");
        let plugins = report["plugins"].to_string();
        assert!(variables.is_empty() || plugins.contains(variables[0].1), "{plugins}");
        for name in ["libforebay_files.so", "libforebay_tar.so", "libforebay_image.so", "libforebay_pipes.so"]
        {
            assert!(plugins.contains(name), "{name} is not in {plugins}");
        }
        digests.push(report["digest"].as_str().unwrap().to_owned());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

#[test]
fn every_fault_ends_the_command_with_an_error_that_says_where() {
    for (graph, says) in [
        ("files /nowhere.tar | untar", &["/nowhere.tar", "files", "libforebay_files.so"][..]),
        ("range 9 | nothing", &["unknown pipe `nothing`", "looked in"]),
        ("range 9 | batch sise=3", &["sise", "size"]),
        ("rogue_source fault=panic_in_new", &["rogue in new", "rogue_source", "libforebay_rogue.so"]),
        ("rogue_source fault=panic at=3", &["rogue in next", "rogue_source", "libforebay_rogue.so"]),
        ("range 9 | rogue_map fault=panic at=3", &["rogue in map", "rogue_map", "libforebay_rogue.so"]),
        ("rogue_source payload=panic count=3 | decode", &["rogue in decode", "decode", "rogue#0"]),
        (
            "rogue_source fault=panic_in_drop count=3",
            &["rogue in drop", "rogue_source", "libforebay_rogue.so"],
        ),
        ("range 9 | rogue_stream fault=idle", &["neither takes nor gives", "rogue_stream"]),
    ] {
        for executor in ["inline", "threads:2"] {
            let output = forebay(&[], &["run", graph, "--executor", executor]);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code().is_some_and(|code| code != 0), "{graph} on {executor}: {output:?}");
            for part in says {
                assert!(told.contains(part), "{part:?} is not in: {told}");
            }
            assert!(told.lines().count() <= 14, "{told}");
        }
    }
}

#[test]
fn a_file_that_is_no_plugin_is_told_and_ends_the_list_with_a_failure() {
    let folder = folder_of(&["forebay-json"]);
    let file = folder.path().join("libforebay_json.so");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(8).position(|window| window == b"FOREBAY\0").unwrap();
    bytes[at + 16] = 9;
    fs::write(&file, bytes).unwrap();
    let output = forebay(&[("FOREBAY_PLUGIN_PATH", folder.path().to_str().unwrap())], &["plugins", "list"]);
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(told.contains("libforebay_json.so") && told.contains("ABI 9.0"), "{told}");
}
