//! Every form gives the same graph, and a wrong graph says what is wrong where.

use forebay_core::Result;
use serde_json::{Value, json};

use super::*;

struct Pipes(Vec<PipeSpec>);

impl Catalog for Pipes {
    fn pipe(&self, name: &str) -> Option<&PipeSpec> {
        self.0.iter().find(|pipe| pipe.name == name)
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|pipe| pipe.name.clone()).collect()
    }

    fn looked(&self) -> String {
        "/plugins".to_owned()
    }
}

fn pipes() -> Pipes {
    let pipe = |name, class, inputs, outputs, options: Value| json!({"name": name, "class": class, "inputs": inputs, "outputs": outputs, "options": options});
    let specs = json!([
        pipe(
            "files",
            "source",
            [0, 0],
            1,
            json!([{"name": "paths", "kind": "str", "list": "either", "required": true}])
        ),
        pipe(
            "shuffle",
            "stream",
            [1, 1],
            1,
            json!([
                {"name": "size", "kind": "uint", "default": 1000, "min": 1, "max": 1000000},
                {"name": "share", "kind": "float", "min": 0, "max": 1},
            ])
        ),
        pipe(
            "batch",
            "stream",
            [1, 1],
            1,
            json!([
                {"name": "size", "kind": "uint", "required": true, "min": 1, "max": 100},
                {"name": "drop_last", "kind": "bool"},
                {"name": "ragged", "kind": "str", "choices": ["refuse", "list"]},
                {"name": "fields", "kind": "str", "list": "yes"},
            ])
        ),
        pipe("fork", "stream", [1, 1], 2, json!([])),
        pipe(
            "zip",
            "stream",
            [2, 4],
            1,
            json!([{"name": "prefix", "kind": "str", "list": "yes"}, {"name": "names", "kind": "str", "list": "either"}])
        ),
        pipe("write", "stream", [1, 1], 0, json!([])),
    ]);
    let mut specs: Vec<PipeSpec> = serde_json::from_value(specs).unwrap();
    for zip in specs.iter_mut().filter(|spec| spec.name == "zip") {
        zip.layout.per_input = &["prefix", "names"];
    }
    Pipes(specs)
}

fn line(text: &str) -> Graph {
    Graph::from_line(text).unwrap()
}

/// What is wrong, message and node, with a graph that was written well.
fn problems(text: &str) -> Vec<String> {
    let say = |error: &Error| format!("{}: {}", error.get("node").unwrap_or("-"), error.message());
    line(text).problems(&pipes()).iter().map(say).collect()
}

/// The message of a text that cannot be read, and where.
fn refused(result: Result<Graph>) -> String {
    let error = result.unwrap_err();
    let place = |name| error.get(name).unwrap_or("-").to_owned();
    format!("{}:{}: {}", place("line"), place("column"), error.message())
}

#[test]
fn four_forms_give_one_graph() {
    let built = Graph::builder()
        .pipe("files")
        .option("paths", "shards/*.tar")
        .pipe("shuffle")
        .option("size", 5000)
        .pipe("batch")
        .option("size", 64)
        .option("drop_last", true)
        .build()
        .unwrap();
    let toml = "
        [[node]]
        pipe = 'files'
        paths = 'shards/*.tar'
        [[node]]
        pipe = 'shuffle'
        size = 5_000
        [[node]]
        drop_last = true
        size = 64
        name = 'batch'
        pipe = 'batch'
        inputs = 'shuffle'
    ";
    let json = r#"{"node": [{"pipe": "files", "paths": "shards/*.tar"}, {"pipe": "shuffle", "size": 5000},
        {"size": 64, "pipe": "batch", "drop_last": true}]}"#;
    let short =
        line("files 'shards/*.tar' | shuffle 5000 | batch 64 drop_last=true").check(&pipes()).unwrap();
    for other in [Graph::from_toml(toml).unwrap(), Graph::from_json(json).unwrap(), short.clone()] {
        assert_eq!(other, built);
        assert_eq!(other.fingerprint(), built.fingerprint());
    }
    assert_eq!(short.to_line(Some(&pipes())), "files shards/*.tar | shuffle 5000 | batch 64 drop_last=true");
    assert_eq!(
        short.to_string(),
        "files paths=shards/*.tar | shuffle size=5000 | batch drop_last=true size=64"
    );
    assert_eq!(
        short.to_toml(),
        "[[node]]\npipe = \"files\"\npaths = \"shards/*.tar\"\n\n[[node]]\npipe = \"shuffle\"\nsize = 5000\n\n\
         [[node]]\npipe = \"batch\"\ndrop_last = true\nsize = 64\n",
    );
}

