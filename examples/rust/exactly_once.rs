//! Two ranks share the data, and an audit of both proves that every sample came exactly once.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example exactly_once
//! ```

use std::{env, fs};

use forebay_loader::{Executor, Graph, Loader, Registry, Result, audit};

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    let folder = env::temp_dir().join(format!("forebay-exactly-once-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let registry = Registry::from_env()?;
    let graph = Graph::from_line("range 1000 | shuffle 100 | batch 8")?;
    let files: Vec<_> = (0..2).map(|rank| folder.join(format!("rank-{rank}"))).collect();
    for (rank, file) in (0..).zip(&files) {
        let loader = Loader::builder(graph.clone()).executor(Executor::Threads(2)).seed(7);
        let mut loader = loader.ranks(rank, 2).audit(file).build(&registry)?;
        loader.epoch(0).try_for_each(|batch| batch.map(drop))?;
        loader.finish()?;
    }
    for found in audit(&files)? {
        println!("epoch {}: {} samples, exactly once: {}", found.epoch, found.given, found.exactly_once);
    }
    let found = audit(&files[..1])?;
    println!("of one rank alone: exactly once: {}", found.iter().all(|found| found.exactly_once));
    fs::remove_dir_all(folder)?;
    Ok(())
}
