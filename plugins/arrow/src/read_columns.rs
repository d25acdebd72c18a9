//! `read_columns`: a piece to batches by column.
//!
//! ```toml
//! [read_columns]
//! examples = ['forebay head -n 1 "files tests/columns/birds.parquet | row_groups columns=[id] | read_columns 64"']
//! ```

use forebay_core::{
    Blob, Context, DataPipe, FlatMap, Items, Noun, PipeInfo, PipeLayout, PipePlacement, Result, Sample,
    Schema, State, StateExt as _, Str, Value, options,
};

use crate::{
    cells,
    document::Batch,
    exchange::export,
    piece::{Footers, Reading},
};

const STATE: u32 = 1;

options! {
    /// Options of `read_columns`.
    pub struct ReadColumnsOptions {
        /// The most rows in a batch. A batch ends where its piece does.
        size: u64 = 65536, in 1..=1_000_000_000;
        /// Keep every column as an Arrow value, also numbers, so that types stay as they are in the file.
        arrow: bool = false;
    }
}

/// Reads each piece into batches by column.
pub struct ReadColumns {
    options: ReadColumnsOptions,
    footers: Footers,
}

impl DataPipe for ReadColumns {
    const INFO: PipeInfo = PipeInfo {
        name: "read_columns",
        summary: "Pieces of Parquet and Arrow files to batches by column, without a copy",
        layout: PipeLayout { gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = ReadColumnsOptions;

    fn new(options: ReadColumnsOptions) -> Result<Self> {
        Ok(Self { options, footers: Footers::default() })
    }
}

impl FlatMap for ReadColumns {
    type Items = ColumnItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<ColumnItems> {
        self.read(&sample, &Blob::of(&sample, cx)?, cx.limits().bytes)
    }
}

impl ReadColumns {
    /// What a piece of the file in `blob` has.
    pub(crate) fn read(&self, sample: &Sample, blob: &Blob, limit: u64) -> Result<ColumnItems> {
        let reading = Reading::open(sample, blob, &self.footers, self.options.size, limit)?;
        Ok(ColumnItems { reading, arrow: self.options.arrow, answers: 0, schema: None, goes_on: true })
    }
}

/// The batches of one piece.
pub struct ColumnItems {
    reading: Reading,
    arrow: bool,
    /// How many batches were given, and errors told.
    answers: u64,
    schema: Option<Schema>,
    /// Whether more may come behind the last error.
    goes_on: bool,
}

impl ColumnItems {
    fn sample(&mut self, batch: &Batch) -> Result<Sample> {
        let others: Vec<_> = self.reading.others(batch).cloned().collect();
        let fields = batch.columns.schema_ref().fields();
        let columns = fields.iter().zip(batch.columns.columns()).map(|(field, column)| {
            match if self.arrow { None } else { cells::tensor(column)? } {
                Some(tensor) => Ok(tensor.into()),
                None => export(column, field).map_err(|error| error.context("column", field.name())),
            }
        });
        let columns = columns.collect::<Result<Vec<Value>>>()?;
        let schema = self.schema.get_or_insert_with(|| {
            let names = fields.iter().map(|field| Str::from(field.name().as_str()));
            Schema::new(others.iter().map(|(name, _)| name.clone()).chain(names))
        });
        let values = others.into_iter().map(|(_, value)| value).chain(columns).collect();
        let row = batch.row(0);
        Ok(Sample::with_schema(self.reading.uid(row), self.reading.key(row), schema.clone(), values))
    }

    pub(crate) fn next_sample(&mut self) -> Result<Option<Sample>> {
        let found = self.reading.next();
        let is_read = found.is_ok();
        let found = found.and_then(|batch| batch.map(|batch| self.sample(&batch)).transpose());
        self.answers += u64::from(!matches!(found, Ok(None)));
        found.inspect_err(|error| self.goes_on = self.reading.goes_on(error, !is_read))
    }

    pub(crate) fn go_to(&mut self, state: &State) -> Result<()> {
        let answers: u64 = state.parse(STATE)?;
        while self.answers < answers {
            match self.reading.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // It was told before.
                Err(error) if self.reading.goes_on(&error, true) => {}
                Err(error) => return Err(error),
            }
            self.answers += 1;
        }
        Ok(())
    }
}

impl Items for ColumnItems {
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
