//! Chooses the decoder for a value: candidates by magic and extension, then by how sure each is.

use std::cmp::Reverse;

use forebay_core::{AnyDecoder, Error, Result, nearest};
use forebay_graph::begins;
use forebay_guard::call::Callee;
use serde::Serialize;

use super::{DecoderSlot, Refusal, Registry, Tuned, Why};

/// Why a pipe is not asked of a file that is nothing like its own.
pub(super) const NEITHER: &str = "neither magic bytes nor extension match";

/// The most bytes that a decoder sees when it is asked how sure it is.
pub const HEAD: usize = 4096;

/// How sure a decoder or pipe counts as that cannot be asked here, and has only the file's name for it.
pub(super) const UNASKED: u8 = 128;

/// One decoder's place in the ranking for a value.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The decoder.
    pub decoder: String,
    /// Its plugin, with version.
    pub plugin: String,
    /// The file that serves it.
    pub file: String,
    /// How sure it is, from 1 to 255; 0 if it was refused.
    pub score: u8,
    /// Its priority.
    pub priority: u32,
    /// Why it is a candidate, or why it was refused.
    pub reason: String,
}

/// Whether a decoder may take a value, by what its manifest says.
#[derive(Clone, Copy, PartialEq)]
enum Match {
    Both,
    Magic,
    Extension,
    /// Refused: its extension, but not its bytes.
    WrongMagic,
    /// Refused.
    Neither,
    /// Refused: left out from outside.
    Off,
}

impl Match {
    fn is_candidate(self) -> bool {
        matches!(self, Self::Both | Self::Magic | Self::Extension)
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Both => "magic bytes and extension match",
            Self::Magic => "magic bytes match",
            Self::Extension => "extension matches",
            Self::WrongMagic => "extension matches, but the first bytes do not",
            Self::Neither => NEITHER,
            Self::Off => "left out by FOREBAY_PLUGIN_RANK",
        }
    }
}

impl Registry {
    /// All decoders for a value with this extension and head, each with the reason: first those that take it, best
    /// first, then those that refuse it.
    ///
    /// The order is: how sure a decoder is, its priority, its name; of one name, the first that was found. Loads
    /// the libraries of candidates, and no others.
    #[must_use]
    pub fn rank(&self, extension: &str, head: &[u8]) -> Vec<Candidate> {
        let mut ranking: Vec<_> =
            self.0.decoders.iter().map(|slot| self.consider(slot, extension, head)).collect();
        // The slots are in the order of the search, and equals stay in theirs.
        ranking.sort_by_cached_key(|candidate| {
            let strength = (candidate.score, if candidate.score > 0 { candidate.priority } else { 0 });
            (Reverse(strength), candidate.decoder.clone())
        });
        ranking
    }

    fn consider(&self, slot: &DecoderSlot, extension: &str, head: &[u8]) -> Candidate {
        let found = self.matches(slot, extension, head);
        let (score, reason) =
            match found.is_candidate().then(|| self.score(slot, extension, head, &Tuned::default())) {
                None => (0, found.reason().to_owned()),
                Some(Ok(0)) => (0, format!("{}, but it does not know the bytes", found.reason())),
                Some(Ok(score)) => (score, found.reason().to_owned()),
                Some(Err(error)) => (0, format!("{}, but {error}", found.reason())),
            };
        let record = &self.0.plugins[slot.plugin];
        Candidate {
            decoder: self.spec(slot).name.clone(),
            plugin: record.label(),
            file: record.file(),
            score,
            priority: slot.priority.unwrap_or(0),
            reason,
        }
    }

    /// The best decoder for a value, or the decoder pinned as `NAME` or `NAME@PLUGIN`.
    ///
    /// Cost: it is called for every value, so it allocates nothing if there is a decoder.
    ///
    /// # Errors
    /// `Corrupt` if all decoders with the extension say that the first bytes are not theirs. Otherwise
    /// `Unsupported`, with the reason of each candidate that came near. `Invalid` if no decoder takes the value,
    /// but a refused plugin claims it.
    pub fn choose(&self, extension: &str, head: &[u8], pinned: Option<&str>) -> Result<AnyDecoder> {
        self.choose_tuned((extension, head), pinned, &Tuned::default())
    }

    /// As [`choose`](Registry::choose), with options for some decoders.
    ///
    /// # Errors
    /// Those of [`choose`](Registry::choose).
    pub fn choose_tuned(
        &self,
        (extension, head): (&str, &[u8]),
        pinned: Option<&str>,
        tuned: &Tuned,
    ) -> Result<AnyDecoder> {
        if let Some(name) = pinned {
            return self.pinned(name, tuned);
        }
        match self.best(extension, head, tuned)? {
            Some((_, slot)) => self.decoder(slot, tuned),
            None => Err(self.none_takes(extension, head)),
        }
    }

    /// The decoder for a value with this extension and head, its plugin, and how sure it is.
    ///
    /// # Errors
    /// As [`choose`](Registry::choose).
    pub fn decoder_of(&self, extension: &str, head: &[u8]) -> Result<(String, String, u8)> {
        let (score, slot) =
            self.best(extension, head, &Tuned::default())?.ok_or_else(|| self.none_takes(extension, head))?;
        Ok((self.spec(slot).name.clone(), self.0.plugins[slot.plugin].label(), score))
    }

    /// The media types that a decoder says it reads; of its plugin the name and version.
    pub fn media_types(&self, decoder: &str, plugin: &str) -> &[String] {
        let is = |slot: &&DecoderSlot| {
            self.spec(slot).name == decoder && self.0.plugins[slot.plugin].label() == plugin
        };
        self.0.decoders.iter().find(is).map_or(&[], |slot| &self.spec(slot).media_types)
    }

