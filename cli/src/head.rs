//! `forebay head`: the first samples of whatever there is at a path, or of a graph.

use std::io::{self, Write};

use clap::Args as Arguments;
use forebay_loader::{Loader, Sample};
use serde_json::json;

use crate::{
    coverage::{Coverage, Covered},
    open::{self, Input},
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
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the first samples.
pub(crate) fn head(args: &Args, plugins: &open::Plugins) -> Result {
    let registry = open::registry(plugins)?;
    let Input { graph, survey } = open::input(&args.path, &registry)?;
    let mut loader =
        Loader::builder(graph).executor(registry.modest_executor()).build(&registry).map_err(Stop::early)?;
    let mut coverage = survey.map(|survey| Coverage::new(survey, &registry));
    let mut samples = Vec::new();
    let mut shown = 0;
    for sample in loader.epoch(0).take(args.samples) {
        let sample = sample?;
        match args.json {
            true => samples.push(json!({ "key": sample.key().to_string(), "fields": Field::all(&sample) })),
            false => print::text(|out| show(&sample, shown > 0, out))?,
        }
        coverage.iter_mut().for_each(|coverage| coverage.add(&sample));
        shown += 1;
    }
    if shown == 0 && args.samples > 0 && !args.json {
        print::text(|out| writeln!(out, "nothing is there"))?;
    }
    let coverage = coverage.map(|coverage| coverage.finish(&loader));
    match args.json {
        true => print::json(&json!({ "samples": samples, "coverage": coverage }))?,
        false => coverage.iter().for_each(Covered::tell),
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
