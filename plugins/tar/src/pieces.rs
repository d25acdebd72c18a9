//! `tar_pieces` and `untar_pieces`: a shard cut where its samples start, and each piece to its samples, on any thread.
//!
//! ```toml
//! [tar_pieces]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | tar_pieces 8 | shuffle 100 | untar_pieces | decode"''']
//!
//! [untar_pieces]
//! examples = ['''forebay head -n 1 "files 'examples/photos/*.tar' | tar_pieces samples=1 | shuffle 200 | untar_pieces"''']
//! ```

use std::sync::{Mutex, PoisonError};

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Keep, Key, NoOptions, Others, PipeInfo, PipePlacement,
    Result, Sample, Schema, Stamp, State, StateExt as _, Str, Value, View, local_path, options,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    index::Index,
    untar::{Group, UntarItems, piece},
    walk::within,
};

/// The version of a saved position.
const STATE: u32 = 1;
/// The fields of a piece behind its `path` or `bytes`: the shard's uid, exclusive-or the piece's own, so that the samples of a piece that is given
/// again, with another uid, have others too; the bytes from and to which it reaches, and its first sample's number.
const FIELDS: [&str; 4] = ["shard", "start", "end", "first"];
/// And which members make a sample.
const GROUP: &str = "group";
/// How many open archives `untar_pieces` keeps.
const OPEN: usize = 16;

options! {
    /// Options of `tar_pieces`.
    pub struct TarPiecesOptions {
        /// How many samples a piece has; 1 to shuffle samples themselves.
        samples: u64 = 64, in 1..=1_000_000;
        /// Which members make a sample, as for `untar`.
        group: String = "webdataset", one_of ["webdataset", "none"];
        /// Where to keep an index of local files: `beside` each file, or a folder; null for nowhere.
        index: Option<String> = null;
    }
}

/// Cuts the archive that a sample's `bytes` hold, or at whose `path` it is, into pieces of so many samples.
#[derive(Debug)]
pub struct TarPieces {
    samples: usize,
    group: Group,
    keep: Option<Keep>,
}

impl DataPipe for TarPieces {
    const INFO: PipeInfo = PipeInfo {
        name: "tar_pieces",
        summary: "Tar shards cut where their samples start, for untar_pieces",
        ..PipeInfo::DEFAULT
    };
    type Options = TarPiecesOptions;

    fn new(options: TarPiecesOptions) -> Result<Self> {
        let keep = options.index.as_deref().map(Keep::of);
        // The range of the option fits.
        Ok(Self { samples: options.samples as usize, group: Group::of(&options.group), keep })
    }
}

impl FlatMap for TarPieces {
    type Items = TarPiecesItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<TarPiecesItems> {
        let origin = sample.key().origin.clone();
        self.cut(&sample, cx).map_err(|error| error.context("file", &origin))
    }
}

impl TarPieces {
    fn cut(&self, sample: &Sample, cx: &Context) -> Result<TarPiecesItems> {
        let blob = Blob::of(sample, cx)?;
        let path = match sample.get("path").map(Value::view) {
            Some(View::Str(path)) => Some(Str::from(path)),
            _ => None,
        };
        let index = match (&path, &self.keep) {
            (Some(path), Some(keep)) => Index::kept(&blob, local_path(path), keep, self.group)?,
            _ => Index::build(&blob, self.group)?,
        };
        let first = if path.is_some() { "path" } else { "bytes" };
        let own = [first].into_iter().chain(FIELDS).chain([GROUP]);
        let others = Others::of(sample, &own.clone().collect::<Vec<_>>());
        let names = own.map(Str::from).chain(others.fields().iter().map(|(name, _)| name.clone()));
        Ok(TarPiecesItems {
            blob,
            path,
            index,
            samples: self.samples,
            next: 0,
            origin: sample.key().origin.clone(),
            uid: sample.uid(),
            group: self.group,
            schema: Schema::new(names),
            others,
        })
    }
}

/// The pieces of one archive, in its order.
pub struct TarPiecesItems {
    blob: Blob,
    path: Option<Str>,
    index: Index,
    samples: usize,
    /// The first sample of the next piece.
    next: usize,
    origin: Str,
    uid: u64,
    group: Group,
    schema: Schema,
    others: Others,
}

