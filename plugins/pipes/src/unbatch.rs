//! `unbatch`: a batch back into its samples.
//!
//! ```toml
//! [unbatch]
//! page = "batches"
//! examples = ['forebay head -n 1 "range 100 | batch 10 | unbatch"']
//! cases = ["range N | batch 3 | unbatch interleave=2"]
//! counted = false
//! ```

#[cfg(test)]
mod tests;

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, Key, Output, PipeInfo, Result, Sample, State, StateExt, Str,
    Tensor, TensorExt, Value, View, abi::tag, options,
};

use crate::plumbing::stack::read_scalar;

options! {
    /// Options of `unbatch`.
    pub struct UnbatchOptions {
        /// How many levels of batches to take apart; -1 for as many as every field has.
        level: i64 = 1, in -1..=64;
    }
}

/// Splits each sample along the first axis of its fields: what `batch` stacked, comes apart again.
///
/// With a `level` above 1 the rows are split in turn, as by so many of these pipes; with -1 for as long as every field of a row has rows,
/// and as many as the others. A row of a tensor shares the tensor's memory. The first row has the batch's uid and key, as `batch`
/// gave it those of its first sample; the others get their own.
#[derive(Debug)]
pub struct Unbatch {
    /// None for as many as there are.
    level: Option<usize>,
}

impl DataPipe for Unbatch {
    const INFO: PipeInfo = PipeInfo {
        name: "unbatch",
        summary: "A batch back into its samples",
        also: &["unbatcher"],
        ..PipeInfo::DEFAULT
    };
    type Options = UnbatchOptions;

    fn new(options: UnbatchOptions) -> Result<Self> {
        match options.level {
            0 => Err(Error::invalid("found 0, expected 1 or more, or -1 for all").context("option", "level")),
            level => Ok(Self { level: usize::try_from(level).ok() }),
        }
    }
}

impl FlatMap for Unbatch {
    type Items = Rows;

    fn open(&self, batch: Sample, _: &Context) -> Result<Rows> {
        Ok(Rows { open: vec![Open::new(batch)?], level: self.level })
    }
}

/// The key of a sample as those of its parts name it: they are numbers in it.
pub(crate) fn as_origin(key: &Key) -> Str {
    if key.name.is_empty() && key.index != Key::WHOLE {
        // As it prints; most are such, and to print takes five times as long.
        return Str::concat(&[&key.origin, "#", itoa::Buffer::new().format(key.index)]);
    }
    key.to_string().into()
}

/// The uids and keys of what a sample comes apart into: the first part has the sample's, as what was put together has those of its first
/// part, and the others their own.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The sample's key, once a part asks for it.
    origin: Option<Str>,
}

impl Names {
    /// Of the part of `sample` with this number.
    // Always: a key that is handed over in memory has to wait there before it is read.
    #[inline(always)]
    pub(crate) fn at(&mut self, sample: &Sample, at: usize, cx: &Context) -> (u64, Key) {
        match at {
            0 => (sample.uid(), sample.key().clone()),
            _ => {
                let origin = self.origin.get_or_insert_with(|| as_origin(sample.key()));
                let key = Key { origin: origin.clone(), index: at as u64, ..Key::default() };
                (cx.uid_of(sample.uid(), [at as u64]), key)
            }
        }
    }
}

/// The samples of one batch.
#[derive(Debug)]
pub struct Rows {
    /// The batch, and the rows within each other that are being split; never empty.
    open: Vec<Open>,
    level: Option<usize>,
}

/// A batch that is being split.
#[derive(Debug)]
struct Open {
    batch: Sample,
    /// The batch's key, as the rows name it, and how many axes its values have at most.
    origin: Str,
    depth: u64,
    count: usize,
    next: usize,
}

impl Open {
    fn new(batch: Sample) -> Result<Self> {
        let count = count_rows(&batch)?;
        Ok(Self { origin: as_origin(batch.key()), depth: deepest(&batch), batch, count, next: 0 })
    }

