//! `hdf5_rows`: a piece of a file to its samples.
//!
//! ```toml
//! [hdf5_rows]
//! examples = ['forebay run "files plugins/hdf5/tests/data/tall.h5 | hdf5_pieces datasets=[pair] | shuffle 100 | hdf5_rows | batch 64"']
//! ```

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use forebay_core::{
    Buffer, Context, DType, DataPipe, Error, ErrorKind, FlatMap, Items, Key, NoOptions, PipeInfo,
    PipePlacement, Result, Sample, Schema, State, StateExt as _, Str, Tensor, TensorExt as _, Value, View,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    Dataset, File, Object,
    bytes::size,
    origin::Origin,
    pieces::{PIECE, list, number},
    structure::global_heap::GlobalHeap,
    value::{Values, scalar},
};

/// How many files are kept open.
const FILES_KEPT: usize = 8;
/// The version of a saved position.
const STATE: u32 = 1;

/// Turns each piece that `hdf5_pieces` made into its samples: a field for each dataset.
///
/// It remembers the structures of the files it read last, by path, length and time of change.
pub struct Hdf5Rows {
    open: Mutex<VecDeque<Arc<Open>>>,
}

/// An open file and the datasets of its rows.
struct Open {
    origin: Origin,
    names: Vec<Str>,
    file: File,
    datasets: Vec<Dataset>,
}

impl DataPipe for Hdf5Rows {
    const INFO: PipeInfo = PipeInfo {
        name: "hdf5_rows",
        summary: "Pieces of HDF5 files to samples: rows, or groups",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self { open: Mutex::default() })
    }
}

impl FlatMap for Hdf5Rows {
    type Items = Rows;

    fn open(&self, mut sample: Sample, cx: &Context) -> Result<Rows> {
        let piece = match sample.take(PIECE) {
            Some(piece) => piece,
            None => {
                return Err(Error::invalid(format!("expected a field `{PIECE}`, as `hdf5_pieces` makes it")));
            }
        };
        let View::Struct(piece) = piece.view() else {
            return Err(Error::invalid(format!("expected a struct `{PIECE}`, found {piece:?}")));
        };
        let len = number(piece, "len")?;
        let given = sample.take("bytes");
        let origin =
            match (given.as_ref().and_then(Value::as_bytes), sample.get("path").and_then(Value::as_str)) {
                (Some(bytes), _) => Origin::Bytes(bytes.clone()),
                (None, Some(path)) => {
                    Origin::Path { path: path.into(), len, modified: number(piece, "modified")? }
                }
                (None, None) => {
                    return Err(Error::invalid("expected a field `bytes`, or `path`, found neither"));
                }
            };
        let text = |value: &Value| value.as_str().map(Str::from);
        let names: Vec<Str> = list(piece, "datasets").iter().filter_map(text).collect();
        let groups: Vec<Str> = list(piece, "groups").iter().filter_map(text).collect();
        let root = piece.get("root").and_then(Value::as_str).unwrap_or("/");
        let (uid, start, end) =
            (number(piece, "uid")? ^ sample.uid(), number(piece, "start")?, number(piece, "end")?);
        // Its rows are named by their key.
        sample.take("path");
        let samples = if piece.get("groups").is_none() {
            // A dataset takes the place of a field with its name.
            names.iter().for_each(|name| drop(sample.take(name)));
            let open = self.opened(origin, names, root, cx)?;
            Samples::Rows(Table::read(&open, &sample, start, end, cx)?)
        } else {
            let addresses: Vec<u64> =
                list(piece, "addresses").iter().filter_map(|at| u64::try_from(at.as_i64()?).ok()).collect();
            let open = self.opened(origin, Vec::new(), root, cx)?;
            Samples::Groups { open, names, groups: groups.into_iter().zip(addresses).collect() }
        };
        Ok(Rows { sample, uid, start, end, next: start, samples, goes_on: true })
    }
}

