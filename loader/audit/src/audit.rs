//! Audits: reads the files of a run, and judges each epoch.

use std::{collections::BTreeMap, path::Path};

use forebay_core::{Error, Result};

use crate::{
    judge,
    records::{EpochRecords, RunOfEpoch, lineage, runs},
    verdict::EpochAudit,
};

/// Reads audit files, of one or several runs and of all ranks, and says for each epoch whether every sample came
/// exactly once.
///
/// Cost: some hundred bytes of memory for each sample of an epoch, and some seconds for a million samples.
///
/// # Errors
/// `Io`; `Corrupt` for a file that is no audit file; `Invalid` for files of different graphs or seeds.
pub fn audit<P: AsRef<Path>>(files: &[P]) -> Result<Vec<EpochAudit>> {
    let mut epochs: BTreeMap<u64, Vec<RunOfEpoch>> = BTreeMap::new();
    let mut first: Option<(String, u64)> = None;
    for file in files {
        let file = file.as_ref();
        let within = |error: Error| error.context("file", file.display());
        for run in runs(file).map_err(within)? {
            let of = (run.begin.graph.clone(), run.begin.seed);
            if *first.get_or_insert_with(|| of.clone()) != of {
                let message =
                    "the graph or seed of the file differs from those before it; audit it by itself";
                return Err(within(Error::invalid(message)));
            }
            epochs.entry(run.begin.epoch).or_default().push(run);
        }
    }
    if epochs.is_empty() {
        return Err(Error::invalid("found no run in these files"));
    }
    let judge = |(epoch, mut runs): (u64, Vec<RunOfEpoch>)| {
        runs.sort_by_key(|run| run.begin.begun);
        if runs.iter().any(|run| run.begin.nodes.iter().any(|part| part.unordered)) {
            runs = lineage(runs);
        }
        let mut records = EpochRecords::default();
        for run in runs {
            records.add(&run).map_err(|error| error.context("file", run.file.display()))?;
        }
        Ok(judge::judge(epoch, &records))
    };
    epochs.into_iter().map(judge).collect()
}
