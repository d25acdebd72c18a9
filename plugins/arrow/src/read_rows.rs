//! `read_rows`: a piece to samples by row.
//!
//! ```toml
//! [read_rows]
//! examples = ['forebay head -n 1 "files tests/columns/birds.parquet | row_groups | shuffle 100 | read_rows | shuffle 100"']
//! ```

use arrow_array::RecordBatch;
use forebay_core::{
    Blob, Context, DataPipe, FlatMap, Items, NoOptions, PipeInfo, PipePlacement, Result, Sample, Schema,
    State, StateExt as _, Str, Value,
};

use crate::{
    cells::Cells,
    document::Batch,
    piece::{Footers, Reading},
};

const STATE: u32 = 1;
/// How many rows are decoded at a time: little enough that their columns stay in the processor's cache.
const ROWS: u64 = 4096;

/// Reads each piece into samples by row.
#[derive(Default)]
pub struct ReadRows {
    footers: Footers,
}

impl DataPipe for ReadRows {
    const INFO: PipeInfo = PipeInfo {
        name: "read_rows",
        summary: "Pieces of Parquet and Arrow files to samples by row",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self::default())
    }
}

impl FlatMap for ReadRows {
    type Items = RowItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<RowItems> {
        self.read(&sample, &Blob::of(&sample, cx)?, cx.limits().bytes)
    }
}

impl ReadRows {
    /// What a piece of the file in `blob` has.
    pub(crate) fn read(&self, sample: &Sample, blob: &Blob, limit: u64) -> Result<RowItems> {
        let reading = Reading::open(sample, blob, &self.footers, ROWS, limit)?;
        Ok(RowItems { reading, held: None, schema: None, answers: 0, goes_on: true })
    }
}

/// The columns of a batch, ready to give any of its rows as values.
///
/// ```
/// use arrow_array::record_batch;
/// use forebay_core::Value;
///
/// let batch = record_batch!(("id", Int32, [7, 8]), ("bird", Utf8, [Some("heron"), None])).unwrap();
/// let rows = forebay_arrow::RowValues::new(&batch)?;
/// assert_eq!(rows.row(0)?, [Value::from(7_i32), Value::from("heron")]);
/// assert_eq!(rows.row(1)?, [Value::from(8_i32), Value::NULL]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
pub struct RowValues {
    columns: Vec<Cells>,
    rows: usize,
}

impl RowValues {
    /// The rows of `batch`, whose memory text, bytes and lists of numbers share.
    ///
    /// # Errors
    /// `Unsupported` for a type that has no value here, naming the column.
    pub fn new(batch: &RecordBatch) -> Result<Self> {
        let fields = batch.schema_ref().fields().iter();
        let columns = batch.columns().iter().zip(fields);
        let columns = columns
            .map(|(column, field)| Cells::new(column).map_err(|error| error.context("column", field.name())));
        Ok(Self { columns: columns.collect::<Result<_>>()?, rows: batch.num_rows() })
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The values of a row, one for each column.
    ///
    /// # Errors
    /// `Corrupt` for a union whose row is of no type.
    pub fn row(&self, at: usize) -> Result<Vec<Value>> {
        self.columns.iter().map(|column| column.value(at)).collect()
    }
}

/// The rows of one piece.
pub struct RowItems {
    reading: Reading,
    held: Option<Held>,
    schema: Option<Schema>,
    /// How many rows were given, and errors told.
    answers: u64,
    /// Whether more may come behind the last error.
    goes_on: bool,
}

struct Held {
    batch: Batch,
    rows: RowValues,
    /// The values that go on with each row.
    others: Vec<Value>,
    at: usize,
}

impl RowItems {
    /// The batch that has the next row, if there is one.
    fn held(&mut self) -> Result<Option<&mut Held>> {
        if self.held.as_ref().is_none_or(|held| held.at == held.rows.len()) {
            self.held = None;
            let Some(batch) = self.reading.next()? else { return Ok(None) };
            let others: Vec<_> = self.reading.others(&batch).cloned().collect();
            let schema = batch.columns.schema_ref();
            self.schema.get_or_insert_with(|| {
                let names = schema.fields().iter().map(|field| Str::from(field.name().as_str()));
                Schema::new(others.iter().map(|(name, _)| name.clone()).chain(names))
            });
            let others = others.into_iter().map(|(_, value)| value).collect();
            self.held = Some(Held { rows: RowValues::new(&batch.columns)?, batch, others, at: 0 });
        }
        Ok(self.held.as_mut())
    }

    pub(crate) fn next_sample(&mut self) -> Result<Option<Sample>> {
        let found = self.row();
        self.answers += u64::from(!matches!(found, Ok(None)));
        found.inspect_err(|error| self.goes_on = self.reading.goes_on(error, self.held.is_none()))
    }

    fn row(&mut self) -> Result<Option<Sample>> {
        let Some(held) = self.held()? else { return Ok(None) };
        let at = held.at;
        held.at += 1;
        let row = held.batch.row(at);
        let mut values = Vec::with_capacity(held.others.len() + held.rows.columns.len());
        values.extend_from_slice(&held.others);
        for column in &held.rows.columns {
            values.push(column.value(at)?);
        }
        let schema = self.schema.clone().unwrap_or_default();
        Ok(Some(Sample::with_schema(self.reading.uid(row), self.reading.key(row), schema, values)))
    }

    pub(crate) fn go_to(&mut self, state: &State) -> Result<()> {
        let answers: u64 = state.parse(STATE)?;
        while self.answers < answers {
            let left = usize::try_from(answers - self.answers).unwrap_or(usize::MAX);
            let pass = |held: &mut Held| {
                let passed = left.min(held.rows.len() - held.at);
                held.at += passed;
                passed as u64
            };
            match self.held().map(|held| held.map(pass)) {
                Ok(Some(passed)) => self.answers += passed,
                Ok(None) => break,
                // It was told before.
                Err(error) if self.reading.goes_on(&error, true) => self.answers += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Items for RowItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        self.next_sample()
    }

    fn goes_on(&self) -> bool {
        self.goes_on
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &self.answers)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.go_to(state)
    }
}
