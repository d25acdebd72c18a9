//! The commands that lock, verify and check plugins, and the doctor.

use std::{collections::BTreeSet, fs, path::Path, process::Output};

use forebay_tests::{
    command::{forebay, json},
    copy, folder_of, plugin_file, root,
};
use serde_json::Value;

use super::{library, mode, replace, swap, without_entry};

/// Runs the command with the plugins of a folder.
fn with(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let path = [("FOREBAY_PLUGIN_PATH", folder.to_str().unwrap())];
    forebay(&[&path[..], variables].concat(), args)
}

#[track_caller]
fn ends(output: &Output, code: i32, says: &[&str]) {
    let told = String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{told}");
    for part in says {
        assert!(told.contains(part), "{part:?} is not in: {told}");
    }
}

/// Of each plugin how it stands.
fn states(verified: &Value) -> Vec<(&str, &str)> {
    let plugins = verified["plugins"].as_array().unwrap().iter();
    plugins.map(|plugin| (plugin["plugin"].as_str().unwrap(), plugin["state"].as_str().unwrap())).collect()
}

#[test]
fn a_lock_is_written_verified_and_kept() {
    let folder = folder_of(&["forebay-json", "forebay-pipes"]);
    let locks = tempfile::tempdir().unwrap();
    let lock = locks.path().join("plugins.lock");
    let lock = lock.to_str().unwrap();
    let trust = format!("locked:{lock}");
    let plugins = |args: &[&str]| with(folder.path(), &[], &[&["plugins"], args].concat());
    let none = ["No such file", "`forebay plugins lock` writes one", lock];
    ends(&plugins(&["verify", lock]), 2, &none);
    let wrote = plugins(&["lock", lock]);
    ends(&wrote, 0, &[lock, "2 plugins", "forebay-json", "forebay-pipes"]);
    assert_eq!(fs::read_dir(locks.path()).unwrap().count(), 1, "nothing is left beside it");
    ends(&plugins(&["verify", lock]), 0, &["as locked"]);

    swap(&library(folder.path(), "forebay-pipes"), |bytes| bytes.push(0));
    copy(&plugin_file("forebay-tar"), folder.path());
    fs::remove_file(library(folder.path(), "forebay-json")).unwrap();
    let verified = plugins(&["verify", lock, "--json"]);
    assert_eq!(verified.status.code(), Some(1));
    let expected = [("forebay-pipes", "changed"), ("forebay-tar", "not_locked"), ("forebay-json", "missing")];
    assert_eq!(states(&json(&verified)), expected);
    // A lock that is in force hides what differs from it from all others.
    let verified = plugins(&["verify", lock, "--trust", &trust]);
    ends(&verified, 1, &["changed", "not locked", "missing", "SHA-256"]);

    let wrote = json(&plugins(&["lock", lock, "--only", "forebay-tar", "--json", "--trust", &trust]));
    let locked = wrote["plugins"].as_array().unwrap();
    assert_eq!((locked.len(), &locked[0]["name"]), (1, &"forebay-tar".into()));
    let verified = json(&plugins(&["verify", lock, "--json"]));
    assert_eq!(states(&verified), [("forebay-pipes", "not_locked"), ("forebay-tar", "as_locked")]);
    let kept = fs::read(lock).unwrap();
    ends(&plugins(&["lock", lock, "--only", "nobody"]), 2, &["--only nobody"]);
    ends(&with(locks.path(), &[], &["plugins", "lock", lock]), 1, &["no plugin to lock"]);
    assert_eq!(fs::read(lock).unwrap(), kept);
    ends(&plugins(&["lock", "/nowhere/plugins.lock"]), 1, &["/nowhere/plugins.lock"]);
}

#[test]
fn the_command_wins_over_the_environment() {
    let folder = folder_of(&["forebay-pipes"]);
    let file = library(folder.path(), "forebay-pipes");
    let lock = folder.path().join("plugins.lock");
    ends(&with(folder.path(), &[], &["plugins", "lock", lock.to_str().unwrap()]), 0, &[]);
    let locked = format!("locked:{}", lock.display());
    let run = |variable: &str, args: &[&str]| {
        let run = ["run", "range 9 | shuffle 3 on=process", "--quiet"];
        with(folder.path(), &[("FOREBAY_PLUGIN_TRUST", variable)], &[&run[..], args].concat())
    };
    let (open, trust) = (["--trust", "open"], ["--trust", &locked]);
    ends(&run(&locked, &[]), 0, &[]);
    ends(&run("", &trust), 0, &[]);
    ends(&run("allow:nobody", &[]), 2, &["unknown pipe `range`", "not trusted: neither its name"]);
    ends(&run("allow:nobody", &trust), 0, &[]);
    swap(&file, |bytes| bytes.push(0));
    ends(&run(&locked, &[]), 2, &["unknown pipe `range`", "not trusted: its SHA-256 is "]);
    ends(&run("open", &trust), 2, &["not trusted: its SHA-256 is "]);
    ends(&run(&locked, &open), 0, &[]);
    ends(&run("locked:/nowhere", &open), 0, &[]);
    ends(&run("locked:/nowhere", &[]), 2, &["FOREBAY_PLUGIN_TRUST", "/nowhere"]);
    ends(&run("", &["--trust", "opne"]), 2, &["opne", "--trust"]);
    // One that was named must be taken.
    let named = [&trust[..], &["--plugin", file.to_str().unwrap()]].concat();
    ends(&run("", &named), 2, &["error: not trusted: its SHA-256 is ", "plugin: "]);

    let list = |args: &[&str]| with(folder.path(), &[], &[&["plugins", "list"], &trust[..], args].concat());
    ends(&list(&[]), 1, &["trusted: locked:", "refused"]);
    let list = json(&list(&["--json"]));
    assert_eq!((&list["refused"][0]["why"], &list["trust"]), (&"distrusted".into(), &locked.into()));
}

