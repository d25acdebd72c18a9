//! What `explain` says of graphs that run, and are slower, larger or less random than they look.
#![expect(clippy::unwrap_used, reason = "a helper of tests")]

use forebay_loader::{Executor, Plan};
use forebay_tests::{
    command::{self, forebay},
    line, registry, within_deadline,
};
use serde_json::{Value, json};

/// Each node with what is said of it.
fn lints(graph: &str, executor: &str) -> Vec<(String, String)> {
    let output = forebay(&[], &["explain", graph, "--executor", executor, "--json"]);
    let text = |lint: &Value, key: &str| lint[key].as_str().unwrap().to_owned();
    let found = command::json(&output);
    found["lints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lint| (text(lint, "node"), text(lint, "message")))
        .collect()
}

/// Graphs, the executor, the node that something is said of, and what it is about; each beside the same graph put right.
const BITES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "range 9 | shard drop_last=true | shuffle 4",
        "inline",
        "shuffle",
        "put `shuffle` before `shard`",
        "range 9 | shuffle 4 | shard drop_last=true",
    ),
    (
        "range 9 | batch 3 | shuffle 4",
        "inline",
        "shuffle",
        "batches of `batch`",
        "range 9 | shuffle 4 | batch 3",
    ),
    (
        "range 9 | map 'x=value' | shuffle 4",
        "inline",
        "shuffle",
        "samples as `map` gives them",
        "range 9 | shuffle 4 | map 'x=value'",
    ),
    (
        "range 9 | random_sampler | shuffle 4",
        "inline",
        "shuffle",
        "`random_sampler` gives samples in random order already",
        "range 9 | sequential_sampler | shuffle 4",
    ),
    (
        "range 9 | batch 3 | shard drop_last=true",
        "inline",
        "shard",
        "every rank makes all batches of `batch`",
        "range 9 | shard drop_last=true | batch 3",
    ),
    (
        "range 9 | shuffle 4 | cache",
        "inline",
        "cache",
        "`cache` keeps one order of `shuffle`",
        "range 9 | cache | shuffle 4",
    ),
    (
        "range 9 | map 'x=random()' | cache",
        "inline",
        "cache",
        "`cache` keeps one draw of `map`",
        "range 9 | map 'x=value' | cache",
    ),
    (
        "range @a 9 ; range @b 9 ; mix <a, b> stop=all_exhausted | cache",
        "inline",
        "cache",
        "`cache` keeps one draw of `mix`",
        "range @a 9 ; range @b 9 ; mix <a, b> stop=all_exhausted draw=proportional | cache",
    ),
    (
        "range 9 | distributed_sampler | cache",
        "inline",
        "cache",
        "`cache` keeps one draw of `distributed_sampler`",
        "range 9 | distributed_sampler shuffle=false | cache",
    ),
    (
        "range 9 | subsample 0.5 epochs=anew | cache",
        "inline",
        "cache",
        "`cache` keeps one draw of `subsample`",
        "range 9 | subsample 0.5 | cache",
    ),
    (
        "range 9 | distributed_sampler | shard drop_last=true",
        "inline",
        "shard",
        "`distributed_sampler` already gives each rank its share",
        "range 9 | distributed_sampler | shuffle 4",
    ),
    (
        "range 9 | repeat 2 | cache",
        "inline",
        "cache",
        "`cache` keeps every pass of `repeat` by itself",
        "range 9 | cache | repeat 2",
    ),
    (
        "range 9 | map 'x=1/value' on_error=skip | cache folder=/tmp/kept",
        "inline",
        "cache",
        "a sample that fails once in `map`",
        "range 9 | map 'x=1/value' | cache folder=/tmp/kept",
    ),
    (
        "range 9 | map 'x=value' unordered=true | batch 3",
        "threads:2",
        "batch",
        "`map` is unordered, so this node sees another order",
        "range 9 | map 'x=value' | batch 3",
    ),
    (
        "range 9 | shard | filter 'value % 3 == 0' | batch 2",
        "inline",
        "filter",
        "how many it gives may depend on the samples",
        "range 9 | filter 'value % 3 == 0' | shard drop_last=true | batch 2",
    ),
    (
        "range 9 | shuffle 4 | shard | map 'x=1/value' on_error=skip | batch 2",
        "inline",
        "map",
        "how many it leaves out may depend on the samples, which differ from rank to rank",
        "range 9 | shuffle 4 | map 'x=1/value' on_error=skip | shard drop_last=true | batch 2",
    ),
    (
        "range 9 | filter @a 'value < 8' | shard | filter @b 'value % 3 == 0'",
        "inline",
        "b",
        "put `b` before `shard`",
        "range 9 | filter @a 'value < 8' | filter @b 'value % 3 == 0' | shard drop_last=true",
    ),
    (
        "range @s 9 ; range @t 9 ; shard @u <s> ; shard @v <t> ; mix <u, v> | filter 'value < 3'",
        "inline",
        "filter",
        "how many it gives may depend",
        "range @s 9 ; range @t 9 ; shard @u <s> drop_last=true ; shard @v <t> drop_last=true ; mix <u, v> | batch 3",
    ),
    (
        "files 'x/*' on_error=skip | distributed_sampler | batch 4",
        "inline",
        "files",
        "train together wait for it; end the graph",
        "files 'x/*' | distributed_sampler | batch 4",
    ),
    (
        "range 9 | shard | batch 2 | unbatch",
        "inline",
        "unbatch",
        "train together wait for it; end the graph",
        "range 9 | shard drop_last=true | batch 2 | in_batch_shuffle",
    ),
    (
        "range 9 | shard | map 'n=value' | max_tokens n most=20",
        "inline",
        "max_tokens",
        "wait for it; put `max_tokens` before `shard`, or end the graph with as many for each rank: `repeat | take N`",
        "range 9 | shard | map 'n=value' | max_tokens n most=20 | repeat | take 3",
    ),
    (
        "range 9 | distributed_sampler | unique value",
        "threads:2",
        "unique",
        "train together wait for it; end the graph with as many",
        "range 9 | distributed_sampler | map 'x=value' | batch 3",
    ),
    (
        "range 9 | filter 'value < 8' | shard | batch 3 | map 'x=value'",
        "inline",
        "shard",
        "give `shard` drop_last=true, pad before it so that all get as many, or end",
        "range 9 | filter 'value < 8' | pad_to_length multiple=3 ranks=true | shard | batch 3 | map 'x=value'",
    ),
    (
        "range @s 9 ; range @t 9 ; shard @u <s> drop_last=true ; lookup <u, t> key=value join=inner prefix=['', 't-']",
        "inline",
        "lookup",
        "how many it gives may depend",
        "range @s 9 ; range @t 9 ; shard @u <s> drop_last=true ; lookup <u, t> key=value prefix=['', 't-']",
    ),
    (
        "range 9 | shard",
        "inline",
        "shard",
        "a rank may get one more than another",
        "range 9 | distributed_sampler",
    ),
    (
        "range @a 9 ; range @b 10 ; concat <a, b> | shard",
        "inline",
        "shard",
        "a rank may get one more than another",
        "range @a 9 ; range @b 10 ; concat <a, b> | shard drop_last=true",
    ),
    (
        "range 9 | shard | enumerate",
        "inline",
        "shard",
        "a rank may get one more than another",
        "range 9 | shard | enumerate | repeat | take 40",
    ),
    (
        "range 9 | batch 3 | map 'x=value'",
        "processes:2",
        "map",
        "each worker process gets whole batches of `batch`",
        "range 9 | map 'x=value' | batch 3",
    ),
];

