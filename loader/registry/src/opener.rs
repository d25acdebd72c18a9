//! Chooses the pipe that opens a file: candidates by magic and extension, then by how sure each is, as for
//! decoders.

use std::{cmp::Reverse, sync::OnceLock};

use forebay_core::{Error, Result};
use forebay_graph::{Catalog, Class, begins};
use serde::Serialize;

use super::{
    HEAD, Manifest, Registry,
    choice::{NEITHER, UNASKED},
};
use crate::handles::PipeHandle;

/// A pipe that opens files with a given head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Opener {
    /// The unique name of the pipe.
    pub pipe: String,
    /// The pipe that reads what this one gives; empty if there is none.
    pub then: String,
    /// Its plugin, with version.
    pub plugin: String,
    /// How sure it is, from 1 to 255.
    pub score: u8,
    /// Whether the pipe is a map that unpacks a file into another file, which must be opened in turn.
    pub unpacks: bool,
    /// The extensions that its files have.
    pub extensions: Vec<String>,
}

/// A pipe that opens files, ready to be compared with a file's head.
pub(super) struct OpenerSlot {
    plugin: usize,
    index: usize,
    extensions: Vec<String>,
    magic: Vec<(usize, Vec<u8>)>,
    made: OnceLock<Result<PipeHandle>>,
    /// The pipe that follows.
    then: OnceLock<Result<PipeHandle>>,
}

impl OpenerSlot {
    /// Those of a plugin.
    pub(super) fn all(plugin: usize, manifest: &Manifest) -> impl Iterator<Item = Self> {
        manifest.pipes.iter().enumerate().filter_map(move |(index, spec)| {
            let opens = spec.opens.as_ref()?;
            // A malformed one is none, and no empty one, which every file begins with.
            let magic = opens.magic.iter().filter_map(|magic| Some((magic.offset, magic.decode()?)));
            let (extensions, magic) = (opens.extensions.clone(), magic.collect());
            let (made, then) = (OnceLock::new(), OnceLock::new());
            Some(Self { plugin, index, extensions, magic, made, then })
        })
    }

    /// How sure it counts as where it may not be asked: by what its manifest says.
    fn unasked(&self, extension: &str, head: &[u8]) -> u8 {
        match self.magic.iter().any(|magic| begins(magic, head)) {
            true => u8::MAX,
            false if self.is_named(extension) => UNASKED,
            false => 0,
        }
    }

    fn is_named(&self, extension: &str) -> bool {
        self.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
    }

    fn may_open(&self, extension: &str, head: &[u8]) -> bool {
        self.magic.iter().any(|magic| magic.1.is_empty() || begins(magic, head))
            || (self.magic.is_empty() && self.is_named(extension))
    }

    /// Why it is asked of a file, or is not.
    fn reason(&self, extension: &str, head: &[u8]) -> &'static str {
        let begins = self.magic.iter().any(|magic| begins(magic, head));
        match (begins, self.is_named(extension), self.may_open(extension, head)) {
            (true, true, _) => "magic bytes and extension match",
            (true, false, _) => "magic bytes match",
            (false, true, true) => "extension matches",
            (false, false, true) => "it is asked of every file",
            (false, true, false) => "extension matches, but the first bytes do not",
            (false, false, false) => NEITHER,
        }
    }
}

/// A pipe's place in the ranking for a file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct OpenerCandidate {
    /// The unique name of the pipe.
    pub pipe: String,
    /// The pipe that reads what this one gives; empty if there is none.
    pub then: String,
    /// Its plugin, with version.
    pub plugin: String,
    /// The file that serves it.
    pub file: String,
    /// How sure it is, from 1 to 255; 0 if it was refused.
    pub score: u8,
    /// Why it is a candidate, or why it was refused.
    pub reason: String,
}

impl Registry {
    /// The pipes that open files with this extension, but none of them knows these first bytes.
    pub fn strangers(&self, extension: &str, head: &[u8]) -> Vec<&str> {
        let named = |slot: &&OpenerSlot| slot.is_named(extension);
        let slots = self.0.openers.iter().filter(named).filter(|slot| !slot.may_open(extension, head));
        slots.map(|slot| self.0.plugins[slot.plugin].manifest.pipes[slot.index].name.as_str()).collect()
    }

