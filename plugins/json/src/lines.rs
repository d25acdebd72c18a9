//! `lines`: a file to blocks of whole lines.

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, PipeInfo, Result, Sample, State, Value, options,
};

use crate::piece::{Cutter, save, saved};

/// So many bytes are looked at first for the end of a line.
const WINDOW: u64 = 4096;
/// Of a file far away, a block has at least so many bytes: each is a request.
const FAR: u64 = 4 << 20;

options! {
    /// Options of `lines`.
    pub struct LinesOptions {
        /// About how many bytes a block has; of a file that is not on this machine at least 4 MiB.
        block: u64 = 131072, in 1..=1073741824;
    }
}

/// Cuts each file into blocks that end where lines do, for `json_lines` and `text_lines` to read several at once.
#[derive(Debug)]
pub struct Lines {
    block: u64,
}

impl DataPipe for Lines {
    const INFO: PipeInfo =
        PipeInfo { name: "lines", summary: "Blocks of whole lines out of files", ..PipeInfo::DEFAULT };
    type Options = LinesOptions;

    fn new(options: LinesOptions) -> Result<Self> {
        Ok(Self { block: options.block })
    }
}

impl FlatMap for Lines {
    type Items = LinesItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<LinesItems> {
        let blob = Blob::of(&sample, cx)?;
        let block = if blob.in_memory().is_some() { self.block } else { self.block.max(FAR) };
        Ok(LinesItems { blob, cutter: Cutter::new(sample), block, at: 0 })
    }
}

/// The blocks of one file, in its order.
pub struct LinesItems {
    blob: Blob,
    cutter: Cutter,
    block: u64,
    at: u64,
}

impl Items for LinesItems {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        if self.at >= self.blob.len() {
            return Ok(None);
        }
        let from = self.at;
        let end = cut(&self.blob, from.saturating_add(self.block), from, cx.limits().bytes);
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
