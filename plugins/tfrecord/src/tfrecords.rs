//! `tfrecords`: the records of a TFRecord file, one a sample.
//!
//! <https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details>
//!
//! ```toml
//! [tfrecords]
//! examples = ['forebay head -n 1 "files plugins/tfrecord/seeds/examples.tfrecord | tfrecords | parse_example"']
//! ```

use forebay_core::{
    Blob, BufferMut, Context, DataPipe, FlatMap, Items, Key, Limits, Magic, Opens, Others, PipeInfo, Result,
    Sample, Schema, State, StateExt as _, Str, Value, options,
};
use forebay_unpack::peek;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::source::{Alloc, ENDED, HEAD, Source, first_record};

/// The version of a saved position.
const STATE: u32 = 1;
const BYTES: &str = "bytes";

options! {
    /// Options of `tfrecords`.
    pub struct TfRecordsOptions {
        /// Verify the checksum of each record's data. The checksum of its length is always verified.
        check: bool = true;
    }
}

/// Turns a sample that is about a TFRecord file, packed or not, into a sample for each of its records.
///
/// Takes `bytes`, or else `path`. Gives the field `bytes`, which shares the file's memory, and the file's other fields but `path`. State: the
/// byte and the number of the next record, so a resume reads nothing before it; what is packed it unpacks again.
#[derive(Debug)]
pub struct TfRecords {
    check: bool,
}

impl DataPipe for TfRecords {
    const INFO: PipeInfo = PipeInfo {
        name: "tfrecords",
        summary: "The records of TFRecord files, one a sample, without a copy",
        // There is no magic, but the length of the first record has a checksum: the probe is asked of every file.
        opens: Some(Opens {
            extensions: &["tfrecord", "tfrecords"],
            magic: &[Magic { offset: 0, bytes: b"" }],
            then: "parse_example",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = TfRecordsOptions;

    fn new(options: TfRecordsOptions) -> Result<Self> {
        Ok(Self { check: options.check })
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        let named = matches!(extension.to_ascii_lowercase().as_str(), "tfrecord" | "tfrecords");
        if first_record(head).is_some() {
            return 255;
        }
        match (peek(head, HEAD as usize), named) {
            (Some(inside), _) if first_record(&inside).is_some() => 255,
            // Less than who unpacks it to look.
            (Some(_), true) => 160,
            // Of one called so that is broken it had better be told than left as bytes.
            (None, true) => 64,
            (_, false) => 0,
        }
    }
}

impl FlatMap for TfRecords {
    type Items = Records;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Records> {
        Ok(Records { limit: cx.limits().bytes, ..records(Blob::of(&sample, cx)?, &sample, self.check) })
    }
}

/// The records of `file`, which `sample` is about, packed or not; `check` is for the checksums of their data.
///
/// ```
/// use forebay_core::{Buffer, Key, Sample, Value};
///
/// let file = Buffer::from_static(b"\x01\0\0\0\0\0\0\0\x01\x75\xde\x41\x37\x80\x57\x9a\x9e");
/// let sample = Sample::new(1, Key { origin: "numbers.tfrecord".into(), ..Key::default() });
/// for record in forebay_tfrecord::records(file.into(), &sample, true) {
///     let record = record?;
///     assert_eq!(record.get("bytes").and_then(Value::as_bytes).map(|bytes| &**bytes), Some(&b"7"[..]));
/// }
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[must_use]
pub fn records(file: Blob, sample: &Sample, check: bool) -> Records {
    let (names, values): (Vec<Str>, Vec<Value>) = Others::of(sample, &[]).fields().iter().cloned().unzip();
    Records {
        source: Source::New(file),
        check,
        limit: Limits::DEFAULT.bytes,
        at: 0,
        index: 0,
        origin: sample.key().origin.clone(),
        uid: sample.uid(),
        schema: Schema::new([Str::from(BYTES)].into_iter().chain(names)),
        values,
    }
}

/// The records of one file; made by [`records`].
pub struct Records {
    source: Source,
    check: bool,
    limit: u64,
    /// Where the next record begins; [`ENDED`] behind the last, and once its framing is lost.
    at: u64,
    index: u64,
    origin: Str,
    uid: u64,
    schema: Schema,
    /// The fields that go on.
    values: Vec<Value>,
}

impl Items for Records {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.next_record(&mut |len| cx.alloc(len))
    }

    /// A record whose data is damaged is one loss, as its length was right.
    fn goes_on(&self) -> bool {
        true
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &(self.at, self.index))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let (at, index) = state.parse(STATE)?;
        self.go_to(at, index)
    }
}

impl Iterator for Records {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record(&mut |len| Ok(BufferMut::zeroed(len))).transpose()
    }
}

