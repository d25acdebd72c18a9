//! `forebay plugins why`: which pipes and decoders take a file.

use std::io::{self, Write};

use forebay_loader::{
    Error, FileKind, Registry,
    registry::{Candidate, OpenerCandidate},
    without_secrets,
};
use serde_json::json;

use crate::{
    outcome::Result,
    print::{self, TextTable, near},
};

/// What there is to say of a file.
struct Found {
    kind: FileKind,
    pipes: Vec<OpenerCandidate>,
    decoders: Vec<Candidate>,
}

/// Says what takes a file, and ranks the pipes and decoders for it; an error when none does.
pub(super) fn why(registry: &Registry, file: &str, json: bool) -> Result {
    let found = found(registry, file).map_err(|error| error.context("file", file))?;
    let (extension, file) = (FileKind::extension_of(file), &*without_secrets(file));
    if json {
        let Found { kind, pipes, decoders } = &found;
        print::json(
            &json!({ "file": file, "extension": extension, "kind": kind, "pipes": pipes, "ranking": decoders }),
        )?;
    } else {
        print::text(|out| found.write(file, out))?;
    }
    match &found.kind.left {
        None => Ok(()),
        Some(_) => {
            let error = Error::unsupported("no pipe opens this file, and no decoder takes it");
            Err(error.context("file", file).into())
        }
    }
}

fn found(registry: &Registry, file: &str) -> Result<Found, Error> {
    let (extension, head) = (FileKind::extension_of(file), FileKind::head_of(file, registry)?);
    let (pipes, decoders) = (registry.rank_openers(extension, &head)?, registry.rank(extension, &head));
    Ok(Found { kind: FileKind::of(file, registry)?, pipes, decoders })
}

impl Found {
    /// What is done with it, then the pipes and decoders that take it or came near, one a line, and the names of all others.
    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{file}: {}", self.verdict())?;
        let shown = |score: u8| if score > 0 { score.to_string() } else { "refused".to_owned() };
        let far = |reason: &str| reason.starts_with("neither");
        let mut table = TextTable::new(&[">score", "pipe that opens files", "plugin", "file", "reason"]);
        let mut none = true;
        for pipe in self.pipes.iter().filter(|pipe| !far(&pipe.reason)) {
            let then = if pipe.then.is_empty() { String::new() } else { format!(" | {}", pipe.then) };
            let name = format!("{}{then}", pipe.pipe);
            table.row([shown(pipe.score), name, pipe.plugin.clone(), near(&pipe.file), pipe.reason.clone()]);
            none = false;
        }
        if !none {
            writeln!(out)?;
            table.write(out, "")?;
        }
        let mut table = TextTable::new(&[">score", ">priority", "decoder", "plugin", "file", "reason"]);
        let mut none = true;
        for decoder in self.decoders.iter().filter(|decoder| !far(&decoder.reason)) {
            table.row([
                shown(decoder.score),
                decoder.priority.to_string(),
                decoder.decoder.clone(),
                decoder.plugin.clone(),
                near(&decoder.file),
                decoder.reason.clone(),
            ]);
            none = false;
        }
        if !none {
            writeln!(out)?;
            table.write(out, "")?;
        }
        let pipes = self.pipes.iter().filter(|pipe| far(&pipe.reason)).map(|pipe| pipe.pipe.as_str());
        let decoders = self.decoders.iter().filter(|decoder| far(&decoder.reason));
        let others: Vec<_> = pipes.chain(decoders.map(|decoder| decoder.decoder.as_str())).collect();
        if others.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nneither magic bytes nor extension match: {}", others.join(", "))
    }

    /// What `head`, `run` and `dump` do with it.
    fn verdict(&self) -> String {
        let FileKind { opened_by, unpacked_by, decoder, plugin, left, .. } = &self.kind;
        let plugin = plugin.as_deref().unwrap_or_default();
        let unpacked = unpacked_by.as_ref().map(|by| format!("unpacked by {by}, ")).unwrap_or_default();
        match (left, decoder) {
            (Some(why), _) => format!("{unpacked}left as bytes: {why}"),
            (None, Some(decoder)) => format!("{unpacked}decoded by {decoder} ({plugin})"),
            (None, None) => format!("{unpacked}opened by {} ({plugin})", opened_by.join(" | ")),
        }
    }
}
