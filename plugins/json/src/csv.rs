//! `csv`: a block of records to samples, with a field for each column.
//!
//! ```toml
//! [csv]
//! examples = [
//!     '''printf 'name,age\nann,7\nben,\n' > people.csv''',
//!     '''forebay head "files people.csv | csv_blocks | csv types={age=int} nulls=['']"''',
//! ]
//! ```

use std::{collections::HashMap, sync::Arc};

use forebay_core::{
    Any, Buffer, Context, DataPipe, Error, FlatMap, Items, OneOrMany, PipeInfo, PipePlacement, Result,
    Sample, Schema, State, Str, Struct, Value, View, options,
};

use crate::{
    piece::{Piece, save, saved},
    record::{Cell, Dialect, Field, closed},
    rows::Whose,
    shapes::Known,
};

options! {
    /// Options of `csv`.
    pub struct CsvOptions {
        /// The columns that become fields; empty for all.
        fields: OneOrMany<String> = [];
        /// The type of cells: `text`, `auto`, `int`, `float` or `bool`; or an object with a type for some columns,
        /// and text for the others.
        types: Any = "text";
        /// Cells with one of these texts are null.
        nulls: Vec<String> = [];
        /// Records with more or fewer cells than columns: an error, or filled with nulls and cut.
        ragged: String = "refuse", one_of ["refuse", "fill"];
    }
}

/// Turns each block of `csv_blocks` into the records in it.
#[derive(Debug)]
pub struct Csv {
    what: Arc<What>,
}

/// What is wanted of each record.
#[derive(Debug)]
struct What {
    fields: Vec<String>,
    every: Cell,
    some: HashMap<String, Cell>,
    nulls: Vec<String>,
    fill: bool,
    known: Known,
}

impl DataPipe for Csv {
    const INFO: PipeInfo = PipeInfo {
        name: "csv",
        summary: "Records of CSV and TSV files to samples",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = CsvOptions;

    fn new(options: CsvOptions) -> Result<Self> {
        let CsvOptions { fields: OneOrMany(fields), types: Any(types), nulls, ragged } = options;
        let named = |name: Option<&str>| {
            name.and_then(Cell::named).ok_or_else(|| {
                Error::invalid("expected text, auto, int, float or bool").context("option", "types")
            })
        };
        if let Some(twice) = fields.iter().enumerate().find(|(at, field)| fields[..*at].contains(field)) {
            return Err(Error::invalid("named twice").context("field", twice.1));
        }
        let (mut every, mut some) = (Cell::Text, HashMap::new());
        match types.as_object() {
            Some(columns) => {
                for (column, cell) in columns {
                    some.insert(column.clone(), named(cell.as_str())?);
                }
            }
            None => every = named(types.as_str())?,
        }
        let what = What { fields, every, some, nulls, fill: ragged == "fill", known: Known::default() };
        Ok(Self { what: Arc::new(what) })
    }
}

impl FlatMap for Csv {
    type Items = CsvItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<CsvItems> {
        let Piece { bytes, from, whose, more } = Piece::of(&sample, cx)?;
        let View::Struct(more) = more.view() else {
            return Err(Error::invalid("expected a block of `csv_blocks`, found another sample"));
        };
        let names = header(more)?;
        let byte = |name| more.get(name).and_then(Value::as_i64).and_then(|byte| u8::try_from(byte).ok());
        let separator = byte("separator").unwrap_or(b',');
        let dialect = Dialect { separator, quote: byte("quote"), comment: byte("comment") };
        let columns = self.what.columns(&names).map_err(|error| error.context("file", &whose.origin))?;
        let own: Vec<_> = columns.iter().map(|column| names[column.at].clone()).collect();
        let (schema, more) = whose.widen(&self.what.known.schema(&own), &self.what.known);
        let (what, fields, width) = (Arc::clone(&self.what), Vec::new(), names.len());
        Ok(CsvItems { bytes, from, at: 0, whose, dialect, what, columns, width, schema, more, fields })
    }
}

/// The names of the columns that a block brings along.
fn header(more: &Struct) -> Result<Vec<Str>> {
    let Some(View::List(names)) = more.get("names").map(Value::view) else {
        return Err(Error::invalid("expected a block with the names of its columns"));
    };
    Ok(names.iter().map(|name| Str::from(name.as_str().unwrap_or_default())).collect())
}

/// A column that becomes a field.
struct Column {
    at: usize,
    cell: Cell,
}

impl What {
    /// The columns that are wanted, in the order of the fields.
    fn columns(&self, names: &[Str]) -> Result<Vec<Column>> {
        let unknown = |name: &str| {
            let known: Vec<_> = names.iter().map(|name| name.as_str()).collect();
            Error::invalid(format!("no such column; found: {}", known.join(", "))).context("column", name)
        };
        let place = |name: &String| {
            names.iter().position(|known| known.as_str() == name).ok_or_else(|| unknown(name))
        };
        self.some.keys().map(&place).collect::<Result<Vec<_>>>()?;
        let places = match self.fields.is_empty() {
            true => (0..names.len()).collect(),
            false => self.fields.iter().map(place).collect::<Result<Vec<_>>>()?,
        };
        let cell = |at: usize| self.some.get(names[at].as_str()).copied().unwrap_or(self.every);
        Ok(places.into_iter().map(|at| Column { at, cell: cell(at) }).collect())
    }
}

/// The records of one block, in its order.
pub struct CsvItems {
    bytes: Buffer,
    from: u64,
    at: usize,
    whose: Whose,
    dialect: Dialect,
    what: Arc<What>,
    columns: Vec<Column>,
    /// How many columns the file has.
    width: usize,
    schema: Schema,
    more: Vec<Value>,
    /// The cells of the record being read; kept for its memory.
    fields: Vec<Field>,
}

impl CsvItems {
    fn record(&mut self, start: usize) -> Result<Sample> {
        let found = self.fields.len();
        if found != self.width && !self.what.fill {
            let expected = self.width;
            return Err(Error::corrupt(format!("a record of {found} cells, expected {expected}"))
                .context("byte", self.from.saturating_add(start as u64)));
        }
        let mut values = Vec::with_capacity(self.columns.len() + self.more.len());
        for column in &self.columns {
            values.push(match self.fields.get(column.at) {
                Some(field) => self.cell(field, column)?,
                None => Value::NULL,
            });
        }
        values.extend(self.more.iter().cloned());
        Ok(self.whose.sample(self.from.saturating_add(start as u64), self.schema.clone(), values))
    }