    /// Adds this row to `out`.
    #[inline]
    fn push_row(&self, at: usize, out: &mut Output, cx: &Context) -> Result<()> {
        let Self { batch, origin, depth, .. } = self;
        let (uid, key) = name_of_row(batch, origin, *depth, at, cx);
        out.try_push_row(uid, key, batch.schema(), batch.values().iter().map(|value| row(value, at)))
    }

    /// This row, to be split in turn.
    fn row(&self, at: usize, cx: &Context) -> Result<Sample> {
        let (uid, key) = name_of_row(&self.batch, &self.origin, self.depth, at, cx);
        let values = self.batch.values().iter().map(|value| row(value, at)).collect::<Result<_>>()?;
        Ok(Sample::with_schema(uid, key, self.batch.schema().clone(), values))
    }
}

/// The uid and key of a row of a batch, whose own key reads as `origin`, and which has so many axes at most.
#[inline]
pub(crate) fn name_of_row(batch: &Sample, origin: &Str, depth: u64, at: usize, cx: &Context) -> (u64, Key) {
    if at == 0 {
        return (batch.uid(), batch.key().clone());
    }
    let key = Key { origin: origin.clone(), index: at as u64, ..Key::default() };
    // The first row of a batch of batches has its uid, and rows in turn: the depth tells these from its own.
    (cx.uid_of(batch.uid(), [at as u64, depth]), key)
}

/// How many axes the values of a sample have at most.
pub(crate) fn deepest(batch: &Sample) -> u64 {
    batch.values().iter().map(depth).max().unwrap_or(0)
}

/// How many axes a value has, by its first items; each row has one less.
fn depth(mut value: &Value) -> u64 {
    let mut depth = 0;
    loop {
        let first = match value.view() {
            View::Tensor(tensor) => return depth + tensor.shape().len() as u64,
            View::List(items) => {
                depth += 1;
                items.first()
            }
            View::Struct(fields) => fields.values().first(),
            _ => return depth,
        };
        match first {
            Some(first) => value = first,
            None => return depth,
        }
    }
}

impl Rows {
    /// Whether rows of what is open last are split too, if they can be.
    fn goes_deeper(&self) -> bool {
        self.level.is_none_or(|level| self.open.len() < level)
    }

    /// Opens a row, to be split in turn; gives it back where it is one that cannot be.
    fn enter(&mut self, row: Sample) -> Result<Option<Sample>> {
        if self.level.is_some() {
            self.open.push(Open::new(row)?);
            return Ok(None);
        }
        let kinds = [tag::TENSOR, tag::LIST, tag::STRUCT];
        if row.values().iter().any(|value| !kinds.contains(&value.tag())) {
            return Ok(Some(row));
        }
        let open = Open::new(row.clone()).ok();
        let back = open.is_none().then_some(row);
        self.open.extend(open);
        Ok(back)
    }
}

impl Items for Rows {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        Output::one(|out| self.fill(out, cx))
    }

    fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool> {
        while out.room() > 0 {
            let (deeper, depth) = (self.goes_deeper(), self.open.len());
            let Some(last) = self.open.last_mut() else { return Ok(false) };
            let at = last.next;
            if at == last.count {
                if depth == 1 {
                    return Ok(false);
                }
                self.open.pop();
                continue;
            }
            last.next += 1;
            if !deeper {
                last.push_row(at, out, cx)?;
            } else {
                let row = last.row(at, cx)?;
                if let Some(mut sample) = self.enter(row)? {
                    out.push(&mut sample);
                }
            }
        }
        Ok(true)
    }

    fn goes_on(&self) -> bool {
        true
    }

    /// For each batch that is open how many of its rows were given, or are open too.
    fn state(&self) -> Result<State> {
        State::json(2, &self.open.iter().map(|open| open.next).collect::<Vec<_>>())
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        let saved: Vec<usize> = state.parse(2)?;
        self.open.truncate(1);
        for (depth, next) in saved.into_iter().enumerate() {
            if let Some(outer) = self.open.get(depth.wrapping_sub(1)) {
                let at = outer.next.checked_sub(1);
                let at = at.ok_or_else(|| Error::invalid("a position within a row of none"))?;
                self.open.push(Open::new(outer.row(at, cx)?)?);
            }
            let Some(open) = self.open.get_mut(depth) else { break };
            if next > open.count {
                let count = open.count;
                return Err(Error::invalid(format!(
                    "found a position after row {next} of a batch of {count}"
                )));
            }
            open.next = next;
        }
        Ok(())
    }
}

