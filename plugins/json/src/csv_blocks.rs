//! `csv_blocks`: a CSV file to blocks of whole records, with what its header says.

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Opens, PipeInfo, Result, Sample, State, Str, Value,
    options,
};

use crate::{
    MARK,
    piece::{Cutter, save, saved},
    record::{Dialect, End, closed},
    text::is_text,
};

options! {
    /// Options of `csv_blocks`.
    pub struct CsvBlocksOptions {
        /// What stands between fields, one ASCII character. None: a tab in files called `.tsv` or `.tab`, else a comma.
        separator: Option<String> = null;
        /// What stands around fields, one ASCII character; empty: nothing does.
        quote: String = "\"";
        /// What lines begin with that are passed over, one ASCII character; empty: none are.
        comment: String = "";
        /// Whether the first record has the names of the columns.
        header: bool = true;
        /// The names of the columns, instead of those of the header. None and no header: `column_1` and so on.
        names: Vec<String> = [];
        /// About how many bytes a block has.
        block: u64 = 262144, in 1..=1073741824;
    }
}

/// Cuts each CSV file into blocks that end where records do, for `csv` to read several at once.
#[derive(Debug)]
pub struct CsvBlocks {
    separator: Option<u8>,
    dialect: Dialect,
    header: bool,
    names: Vec<Str>,
    block: u64,
}

/// The one ASCII character that an option has; none when it is empty.
fn character(option: &str, text: &str) -> Result<Option<u8>> {
    match text.as_bytes() {
        [] => Ok(None),
        [byte] if byte.is_ascii() && !b"\r\n".contains(byte) => Ok(Some(*byte)),
        _ => {
            Err(Error::invalid(format!("found `{text}`, expected one ASCII character"))
                .context("option", option))
        }
    }
}

impl DataPipe for CsvBlocks {
    const INFO: PipeInfo = PipeInfo {
        name: "csv_blocks",
        summary: "Blocks of whole records out of CSV files",
        opens: Some(Opens { extensions: &["csv", "tsv", "tab"], magic: &[], then: "csv" }),
        ..PipeInfo::DEFAULT
    };
    type Options = CsvBlocksOptions;

    fn new(options: CsvBlocksOptions) -> Result<Self> {
        let separator = match &options.separator {
            None => None,
            Some(text) => match character("separator", text)? {
                None => return Err(Error::invalid("empty").context("option", "separator")),
                some => some,
            },
        };
        let (quote, comment) = (character("quote", &options.quote)?, character("comment", &options.comment)?);
        if separator.is_some() && (separator == quote || separator == comment)
            || (quote.is_some() && quote == comment)
        {
            return Err(Error::invalid("separator, quote and comment must differ"));
        }
        let names = unique(options.names.iter().map(|name| Str::from(name.as_str())).collect());
        let dialect = Dialect { quote, comment, ..Dialect::CSV };
        Ok(Self { separator, dialect, header: options.header, names, block: options.block })
    }

    fn probe(head: &[u8], _: &str) -> u8 {
        if is_text(head) { 160 } else { 0 }
    }
}

impl FlatMap for CsvBlocks {
    type Items = CsvBlocksItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<CsvBlocksItems> {
        let blob = Blob::of(&sample, cx)?;
        let origin = sample.key().origin.to_ascii_lowercase();
        let tabs = origin.ends_with(".tsv") || origin.ends_with(".tab");
        let separator = self.separator.unwrap_or(if tabs { b'\t' } else { b',' });
        let dialect = Dialect { separator, ..self.dialect };
        let (header, names, block) = (self.header, self.names.clone(), self.block);
        let mut items = CsvBlocksItems {
            blob,
            cutter: Cutter::new(sample),
            dialect,
            header,
            names,
            block,
            at: 0,
            more: Value::NULL,
        };
        items.begin(cx).map_err(|error| error.context("file", items.cutter.origin()))?;
        Ok(items)
    }
}

/// The blocks of one file, in its order.
pub struct CsvBlocksItems {
    blob: Blob,
    cutter: Cutter,
    dialect: Dialect,
    header: bool,
    names: Vec<Str>,
    block: u64,
    at: u64,
    more: Value,
}

