//! Which decoder takes a value: candidates by magic and extension, then by how sure each is.

use forebay_core::{Error, Result};
use serde::Serialize;

use super::{DecoderSpec, Registry};

/// The most bytes that a decoder is shown to say how sure it is.
pub const HEAD: usize = 4096;

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
    /// How sure it is, from 1 to 255; 0 when it was refused.
    pub score: u8,
    /// Its priority.
    pub priority: u32,
    /// Why it is a candidate, or why it was refused.
    pub reason: String,
    #[serde(skip)]
    pub(super) place: (usize, usize),
}

impl Registry {
    /// All decoders for a value with this extension and head: those that take it, best first, then those
    /// that refuse it, each with the reason.
    ///
    /// Order: how sure it is, priority, plugin's version, name. Libraries of candidates are loaded, no others.
    #[must_use]
    pub fn rank(&self, extension: &str, head: &[u8]) -> Vec<Candidate> {
        let head = &head[..head.len().min(HEAD)];
        let extension = extension.to_ascii_lowercase();
        let mut candidates = Vec::new();
        for (plugin, record) in self.plugins().iter().enumerate() {
            for (index, spec) in record.manifest().decoders.iter().enumerate() {
                let priority = self.priority(spec);
                let verdict = match priority {
                    None => Err("left out by FOREBAY_PLUGIN_RANK".to_owned()),
                    Some(_) => self.sure(plugin, index, spec, &extension, head),
                };
                let (score, reason) = match verdict {
                    Ok((score, reason)) => (score, reason),
                    Err(reason) => (0, reason),
                };
                candidates.push(Candidate {
                    decoder: spec.name.clone(),
                    plugin: record.label(),
                    file: record.file(),
                    score,
                    priority: priority.unwrap_or(0),
                    reason,
                    place: (plugin, index),
                });
            }
        }
        candidates.sort_by(|a, b| {
            let key = |c: &Candidate| (c.score, if c.score > 0 { c.priority } else { 0 });
            key(b).cmp(&key(a)).then_with(|| a.decoder.cmp(&b.decoder)).then_with(|| b.plugin.cmp(&a.plugin))
        });
        candidates
    }

    /// The decoder of highest rank for a value, or the one pinned as `NAME` or `NAME@PLUGIN`.
    ///
    /// # Errors
    /// `Unsupported`, with the reason of each candidate that came near.
    pub fn choose(
        &self,
        extension: &str,
        head: &[u8],
        pinned: Option<&str>,
    ) -> Result<forebay_core::AnyDecoder> {
        if let Some(name) = pinned {
            return self.pinned(name);
        }
        let ranking = self.rank(extension, head);
        match ranking.first() {
            Some(best) if best.score > 0 => self.decoder_at(best.place),
            _ => {
                let near = ranking.iter().filter(|candidate| !candidate.reason.starts_with("neither"));
                let near: Vec<_> = near.take(6).map(|c| format!("{}: {}", c.decoder, c.reason)).collect();
                let near =
                    if near.is_empty() { "no decoder names its extension".into() } else { near.join("; ") };
                let message = format!("no decoder for extension `{extension}`: {near}");
                Err(Error::unsupported(message).context("plugins", self.looked_at()))
            }
        }
    }

    fn pinned(&self, pin: &str) -> Result<forebay_core::AnyDecoder> {
        let (name, plugin) = pin.split_once('@').map_or((pin, None), |(name, plugin)| (name, Some(plugin)));
        for (at, record) in self.plugins().iter().enumerate() {
            if plugin.is_some_and(|plugin| !record.is_called(plugin)) {
                continue;
            }
            if let Some(index) = record.manifest().decoders.iter().position(|spec| spec.name == name) {
                return self.decoder_at((at, index));
            }
        }
        Err(Error::unsupported(format!("no decoder called {pin}")).context("plugins", self.looked_at()))
    }

    /// Score and reason of one decoder, or why it is refused.
    fn sure(
        &self,
        plugin: usize,
        index: usize,
        spec: &DecoderSpec,
        extension: &str,
        head: &[u8],
    ) -> Result<(u8, String), String> {
        let named = spec.extensions.iter().any(|known| known == extension);
        let magic = spec.magic.iter().any(|magic| magic.matches(head));
        let reason = match (magic, named) {
            (true, true) => "magic bytes and extension match",
            (true, false) => "magic bytes match",
            (false, true) if spec.magic.is_empty() => "extension matches",
            (false, true) => return Err("extension matches, but the bytes do not begin as its own do".into()),
            (false, false) => return Err("neither magic bytes nor extension match".into()),
        };
        let score = self
            .decoder_at((plugin, index))
            .and_then(|decoder| decoder.probe(head, extension))
            .map_err(|error| format!("{reason}, but {error}"))?;
        if score == 0 {
            Err(format!("{reason}, but it does not know the bytes"))
        } else {
            Ok((score, reason.into()))
        }
    }
}
