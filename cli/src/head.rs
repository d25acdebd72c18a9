//! `forebay head`: the first samples of whatever there is at a path, or of a graph.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args as Arguments;
use forebay_loader::{Executor, Graph, Loader, Sample};

use crate::{
    open,
    outcome::{Result, Stop},
    preview::{self, Field},
    print::{self, Table},
};

/// What `forebay head` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A file, a folder, a pattern such as 'shards/*.tar', or a graph
    path: String,
    /// How many samples to show
    #[arg(short = 'n', long = "samples", value_name = "N", default_value_t = 5)]
    samples: usize,
}

/// Shows the first samples.
pub(crate) fn head(args: &Args, plugins: &[PathBuf]) -> Result {
    let graph = if open::is_graph(&args.path) { open::graph(&args.path)? } else { look_into(&args.path)? };
    let registry = open::registry(plugins)?;
    let mut loader =
        Loader::builder(graph).executor(Executor::Inline).build(&registry).map_err(Stop::early)?;
    let mut shown = 0;
    for sample in loader.epoch(0).take(args.samples) {
        let sample = sample?;
        print::text(|out| show(&sample, shown > 0, out))?;
        shown += 1;
    }
    if shown == 0 && args.samples > 0 {
        print::text(|out| writeln!(out, "nothing is there"))?;
    }
    Ok(loader.finish()?)
}

fn show(sample: &Sample, follows: bool, out: &mut dyn Write) -> io::Result<()> {
    if follows {
        writeln!(out)?;
    }
    writeln!(out, "{}", sample.key())?;
    let mut table = Table::new(&["", "", "", ""]);
    for (field, (_, value)) in Field::all(sample).into_iter().zip(sample.fields()) {
        let shape = field.shape();
        table.row([field.name, field.dtype, shape, preview::short(value)]);
    }
    table.write(out, "  ")
}

/// The graph that shows what is at a path: archives are opened, and all that has a decoder is decoded.
fn look_into(path: &str) -> Result<Graph> {
    let builder = Graph::builder().pipe("files").option("paths", path);
    let builder = match extension(path).as_deref() {
        Some("tar") => builder.pipe("untar"),
        // The decoder is chosen by the field's name, as if the file were a member of an archive.
        Some(extension) => builder.pipe("rename").option("fields", format!("bytes={extension}")),
        None => builder,
    };
    builder.pipe("decode").build().map_err(Stop::Usage)
}

/// The extension of a file or pattern, or the one that all files in a folder share.
fn extension(path: &str) -> Option<String> {
    let of = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    let path = Path::new(path);
    let mut extensions = BTreeSet::new();
    match fs::read_dir(path) {
        Err(_) => extensions.extend(of(path)),
        Ok(entries) => {
            let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
            extensions.extend(files.map(|path| of(&path).unwrap_or_default()));
        }
    }
    let only = if extensions.len() == 1 { extensions.pop_first() } else { None };
    // `path` is a field that is there already.
    only.filter(|only| only != "path" && !only.is_empty() && only.chars().all(char::is_alphanumeric))
}
