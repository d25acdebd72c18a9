//! Going on from a saved position: the samples that lie in open rows are taken again.

use std::ops::Range;

use forebay_core::{Chunk, Context, Error, Io, Result, State};

use super::{
    Pack, VERSION, position,
    row::{Member, Piece, Row},
};
use crate::plumbing::replay::{self, Replay};

/// What lies in rows of each sample: its pieces, in order, and their rows; the oldest sample last.
pub(super) type Held = Vec<(u64, (u64, Vec<(u64, usize)>))>;

/// Those pieces, each with its row and the oldest last, by their samples.
fn by_sample(wanted: Vec<(Member, usize)>) -> Held {
    let mut held: Held = Vec::new();
    for (Member { ordinal, piece }, row) in wanted {
        match held.last_mut() {
            Some((known, (_, pieces))) if *known == ordinal => pieces.insert(0, (piece, row)),
            _ => held.push((ordinal, (ordinal, vec![(piece, row)]))),
        }
    }
    held
}

impl Pack {
    /// Notes what is to be taken again.
    pub(super) fn go_to(&mut self, state: &State) -> Result<()> {
        if state.version != VERSION {
            let found = state.version;
            return Err(Error::invalid(format!("found a state of version {found}, expected {VERSION}")));
        }
        let saved =
            position::read(&state.bytes).ok_or_else(|| Error::invalid("unreadable state of a pack"))?;
        let refuse = |option: &str, found: u64, expected: usize| {
            let error =
                Error::invalid(format!("found the state of a pack with {found}, expected {expected}"));
            Err(error.context("option", option))
        };
        if saved.length != self.length as u64 {
            return refuse("length", saved.length, self.length);
        }
        if saved.method != self.method as u64 {
            let error = Error::invalid("found the state of a pack with another method");
            return Err(error.context("option", "method"));
        }
        if saved.rows.len() > self.bins {
            return refuse("bins", saved.rows.len() as u64, self.bins);
        }
        let held = by_sample(saved.wanted());
        // The next sample is looked at again too, if a row has pieces of it.
        let end = held.first().map_or(0, |(newest, _)| saved.count.max(newest + 1));
        self.replay = (!held.is_empty()).then(|| Replay::from_the_first(held, end));
        (self.taken, self.piece) = (saved.count, saved.piece);
        self.rows = saved.rows.into_iter().map(Row::awaiting).collect();
        if let Some(row) = self.rows.front_mut() {
            row.cut.clone_from(&saved.cut);
        }
        self.cut = saved.cut;
        Ok(())
    }

    /// Takes again what waits: each piece goes back to its row. Says whether all are there.
    pub(super) fn take_again(&mut self, io: &mut Io, cx: &Context) -> Result<bool> {
        let mut replay = self.replay.take();
        if replay.is_none() {
            return Ok(true);
        }
        let put = |(ordinal, pieces): (u64, Vec<_>), input: &mut Chunk| {
            pieces.into_iter().try_for_each(|(piece, row)| self.put_back(input, piece, row, cx))?;
            // The one that is not whole yet stays where it is.
            if ordinal < self.taken {
                input.advance();
            }
            Ok(())
        };
        match replay::take_again(&mut replay, io, put) {
            Ok(true) => self.note_rows(),
            Ok(false) => {
                self.replay = replay;
                return Ok(false);
            }
            Err(error) => {
                self.clear();
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Puts a piece of the foremost sample back into its row.
    fn put_back(&mut self, input: &Chunk, number: u64, at: usize, cx: &Context) -> Result<()> {
        let Some((uid, key, schema, values)) = input.peek() else { return Ok(()) };
        self.with_plan(schema, values, |this, plan| {
            let packed = this.measure(plan, values)?;
            this.cut_out(plan, number, Some(at))?;
            let fits = |(column, range): (usize, &Range<usize>)| {
                this.rows.get(at).is_some_and(|row| range.len() <= row.room(plan, column))
            };
            if !packed || !this.ranges.iter().enumerate().all(fits) {
                let error = Error::invalid("the sample has another length than it had");
                return Err(error.context("sample", key));
            }
            let piece = Piece { plan, uid, key, number, values, ranges: &this.ranges };
            if let Some(row) = this.rows.get_mut(at) {
                row.put(&piece, cx)?;
            }
            this.settle(at, plan);
            Ok(())
        })
    }

    /// Notes the room of all rows.
    fn note_rows(&mut self) {
        for (number, row) in (self.first..).zip(&self.rows) {
            if !row.full {
                self.index.set(number, None, Some(row.left));
            }
        }
    }
}