#[test]
fn what_bites_is_said_of_its_node_and_of_nothing_that_is_put_right() {
    within_deadline(|| {
        for (graph, executor, node, part, right) in BITES {
            let found = lints(graph, executor);
            let said = found.iter().filter(|(of, message)| of == node && message.contains(part)).count();
            assert_eq!((said, found.len()), (1, 1), "{graph}: {found:?}");
            assert_eq!(lints(right, executor), [], "{right}");
        }
    });
}

#[test]
fn a_person_reads_them_below_the_graph() {
    let output = forebay(&[], &["explain", "range 9 | shard drop_last=true | shuffle 4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let below = text.split_once("\nmay not be meant\n").unwrap().1;
    assert!(below.starts_with("  shuffle: each rank shuffles its own share"), "{text}");
}

#[test]
fn ranks_that_may_be_uneven_are_told_where_the_graph_says_nothing_of_them() {
    let explain = |more: &[&str]| {
        let graph = "files '*.tar' | untar | shuffle 4 | map 'x=1/value' on_error=skip | batch 2";
        command::json(&forebay(&[], &[&["explain", graph, "--json"], more].concat()))
    };
    assert_eq!(explain(&[])["lints"], json!([]));
    let found = explain(&["--rank", "0/8"]);
    assert_eq!(found["lints"][0]["node"], "map", "{found}");
    assert!(found["line"].as_str().unwrap().contains("shuffle 4 | shard | map"), "{found}");
    // What is even for so many ranks, whatever is in the files, and is not for others.
    for (graph, even, odd) in [
        ("range 99 | take 12 | shard", "3/4", "1/5"),
        ("range 99 | repeat 6 | shard", "0/3", "0/4"),
        ("range 99 | pad_to_length multiple=8 | shard", "0/8", "0/3"),
        ("range 99 | random_sampler replacement=true num_samples=12 | shard", "0/6", "0/7"),
    ] {
        let said = |rank: &str| {
            let found = command::json(&forebay(&[], &["explain", graph, "--json", "--rank", rank]));
            found["lints"].as_array().unwrap().len()
        };
        assert_eq!((said(even), said(odd), said("0/1")), (0, 1, 0), "{graph}");
    }
}

#[test]
fn a_plugin_that_is_kept_away_is_not_asked_and_nothing_is_said_of_it() {
    let registry = registry();
    let graph = line("range 9 | shard drop_last=true | rogue_stream on=sandboxed | batch 2")
        .check(&registry)
        .unwrap();
    let plan = Plan::new(&graph, &registry, Executor::Threads(2)).unwrap();
    for ranks in [None, Some(0), Some(1), Some(u32::MAX)] {
        assert_eq!(forebay_loader::lints(&graph, &registry, &plan, ranks), []);
    }
    let loaded = |pipe: &str| registry.plugin_of(pipe).unwrap().is_loaded();
    assert!(loaded("batch") && !loaded("rogue_stream"), "that of `batch` was asked");
    // As is one that writes: nobody waits for it.
    assert_eq!(lints("range 9 | shard | write_jsonl 'out-{rank}-{}.jsonl'", "inline"), []);
}
