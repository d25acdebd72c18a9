//! Stops in the middle of an epoch, and goes on in another loader where the first was. One pipe is a closure of this program; it makes rows of
//! different lengths.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example resume -- examples/dedup_plugin/tests/data/headlines.txt
//! ```

use std::env;

use forebay_loader::{
    Error, Executor, Graph, Loader, Registry, Result, Sample, SampleExt as _, Snapshot, Value,
};

/// Adds how many letters each word of a line has.
fn count_letters(line: &mut Sample) -> Result<()> {
    let text =
        line.get("text").and_then(Value::as_str).ok_or_else(|| Error::other("the line has no text"))?;
    let letters: Vec<i64> = text.split_whitespace().map(|word| word.chars().count() as i64).collect();
    line.set("letters", letters);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn show(batch: &Sample) -> Result<()> {
    for (text, letters) in batch.texts("text")?.into_iter().zip(batch.ragged::<i64>("letters")?.iter()) {
        println!("{letters:?} {text}");
    }
    Ok(())
}

fn main() -> Result<()> {
    let file =
        env::args().nth(1).unwrap_or_else(|| "examples/dedup_plugin/tests/data/headlines.txt".to_owned());
    let registry = Registry::from_env()?.with_map("count_letters", |line, _| count_letters(line))?;
    let graph = Graph::builder()
        .pipe("files")
        .option("paths", file)
        .pipe("lines")
        .pipe("text_lines")
        .pipe("shuffle")
        .option("size", 100)
        .pipe("count_letters")
        .pipe("ragged_batch")
        .option("size", 4)
        .check(&registry)?;
    let build = || Loader::builder(graph.clone()).executor(Executor::Threads(2)).seed(7).build(&registry);

    // Two batches, and where the loader was then, as a program keeps it beside its own checkpoint.
    let mut loader = build()?;
    for batch in loader.epoch(0).take(2) {
        show(&batch?)?;
    }
    let saved = loader.snapshot()?.to_json();
    drop(loader);

    let mut loader = build()?;
    for batch in loader.resume(&Snapshot::from_json(&saved)?)? {
        show(&batch?)?;
    }
    Ok(())
}