#[test]
fn a_file_is_checked_step_by_step() {
    let folder = folder_of(&["forebay-json", "forebay-pipes", "forebay-tar", "forebay-rogue"]);
    let path = |plugin: &str| library(folder.path(), plugin).to_str().unwrap().to_owned();
    let steps = |plugin: &str, trust: &str| {
        let output = forebay(&[], &["plugins", "check", &path(plugin), "--trust", trust, "--json"]);
        let told = json(&output);
        assert_eq!(output.status.code(), Some(i32::from(told["ok"] != true)), "{told}");
        let file = &told["files"][0];
        let steps = file["steps"].as_array().unwrap().iter();
        let steps = steps.map(|step| {
            (
                step["step"].as_str().unwrap().to_owned(),
                step["ok"] == true,
                step["found"].as_str().unwrap().to_owned(),
            )
        });
        steps.collect::<Vec<_>>()
    };
    let names = |steps: &[(String, bool, String)]| {
        steps.iter().map(|(step, ok, _)| format!("{step} {ok}")).collect::<Vec<_>>().join(", ")
    };
    let good = steps("forebay-json", "open");
    assert_eq!(names(&good), "manifest true, trust true, load true");
    assert!(good[0].2.contains("forebay-json ") && good[0].2.contains("ABI "), "{good:?}");

    fs::write(path("forebay-json"), "no library").unwrap();
    let none = steps("forebay-json", "open");
    assert_eq!(names(&none), "manifest false");
    assert!(none[0].2.contains("no library"), "{none:?}");

    assert_eq!(names(&steps("forebay-tar", "allow:forebay-json")), "manifest true, trust false");
    mode(&library(folder.path(), "forebay-tar"), 0o646);
    let anyone = steps("forebay-tar", "open");
    assert_eq!(names(&anyone), "manifest true, trust false");
    assert!(anyone[1].2.contains("chmod o-w"), "{anyone:?}");

    swap(&library(folder.path(), "forebay-pipes"), without_entry);
    let entry = steps("forebay-pipes", "open");
    assert_eq!(names(&entry), "manifest true, trust true, load false");
    assert!(entry[2].2.contains("has no symbol") && entry[2].2.lines().count() <= 10, "{entry:?}");

    let all = ["forebay-rogue", "forebay-json", "forebay-pipes"].map(path);
    let check = forebay(&[], &["plugins", "check", &all[0], &all[1], &all[2]]);
    ends(
        &check,
        1,
        &[
            &all[0],
            &all[1],
            &all[2],
            "  load      ok ",
            "  load      failed  has no symbol",
            "  manifest  failed",
        ],
    );
    ends(&forebay(&[], &["plugins", "check", &all[0]]), 0, &[]);
    ends(&forebay(&[], &["plugins", "check", "/nowhere.so"]), 2, &["/nowhere.so", "No such file"]);
    ends(&forebay(&[], &["plugins", "check", folder.path().to_str().unwrap()]), 2, &["a folder"]);
}

/// What the doctor found: status, about what, and what.
fn findings(told: &Value) -> Vec<[&str; 3]> {
    let findings = told["findings"].as_array().unwrap().iter();
    findings.map(|finding| ["status", "about", "found"].map(|key| finding[key].as_str().unwrap())).collect()
}

#[track_caller]
fn finds(told: &Value, status: &str, about: &str, part: &str) {
    let any =
        findings(told).iter().any(|found| found[0] == status && found[1] == about && found[2].contains(part));
    assert!(any, "{status} {about} {part:?} is not in {told:#}");
}

