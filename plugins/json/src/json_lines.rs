//! `json_lines`: a block of lines to the documents in it, one sample each.
//!
//! ```toml
//! [json_lines]
//! examples = ['forebay head -n 1 "files plugins/json/seeds/two.jsonl | lines | json_lines duplicates=refuse"']
//! ```

use forebay_core::{
    Buffer, Context, DataPipe, FlatMap, Items, Limits, OneOrMany, Output, PipeInfo, PipePlacement, Result,
    Sample, State, Str, options,
};

use crate::{
    MARK,
    piece::{Piece, save, saved},
    rows::{Form, Rows, Whose},
    scan::Scan,
};

options! {
    /// Options of `json_lines`.
    pub struct JsonLinesOptions {
        /// The fields of a sample: keys, or pointers such as `/box/0`; a missing one is null. Empty for every key
        /// of a row.
        fields: OneOrMany<String> = [];
        /// Of equal keys in an object, the value that counts; or that they are an error.
        duplicates: String = "last", one_of ["last", "first", "refuse"];
        /// Bytes that are not UTF-8 and halves of surrogate pairs: an error, or replaced by U+FFFD.
        invalid_utf8: String = "refuse", one_of ["refuse", "replace"];
        /// What integers beyond 64 bits become: the nearest float64, or their digits as text.
        big_integers: String = "float", one_of ["float", "text"];
    }
}

/// Turns each block of `lines`, or a whole file, into the JSON documents on its lines.
#[derive(Debug)]
pub struct JsonLines {
    form: Form,
}

impl DataPipe for JsonLines {
    const INFO: PipeInfo = PipeInfo {
        name: "json_lines",
        summary: "A JSON document a line to samples",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = JsonLinesOptions;

    fn new(options: JsonLinesOptions) -> Result<Self> {
        let JsonLinesOptions { fields, duplicates, invalid_utf8, big_integers } = options;
        Ok(Self { form: Form::of_options(&fields, &duplicates, &invalid_utf8, &big_integers)? })
    }
}

impl FlatMap for JsonLines {
    type Items = JsonLinesItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<JsonLinesItems> {
        let Piece { bytes, from, whose, .. } = Piece::of(&sample, cx)?;
        let rows = Rows::new(self.form.clone(), whose, cx.limits().bytes, bytes.clone());
        Ok(JsonLinesItems { bytes, from, at: 0, rows })
    }
}

/// The rows of JSON lines, with a field for each key; text shares the memory of `bytes`.
///
/// A sample's number is the byte where its row starts, its uid a hash of that and of `uid`. After an error the next row comes.
///
/// ```
/// use forebay_json::{Form, Rules, rows};
///
/// let lines = br#"{"label": 3, "text": "heron"}
/// {"label": 5, "text": "stork"}
/// "#;
/// let form = Form::new(&["text".into()], Rules::DEFAULT)?;
/// let names: Vec<_> = rows(lines.to_vec().into(), "birds.jsonl".into(), 7, form).collect::<Result<_, _>>()?;
/// assert_eq!(names[1].get("text").and_then(|text| text.as_str()), Some("stork"));
/// assert_eq!((names.len(), names[1].key().to_string()), (2, "birds.jsonl#30".into()));
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[must_use]
pub fn rows(bytes: Buffer, origin: Str, uid: u64, form: Form) -> JsonLinesItems {
    let whose = Whose { origin, uid, fields: Vec::new() };
    let rows = Rows::new(form, whose, Limits::DEFAULT.bytes, bytes.clone());
    JsonLinesItems { bytes, from: 0, at: 0, rows }
}

/// The rows of one block, in its order; made by [`rows`].
pub struct JsonLinesItems {
    bytes: Buffer,
    from: u64,
    at: usize,
    rows: Rows,
}

impl JsonLinesItems {
    /// The next row, into `sample`, and whether there is one; after an error, the one after the line that has it.
    fn next_row(&mut self, sample: &mut Sample) -> Result<bool> {
        if self.at == 0 && self.from == 0 && self.bytes.starts_with(MARK) {
            self.at = MARK.len();
        }
        let lenient = self.rows.lenient();
        let mut scan = Scan { bytes: &self.bytes, at: self.at, base: self.from, by_line: true, lenient };
        while scan.white() == b'\n' {
            scan.at += 1;
        }
        self.at = scan.at;
        if scan.at == scan.bytes.len() {
            return Ok(false);
        }
        let index = self.from.saturating_add(scan.at as u64);
        let row = self.rows.read(&mut scan, index, sample).and_then(|()| match scan.white() {
            b'\n' => Ok(true),
            _ if scan.at == scan.bytes.len() => Ok(true),
            _ => Err(scan.refuse("the end of the line").context("file", &self.rows.whose().origin)),
        });
        // Where a row is broken, the next begins after the next line feed.
        let end = memchr::memchr(b'\n', scan.rest());
        self.at = end.map_or(scan.bytes.len(), |end| scan.at + end + 1);
        row
    }
}

impl Items for JsonLinesItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let mut sample = Sample::default();
        Ok(self.next_row(&mut sample)?.then_some(sample))
    }

    fn fill(&mut self, out: &mut Output, _: &Context) -> Result<bool> {
        out.fill_with(|sample| self.next_row(sample))
    }

    /// The next call begins behind the row that failed.
    fn goes_on(&self) -> bool {
        true
    }

    /// Where the next row starts.
    fn state(&self) -> Result<State> {
        save(self.at as u64)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        // It lies within the bytes.
        self.at = saved(state, self.bytes.len() as u64)? as usize;
        Ok(())
    }
}

impl Iterator for JsonLinesItems {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut sample = Sample::default();
        self.next_row(&mut sample).map(|found| found.then_some(sample)).transpose()
    }
}