/// How many rows each field of a batch has.
///
/// # Errors
/// `Invalid`, naming the field that has none, or others than those before it.
pub(crate) fn count_rows(batch: &Sample) -> Result<usize> {
    let mut first: Option<(&Str, usize)> = None;
    for (name, value) in batch.fields() {
        let Some(found) = rows(value).map_err(|error| error.context("field", name))? else { continue };
        match first {
            Some((other, expected)) if found != expected => {
                let message = format!("no batch: found {found} rows, expected {expected} as in `{other}`");
                return Err(Error::invalid(message).context("field", name));
            }
            Some(_) => {}
            None => first = Some((name, found)),
        }
    }
    let found = first.map(|(_, count)| count);
    found.ok_or_else(|| Error::invalid("no batch: no field says how many rows there are"))
}

/// How many rows a value has; `None` for a struct without fields, which has as many as the rest.
fn rows(value: &Value) -> Result<Option<usize>> {
    let found = match value.view() {
        View::Tensor(tensor) if !tensor.shape().is_empty() => return Ok(Some(tensor.shape()[0] as usize)),
        View::List(items) => return Ok(Some(items.len())),
        View::Struct(fields) => {
            let mut count = None;
            for (name, value) in fields.fields() {
                let found = rows(value).map_err(|error| error.context("name", name))?;
                if let (Some(found), Some(expected)) = (found, count)
                    && found != expected
                {
                    let message = format!("no batch: found {found} rows, expected {expected} as before it");
                    return Err(Error::invalid(message).context("name", name));
                }
                count = count.or(found);
            }
            return Ok(count);
        }
        View::Null => "null",
        View::Str(_) => "text",
        View::Bytes(_) => "bytes",
        View::Tensor(_) => "a tensor without axes",
        _ if value.dtype().is_some() => "a single number",
        _ => "a value without rows",
    };
    Err(Error::invalid(format!("no batch: found {found}, expected a tensor, a list or a struct of them")))
}

/// One row of a value, which has been seen to have it.
fn row(value: &Value, at: usize) -> Result<Value> {
    Ok(match value.view() {
        View::Tensor(tensor) => tensor_row(tensor, at)?,
        View::List(items) => items.get(at).cloned().unwrap_or_default(),
        View::Struct(fields) => {
            let fields = fields.fields().map(|(name, value)| Ok((name.clone(), row(value, at)?)));
            Value::structure(fields.collect::<Result<_>>()?)
        }
        _ => value.clone(),
    })
}

/// A row of a tensor along its first axis, which shares its memory, or a number.
pub(crate) fn tensor_row(tensor: &Tensor, at: usize) -> Result<Value> {
    let dtype = tensor.dtype();
    let number = !matches!(Value::scalar(dtype, 0).view(), View::Unknown(_));
    if tensor.shape().len() == 1 && number {
        return Ok(Value::scalar(dtype, read_scalar(tensor.data(), at, dtype)));
    }
    row_of(tensor, at).map(Value::from)
}

/// A row of a tensor along its first axis, as a tensor which shares its memory.
pub(crate) fn row_of(tensor: &Tensor, at: usize) -> Result<Tensor> {
    let dtype = tensor.dtype();
    let shape: Vec<_> = tensor.shape().iter().skip(1).map(|&axis| axis as usize).collect();
    let each = shape.iter().product::<usize>() * dtype.size();
    let data = tensor.data().get(at * each..(at + 1) * each);
    let data = data.ok_or_else(|| Error::bug("a tensor with fewer bytes than its shape says"))?;
    Tensor::new(dtype, &shape, data)
}
