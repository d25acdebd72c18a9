//! `bucket_by_length`: batches of samples that are about equally long.
//!
//! ```toml
//! [bucket_by_length]
//! page = "batches"
//! examples = ['''forebay run "range 40 | map 'ids = [1, 2, 3, 4].filter(x, x <= value % 4 + 1)' | bucket_by_length 'size(ids)' boundaries=[3] sizes=[8, 4]"''']
//! cases = ["range N | map 'n=value % 7' | bucket_by_length n boundaries=[3, 5] sizes=[4, 3, 2]"]
//! counted = false
//! ```

#[cfg(test)]
mod tests;

use forebay_core::{
    Chunk, Context, DataPipe, Drops, Error, Io, Noun, OneOrMany, PipeAudit, PipeInfo, PipeLayout, Result,
    State, Step, Stream, options,
};

use crate::plumbing::{
    length::Length,
    lists::Lists,
    pad::{Padding, padding_options},
    rows::Rows,
    stack::Place,
};

/// The most sizes that an error shows.
const SHOWN: usize = 8;

padding_options! {
    /// Options of `bucket_by_length`.
    pub struct BucketByLengthOptions {
        /// An expression for the length of a sample: a number, or a value that has a length.
        length: String = required;
        /// The least length of each further bucket, in rising order.
        boundaries: Vec<usize> = required, in 1..=1_000_000_000;
        /// Samples in a batch: one number for all buckets, or a list with a number for each. There is one more
        /// bucket than boundaries.
        sizes: OneOrMany<usize> = required, in 1..=1_000_000_000;
        /// Pad to the greatest length of the bucket: one below its boundary. A sample beyond the last boundary is
        /// an error.
        pad_to_boundary: bool = false;
    }
    then {
        /// Leave out the batches at the end that are not full.
        drop_last: bool = false;
        /// A new field for the uids of the samples in a batch, in their order; null for none.
        uids: Option<String> = null;
    }
}

/// Sorts samples by their length into buckets, and gives a batch of each as soon as it is full; at the end those that are left, the
/// shortest first.
///
/// A batch is padded as `padded_batch` does, and has the key and uid of its first sample. Memory: the samples of the unfinished
/// batches, at most as many as all `sizes` together. State: how old each of them is; all samples from the oldest on come again.
#[derive(Debug)]
pub struct BucketByLength {
    length: Length,
    boundaries: Vec<usize>,
    /// Whether a sample may be as long as the last boundary, or longer.
    open: bool,
    drop_last: bool,
    buckets: Vec<Bucket>,
    held: Lists,
}

#[derive(Debug)]
struct Bucket {
    size: usize,
    rows: Rows<Padding>,
}

impl DataPipe for BucketByLength {
    const INFO: PipeInfo = PipeInfo {
        name: "bucket_by_length",
        summary: "Batches of samples that are about equally long",
        also: &["bucketbatch", "bucket_by_sequence_length"],
        audit: PipeAudit {
            uids_option: Some("uids"),
            drops: Drops::With(&["drop_last"]),
            ..PipeAudit::DEFAULT
        },
        layout: PipeLayout { gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = BucketByLengthOptions;

    fn new(options: BucketByLengthOptions) -> Result<Self> {
        let pads = options.pads();
        let BucketByLengthOptions { boundaries, sizes, pad_to_boundary, drop_last, uids, .. } = options;
        let mut sizes = sizes.0;
        let refuse = |option: &str, message: String| Err(Error::invalid(message).context("option", option));
        if let Some(pair) = boundaries.windows(2).find(|pair| pair[0] >= pair[1]) {
            return refuse(
                "boundaries",
                format!("found {} after {}, expected rising ones", pair[1], pair[0]),
            );
        }
        let buckets = boundaries.len() + 1;
        if let [one] = sizes[..] {
            sizes = vec![one; buckets];
        }
        if sizes.len() != buckets {
            let found = sizes.len();
            let one = sizes.first().map_or_else(|| "16".to_owned(), ToString::to_string);
            let example = vec![one; buckets.min(SHOWN)].join(",");
            let more = if buckets > SHOWN { ",…" } else { "" };
            let message = format!(
                "found {found} sizes, expected one for each of {buckets} buckets: sizes=[{example}{more}]"
            );
            return refuse("sizes", message);
        }
        let padding = Padding::new(pads, Vec::new())?;
        let bucket = |(at, size)| {
            let boundary = boundaries.get(at).filter(|_| pad_to_boundary);
            let padding = boundary.map_or_else(|| padding.clone(), |end| padding.to_length(end - 1));
            Bucket { size, rows: Rows::new(padding, uids.as_deref()) }
        };
        let buckets: Vec<_> = sizes.into_iter().enumerate().map(bucket).collect();
        Ok(Self {
            length: Length::new(&options.length)?,
            open: !pad_to_boundary,
            drop_last,
            held: Lists::new(buckets.len()),
            buckets,
            boundaries,
        })
    }
}

impl BucketByLength {
    /// Takes the foremost sample; gives the bucket it is in.
    fn sort(&mut self, input: &mut Chunk, cx: &Context) -> Result<usize> {
        let number = self.held.take();
        let Some((_, key, schema, values)) = input.peek() else { return Ok(0) };
        let bucket = self.length.of(key, schema, values).and_then(|length| {
            let bucket = self.boundaries.partition_point(|&boundary| boundary <= length);
            if bucket == self.boundaries.len() && !self.open {
                let error = Error::invalid(format!("a sample of length {length} has no boundary to pad to"));
                return Err(error.context("option", "boundaries").context("sample", key));
            }
            Ok(bucket)
        });
        let at = match bucket {
            Ok(at) => at,
            Err(error) => {
                input.advance();
                return Err(error);
            }
        };
        let bucket = &mut self.buckets[at];
        bucket.rows.take(input, &Place { capacity: bucket.size, strict: true, cx })?;
        self.held.list(at).push(number);
        Ok(at)
    }

    fn give(&mut self, at: usize, io: &mut Io, cx: &Context) -> Result<()> {
        self.held.list(at).clear();
        io.push(&mut self.buckets[at].rows.finish(cx)?);
        Ok(())
    }
}

impl Stream for BucketByLength {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.buckets.iter_mut().for_each(|bucket| bucket.rows.clear());
        self.held.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let buckets = &mut self.buckets;
        let all = self.held.again(io, |input, (at, _), _| {
            let bucket = &mut buckets[at];
            bucket.rows.take(input, &Place { capacity: bucket.size, strict: true, cx })
        })?;
        if !all {
            return Ok(Step::NeedInput(0));
        }
        while io.room() > 0 {
            if let Some(input) = io.input(0).filter(|input| !input.is_empty()) {
                let at = self.sort(input, cx)?;
                if self.buckets[at].rows.count() == self.buckets[at].size {
                    self.give(at, io, cx)?;
                }
            } else if !io.ended(0) {
                return Ok(Step::NeedInput(0));
            } else if let Some(at) = self.buckets.iter().position(|bucket| bucket.rows.count() > 0)
                && !self.drop_last
            {
                self.give(at, io, cx)?;
            } else {
                self.reset(cx)?;
                return Ok(Step::End);
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(self.held.state())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.held.restore(state, |at, count| count < self.buckets[at].size)
    }
}
