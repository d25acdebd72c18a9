//! `split_safetensors`: the tensors of a safetensors file, one a sample.
//!
//! ```toml
//! [split_safetensors]
//! examples = ['forebay head "files plugins/tensors/seeds/two.safetensors | split_safetensors names=[w]"']
//! ```

use forebay_core::{
    Blob, Context, DataPipe, Error, FlatMap, Items, Key, Magic, Opens, PipeInfo, Result, Sample, Schema,
    State, StateExt as _, Str, Value, options,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    memory::Memory,
    safetensors::{Entry, Header},
};

/// The version of a saved position.
const STATE: u32 = 1;
const NAME: &str = "name";
const TENSOR: &str = "tensor";

options! {
    /// Options of `split_safetensors`.
    pub struct SplitOptions {
        /// The tensors to give, by name; null for all.
        names: Option<Vec<String>> = null;
    }
}

/// Turns a sample that is about a safetensors file into a sample for each of its tensors.
///
/// Takes `bytes`, or else `path`, of which only the header and the tensors asked for are read. Gives the fields `name` and `tensor`, and
/// the file's other fields but `path`, in the order in which the tensors lie in the file. State: how many were given.
#[derive(Debug)]
pub struct SplitSafetensors {
    names: Option<Vec<String>>,
}

impl DataPipe for SplitSafetensors {
    const INFO: PipeInfo = PipeInfo {
        name: "split_safetensors",
        summary: "The tensors of safetensors files, one a sample",
        opens: Some(Opens {
            extensions: &["safetensors"],
            magic: &[Magic { offset: 8, bytes: b"{" }],
            then: "",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = SplitOptions;

    fn new(options: SplitOptions) -> Result<Self> {
        Ok(Self { names: options.names })
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        let named = extension.eq_ignore_ascii_case("safetensors");
        let length = head.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length));
        // The header is JSON and at most 100 MB; text in its place says a length beyond all measure.
        match (2..=100_000_000).contains(&length) {
            true if named => 240,
            true => 200,
            false => u8::from(named) * 16,
        }
    }
}

impl FlatMap for SplitSafetensors {
    type Items = Tensors;

    fn open(&self, sample: Sample, cx: &Context) -> Result<Tensors> {
        tensors(&Blob::of(&sample, cx)?, &sample, self.names.as_deref())
    }
}

/// The tensors of `file`, which `sample` is about: all, or those with these names.
///
/// # Errors
/// As [`Header::read`]; `Invalid` for a name that the file does not have.
pub fn tensors(file: &Blob, sample: &Sample, names: Option<&[String]>) -> Result<Tensors> {
    let mut entries = Header::read(file)?.entries;
    if let Some(names) = names {
        let missing = names.iter().find(|name| entries.iter().all(|entry| *entry.name != ***name));
        if let Some(missing) = missing {
            let error = Error::invalid(format!("found no tensor `{missing}` among {}", entries.len()));
            return Err(error.context("file", &sample.key().origin));
        }
        let names: std::collections::HashSet<_> = names.iter().map(String::as_str).collect();
        entries.retain(|entry| names.contains(&*entry.name));
    }
    let ours = ["bytes", "path", NAME, TENSOR];
    let kept = sample.fields().filter(|(name, _)| !ours.contains(&name.as_str()));
    let (names, values): (Vec<Str>, Vec<Value>) =
        kept.map(|(name, value)| (name.clone(), value.clone())).unzip();
    let schema = Schema::new([NAME.into(), TENSOR.into()].into_iter().chain(names));
    let (origin, uid) = (sample.key().origin.clone(), sample.uid());
    Ok(Tensors { file: file.clone(), entries, next: 0, origin, uid, schema, values })
}

/// The tensors of one file; made by [`tensors`].
pub struct Tensors {
    file: Blob,
    entries: Vec<Entry>,
    next: usize,
    origin: Str,
    uid: u64,
    schema: Schema,
    /// The fields that go on.
    values: Vec<Value>,
}

impl Items for Tensors {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.next_within(&Memory::of(cx))
    }

    /// A tensor of a type that is not supported is one loss.
    fn goes_on(&self) -> bool {
        true
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.go_to(state.parse(STATE)?)
    }
}

impl Iterator for Tensors {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_within(&Memory::own()).transpose()
    }
}

impl Tensors {
    fn next_within(&mut self, memory: &Memory) -> Result<Option<Sample>> {
        let Some(entry) = self.entries.get(self.next) else { return Ok(None) };
        let index = self.next as u64;
        self.next += 1;
        let tensor =
            entry.tensor_within(&self.file, memory).map_err(|error| error.context("file", &self.origin))?;
        let uid = xxh3_64_with_seed(
            &entry.range.start.to_le_bytes(),
            xxh3_64_with_seed(entry.name.as_bytes(), self.uid),
        );
        let key = Key { origin: self.origin.clone(), name: entry.name.clone(), index };
        let values = [entry.name.clone().into(), tensor].into_iter().chain(self.values.iter().cloned());
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), values.collect())))
    }

    fn go_to(&mut self, next: usize) -> Result<()> {
        if next > self.entries.len() {
            let error = Error::invalid(format!("the saved place is tensor {next} of {}", self.entries.len()));
            return Err(error.context("file", &self.origin));
        }
        self.next = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, ErrorKind};

    use super::*;
    use crate::safetensors::tests::{TWO, file};

    fn open(names: Option<&[String]>) -> Result<Tensors> {
        let mut sample = Sample::new(5, Key { origin: "w.safetensors".into(), ..Key::default() });
        sample.set("bytes", Buffer::EMPTY);
        sample.set("path", "w.safetensors");
        sample.set("label", 7_i64);
        tensors(&file(TWO, &[1, 2, 3, 4, 5, 6, 7]).into(), &sample, names)
    }

    fn names(tensors: Tensors) -> Vec<String> {
        tensors
            .map(|sample| sample.unwrap().get("name").and_then(Value::as_str).unwrap().to_owned())
            .collect()
    }

    #[test]
    fn each_tensor_is_a_sample_with_the_other_fields() {
        let samples: Vec<_> = open(None).unwrap().map(Result::unwrap).collect();
        let fields: Vec<_> = samples[1].schema().names().iter().map(|name| name.as_str()).collect();
        assert_eq!(fields, ["name", "tensor", "label"]);
        assert_eq!(samples[1].get("tensor").and_then(Value::as_tensor).unwrap().shape(), [2]);
        assert_eq!((samples[1].key().index, &*samples[1].key().name), (1, "b"));
        assert_ne!(samples[0].uid(), samples[1].uid());
        let again: Vec<_> = open(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(samples[1].uid(), again[1].uid());
    }

    #[test]
    fn names_select_and_must_be_there() {
        assert_eq!(names(open(Some(&["b".into()])).unwrap()), ["b"]);
        assert_eq!(open(Some(&["c".into()])).err().unwrap().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn goes_on_from_a_saved_place() {
        let mut tensors = open(None).unwrap();
        tensors.next_within(&Memory::own()).unwrap();
        let state = Items::state(&tensors).unwrap();
        let mut other = open(None).unwrap();
        other.go_to(state.parse(STATE).unwrap()).unwrap();
        assert_eq!(names(other), ["b"]);
        assert_eq!(open(None).unwrap().go_to(3).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