/// Small, seeded and good enough to draw test cases with.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn text(&mut self) -> String {
        let odd = [
            'a', '7', ' ', '\'', '"', '\\', '\n', '\0', '\u{7f}', '\u{85}', 'é', '😀', '|', '=', '@', '-',
            '.', '{',
        ];
        let words = ["true", "null", "12", "-1e5", "007", "a/*.x", "nan", "+3", "1_0", "\u{feff}", ""];
        if self.below(3) == 0 {
            return self.pick(&words).to_owned();
        }
        (0..self.below(6)).map(|_| self.pick(&odd)).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 2 { 5 } else { 7 }) {
            0 => json!(self.below(2) == 0),
            1 => self
                .pick(&[json!(0), json!(-7), json!(i64::MIN), json!(u64::MAX), json!(5000)].each_ref())
                .clone(),
            2 => json!(self.pick(&[0.1, -0.0, 1.0, 1e300, 5e-324, -2.5e-7, 123_456_789.123_456_78])),
            3 | 4 => json!(self.text()),
            5 => (0..self.below(4)).map(|_| self.value(depth + 1)).collect(),
            _ => Value::Object((0..self.below(4)).map(|_| (self.text(), self.value(depth + 1))).collect()),
        }
    }

    fn graph(&mut self) -> Graph {
        let mut builder = Graph::builder();
        for _ in 0..=self.below(6) {
            let mut draft = Draft::new(self.pick(&["batch", "zip", "x/batch", "a.b:c-d", "batch-2", "9"]));
            if self.below(3) == 0 {
                draft = draft.name(self.pick(&["batch", "batch-2", "batch-3", "zip", "b_1", "7"]));
            }
            if self.below(3) == 0 {
                draft = draft
                    .inputs((0..self.below(3)).map(|_| ["batch", "zip.1", "b_1.0", "q.17"][self.below(4)]));
            }
            let mut options = BTreeMap::new();
            for _ in 0..self.below(4) {
                options.insert(self.pick(&["", "size", "drop_last", "a-b", "node", "run"]), self.value(0));
            }
            builder = builder
                .node(options.into_iter().fold(draft, |draft, (name, value)| draft.option(name, value)));
        }
        builder.build().unwrap()
    }
}

#[test]
fn random_graphs_read_back_from_every_form() {
    let mut dice = Dice(7);
    for _ in 0..3000 {
        let mut graph = dice.graph();
        let text = graph.to_string();
        assert_eq!(Graph::from_line(&text).unwrap(), graph, "{text}");
        if dice.below(2) == 0 {
            graph.run.seed = Some(u64::MAX);
            graph.run.executor = Some(dice.text());
        }
        for (text, read) in [
            (graph.to_toml(), Graph::from_toml as fn(&str) -> Result<Graph>),
            (graph.to_json().unwrap(), Graph::from_json),
        ] {
            let back = read(&text).unwrap();
            assert_eq!(back, graph, "{text}");
            assert_eq!(back.fingerprint(), graph.fingerprint());
        }
        assert_eq!(serde_json::from_value::<Graph>(serde_json::to_value(&graph).unwrap()).unwrap(), graph);
    }
}

#[test]
fn random_text_never_panics() {
    let good = "files @x <a, b.1> 'q\\n\\u{1F600}' k=[1, {a = 2.5e3}] | zip ; batch 64 drop_last=true";
    let good: Vec<char> = good.chars().chain("é\"\\{<@|=.é\0".chars()).collect();
    let mut dice = Dice(3);
    for _ in 0..20_000 {
        let text: String = (0..dice.below(30)).map(|_| dice.pick(&good)).collect();
        if let Ok(graph) = Graph::from_line(&text) {
            assert_eq!(line(&graph.to_string()), graph, "{text}");
        }
    }
    for open in ["[", "{a="] {
        assert!(
            refused(Graph::from_line(&format!("p {}", open.repeat(100_000))))
                .contains("nests deeper than 32")
        );
    }
}

