//! `hdf5_pieces`: a file to pieces of rows, or of groups, that can be read in parallel.
//!
//! ```toml
//! [hdf5_pieces]
//! examples = ['forebay head -n 1 "files plugins/hdf5/tests/data/tall.h5 | hdf5_pieces datasets=[pair] | hdf5_rows"']
//! ```

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, Key, Magic, OneOrMany, Opens, PipeInfo, Result, Sample, State,
    StateExt as _, Str, Value, View, options,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    Dataset, File, Object,
    choice::{self, Chosen},
    origin::Origin,
    structure::superblock::{NETCDF, SIGNATURE},
};

/// The field of a piece that says what it is.
pub(crate) const PIECE: &str = "piece";
/// The version of a saved position.
const STATE: u32 = 3;
/// Groups in a piece, at most.
const GROUPS: u64 = 32;
/// So many objects of a group say how large it is.
const LOOKED: usize = 1024;
/// About how many bytes a row takes as a sample, beside its elements: all rows of a piece are in memory at once.
const SAMPLE: u64 = 128;
/// And for each dataset.
const FIELD: u64 = 32;
/// A chunk whose rows take more bytes than this is cut over several pieces, each of which takes about so many.
const TALL: u64 = 16 << 20;
const CUT: u64 = 4 << 20;

options! {
    /// Options of `hdf5_pieces`.
    pub struct Hdf5PiecesOptions {
        /// The datasets to read, by path from `root`; empty for all.
        datasets: OneOrMany<String> = [];
        /// The group where paths start.
        root: String = "/";
        /// What a sample is. `row`: a row of all datasets, which must have equally many. `group`: the datasets of
        /// one group in `root`. `auto`: as the file's structure suggests.
        by: String = "auto", one_of ["auto", "row", "group"];
        /// About how many bytes the rows of a piece take. A piece has whole chunks, at least one, unless a chunk's
        /// rows take more than 16 MiB.
        piece_bytes: u64 = 4194304, in 1..=1073741824;
    }
}

/// Turns each sample whose field `bytes` or `path` is an HDF5 file into pieces of it, for `hdf5_rows`.
///
/// A piece has the fields of the file's sample but `bytes`, and `piece`, a struct of numbers and text. Where the file has a
/// path the bytes stay behind.
pub struct Hdf5Pieces {
    options: Hdf5PiecesOptions,
}

