//! Iterating the samples of warm shards, without decoding: `files | untar`.

use std::{fs, path::Path};

use forebay_loader::{Executor, Loader, Result};

use crate::measure::{Row, Unit, spend};

const ROUNDS: usize = 7;

pub(crate) fn run(folder: &Path) -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let pattern = format!("{}/*.tar", folder.display());
    let samples = count(folder)?;
    let mut rows: Vec<Row> = ["floor: bare walk over the members, read", "inline", "threads:1", "threads:2"]
        .into_iter()
        .map(|name| Row { name: name.to_owned(), samples, rounds: Vec::new(), unit: Unit::Micros })
        .collect();
    for _ in 0..ROUNDS {
        rows[0].rounds.push(spend(|| floor(folder))?.0);
        for row in &mut rows[1..] {
            let executor: Executor = row.name.parse()?;
            let mut loader = Loader::builder(crate::graph(&format!("files '{pattern}' | untar"))?)
                .executor(executor)
                .build(&registry)?;
            let (spent, found) = spend(|| {
                loader.epoch(0).try_fold(0_u64, |count, sample| {
                    sample.map(|sample| count + u64::from(sample.values().len() > 1))
                })
            })?;
            assert_eq!(found, samples, "the run lost samples");
            row.rounds.push(spent);
            loader.finish()?;
        }
    }
    Ok(std::iter::once(format!("{samples} samples")).chain(rows.iter().map(ToString::to_string)).collect())
}

/// Every member's name and place, from memory read by the system, without samples.
fn floor(folder: &Path) -> Result<u64> {
    let mut members = 0;
    for entry in fs::read_dir(folder)? {
        let bytes = fs::read(entry?.path())?;
        for member in forebay_tar::walk(&bytes) {
            members += u64::from(!member?.name.is_empty());
        }
    }
    Ok(members)
}

/// How many samples there are, by their names.
fn count(folder: &Path) -> Result<u64> {
    let mut samples = 0;
    for entry in fs::read_dir(folder)? {
        let bytes = fs::read(entry?.path())?;
        let mut last = Vec::new();
        for member in forebay_tar::walk(&bytes) {
            let member = member?;
            let stem: Vec<u8> = member.name.split(|&byte| byte == b'.').next().unwrap_or_default().to_vec();
            if stem != last {
                samples += 1;
                last = stem;
            }
        }
    }
    Ok(samples)
}
