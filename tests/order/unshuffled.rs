//! Runs in which nothing is shuffled, as for validation: what comes out is what the graph gives without what shuffles.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::{Executor, Loader, Value, graph::Graph};
use forebay_tests::{command::forebay, line, registry, within_deadline};

fn values(graph: &Graph, shuffles: bool, executor: Executor) -> Vec<Vec<Value>> {
    let builder = Loader::builder(graph.clone()).executor(executor).seed(3).ranks(0, 1).shuffles(shuffles);
    let mut loader = builder.build(&registry()).unwrap();
    loader.epoch(1).map(|sample| sample.unwrap().values().to_vec()).collect()
}

#[test]
fn what_shuffles_is_left_out_and_the_graph_stays() {
    within_deadline(|| {
        for (text, still) in [
            ("range 50 | shuffle 20 | batch 8 | in_batch_shuffle", "range 50 | batch 8"),
            ("range 50 | window_shuffle 20 | repeat 2 | batch 8", "range 50 | repeat 2 | batch 8"),
            ("range 50 | random_sampler | batch 8", "range 50 | batch 8"),
            ("range 50 | random_sampler replacement=true num_samples=7", "range 50"),
            ("range 50 | distributed_sampler | batch 8", "range 50 | batch 8"),
            ("range 50 | distributed_sampler true", "range 50"),
            ("range 50 | subset_sampler stop=9 shuffle=true", "range 50 | take 9"),
            (
                "range 50 | collect | random_sampler | shuffle 9 | map 'double=value * 2'",
                "range 50 | map 'double=value * 2'",
            ),
            (
                "range 9 | fork @f ; shuffle @s <f.1> 5 ; zip <f, s> prefix=['', 'b']",
                "range 9 | fork @f ; zip <f, f.1> prefix=['', 'b']",
            ),
        ] {
            let graph = line(text);
            let written = graph.to_string();
            let wanted = values(&line(still), true, Executor::Inline);
            assert!(!wanted.is_empty());
            for executor in [Executor::Inline, Executor::Threads(2)] {
                assert_eq!(values(&graph, false, executor), wanted, "{text}");
                assert_ne!(values(&graph, true, executor), wanted, "{text}");
            }
            assert_eq!(graph.to_string(), written);
        }
    });
}

#[test]
fn what_is_wrong_is_refused_all_the_same() {
    within_deadline(|| {
        for text in [
            "range 9 | shuffle 3 bogus=1",
            "range 9 | random_sampler bogus=1",
            "range 9 | shuffle 5 | random_sampler",
        ] {
            assert!(Loader::builder(line(text)).shuffles(false).build(&registry()).is_err(), "{text}");
        }
    });
}

#[test]
fn the_command_leaves_it_out_too() {
    within_deadline(|| {
        let digest = |graph: &str, more: &[&str]| {
            let run = forebay(&[], &[&["run", graph, "--digest", "--quiet"], more].concat());
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            String::from_utf8(run.stdout).unwrap()
        };
        let shuffled = "range 90 | shuffle 40 | batch 4";
        let plain = digest("range 90 | batch 4", &[]);
        assert_eq!(digest(shuffled, &["--no-shuffle"]), plain);
        assert_ne!(digest(shuffled, &[]), plain);
    });
}
