//! A training loop of 100 ms steps over items that each wait 0.5 ms: what a step takes, by the number of workers. The second
//! epoch begins while the consumer has the last batches of the first.

use std::{
    thread,
    time::{Duration, Instant},
};

use forebay_loader::{Error, Executor, Loader, Registry, Result};

use crate::measure::{median, verdict};

const STARTS: usize = 3;
const STEPS: u32 = 32;
const STEP: Duration = Duration::from_millis(100);

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let begin = Instant::now();
    (0..STEPS).for_each(|_| thread::sleep(STEP));
    let mut rows = vec![format!(
        "floor: the steps alone {:.2} ms",
        begin.elapsed().as_secs_f64() * 1e3 / f64::from(STEPS)
    )];
    let counts = [2, 4, 8];
    let executors = [Executor::Inline]
        .into_iter()
        .chain(counts.map(Executor::Threads))
        .chain(counts.map(Executor::Processes));
    for executor in executors {
        let rounds = (0..STARTS).map(|_| round(&registry, executor)).collect::<Result<Vec<_>>>()?;
        let over = |of: fn(&Round) -> f64| median(&mut rounds.iter().map(of).collect::<Vec<_>>());
        let got = format!(
            "{:.2} ms, from the second epoch on {:.2}; without the wait for the first batch, {:.1} and {:.1} ms, {:.2}",
            over(|round| round.first),
            over(|round| round.second),
            over(|round| round.waits[0]),
            over(|round| round.waits[1]),
            over(|round| round.steady),
        );
        let wanted = if executor == Executor::Inline { "about 132" } else { "<= 100.5 ms" };
        rows.push(verdict(&executor.to_string(), wanted, &got));
    }
    Ok(rows)
}

/// Milliseconds a step over the first epoch, from before the loader is built, and over the second; the waits for their first
/// batches; and what a step takes without these.
struct Round {
    first: f64,
    second: f64,
    waits: [f64; 2],
    steady: f64,
}

fn round(registry: &Registry, executor: Executor) -> Result<Round> {
    let begin = Instant::now();
    let graph = crate::graph("range 2048 | bench_wait 500 | batch 64")?;
    let mut loader = crate::of_graph(graph, executor)?.epochs(2).build(registry)?;
    let [first, second] = [epoch(&mut loader, 0, begin)?, epoch(&mut loader, 1, Instant::now())?];
    loader.finish()?;
    let steps = f64::from(STEPS);
    let steady = (first.0 - first.1 + second.0 - second.1) / steps / 2.0;
    Ok(Round { first: first.0 / steps, second: second.0 / steps, waits: [first.1, second.1], steady })
}

/// Milliseconds from `begin` to the end of the epoch, and to its first batch.
fn epoch(loader: &mut Loader, number: u64, begin: Instant) -> Result<(f64, f64)> {
    let (mut first, mut steps) = (None, 0);
    for batch in loader.epoch(number) {
        batch?;
        first.get_or_insert_with(|| begin.elapsed());
        thread::sleep(STEP);
        steps += 1;
    }
    if steps != STEPS {
        return Err(Error::invalid(format!("{steps} batches came, not {STEPS}")));
    }
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    Ok((millis(begin.elapsed()), millis(first.unwrap_or_default())))
}
