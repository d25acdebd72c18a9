//! The conformance kit: each plugin that breaks a promise fails the check of that promise, and ours pass them all.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    env::{self, consts::DLL_SUFFIX},
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use forebay_tests::{
    Cargo,
    command::{forebay, json},
    folder_of, plugin_file, root,
};
use serde_json::Value;

/// Each of `tests/faulty/examples`: which check of what sees it, how that ends, and what it says. Plugins of another layout are in
/// `tests/plugins/layouts.rs`, which builds them.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    ("aborts", "pipe runs", "died", "SIGABRT"),
    ("carries", "pipe threads", "failed", "on one thread differs at sample 0"),
    ("crashes", "pipe runs", "died", "SIGSEGV"),
    ("cuts", "store reads", "failed", "1 bytes from byte 1 differ from the whole"),
    ("differs", "pipe workers", "failed", "in two processes differs at sample 0"),
    ("forgets", "pipe state", "failed", "after sample 2 it gives 38 more, others from number 0 on"),
    ("hoards", "decoder damage", "died", "memory allocation of"),
    ("holds", "store reads", "failed", "descriptors open"),
    ("invents", "store refuses", "failed", "of the missing"),
    ("keeps", "pipe memory", "failed", "never freed"),
    ("knows_threads", "decoder threads", "failed", "on several threads"),
    ("leaks", "decoder memory", "failed", "never freed"),
    ("lies", "pipe once", "failed", "NOT exactly once"),
    ("lingers", "pipe stop", "died", "SIGXCPU"),
    ("loops", "decoder damage", "died", "SIGXCPU"),
    ("miscounts", "pipe runs", "failed", "says that it has 101 samples, but has 100"),
    ("mixes", "pipe apart", "failed", "two instances run in turns"),
    ("moves", "pipe runs", "failed", "changed the working directory"),
    ("panics", "decoder damage", "failed", "index out of bounds"),
    ("panics_in_drop", "pipe runs", "failed", "on purpose"),
    ("prints", "decoder decode", "failed", "decoding 9 bytes"),
    ("repeats", "pipe again", "failed", "a run after another epoch"),
    ("shares_out", "pipe ranks", "failed", "3 ranks lack 1"),
    ("shows", "plugin symbols", "failed", "crc32_of_everyone"),
    ("silent", "plugin manifest", "failed", "pipe faulty has no summary"),
    ("traps", "decoder decode", "failed", "signals are handled: {2}"),
    ("unsure", "decoder probe", "failed", "is surer of"),
    ("wavers", "decoder decode", "failed", "gives another value the second time"),
];

/// The folder of `faulty`, built.
fn faulty() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let file = format!("examples/libaborts{DLL_SUFFIX}");
        Cargo::workspace(&root()).arg("--examples").build(&file).parent().unwrap().to_owned()
    })
}

/// What `forebay plugins test` says of a library with these arguments: its exit code, and its report.
fn test(library: &Path, args: &[&str]) -> (i32, Value) {
    // `crashes` calls `kill`.
    let path = env::var("PATH").unwrap_or_default();
    let output = forebay(
        &[("PATH", &path)],
        &[&["plugins", "test", "--json", library.to_str().unwrap()], args].concat(),
    );
    (output.status.code().unwrap(), json(&output))
}

/// The rows of a report that did not pass: the check and of what, how it ended, and what it said.
fn failures(report: &Value) -> Vec<[String; 3]> {
    let rows = report["rows"].as_array().unwrap_or_else(|| panic!("{report}")).iter();
    let rows = rows.map(|row| {
        let [subject, check, verdict, detail] =
            ["subject", "check", "verdict", "detail"].map(|name| row[name].as_str().unwrap());
        let kind = subject.split(' ').next().unwrap();
        [format!("{kind} {check}"), verdict.to_owned(), detail.to_owned()]
    });
    rows.filter(|[_, verdict, _]| !matches!(verdict.as_str(), "passed" | "skipped")).collect()
}

/// All checks there are, each with what it is of.
fn checks() -> Vec<String> {
    let output = forebay(&[], &["plugins", "test", "--checks", "--json"]);
    let told = json(&output);
    let checks = told["checks"].as_array().unwrap().iter();
    checks.map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["name"].as_str().unwrap())).collect()
}

#[test]
fn every_check_fails_a_plugin() {
    let checks = checks();
    let seen = |check: &&String| FAULTS.iter().any(|fault| fault.1 == check.as_str());
    let unseen: Vec<_> = checks.iter().filter(|check| !seen(check)).collect();
    assert_eq!(unseen, ["plugin layout"], "of {checks:?}");
}

