//! `json_array`: a document that is an array, or has one, to the documents in it, one sample each.
//!
//! ```toml
//! [json_array]
//! examples = [
//!     '''printf '{"rows": [{"id": 1}, {"id": 2}]}' > rows.json''',
//!     'forebay head "files rows.json | json_array at=/rows"',
//! ]
//! ```

use forebay_core::{
    Blob, Buffer, Context, DataPipe, Error, FlatMap, Items, Magic, OneOrMany, Opens, Output, PipeInfo,
    Result, Sample, State, StateExt as _, options,
};

use crate::{
    piece::Piece,
    rows::{Form, Rows},
    scan::{DEPTH, Scan, deeper},
    select::{index, steps},
};

/// The version of a saved position.
const STATE: u32 = 1;

options! {
    /// Options of `json_array`.
    pub struct JsonArrayOptions {
        /// The fields of a sample: keys, or pointers such as `/box/0`; a missing one is null. Empty for every key
        /// of an item.
        fields: OneOrMany<String> = [];
        /// The pointer to the array, such as `/data/rows`; empty if the document is the array.
        at: String = "";
        /// Of equal keys in an object, the value that counts; or that they are an error.
        duplicates: String = "last", one_of ["last", "first", "refuse"];
        /// Bytes that are not UTF-8 and halves of surrogate pairs: an error, or replaced by U+FFFD.
        invalid_utf8: String = "refuse", one_of ["refuse", "replace"];
        /// What integers beyond 64 bits become: the nearest float64, or their digits as text.
        big_integers: String = "float", one_of ["float", "text"];
    }
}

/// Turns each file, which is a JSON document, into the items of an array in it.
#[derive(Debug)]
pub struct JsonArray {
    form: Form,
    steps: Vec<String>,
}

impl DataPipe for JsonArray {
    const INFO: PipeInfo = PipeInfo {
        name: "json_array",
        summary: "The items of a JSON array to samples",
        opens: Some(Opens { extensions: &["json"], magic: &[Magic { offset: 0, bytes: b"[" }], then: "" }),
        ..PipeInfo::DEFAULT
    };
    type Options = JsonArrayOptions;

    fn new(options: JsonArrayOptions) -> Result<Self> {
        let JsonArrayOptions { fields, at, duplicates, invalid_utf8, big_integers } = options;
        let steps = steps(&at).map_err(|error| error.context("option", "at"))?;
        Ok(Self { form: Form::of_options(&fields, &duplicates, &invalid_utf8, &big_integers)?, steps })
    }

    /// An array of objects is a table; one of numbers is one value.
    fn probe(head: &[u8], _: &str) -> u8 {
        let rest = head.get(1..).unwrap_or_default();
        if rest.trim_ascii_start().starts_with(b"{") { 200 } else { 0 }
    }
}

impl FlatMap for JsonArray {
    type Items = JsonArrayItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<JsonArrayItems> {
        let bytes = Blob::of(&sample, cx)?.whole(cx.limits().bytes)?;
        let whose = Piece::whose(&sample);
        let origin = whose.origin.clone();
        let rows = Rows::new(self.form.clone(), whose, cx.limits().bytes, bytes.clone());
        let mut items = JsonArrayItems { bytes, at: 0, index: 0, within: Vec::new(), done: false, rows };
        items.enter(&self.steps).map_err(|error| error.context("file", origin))?;
        Ok(items)
    }
}

/// The items of one array, in its order.
pub struct JsonArrayItems {
    bytes: Buffer,
    /// Where the next item or the end of the array is; before that there may be white space.
    at: usize,
    index: u64,
    /// The ends of what the array lies in, the outermost first, and its own.
    within: Vec<u8>,
    done: bool,
    rows: Rows,
}

