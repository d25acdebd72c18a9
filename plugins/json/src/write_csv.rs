//! `write_csv`: samples to records of CSV, RFC 4180.
//!
//! ```toml
//! [write_csv]
//! examples = ['''forebay run "range 10 | map 'double = value * 2' | write_csv 'numbers-{:05}.csv'"''']
//! ```

use forebay_core::{
    Encode, Error, Files, PipeInfo, Result, Sample, Schema, Value, View, Writer, options, write_json,
};

options! {
    /// Options of `write_csv`.
    pub struct WriteCsvOptions {
        /// The files, such as `out-{:05}.csv`; `{rank}` and `{epoch}` may stand in it too.
        pattern: String = required;
        /// The most samples in a file.
        shard_size: Option<u64> = null;
        /// About how many bytes a file holds; 1 GiB if neither limit is given.
        shard_bytes: Option<u64> = null;
        /// Replace existing files.
        overwrite: bool = false;
        /// The character between fields.
        separator: String = ",", one_of [",", ";", "\t", "|"];
    }
}

/// Writes each sample as one record, below a header with the names of the fields; see [`Writer`] for what it gives and saves.
pub type WriteCsv = Writer<CsvFormat>;

/// Samples as records of CSV.
#[derive(Debug)]
pub struct CsvFormat {
    separator: u8,
    /// The fields of the file's first sample, which all others must have.
    columns: Option<Schema>,
    /// A cell, before it is known whether it must be quoted.
    cell: Vec<u8>,
}

impl Encode for CsvFormat {
    const INFO: PipeInfo =
        PipeInfo { name: "write_csv", summary: "Samples to records of CSV", ..PipeInfo::DEFAULT };
    type Options = WriteCsvOptions;

    fn new(options: WriteCsvOptions) -> Result<(Self, Files)> {
        let WriteCsvOptions { pattern, shard_size, shard_bytes, overwrite, separator } = options;
        let separator = separator.bytes().next().unwrap_or(b',');
        let files = Files::new(&pattern, shard_size, shard_bytes, overwrite)?;
        Ok((Self { separator, columns: None, cell: Vec::new() }, files))
    }

    fn begin(&mut self, _: &mut Vec<u8>) -> Result<()> {
        self.columns = None;
        Ok(())
    }

    fn sample(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()> {
        let first = self.columns.is_none();
        if first {
            self.record(sample.schema().names().iter().map(|name| Value::from(name.clone())), out)?;
        }
        let columns = self.columns.clone().unwrap_or_else(|| sample.schema().clone());
        if columns != *sample.schema() {
            let names = |schema: &Schema| {
                schema.names().iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().join(", ")
            };
            let (found, expected) = (names(sample.schema()), names(&columns));
            return Err(Error::invalid(format!(
                "found the fields {found}, expected those of the file: {expected}"
            )));
        }
        self.record(sample.values().iter().cloned(), out)?;
        self.columns = Some(columns);
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

impl CsvFormat {
    fn record(&mut self, values: impl Iterator<Item = Value>, out: &mut Vec<u8>) -> Result<()> {
        let begin = out.len();
        for (at, value) in values.enumerate() {
            out.extend((at > 0).then_some(self.separator));
            self.cell.clear();
            match value.view() {
                View::Null => continue,
                View::Str(text) => self.cell.extend_from_slice(text.as_bytes()),
                View::Bytes(_) => {
                    write_json(&value, &mut self.cell)?;
                    // Base64 needs no quotes.
                    self.cell.retain(|&byte| byte != b'"');
                }
                _ => write_json(&value, &mut self.cell)?,
            }
            self.quoted(out);
        }
        if out.len() == begin {
            // An empty line would be passed over.
            out.extend(b"\"\"");
        }
        out.push(b'\n');
        Ok(())
    }

    fn quoted(&self, out: &mut Vec<u8>) {
        let special = |&byte: &u8| byte == self.separator || matches!(byte, b'"' | b'\n' | b'\r');
        if !self.cell.iter().any(special) {
            out.extend_from_slice(&self.cell);
            return;
        }
        out.push(b'"');
        for &byte in &self.cell {
            out.extend((byte == b'"').then_some(b'"'));
            out.push(byte);
        }
        out.push(b'"');
    }
}
