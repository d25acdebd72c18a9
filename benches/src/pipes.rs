//! What each pipe costs a sample, beside the same graph without it; inline, behind the library boundary.

use forebay_loader::{Error, Executor, Result};

use crate::measure::{percentile, spend};

const SAMPLES: u64 = 1_000_000;
const ROUNDS: usize = 5;

/// What a pipe may cost a sample of its input, in nanoseconds of CPU.
const WANTED: f64 = 60.0;

/// The pipe, a graph with it, and the same without; `N` stands for the number of samples, `H` for half of it.
const CASES: &[(&str, &str, &str)] = &[
    ("take", "range N | take N | batch 1000", BARE),
    ("skip", "range N | skip 5 | batch 1000", BARE),
    ("filter", "range N | filter 'value % 3 != 1' | batch 1000", BARE),
    ("map", "range N | map 'twice=value * 2' | batch 1000", BARE),
    ("map, in its place", "range N | map 'value=value + 1' | batch 1000", BARE),
    ("select", "range N | select value | batch 1000", BARE),
    ("rename", "range N | rename value=number | batch 1000", BARE),
    ("repeat", "range H | repeat 2 | batch 1000", BARE),
    ("shard", "range N | shard | batch 1000", BARE),
    ("shuffle 10000", "range N | shuffle 10000 | batch 1000", BARE),
    ("cache, first epoch", "range N | cache | batch 1000", BARE),
    ("fork, zip", "range N | fork @f 2 ; zip <f, f.1> prefix=['', 'b'] | batch 1000", BARE),
    ("demux, mux", "range N | demux @d count=2 ; mux <d, d.1> | batch 1000", BARE),
    ("concat", "range @a H ; range @b H ; concat <a, b> | batch 1000", BARE),
    ("mix", "range @a H ; range @b H ; mix <a, b> stop=all_exhausted | batch 1000", BARE),
    ("sequential_sampler", "range N | sequential_sampler | batch 1000", BARE),
    ("random_sampler", "range N | random_sampler | batch 1000", BARE),
    ("random_sampler, replacement", "range N | random_sampler replacement=true | batch 1000", BARE),
    ("distributed_sampler", "range N | distributed_sampler | batch 1000", BARE),
    ("subset_sampler", "range N | subset_sampler step=-1 | batch 1000", BARE),
    ("unbatch", "range N | batch 1000 | unbatch | batch 1000", BARE),
    ("batch 64", "range N | batch 64", "range N | batch 1000"),
];

const BARE: &str = "range N | batch 1000";

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let cost = |text: &str| {
        let text = text.replace('N', &SAMPLES.to_string()).replace('H', &(SAMPLES / 2).to_string());
        let mut loader = crate::loader(&text, Executor::Inline, &registry)?;
        let (spent, samples) =
            spend(|| loader.epoch(0).try_fold(0_u64, |count, sample| sample.map(|_| count + 1)))?;
        loader.finish()?;
        if samples == 0 {
            return Err(Error::bug(format!("{text} gave nothing")));
        }
        Ok(spent.cpu * 1e9 / SAMPLES as f64)
    };
    let mut rows =
        vec![format!("{:<32}{:>12}{:>12}{:>10}", "pipe, ns of CPU a sample", "without", "with", "costs")];
    for (name, with, without) in CASES {
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            costs[0].push(cost(without)?);
            costs[1].push(cost(with)?);
        }
        // The best of each: what else the machine does only adds.
        let [without, with] = costs.map(|mut costs| percentile(&mut costs, 0.0));
        let more = with - without;
        let mark = if more > WANTED { format!("  above {WANTED}") } else { String::new() };
        rows.push(format!("{name:<32}{without:>12.1}{with:>12.1}{more:>10.1}{mark}"));
    }
    Ok(rows)
}