    fn cell(&self, field: &Field, column: &Column) -> Result<Value> {
        let text = self.dialect.text(&self.bytes, field).map_err(|error| {
            // The place within the block is that within the file when the block is behind it.
            let at = error.get("byte").and_then(|byte| byte.parse::<u64>().ok()).unwrap_or_default();
            Error::corrupt(error.message()).context("byte", self.from.saturating_add(at))
        })?;
        if self.what.nulls.iter().any(|null| **null == *text) {
            return Ok(Value::NULL);
        }
        column.cell.value(text).map_err(|(text, expected)| {
            let shown: String = text.chars().take(24).collect();
            Error::corrupt(format!("found `{}`, expected {expected}", shown.escape_debug()))
                .context("column", column.at + 1)
                .context("byte", self.from.saturating_add(field.text.start as u64))
        })
    }
}

impl Items for CsvItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        while self.at < self.bytes.len() {
            let start = self.at;
            self.fields.clear();
            let end = self.dialect.record(&self.bytes, start, |field| self.fields.push(field));
            let next = closed(end, self.bytes.len(), self.from);
            self.at = *next.as_ref().unwrap_or(&self.bytes.len());
            let file = |error: Error| error.context("file", &self.whose.origin);
            next.map_err(file)?;
            if !self.fields.is_empty() {
                let record = self.record(start);
                return record.map(Some).map_err(|error| error.context("file", &self.whose.origin));
            }
        }
        Ok(None)
    }

    /// The next call begins behind the row that failed.
    fn goes_on(&self) -> bool {
        true
    }

    /// Where the next record starts.
    fn state(&self) -> Result<State> {
        save(self.at as u64)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        // It lies within the bytes.
        self.at = saved(state, self.bytes.len() as u64)? as usize;
        Ok(())
    }
}
