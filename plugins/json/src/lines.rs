//! `lines`: a file to blocks of whole lines.

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Keep, Magic, Opens, PipeInfo, Result, Sample, State,
    Value, options,
};

use crate::{
    MARK,
    ends::Ends,
    parse,
    piece::{Cutter, save, saved},
    text::is_text,
};

/// So many bytes are looked at first for the end of a line.
const WINDOW: u64 = 4096;
/// Of a file far away, a block has at least so many bytes: each is a request.
const FAR: u64 = 4 << 20;

options! {
    /// Options of `lines`.
    pub struct LinesOptions {
        /// About how many bytes a block has; of a file that is not on this machine at least 4 MiB.
        block: u64 = 131072, in 1..=1073741824;
        /// How many lines a block has, instead: 1 to shuffle lines themselves. The file is read once for it, before its first block.
        rows: Option<u64> = null, in 1..=4294967295;
        /// With `rows`, where to keep where the blocks of local files end: `beside` each, or a folder; null for nowhere.
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

    /// Two lines that are JSON objects are lines of JSON, whatever they are called.
    fn probe(head: &[u8], extension: &str) -> u8 {
        let named = matches!(extension.to_ascii_lowercase().as_str(), "jsonl" | "ndjson");
        let mut lines = head.strip_prefix(MARK).unwrap_or(head).split_inclusive(|&byte| byte == b'\n');
        let mut object = || {
            let line = lines.next().filter(|line| line.starts_with(b"{") && line.ends_with(b"\n"))?;
            parse(&line.to_vec().into()).ok()
        };
        match object().and_then(|_| object()) {
            Some(_) => 224,
            None if named && is_text(head) => 200,
            None => 0,
        }
    }
}

impl FlatMap for Lines {
    type Items = LinesItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<LinesItems> {
        let blob = Blob::of(&sample, cx)?;
        let block = if blob.in_memory().is_some() { self.block } else { self.block.max(FAR) };
        let ends = self.rows.map(|rows| {
            let path = sample.get("path").and_then(Value::as_str).zip(self.keep.as_ref());
            Ends::of(&blob, rows, path, cx.limits().bytes)
        });
        let ends = ends.transpose().map_err(|error| error.context("file", &sample.key().origin))?;
        Ok(LinesItems { blob, cutter: Cutter::new(sample), block, ends, at: 0 })
    }
}

/// The blocks of one file, in its order.
pub struct LinesItems {
    blob: Blob,
    cutter: Cutter,
    block: u64,
    /// Where blocks end that have so many lines.
    ends: Option<Ends>,
    at: u64,
}

impl Items for LinesItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        if self.at >= self.blob.len() {
            return Ok(None);
        }
        let from = self.at;
        let end = match &self.ends {
            Some(ends) => ends.after(from),
            None => cut(&self.blob, from.saturating_add(self.block), from, cx.limits().bytes),
        };
        let piece = end.and_then(|end| {
            self.at = end;
            self.cutter.piece(&self.blob, from, end, Value::NULL)
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
