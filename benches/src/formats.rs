//! Formats beside the reader that is best known for each, turn by turn; `peers.py` has those readers and makes the data.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use forebay_loader::{Error, Executor, Loader, Registry, Result, Value};
use serde_json::Value as Json;

use crate::measure::{Spent, median, spend, verdict};

const ROUNDS: usize = 5;

/// A pipeline, whose rate is compared.
struct Case {
    name: &'static str,
    /// After `files 'FOLDER/`.
    line: &'static str,
    executor: Executor,
    peer: Peer,
    /// How many times the peer's rate is wanted.
    wanted: f64,
}

/// What a case is compared with.
enum Peer {
    /// A reader of `peers.py`.
    Script(&'static str),
    /// Another case of the same reader.
    Case(&'static str),
}

const CASES: &[Case] = &[
    case("JSON lines, inline", "rows.jsonl' | lines | json_lines", Executor::Inline, "orjson", 1.3),
    case("JSON lines", "rows.jsonl' | lines | json_lines", Executor::Threads(2), "orjson", 2.5),
    case(
        "JSON lines, 3 of 12 fields",
        "rows.jsonl' | lines | json_lines fields=['id','text','label']",
        Executor::Threads(2),
        "orjson",
        4.0,
    ),
    case(
        "Parquet columns",
        "table.parquet' | row_groups | read_columns",
        Executor::Threads(2),
        "pyarrow",
        1.2,
    ),
    case("Parquet rows", "table.parquet' | row_groups | read_rows", Executor::Threads(2), "datasets", 10.0),
    case("HDF5 gzip", "gzip.h5' | hdf5_pieces | hdf5_rows", Executor::Threads(2), "h5py-gzip", 3.5),
    case(
        "HDF5 gzip, shuffle",
        "shuffle.h5' | hdf5_pieces | hdf5_rows",
        Executor::Threads(2),
        "h5py-shuffle",
        3.0,
    ),
    case("HDF5 lzf", "lzf.h5' | hdf5_pieces | hdf5_rows", Executor::Threads(2), "h5py-lzf", 3.0),
    case("HDF5 chunks, not packed", "raw.h5' | hdf5_pieces | hdf5_rows", Executor::Threads(2), "pread", 0.8),
    case("HDF5 contiguous", "contiguous.h5' | hdf5_pieces | hdf5_rows", Executor::Threads(2), "pread", 0.8),
    Case {
        name: "HDF5 gzip, random rows",
        line: "gzip.h5' | hdf5_pieces piece_bytes=1 | shuffle 1200 | hdf5_rows",
        executor: Executor::Threads(2),
        peer: Peer::Case("HDF5 gzip"),
        wanted: 0.8,
    },
    case("tar of JPEG, decoded", "jpg.tar' | untar | decode", Executor::Inline, "libjpeg-turbo", 0.8),
    case("tar of PNG, decoded", "png.tar' | untar | decode", Executor::Inline, "pillow", 2.0),
    case("tar of PNG, decoded by two", "png.tar' | untar | decode", Executor::Threads(2), "pillow", 2.0),
];

const fn case(
    name: &'static str,
    line: &'static str,
    executor: Executor,
    peer: &'static str,
    wanted: f64,
) -> Case {
    Case { name, line, executor, peer: Peer::Script(peer), wanted }
}

/// Rounds, and the rows of each.
#[derive(Default)]
struct Rates {
    rounds: Vec<Spent>,
    rows: u64,
}

impl Rates {
    fn per_second(&self) -> f64 {
        self.rows as f64 / median(&mut self.rounds.iter().map(|spent| spent.wall).collect::<Vec<_>>())
    }

    fn cpu_micros(&self) -> f64 {
        median(&mut self.rounds.iter().map(|spent| spent.cpu * 1e6).collect::<Vec<_>>()) / self.rows as f64
    }

    fn add(&mut self, (spent, rows): (Spent, u64)) {
        self.rounds.push(spent);
        self.rows = rows;
    }
}

/// The cases whose names have `which` in them. Needs the folder that `peers.py make` filled, and the interpreter that has the peers.
pub(crate) fn run(folder: &Path, python: &Path, which: &str) -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let mut lines = Vec::new();
    for case in CASES.iter().filter(|case| case.name.contains(which)) {
        let (mut ours, mut theirs) = (Rates::default(), Rates::default());
        for _ in 0..ROUNDS {
            theirs.add(match case.peer {
                Peer::Script(name) => script(python, name, folder)?,
                Peer::Case(name) => {
                    let other = CASES.iter().find(|other| other.name == name);
                    read(other.ok_or_else(|| Error::invalid("no such case"))?, folder, &registry)?
                }
            });
            ours.add(read(case, folder, &registry)?);
        }
        let got = format!(
            "{:.2} times, {:.2} us of CPU a row, {} {:.2}",
            ours.per_second() / theirs.per_second(),
            ours.cpu_micros(),
            match case.peer {
                Peer::Script(name) | Peer::Case(name) => name,
            },
            theirs.cpu_micros()
        );
        let name = format!("{}, {}", case.name, case.executor);
        lines.push(verdict(&name, &format!(">= {}", case.wanted), &got));
    }
    Ok(lines)
}

/// One epoch, and the rows that came.
fn read(case: &Case, folder: &Path, registry: &Registry) -> Result<(Spent, u64)> {
    let line = format!("files '{}/{}", folder.display(), case.line);
    let mut loader = crate::loader(&line, case.executor, registry)?;
    let read =
        spend(|| loader.epoch(0).try_fold(0, |rows, sample| sample.map(|sample| rows + rows_of(&sample))))?;
    Loader::finish(loader)?;
    Ok(read)
}

/// One, but for a batch by column.
fn rows_of(sample: &forebay_loader::Sample) -> u64 {
    let id = sample.get("id").and_then(Value::as_tensor);
    id.and_then(|tensor| tensor.shape().first().copied()).map_or(1, |rows| rows as u64)
}

fn script(python: &Path, name: &str, folder: &Path) -> Result<(Spent, u64)> {
    let script = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py"));
    let output = Command::new(python).arg(script).args(["read", name]).arg(folder).output()?;
    let said: Json = serde_json::from_slice(&output.stdout).map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr);
        Error::invalid(format!("the peer {name} failed: {}", error.lines().last().unwrap_or_default()))
    })?;
    let number = |key: &str| said.get(key).and_then(Json::as_f64).unwrap_or(f64::NAN);
    Ok((Spent { wall: number("wall"), cpu: number("cpu") }, number("rows") as u64))
}
