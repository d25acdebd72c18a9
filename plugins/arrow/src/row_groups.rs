//! `row_groups`: a Parquet or Arrow file to the pieces it is read in, leaving out those without rows that are wanted.
//!
//! ```toml
//! [row_groups]
//! examples = ['''forebay head -n 1 "files tests/columns/birds.parquet | row_groups columns=[id, bird] filter='id < 5' | read_rows"''']
//! ```

use std::sync::Arc;

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Key, Magic, Opens, PipeInfo, Result, Sample, Schema,
    State, StateExt as _, Str, Value, View, options,
};

use crate::{
    document::{Opened, Pieces, Wanted},
    hive,
    messages::{MAGIC, begins_old_stream, begins_stream},
    piece::{Cut, FIELD, uid_of},
    predicate::Predicate,
};

const STATE: u32 = 1;

options! {
    /// Options of `row_groups`.
    pub struct RowGroupsOptions {
        /// The columns to read; empty for all. `a.b` is `b` within `a`.
        columns: Vec<String> = [];
        /// The rows to read: comparisons joined by `and`, such as `label == 3 and split != 'test'`.
        filter: Option<String> = null;
        /// Folders called `name=value` in the path are fields.
        hive: bool = false;
    }
}

/// Cuts each Parquet or Arrow file into pieces, for `read_rows` or `read_columns`.
pub struct RowGroups {
    wanted: Wanted,
    hive: bool,
}

impl DataPipe for RowGroups {
    const INFO: PipeInfo = PipeInfo {
        name: "row_groups",
        summary: "Parquet and Arrow files to the pieces they are read in",
        opens: Some(Opens {
            extensions: &["parquet", "arrow", "arrows", "feather", "ipc"],
            magic: &[
                Magic { offset: 0, bytes: b"PAR1" },
                // Encrypted, to say that it is.
                Magic { offset: 0, bytes: b"PARE" },
                Magic { offset: 0, bytes: b"ARROW1" },
                Magic { offset: 0, bytes: &[0xff; 4] },
                // Streams of before 0.15 begin with the length of a head, whose root stands at one of these places.
                Magic { offset: 4, bytes: &[0x10, 0, 0, 0] },
                Magic { offset: 4, bytes: &[0x14, 0, 0, 0] },
            ],
            then: "read_rows",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = RowGroupsOptions;

    fn new(options: RowGroupsOptions) -> Result<Self> {
        let filter = options.filter.as_deref().map(Predicate::parse).transpose();
        let filter = filter.map_err(|error| error.context("option", "filter"))?;
        Ok(Self { wanted: Wanted { names: options.columns, filter }, hive: options.hive })
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        let stream = matches!(extension.to_ascii_lowercase().as_str(), "arrow" | "arrows" | "ipc");
        if [&b"PAR1"[..], b"PARE", MAGIC].iter().any(|magic| head.starts_with(magic)) {
            return 240;
        }
        match begins_stream(head) || begins_old_stream(head) {
            true => 200,
            false => u8::from(stream && head.starts_with(&[0xff; 4])) * 160,
        }
    }
}

impl FlatMap for RowGroups {
    type Items = PieceItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<PieceItems> {
        let blob = Blob::of(&sample, cx).map_err(|error| error.context("file", &sample.key().origin))?;
        self.cut(sample, &blob, cx.limits().bytes)
    }
}

impl RowGroups {
    /// The pieces of the file in `blob`, which `sample` is about.
    pub(crate) fn cut(&self, mut sample: Sample, blob: &Blob, limit: u64) -> Result<PieceItems> {
        let origin = sample.key().origin.clone();
        let here = |error: Error| error.context("file", &origin);
        let mut wanted = self.wanted.clone();
        let known = if self.hive { hive::fields(path_of(&sample)) } else { Vec::new() };
        let filter = wanted.filter.take();
        let left = filter.map(|filter| filter.given(&known)).transpose().map_err(here)?;
        // A column that the path gives is none of the file.
        wanted.names.retain(|name| known.iter().all(|(known, _)| known != name));
        if wanted.names.is_empty() && !self.wanted.names.is_empty() {
            let message = "`columns` names only what the path gives; name a column of the file too";
            return Err(here(Error::invalid(message)));
        }
        let left_out = left == Some(None);
        wanted.filter = left.flatten().filter(|filter| !filter.is_empty());
        let opened = Opened::new(blob, limit).map_err(here)?;
        let mut pieces = Arc::new(opened).pieces(blob, wanted).map_err(here)?;
        if left_out {
            pieces.go_to_end();
        }
        // Those that come in other processes open the file themselves, where it is one.
        if sample.get("path").and_then(Value::as_str).is_some() && is_whole_file(&sample) {
            sample.take("bytes");
        }
        for (name, value) in known {
            sample.set(&name, value);
        }
        sample.set(FIELD, Value::NULL);
        let at = sample.schema().position(FIELD).unwrap_or(0);
        Ok(PieceItems { pieces, at, uid: sample.uid(), origin, schema: sample.schema().clone(), sample })
    }
}

/// The path that a sample is about, as far as it names one.
fn path_of(sample: &Sample) -> &str {
    sample.get("path").and_then(Value::as_str).unwrap_or(&sample.key().origin)
}

/// Whether the field `bytes` shows all of a file, so that its path says as much.
fn is_whole_file(sample: &Sample) -> bool {
    let Some(View::Bytes(bytes)) = sample.get("bytes").map(Value::view) else { return false };
    let len = bytes.file().and_then(|(file, start)| Some((file.metadata().ok()?.len(), start)));
    len == Some((bytes.len() as u64, 0))
}

/// The pieces of one file.
pub struct PieceItems {
    pieces: Pieces,
    sample: Sample,
    schema: Schema,
    /// Where among the fields the piece goes.
    at: usize,
    uid: u64,
    origin: Str,
}

impl PieceItems {
    pub(crate) fn next_sample(&mut self) -> Result<Option<Sample>> {
        let piece = self.pieces.next().map_err(|error| error.context("file", &self.origin))?;
        let Some(piece) = piece else { return Ok(None) };
        let uid = uid_of(self.uid, piece.row);
        let cut = Cut { piece, wanted: self.pieces.wanted().clone(), uid: self.uid ^ uid };
        let mut values = self.sample.values().to_vec();
        if let Some(value) = values.get_mut(self.at) {
            *value = cut.to_value();
        }
        let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index: piece.row };
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), values)))
    }

    pub(crate) fn go_to(&mut self, state: &State) -> Result<()> {
        self.pieces.go_to(state.parse(STATE)?).map_err(|error| error.context("file", &self.origin))
    }
}

impl Items for PieceItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        self.next_sample()
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &self.pieces.place())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.go_to(state)
    }
}