impl DataPipe for Hdf5Pieces {
    const INFO: PipeInfo = PipeInfo {
        name: "hdf5_pieces",
        summary: "HDF5 files to pieces of rows, for hdf5_rows to read in parallel",
        opens: Some(Opens {
            extensions: &["h5", "hdf5"],
            // Behind a block of the user's own, too.
            magic: &[
                Magic { offset: 0, bytes: &SIGNATURE },
                Magic { offset: 512, bytes: &SIGNATURE },
                Magic { offset: 1024, bytes: &SIGNATURE },
                Magic { offset: 2048, bytes: &SIGNATURE },
                // To say what they are.
                Magic { offset: 0, bytes: NETCDF[0] },
                Magic { offset: 0, bytes: NETCDF[1] },
                Magic { offset: 0, bytes: NETCDF[2] },
            ],
            then: "hdf5_rows",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = Hdf5PiecesOptions;

    fn new(options: Hdf5PiecesOptions) -> Result<Self> {
        Ok(Self { options })
    }

    fn probe(_: &[u8], _: &str) -> u8 {
        240
    }
}

impl FlatMap for Hdf5Pieces {
    type Items = Pieces;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Pieces> {
        self.cut(sample, cx)
    }
}

impl Hdf5Pieces {
    fn cut(&self, mut sample: Sample, cx: &Context) -> Result<Pieces> {
        let (origin, blob) = Origin::of(&sample, cx)?;
        let file = File::open_limited(blob, cx.limits())?;
        let options = &self.options;
        let root = file.group(&options.root)?;
        let (cut, root, left, count, steps) = match choice::chosen(&file, &root, options, cx.limits().bytes)?
        {
            Chosen::Groups { root, groups } => {
                let count = groups.len() as u64;
                let names = texts(&options.datasets.0);
                let step = groups_in_piece(&file, &groups, options.piece_bytes);
                (Cut::Groups { names, groups }, root, Vec::new(), count, Steps::even(step))
            }
            Chosen::Rows { datasets, left, count } => {
                let steps = Steps::of(&datasets, options.piece_bytes, matches!(origin, Origin::Path { .. }));
                let names = texts(&choice::relative(&datasets, &root));
                (Cut::Rows { names }, options.root.as_str().into(), left, count, steps)
            }
        };
        if matches!(origin, Origin::Path { .. }) {
            sample.take("bytes");
        }
        Ok(Pieces { sample, origin, root, cut, left, told: 0, count, steps, next: 0 })
    }
}

/// The pieces of one file, in its order.
pub struct Pieces {
    /// The file's sample.
    sample: Sample,
    origin: Origin,
    root: Str,
    cut: Cut,
    /// Why datasets were left out, each of which is told before the first piece; and how many were.
    left: Vec<Error>,
    told: usize,
    /// Rows or groups, in all and in a piece.
    count: u64,
    steps: Steps,
    next: u64,
}

enum Cut {
    Rows { names: Value },
    Groups { names: Value, groups: Vec<(Str, u64)> },
}

impl Items for Pieces {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        if let Some(error) = self.left.get(self.told) {
            self.told += 1;
            return Err(error.clone());
        }
        if self.next >= self.count {
            return Ok(None);
        }
        let (start, end) = (self.next, self.steps.end_of(self.next).min(self.count));
        self.next = end;
        let (whole, key) = (self.sample.uid(), self.sample.key());
        let uid = xxh3_64_with_seed(&[b"piece".as_slice(), &start.to_le_bytes()].concat(), whole);
        let (len, modified) = match &self.origin {
            Origin::Path { len, modified, .. } => (*len, *modified),
            Origin::Bytes(bytes) => (bytes.len() as u64, 0),
        };
        let mut fields: Vec<(Str, Value)> = vec![
            // So the rows of a piece that is given again, with another uid, have others too.
            ("uid".into(), (whole ^ uid).into()),
            ("len".into(), len.into()),
            ("modified".into(), modified.into()),
            ("root".into(), self.root.clone().into()),
            ("start".into(), start.into()),
            ("end".into(), end.into()),
        ];
        match &self.cut {
            Cut::Rows { names } => fields.push(("datasets".into(), names.clone())),
            Cut::Groups { names, groups } => {
                let part = groups.get(start as usize..end as usize).unwrap_or_default();
                fields.push(("datasets".into(), names.clone()));
                fields.push((
                    "groups".into(),
                    Value::list(part.iter().map(|(name, _)| name.clone().into()).collect()),
                ));
                fields.push((
                    "addresses".into(),
                    Value::list(part.iter().map(|(_, at)| (*at).into()).collect()),
                ));
            }
        }
        let mut piece = self.sample.clone();
        piece.set_uid(uid);
        let name = format!("{start}..{end}").into();
        piece.set_key(Key { origin: key.origin.clone(), name, index: start });
        piece.set(PIECE, Value::structure(fields));
        Ok(Some(piece))
    }

    /// What was left out leaves all else as it is.
    fn goes_on(&self) -> bool {
        true
    }

    /// What was told of what is left out, and the next row or group.
    fn state(&self) -> Result<State> {
        State::json(STATE, &(self.told, self.next))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (told, next) = state.parse::<(usize, u64)>(STATE)?;
        if next > self.count || !self.steps.begins(next) && next != self.count {
            return Err(Error::invalid(format!("the saved place is {next} of {}", self.count)));
        }
        (self.told, self.next) = (told, next);
        Ok(())
    }
}

fn texts(names: &[String]) -> Value {
    Value::list(names.iter().map(|name| name.as_str().into()).collect())
}

/// As many groups as the first one's size lets about so many bytes hold: to look at all would read a file of a million groups.
fn groups_in_piece(file: &File, groups: &[(Str, u64)], bytes: u64) -> u64 {
    let first = groups.first().and_then(|(name, address)| match Object::at(file, *address, name) {
        Ok(Object::Group(group)) => file.walk(&group, LOOKED, &mut |_| Ok(())).ok(),
        // What cannot be read is told by whoever reads it.
        _ => None,
    });
    let size = |set: &Dataset| set.rows().saturating_mul(set.row_len());
    let size = first.unwrap_or_default().iter().map(size).fold(1_u64, u64::saturating_add);
    (bytes.max(CUT) / size).clamp(1, GROUPS)
}

/// Where pieces begin.
struct Steps {
    /// Rows, or groups, in a piece.
    step: u64,
    /// A piece ends where so many do: chunks that are higher than a piece are cut, and pieces have rows of one alone.
    within: u64,
}

impl Steps {
    fn even(step: u64) -> Self {
        Self { step, within: step }
    }

    /// Whole chunks of the dataset with the highest ones, and about so many bytes; parts of them where their rows take very many, unless whoever
    /// reads them would unpack the chunk anew for each.
    fn of(datasets: &[Dataset], bytes: u64, may_cut: bool) -> Self {
        let datasets = || datasets.iter().filter(|dataset| dataset.has_rows());
        let heights = datasets().filter_map(|dataset| dataset.chunk_shape()?.first().copied());
        let height = heights.max().unwrap_or(1).max(1);
        let row = datasets().fold(SAMPLE, |sum, set| sum.saturating_add(set.row_len()).saturating_add(FIELD));
        if may_cut && height > 1 && row.saturating_mul(height) > TALL.max(bytes) {
            let parts = height.div_ceil((CUT.max(bytes) / row).max(1));
            return Self { step: height.div_ceil(parts), within: height };
        }
        Self::even((bytes / row / height).max(1).saturating_mul(height))
    }

    /// Where the piece ends that begins here.
    fn end_of(&self, start: u64) -> u64 {
        let (step, within) = (start.saturating_add(self.step), start / self.within * self.within);
        step.min(within.saturating_add(self.within))
    }

    /// Whether a piece begins here.
    fn begins(&self, at: u64) -> bool {
        (at % self.within).is_multiple_of(self.step)
    }
}

/// A number in a piece.
pub(crate) fn number(piece: &forebay_core::Struct, name: &str) -> Result<u64> {
    match piece.get(name).map(Value::view) {
        Some(View::UInt(number)) => Ok(number),
        found => Err(Error::invalid(format!("expected a number `{name}` in `{PIECE}`, found {found:?}"))),
    }
}

/// A list in a piece; empty if there is none.
pub(crate) fn list<'a>(piece: &'a forebay_core::Struct, name: &str) -> &'a [Value] {
    match piece.get(name).map(Value::view) {
        Some(View::List(values)) => values,
        _ => &[],
    }
}
