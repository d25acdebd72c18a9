//! Three pipes that are closures of the program: a filter, a flat map and a map. They run on several threads at once.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example closures
//! ```

use forebay_loader::{Executor, Graph, Loader, Registry, Result, Sample, SampleExt as _, Value};

fn value(sample: &Sample) -> i64 {
    sample.get("value").and_then(Value::as_i64).unwrap_or_default()
}

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    let registry = Registry::from_env()?
        .with_filter("even", |sample, _| Ok(value(sample) % 2 == 0))?
        .with_flat_map("twice", |sample, _| Ok(vec![sample.clone(), sample]))?
        .with_map("noise", |sample, cx| {
            // Random numbers follow from the seed, the epoch and the sample, so they are the same on any executor.
            let drawn = cx.rng(sample.uid()).below(100);
            sample.set("noise", drawn as i64);
            Ok(())
        })?;
    let graph = Graph::from_line("range 10 | even | twice | noise | batch 10")?;
    for executor in [Executor::Inline, Executor::Threads(4)] {
        let mut loader = Loader::builder(graph.clone()).executor(executor).seed(7).build(&registry)?;
        for batch in loader.epoch(0) {
            let batch = batch?;
            println!("{:?} {:?}", &*batch.tensor::<i64>("value")?, &*batch.tensor::<i64>("noise")?);
        }
    }
    Ok(())
}
