//! `zip_by_key`: the fields of two samples with one key in one sample.
//!
//! ```toml
//! [zip_by_key]
//! page = "streams"
//! examples = ['''forebay head -n 1 "range @a 10 ; range @b 10 | map 'half = value / 2.0' ; zip_by_key <a, map> value prefix=[a_, b_]"''']
//! counted = false
//!
//! [[zip_by_key.ending]]
//! graph = "range @a N ; range @b N start=3 ; zip_by_key <a, b> key=value join=outer prefix=['', 'b-']"
//! instead = "range @a N start=3 ; range @b N ; zip_by_key <a, b> key=value join=outer prefix=['', 'b-']"
//! why = "that a sample has no partner is known at the end"
//! ```

use std::mem;

use forebay_core::{
    Chunk, Context, DataPipe, Drops, Error, Io, Length, PipeAudit, PipeInfo, PipeLayout, Result, Sample,
    Schema, State, StateExt, Step, Stream, Uids, Value, options,
};

use crate::plumbing::{
    held::{Again, Held},
    keys::Index,
    pairs::{Pairs, alone},
};

options! {
    /// Options of `zip_by_key`.
    pub struct ZipByKeyOptions {
        /// An expression for a sample's key, for both inputs; null for the sample's name, or its file's name
        /// without folder and extension.
        key: Option<String> = null;
        /// The expression for the first input only.
        left: Option<String> = null;
        /// The expression for the second input only.
        right: Option<String> = null;
        /// What to do with a sample without a partner: `strict` fails, `inner` leaves it out, `left` keeps samples
        /// of the first input and `outer` those of both, with nulls for the partner.
        join: String = "strict", one_of ["strict", "inner", "left", "outer"];
        /// The most samples of the second input that wait for their partners.
        buffer: usize = 10000, in 1..=1_000_000_000;
        /// What to do if the buffer is full without the partner: `fail`, or `drop_oldest`, which treats the oldest
        /// as a sample without a partner.
        on_full: String = "fail", one_of ["fail", "drop_oldest"];
        /// A prefix for the fields of each input, two texts; null if no name comes twice.
        prefix: Option<Vec<String>> = null;
    }
}

/// Joins each sample of the first input with the one of the second that has the same key.
///
/// They come in the order of the first input, and have its uids and keys. For each sample of it as many of the second are taken as
/// it needs to find its partner; the others wait in a buffer. A field that is the key of both stands there once. Two samples of the
/// second with one key must not wait at a time. State: which samples wait; they come again, with all that came between them.
#[derive(Debug)]
pub struct ZipByKey {
    pairs: Pairs,
    kind: Kind,
    buffer: usize,
    drop_oldest: bool,
    held: Held,
    index: Index,
    /// The sample of the first input that looks for its partner, if there is one, and its key.
    left: Sample,
    looks: bool,
    key: Vec<u8>,
    /// The partner, and the key of the foremost sample of the second input.
    right: Sample,
    other: Vec<u8>,
    /// The fields of the last sample of each input, which are null for one without a partner.
    fields: [Schema; 2],
    /// Whether an error ended the stream.
    failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Strict,
    Inner,
    Left,
    Outer,
}

/// A saved position: the runs of samples that wait, and the names of each input's fields where they may be needed.
type Position = (Vec<u64>, Vec<Vec<String>>);

