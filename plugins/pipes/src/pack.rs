//! `pack`: sequences of any length side by side in rows of one length.
//!
//! ```toml
//! [pack]
//! page = "batches"
//! examples = ['''forebay run "range 40 | map 'ids = [1, 2, 3, 4].filter(x, x <= value % 4 + 1)' | pack 16 fields=ids"''']
//! cases = [
//!     "range N | map 'tokens=[value, value, value]' | pack 8 fields=tokens bins=3",
//!     "range N | map 'tokens=[value, value, value]' | pack 8 fields=tokens method=concat",
//! ]
//! counted = false
//! ```

mod again;
mod fit;
mod plan;
mod position;
mod row;
mod sequence;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use forebay_core::{
    Any, Chunk, Context, DataPipe, Drops, Error, Io, Noun, OneOrMany, PipeAudit, PipeInfo, PipeLayout,
    Result, Schema, State, StateExt, Step, Stream, Uids, Value, options,
};

use self::{
    fit::{Index, Method},
    plan::{Plan, Rules},
    row::{Member, Piece, Row},
    sequence::Sequence,
};
use crate::plumbing::replay::Replay;

options! {
    /// Options of `pack`.
    pub struct PackOptions {
        /// Items in a row, for each packed field without a length of its own.
        length: usize = required, in 1..=2_147_483_647;
        /// How a sequence finds its row. `first_fit`: the oldest row with room. `best_fit`: the row with the least
        /// room left over. `concat`: sequences follow each other and are cut at the end of a row.
        method: String = "best_fit", one_of ["first_fit", "best_fit", "concat"];
        /// How many rows are filled at a time; `concat` fills one.
        bins: usize = 64, in 1..=65_536;
        /// The fields to pack, each as `field` or `field=length`; null for all that hold tensors with axes or lists of numbers.
        fields: Option<OneOrMany<String>> = null;
        /// The fields kept as a list with a value for each segment; null for all fields that are not packed.
        meta: Option<Vec<String>> = null;
        /// Add `FIELD_segment_ids`, int32: the number of an item's sequence in its row, from 1; 0 for padding.
        segments: bool = true;
        /// Add `FIELD_positions`, int32: the place of an item in its segment, from 0; 0 for padding.
        positions: bool = true;
        /// The number that fills the rest of a row: a number, or `field=number`, one or a list.
        pad: Any = 0;
        /// A token before each sequence: a number, or `field=number`, one or a list; null for none.
        bos: Any = null;
        /// A token after each sequence, given in the same way.
        eos: Any = null;
        /// The most sequences in a row; null for any number.
        max_per_bin: Option<usize> = null, in 1..=2_147_483_647;
        /// What to do with a sequence that is longer than a row, unless `method` is `concat`: `split` it into
        /// pieces, `drop` it, or `truncate` its end.
        too_long: String = "error", one_of ["error", "split", "drop", "truncate"];
        /// With `concat`: leave out the last row if it is not full.
        drop_last: bool = false;
        /// A new field for the uids of the samples in a row, one for each segment; null for none.
        uids: Option<String> = null;
    }
}

