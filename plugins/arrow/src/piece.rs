//! The field `piece`: what the cutter tells the readers, as plain values; and what both readers do with it.

use std::sync::{Arc, Mutex, PoisonError};

use forebay_core::{Blob, Error, ErrorKind, Key, Others, Result, Sample, Str, Struct, Value, View};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    document::{Batch, Batches, Opened, Piece, Wanted},
    predicate::Predicate,
};

/// The field's name.
pub(crate) const FIELD: &str = "piece";
/// How many footers a reader remembers.
const KEPT: usize = 16;

/// A piece, with what is wanted of it, and the uid of the file's sample, exclusive-or the piece's own: so the rows of a piece that is given
/// again, with another uid, have others too.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cut {
    pub(crate) piece: Piece,
    pub(crate) wanted: Wanted,
    pub(crate) uid: u64,
}

impl Cut {
    pub(crate) fn to_value(&self) -> Value {
        let Piece { file, part, parts, skip, row, rows } = self.piece;
        let numbers = [file, part, parts, skip, row, rows, self.uid].into_iter().map(Value::from);
        let names = ["file", "part", "parts", "skip", "row", "rows", "uid"];
        let mut fields: Vec<(Str, Value)> = names.map(Str::from_static).into_iter().zip(numbers).collect();
        let columns = self.wanted.names.iter().map(|name| name.as_str().into()).collect();
        fields.push(("columns".into(), Value::list(columns)));
        let filter = self.wanted.filter.as_ref().map(ToString::to_string);
        fields.push(("filter".into(), filter.map_or(Value::NULL, Value::from)));
        Value::structure(fields)
    }

    pub(crate) fn from_value(value: &Value) -> Result<Self> {
        let View::Struct(fields) = value.view() else { return Err(not_a_piece(value)) };
        let number = |name| number(fields, name).ok_or_else(|| not_a_piece(value));
        let piece = Piece {
            file: number("file")?,
            part: number("part")?,
            parts: number("parts")?,
            skip: number("skip")?,
            row: number("row")?,
            rows: number("rows")?,
        };
        let Some(View::List(columns)) = fields.get("columns").map(Value::view) else {
            return Err(not_a_piece(value));
        };
        let filter = fields.get("filter").and_then(Value::as_str).map(Predicate::parse).transpose()?;
        let names = columns.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Self { piece, wanted: Wanted { names, filter }, uid: number("uid")? })
    }
}

fn number(fields: &Struct, name: &str) -> Option<u64> {
    match fields.get(name)?.view() {
        View::UInt(number) => Some(number),
        _ => None,
    }
}

fn not_a_piece(value: &Value) -> Error {
    Error::invalid(format!("expected a field `{FIELD}` as `row_groups` makes it, found {value:?}"))
}

/// The footers that a reader has read lately: a file's pieces come one after the other.
#[derive(Default)]
pub(crate) struct Footers(Mutex<Vec<Arc<Opened>>>);

impl Footers {
    /// The file with this hash, as `blob` has it.
    fn get(&self, hash: u64, blob: &Blob, limit: u64) -> Result<Arc<Opened>> {
        let known = |list: &[Arc<Opened>]| list.iter().find(|opened| opened.hash == hash).cloned();
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = known(&lock()) {
            return Ok(opened);
        }
        let opened = Arc::new(Opened::new(blob, limit)?);
        if opened.hash != hash {
            return Err(Error::invalid(
                "the file is not the one that was cut into pieces: it changed meanwhile",
            ));
        }
        let mut list = lock();
        if known(&list).is_none() {
            if list.len() == KEPT {
                list.remove(0);
            }
            list.push(opened.clone());
        }
        Ok(opened)
    }
}

/// The batches of a piece, and what its rows share.
pub(crate) struct Reading {
    batches: Batches,
    origin: Str,
    uid: u64,
    /// The fields that go on with what comes of the piece.
    others: Vec<(Str, Value)>,
}

impl Reading {
    /// Opens the piece in a sample, to be read with at most so many rows at a time.
    pub(crate) fn open(
        sample: &Sample,
        blob: &Blob,
        footers: &Footers,
        rows: u64,
        limit: u64,
    ) -> Result<Self> {
        let field = sample.get(FIELD);
        let cut = Cut::from_value(field.unwrap_or(&Value::NULL)).map_err(|error| match field {
            None => Error::invalid(format!("found no field `{FIELD}`: `row_groups` must come before")),
            Some(_) => error,
        })?;
        let origin = sample.key().origin.clone();
        let opened = footers.get(cut.piece.file, blob, limit);
        let batches = opened.and_then(|opened| opened.read(blob, cut.piece, &cut.wanted, rows, limit));
        let batches = batches.map_err(|error| error.context("file", &origin))?;
        let others = Others::of(sample, &[FIELD]).fields().to_vec();
        Ok(Self { batches, origin, uid: cut.uid ^ sample.uid(), others })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        self.batches.next().map_err(|error| error.context("file", &self.origin))
    }

    /// Whether more may come behind this error, which came of a batch (or else of what is in it).
    pub(crate) fn goes_on(&self, error: &Error, batch: bool) -> bool {
        // What is not supported in one batch is not in the next either.
        let bytes = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Limit);
        bytes && (!batch || self.batches.goes_on())
    }

    /// The fields that go on, without those that a column takes the place of.
    pub(crate) fn others(&self, batch: &Batch) -> impl Iterator<Item = &(Str, Value)> {
        let schema = batch.columns.schema();
        self.others.iter().filter(move |(name, _)| schema.index_of(name).is_err())
    }

    pub(crate) fn uid(&self, row: u64) -> u64 {
        uid_of(self.uid, row)
    }

    pub(crate) fn key(&self, row: u64) -> Key {
        Key { origin: self.origin.clone(), name: Str::EMPTY, index: row }
    }
}

/// The uid of a row, or of what begins with it.
pub(crate) fn uid_of(file: u64, row: u64) -> u64 {
    xxh3_64_with_seed(&row.to_le_bytes(), file)
}
