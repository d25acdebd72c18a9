//! `forebay head`: the first samples of whatever there is at a path, or of a graph.

use std::io::{self, Write};

use clap::Args as Arguments;
use forebay_loader::{Error, Executor, Loader, Sample};
use serde_json::{Value, json};

use crate::{
    coverage::{Coverage, Covered},
    open::{self, Input},
    outcome::{self, Result, Stop},
    preview::{self, Field},
    print::{self, TextTable},
    progress,
};

/// What `forebay head` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// A file, a folder, a pattern such as 'shards/*.tar', or a graph
    path: String,
    /// How many samples to show
    #[arg(short = 'n', long = "samples", value_name = "N", default_value_t = 5)]
    samples: usize,
    /// Exit with 0 even if samples failed; failures are still reported
    #[arg(long)]
    allow_failures: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the first samples.
pub(crate) fn head(args: &Args, plugins: &open::Plugins) -> Result {
    let registry = open::registry(plugins)?;
    let Input { graph, survey } = open::input(&args.path, &registry)?;
    // Nothing is read ahead: what fails behind the last sample that is shown is no failure of this command.
    let builder = plugins.builder(graph).executor(Executor::modest(&registry)).chunk(1);
    let builder = builder.limit(args.samples as u64).allow_failures(args.allow_failures);
    let mut loader = builder.build(&registry).map_err(Stop::early)?;
    let mut coverage = survey.map(|survey| Coverage::new(survey, &registry));
    let mut samples = Vec::new();
    let (mut shown, mut failed) = (0, None);
    for sample in loader.epoch(0).take(args.samples) {
        let sample = match sample {
            Ok(sample) => sample,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        match args.json {
            true => samples.push(json!({ "key": sample.key().to_string(), "fields": Field::all(&sample) })),
            false => print::text(|out| show(&sample, shown > 0, out))?,
        }
        coverage.iter_mut().for_each(|coverage| coverage.add(&sample));
        shown += 1;
    }
    let failed = failed.or_else(|| loader.failure());
    if shown == 0 && args.samples > 0 && failed.is_none() && !args.json {
        print::text(|out| writeln!(out, "found no samples"))?;
    }
    let coverage = coverage.map(|coverage| coverage.finish(&loader));
    match (args.json, &coverage) {
        (true, _) => print::json(&told(&samples, coverage.as_ref(), &loader, failed.as_ref()))?,
        (false, Some(coverage)) => coverage.tell(),
        (false, None) => {}
    }
    if args.json || coverage.is_none() {
        progress::tell_notes(&loader);
    }
    let finished = outcome::finish(loader);
    failed.map_or(finished, |error| Err(Stop::Told(error)))
}

/// All of it as JSON; an error only where there is one.
fn told(samples: &[Value], coverage: Option<&Covered>, loader: &Loader, failed: Option<&Error>) -> Value {
    let nodes = loader.stats().nodes.into_iter().filter(|node| !node.notes.is_empty());
    let notes: Vec<_> = nodes.map(|node| json!({ "node": node.node, "notes": node.notes })).collect();
    let mut told = json!({ "samples": samples, "coverage": coverage, "nodes": notes });
    if let Some(error) = failed {
        told["error"] = outcome::object(error);
    }
    told
}

fn show(sample: &Sample, follows: bool, out: &mut dyn Write) -> io::Result<()> {
    if follows {
        writeln!(out)?;
    }
    writeln!(out, "{}", sample.key())?;
    let mut table = TextTable::new(&["", "", "", ""]);
    for (field, (_, value)) in Field::all(sample).into_iter().zip(sample.fields()) {
        let shape = field.shape();
        table.row([field.name, field.dtype, shape, preview::short(value)]);
    }
    table.write(out, "  ")
}