#[test]
fn branches_and_names() {
    let graph = line("files @x a ; files b | shuffle ; zip <x, shuffle.1> | batch 2");
    let inputs: Vec<String> =
        graph.nodes().iter().map(|node| node.inputs.iter().map(Input::to_string).collect()).collect();
    assert_eq!(inputs, ["", "", "files", "xshuffle.1", "zip"]);
    assert_eq!(graph.to_string(), "files @x a ; files b | shuffle ; zip <x, shuffle.1> | batch 2");
    let names: Vec<_> =
        line("a | b | a | x/a | a @a-2").nodes().iter().map(|node| node.name.clone()).collect();
    assert_eq!(names, ["a", "b", "a-3", "a-4", "a-2"]);
}

#[test]
fn words_become_values() {
    let graph = line(
        r#"p a=1 b=-2.5 c=true d=007 e=1.2.3 f="x\ty" g=[0.1, 0.9,] h={k = [a], 'x y' = 1} i=null j=1_000 k=s3://b/x*"#,
    );
    let options = serde_json::to_value(&graph.nodes()[0].options).unwrap();
    let expected = json!({"a": 1, "b": -2.5, "c": true, "d": "007", "e": "1.2.3", "f": "x\ty", "g": [0.1, 0.9],
        "h": {"k": ["a"], "x y": 1}, "j": 1000, "k": "s3://b/x*"});
    assert_eq!(options, expected);
}

#[test]
fn one_line_errors_show_the_place() {
    let refused = |text| refused(Graph::from_line(text));
    assert_eq!(
        refused("files 'x' || batch 4"),
        "-:12: found `|`, expected the name of a pipe\n  files 'x' || batch 4\n             ^",
    );
    assert!(refused("").starts_with("-:1: found the end, expected the name of a pipe"));
    assert!(refused("a 'x").starts_with("-:3: this ' is never closed"));
    assert!(refused("a 1 2").starts_with("-:5: found a value without a name"));
    assert!(refused("a 1 @x").starts_with("-:5: found `@x`; a node's name stands right behind its pipe"));
    assert!(refused("a\nb=").starts_with("2:3: found the end, expected a value"));
    assert!(refused("a x/{0..9}").starts_with("-:5: found `{` inside a value"));
    assert!(refused("a inputs=b").starts_with("-:3: `inputs` is a reserved word"));
    assert!(refused("a k=1 k=2").starts_with("-:7: option `k` is given twice"));
    assert!(refused("a | b <a>").starts_with("-:7: a node after `|` reads the node before"));
    assert!(
        refused("a 99999999999999999999").starts_with("-:3: found `99999999999999999999`, expected a number")
    );
    assert!(refused(r"a 'x\q'").starts_with("-:5: unknown escape"));
    assert!(refused("a [null]").starts_with("-:4: found null"));
}

