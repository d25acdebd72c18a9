//! What the engine costs: `range | increment | batch 64`, every pipe behind the library boundary.

use std::hint::black_box;

use forebay_loader::{Executor, Loader, Result};

use crate::measure::{Row, Unit, spend};

const SAMPLES: u64 = 1_000_000;
const ROUNDS: usize = 7;

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let line = format!("range {SAMPLES} | increment | batch 64");
    let mut rows: Vec<Row> =
        ["floor: a loop over boxed closures", "inline", "threads:1", "threads:2", "threads:4"]
            .into_iter()
            .map(|name| Row {
                name: name.to_owned(),
                samples: SAMPLES,
                rounds: Vec::new(),
                unit: Unit::Nanos,
            })
            .collect();
    for _ in 0..ROUNDS {
        rows[0].rounds.push(spend(|| Ok(floor()))?.0);
        for row in &mut rows[1..] {
            let executor: Executor = row.name.parse()?;
            let mut loader = Loader::builder(crate::graph(&line)?).executor(executor).build(&registry)?;
            let (spent, batches) = spend(|| {
                loader.epoch(0).try_fold(0_u64, |count, batch| Ok(count + u64::from(batch.is_ok())))
            })?;
            assert_eq!(batches, SAMPLES.div_ceil(64), "the run lost batches");
            row.rounds.push(spent);
            loader.finish()?;
        }
    }
    Ok(rows.iter().map(ToString::to_string).collect())
}

/// The same numbers through three closures behind pointers, one sample at a time.
fn floor() -> u64 {
    let mut next = 0_i64;
    let mut source: Box<dyn FnMut() -> i64> = black_box(Box::new(move || {
        next += 1;
        next - 1
    }));
    let add: Box<dyn Fn(i64) -> i64> = black_box(Box::new(|value| value + 1));
    let mut batches = 0;
    let mut batch = Vec::with_capacity(64);
    for _ in 0..SAMPLES {
        batch.push(add(source()));
        if batch.len() == 64 {
            batches += u64::from(black_box(&batch).len() == 64);
            batch = Vec::with_capacity(64);
        }
    }
    batches
}
