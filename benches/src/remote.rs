//! Shards on a server, and the same on one that answers 20 ms later: what the distance costs.

use std::{sync::Arc, time::Duration};

use forebay_loader::{Error, Executor, Registry, Result};

use crate::{
    measure::{Spent, median, spend, verdict},
    server::{Manner, Server},
};

const ROUNDS: usize = 5;
const SHARDS: usize = 64;
/// Of each shard, with so many bytes each: 10 MiB with their headers.
const MEMBERS: usize = 100;
const MEMBER: usize = 104_300;
const FAR: Duration = Duration::from_millis(20);

pub(crate) fn run() -> Result<Vec<String>> {
    let (registry, shard) = (crate::registry()?, Arc::new(shard()?));
    let graphs = ["prefetch | untar", "untar"];
    let mut rounds = graphs.map(|_| [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        for (graph, rounds) in graphs.iter().zip(&mut rounds) {
            for (delay, spent) in [Duration::ZERO, FAR].into_iter().zip(rounds) {
                spent.push(read(graph, delay, &shard, &registry)?);
            }
        }
    }
    let total = (SHARDS * shard.len()) as f64 / 1e6;
    let row = |(graph, [near, far]): (&str, [Vec<Spent>; 2])| {
        let ([near, near_cpu], [far, far_cpu]) = (middle(&near), middle(&far));
        let got = format!(
            "{:.0} % ({:.0} of {:.0} MB/s; CPU {far_cpu:.2} and {near_cpu:.2} s, the server's included)",
            near / far * 100.0,
            total / far,
            total / near,
        );
        let wanted = if graph.starts_with("prefetch") { ">= 80 %" } else { "nothing" };
        verdict(&format!("{graph}: 20 ms away beside 0"), wanted, &got)
    };
    Ok(graphs.into_iter().zip(rounds).map(row).collect())
}

/// The medians of wall and CPU seconds.
fn middle(rounds: &[Spent]) -> [f64; 2] {
    [|spent: &Spent| spent.wall, |spent: &Spent| spent.cpu]
        .map(|clock| median(&mut rounds.iter().map(clock).collect::<Vec<_>>()))
}

/// What one epoch costs. The server is a new one, so nothing of it is known or kept from before.
fn read(graph: &str, delay: Duration, shard: &Arc<Vec<u8>>, registry: &Registry) -> Result<Spent> {
    let server = Server::new(Manner { delay, ..Manner::default() });
    for number in 0..SHARDS {
        server.put(&format!("{number:03}.tar"), shard.clone());
    }
    let line = format!("files '{}' | {graph}", server.url(&format!("{{000..{:03}}}.tar", SHARDS - 1)));
    let mut loader = crate::loader(&line, Executor::Threads(2), registry)?;
    let (spent, given) = spend(|| loader.epoch(0).try_fold(0, |count, sample| sample.map(|_| count + 1)))?;
    loader.finish()?;
    if given != SHARDS * MEMBERS {
        return Err(Error::invalid(format!("{given} samples came, not {}", SHARDS * MEMBERS)));
    }
    Ok(spent)
}

fn shard() -> Result<Vec<u8>> {
    let mut shard = tar::Builder::new(Vec::new());
    for member in 0..MEMBERS {
        let mut header = tar::Header::new_ustar();
        header.set_size(MEMBER as u64);
        header.set_mode(0o644);
        let bytes = vec![member as u8; MEMBER];
        shard.append_data(&mut header, format!("{member:06}.bin"), &bytes[..])?;
    }
    Ok(shard.into_inner()?)
}
