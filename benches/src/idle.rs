//! What a pipeline costs whose consumer sleeps.

use std::{thread, time::Duration};

use forebay_loader::{Error, Executor, Result};

use crate::measure::{cpu_of_all, verdict};

const ASLEEP: Duration = Duration::from_secs(5);
/// For the pipeline to fill up.
const FULL: Duration = Duration::from_secs(2);

pub(crate) fn run() -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let mut rows = Vec::new();
    for executor in [Executor::Threads(4), Executor::Processes(4)] {
        for line in [
            "range 1000000000 | increment | shuffle 1000 | increment | batch 64",
            "range 1000000000 | bench_fill 600000",
        ] {
            let mut loader = crate::loader(line, executor, &registry)?;
            let mut epoch = loader.epoch(0);
            epoch.next().ok_or_else(|| Error::invalid("no sample came"))??;
            thread::sleep(FULL);
            let before = cpu_of_all(&epoch);
            thread::sleep(ASLEEP);
            let got = format!("{:.2} ms of CPU in 5 s", (cpu_of_all(&epoch) - before) * 1e3);
            rows.push(verdict(&format!("{executor}: {line}"), "< 10 ms", &got));
            drop(epoch);
            loader.finish()?;
        }
    }
    Ok(rows)
}