impl JsonArrayItems {
    fn scan(&self) -> Scan<'_> {
        let lenient = self.rows.lenient();
        Scan { bytes: &self.bytes, at: self.at, base: 0, by_line: false, lenient }
    }

    /// Goes to the first item.
    fn enter(&mut self, steps: &[String]) -> Result<()> {
        let mut scan = self.scan();
        let mut within = Vec::new();
        for step in steps {
            within.push(match scan.white() {
                b'{' => find_key(&mut scan, step)?,
                b'[' => find_item(&mut scan, step)?,
                _ => return Err(missing(&scan, step)),
            });
        }
        if scan.white() != b'[' {
            return Err(scan.refuse("an array"));
        }
        scan.at += 1;
        within.push(b']');
        let empty = scan.white() == b']';
        scan.at += usize::from(empty);
        let at = scan.at;
        (self.at, self.within) = (at, within);
        if empty { self.leave() } else { Ok(()) }
    }

    /// Checks what stands behind the array.
    fn leave(&mut self) -> Result<()> {
        self.done = true;
        let mut scan = self.scan();
        for end in self.within.iter().rev().skip(1) {
            while scan.another(*end, "a comma or the end of what the array lies in")? {
                if *end == b'}' {
                    if scan.white() != b'"' {
                        return Err(scan.refuse("a key"));
                    }
                    scan.skip_text()?;
                    scan.expect(b':', "a colon")?;
                }
                scan.skip(DEPTH)?;
            }
        }
        scan.white();
        if scan.at < self.bytes.len() { Err(scan.refuse("the end")) } else { Ok(()) }
    }

    fn item(&mut self, sample: &mut Sample) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        self.done = true; // What comes after an error cannot be told apart.
        let lenient = self.rows.lenient();
        let mut scan = Scan { bytes: &self.bytes, at: self.at, base: 0, by_line: false, lenient };
        self.rows.read(&mut scan, self.index, sample)?;
        let more = scan.another(b']', "a comma or the end of an array")?;
        (self.at, self.index, self.done) = (scan.at, self.index + 1, !more);
        if !more {
            self.leave()?;
        }
        Ok(true)
    }
}

/// Goes to the value of a key, in the object that begins here; gives the object's end.
fn find_key(scan: &mut Scan<'_>, step: &str) -> Result<u8> {
    scan.at += 1;
    loop {
        if scan.white() != b'"' {
            return Err(missing(scan, step));
        }
        let from = scan.at;
        scan.skip_text()?;
        let raw = scan.bytes.get(from..scan.at).unwrap_or_default().to_vec();
        scan.expect(b':', "a colon")?;
        // Keys are few here, and may be escaped.
        if crate::parse(&raw.into())?.as_str() == Some(step) {
            return Ok(b'}');
        }
        scan.skip(DEPTH)?;
        if !scan.another(b'}', "a comma or the end of an object")? {
            return Err(missing(scan, step));
        }
    }
}

/// Goes to an item, in the array that begins here; gives the array's end.
fn find_item(scan: &mut Scan<'_>, step: &str) -> Result<u8> {
    let wanted = index(step).ok_or_else(|| missing(scan, step))?;
    scan.at += 1;
    for _ in 0..wanted {
        scan.skip(deeper(DEPTH, scan)?)?;
        if !scan.another(b']', "a comma or the end of an array")? {
            return Err(missing(scan, step));
        }
    }
    if scan.white() == b']' { Err(missing(scan, step)) } else { Ok(b']') }
}

fn missing(scan: &Scan<'_>, step: &str) -> Error {
    Error::corrupt(format!("nothing at `{step}`, expected the way to an array")).context("byte", scan.at)
}

impl Items for JsonArrayItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        Output::one(|out| self.fill(out, cx))
    }

    fn fill(&mut self, out: &mut Output, _: &Context) -> Result<bool> {
        out.fill_with(|sample| {
            self.item(sample).map_err(|error| error.context("file", &self.rows.whose().origin))
        })
    }

    /// Where the next item starts, and its number.
    fn state(&self) -> Result<State> {
        State::json(STATE, &(self.at, self.index, self.done))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (at, index, done) = state.parse::<(usize, u64, bool)>(STATE)?;
        let len = self.bytes.len();
        if at > len {
            return Err(Error::invalid(format!("the saved place is byte {at} of {len}")));
        }
        (self.at, self.index, self.done) = (at, index, done);
        Ok(())
    }
}
