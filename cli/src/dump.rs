//! `forebay dump`: every sample as a line of JSON, to be compared with what another reader gives.

use std::io::{self, Write};

use clap::Args as Arguments;
use forebay_loader::{Executor, Sample, Str, Tensor, Value, View};
use sha2::{Digest as _, Sha256};

use crate::{
    coverage::Coverage,
    open::{self, Input},
    outcome::{self, Result, Stop},
    print, progress,
};

/// What `forebay dump` is told.
///
/// A line is `{"key": …, "uid": …, "fields": {…}}`, in the order of the samples. Null, truth, numbers, text, lists and structs are as in JSON:
/// integers with all digits, floats as the shortest decimal that reads back as the same float64 (a float16 or float32 is widened,
/// which is exact), NaN and infinities as "NaN", "Infinity" and "-Infinity". Bytes are {"bytes": length, "sha256": …}; tensors
/// {"dtype": …, "shape": …, "sha256": …} of their little-endian, row-major elements; Arrow columns {"arrow": format, "rows": count}.
#[derive(Arguments)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A file, a folder, a pattern such as 'shards/*.tar', or a graph
    path: String,
    /// Stop after this many samples
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Where the work runs: inline, threads, threads:N or processes:N [default: the graph's, else threads]
    #[arg(long, value_parser = |text: &str| text.parse::<Executor>().map_err(|error| error.message().to_owned()))]
    executor: Option<Executor>,
    /// The seed of all random choices [default: the graph's, else 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Leave out keys and uids, which differ between formats
    #[arg(long)]
    fields: bool,
    /// Exit with 0 even if samples failed; failures are still reported
    #[arg(long)]
    allow_failures: bool,
    /// Do not report which fields were decoded
    #[arg(long, short)]
    quiet: bool,
}

