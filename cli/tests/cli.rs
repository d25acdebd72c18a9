//! What the command says and how it ends where there are no plugins.
#![expect(clippy::unwrap_used, reason = "a test may fail by a panic")]

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::Value;

fn forebay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).env("FOREBAY_NO_PLUGINS", "1").args(args).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn an_unknown_pipe_is_named_in_at_most_ten_lines() {
    for command in ["run", "explain", "head"] {
        let output = forebay(&[command, "nowhere | nothing | never"]);
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
        assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
        assert!(stderr(&output).contains("unknown pipe `nowhere`"), "{}", stderr(&output));
        assert!(stderr(&output).contains("plugins are switched off"), "{}", stderr(&output));
        assert!(stderr(&output).lines().count() <= 10, "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn an_error_is_one_json_object_where_json_was_asked_for() {
    let output = forebay(&["run", "nowhere 5", "--json"]);
    let told: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(told["error"]["kind"], "invalid");
    assert_eq!(told["error"]["context"]["pipe"], "nowhere");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_slip_in_a_line_has_a_caret_under_it() {
    let output = forebay(&["run", "files x | | untar"]);
    let expected =
        "error: found `|`, expected the name of a pipe\n  files x | | untar\n            ^\n  column: 11\n";
    assert_eq!(stderr(&output), expected);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_slip_in_a_file_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.toml");
    fs::write(&path, "[[node]]\npipe 3\n").unwrap();
    let output = forebay(&["run", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("  pipe 3\n       ^\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("  line: 2\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("  file: {}\n", path.display())), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_no_graph_is_not_taken_for_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let output = forebay(&["run", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("No such file"), "{}", stderr(&output));
    let output = forebay(&["run", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown pipe `files`"), "{}", stderr(&output));
}

#[test]
fn wrong_arguments_are_refused_with_what_was_expected() {
    for (args, expected) in [
        (["run", "x", "--executor", "fibres"], "expected inline, threads"),
        (["run", "x", "--budget", "lots"], "expected a whole number of bytes"),
        (["run", "x", "--plugin", "/no/such.so"], "no such plugin file or folder"),
    ] {
        let output = forebay(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn a_named_file_that_is_no_plugin_is_an_error_and_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnone.so");
    fs::write(&path, "no library").unwrap();
    let path = path.to_str().unwrap();
    let output = forebay(&["run", "x", "--plugin", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not a plugin"), "{}", stderr(&output));
    assert!(stderr(&output).contains(path), "{}", stderr(&output));
    let output = forebay(&["plugins", "list", "--plugin", path]);
    assert_eq!(output.status.code(), Some(0), "some other library is no failure");
    assert!(stdout(&output).contains("1 library is no plugin"), "{}", stdout(&output));
    let output = forebay(&["plugins", "list", "--all", "--json", "--plugin", path]);
    let told: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(told["refused"][0]["path"], path);
    assert_eq!(told["places"][0]["libraries"], 1);
}

#[test]
fn the_list_without_plugins_says_why_it_is_empty() {
    let output = forebay(&["plugins", "list"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("plugins are switched off"), "{}", stdout(&output));
    let told: Value = serde_json::from_str(stdout(&forebay(&["plugins", "list", "--json"]))).unwrap();
    assert_eq!(told["refused"], Value::Array(Vec::new()));
}

#[test]
fn what_nobody_serves_is_said() {
    let output = forebay(&["plugins", "show", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("error: no plugin, pipe, decoder or store is called `nothing`\n"),
        "{}",
        stderr(&output)
    );
    let output = forebay(&["plugins", "why", "/no/such.jpg"]);
    assert_eq!(output.status.code(), Some(1));
    // A store that is linked in serves it even then.
    let linked = cfg!(feature = "bundled");
    assert!(
        linked || stderr(&output).starts_with("error: no plugin reads `file:` paths\n"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn help_names_every_subcommand() {
    let output = forebay(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    for command in ["run", "head", "explain", "plugins", "audit", "snapshot"] {
        assert!(stdout(&output).contains(&format!("\n  {command} ")), "{}", stdout(&output));
        assert_eq!(forebay(&[command, "--help"]).status.code(), Some(0));
    }
}
