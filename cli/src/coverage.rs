//! What became of the files at a path: what opened and decoded them, what was left as bytes and why, what failed.

use std::io::{self, Write};

use forebay_loader::{FileKind, Loader, LostSample, Registry, Sample, Survey, View, registry::HEAD};
use serde::Serialize;

use crate::print::{TextTable, count, counted};

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
    /// Fields that stayed bytes though a decoder was chosen for them, by which, and how often.
    undone: Vec<(String, String, u64)>,
}

/// What became of all files, told at the end.
#[derive(Serialize)]
pub(crate) struct Covered {
    files: u64,
    samples: u64,
    /// What opened or decoded the files.
    kinds: Vec<Kind>,
    unreadable: Vec<(String, String)>,
    classes: Vec<String>,
    fields: Vec<Covering>,
    failed: u64,
    /// The first few.
    failures: Vec<Failure>,
}

/// Files that are read alike, and how that went.
#[derive(Serialize)]
struct Kind {
    #[serde(flatten)]
    kind: FileKind,
    /// How often one of them failed.
    failed: u64,
    /// How many stayed bytes all the same.
    stayed: u64,
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
        Self { survey, registry: registry.clone(), samples: 0, fields: Vec::new(), undone: Vec::new() }
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
            let extension = name.rsplit('.').next().unwrap_or(name);
            let head = &bytes[..bytes.len().min(HEAD)];
            if field.why.is_none() {
                let refused = self.registry.choose(extension, head, None).err();
                field.why = refused.map(|error| error.message().to_owned());
            }
            // It was chosen, and could not.
            if self.survey.kinds.iter().any(|kind| kind.decoder.is_some())
                && let Some(chosen) =
                    self.registry.rank(extension, head).into_iter().find(|one| one.score > 0)
            {
                let begin = || format!("`{}` was chosen to decode it, but could not", chosen.decoder);
                field.why.get_or_insert_with(begin);
                let it =
                    |(field, by, _): &(String, String, u64)| field == name.as_str() && *by == chosen.decoder;
                match self.undone.iter().position(it) {
                    Some(at) => self.undone[at].2 += 1,
                    None if self.undone.len() >= FIELDS => {}
                    None => self.undone.push((name.as_str().to_owned(), chosen.decoder, 1)),
                }
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
        let Survey { kinds, unreadable, classes, .. } = self.survey;
        let mut kinds: Vec<_> = kinds.into_iter().map(|kind| Kind { kind, failed: 0, stayed: 0 }).collect();
        for lost in &lost {
            // As `png of forebay-image 0.1.0`.
            let decoder = lost.error.get("decoder").and_then(|told| told.split(' ').next());
            let of = |kind: &FileKind| {
                kind.nodes.contains(&lost.node)
                    && decoder.is_none_or(|by| kind.decoder.as_deref() == Some(by))
            };
            kind_of(&mut kinds, &field(lost), of).into_iter().for_each(|kind| kind.failed += 1);
        }
        for (field, decoder, times) in &self.undone {
            let of = |kind: &FileKind| kind.decoder.as_ref() == Some(decoder);
            kind_of(&mut kinds, field, of).into_iter().for_each(|kind| kind.stayed += times);
        }
        Covered {
            files: kinds.iter().map(|Kind { kind, .. }| kind.files).sum(),
            samples: self.samples,
            kinds,
            unreadable,
            classes,
            fields: self.fields,
            failed: loader.stats().nodes.iter().map(|node| node.lost).sum(),
            failures: failures.collect(),
        }
    }
}

/// What a lost sample failed over: its field, or the name of its file.
fn field(lost: &LostSample) -> String {
    let told = ["field", "file"].iter().find_map(|place| lost.error.get(place));
    told.or(lost.key.as_deref()).unwrap_or_default().to_ascii_lowercase()
}

/// The kind of files, among those that may be `of` this one, that a field or file of this name belongs to: the one whose extension says most
/// of it.
fn kind_of<'a>(kinds: &'a mut [Kind], name: &str, of: impl Fn(&FileKind) -> bool) -> Option<&'a mut Kind> {
    let ends = |extension: &str| {
        let before = name.strip_suffix(extension);
        before.is_some_and(|before| extension.is_empty() || before.is_empty() || before.ends_with('.'))
    };
    let fits = |kind: &FileKind| of(kind) && (!kind.opened_by.is_empty() || ends(&kind.extension));
    let fitting = kinds.iter_mut().filter(|found| fits(&found.kind));
    // Of equals the first.
    fitting.rev().max_by_key(|found| found.kind.extension.len())
}

impl Kind {
    /// What opened or decoded the files, and of how many it did not.
    fn how(&self) -> String {
        let Self { kind, failed, stayed } = self;
        let plugin = kind.plugin.as_deref().unwrap_or_default();
        let how = match (&kind.decoder, &kind.left) {
            (_, Some(why)) => format!("left as bytes: {why}"),
            (Some(decoder), _) if *failed >= kind.files => {
                return format!("{decoder} ({plugin}) failed on all");
            }
            (Some(decoder), _) if *stayed >= kind.files => {
                return format!("{decoder} ({plugin}) decoded none, all stayed bytes");
            }
            (Some(decoder), _) => format!("decoded by {decoder} ({plugin})"),
            _ => format!("opened by {} ({plugin})", kind.opened_by.join(" | ")),
        };
        let but = [(*failed, "failed"), (*stayed, "stayed bytes")];
        let but: String = but
            .iter()
            .filter(|(of, _)| *of > 0)
            .map(|(of, what)| format!(", but {} {what}", count(*of)))
            .collect();
        how + &but
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
        let mut table = TextTable::new(&[">", "", ""]);
        for found in &self.kinds {
            let (kind, how) = (&found.kind, found.how());
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
        for (file, why) in self.unreadable.iter().take(NAMED) {
            writeln!(out, "  could not read the first bytes: {file}: {why}")?;
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