#[test]
fn the_doctor_finds_what_may_be_wrong() {
    let folder = folder_of(&["forebay-json", "forebay-pipes", "forebay-tar"]);
    let doctor = ["plugins", "doctor", "--json"];
    let well = with(folder.path(), &[], &doctor);
    let told = json(&well);
    assert_eq!((well.status.code(), &told["problems"]), (Some(0), &0.into()), "{told:#}");
    finds(&told, "ok", "plugins", "3 plugins, loaded");
    finds(&told, "ok", "variable", "FOREBAY_PLUGIN_PATH=");
    finds(&told, "ok", "worker", "forebay");
    finds(&told, "ok", "memory", "memfd_create works");
    for about in ["trust", "place", "CPU", "limit"] {
        finds(&told, "ok", about, "");
    }
    ends(&with(folder.path(), &[], &["plugins", "doctor"]), 0, &["ok       plugins", "0 problems, "]);

    let version = env!("CARGO_PKG_VERSION");
    let newer = format!("9{}", &version[1..]);
    let newer_file = folder.path().join("libnewer.so");
    fs::copy(library(folder.path(), "forebay-json"), &newer_file).unwrap();
    swap(&newer_file, |bytes| {
        replace(bytes, &format!("\"version\":\"{version}\""), &format!("\"version\":\"{newer}\""));
    });
    swap(&library(folder.path(), "forebay-pipes"), without_entry);
    mode(&library(folder.path(), "forebay-tar"), 0o646);
    fs::write(folder.path().join("liba.so"), "no library").unwrap();
    let mut abi = fs::read(plugin_file("forebay-image")).unwrap();
    let at = abi.windows(8).position(|window| window == b"FOREBAY\0").unwrap();
    abi[at + 16] = 9;
    fs::write(folder.path().join("libabi.so"), abi).unwrap();
    let path = format!("{}:/nowhere/plugins", folder.path().display());
    let variables = [
        ("FOREBAY_PLUGIN_PATH", &*path),
        ("FOREBAY_PLUGIN_TURST", "open"),
        ("FOREBAY_PLUGIN_SKIP", "nobody"),
        ("FOREBAY_WORKER_PROGRAM", "/nowhere/forebay"),
    ];
    let ill = forebay(&variables, &doctor);
    let told = json(&ill);
    assert_eq!(ill.status.code(), Some(1), "{told:#}");
    for (status, about, part) in [
        ("warning", "variable", "FOREBAY_PLUGIN_TURST is set, but nothing here reads it"),
        ("warning", "place", "/nowhere/plugins is not there"),
        ("warning", "twice", "gives way to"),
        ("warning", "left out", "FOREBAY_PLUGIN_SKIP names nobody"),
        ("problem", "plugin", "has no symbol"),
        ("problem", "refused", "not trusted: anyone may write to it"),
        ("problem", "refused", "built against ABI 9."),
        ("ok", "refused", "1 library is no plugin"),
        ("problem", "worker", "/nowhere/forebay: No such file"),
    ] {
        finds(&told, status, about, part);
    }
    let advised = |finding: &Value| {
        finding["status"] == "ok" || finding["about"] == "refused" || finding["advice"] != ""
    };
    assert!(told["findings"].as_array().unwrap().iter().all(advised), "{told:#}");

    // Of a variable that cannot be read everything else is still told.
    let bad = forebay(&[("FOREBAY_PLUGIN_RANK", "json")], &doctor);
    assert_eq!(bad.status.code(), Some(1));
    finds(&json(&bad), "problem", "plugins", "FOREBAY_PLUGIN_RANK");
    finds(&json(&bad), "ok", "worker", "forebay");
    ends(&forebay(&[], &["plugins", "doctor", "--plugin", "/nowhere"]), 2, &["/nowhere"]);
    let none = forebay(&[("FOREBAY_PLUGIN_PATH", "")], &doctor);
    assert_eq!(none.status.code(), Some(1));
    finds(&json(&none), "problem", "plugins", "found no plugin that can be used");
}

/// The variables that the sources ask for by name.
fn asked(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            asked(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let literals = text.split('"').filter(|part| part.starts_with("FOREBAY_"));
            let is_name = |part: &&str| part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            names.extend(literals.filter(is_name).map(str::to_owned));
        }
    }
}

#[test]
fn the_doctor_knows_every_variable_that_is_read() {
    let mut names = BTreeSet::new();
    asked(&root().join("loader"), &mut names);
    for plugin in fs::read_dir(root().join("plugins")).unwrap() {
        asked(&plugin.unwrap().path().join("src"), &mut names);
    }
    // What makes a process a worker, and what is for tests.
    names.retain(|name| name != "FOREBAY_WORKER" && !name.starts_with("FOREBAY_TEST_"));
    assert!(
        names.len() > 10 && names.contains("FOREBAY_PLUGIN_TRUST") && names.contains("FOREBAY_CACHE"),
        "{names:?}"
    );
    let folder = folder_of(&["forebay-pipes"]);
    let variables: Vec<_> = names.iter().map(|name| (&**name, "")).collect();
    let told = json(&with(folder.path(), &variables, &["plugins", "doctor", "--json"]));
    let unknown: Vec<_> =
        findings(&told).into_iter().filter(|found| found[0] == "warning" && found[1] == "variable").collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