/// Prints all samples.
pub(crate) fn dump(args: &Args, plugins: &open::Plugins) -> Result {
    let registry = open::registry(plugins)?;
    let Input { graph, survey } = open::input(&args.path, &registry)?;
    let mut builder = plugins.builder(graph).epochs(1).allow_failures(args.allow_failures);
    if let Some(executor) = args.executor {
        builder = builder.executor(executor);
    }
    if let Some(seed) = args.seed {
        builder = builder.seed(seed);
    }
    if let Some(limit) = args.limit {
        builder = builder.limit(limit as u64);
    }
    let mut loader = builder.build(&registry).map_err(Stop::early)?;
    let mut coverage = survey.map(|survey| Coverage::new(survey, &registry));
    let mut out = io::BufWriter::with_capacity(1 << 16, print::output()?);
    let mut failed = None;
    for sample in loader.epoch(0).take(args.limit.unwrap_or(usize::MAX)) {
        match sample {
            Ok(sample) => {
                line(&sample, !args.fields, &mut out)?;
                coverage.iter_mut().for_each(|coverage| coverage.add(&sample));
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    out.flush()?;
    drop(out);
    match coverage.map(|coverage| coverage.finish(&loader)) {
        _ if args.quiet => {}
        Some(coverage) => coverage.tell(),
        None => progress::tell_notes(&loader),
    }
    let failed = failed.or_else(|| loader.failure());
    let finished = outcome::finish(loader);
    failed.map_or(finished, |error| Err(error.into()))
}

/// Writes one sample.
fn line(sample: &Sample, named: bool, out: &mut impl Write) -> io::Result<()> {
    if named {
        write!(out, "{{\"key\":")?;
        text(&sample.key().to_string(), out)?;
        write!(out, ",\"uid\":{},\"fields\":", sample.uid())?;
    }
    members(sample.fields(), out)?;
    writeln!(out, "{}", if named { "}" } else { "" })
}

fn members<'a>(fields: impl Iterator<Item = (&'a Str, &'a Value)>, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{")?;
    for (at, (name, value)) in fields.enumerate() {
        write!(out, "{}", if at > 0 { "," } else { "" })?;
        text(name, out)?;
        write!(out, ":")?;
        json(value, out)?;
    }
    write!(out, "}}")
}

/// Writes one value; values nest as deep as their decoders let them, which all have a limit.
fn json(value: &Value, out: &mut impl Write) -> io::Result<()> {
    match value.view() {
        View::Null => write!(out, "null"),
        View::Bool(truth) => write!(out, "{truth}"),
        View::Int(number) => write!(out, "{number}"),
        View::UInt(number) => write!(out, "{number}"),
        View::Float(number) => float(number, out),
        View::Str(string) => text(string, out),
        View::Bytes(bytes) => write!(out, "{{\"bytes\":{},\"sha256\":\"{}\"}}", bytes.len(), hash(bytes)),
        View::Tensor(tensor) => {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            write!(out, "{{\"dtype\":\"{dtype}\",\"shape\":{},", serde_json::json!(shape))?;
            write!(out, "\"sha256\":\"{}\"}}", hash(&little_endian(tensor)))
        }
        View::List(values) => {
            write!(out, "[")?;
            for (at, value) in values.iter().enumerate() {
                write!(out, "{}", if at > 0 { "," } else { "" })?;
                json(value, out)?;
            }
            write!(out, "]")
        }
        View::Struct(fields) => members(fields.fields(), out),
        View::Arrow(_) => match value.arrow() {
            Ok(parts) => {
                write!(out, "{{\"arrow\":")?;
                text(&parts.format, out)?;
                write!(out, ",\"rows\":{}}}", parts.length)
            }
            Err(_) => write!(out, "{{\"arrow\":null}}"),
        },
        View::Opaque(name) => {
            write!(out, "{{\"opaque\":")?;
            text(name, out)?;
            write!(out, "}}")
        }
        _ => write!(out, "{{\"unknown\":{}}}", value.tag()),
    }
}

fn float(number: f64, out: &mut impl Write) -> io::Result<()> {
    match number {
        _ if number.is_nan() => write!(out, "\"NaN\""),
        f64::INFINITY => write!(out, "\"Infinity\""),
        f64::NEG_INFINITY => write!(out, "\"-Infinity\""),
        _ => Ok(serde_json::to_writer(out, &number)?),
    }
}

fn text(text: &str, out: &mut impl Write) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The elements of a tensor, little-endian.
fn little_endian(tensor: &Tensor) -> std::borrow::Cow<'_, [u8]> {
    let bytes: &[u8] = tensor.data();
    let width = usize::from(tensor.dtype().bits) / 8;
    if cfg!(target_endian = "little") || width < 2 {
        return bytes.into();
    }
    bytes.chunks(width).flat_map(|number| number.iter().rev().copied()).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use forebay_loader::{Buffer, DType, Key};

    use super::*;

    #[test]
    fn every_value_has_one_form() {
        let mut sample = Sample::new(u64::MAX, Key { origin: "a.tar".into(), name: "x".into(), index: 3 });
        sample.set("int", i64::MIN);
        sample.set(
            "float",
            Value::list(vec![0.1.into(), (-0.0).into(), f64::NAN.into(), f64::INFINITY.into()]),
        );
        sample.set("text", "a\"\n\u{1F600}");
        sample.set("bytes", Buffer::from_static(b"abc"));
        let numbers = Buffer::from([1_u16, 2].iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<_>>());
        sample.set("tensor", Tensor::try_new(DType::U16, &[2, 1], numbers).unwrap());
        sample.set("record", Value::structure(vec![("z".into(), true.into()), ("a".into(), Value::NULL)]));
        let mut out = Vec::new();
        line(&sample, true, &mut out).unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let two = hash(&[1, 0, 2, 0]);
        let expected = format!(
            "{{\"key\":\"a.tar!/x\",\"uid\":18446744073709551615,\"fields\":{{\"int\":-9223372036854775808,\
             \"float\":[0.1,-0.0,\"NaN\",\"Infinity\"],\"text\":\"a\\\"\\n\u{1F600}\",\
             \"bytes\":{{\"bytes\":3,\"sha256\":\"{abc}\"}},\
             \"tensor\":{{\"dtype\":\"uint16\",\"shape\":[2,1],\"sha256\":\"{two}\"}},\
             \"record\":{{\"z\":true,\"a\":null}}}}}}\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