/// Writes sequences of any length side by side into rows of one length, with padding behind them.
///
/// Rows are given in the order in which they were begun: the oldest one when it is full, or when a sequence has no room in any of
/// `bins`; at the end all that are left. A row has the key and the uid of its first sample; one that begins with a later piece
/// of a sample has its own. Each sequence is written once, into memory of the host's.
///
/// State: which samples lie in which open row, a byte or two for each; they come again from the oldest on, and so does what was
/// read since. Memory: the values of `bins` rows.
/// Cost: that of copying the items; finding a row takes steps that are as many as `bins` has bits.
#[derive(Debug)]
pub struct Pack {
    method: Method,
    length: usize,
    bins: usize,
    max_per_bin: usize,
    too_long: TooLong,
    drop_last: bool,
    rules: Rules,
    /// The last schema and what goes where in it.
    known: Option<(Schema, Arc<Plan>)>,
    /// The rows that were not given yet, the oldest first, and that one's number.
    rows: VecDeque<Row>,
    first: u64,
    /// Those of them that take more.
    index: Index,
    /// How many samples were taken, and how many pieces of the foremost one.
    taken: u64,
    piece: u64,
    /// With `concat`: where that one was cut for the first time.
    cut: Vec<usize>,
    /// After a restore: what is still to be taken again.
    replay: Option<Replay<again::Held>>,
    /// How long the sequences of the foremost sample are, and what of them the piece has; kept for their memory.
    lens: Vec<usize>,
    ranges: Vec<Range<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum TooLong {
    Error,
    Split,
    Drop,
    Truncate,
}

/// What became of the foremost sample.
enum Placed {
    /// It is taken.
    Whole,
    /// There are more pieces.
    Part,
    /// The oldest row must be given first.
    NoRoom,
}

/// The version of the saved position's form.
const VERSION: u32 = 1;

impl DataPipe for Pack {
    const INFO: PipeInfo = PipeInfo {
        name: "pack",
        summary: "Sequences of any length side by side in rows of one length",
        also: &["pack_and_batch"],
        audit: PipeAudit {
            uids: Uids::Made,
            uids_option: Some("uids"),
            drops: Drops::With(&["too_long", "drop_last"]),
            ..PipeAudit::DEFAULT
        },
        layout: PipeLayout { gives: Some(Noun { one: "pack", many: "packs" }), ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PackOptions;

    fn new(options: PackOptions) -> Result<Self> {
        let rules = Rules::new(&options)?;
        let method = match options.method.as_str() {
            "first_fit" => Method::FirstFit,
            "concat" => Method::Concat,
            _ => Method::BestFit,
        };
        let too_long = match options.too_long.as_str() {
            "split" => TooLong::Split,
            "drop" => TooLong::Drop,
            "truncate" => TooLong::Truncate,
            _ => TooLong::Error,
        };
        let refuse = |option: &str, message: &str| Err(Error::invalid(message).context("option", option));
        if options.drop_last && method != Method::Concat {
            return refuse("drop_last", "only `method=concat` has a last row that may be left out");
        }
        if too_long != TooLong::Error && method == Method::Concat {
            return refuse("too_long", "`method=concat` splits what is longer than a row");
        }
        let bins = if method == Method::Concat { 1 } else { options.bins };
        Ok(Self {
            method,
            length: options.length,
            bins,
            max_per_bin: options.max_per_bin.unwrap_or(usize::MAX),
            too_long,
            drop_last: options.drop_last,
            rules,
            known: None,
            rows: VecDeque::new(),
            first: 0,
            index: Index::new(method, bins),
            taken: 0,
            piece: 0,
            cut: Vec::new(),
            replay: None,
            lens: Vec::new(),
            ranges: Vec::new(),
        })
    }
}

impl Stream for Pack {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if !self.take_again(io, cx)? {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            let full = self.rows.front().is_some_and(|row| row.full);
            let Some(input) = io.input(0).filter(|input| !full && !input.is_empty()) else {
                if !full && !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
                if self.rows.is_empty() || !full && self.drop_last {
                    self.clear();
                    return Ok(Step::End);
                }
                self.give(io, cx)?;
                continue;
            };
            match self.place(input, cx) {
                Ok(Placed::Part) => self.piece += 1,
                Ok(Placed::NoRoom) => self.give(io, cx)?,
                other => {
                    let key = input.front().filter(|_| other.is_err()).map(|(_, key)| key.clone());
                    input.advance();
                    (self.taken, self.piece) = (self.taken + 1, 0);
                    other.map_err(|error| error.context("sample", key.unwrap_or_default()))?;
                }
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        let first = self.rows.front().and_then(|row| row.members.first());
        let count = first.map_or(0, |first| self.taken - first.ordinal);
        let cut = match self.rows.front() {
            Some(row) if first.is_some_and(|first| first.piece > 0) => &row.cut[..],
            _ if self.piece > 0 => &self.cut,
            _ => &[],
        };
        let head = [self.length as u64, self.method as u64, self.piece, count];
        let bytes = position::write(head, self.rows.iter(), cut);
        let again = self.replay.as_ref().map_or(count, Replay::taken);
        Ok(State { version: VERSION, bytes: bytes.into(), ..State::default() }.again(0, again))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.go_to(state)
    }
}

impl Pack {
    /// Forgets all samples.
    fn clear(&mut self) {
        self.rows.clear();
        self.index = Index::new(self.method, self.bins);
        self.cut.clear();
        self.replay = None;
        (self.first, self.taken, self.piece) = (0, 0, 0);
    }

    /// Gives the oldest row.
    fn give(&mut self, io: &mut Io, cx: &Context) -> Result<()> {
        let Some(row) = self.rows.pop_front() else { return Ok(()) };
        if !row.full {
            self.index.set(self.first, Some(row.left), None);
        }
        self.first += 1;
        let key = row.key().clone();
        let sample = row.finish(cx);
        io.push(&mut sample.map_err(|error| error.context("first of row", key))?);
        Ok(())
    }

    /// Writes the next piece of the foremost sample into its row.
    fn place(&mut self, input: &Chunk, cx: &Context) -> Result<Placed> {
        let Some((uid, key, schema, values)) = input.peek() else { return Ok(Placed::Whole) };
        self.with_plan(schema, values, |this, plan| {
            if !this.measure(plan, values)? {
                return Ok(Placed::Whole);
            }
            let found = this.find(plan)?;
            if found.is_none() && this.rows.len() == this.bins {
                return Ok(Placed::NoRoom);
            }
            let at = found.map_or(this.rows.len(), |row| (row - this.first) as usize);
            if found.is_none() {
                this.rows.push_back(Row::default());
            }
            let row = &mut this.rows[at];
            let was = found.map(|_| row.left);
            let piece = Piece { plan, uid, key, number: this.piece, values, ranges: &this.ranges };
            if let Err(error) = row.put(&piece, cx) {
                if found.is_none() {
                    this.rows.pop_back();
                }
                return Err(error);
            }
            if row.members.is_empty() && this.piece > 0 {
                row.cut.clone_from(&this.cut);
            }
            row.members.push(Member { ordinal: this.taken, piece: this.piece });
            let whole = this.settle(at, plan);
            let row = &this.rows[at];
            this.index.set(this.first + at as u64, was, (!row.full).then_some(row.left));
            Ok(if whole { Placed::Whole } else { Placed::Part })
        })
    }

    /// Does something with what goes where in a sample.
    #[inline]
    fn with_plan<T>(
        &mut self,
        schema: &Schema,
        values: &[Value],
        work: impl FnOnce(&mut Self, &Arc<Plan>) -> Result<T>,
    ) -> Result<T> {
        let known = self
            .known
            .take()
            .filter(|(known, plan)| (known.is(schema) || known == schema) && plan.is_for(values));
        let (known, plan) = match known {
            Some((known, plan)) if known.is(schema) => (known, plan),
            Some((_, plan)) => (schema.clone(), plan),
            None => (schema.clone(), Arc::new(self.rules.plan(schema, values)?)),
        };
        let done = work(self, &plan);
        self.known = Some((known, plan));
        done
    }

    /// Notes how long the sequences are, with what is put before and behind them; says whether the sample is packed at all.
    fn measure(&mut self, plan: &Arc<Plan>, values: &[Value]) -> Result<bool> {
        if let Some(row) = self.rows.front().and_then(Row::plan) {
            plan.goes_with(row)?;
        }
        self.lens.clear();
        for (at, column) in plan.columns.iter().enumerate() {
            let more = usize::from(column.bos.is_some()) + usize::from(column.eos.is_some());
            let held = self.rows.iter().find_map(|row| row.kind(at));
            let len = Sequence::of(&values[column.place]).and_then(|sequence| {
                held.map_or(Ok(()), |kind| sequence.check(kind, more > 0))?;
                Ok(sequence.len())
            });
            let len = len.map_err(|error| error.context("field", &column.name))? + more;
            let cut = match self.too_long {
                _ if len <= column.length || self.method == Method::Concat => len,
                TooLong::Split => len,
                TooLong::Truncate => column.length,
                TooLong::Drop => return Ok(false),
                TooLong::Error => {
                    let length = column.length;
                    let error = Error::invalid(format!(
                        "found {len} items, a row has {length}: shorten them before, or say `too_long`"
                    ));
                    return Err(error.context("field", &column.name));
                }
            };
            self.lens.push(cut);
        }
        Ok(true)
    }

    /// The row for the next piece, if it need not be a new one, and what of the sequences the piece has.
    fn find(&mut self, plan: &Plan) -> Result<Option<u64>> {
        if self.method == Method::Concat {
            // A later piece begins a row.
            let found = self.index.find(0, self.first, |_| true).filter(|_| self.piece == 0);
            self.cut_out(plan, self.piece, found.map(|row| (row - self.first) as usize))?;
            return Ok(found);
        }
        self.cut_out(plan, self.piece, None)?;
        let need = self.ranges.iter().map(ExactSizeIterator::len).sum();
        let (first, rows, ranges) = (self.first, &self.rows, &self.ranges);
        // Where there is one field, room in all is room in it.
        let fits = |row: u64| {
            ranges.len() == 1
                || rows.get((row - first) as usize).is_some_and(|row| {
                    ranges.iter().enumerate().all(|(column, range)| range.len() <= row.room(plan, column))
                })
        };
        Ok(self.index.find(need, first, fits))
    }

    /// Notes which items this piece has of the sequences that were measured, for the row at this place; none for a new one.
    fn cut_out(&mut self, plan: &Plan, piece: u64, row: Option<usize>) -> Result<()> {
        let row = row.and_then(|row| self.rows.get(row));
        if piece == 0 && self.method == Method::Concat {
            let room = |column: usize| row.map_or(plan.columns[column].length, |row| row.room(plan, column));
            self.cut.clear();
            self.cut.extend((0..plan.columns.len()).map(room));
        }
        self.ranges.clear();
        for (at, (column, &len)) in plan.columns.iter().zip(&self.lens).enumerate() {
            let first = match self.method {
                Method::Concat => self.cut.get(at).copied(),
                _ => Some(column.length),
            };
            let first = first.ok_or_else(|| Error::invalid("the sample has other fields than it had"))?;
            let before = |pieces: u64| {
                let pieces = usize::try_from(pieces).unwrap_or(usize::MAX);
                first.saturating_add(column.length.saturating_mul(pieces)).min(len)
            };
            self.ranges.push(if piece == 0 { 0..before(0) } else { before(piece - 1)..before(piece) });
        }
        Ok(())
    }

    /// Notes whether the row at this place takes more, after a piece was written into it; says whether that was the last one of
    /// its sample.
    fn settle(&mut self, at: usize, plan: &Plan) -> bool {
        let whole = self.ranges.iter().zip(&self.lens).all(|(range, len)| range.end == *len);
        if let Some(row) = self.rows.get_mut(at) {
            let no_room = match self.method {
                // What has more to come has filled some field.
                Method::Concat => (0..plan.columns.len()).any(|column| row.room(plan, column) == 0),
                _ => row.left == 0,
            };
            row.full = no_room || row.members.len() >= self.max_per_bin;
        }
        whole
    }
}
