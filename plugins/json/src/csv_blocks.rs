//! `csv_blocks`: a CSV file to blocks of whole records, with what its header says.
//!
//! ```toml
//! [csv_blocks]
//! examples = ['forebay head -n 1 "files plugins/json/seeds/birds.csv | csv_blocks | csv types=auto"']
//! ```

use forebay_core::{
    Context, DataPipe, Error, FlatMap, Items, Opens, PipeInfo, Result, Sample, State, Str, Value, options,
};
use forebay_unpack::peek;

use crate::{
    MARK,
    piece::{Cutter, save},
    record::{Dialect, End, closed},
    source::{Rest, Source},
    text::is_text,
};

/// What may stand between fields where nothing says so; the comma unless the first record has none and one of the others.
const SEPARATORS: [u8; 4] = *b",;\t|";

/// So many bytes are looked at first for the end of a record.
const WINDOW: u64 = 4096;

options! {
    /// Options of `csv_blocks`.
    pub struct CsvBlocksOptions {
        /// The character between fields, in ASCII. Empty: a tab in files called `.tsv` or `.tab`, else a comma; if
        /// the first record has no comma, the semicolon, tab or bar that it has.
        separator: Option<String> = null;
        /// The character around fields, in ASCII; empty for none.
        quote: String = "\"";
        /// Skip lines that begin with this ASCII character; empty to skip none.
        comment: String = "";
        /// The first record has the names of the columns.
        header: bool = true;
        /// The names of the columns, instead of those in the header. Without both they are `column_1` and so on.
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
        opens: Some(Opens { extensions: &["csv", "tsv", "tab", "psv"], magic: &[], then: "csv" }),
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
        let inside = peek(head, WINDOW as usize);
        if is_text(inside.as_deref().unwrap_or(head)) { 160 } else { 0 }
    }
}

impl FlatMap for CsvBlocks {
    type Items = CsvBlocksItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<CsvBlocksItems> {
        let origin = sample.key().origin.clone();
        self.items(sample, cx).map_err(|error| error.context("file", origin))
    }
}

impl CsvBlocks {
    fn items(&self, sample: Sample, cx: &Context) -> Result<CsvBlocksItems> {
        let source = Source::of(&sample, cx)?;
        let tabs = || has_tabs(&sample.key().origin, source.is_packed());
        let separator = self.separator.or_else(|| tabs().then_some(b'\t'));
        let dialect = Dialect { separator: separator.unwrap_or(b','), ..self.dialect };
        let (header, names, block) = (self.header, self.names.clone(), source.block(self.block, cx));
        let cutter = Cutter::new(sample, &source);
        let more = Value::NULL;
        let mut items = CsvBlocksItems { source, cutter, dialect, header, names, block, at: 0, more };
        if separator.is_none() {
            items.find_separator(cx)?;
        }
        items.begin(cx)?;
        Ok(items)
    }
}

/// Whether a name is one of a file with tabs; that of a packed file may have an ending for that.
fn has_tabs(origin: &str, packed: bool) -> bool {
    let name = origin.to_ascii_lowercase();
    let named = |name: &str| name.ends_with(".tsv") || name.ends_with(".tab");
    named(&name) || packed && name.rsplit_once('.').is_some_and(|(name, _)| named(name))
}

/// The blocks of one file, in its order.
pub struct CsvBlocksItems {
    source: Source,
    cutter: Cutter,
    dialect: Dialect,
    header: bool,
    names: Vec<Str>,
    block: u64,
    at: u64,
    more: Value,
}

impl CsvBlocksItems {
    /// Chooses what stands between the fields by the first record.
    fn find_separator(&mut self, cx: &Context) -> Result<()> {
        let (bytes, _) = self.source.ahead(0, WINDOW, cx)?;
        let start = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
        let count = |separator: u8| {
            let dialect = Dialect { separator, ..self.dialect };
            let (mut at, mut fields) = (start, 0);
            // Blank lines and comments have none.
            while fields == 0 {
                match dialect.record(&bytes, at, |_| fields += 1) {
                    End::Line(next) if next < bytes.len() => at = next,
                    _ => break,
                }
            }
            fields
        };
        let taken = [self.dialect.quote, self.dialect.comment];
        let free = SEPARATORS.into_iter().filter(|&separator| !taken.contains(&Some(separator)));
        let counted: Vec<(usize, u8)> = free.map(|separator| (count(separator), separator)).collect();
        let most = counted.iter().map(|(fields, _)| *fields).max().unwrap_or(0);
        let found =
            counted.iter().find(|&&(fields, separator)| fields > 1 && (separator == b',' || fields == most));
        self.dialect.separator = found.map_or(self.dialect.separator, |(_, separator)| *separator);
        Ok(())
    }

    /// Reads the header, and goes to the first record behind it.
    fn begin(&mut self, cx: &Context) -> Result<()> {
        let mark = self.source.ahead(0, MARK.len() as u64, cx)?.0.starts_with(MARK);
        self.at = if mark { MARK.len() as u64 } else { 0 };
        let (mut first, mut end) = (Vec::new(), self.at);
        while first.is_empty() {
            let behind = self.cut(end, 1, cx)?;
            if behind == end {
                break;
            }
            // Of what is unpacked more may be at hand.
            let bytes = self.source.ahead(end, behind - end, cx)?.0.slice(..(behind - end) as usize);
            let mut fields = Vec::new();
            closed(self.dialect.record(&bytes, 0, |field| fields.push(field)), bytes.len(), end)?;
            first = fields.iter().map(|field| self.dialect.text(&bytes, field)).collect::<Result<_>>()?;
            end = behind;
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
    /// yet at hand, or broken.
    fn cut(&mut self, from: u64, wanted: u64, cx: &Context) -> Result<u64> {
        let most = cx.limits().bytes;
        let mut size = wanted.max(WINDOW);
        loop {
            let (bytes, rest) = self.source.ahead(from, size, cx)?;
            let mut at = 0;
            while at < bytes.len() && (at as u64) < wanted {
                match self.dialect.record(&bytes, at, |_| {}) {
                    // A carriage return at the end may have its line feed behind it.
                    End::Line(next) if next < bytes.len() || rest != Rest::More => at = next,
                    End::Bytes if rest == Rest::End => at = bytes.len(),
                    // The records before one whose quotes do not close are a block without it.
                    open if rest == Rest::End && at == 0 => at = closed(open, bytes.len(), from)?,
                    _ => break,
                }
            }
            if at == 0 && rest == Rest::Damage {
                self.source.damage()?;
            }
            if at > 0 || rest == Rest::End {
                return Ok(from + at as u64);
            }
            if size >= most {
                let error = format!("a record of more than {size} bytes, at most {most} are taken");
                return Err(Error::limit(error).context("byte", from));
            }
            size = size.saturating_mul(2).min(most);
        }
    }

    fn piece(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let (from, end) = (self.at, self.cut(self.at, self.block, cx)?);
        if from == end {
            return Ok(None);
        }
        self.at = end;
        self.cutter.piece(&mut self.source, (from, end), self.more.clone(), cx).map(Some)
    }
}

impl Items for CsvBlocksItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.piece(cx).map_err(|error| error.context("file", self.cutter.origin()))
    }

    /// Where the next block starts.
    fn state(&self) -> Result<State> {
        save(self.at)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.at = self.source.restore(state)?;
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