    /// All pipes that open files, for a file with this extension and head, each with the reason: first the pipes
    /// that open it, best first, then the others.
    ///
    /// # Errors
    /// As [`openers`](Registry::openers).
    pub fn rank_openers(&self, extension: &str, head: &[u8]) -> Result<Vec<OpenerCandidate>> {
        let mut openers = self.openers(extension, head)?;
        let mut refused = Vec::new();
        let mut taken = Vec::new();
        for slot in &self.0.openers {
            let record = &self.0.plugins[slot.plugin];
            let (pipe, _) = self.opener_name(slot);
            let reason = slot.reason(extension, head);
            let at = openers.iter().position(|opener| opener.pipe == pipe);
            let (score, then) = at
                .map_or((0, String::new()), |at| (openers[at].score, std::mem::take(&mut openers[at].then)));
            let known = score > 0 || !slot.may_open(extension, head);
            let reason =
                if known { reason.to_owned() } else { format!("{reason}, but it does not know the bytes") };
            let candidate =
                OpenerCandidate { pipe, then, plugin: record.label(), file: record.file(), score, reason };
            match at {
                Some(at) => taken.push((at, candidate)),
                None => refused.push(candidate),
            }
        }
        taken.sort_by_key(|(at, _)| *at);
        Ok(taken.into_iter().map(|(_, candidate)| candidate).chain(refused).collect())
    }

    /// A name that only this pipe has, as a graph has it, and whether another pipe has its short one.
    fn opener_name(&self, slot: &OpenerSlot) -> (String, bool) {
        let manifest = &self.0.plugins[slot.plugin].manifest;
        let name = &manifest.pipes[slot.index].name;
        match self.locate(name) == Some((slot.plugin, slot.index)) {
            true => (name.clone(), false),
            false => (format!("{}:{name}", manifest.name), true),
        }
    }

    /// The pipes that open a file with this extension and head; the surest comes first.
    ///
    /// Loads the libraries of candidates, and no others.
    ///
    /// # Errors
    /// `Abi`, `Panic`: a candidate that cannot answer must not turn into another's output.
    pub fn openers(&self, extension: &str, head: &[u8]) -> Result<Vec<Opener>> {
        let mut openers = Vec::new();
        for slot in self.0.openers.iter().filter(|slot| slot.may_open(extension, head)) {
            let record = &self.0.plugins[slot.plugin];
            let spec = &record.manifest.pipes[slot.index];
            // As a pipe is named that another plugin offers too.
            let (pipe, shadowed) = self.opener_name(slot);
            let head = &head[..head.len().min(HEAD)];
            let sure = |made: &OnceLock<Result<PipeHandle>>, pipe: &str| {
                let handle = made.get_or_init(|| self.make_pipe(pipe, "{}"));
                let score = handle.as_ref().map_err(Error::clone)?.probe(head, extension);
                score.map_err(|error| record.blame(error).context("pipe", pipe))
            };
            let score = match record.is_withheld() {
                true => slot.unasked(extension, head),
                false => sure(&slot.made, &pipe)?,
            };
            if score == 0 {
                continue;
            }
            let then = spec.opens.as_ref().map_or("", |opens| opens.then.as_str());
            let mut then = match self.pipe(&format!("{}:{then}", record.manifest.name)) {
                Some(_) if shadowed => format!("{}:{then}", record.manifest.name),
                _ => then.to_owned(),
            };
            if !then.is_empty() && !record.is_withheld() && sure(&slot.then, &then)? == 0 {
                then.clear();
            }
            let (plugin, unpacks) = (record.label(), spec.class == Class::Map);
            let extensions = slot.extensions.clone();
            let opener = Opener { pipe, then, plugin, score, unpacks, extensions };
            // Of equals the first by name; of one name that which a graph means by it, the first found.
            openers.push(((Reverse(score), &spec.name, slot.plugin), opener));
        }
        openers.sort_by_key(|(order, _)| *order);
        Ok(openers.into_iter().map(|(_, opener)| opener).collect())
    }
}
