//! How bright the photographs of each class are. Batches are read as slices of numbers, and this program is the program of its own worker
//! processes.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example brightness -- 'examples/photos/*.tar'
//! ```

use std::{collections::BTreeMap, env};

use forebay_loader::{Executor, Graph, Loader, Registry, Result, SampleExt as _, serve_if_worker};

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    serve_if_worker();
    let paths = env::args().nth(1).unwrap_or_else(|| "examples/photos/*.tar".to_owned());
    let registry = Registry::from_env()?;
    let graph = Graph::builder()
        .pipe("files")
        .option("paths", paths)
        .pipe("untar")
        .pipe("select")
        .option("fields", vec!["jpg", "cls"])
        .pipe("resize")
        .option("size", 64)
        .pipe("decode")
        .pipe("batch")
        .option("size", 32)
        .check(&registry)?;
    let mut loader =
        Loader::builder(graph).executor(Executor::Processes(2)).worker_self()?.build(&registry)?;

    // By class: how many photographs, and the sum of their means.
    let mut classes = BTreeMap::<i64, (u32, f64)>::new();
    for batch in loader.epoch(0) {
        let batch = batch?;
        let (photos, labels) = (batch.tensor::<u8>("jpg")?, batch.tensor::<i64>("cls")?);
        for (photo, &label) in photos.chunks_exact(photos.len() / labels.len()).zip(&*labels) {
            let sum: u64 = photo.iter().map(|&pixel| u64::from(pixel)).sum();
            let (count, means) = classes.entry(label).or_default();
            *count += 1;
            *means += sum as f64 / photo.len() as f64;
        }
    }
    for (label, (count, means)) in classes {
        println!("class {label}: {count} photographs, brightness {:.0} of 255", means / f64::from(count));
    }
    Ok(())
}
