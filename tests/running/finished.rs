//! A run whose epochs are all over delivers nothing more, and says so.

use std::{fs, process::Output};

use forebay_loader::Snapshot;
use forebay_tests::command::{forebay, json};

const GRAPH: &str = "range 10 | shuffle 4 | batch 2";

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_finished_run_that_is_resumed_delivers_nothing_and_says_that_every_epoch_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (graph, saved) = (path("graph.toml"), path("saved"));
    let toml = |epochs: &str| {
        let nodes = "[[node]]\npipe = \"range\"\nstop = 10\n[[node]]\npipe = \"batch\"\nsize = 2\n";
        fs::write(&graph, format!("{epochs}{nodes}")).unwrap();
    };
    for (graph, epochs) in [(GRAPH, ""), (GRAPH, "3"), (&*graph, "[run]\nepochs = 2\n")] {
        let asked = if graph == GRAPH && !epochs.is_empty() { vec!["--epochs", epochs] } else { Vec::new() };
        if graph != GRAPH {
            toml(epochs);
        }
        let first = forebay(&[], &[&["run", graph, "--snapshot", &saved], &asked[..]].concat());
        assert!(first.status.success(), "{first:?}");
        let whole = fs::read_to_string(&saved).unwrap();
        let over = Snapshot::from_json(&whole).unwrap();
        assert!(over.ended, "{whole}");

        let resumed = [&["run", graph, "--resume", &saved, "--snapshot", &saved, "--json"], &asked[..]];
        let again = forebay(&[], &resumed.concat());
        assert_eq!((again.status.code(), &json(&again)["samples"]), (Some(0), &0.into()), "{again:?}");
        let next = over.epoch + 1;
        let says = format!("every epoch is over: {next} epoch");
        assert!(told(&again).contains(&says), "{again:?}");
        assert!(told(&again).contains(&format!("--epochs {} reads one more", next + 1)), "{again:?}");
        assert_eq!(fs::read_to_string(&saved).unwrap(), whole, "the place is the same");

        // Who asks for one more gets one more.
        let more = (next + 1).to_string();
        let more = json(&forebay(&[], &["run", graph, "--resume", &saved, "--epochs", &more, "--json"]));
        assert_eq!((&more["samples"], &more["first_epoch"]), (&10.into(), &next.into()), "{more}");
    }
}

#[test]
fn a_snapshot_of_something_else_is_refused_although_every_epoch_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (saved, audit) = (path("saved"), path("audit"));
    assert!(forebay(&[], &["run", GRAPH, "--snapshot", &saved, "--audit", &audit]).status.success());
    let other = forebay(&[], &["run", "range 11 | shuffle 4 | batch 2", "--resume", &saved]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(told(&other).contains("node range") && told(&other).contains(&saved), "{other:?}");
    let allowed =
        forebay(&[], &["run", "range 11 | shuffle 4 | batch 2", "--resume", &saved, "--allow", "range"]);
    assert!(allowed.status.success(), "{allowed:?}");

    // Where the run is goes to another file as well, and audits stay what they were.
    let copy = path("copy");
    let over = ["run", GRAPH, "--resume", &saved, "--snapshot", &copy, "--json", "--audit"];
    let same = forebay(&[], &[&over[..], &[&audit]].concat());
    assert!(same.status.success(), "{same:?}");
    assert_eq!(json(&same)["audit"]["epochs"][0]["exactly_once"], true, "{same:?}");
    let [one, two] = [&saved, &copy].map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(one, two);
    let new = forebay(&[], &[&over[..], &[&path("new")]].concat());
    assert!(new.status.success(), "{new:?}");
    assert_eq!(json(&new)["audit"]["epochs"], serde_json::Value::Null, "{new:?}");
    assert_eq!(fs::metadata(path("new")).unwrap().len(), 0, "nothing was run");
}
