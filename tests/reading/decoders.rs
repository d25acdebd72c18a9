//! Options of decoders: given with the graph in every form, checked with it, part of what it is, and the same on every executor.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Executor, Graph, Value, graph::Builder};
use forebay_tests::{
    ALL, Setting, build, builder,
    command::{forebay, json},
    line, read, registry, within_deadline,
};
use serde_json::json as object;

/// What `rogue` gives of five bytes.
fn decoded(graph: &Graph, setting: Setting) -> Vec<Option<Value>> {
    let mut loader = build(graph, &registry(), setting).unwrap();
    loader.epoch(0).map(|sample| sample.unwrap().get("rogue").cloned()).collect()
}

fn graph(options: &str) -> Graph {
    line(&format!("rogue_source count=4 payload=hello | decode {options}"))
}

fn fives(options: serde_json::Value) -> Builder {
    let source = Graph::builder().pipe("rogue_source").option("count", 4).option("payload", "hello");
    source.pipe("decode").option("options", options)
}

#[test]
fn options_reach_the_decoder_on_every_executor() {
    within_deadline(|| {
        for (options, expected) in [
            ("", Value::from(5_u64)),
            ("options={rogue={add=2}}", 7_u64.into()),
            ("options={rogue={add=2, factor=0.5}}", 3.5.into()),
            ("options={'rogue@forebay-rogue'={add=3}, rogue={add=2}}", 8_u64.into()),
            ("options={rogue={add=2}} decoders='rogue=rogue'", 7_u64.into()),
            ("options={}", 5_u64.into()),
        ] {
            let options = options.replace("'rogue=rogue'", "['rogue=rogue']");
            for executor in ALL.into_iter().chain([Executor::Processes(2)]) {
                let setting = Setting { executor, ..Setting::INLINE };
                let found = decoded(&graph(&options), setting);
                assert_eq!(found, vec![Some(expected.clone()); 4], "{options} {executor:?}");
            }
        }
    });
}

#[test]
fn an_instance_is_made_for_a_node_and_not_for_each_sample() {
    within_deadline(|| {
        let counts = |found: &[Option<Value>]| -> Vec<Option<i64>> {
            found.iter().map(|value| value.as_ref()?.as_i64()).collect()
        };
        let one = graph("options={rogue={count=true}}");
        let setting = Setting { chunk: Some(1), ..Setting::INLINE };
        assert_eq!(counts(&decoded(&one, setting)), [Some(1), Some(2), Some(3), Some(4)]);
        // Another node has its own, and a decoder without options is the one that all share.
        let two = line(
            "rogue_source @a count=2 payload=x | decode @plain ; rogue_source @b count=2 payload=x | decode options={rogue={count=true}} ; \
             concat <plain, decode>",
        );
        assert_eq!(counts(&decoded(&two, setting)), [Some(1), Some(1), Some(1), Some(2)]);
    });
}

#[test]
fn every_form_says_the_same_and_the_options_are_part_of_the_graph() {
    let registry = registry();
    let by_line = graph("options={rogue={add=2, factor=1}}");
    let toml = "[[node]]\npipe = \"rogue_source\"\ncount = 4\npayload = \"hello\"\n\n[[node]]\npipe = \"decode\"\noptions = {rogue = {add = 2, factor = 1}}\n";
    let nested = "[[node]]\npipe = \"rogue_source\"\ncount = 4\npayload = \"hello\"\n[[node]]\npipe = \"decode\"\n[node.options.rogue]\nadd = 2\nfactor = 1\n";
    let built = fives(object!({"rogue": {"add": 2, "factor": 1}})).build().unwrap();
    let print = by_line.check(&registry).unwrap().fingerprint();
    for other in [
        Graph::from_toml(toml).unwrap(),
        Graph::from_toml(nested).unwrap(),
        Graph::from_toml(&by_line.to_toml()).unwrap(),
        Graph::from_json(&by_line.to_json().unwrap()).unwrap(),
        line(&by_line.to_line(Some(&registry))),
        built,
        graph("options={rogue={factor=1.0, add=2}}"),
    ] {
        assert_eq!(other.check(&registry).unwrap().fingerprint(), print, "{other}");
    }
    for other in ["", "options={rogue={add=3, factor=1}}", "options={rogue={add=2}}"] {
        assert_ne!(graph(other).check(&registry).unwrap().fingerprint(), print, "{other}");
    }
}

#[test]
fn what_no_decoder_takes_is_refused_with_the_graph() {
    let registry = registry();
    for (options, says) in [
        ("options={rouge={add=2}}", "option `options`: no decoder is called `rouge`; did you mean `rogue`?"),
        (
            "options={rogue={ad=2}}",
            "decoder `rogue`: unknown option `ad`; did you mean `add`?; known are: `add`, `factor`, `count`",
        ),
        (
            "options={rogue={add=1001}}",
            "decoder `rogue`: option `add` is 1001, expected a whole number from 0 to 1000",
        ),
        (
            "options={rogue={add=two}}",
            "decoder `rogue`: option `add` is \"two\", expected a whole number from 0 to 1000",
        ),
        (
            "options={rogue=2}",
            "`rogue` in option `options` is 2, expected a table, as in {NAME={option=value}}",
        ),
        ("options=[rogue]", "option `options` is [\"rogue\"], expected a table, as in {NAME={option=value}}"),
        ("options={json={deep=2}}", "decoder `json`: unknown option `deep`; known are: none"),
        ("options={'rogue@forebay-json'={add=2}}", "no decoder is called `rogue@forebay-json`"),
    ] {
        let error = graph(options).check(&registry).unwrap_err();
        assert!(error.message().contains(says), "{options}: {error}");
        assert_eq!(error.get("node"), Some("decode"), "{error}");
    }
    // A pipe that asks for no decoders has no such option.
    let error = line("rogue_source | increment options={rogue={add=2}}").check(&registry).unwrap_err();
    assert!(error.message().contains("unknown option `options`"), "{error}");
}

#[test]
fn a_resume_with_other_options_is_refused() {
    within_deadline(|| {
        let registry = registry();
        let before = graph("options={rogue={add=2}}");
        let mut loader = build(&before, &registry, Setting::INLINE).unwrap();
        let mut epoch = loader.epoch(0);
        epoch.next().unwrap().unwrap();
        let snapshot = epoch.snapshot().unwrap();
        let mut other = builder(&graph("options={rogue={add=3}}"), Setting::INLINE).build(&registry).unwrap();
        let error = other.resume(&snapshot).err().unwrap();
        assert!(error.message().contains("node decode"), "{error}");
        let mut same = builder(&before, Setting::INLINE).build(&registry).unwrap();
        let (rest, failed) = read(same.resume(&snapshot).unwrap());
        assert_eq!((rest.len(), failed), (3, None));
    });
}

#[test]
fn people_see_what_can_be_set_and_what_is() {
    let shown = forebay(&[], &["plugins", "show", "forebay-rogue"]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("options={rogue={add=...}}"), "{text}");
    let graph = "rogue_source count=4 payload=hello | decode options={rogue={add=2}} on_error=skip";
    let explained = forebay(&[], &["explain", graph, "--json"]);
    let options = &json(&explained)["nodes"][1]["options"];
    let given: Vec<_> =
        options.as_array().unwrap().iter().filter(|option| option["default"] == false).collect();
    let given: Vec<_> = given.iter().map(|option| (&option["name"], &option["value"])).collect();
    assert_eq!(
        given,
        [(&object!("on_error"), &object!("skip")), (&object!("options"), &object!({"rogue": {"add": 2}}))]
    );
}