impl DataPipe for ZipByKey {
    const INFO: PipeInfo = PipeInfo {
        name: "zip_by_key",
        summary: "The fields of two samples with one key in one sample",
        also: &["join", "zip_with_iter"],
        layout: PipeLayout { inputs: (2, 2), per_input: &["prefix"], ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Derived, drops: Drops::Always, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = ZipByKeyOptions;

    fn new(options: ZipByKeyOptions) -> Result<Self> {
        let ZipByKeyOptions { key, left, right, join, buffer, on_full, prefix } = options;
        let pairs = Pairs::new(key.as_deref(), [left.as_deref(), right.as_deref()], prefix)?;
        let kind = match join.as_str() {
            "inner" => Kind::Inner,
            "left" => Kind::Left,
            "outer" => Kind::Outer,
            _ => Kind::Strict,
        };
        Ok(Self {
            pairs,
            kind,
            buffer,
            drop_oldest: on_full == "drop_oldest",
            held: Held::default(),
            index: Index::default(),
            left: Sample::default(),
            looks: false,
            key: Vec::new(),
            right: Sample::default(),
            other: Vec::new(),
            fields: [Schema::empty(), Schema::empty()],
            failed: false,
        })
    }
}

impl Stream for ZipByKey {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        self.index.clear();
        // Of fields that were not seen yet only the key is known.
        self.fields = [self.pairs.known(), Schema::empty()];
        (self.looks, self.failed) = (false, false);
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        if self.failed {
            return Ok(Step::End);
        }
        if !self.take_again(io)? {
            return Ok(Step::NeedInput(1));
        }
        while io.room() > 0 {
            if !self.looks && !self.take_left(io)? {
                if !io.ended(0) {
                    return Ok(Step::NeedInput(0));
                }
                if let Some(step) = self.finish(io, cx)? {
                    return Ok(step);
                }
            } else if let Some(step) = self.look(io, cx)? {
                return Ok(step);
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0].filter(|_| matches!(self.kind, Kind::Strict | Kind::Left))
    }

    fn state(&self) -> Result<State> {
        let names = |schema: &Schema| schema.names().iter().map(|name| name.to_string()).collect();
        let filled = if matches!(self.kind, Kind::Left | Kind::Outer) { &self.fields[..] } else { &[] };
        let position: Position = (self.held.runs(), filled.iter().map(names).collect());
        Ok(State::json(1, &position)?.again(0, self.looks.into()).again(1, self.held.again()))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (runs, names): Position = state.parse(1)?;
        for (fields, names) in self.fields.iter_mut().zip(names) {
            *fields = Schema::new(names);
        }
        self.held.restore(runs)
    }
}

impl ZipByKey {
    /// After a restore: takes again what waited. Says whether all is there.
    fn take_again(&mut self, io: &mut Io) -> Result<bool> {
        loop {
            match self.held.take_again(io, 1) {
                Ok(Again::Done) => return Ok(true),
                Ok(Again::Wait) => return Ok(false),
                Ok(Again::Kept(slot)) => {
                    if let Err(error) = self.pairs.by[1].of(self.held.sample(slot), &mut self.other) {
                        self.held.release(slot);
                        return Err(error);
                    }
                    self.index.insert(self.index.hash(&self.other), &self.other, slot);
                }
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
            }
        }
    }

    /// Takes the next sample of the first input, whose partner is then looked for; says whether there was one.
    fn take_left(&mut self, io: &mut Io) -> Result<bool> {
        let Some(input) = io.input(0) else { return Ok(false) };
        let Some(read) = self.pairs.by[0].read(input, &mut self.key) else { return Ok(false) };
        input.pop_into(&mut self.left);
        read?;
        remember(&mut self.fields[0], self.left.schema());
        self.looks = true;
        Ok(true)
    }

    /// Looks for the partner among those that wait, then among those that come. Says what to wait for.
    fn look(&mut self, io: &mut Io, cx: &Context) -> Result<Option<Step>> {
        if self.held.len() > 0
            && let Some(slot) = self.index.find(self.index.hash(&self.key), &self.key)
        {
            self.release(slot);
            self.looks = false;
            return self.give(io, [true, true], cx);
        }
        while let Some(input) = io.input(1) {
            let Some(read) = self.pairs.by[1].read(input, &mut self.other) else { break };
            if let Err(error) = read {
                self.held.pass(input);
                return Err(error);
            }
            if let Some((.., schema, _)) = input.peek() {
                remember(&mut self.fields[1], schema);
            }
            if self.other == self.key {
                self.held.pass_into(input, &mut self.right);
                self.looks = false;
                return self.give(io, [true, true], cx);
            }
            let hash = self.index.hash(&self.other);
            if let Some(slot) = self.index.find(hash, &self.other) {
                return Err(self.twice(input, slot));
            }
            if self.held.len() >= self.buffer {
                return self.full(io, cx);
            }
            let slot = self.held.keep(input);
            self.index.insert(hash, &self.other, slot);
        }
        if !io.ended(1) {
            return Ok(Some(Step::NeedInput(1)));
        }
        self.looks = false;
        match self.kind {
            Kind::Strict => Err(alone(self.left.key(), 1, &self.key)),
            Kind::Inner => Ok(None),
            Kind::Left | Kind::Outer => self.give(io, [true, false], cx),
        }
    }

    /// After the end of the first input: what becomes of those of the second that are left. Says what to wait for.
    fn finish(&mut self, io: &mut Io, cx: &Context) -> Result<Option<Step>> {
        if matches!(self.kind, Kind::Inner | Kind::Left) {
            self.held.clear();
            self.index.clear();
            return Ok(Some(Step::End));
        }
        if let Some(oldest) = self.held.oldest() {
            self.release(oldest);
            return self.partnerless(io, cx);
        }
        let Some(input) = io.input(1).filter(|input| !input.is_empty()) else {
            return Ok(Some(if io.ended(1) { Step::End } else { Step::NeedInput(1) }));
        };
        self.held.pass_into(input, &mut self.right);
        remember(&mut self.fields[1], self.right.schema());
        self.partnerless(io, cx)
    }

    /// When the partner is not among those that wait, and no more may.
    fn full(&mut self, io: &mut Io, cx: &Context) -> Result<Option<Step>> {
        if let (true, Some(oldest)) = (self.drop_oldest, self.held.oldest()) {
            self.release(oldest);
            return self.partnerless(io, cx);
        }
        self.looks = false;
        let message = format!(
            "its partner is not among the {} samples of input 1 that may wait: allow more, or `on_full=drop_oldest`",
            self.buffer
        );
        Err(Error::invalid(message).context("option", "buffer").context("sample", self.left.key()))
    }

    /// Moves a sample that waits to `right`.
    fn release(&mut self, slot: u32) {
        mem::swap(self.held.sample(slot), &mut self.right);
        self.held.release(slot);
        self.index.remove(slot);
    }

    /// Gives `right`, or leaves it out, or fails.
    fn partnerless(&mut self, io: &mut Io, cx: &Context) -> Result<Option<Step>> {
        match self.kind {
            Kind::Strict => {
                self.pairs.by[1].of(&self.right, &mut self.other)?;
                Err(alone(self.right.key(), 0, &self.other))
            }
            Kind::Inner | Kind::Left => Ok(None),
            Kind::Outer => self.give(io, [false, true], cx),
        }
    }

    /// The error for a sample of the second input whose key one has that waits.
    #[cold]
    fn twice(&mut self, input: &mut Chunk, slot: u32) -> Error {
        let waits = self.held.sample(slot).key().to_string();
        let key = input.front().map(|(_, key)| key.to_string()).unwrap_or_default();
        self.held.pass(input);
        Error::invalid(format!("its key is that of `{waits}`, which waits for its partner"))
            .context("sample", key)
    }

    /// Gives the sample with the fields of `left` and `right`, of which one may be none.
    fn give(&mut self, io: &mut Io, [left, right]: [bool; 2], cx: &Context) -> Result<Option<Step>> {
        let schemas = [
            if left { self.left.schema() } else { &self.fields[0] },
            if right { self.right.schema() } else { &self.fields[1] },
        ];
        let (uid, key) = match left {
            true => (self.left.uid(), self.left.key().clone()),
            false => (cx.uid_of(self.right.uid(), [1, 0]), self.right.key().clone()),
        };
        let places = self.pairs.places(schemas, left).map_err(|error| error.context("sample", &key))?;
        let schema = self.pairs.schema();
        if left {
            io.push_row(
                uid,
                key,
                schema,
                places.join(values(&mut self.left, true), values(&mut self.right, right)),
            );
        } else {
            let left = places.without_left(self.right.values());
            io.push_row(uid, key, schema, places.join(left.into_iter(), values(&mut self.right, true)));
        }
        Ok(None)
    }
}

/// The values of a sample, taken out of it; none of one that is not there.
fn values(sample: &mut Sample, there: bool) -> impl Iterator<Item = Value> {
    let values = if there { sample.values_mut() } else { &mut [] };
    values.iter_mut().map(mem::take)
}

/// Notes the fields of the last sample.
fn remember(known: &mut Schema, schema: &Schema) {
    if !known.is(schema) {
        *known = schema.clone();
    }
}

#[cfg(test)]
mod tests;
