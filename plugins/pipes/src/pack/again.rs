//! Going on from a saved position: the samples that lie in open rows are taken again.

use std::ops::Range;

use forebay_core::{Context, Error, Io, Result, State};

use super::{
    Pack, VERSION, position,
    row::{Member, Piece, Row},
};

/// Taking samples again that lie in rows.
#[derive(Debug)]
pub(super) struct Again {
    /// The pieces that are wanted and their rows, the oldest last.
    wanted: Vec<(Member, usize)>,
    /// The number of the next sample, counted from the first that comes again, and that of the first that is new.
    pub(super) next: u64,
    end: u64,
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
        let wanted = saved.wanted();
        self.again = (!wanted.is_empty()).then_some(Again { wanted, next: 0, end: saved.count });
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
        let Some(mut again) = self.again.take() else { return Ok(true) };
        let taken = self.put_back(&mut again, io, cx);
        let over = again.next == again.end && again.wanted.is_empty();
        let missing = again.end - again.next + u64::from(again.next == again.end);
        match taken {
            Ok(()) if over => self.note_rows(),
            Ok(()) if !io.ended(0) => {
                self.again = Some(again);
                return Ok(false);
            }
            Ok(()) => {
                self.clear();
                let message = format!("the input ended {missing} samples before the saved position");
                return Err(Error::invalid(message));
            }
            Err(error) => {
                self.clear();
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Takes samples until all are there or none waits.
    fn put_back(&mut self, again: &mut Again, io: &mut Io, cx: &Context) -> Result<()> {
        while let Some(input) = io.input(0).filter(|input| !input.is_empty()) {
            while let Some(&(member, at)) = again.wanted.last()
                && member.ordinal == again.next
                && let Some((uid, key, schema, values)) = input.peek()
            {
                let plan = &self.plan(schema, values)?;
                let packed = self.measure(plan, values)?;
                self.cut_out(plan, member.piece, Some(at))?;
                let fits = |(column, range): (usize, &Range<usize>)| {
                    self.rows.get(at).is_some_and(|row| range.len() <= row.room(plan, column))
                };
                if !packed || !self.ranges.iter().enumerate().all(fits) {
                    return Err(
                        Error::invalid("the sample has another length than it had").context("sample", key)
                    );
                }
                let piece = Piece { plan, uid, key, number: member.piece, values, ranges: &self.ranges };
                if let Some(row) = self.rows.get_mut(at) {
                    row.put(&piece, cx)?;
                }
                self.settle(at, plan);
                again.wanted.pop();
            }
            if again.next == again.end {
                break;
            }
            input.advance();
            again.next += 1;
        }
        Ok(())
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