#[test]
fn every_faulty_plugin_fails_the_check_of_what_it_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let sample = folder.path().join("five.counted");
    fs::write(&sample, b"\x05\0\0\x01hello").unwrap();
    let files = fs::read_dir(root().join("tests/faulty/examples")).unwrap();
    assert_eq!(files.count(), FAULTS.len(), "each is in the table");
    let mut wrong = Vec::new();
    for (name, check, ends, says) in FAULTS {
        let library = faulty().join(format!("lib{name}{DLL_SUFFIX}"));
        let reads = fs::read_to_string(root().join(format!("tests/faulty/examples/{name}.rs"))).unwrap();
        let data: &[&str] = if reads.contains("decoders:") {
            &["--data", sample.to_str().unwrap()]
        } else if reads.contains("stores:") {
            &["--data", "faulty://file"]
        } else {
            &[]
        };
        let (code, report) = test(&library, &[&["--seconds", "5"], data].concat());
        let failures = failures(&report);
        let seen = failures
            .iter()
            .any(|[of, verdict, detail]| of == check && verdict == ends && detail.contains(says));
        // Whoever looks for why it died wants the file.
        let named = failures.iter().all(|[of, verdict, detail]| {
            verdict != "died" || !of.starts_with("decoder") || detail.contains("five.counted, ")
        });
        if code != 1 || !seen || !named {
            wrong.push(format!("{name}: exit code {code}, {failures:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn plugins_of_ours_pass_every_check() {
    let mut tested = 0;
    for (name, format) in forebay_formats::chosen() {
        let Some(kit) = &format.kit else { continue };
        let (folder, seeds) = (tempfile::tempdir().unwrap(), format!("plugins/{name}/seeds"));
        let graph =
            |graph: &&str| graph.replace("SEEDS", &seeds).replace("FOLDER", folder.path().to_str().unwrap());
        let options = |option: &'static str, values: Vec<String>| {
            values.into_iter().flat_map(move |value| [option.to_owned(), value])
        };
        let data = kit.data.iter().map(|file| format!("{seeds}/{file}")).collect();
        let skip = kit.skip.iter().map(|check| (*check).to_owned()).collect();
        let args: Vec<_> = options("--data", data)
            .chain(options("--graph", kit.graphs.iter().map(graph).collect()))
            .chain(options("--skip", skip))
            .collect();
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let (code, report) = test(&plugin_file(&format!("forebay-{name}")), &args);
        assert_eq!((code, failures(&report)), (0, Vec::new()), "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), kit.writes, "files of {name}");
        tested += 1;
    }
    assert!(tested > 0, "no format.rs has a kit");
}

#[test]
fn what_cannot_be_tested_is_no_success() {
    let nothing = test(&plugin_file("forebay-msgpack"), &[]);
    assert_eq!(nothing.0, 1);
    assert!(
        failures(&nothing.1).iter().any(|row| row[1] == "untested" && row[2].contains("--data")),
        "{}",
        nothing.1
    );
    // Nor is what the plugin does not read, or what is no plugin.
    let (code, report) = test(&plugin_file("forebay-msgpack"), &["--data", "plugins/image/seeds/rgb.png"]);
    assert_eq!(code, 2);
    assert!(report["error"]["message"].as_str().unwrap().contains("has the extension"), "{report}");
    let folder = folder_of(&[]);
    let text = folder.path().join("libtext.so");
    fs::write(&text, "no library").unwrap();
    let (code, report) = test(&text, &[]);
    assert_eq!(code, 1, "{report}");
    assert!(report["error"]["message"].as_str().unwrap().contains("not a plugin"), "{report}");
}

#[test]
fn the_magic_bytes_of_decoders_and_openers_are_shown() {
    for (plugin, lines) in [
        (
            "hdf5",
            &["opens files, for hdf5_rows, extensions: h5, hdf5", "89 48 44 46 0d 0a 1a 0a at byte 512"][..],
        ),
        ("arrow", &["50 41 52 31 `PAR1`", "ff ff ff ff"]),
        ("tensors", &["00 00 08 01", "more, which --json lists", "any; its code decides"]),
        ("msgpack", &["magic bytes: none, the extension decides"]),
    ] {
        let output = forebay(&[], &["plugins", "show", plugin]);
        let shown = String::from_utf8_lossy(&output.stdout);
        for line in lines {
            assert!(shown.contains(line), "{line} is not in:\n{shown}");
        }
    }
}
