//! What each pipe costs a sample, beside the same graph without it; inline, behind the library boundary.

use forebay_loader::{Error, Executor, Registry, Result};

use crate::{
    measure::{percentile, private_memory, spend, verdict},
    scratch::Scratch,
};

const SAMPLES: u64 = 1_000_000;
const ROUNDS: usize = 9;

/// What a pipe may cost a sample, in nanoseconds of CPU: of its input, or of its output where it makes several of one.
const WANTED: f64 = 60.0;

/// Those with a bar of their own: two or three pipes in a row, what holds samples back, and five million sequences a minute.
const OWN: &[(&str, f64)] = &[
    ("fork, zip", 2.0 * WANTED),
    ("demux, mux", 2.0 * WANTED),
    ("collect", 3.0 * WANTED),
    ("shuffle 10000", 150.0),
    ("pack", 12_000.0),
    ("pack, lengths of text", 12_000.0),
];

/// The pipe, a graph with it, and the same without; `N` stands for the number of samples, `H` for half of it, `Q` for a fourth.
const CASES: &[(&str, &str, &str)] = &[
    ("take", "range N | take N | batch 1000", BARE),
    ("skip", "range N | skip 5 | batch 1000", BARE),
    ("filter", "range N | filter 'value % 3 != 1' | batch 1000", BARE),
    ("map", "range N | map 'twice=value * 2' | batch 1000", BARE),
    ("map, in its place", "range N | map 'value=value + 1' | batch 1000", BARE),
    ("select", "range N | select value | batch 1000", BARE),
    ("rename", "range N | rename 'value=number' | batch 1000", BARE),
    ("repeat", "range H | repeat 2 | batch 1000", BARE),
    ("shard", "range N | shard | batch 1000", BARE),
    ("shuffle 10000", "range N | shuffle 10000 | batch 1000", BARE),
    ("window_shuffle", "range N | window_shuffle 10000 | batch 1000", BARE),
    ("cache, first epoch", "range N | cache | batch 1000", BARE),
    ("cache in a folder, first epoch", "range N | cache FOLDER | batch 1000", BARE),
    (
        "cache in a folder, both of two",
        "range H | cache FOLDER | repeat 2 | batch 1000",
        "range H | repeat 2 | batch 1000",
    ),
    ("fork, zip", "range N | fork @f 2 ; zip <f, f.1> prefix=['', 'b'] | batch 1000", BARE),
    ("demux, mux", "range N | demux @d count=2 ; mux <d, d.1> | batch 1000", BARE),
    ("concat", "range @a H ; range @b H ; concat <a, b> | batch 1000", BARE),
    ("mix", "range @a H ; range @b H ; mix <a, b> stop=all_exhausted | batch 1000", BARE),
    ("sequential_sampler", "range N | sequential_sampler | batch 1000", BARE),
    ("random_sampler", "range N | random_sampler | batch 1000", BARE),
    ("random_sampler, replacement", "range N | random_sampler replacement=true | batch 1000", BARE),
    ("distributed_sampler", "range N | distributed_sampler | batch 1000", BARE),
    ("subset_sampler", "range N | subset_sampler step=-1 | batch 1000", BARE),
    ("take_while", "range N | take_while 'value >= 0' | batch 1000", BARE),
    ("skip_while", "range N | skip_while 'value < 5' | batch 1000", BARE),
    ("slice, from the end", "range N | slice 5 stop=-100 | batch 1000", BARE),
    ("assert_length", "range N | assert_length N | batch 1000", BARE),
    ("pad_to_length", "range N | pad_to_length N | batch 1000", BARE),
    ("enumerate", "range N | enumerate | batch 1000", BARE),
    ("cast", "range N | cast 'value=f32' | batch 1000", BARE),
    ("drop", "range N | map 'more=1' | drop more | batch 1000", "range N | map 'more=1' | batch 1000"),
    (
        "flatten",
        "range N | map \"s={'a': 1}\" | flatten | batch 1000",
        "range N | map \"s={'a': 1}\" | batch 1000",
    ),
    ("map, random", "range N | map 'x=random()' | batch 1000", BARE),
    ("scan", "range N | scan 'total=total + value' init='total=0' | batch 1000", BARE),
    ("unique", "range N | unique value | batch 1000", BARE),
    ("subsample", "range N | subsample 0.9 | batch 1000", BARE),
    ("random_split", "range N | random_split [9, 1] take=0 | batch 1000", BARE),
    (
        "rejection_resample",
        "range N | map 'c=value % 2' | rejection_resample c target=[1, 1] | batch 1000",
        "range N | map 'c=value % 2' | batch 1000",
    ),
    ("sort 1000", "range N | sort '-value' size=1000 | batch 1000", BARE),
    ("repeat_each 4", "range Q | repeat_each 4 | batch 1000", BARE),
    ("flat_map, lists of 4", "range Q | flat_map '[value, 1, 2, 3]' keep=false | batch 1000", BARE),
    ("mux of blocks", "range @a H ; range @b H ; mux <a, b> block=16 | batch 1000", BARE),
    (
        "mix, proportional",
        "range @a H ; range @b H ; mix <a, b> stop=all_exhausted draw=proportional | batch 1000",
        BARE,
    ),
    (
        "zip_by_key",
        "range @a H ; range @b H ; zip_by_key <a, b> key=value prefix=['', 'b'] | batch 1000",
        BARE,
    ),
    (
        "lookup in 1000 rows",
        "range 1000 | repeat @a 1000 ; range 1000 | map @t 'row=value' ; lookup <a, t> key=value | batch 1000",
        "range 1000 | repeat 1000 | batch 1000",
    ),
    ("group_by 8", "range N | group_by 'value % 64' size=8 buffer=1000", "range N | batch 8"),
    ("window 64", "range N | window 64", BARE),
    ("padded_batch 64", "range N | padded_batch 64", BARE),
    ("ragged_batch 64", "range N | ragged_batch 64", BARE),
    (
        "bucket_by_length",
        "range N | bucket_by_length 'value % 64' boundaries=[16, 32] sizes=[64, 64, 64]",
        BARE,
    ),
    ("max_tokens", "range N | max_tokens '1 + value % 64' most=2048", BARE),
    ("rebatch 64 to 48", "range N | batch 64 | rebatch 48", "range N | batch 64"),
    ("in_batch_shuffle", "range N | batch 64 | in_batch_shuffle", "range N | batch 64"),
    (
        "pack",
        "range N | map 'tokens=[value, value, value]' | pack 2048 fields=tokens",
        "range N | map 'tokens=[value, value, value]' | batch 1000",
    ),
    (
        "pack, lengths of text",
        "range N | bench_sequence | pack 2048 fields=tokens",
        "range N | bench_sequence | drop tokens | batch 1000",
    ),
    ("unbatch", "range N | batch 1000 | unbatch | batch 1000", BARE),
    ("collect", "range N | collect | sequential_sampler | batch 1000", BARE),
    ("weighted_sampler", "range 3 | weighted_sampler [1, 2, 3] num_samples=N | batch 1000", BARE),
    (
        "label",
        "range N | map [\"path='heron/7.jpg'\", 'label=0', \"class='none'\"] | label ['crane', 'heron'] | batch 1000",
        "range N | map [\"path='heron/7.jpg'\", 'label=0', \"class='none'\"] | batch 1000",
    ),
    (
        "label, two fields more",
        "range N | map \"path='heron/7.jpg'\" | label ['crane', 'heron'] | batch 1000",
        "range N | map \"path='heron/7.jpg'\" | batch 1000",
    ),
    (
        "group, a file of 2",
        "range N | map [\"path=value % 2 == 0 ? 'a.jpg' : 'a.txt'\", \"bytes=b'x'\"] | group | batch 1000",
        "range N | map [\"path=value % 2 == 0 ? 'a.jpg' : 'a.txt'\", \"bytes=b'x'\"] | batch 1000",
    ),
    (
        "decode, nothing to do",
        "range N | map \"txt='heron'\" | decode | batch 1000",
        "range N | map \"txt='heron'\" | batch 1000",
    ),
    ("collate, nothing to do", "range N | collate | batch 1000", BARE),
    (
        "collate, lists of 3",
        "range N | map 'tokens=[value, value, value]' | collate | batch 1000",
        "range N | map 'tokens=[value, value, value]' | batch 1000",
    ),
    ("batch 64", "range N | batch 64", "range N | batch 1000"),
];

