//! The start of four worker processes over a list of 1.2 million paths, what the list adds to each, and a resume in the
//! middle of it.

use std::{fs, io, path::Path, time::Instant};

use forebay_loader::{Error, Executor, Graph, Registry, Result};

use crate::{
    measure::{median, private_memory, verdict},
    scratch::Scratch,
};

const ROUNDS: usize = 5;
const PATHS: usize = 1_200_000;
/// Files that exist: more than are read before the first batch is here.
const FILES: usize = 4096;
const WORKERS: usize = 4;

pub(crate) fn run() -> Result<Vec<String>> {
    let folder = Scratch::new()?;
    let registry = crate::registry()?;
    let name = |at: usize| format!("{}/{:03}/{at:07}.bin", folder.0.display(), at % 1000 / 100);
    fill(&folder.0, name)?;
    let pattern = format!("{}/{{0..9}}{{000000..{:06}}}.bin", folder.0.display(), PATHS / 10 - 1);
    let list: Vec<String> = (0..PATHS).map(name).collect();
    let found = graph((0..PATHS).map(|at| name(at % FILES)).collect())?;
    let graphs = [
        ("one path", graph(vec![name(0)])?),
        ("1.2 M paths as a pattern", graph(vec![pattern])?),
        ("1.2 M paths as a list", graph(list)?),
    ];
    let mut rows = Vec::new();
    for executor in [Executor::Threads(WORKERS), Executor::Processes(WORKERS)] {
        for (name, graph) in &graphs {
            let (mut times, mut built, mut memory) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let [build, first, private] = start(&registry, graph, executor)?;
                built.push(build);
                times.push(first);
                memory.push(private);
            }
            let got = format!(
                "first batch {:.0} ms (worst {:.0}), of which build {:.0} ms; {:.1} MB in each worker",
                median(&mut times),
                times.last().copied().unwrap_or(f64::NAN),
                median(&mut built),
                median(&mut memory)
            );
            rows.push(verdict(&format!("{executor}, {name}"), "<= 300 ms", &got));
        }
    }
    rows.push(verdict("resume at 50 % of the list", "< 20 ms", &resume(&registry, &found)?));
    Ok(rows)
}

/// How long it takes to the first batch after a resume in the middle of the list, in a loader just built.
fn resume(registry: &Registry, graph: &Graph) -> Result<String> {
    let build = || crate::of_graph(graph.clone(), Executor::Threads(2))?.build(registry);
    let mut loader = build()?;
    let mut epoch = loader.epoch(0);
    for batch in epoch.by_ref().take(PATHS / 64 / 2) {
        batch?;
    }
    let snapshot = epoch.snapshot()?;
    drop(epoch);
    loader.finish()?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut loader = build()?;
        let begin = Instant::now();
        let mut epoch = loader.resume(&snapshot)?;
        epoch.next().ok_or_else(|| Error::invalid("no batch came"))??;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(epoch);
        loader.finish()?;
    }
    Ok(format!("{:.1} ms (worst {:.1})", median(&mut times), times.last().copied().unwrap_or(f64::NAN)))
}

fn graph(paths: Vec<String>) -> Result<Graph> {
    Graph::builder()
        .pipe("files")
        .option("paths", paths)
        .option("open", "none")
        .pipe("read")
        .pipe("batch")
        .option("size", 64)
        .build()
}

/// Milliseconds until the loader is built, and until the first batch; megabytes that each worker has for itself.
fn start(registry: &Registry, graph: &Graph, executor: Executor) -> Result<[f64; 3]> {
    let graph = graph.clone();
    let begin = Instant::now();
    let mut loader = crate::of_graph(graph, executor)?.build(registry)?;
    let built = begin.elapsed();
    let mut epoch = loader.epoch(0);
    epoch.next().ok_or_else(|| Error::invalid("no batch came"))??;
    let first = begin.elapsed();
    let workers = epoch.worker_processes();
    let memory: u64 = workers.iter().map(|&worker| private_memory(worker)).sum();
    drop(epoch);
    loader.finish()?;
    let each = memory as f64 / 1e6 / workers.len().max(1) as f64;
    Ok([built.as_secs_f64() * 1e3, first.as_secs_f64() * 1e3, each])
}

/// Makes the first files.
fn fill(folder: &Path, name: impl Fn(usize) -> String) -> io::Result<()> {
    for at in 0..FILES {
        let name = name(at);
        Path::new(&name).parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(name, [7; 100])?;
    }
    for at in 0..FILES {
        fs::write(folder.join(format!("0{at:06}.bin")), [7; 100])?;
    }
    Ok(())
}
