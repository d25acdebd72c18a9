//! `lines`: a file to blocks of whole lines.
//!
//! ```toml
//! [lines]
//! examples = ['forebay head -n 1 "files plugins/json/seeds/rows.jsonl | lines | json_lines"']
//! ```

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Keep, Magic, Opens, PipeInfo, Result, Sample, State,
    Value, options,
};
use forebay_unpack::peek;

use crate::{
    MARK,
    ends::Ends,
    parse,
    piece::{Cutter, save},
    source::{Rest, Source},
    text::is_text,
};

/// So many bytes are looked at first for the end of a line.
const WINDOW: u64 = 4096;
/// Of a file far away, a block has at least so many bytes: each is a request.
const FAR: u64 = 4 << 20;

options! {
    /// Options of `lines`.
    pub struct LinesOptions {
        /// About how many bytes a block has; at least 4 MiB for files on other machines.
        block: u64 = 131072, in 1..=1073741824;
        /// How many lines a block has, instead of bytes; 1 to shuffle single lines. The file is read once before
        /// its first block.
        rows: Option<u64> = null, in 1..=4294967295;
        /// With `rows`: where to keep an index of the blocks of local files: `beside` each file, or a folder; null
        /// for nowhere.
        index: Option<String> = null;
    }
}

/// Cuts each file into blocks that end where lines do, for `json_lines` and `text_lines` to read several at once.
#[derive(Debug)]
pub struct Lines {
    block: u64,
    rows: Option<u64>,
    keep: Option<Keep>,
}