impl Hdf5Rows {
    /// The file and its datasets: those that were opened before, or opened now.
    fn opened(&self, origin: Origin, names: Vec<Str>, root: &str, cx: &Context) -> Result<Arc<Open>> {
        let known = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let by_path = matches!(origin, Origin::Path { .. });
        if by_path
            && let Some(open) = known().iter().find(|open| open.origin == origin && open.names == names)
        {
            return Ok(open.clone());
        }
        let file = File::open_limited(origin.open(cx)?, cx.limits())?;
        let group = file.group(root)?;
        let dataset = |name: &Str| match group.object(name)? {
            Object::Dataset(dataset) => Ok(*dataset),
            _ => Err(Error::invalid("expected a dataset, found another object").context("object", name)),
        };
        let datasets = names.iter().map(dataset).collect::<Result<_>>()?;
        let open = Arc::new(Open { origin, names, file, datasets });
        if by_path {
            let mut files = known();
            files.push_back(open.clone());
            if files.len() > FILES_KEPT {
                files.pop_front();
            }
        }
        Ok(open)
    }
}

/// The samples of one piece, in the file's order.
pub struct Rows {
    /// The piece's sample, without what says what the piece is.
    sample: Sample,
    /// The uid of the file's sample.
    uid: u64,
    start: u64,
    end: u64,
    next: u64,
    samples: Samples,
    /// Whether more may come behind the last error.
    goes_on: bool,
}

enum Samples {
    Rows(Table),
    Groups { open: Arc<Open>, names: Vec<Str>, groups: Vec<(Str, u64)> },
}

impl Rows {
    /// The row or the group that is next.
    fn read(&self, cx: &Context) -> Result<Option<Sample>> {
        let row = self.next;
        let nth = size(row - self.start)?;
        let (schema, values, name) = match &self.samples {
            Samples::Rows(table) => {
                let values = table.row(nth, &self.sample, cx);
                (table.schema.clone(), values.map_err(|error| error.context("row", row))?, Str::EMPTY)
            }
            Samples::Groups { open, names, groups } => {
                let Some((name, address)) = groups.get(nth) else { return Ok(None) };
                let (schema, values) = group(&open.file, name, *address, names, &self.sample, cx)?;
                (schema, values, name.clone())
            }
        };
        let key = Key { origin: self.sample.key().origin.clone(), name, index: row };
        let uid = xxh3_64_with_seed(&row.to_le_bytes(), self.uid);
        Ok(Some(Sample::with_schema(uid, key, schema, values)))
    }
}

impl Items for Rows {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let found = self.read(cx);
        self.next += 1;
        found.inspect_err(|error| {
            // Groups differ; what is not supported in one row is not in the next either.
            let groups = matches!(self.samples, Samples::Groups { .. });
            self.goes_on = groups || error.kind() == ErrorKind::Corrupt;
        })
    }

    fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// The next row or group.
    fn state(&self) -> Result<State> {
        State::json(STATE, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next = state.parse::<u64>(STATE)?;
        if !(self.start..=self.end).contains(&next) {
            return Err(Error::invalid(format!(
                "the saved place is {next} of {} to {}",
                self.start, self.end
            )));
        }
        self.next = next;
        Ok(())
    }
}

/// Some rows of some datasets, read and undone.
struct Table {
    schema: Schema,
    columns: Vec<Column>,
    heap: GlobalHeap,
}

/// What a dataset has for some rows.
enum Column {
    Rows(Cells),
    /// A single element, or null: the same in every row.
    Same(Value),
}

/// The rows of one dataset.
struct Cells {
    dataset: Dataset,
    /// In this machine's form, if they are numbers.
    bytes: Buffer,
    /// Bytes of a row.
    step: usize,
    dims: Vec<usize>,
    numbers: Option<DType>,
}

impl Table {
    fn read(open: &Open, sample: &Sample, start: u64, end: u64, cx: &Context) -> Result<Self> {
        let heap = GlobalHeap::new(&open.file);
        let column = |dataset: &Dataset| match dataset.has_rows() {
            true => Cells::read(dataset, &heap, start, end, cx).map(Column::Rows),
            false => whole(dataset, &heap, cx).map(Column::Same),
        };
        let columns = open.datasets.iter().map(column).collect::<Result<Vec<_>>>()?;
        let schema = Schema::new(sample.schema().names().iter().chain(&open.names).cloned());
        Ok(Self { schema, columns, heap })
    }