impl CsvBlocksItems {
    /// Reads the header, and goes to the first record behind it.
    fn begin(&mut self, cx: &Context) -> Result<()> {
        let mark = self.blob.read(0..self.blob.len().min(MARK.len() as u64))?;
        self.at = if *mark == *MARK { MARK.len() as u64 } else { 0 };
        let mut first = Vec::new();
        let mut end = self.at;
        while first.is_empty() && end < self.blob.len() {
            let bytes = self.blob.read(end..self.cut(end, 1, cx)?)?;
            let mut fields = Vec::new();
            closed(self.dialect.record(&bytes, 0, |field| fields.push(field)), bytes.len(), end)?;
            first = fields.iter().map(|field| self.dialect.text(&bytes, field)).collect::<Result<_>>()?;
            end += bytes.len() as u64;
        }
        if self.header {
            self.at = end;
        } else {
            first = (1..=first.len()).map(|at| Str::from(format!("column_{at}"))).collect();
        }
        let names = if self.names.is_empty() { unique(first) } else { self.names.clone() };
        let byte = |byte: Option<u8>| byte.map_or(Value::NULL, Value::from);
        self.more = Value::structure(vec![
            // Names of their own memory: pieces must not keep the file.
            ("names".into(), Value::list(names.iter().map(|name| (&**name).into()).collect())),
            ("separator".into(), self.dialect.separator.into()),
            ("quote".into(), byte(self.dialect.quote)),
            ("comment".into(), byte(self.dialect.comment)),
        ]);
        Ok(())
    }

    /// The end of the first record that ends `wanted` bytes behind `from` or later; or of one before that, when the next is not
    /// yet at hand.
    fn cut(&self, from: u64, wanted: u64, cx: &Context) -> Result<u64> {
        let (len, most) = (self.blob.len(), cx.limits().bytes);
        let mut size = wanted.max(4096);
        loop {
            let end = from.saturating_add(size).min(len);
            let bytes = self.blob.read(from..end)?;
            let mut at = 0;
            loop {
                match self.dialect.record(&bytes, at, |_| {}) {
                    // A carriage return at the end may have its line feed behind it.
                    End::Line(next) if next < bytes.len() || end == len => at = next,
                    End::Bytes if end == len => at = bytes.len(),
                    // The records before one whose quotes do not close are a block without it.
                    open if end == len && at == 0 && !bytes.is_empty() => {
                        at = closed(open, bytes.len(), from)?;
                    }
                    _ => break,
                }
                if at >= bytes.len() || at as u64 >= wanted {
                    break;
                }
            }
            if at > 0 || end == len {
                return Ok(from + at as u64);
            }
            if size >= most {
                let error = format!("a record of more than {size} bytes, at most {most} are taken");
                return Err(Error::limit(error).context("byte", from));
            }
            size = size.saturating_mul(2).min(most);
        }
    }
}

impl Items for CsvBlocksItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let from = self.at;
        if from >= self.blob.len() {
            return Ok(None);
        }
        let piece = self.cut(from, self.block, cx).and_then(|end| {
            self.at = end;
            self.cutter.piece(&self.blob, from, end, self.more.clone())
        });
        piece.map(Some).map_err(|error| error.context("file", self.cutter.origin()))
    }

    /// Where the next block starts.
    fn state(&self) -> Result<State> {
        save(self.at)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.at = saved(state, self.blob.len())?;
        Ok(())
    }
}

/// The names, each once: of equal ones the second is `a_2`, and so on.
fn unique(names: Vec<Str>) -> Vec<Str> {
    let mut taken: std::collections::HashSet<String> = names.iter().map(|name| name.to_string()).collect();
    let mut seen = std::collections::HashMap::<String, usize>::new();
    let once = |name: Str| {
        let count = seen.entry(name.to_string()).or_default();
        *count += 1;
        if *count == 1 {
            return name;
        }
        let mut new = format!("{name}_{count}");
        while !taken.insert(new.clone()) {
            *count += 1;
            new = format!("{name}_{count}");
        }
        new.into()
    };
    names.into_iter().map(once).collect()
}