    /// The decoder of highest rank for a value, and how sure it is.
    fn best(&self, extension: &str, head: &[u8], tuned: &Tuned) -> Result<Option<(u8, &DecoderSlot)>> {
        let candidates =
            self.0.decoders.iter().filter(|slot| self.matches(slot, extension, head).is_candidate());
        // The same order as `rank`: of equals the first by name, then the first found.
        let name = |slot: &DecoderSlot| (&self.spec(slot).name, slot.plugin);
        let mut best: Option<((u8, Option<u32>), &DecoderSlot)> = None;
        for slot in candidates {
            // A decoder that fails to answer must not turn into another's output: that is an error.
            let strength = (self.score(slot, extension, head, tuned)?, slot.priority);
            let better = best.is_none_or(|(other, known)| (strength, name(known)) > (other, name(slot)));
            if strength.0 > 0 && better {
                best = Some((strength, slot));
            }
        }
        Ok(best.map(|((score, _), slot)| (score, slot)))
    }

    pub(super) fn callee_of(&self, slot: &DecoderSlot) -> Callee {
        let record = &self.0.plugins[slot.plugin];
        Callee::decoder(&self.spec(slot).name, &record.manifest.name, record.place())
    }

    /// The decoder that a thread or worker process [noted](Callee::decoder) as the one it is in.
    pub fn decoder_noted(&self, id: u32) -> Option<Callee> {
        let mut all = self.0.decoders.iter().map(|slot| self.callee_of(slot));
        all.find(|callee| callee.decoder == id)
    }

    fn none_takes(&self, extension: &str, head: &[u8]) -> Error {
        let ranking = self.rank(extension, head);
        let near = ranking.iter().filter(|candidate| candidate.reason != Match::Neither.reason());
        let near: Vec<_> = near.take(6).map(|c| format!("{}: {}", c.decoder, c.reason)).collect();
        let near = if near.is_empty() {
            "none has this extension or these first bytes".into()
        } else {
            near.join("; ")
        };
        // A picture that is a page of an error, say: had it another name it would be none of ours.
        let found =
            |one: Match| self.0.decoders.iter().any(|slot| self.matches(slot, extension, head) == one);
        if found(Match::WrongMagic) && !found(Match::Extension) {
            return Error::corrupt(format!(
                "named `{extension}`, but its bytes are not of that format: {near}"
            ));
        }
        if let Some(refused) = self.claimed(extension, head) {
            return refused;
        }
        Error::unsupported(format!("no decoder for extension `{extension}`: {near}{}", self.unread()))
            .context("plugins", self.looked_at())
    }

    /// How many files were refused, which may have been plugins for anything.
    fn unread(&self) -> String {
        let broken = |refusal: &&Refusal| matches!(refusal.why, Why::Unfit | Why::Distrusted);
        match self.refusals().iter().filter(broken).count() {
            0 => String::new(),
            1 => "\n  1 plugin file was refused: `forebay plugins list` says why".to_owned(),
            many => format!("\n  {many} plugin files were refused: `forebay plugins list` says why"),
        }
    }

    fn pinned(&self, pin: &str, tuned: &Tuned) -> Result<AnyDecoder> {
        let slot = self.called_so(pin).find(|slot| slot.priority.is_some());
        let missing = || {
            let names = self.0.decoders.iter().map(|slot| self.spec(slot).name.as_str());
            let hint = nearest::did_you_mean(pin, names);
            Error::unsupported(format!("no decoder called {pin}{hint}")).context("plugins", self.looked_at())
        };
        self.decoder(slot.ok_or_else(missing)?, tuned)
    }

    /// The decoders called `NAME` or `NAME@PLUGIN`.
    pub(super) fn called_so<'a>(&'a self, pin: &'a str) -> impl Iterator<Item = &'a DecoderSlot> {
        let (name, plugin) = pin.split_once('@').map_or((pin, None), |(name, plugin)| (name, Some(plugin)));
        self.0.decoders.iter().filter(move |slot| {
            let wanted = plugin.is_none_or(|plugin| self.0.plugins[slot.plugin].is_called(plugin));
            wanted && self.spec(slot).name == name
        })
    }

    /// What the manifest alone says.
    fn matches(&self, slot: &DecoderSlot, extension: &str, head: &[u8]) -> Match {
        if slot.priority.is_none() {
            return Match::Off;
        }
        let named = self.spec(slot).extensions.iter().any(|known| known.eq_ignore_ascii_case(extension));
        let any = || slot.magic.is_empty() || slot.magic.iter().any(|(_, bytes)| bytes.is_empty());
        match (slot.magic.iter().any(|magic| begins(magic, head)), named) {
            (true, true) => Match::Both,
            (true, false) => Match::Magic,
            (false, true) if any() => Match::Extension,
            (false, true) => Match::WrongMagic,
            (false, false) => Match::Neither,
        }
    }

    /// What the decoder itself says; of one that only worker processes may ask, what its manifest does.
    fn score(&self, slot: &DecoderSlot, extension: &str, head: &[u8], tuned: &Tuned) -> Result<u8> {
        if self.0.plugins[slot.plugin].is_withheld() {
            return Ok(if self.matches(slot, extension, head) == Match::Extension {
                UNASKED
            } else {
                u8::MAX
            });
        }
        self.decoder(slot, tuned)?.probe(&head[..head.len().min(HEAD)], extension)
    }
}
