//! What `--snapshot`, `--quarantine`, `--audit` and `--record` write to: files, links, pipes, devices and the standard streams.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::{FileTypeExt as _, symlink},
    path::Path,
    process::{Command, Output},
};

use forebay_loader::Snapshot;
use forebay_tests::{command::forebay, within_deadline};

/// A graph that sets samples aside.
const LOSES: &str = "range 9 | rogue_map fault=error at=5 on_error=quarantine";

#[track_caller]
fn run(args: &[&str]) -> Output {
    forebay(&[], &[&["run", "--quiet"], args].concat())
}

/// What a run says that is refused.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let output = run(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{args:?}: {said}");
    said
}

fn named_pipe(path: &Path) -> String {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_snapshot_is_written_through_links() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("else")).unwrap();
        fs::write(at("else/there"), "old").unwrap();
        for (link, target, file) in [
            ("one", "else/there", "else/there"),
            ("two", "one", "else/there"),
            ("three", "else/new", "else/new"),
        ] {
            symlink(target, at(link)).unwrap();
            let ran = run(&["range 9", "--limit", "4", "--snapshot", at(link).to_str().unwrap()]);
            assert!(ran.status.success(), "{ran:?}");
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
            let snapshot = Snapshot::from_json(&fs::read_to_string(at(file)).unwrap()).unwrap();
            assert_eq!(snapshot.delivered, 4);
            fs::write(at(file), "old").unwrap();
        }
        assert_eq!(fs::read_dir(at("else")).unwrap().count(), 2, "nothing else is left");
    });
}

#[test]
fn a_snapshot_takes_the_place_of_nothing_but_a_file() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let pipe = named_pipe(&folder.path().join("pipe"));
        let link = folder.path().join("link");
        symlink("/dev/null", &link).unwrap();
        let (link, below) = (link.to_str().unwrap(), folder.path().to_str().unwrap());
        for target in [pipe.as_str(), link, below, "/dev/stdout", "/dev/stderr"] {
            let said = refused(&["range 9", "--snapshot", target]);
            assert!(said.contains("expected a regular file") && said.contains(target), "{said}");
        }
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    });
}

#[test]
fn lost_samples_go_to_a_pipe_and_to_standard_error() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let pipe = named_pipe(&folder.path().join("pipe"));
        let said = refused(&[LOSES, "--quarantine", &pipe]);
        assert!(said.contains("nobody reads") && said.contains(&pipe), "{said}");
        // With this it has a reader.
        let mut both = File::options().read(true).write(true).open(&pipe).unwrap();
        let ran = run(&[LOSES, "--quarantine", &pipe]);
        assert!(ran.status.success(), "{ran:?}");
        let mut found = [0; 4096];
        let len = both.read(&mut found).unwrap();
        let found = std::str::from_utf8(&found[..len]).unwrap();
        assert!(found.contains("range#5") && found.ends_with("}\n"), "{found}");
        let ran = run(&[LOSES, "--quarantine", "/dev/stderr"]);
        assert!(ran.status.success(), "{ran:?}");
        assert!(String::from_utf8(ran.stderr).unwrap().contains("range#5"));
        // Into a file: what was there before stays.
        let log = folder.path().join("log");
        fs::write(&log, "before\n").unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" run --quiet \"$1\" --quarantine /dev/stderr 2>> \"$2\""]);
        shell.arg(forebay_tests::command::command()).arg(LOSES).arg(&log);
        assert!(shell.env("FOREBAY_PLUGIN_PATH", forebay_tests::command::all()).status().unwrap().success());
        let all = fs::read_to_string(&log).unwrap();
        assert!(all.starts_with("before\n") && all.contains("range#5"), "{all}");
    });
}

#[test]
fn an_audit_and_a_record_are_refused_at_once_where_they_cannot_be_read_again() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let pipe = named_pipe(&folder.path().join("pipe"));
        for target in [pipe.as_str(), "/dev/stderr", "/dev/stdout", "/dev/null", "/tmp"] {
            let unordered = "range 9 | map 'x = value' unordered=true";
            for (option, graph) in [("--audit", "range 9"), ("--record", unordered)] {
                let said = refused(&[graph, option, target]);
                assert!(said.contains("expected a regular file") && said.contains(target), "{said}");
            }
        }
    });
}

/// What a run that prints to the file `output` says there and on standard error.
fn run_into(output: &Path, args: &[&str]) -> (String, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" run --quiet \"$@\" > \"$OUTPUT\""]).arg(forebay_tests::command::command());
    shell.args(args).env("OUTPUT", output).env("FOREBAY_PLUGIN_PATH", forebay_tests::command::all());
    let said = String::from_utf8(shell.output().unwrap().stderr).unwrap();
    (fs::read_to_string(output).unwrap(), said)
}

#[test]
fn standard_output_is_that_of_the_run_under_whatever_name() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("output");
        let name = output.to_str().unwrap();
        for stdout in ["/dev/stdout", "/proc/self/fd/1"] {
            let (printed, said) = run_into(&output, &[LOSES, "--json", "--quarantine", stdout]);
            assert!(printed.contains("range#5") && printed.contains("\"samples\":8"), "{printed}{said}");
        }
        for option in ["--snapshot", "--audit", "--record"] {
            for target in [name, "/dev/stdout"] {
                let unordered = "range 9 | map 'x = value' unordered=true";
                let (printed, said) = run_into(&output, &[unordered, option, target]);
                assert!(said.contains("expected a regular file") && printed.is_empty(), "{option}: {said}");
            }
        }
    });
}

#[test]
fn two_runs_do_not_share_a_list_of_lost_samples() {
    within_deadline(|| {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let held = File::create(&list).unwrap();
        held.lock().unwrap();
        let said = refused(&[LOSES, "--quarantine", list.to_str().unwrap()]);
        assert!(said.contains("another run writes its lost samples to this file"), "{said}");
        held.unlock().unwrap();
        assert!(run(&[LOSES, "--quarantine", list.to_str().unwrap()]).status.success());
    });
}