impl Records {
    fn next_record(&mut self, alloc: Alloc<'_>) -> Result<Option<Sample>> {
        if self.at == ENDED {
            return Ok(None);
        }
        let (at, index) = (self.at, self.index);
        if let Err(error) = self.source.open() {
            self.at = ENDED;
            return Err(error.context("file", &self.origin));
        }
        self.index += 1;
        let (found, next) = self.source.record(at, self.limit, self.check, alloc);
        self.at = next;
        let found = found.map_err(|error| {
            error.context("record", index).context("byte", at).context("file", &self.origin)
        });
        let Some(bytes) = found? else { return Ok(None) };
        let uid = xxh3_64_with_seed(&at.to_le_bytes(), self.uid);
        let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index };
        let values = [bytes.into()].into_iter().chain(self.values.iter().cloned());
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), values.collect())))
    }

    fn go_to(&mut self, at: u64, index: u64) -> Result<()> {
        self.source.go_to(at).map_err(|error| error.context("file", &self.origin))?;
        (self.at, self.index) = (at, index);
        Ok(())
    }
}
#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, ErrorKind};

    use super::*;

    fn framed(records: &[&[u8]]) -> Vec<u8> {
        let sum =
            |bytes: &[u8]| crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
        let frame = |data: &&[u8]| {
            let len = (data.len() as u64).to_le_bytes();
            [&len[..], &sum(&len), data, &sum(data)].concat()
        };
        records.iter().flat_map(frame).collect()
    }

    fn open(file: Vec<u8>, check: bool) -> Records {
        let mut sample = Sample::new(5, Key { origin: "a.tfrecord".into(), ..Key::default() });
        sample.set("bytes", Buffer::EMPTY);
        sample.set("path", "a.tfrecord");
        sample.set("label", 7_i64);
        records(Buffer::from(file).into(), &sample, check)
    }

    fn read(file: Vec<u8>, check: bool) -> Vec<Result<Vec<u8>>> {
        open(file, check)
            .map(|sample| Ok(sample?.get("bytes").unwrap().as_bytes().unwrap().to_vec()))
            .collect()
    }

    const THREE: [&[u8]; 3] = [b"heron", b"", b"a grey heron"];

    #[test]
    fn records_come_in_order_and_share_the_file() {
        let samples: Vec<_> = open(framed(&THREE), true).map(Result::unwrap).collect();
        for (index, (sample, data)) in samples.iter().zip(THREE).enumerate() {
            assert_eq!(&**sample.get("bytes").unwrap().as_bytes().unwrap(), data);
            assert_eq!((sample.key().index, sample.get("label")), (index as u64, Some(&7_i64.into())));
            assert_eq!(sample.get("path"), None, "the key has it");
            assert!(sample.schema().is(samples[0].schema()));
        }
        assert_eq!(samples.len(), 3);
        assert_ne!(samples[0].uid(), samples[1].uid());
        assert!(read(vec![], true).is_empty());
    }

    #[test]
    fn damaged_data_is_one_loss_and_a_damaged_length_ends_the_file() {
        let mut file = framed(&THREE);
        file[13] ^= 1;
        let found = read(file.clone(), true);
        let error = found[0].as_ref().unwrap_err();
        assert_eq!(
            (error.kind(), error.get("record"), error.get("byte")),
            (ErrorKind::Corrupt, Some("0"), Some("0"))
        );
        assert_eq!(found[1..], [Ok(vec![]), Ok(b"a grey heron".to_vec())]);
        assert_eq!(read(file.clone(), false)[0], Ok(b"hdron".to_vec()));
        file[0] ^= 1;
        assert!(matches!(&read(file, false)[..], [Err(_)]));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let whole = framed(&THREE);
        for len in 0..whole.len() {
            let ends = [0, 21, 37];
            let found = read(whole[..len].to_vec(), true);
            assert_eq!(found.iter().all(Result::is_ok), ends.contains(&len), "{len}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut file = whole.clone();
                file[at] ^= 1 << bit;
                assert_eq!(read(file, true).iter().filter(|record| record.is_err()).count(), 1, "{at}");
            }
        }
    }

    #[test]
    fn goes_on_from_a_saved_place_and_keeps_to_its_limit() {
        let mut records = open(framed(&THREE), true);
        Iterator::next(&mut records);
        let (at, index) = Items::state(&records).unwrap().parse(STATE).unwrap();
        let mut other = open(framed(&THREE), true);
        other.go_to(at, index).unwrap();
        let (one, two) =
            (Iterator::next(&mut records).unwrap().unwrap(), Iterator::next(&mut other).unwrap().unwrap());
        assert_eq!((one.uid(), one.key().index), (two.uid(), two.key().index));
        assert_eq!(other.go_to(1000, 0).unwrap_err().kind(), ErrorKind::Invalid);
        let mut narrow = Records { limit: 5, ..open(framed(&THREE), true) };
        assert_eq!(narrow.nth(2).unwrap().unwrap_err().kind(), ErrorKind::Limit);
        assert!(Iterator::next(&mut narrow).is_none());
    }
}
