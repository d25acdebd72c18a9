//! Iterating the samples of warm shards, without decoding: `files | untar`; and of the same shards packed, and on a server.

use std::{
    fs,
    io::{self, BufReader, Write as _},
    path::Path,
    sync::Arc,
};

use flate2::{Compression, write::GzEncoder};
use forebay_loader::{Executor, Loader, Registry, Result};
use forebay_unpack::{Codec, Unpacked};

use crate::{
    measure::{Row, Spent, Unit, spend},
    scratch::Scratch,
    server::{Manner, Server},
};

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
    let mut lines = vec![format!("{samples} samples")];
    lines.extend(rows.iter().map(ToString::to_string));
    lines.extend(streams(folder, samples, &registry)?);
    Ok(lines)
}

/// The same shards as streams, each beside what brings the bytes alone: packed ones, and those of a server.
fn streams(folder: &Path, samples: u64, registry: &Registry) -> Result<Vec<String>> {
    let (server, packed) = (Server::new(Manner::default()), Scratch::new()?);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&path)?;
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(&bytes)?;
        fs::write(packed.0.join(format!("{name}.gz")), gz.finish()?)?;
        server.put(&name, Arc::new(bytes));
        names.push(server.url(&name));
    }
    let gz = format!("files '{}/*.gz'", packed.0.display());
    let far =
        format!("files [{}]", names.iter().map(|url| format!("'{url}'")).collect::<Vec<_>>().join(", "));
    let graphs = [format!("{gz} | untar"), format!("{far} open=read"), format!("{far} | untar")];
    let mut rounds: [Vec<Spent>; 4] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(spend(|| unpack(&packed.0))?.0);
        for (graph, rounds) in graphs.iter().zip(&mut rounds[1..]) {
            let mut loader = crate::loader(graph, Executor::Inline, registry)?;
            let (spent, given) =
                spend(|| loader.epoch(0).try_fold(0, |count, sample| sample.map(|_| count + 1)))?;
            assert!(graph.ends_with("read") || given == samples, "the run lost samples");
            rounds.push(spent);
            loader.finish()?;
        }
    }
    let names =
        ["floor: unpacking gz alone", "gz, inline", "floor: whole shards over http", "over http, inline"];
    let row = |(name, rounds): (&str, Vec<Spent>)| {
        Row { name: name.to_owned(), samples, rounds, unit: Unit::Micros }.to_string()
    };
    Ok(names.into_iter().zip(rounds).map(row).collect())
}

/// Unpacks all files of a folder, and looks at nothing.
fn unpack(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let file = BufReader::with_capacity(1 << 16, fs::File::open(entry?.path())?);
        bytes += io::copy(&mut Unpacked::new(Codec::Gzip, Box::new(file))?, &mut io::sink())?;
    }
    Ok(bytes)
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
