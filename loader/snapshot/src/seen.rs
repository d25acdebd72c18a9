//! Which files a flat map was given: what a place within them was counted in.

use std::collections::VecDeque;

use forebay_core::{Chunk, Schema, Value, View};
use serde::{Deserialize, Serialize};

use crate::FileMark;

/// The field that names the file which a sample is about, or is a piece of.
const PATH: &str = "path";
/// The most files that are remembered of a node; beyond, the first are forgotten.
const MOST: usize = 1024;
/// The most files that a snapshot names of a node.
const NAMED: usize = 64;

/// A file, from the first of the input's samples that was about it to the one before the next file's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pass: u64,
    first: u64,
    path: String,
    /// As it was then; none where nobody has looked.
    is: Option<FileMark>,
}

/// The files that a node was given, in order.
#[derive(Debug, Default)]
pub(super) struct Files(VecDeque<Seen>);

impl Files {
    /// Whether the file at `path` is the last of this pass; and what it was when it was first read, if that is known.
    pub(super) fn known(&self, pass: u64, path: &str) -> (bool, Option<FileMark>) {
        let last = self.0.back().is_some_and(|last| (last.pass, last.path.as_str()) == (pass, path));
        let known = self.0.iter().rev().take(NAMED).find(|seen| seen.path == path && seen.is.is_some());
        (last, known.and_then(|seen| seen.is.clone()))
    }

    /// Notes that a sample is about the file at `path`, unless that is the last already; `is` says what it is, if anybody has looked.
    pub(super) fn note(&mut self, place: (u64, u64), path: &str, is: Option<FileMark>) {
        let (last, known) = self.known(place.0, path);
        if !last {
            self.add(Seen::new(place, path, known.or(is)));
        }
    }

    /// Notes the files that a node is in when it begins, at this place of its input.
    pub(super) fn begin(&mut self, (pass, first): (u64, u64), files: &[FileMark]) {
        let seen = |is: &FileMark| Seen { pass, first, path: is.path.clone(), is: Some(is.clone()) };
        files.iter().map(seen).for_each(|seen| self.add(seen));
    }

    fn add(&mut self, seen: Seen) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(seen);
    }

    /// Takes all, for another process that keeps them.
    pub(super) fn take(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.0).into()
    }

    /// The files of the input's samples from `low` to the one before `high`.
    pub(super) fn between(&self, pass: u64, low: u64, high: u64) -> Vec<FileMark> {
        let mut found: Vec<FileMark> = Vec::new();
        let next = self.0.iter().skip(1).map(Some).chain([None]);
        for (seen, next) in self.0.iter().zip(next) {
            let ends = next.filter(|next| next.pass == pass).map_or(u64::MAX, |next| next.first);
            let lies_there = seen.pass == pass && seen.first < high && (seen.first >= low || ends > low);
            if lies_there && !found.iter().any(|file| file.path == seen.path) && found.len() < NAMED {
                found.extend(seen.is.clone().or_else(|| FileMark::local(&seen.path)));
            }
        }
        found
    }

    /// Forgets the files before sample `low` of the input.
    pub(super) fn forget(&mut self, pass: u64, low: u64) {
        while self.0.get(1).is_some_and(|next| next.pass == pass && next.first <= low) {
            self.0.pop_front();
        }
    }
}

/// Where samples of one schema have the path.
#[derive(Debug, Clone, Default)]
pub struct Field(Option<(Schema, Option<usize>)>);

impl Field {
    fn at(&mut self, schema: &Schema) -> Option<usize> {
        match &self.0 {
            Some((known, at)) if known.is(schema) => *at,
            _ => {
                let at = schema.position(PATH);
                self.0 = Some((schema.clone(), at));
                at
            }
        }
    }

    /// Whether samples of a chunk may name files.
    pub(super) fn is_in(&mut self, chunk: &Chunk) -> bool {
        chunk.schemas().iter().any(|schema| self.at(schema).is_some())
    }

    /// The file that a sample is about, if it names one.
    pub(super) fn path<'a>(&mut self, schema: &Schema, values: &'a [Value]) -> Option<&'a str> {
        match values.get(self.at(schema)?).map(Value::view) {
            Some(View::Str(path)) => Some(path),
            _ => None,
        }
    }
}

impl Seen {
    /// A file at this place of the input: pass and number of the sample.
    fn new((pass, first): (u64, u64), path: &str, is: Option<FileMark>) -> Self {
        Self { pass, first, path: path.to_owned(), is }
    }

    /// As it was noted elsewhere: place, path, and what it was.
    pub(super) fn parts(self) -> ((u64, u64), String, Option<FileMark>) {
        ((self.pass, self.first), self.path, self.is)
    }
}