#[test]
fn documents_errors_show_the_place() {
    let toml = |text| refused(Graph::from_toml(text));
    assert!(
        toml("[[node]]\npipe 3").starts_with("2:6: key with no value, expected `=`\n  pipe 3\n       ^"),
        "{}",
        toml("[[node]]\npipe 3")
    );
    assert!(toml("nodes = 3").starts_with("-:1: unknown field `nodes`, expected `run` or `node`"));
    assert!(toml("[[node]]\nsize = 3").contains("the node has no `pipe`"));
    assert!(toml("[[node]]\npipe = 'a'\nx = nan").starts_with("3:5: found NaN, expected a finite number"));
    assert!(toml("[[node]]\npipe = 'a'\nx = 1979-05-27").contains("found a date"));
    assert!(toml("[run]\nbudget = '5 apples'\n[[node]]\npipe='a'").starts_with("2:10: size is `5 apples`"));
    assert!(toml("").contains("the graph has no nodes"));
    let json = |text| refused(Graph::from_json(text));
    assert!(json("{\"node\": [\n{\"pipe\": \"a\", \"x\": }]}").starts_with("2:20: expected value"));
    assert!(json(r#"{"node": [{"pipe": "a", "x": 1, "x": 2}]}"#).contains("`x` is given twice"));
    assert!(
        json(r#"{"node": [{"pipe": "a", "inputs": [3]}]}"#).contains("input is 3, expected a node's name")
    );
    assert!(json(r#"{"node": [{"pipe": "a", "x": [null]}]}"#).contains("found null inside a list"));
}

#[test]
fn settings_are_no_part_of_the_identity() {
    let text = "[run]\nexecutor = \"threads:2\"\nseed = 7\nbudget = \"1MiB\"\n\n[[node]]\npipe = \"a\"\n";
    let graph = Graph::from_toml(text).unwrap();
    assert_eq!((graph.run.seed, graph.run.budget), (Some(7), Some(1 << 20)));
    assert_eq!(graph.fingerprint(), line("a").fingerprint());
    assert!(Graph::from_toml("[run]\nseeds = 1\n[[node]]\npipe='a'").is_err());
}

#[test]
fn the_fingerprint_is_known_and_sees_everything() {
    let graph = line("files a | batch 64 drop_last=true").check(&pipes()).unwrap();
    assert_eq!(graph.fingerprint().to_string(), format!("{:032x}", graph.fingerprint().value()));
    let text =
        r#"[["files","files",[],{"paths":"a"}],["batch","batch",["files"],{"drop_last":true,"size":64}]]"#;
    assert_eq!(graph.fingerprint().value(), xxhash_rust::xxh3::xxh3_128(text.as_bytes()));
    for other in [
        "files b | batch 64 drop_last=true",
        "files a | batch 65 drop_last=true",
        "files a | batch 64 drop_last=false",
        "files a | batch 64",
        "files @f a | batch 64 drop_last=true",
    ] {
        assert_ne!(line(other).check(&pipes()).unwrap().fingerprint(), graph.fingerprint(), "{other}");
    }
    // Paths that JSON must escape, and so many that their text is taken in parts.
    let mut paths = ["a\"b", "a\\b", "a\nb", "\u{e9}\u{7f}"].map(String::from).to_vec();
    paths.extend((0..3000).map(|at| format!("shards/{at:06}.tar")));
    let list = serde_json::json!([["files", "files", [], {"paths": paths}]]).to_string();
    let graph = Graph::builder().pipe("files").option("paths", paths).build().unwrap();
    assert_eq!(graph.fingerprint().value(), xxhash_rust::xxh3::xxh3_128(list.as_bytes()));
    let shares = ["share=0", "share=0.0", "share=-0.0"]
        .map(|share| line(&format!("files a | shuffle {share}")).check(&pipes()).unwrap().fingerprint());
    assert_eq!((shares[0], shares[0]), (shares[1], shares[2]));
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    assert_eq!(
        problems("files a | shufle 3 | batch 2 drop_lst=true"),
        [
            "shufle: unknown pipe `shufle`; did you mean `shuffle`?",
            "batch: unknown option `drop_lst`; did you mean `drop_last`?; known are: `size`, `drop_last`, `ragged`, `fields`",
        ],
    );
    assert_eq!(
        problems("files a ; batch <fils> 2"),
        ["batch: input `fils` names no node; did you mean `files`?"]
    );
}

#[test]
fn options_are_checked_against_the_schema() {
    let batch = |options: &str| problems(&format!("files a | batch {options}")).join(" / ");
    assert_eq!(batch("64 ragged=list fields=[a, b]"), "");
    assert_eq!(batch(""), "batch: option `size` is missing, expected a whole number from 1 to 100");
    assert_eq!(batch("0"), "batch: option `size` is 0, expected a whole number from 1 to 100");
    assert!(batch("2.5").contains("is 2.5"));
    assert!(batch("many").contains("is \"many\""));
    assert!(batch("3 size=3").contains("given twice, by position and by name"));
    assert!(batch("3 drop_last=1").contains("expected true or false"));
    assert!(batch("3 ragged=lst").ends_with("expected text: `refuse`, `list`"));
    assert!(batch("3 ragged=5").ends_with("put it in quotes if it is text"));
    assert!(batch("3 fields=a").ends_with("expected a list of texts: fields=[\"a\"]"));
    assert!(batch("3 fields=[1]").contains("expected a list of texts"));
    assert_eq!(
        problems("files [a, b] | fork 3 ; zip <fork, fork.1>"),
        ["fork: found 3, expected no options"]
    );
    let long = batch(&format!("'{}'", "é".repeat(10_000)));
    assert!(long.len() < 400, "{long}");
}

#[test]
fn wiring_is_checked() {
    assert!(problems("files a | fork ; zip <fork, fork.1> | write").is_empty());
    assert_eq!(
        problems("files a | fork | write"),
        ["-: the graph ends at `fork.1` and `write`, expected one end"]
    );
    assert_eq!(
        problems("files a | files b"),
        ["files-2: it has 1 input, expected none, since it is a source"]
    );
    assert_eq!(problems("files a | zip"), ["zip: it has 1 input, expected 2 to 4"]);
    let zip = |options| problems(&format!("files @x a ; files @y b ; zip <x, y> {options}"));
    assert_eq!(zip("[a_, b_] names=[a, b]"), <[&str; 0]>::default());
    let told = |option, len| format!("zip: option `{option}` has {len}, expected one for each of 2 inputs");
    assert_eq!(zip("[a_, b_, c_]"), [told("prefix", "3 values")], "by position");
    assert_eq!(zip("prefix=[] names=a"), [told("prefix", "0 values"), told("names", "1 value")]);
    assert_eq!(
        problems("files a | write ; shuffle <write>"),
        ["shuffle: input is `write`, but `write` has 0 outputs"]
    );
    let twice = problems("files a ; zip <files, files>");
    assert!(
        twice[0].starts_with("zip: output `files` is read by `zip` and by `zip`, expected one reader"),
        "{twice:?}"
    );
    assert_eq!(problems("files @f a ; files @f b"), ["f: two nodes are called `f`, expected unique names"]);
    let circle = problems("files a ; zip <files, s> | batch 2 | shuffle @s");
    assert_eq!(circle, ["zip: nodes read from each other in a circle: zip -> batch -> s -> zip"]);
}

#[test]
fn all_problems_are_told_at_once() {
    let error = line("fles a | batch 0").check(&pipes()).unwrap_err();
    assert!(
        error.message().starts_with("the graph has 2 problems:\n  1. fles: unknown pipe `fles`"),
        "{error}"
    );
    assert!(error.message().contains("\n  2. batch: ") && error.message().ends_with("1 to 100"), "{error}");
    assert_eq!(error.get("plugins"), Some("/plugins"));
}

#[test]
fn order_puts_readers_last_and_keeps_ties() {
    let graph = line("zip <b, c> ; files @c x ; files @a y | shuffle @b");
    assert_eq!(graph.order().unwrap(), [1, 2, 3, 0]);
    let long: Vec<&str> = vec!["a"; MAX_NODES];
    assert_eq!(line(&long.join("|")).order().unwrap().len(), MAX_NODES);
    assert!(
        Graph::from_line(&format!("{}|a", long.join("|"))).unwrap_err().message().contains("10001 nodes")
    );
}

#[test]
fn the_builder_refuses_what_no_form_could_write() {
    let option = |name: &str, value: Value| Graph::builder().pipe("a").option(name, value).build();
    assert!(option("x", json!([null])).is_err());
    assert!(option("x y", json!(1)).is_err());
    assert!(option("inputs", json!(1)).is_err());
    assert!(option("x", Value::Null).unwrap().nodes()[0].options.is_empty());
    assert!(Graph::builder().option("x", 1).build().is_err());
    assert!(Graph::builder().pipe("a b").build().is_err());
    assert!(Graph::builder().node(Draft::new("a").name("b.1")).build().is_err());
    assert!(Graph::builder().pipe("a").option("x", 1).option("x", 2).build().is_err());
}

#[test]
fn the_builder_checks_a_graph_against_a_catalog_and_leaves_it_as_it_was() {
    let chain =
        |pipe: &str| Graph::builder().pipe("files").option(POSITIONAL, "a").pipe(pipe).option("size", 2);
    assert_eq!(chain("batch").check(&pipes()).unwrap(), line("files a | batch size=2"));
    let error = chain("bacth").check(&pipes()).unwrap_err();
    assert_eq!(error.message(), "unknown pipe `bacth`; did you mean `batch`?");
    assert_eq!((error.get("node"), error.get("plugins")), (Some("bacth"), Some("/plugins")));
}

#[test]
fn a_source_reads_no_node_wherever_it_stands() {
    let files = |name: &str| Draft::source("files").name(name).option("paths", "x");
    let graph = Graph::builder().node(files("a")).node(files("b")).node(Draft::new("zip").inputs(["a", "b"]));
    assert_eq!(graph.check(&pipes()).unwrap(), line("files @a paths=x ; files @b paths=x ; zip <a, b>"));
}