const BARE: &str = "range N | batch 1000";

/// All cases, or those whose names have `only` in them.
pub(crate) fn run(only: &str) -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let cost = |text: &str| {
        let numbers = [('N', SAMPLES), ('H', SAMPLES / 2), ('Q', SAMPLES / 4)];
        let text = numbers
            .iter()
            .fold(text.to_owned(), |text, (letter, count)| text.replace(*letter, &count.to_string()));
        // A new one each time, so that the first epoch writes.
        let folder = Scratch::new()?;
        let text = text.replace("FOLDER", &folder.0.display().to_string());
        let mut loader = crate::loader(&text, Executor::Inline, &registry)?;
        let (spent, samples) =
            spend(|| loader.epoch(0).try_fold(0_u64, |count, sample| sample.map(|_| count + 1)))?;
        loader.finish()?;
        if samples == 0 {
            return Err(Error::bug(format!("{text} gave nothing")));
        }
        Ok(spent.cpu * 1e9 / SAMPLES as f64)
    };
    let cases: Vec<_> = CASES.iter().filter(|(name, ..)| name.contains(only)).collect();
    // Round by round over all of them, so that a slow minute of the machine is one round's and not one pipe's.
    let mut costs = vec![[Vec::new(), Vec::new()]; cases.len()];
    for _ in 0..ROUNDS {
        for ((_, with, without), costs) in cases.iter().zip(&mut costs) {
            costs[0].push(cost(without)?);
            costs[1].push(cost(with)?);
        }
    }
    let mut rows =
        vec![format!("{:<32}{:>12}{:>12}{:>10}", "pipe, ns of CPU a sample", "without", "with", "costs")];
    for ((name, ..), costs) in cases.iter().zip(costs) {
        // The best of each: what else the machine does only adds.
        let [without, with] = costs.map(|mut costs| percentile(&mut costs, 0.0));
        let more = with - without;
        let wanted = OWN.iter().find(|(own, _)| own == name).map_or(WANTED, |(_, wanted)| *wanted);
        let mark = if more > wanted { format!("  above {wanted}") } else { String::new() };
        rows.push(format!("{name:<32}{without:>12.1}{with:>12.1}{more:>10.1}{mark}"));
    }
    if FIRST.contains(only) {
        first(&registry, 10)?;
        rows.extend([first(&registry, 1_000_000_000)?, first(&registry, 1_000_000_000_000)?]);
    }
    Ok(rows)
}

const FIRST: &str = "first of a global shuffle";

/// How long it takes from a graph to the first sample of a permutation of so many, and how much memory.
fn first(registry: &Registry, count: u64) -> Result<String> {
    let text = format!("range {count} | random_sampler");
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    // The plugin is loaded by then.
    for _ in 0..ROUNDS {
        let before = private_memory(std::process::id());
        let (spent, (loader, sample)) = spend(|| {
            let mut loader = crate::loader(&text, Executor::Inline, registry)?;
            let sample = loader.epoch(0).next().transpose()?;
            Ok((loader, sample))
        })?;
        memory.push(private_memory(std::process::id()).saturating_sub(before) as f64 / 1e3);
        times.push(spent.wall * 1e3);
        if sample.is_none() {
            return Err(Error::bug(format!("{text} gave nothing")));
        }
        drop(loader);
    }
    let (time, memory) = (percentile(&mut times, 1.0), percentile(&mut memory, 1.0));
    let got = format!("{time:.2} ms, {memory:.0} kB");
    Ok(verdict(&format!("{FIRST} of {count:.0e}"), "1 ms, 1000 kB", &got))
}