impl DataPipe for Lines {
    const INFO: PipeInfo = PipeInfo {
        name: "lines",
        summary: "Blocks of whole lines out of files",
        // Text has no magic: the probe is asked of every file.
        opens: Some(Opens {
            extensions: &["jsonl", "ndjson"],
            magic: &[Magic { offset: 0, bytes: b"" }],
            then: "json_lines",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = LinesOptions;

    fn new(options: LinesOptions) -> Result<Self> {
        let LinesOptions { block, rows, index } = options;
        if index.is_some() && rows.is_none() {
            let error = Error::invalid("an index is of blocks of so many lines: `rows` must say how many");
            return Err(error.context("option", "index"));
        }
        Ok(Self { block, rows, keep: index.as_deref().map(Keep::of) })
    }

    /// Two lines that are JSON objects are lines of JSON, whatever they are called; so they are where a head of packed bytes shows them.
    fn probe(head: &[u8], extension: &str) -> u8 {
        let named = matches!(extension.to_ascii_lowercase().as_str(), "jsonl" | "ndjson");
        let inside = peek(head, WINDOW as usize);
        let text = inside.as_deref().unwrap_or(head);
        let mut lines = text.strip_prefix(MARK).unwrap_or(text).split_inclusive(|&byte| byte == b'\n');
        let mut object = || {
            let line = lines.next().filter(|line| line.starts_with(b"{") && line.ends_with(b"\n"))?;
            parse(&line.to_vec().into()).ok()
        };
        match object().and_then(|_| object()) {
            Some(_) => 224,
            // Less than who unpacks it to look.
            None if named && is_text(text) => 200 - 40 * u8::from(inside.is_some()),
            None => 0,
        }
    }
}

impl FlatMap for Lines {
    type Items = LinesItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<LinesItems> {
        let origin = sample.key().origin.clone();
        self.items(sample, cx).map_err(|error| error.context("file", origin))
    }
}

impl Lines {
    fn items(&self, sample: Sample, cx: &Context) -> Result<LinesItems> {
        let source = Source::of(&sample, cx)?;
        let (mut block, mut ends) = (source.block(self.block, cx), None);
        if let Source::Plain(blob) = &source {
            if blob.in_memory().is_none() {
                block = block.max(FAR);
            }
            if let Some(rows) = self.rows {
                let path = sample.get("path").and_then(Value::as_str).zip(self.keep.as_ref());
                ends = Some(Ends::of(blob, rows, path, cx.limits().bytes)?);
            }
        }
        let cutter = Cutter::new(sample, &source);
        Ok(LinesItems { source, cutter, block, rows: self.rows, ends, at: 0 })
    }
}

/// The blocks of one file, in its order.
pub struct LinesItems {
    source: Source,
    cutter: Cutter,
    block: u64,
    rows: Option<u64>,
    /// Where blocks end that have so many lines, of a plain file.
    ends: Option<Ends>,
    at: u64,
}

impl LinesItems {
    /// Where the next block ends; where it starts, if there is none.
    fn end(&mut self, cx: &Context) -> Result<u64> {
        let most = cx.limits().bytes;
        match (&mut self.source, &self.ends) {
            (Source::Plain(blob), _) if self.at >= blob.len() => Ok(self.at),
            (Source::Plain(_), Some(ends)) => ends.after(self.at),
            (Source::Plain(blob), None) => cut(blob, self.at.saturating_add(self.block), self.at, most),
            (source, _) => cut_unpacked(source, self.at, self.block, self.rows, cx),
        }
    }

    fn piece(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let (from, end) = (self.at, self.end(cx)?);
        if from == end {
            return Ok(None);
        }
        self.at = end;
        self.cutter.piece(&mut self.source, (from, end), Value::NULL, cx).map(Some)
    }
}

impl Items for LinesItems {
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

/// The end of the first line that ends at `target` or behind it.
///
/// # Errors
/// `Limit` when the block from `from` would have more than `most` bytes; the blob's own.
fn cut(blob: &Blob, target: u64, from: u64, most: u64) -> Result<u64> {
    let len = blob.len();
    let (mut at, mut window) = (target.saturating_sub(1), WINDOW);
    while at < len {
        let end = at.saturating_add(window).min(len);
        if let Some(found) = memchr::memchr(b'\n', &blob.read(at..end)?) {
            return Ok(at + found as u64 + 1);
        }
        if end - from > most.max(target - from) {
            let error = format!("a line of more than {} bytes, at most {most} are taken", end - target);
            return Err(Error::limit(error).context("byte", from));
        }
        (at, window) = (end, window.saturating_mul(2).min(1 << 24));
    }
    Ok(len)
}

/// The end of the block that starts at `from` in what is unpacked, as [`cut`] would have it, or behind so many lines. Before damage it ends
/// with the last line that is whole.
///
/// # Errors
/// `Limit` when the block has more bytes than one value may; what broke the file, where nothing whole lies before that.
fn cut_unpacked(source: &mut Source, from: u64, block: u64, rows: Option<u64>, cx: &Context) -> Result<u64> {
    let most = cx.limits().bytes;
    let least = rows.map_or(block, |_| 1);
    // No more than half the limit, which is of what is in memory.
    let (skipped, mut size) = (least as usize - 1, least.saturating_add(WINDOW));
    loop {
        let (text, rest) = source.ahead(from, size, cx)?;
        let mut ends = memchr::memchr_iter(b'\n', text.as_slice().get(skipped..).unwrap_or_default());
        let found = ends.nth(rows.map_or(0, |rows| rows as usize - 1)).map(|at| skipped + at + 1);
        let end = match (found, rest) {
            (Some(end), _) => end,
            (None, Rest::End) => text.len(),
            (None, Rest::Damage) => memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1),
            (None, Rest::More) if text.len() as u64 <= most => {
                size = size.saturating_mul(2).min(most + 1);
                continue;
            }
            (None, Rest::More) => text.len(),
        };
        if end as u64 > most {
            let what = rows.filter(|rows| *rows > 1).map_or("a line".into(), |rows| format!("{rows} lines"));
            let error = format!("{what} of more than {most} bytes, which are the most that are taken");
            return Err(Error::limit(error).context("byte", from));
        }
        if end == 0 {
            source.damage()?;
        }
        return Ok(from + end as u64);
    }
}
