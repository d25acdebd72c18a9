//! `write_jsonl`: samples to lines of JSON.
//!
//! ```toml
//! [write_jsonl]
//! examples = ['''forebay run "range 10 | write_jsonl 'numbers-{:05}.jsonl' shard_size=5"''']
//! ```

use forebay_core::{Encode, Error, Files, PipeInfo, Result, Sample, Value, Writer, options, write_json};

options! {
    /// Options of `write_jsonl`.
    pub struct WriteJsonlOptions {
        /// The files, such as `out-{:05}.jsonl`; `{rank}` and `{epoch}` may stand in it too.
        pattern: String = required;
        /// The most samples in a file.
        shard_size: Option<u64> = null;
        /// About how many bytes a file holds; 1 GiB if neither limit is given.
        shard_bytes: Option<u64> = null;
        /// Replace existing files.
        overwrite: bool = false;
    }
}

/// Writes each sample as one line, an object of its fields; see [`Writer`] for what it gives and saves.
pub type WriteJsonl = Writer<JsonlFormat>;

/// Samples as lines of JSON, by [`write_json`].
#[derive(Debug)]
pub struct JsonlFormat;

impl Encode for JsonlFormat {
    const INFO: PipeInfo =
        PipeInfo { name: "write_jsonl", summary: "Samples to lines of JSON", ..PipeInfo::DEFAULT };
    type Options = WriteJsonlOptions;

    fn new(options: WriteJsonlOptions) -> Result<(Self, Files)> {
        let WriteJsonlOptions { pattern, shard_size, shard_bytes, overwrite } = options;
        Ok((Self, Files::new(&pattern, shard_size, shard_bytes, overwrite)?))
    }

    fn begin(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn sample(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        for (at, (name, value)) in sample.fields().enumerate() {
            out.extend((at > 0).then_some(b','));
            let added = write_json(&Value::from(name.clone()), out).and_then(|()| {
                out.push(b':');
                write_json(value, out)
            });
            added.map_err(|error: Error| error.context("field", name.as_str()))?;
        }
        out.extend(b"}\n");
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}
