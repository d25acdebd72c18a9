//! `text_lines`: a block of lines to its lines, one sample each.
//!
//! ```toml
//! [text_lines]
//! examples = ['forebay head -n 2 "files plugins/json/seeds/words.txt | lines | text_lines skip_blank=true"']
//! ```

use forebay_core::{
    Buffer, Context, DataPipe, Error, FlatMap, Items, PipeInfo, PipePlacement, Result, Sample, Schema, State,
    Str, Value, options,
};

use crate::{
    MARK,
    piece::{Piece, save, saved},
    rows::Whose,
    shapes::Known,
};

options! {
    /// Options of `text_lines`.
    pub struct TextLinesOptions {
        /// The field that holds the line.
        field: String = "text";
        /// Leave out lines of white space only.
        skip_blank: bool = false;
        /// Bytes that are not UTF-8: an error, or replaced by U+FFFD.
        invalid_utf8: String = "refuse", one_of ["refuse", "replace"];
    }
}

/// Turns each block of `lines`, or a whole file, into its lines, without their ends.
#[derive(Debug)]
pub struct TextLines {
    schema: Schema,
    skip_blank: bool,
    replace: bool,
    known: Known,
}

impl DataPipe for TextLines {
    const INFO: PipeInfo = PipeInfo {
        name: "text_lines",
        summary: "A line of text a sample",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = TextLinesOptions;

    fn new(options: TextLinesOptions) -> Result<Self> {
        let TextLinesOptions { field, skip_blank, invalid_utf8 } = options;
        let (schema, replace) = (Schema::new([field]), invalid_utf8 == "replace");
        Ok(Self { schema, skip_blank, replace, known: Known::default() })
    }
}

impl FlatMap for TextLines {
    type Items = TextLinesItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<TextLinesItems> {
        let Piece { bytes, from, whose, .. } = Piece::of(&sample, cx)?;
        let (schema, more) = whose.widen(&self.schema, &self.known);
        let (skip_blank, replace) = (self.skip_blank, self.replace);
        Ok(TextLinesItems { bytes, from, at: 0, whose, schema, more, skip_blank, replace })
    }
}

/// The lines of one block, in its order.
pub struct TextLinesItems {
    bytes: Buffer,
    from: u64,
    at: usize,
    whose: Whose,
    schema: Schema,
    more: Vec<Value>,
    skip_blank: bool,
    replace: bool,
}

impl Items for TextLinesItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        if self.at == 0 && self.from == 0 && self.bytes.starts_with(MARK) {
            self.at = MARK.len();
        }
        loop {
            let (start, rest) = (self.at, self.bytes.get(self.at..).unwrap_or_default());
            if rest.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', &rest).map(|end| end + 1);
            let line = end.map_or(&rest[..], |end| &rest[..end - 1]);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.at = start.saturating_add(end.unwrap_or(rest.len()));
            if self.skip_blank && line.trim_ascii().is_empty() {
                continue;
            }
            let index = self.from.saturating_add(start as u64);
            let text =
                self.text(start, line.len()).map_err(|error| error.context("file", &self.whose.origin))?;
            let values = [text].into_iter().chain(self.more.iter().cloned()).collect();
            return Ok(Some(self.whose.sample(index, self.schema.clone(), values)));
        }
    }

    /// The next call begins behind the row that failed.
    fn goes_on(&self) -> bool {
        true
    }

    /// Where the next line starts.
    fn state(&self) -> Result<State> {
        save(self.at as u64)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        // It lies within the bytes.
        self.at = saved(state, self.bytes.len() as u64)? as usize;
        Ok(())
    }
}

impl TextLinesItems {
    fn text(&self, start: usize, len: usize) -> Result<Value> {
        if len == 0 {
            return Ok(Str::EMPTY.into());
        }
        let line = self.bytes.get(start..start.saturating_add(len)).unwrap_or_default();
        match Str::from_utf8(line) {
            Ok(text) => Ok(text.into()),
            Err(line) if self.replace => Ok(String::from_utf8_lossy(&line).into_owned().into()),
            Err(line) => {
                let at = std::str::from_utf8(&line).err().map_or(0, |error| error.valid_up_to());
                let byte = line.as_slice().get(at).copied().unwrap_or_default();
                let place = self.from.saturating_add((start + at) as u64);
                Err(Error::corrupt(format!("found byte 0x{byte:02x}, expected UTF-8")).context("byte", place))
            }
        }
    }
}
