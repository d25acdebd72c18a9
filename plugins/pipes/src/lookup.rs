//! `lookup`: the fields of a table's row in each sample that has its key.
//!
//! ```toml
//! [lookup]
//! page = "streams"
//! examples = ['''forebay head -n 1 "range @samples 10 ; range @table 10 | map 'name = string(value)' ; lookup <samples, map> value prefix=['', row_]"''']
//! cases = ["range N | map @m 'k=value % 9' ; range @r N step=2 | take @t 4 ; lookup <m, t> left=k right=value join=left prefix=['', 'b-']"]
//! ```

use std::mem;

use forebay_core::{
    Chunk, Context, DataPipe, Drops, Error, Io, Length, PipeAudit, PipeInfo, PipeLayout, Result, Schema,
    State, StateExt, Step, Stream, options,
};

use crate::plumbing::{
    blocks::Blocks,
    keys::Index,
    pairs::{Pairs, no_row},
};

/// What a row costs beside its values and its key: its places in the index.
const BESIDE: usize = 64;

options! {
    /// Options of `lookup`.
    pub struct LookupOptions {
        /// An expression for the key, for both inputs; null for the sample's name, or its file's name without
        /// folder and extension.
        key: Option<String> = null;
        /// The expression for the first input only.
        left: Option<String> = null;
        /// The expression for rows of the table only.
        right: Option<String> = null;
        /// What to do with a sample whose key no row has: `strict` fails, `inner` leaves it out, `left` keeps it
        /// with nulls.
        join: String = "strict", one_of ["strict", "inner", "left"];
        /// The most bytes of the table to hold.
        limit: u64 = 1073741824;
        /// A prefix for the fields of each input, two texts; null if no name comes twice.
        prefix: Option<Vec<String>> = null;
    }
}

/// Gives each sample of the first input the fields of the row that has its key, of the second, the table.
///
/// The table is read whole before the first sample, and held. A row serves any number of samples; two rows with one key are an error.
/// Samples come in the order of the first input and keep their uids and keys; a field that is the key of both stands there once. Memory: the table,
/// up to `limit`. State: how many rows were taken, all of which come again.
#[derive(Debug)]
pub struct Lookup {
    pairs: Pairs,
    kind: Kind,
    rows: Blocks,
    index: Index,
    /// How many samples of the table were taken, and up to which of them all was told before a restore.
    taken: u64,
    settled: u64,
    /// Whether the table was too large.
    failed: bool,
    /// The last key.
    key: Vec<u8>,
    /// The fields of an empty table.
    none: Schema,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Strict,
    Inner,
    Left,
}

impl DataPipe for Lookup {
    const INFO: PipeInfo = PipeInfo {
        name: "lookup",
        summary: "The fields of a table's row in each sample that has its key",
        also: &["join", "zip_with_map"],
        layout: PipeLayout { inputs: (2, 2), per_input: &["prefix"], ..PipeLayout::DEFAULT },
        audit: PipeAudit { drops: Drops::With(&["join"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = LookupOptions;

    fn new(options: LookupOptions) -> Result<Self> {
        let LookupOptions { key, left, right, join, limit, prefix } = options;
        let pairs = Pairs::new(key.as_deref(), [left.as_deref(), right.as_deref()], prefix)?;
        let kind = match join.as_str() {
            "inner" => Kind::Inner,
            "left" => Kind::Left,
            _ => Kind::Strict,
        };
        Ok(Self {
            pairs,
            kind,
            rows: Blocks::new(limit),
            index: Index::default(),
            taken: 0,
            settled: 0,
            failed: false,
            key: Vec::new(),
            none: Schema::empty(),
        })
    }
}

impl Stream for Lookup {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.rows.clear();
        self.index.clear();
        (self.taken, self.settled, self.failed) = (0, 0, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while !self.failed
            && let Some(table) = io.input(1).filter(|table| !table.is_empty())
        {
            self.learn(table)?;
        }
        if self.failed {
            return Ok(Step::End);
        }
        if !io.ended(1) {
            return Ok(Step::NeedInput(1));
        }
        while io.room() > 0 {
            if !self.give(io)? {
                return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0].filter(|_| self.kind != Kind::Inner)
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(1, &(self.taken.max(self.settled), self.failed))?.again(1, self.taken))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        (self.settled, self.failed) = state.parse(1)?;
        Ok(())
    }
}

impl Lookup {
    /// Takes the foremost row of the table. What was wrong with one was told before a restore.
    fn learn(&mut self, table: &mut Chunk) -> Result<()> {
        self.taken += 1;
        let learned = self.hold(table);
        if self.taken <= self.settled { Ok(()) } else { learned }
    }

    fn hold(&mut self, table: &mut Chunk) -> Result<()> {
        if let Some(Err(error)) = self.pairs.by[1].read(table, &mut self.key) {
            table.advance();
            return Err(error);
        }
        let hash = self.index.hash(&self.key);
        if let Some(there) = self.index.find(hash, &self.key) {
            let there = self.rows.get(there.into()).map(|(_, key, ..)| key.to_string()).unwrap_or_default();
            let key = table.front().map(|(_, key)| key.to_string()).unwrap_or_default();
            table.advance();
            let error =
                Error::invalid(format!("its key is that of `{there}`, which is in the table already"));
            return Err(error.context("sample", key));
        }
        let held = self.rows.hold(table, 1, self.key.len() + BESIDE).and_then(|()| {
            let number = u32::try_from(self.rows.count() - 1);
            number.map_err(|_| Error::limit("a table has 2^32 rows at most"))
        });
        match held {
            Ok(number) => self.index.insert(hash, &self.key, number),
            Err(error) => {
                // Without the rest of the table samples would seem to have no row.
                self.failed = true;
                table.advance();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the next sample with its row; says whether there was one.
    fn give(&mut self, io: &mut Io) -> Result<bool> {
        let Self { pairs, kind, rows, index, key: found, none, .. } = self;
        let given = io.through(0, |input, out| {
            input.pop_with(|uid, key, schema, values| {
                pairs.by[0].write(key, schema, values, found)?;
                let number = index.find(index.hash(found), found);
                let (fields, row) = match (number.and_then(|number| rows.get(number.into())), *kind) {
                    (Some((.., fields, row)), _) => (fields, row),
                    (None, Kind::Strict) => return Err(no_row(key, found, index.keys())),
                    (None, Kind::Inner) => return Ok(()),
                    (None, Kind::Left) => (rows.get(0).map_or(&*none, |(.., fields, _)| fields), &[][..]),
                };
                let places =
                    pairs.places([schema, fields], true).map_err(|error| error.context("sample", &*key))?;
                let values = places.join(values.iter_mut().map(mem::take), row.iter().cloned());
                out.push_row(uid, key.take(), pairs.schema(), values);
                Ok(())
            })
        });
        given.flatten().transpose().map(|given| given.is_some())
    }
}

#[cfg(test)]
mod tests;