impl Items for TarPiecesItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let starts = &self.index.starts;
        let Some(&start) = starts.get(self.next) else { return Ok(None) };
        let behind = self.next.saturating_add(self.samples).min(starts.len());
        let end = starts.get(behind).copied().unwrap_or(self.index.end);
        let place = match &self.path {
            Some(path) => Value::from(path.clone()),
            None => Value::from(self.blob.read(start..end)?),
        };
        let first = self.next as u64;
        self.next = behind;
        let uid = xxh3_64_with_seed(&[start, end].map(u64::to_le_bytes).concat(), self.uid);
        let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index: first };
        let numbers = [self.uid ^ uid, start, end, first].map(Value::from);
        let values = [place].into_iter().chain(numbers).chain([self.group.name().into()]);
        let others = self.others.fields().iter().map(|(_, value)| value.clone());
        let values = values.chain(others).collect();
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), values)))
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next = state.parse(STATE)?;
        let count = self.index.starts.len();
        if next > count {
            let error = Error::invalid(format!("the saved place is sample {next} of {count}"));
            return Err(error.context("file", &self.origin));
        }
        self.next = next;
        Ok(())
    }
}

/// Turns each piece that [`TarPieces`] gave into its samples, as `untar` gives them.
#[derive(Default)]
pub struct UntarPieces {
    /// The archives used last, the latest at the end: a map costs more to make than a sample to read.
    open: Mutex<Vec<Opened>>,
}

/// The path of an archive, the size and time that its file had when it was opened, and its bytes.
type Opened = (Str, Option<Stamp>, Blob);

impl DataPipe for UntarPieces {
    const INFO: PipeInfo = PipeInfo {
        name: "untar_pieces",
        summary: "Samples out of the pieces of tar shards, several pieces at once",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self::default())
    }
}

impl FlatMap for UntarPieces {
    type Items = UntarItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<UntarItems> {
        let origin = sample.key().origin.clone();
        self.piece(&sample, cx).map_err(|error| error.context("file", &origin))
    }
}

impl UntarPieces {
    fn piece(&self, sample: &Sample, cx: &Context) -> Result<UntarItems> {
        let mut numbers = [0; 4];
        for (name, number) in FIELDS.iter().zip(&mut numbers) {
            *number = match sample.get(name).map(Value::view) {
                Some(View::UInt(found)) => found,
                _ => return Err(not_a_piece(name)),
            };
        }
        let [whose, start, end, first] = numbers;
        let group =
            sample.get(GROUP).and_then(Value::as_str).map(Group::of).ok_or_else(|| not_a_piece(GROUP))?;
        let bytes = match (sample.get("bytes").map(Value::view), sample.get("path").map(Value::view)) {
            (Some(View::Bytes(bytes)), _) => bytes.clone(),
            (_, Some(View::Str(path))) => {
                let blob = self.opened(path, cx)?;
                if blob.in_memory().is_none() {
                    within(end.saturating_sub(start), cx.limits().bytes)?;
                }
                blob.read(start..end)?
            }
            _ => return Err(not_a_piece("path")),
        };
        let mut items = piece(bytes, start, first, sample.key().origin.clone(), whose ^ sample.uid(), group);
        items.others = Others::of(sample, &[&FIELDS[..], &[GROUP]].concat());
        Ok(items)
    }

    fn opened(&self, path: &str, cx: &Context) -> Result<Blob> {
        let lock = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(local_path(path));
        let is_this = |opened: &&Opened| opened.0.as_str() == path && opened.1 == stamp;
        if let Some((.., blob)) = lock().iter().find(is_this) {
            return Ok(blob.clone());
        }
        let blob = Blob::open(path, cx)?;
        let mut open = lock();
        if open.len() >= OPEN {
            open.remove(0);
        }
        open.push((path.into(), stamp, blob.clone()));
        Ok(blob)
    }
}

fn not_a_piece(field: &str) -> Error {
    Error::invalid("expected a piece, as `tar_pieces` gives them").context("field", field)
}