    fn row(&self, nth: usize, sample: &Sample, cx: &Context) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(self.schema.len());
        values.extend_from_slice(sample.values());
        for column in &self.columns {
            values.push(match column {
                Column::Rows(cells) => cells
                    .value(nth, &self.heap, cx)
                    .map_err(|error| error.context("dataset", cells.dataset.path()))?,
                Column::Same(value) => value.clone(),
            });
        }
        Ok(values)
    }
}

impl Cells {
    fn read(dataset: &Dataset, heap: &GlobalHeap, start: u64, end: u64, cx: &Context) -> Result<Self> {
        let alloc = |len| cx.alloc(len);
        let mut bytes = dataset.piece(start..end, &alloc)?;
        let mut dims = dataset.row_shape().iter().map(|&axis| size(axis)).collect::<Result<Vec<_>>>()?;
        let mut step = size(dataset.row_len())?;
        let datatype = dataset.datatype();
        // More axes than a tensor has become lists, row by row.
        let numbers = datatype.numbers().filter(|(_, inner)| dims.len() + inner.len() <= 8);
        if let Some((_, inner)) = &numbers {
            bytes = Values::new(heap, &alloc).native(datatype, &bytes)?;
            step = step / datatype.size * datatype.native_size();
            dims.extend(inner);
        }
        let numbers = numbers.map(|(dtype, _)| dtype);
        Ok(Self { dataset: dataset.clone(), bytes, step, dims, numbers })
    }

    fn value(&self, nth: usize, heap: &GlobalHeap, cx: &Context) -> Result<Value> {
        let bytes = self.bytes.get(nth * self.step..(nth + 1) * self.step).unwrap_or_default();
        match self.numbers {
            Some(dtype) if self.dims.is_empty() => Ok(scalar(dtype, &bytes)),
            Some(dtype) => Ok(Tensor::new(dtype, &self.dims, bytes)?.into()),
            None => {
                let alloc = |len| cx.alloc(len);
                Values::new(heap, &alloc).make(self.dataset.datatype(), &self.dims, &bytes)
            }
        }
    }
}

/// The datasets of a group, each whole.
fn group(
    file: &File,
    name: &Str,
    address: u64,
    wanted: &[Str],
    sample: &Sample,
    cx: &Context,
) -> Result<(Schema, Vec<Value>)> {
    let Object::Group(group) = Object::at(file, address, name)? else {
        return Err(Error::invalid(format!(
            "`{name}` is no group, and left out, since each group beside it is a sample; `datasets` and `by = \"row\"` read it"
        )));
    };
    let mut datasets = match wanted {
        [] => file
            .datasets(&group)?
            .into_iter()
            .map(|dataset| {
                let path = dataset.path().strip_prefix(&format!("{name}/")).unwrap_or(dataset.path());
                (Str::from(path), dataset.clone())
            })
            .collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    for path in wanted {
        match group.object(path)? {
            Object::Dataset(dataset) => datasets.push((path.clone(), *dataset)),
            _ => {
                return Err(
                    Error::invalid("expected a dataset, found another object").context("object", path)
                );
            }
        }
    }
    let heap = GlobalHeap::new(file);
    let kept = sample.fields().filter(|(name, _)| datasets.iter().all(|(path, _)| path != *name));
    let (mut names, mut values): (Vec<Str>, Vec<Value>) =
        kept.map(|(name, value)| (name.clone(), value.clone())).unzip();
    for (path, dataset) in datasets {
        values.push(whole(&dataset, &heap, cx)?);
        names.push(path);
    }
    Ok((Schema::new(names), values))
}

/// All of a dataset as one value; null for one that never has elements.
fn whole(dataset: &Dataset, heap: &GlobalHeap, cx: &Context) -> Result<Value> {
    let Some(shape) = dataset.shape() else { return Ok(Value::NULL) };
    let alloc = |len| cx.alloc(len);
    let dims = shape.iter().map(|&axis| size(axis)).collect::<Result<Vec<_>>>()?;
    let bytes = dataset.bytes(0..dataset.rows(), &alloc)?;
    let value = Values::new(heap, &alloc).make(dataset.datatype(), &dims, &bytes);
    value.map_err(|error| error.context("dataset", dataset.path()))
}
