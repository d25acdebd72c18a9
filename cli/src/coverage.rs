//! What became of the files at a path: what opened and decoded them, what was left as bytes and why, what failed.

use std::io::{self, Write};

use forebay_loader::{Loader, Registry, Sample, Survey, View, registry::HEAD};
use serde::Serialize;

use crate::print::{Table, count, counted};

/// The most fields that are told apart: rows of hostile files may have a new one each.
const FIELDS: usize = 64;
/// The most failures that are named.
const NAMED: usize = 5;

/// Takes note of what comes out of the files at a path.
pub(crate) struct Coverage {
    survey: Survey,
    registry: Registry,
    samples: u64,
    fields: Vec<Covering>,
}

/// What became of all files, told at the end.
#[derive(Serialize)]
pub(crate) struct Covered {
    files: u64,
    samples: u64,
    /// What opened or decoded the files.
    #[serde(flatten)]
    survey: Survey,
    fields: Vec<Covering>,
    failed: u64,
    /// The first few.
    failures: Vec<Failure>,
}

/// One field of the samples.
#[derive(Clone, Serialize)]
struct Covering {
    field: String,
    /// In how many samples it holds a value.
    decoded: u64,
    /// In how many samples it is still bytes, and why in the first one.
    bytes: u64,
    why: Option<String>,
}

/// A sample that was set aside.
#[derive(Serialize)]
struct Failure {
    key: Option<String>,
    error: String,
}

impl Coverage {
    pub(crate) fn new(survey: Survey, registry: &Registry) -> Self {
        Self { survey, registry: registry.clone(), samples: 0, fields: Vec::new() }
    }

    /// Takes note of one sample.
    pub(crate) fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        for (name, value) in sample.fields() {
            let at = self.fields.iter().position(|field| field.field == name.as_str());
            let at = at.or_else(|| {
                let field = name.as_str().to_owned();
                let new = Covering { field, decoded: 0, bytes: 0, why: None };
                (self.fields.len() < FIELDS).then(|| self.fields.push(new))?;
                Some(self.fields.len() - 1)
            });
            let Some(field) = at.and_then(|at| self.fields.get_mut(at)) else { continue };
            let View::Bytes(bytes) = value.view() else {
                field.decoded += 1;
                continue;
            };
            field.bytes += 1;
            if field.why.is_none() {
                let extension = name.rsplit('.').next().unwrap_or(name);
                let refused = self.registry.choose(extension, &bytes[..bytes.len().min(HEAD)], None).err();
                field.why = refused.map(|error| error.message().to_owned());
            }
        }
    }

    /// What became of all files, once `loader` has read them.
    pub(crate) fn finish(self, loader: &Loader) -> Covered {
        let lost = loader.quarantine();
        let failures = lost.iter().take(NAMED).map(|lost| Failure {
            key: lost.key.clone().or_else(|| lost.error.get("file").map(str::to_owned)),
            error: match lost.error.get("byte") {
                Some(byte) => format!("{}: {}, at byte {byte}", lost.node, lost.error.message()),
                None => format!("{}: {}", lost.node, lost.error.message()),
            },
        });
        Covered {
            files: self.survey.kinds.iter().map(|kind| kind.files).sum(),
            samples: self.samples,
            fields: self.fields,
            failed: lost.len() as u64,
            failures: failures.collect(),
            survey: self.survey,
        }
    }
}

impl Covered {
    /// Tells people, on standard error.
    pub(crate) fn tell(&self) {
        // A run is not less good when nobody can be told about it.
        let _ = self.write(&mut io::stderr().lock());
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (files, samples) =
            (counted(self.files, "file", "files"), counted(self.samples, "sample", "samples"));
        writeln!(out, "coverage: {files}, {samples}")?;
        let mut table = Table::new(&[">", "", ""]);
        for kind in &self.survey.kinds {
            let how = match (&kind.decoder, &kind.left, &kind.plugin) {
                (_, Some(why), _) => format!("left as bytes: {why}"),
                (Some(decoder), _, Some(plugin)) => format!("decoded by {decoder} ({plugin})"),
                (_, _, plugin) => {
                    let plugin = plugin.as_deref().unwrap_or_default();
                    format!("opened by {} ({plugin})", kind.opened_by.join(" | "))
                }
            };
            let unpacked = kind.unpacked_by.as_ref();
            let how = unpacked.map(|by| format!("unpacked by {by}, {how}")).unwrap_or(how);
            let dot = if kind.extension.is_empty() { "" } else { "." };
            let extension = format!("{dot}{}", kind.extension);
            table.row([counted(kind.files, "file", "files"), extension, how]);
        }
        table.write(out, "  ")?;
        for field in self.fields.iter().filter(|field| field.bytes > 0) {
            let why = field.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            writeln!(
                out,
                "  field `{}` is bytes in {}{why}",
                field.field,
                counted(field.bytes, "sample", "samples")
            )?;
        }
        for (file, why) in self.survey.unreadable.iter().take(NAMED) {
            writeln!(out, "  could not be looked into: {file}: {why}")?;
        }
        if self.failed > 0 {
            writeln!(out, "  failed: {}", count(self.failed))?;
        }
        for Failure { key, error } in &self.failures {
            writeln!(out, "    {}: {error}", key.as_deref().unwrap_or("?"))?;
        }
        match (self.failed as usize).saturating_sub(self.failures.len()) {
            0 => Ok(()),
            more => writeln!(out, "    and {}; `run --quarantine FILE` lists all", count(more as u64)),
        }
    }
}
