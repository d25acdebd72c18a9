//! `group`: files that differ in their extension alone, as one sample.

use forebay_core::{
    Context, DataPipe, Io, PipeInfo, Result, Sample, State, StateExt, Step, Stream, Uids, Value, View,
    options,
};

const PATH: &str = "path";
const BYTES: &str = "bytes";
/// The most files in one sample: names of more are not meant to be grouped.
const MOST: u64 = 1024;

options! {
    /// Options of `group`.
    pub struct GroupOptions {
        /// Extensions that stand behind another one, which then belongs to the field's name: `json.gz`.
        packed: Vec<String> = ["gz", "zst", "xz", "bz2", "lz4", "zz", "z"];
    }
}

/// Turns neighbouring files that share a folder and a name up to the extension into one sample, with a field for each extension.
///
/// Takes samples of files, with `path` and `bytes`, and gives the bytes under the extension in lower case, or as `bytes` for a name without one.
/// A file whose field is there already begins the next sample. The other fields, the key and the uid are those of the first file. What
/// has no path or no bytes goes on as it is. State: nothing of its own; the files of the sample that is not finished come again.
#[derive(Debug)]
pub struct Group {
    packed: Vec<String>,
    held: Option<Held>,
}

/// The sample that is being collected.
#[derive(Debug)]
struct Held {
    sample: Sample,
    /// The path up to the extension; none for what joins nothing.
    stem: Option<String>,
    /// How many files are in it.
    taken: u64,
}

impl DataPipe for Group {
    const INFO: PipeInfo = PipeInfo {
        name: "group",
        summary: "Neighbouring files that differ in their extension alone, as one sample",
        uids: Uids::Made,
        ..PipeInfo::DEFAULT
    };
    type Options = GroupOptions;

    fn new(options: GroupOptions) -> Result<Self> {
        Ok(Self { packed: options.packed, held: None })
    }
}

impl Stream for Group {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held = None;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if let Some(sample) = io.pop(0) {
                if let Some(mut whole) = self.add(sample) {
                    io.push(&mut whole);
                }
            } else if io.ended(0) {
                if let Some(mut held) = self.held.take() {
                    io.push(&mut held.sample);
                }
                return Ok(Step::End);
            } else {
                return Ok(Step::NeedInput(0));
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(State::default().again(0, self.held.as_ref().map_or(0, |held| held.taken)))
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}

impl Group {
    /// Takes a file; gives the sample before it, once that is whole.
    fn add(&mut self, mut file: Sample) -> Option<Sample> {
        let Some((stem, field, bytes)) = self.part(&file) else {
            let held = Held { sample: file, stem: None, taken: 1 };
            return self.held.replace(held).map(|held| held.sample);
        };
        if let Some(held) = &mut self.held
            && held.stem.as_ref() == Some(&stem)
            && held.sample.get(&field).is_none()
            && held.taken < MOST
        {
            held.sample.set(&field, bytes);
            held.taken += 1;
            return None;
        }
        file.take(PATH);
        file.take(BYTES);
        file.set(&field, bytes);
        let held = Held { sample: file, stem: Some(stem), taken: 1 };
        self.held.replace(held).map(|held| held.sample)
    }

    /// What a file is a part of, the field it becomes, and its bytes.
    fn part(&self, file: &Sample) -> Option<(String, String, Value)> {
        let Some(View::Str(path)) = file.get(PATH).map(Value::view) else { return None };
        let bytes = file.get(BYTES).filter(|bytes| matches!(bytes.view(), View::Bytes(_)))?;
        let (stem, extension) = self.split(path);
        let field = if extension.is_empty() { BYTES.to_owned() } else { extension.to_lowercase() };
        Some((stem.to_owned(), field, bytes.clone()))
    }

    /// A path up to its extension, and that.
    fn split<'a>(&self, path: &'a str) -> (&'a str, &'a str) {
        let name = path.rfind('/').map_or(0, |slash| slash + 1);
        // A name that begins with a dot has no extension for it.
        let dot = |end: usize| path.get(name..end)?.rfind('.').filter(|&dot| dot > 0).map(|dot| name + dot);
        let Some(last) = dot(path.len()) else { return (path, "") };
        let packed = |extension: &str| self.packed.iter().any(|known| known.eq_ignore_ascii_case(extension));
        let at = Some(last).filter(|&last| packed(&path[last + 1..])).and_then(dot).unwrap_or(last);
        (&path[..at], &path[at + 1..])
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, Options};

    use super::*;
    use crate::testing::{check, check_resume, sample};

    fn group() -> Group {
        Group::new(GroupOptions::parse("{}").unwrap()).unwrap()
    }

    fn file(uid: u64, path: &str) -> Sample {
        let bytes = Value::from(Buffer::from(path.as_bytes().to_vec()));
        sample(uid, &[("label", 1_i64.into()), ("path", path.into()), ("bytes", bytes)])
    }

    #[test]
    fn files_of_one_name_are_one_sample() {
        let paths = [
            "a/1.jpg",
            "a/1.json",
            "a/2.JPG",
            "b/2.json",
            "b/2.json.gz",
            "b/2.x/3",
            "b/2.x/4.txt",
            "b/4.txt",
            "b/4.TXT",
            ".x",
            "Shot 1.2.png",
            "Shot 1.3.png",
        ];
        let files: Vec<_> = paths.iter().zip(0..).map(|(path, uid)| file(uid, path)).collect();
        let out = check(group, &files);
        let fields = |sample: &Sample| {
            sample.fields().map(|(name, _)| name.as_str().to_owned()).collect::<Vec<_>>().join(" ")
        };
        let expected = [
            (0, "label jpg json"),
            (2, "label jpg"),
            (3, "label json json.gz"),
            (5, "label bytes"),
            (6, "label txt"),
            (7, "label txt"),
            (8, "label txt"),
            (9, "label bytes"),
            (10, "label png"),
            (11, "label png"),
        ];
        let found: Vec<_> = out.iter().map(|sample| (sample.uid(), fields(sample))).collect();
        assert_eq!(found, expected.map(|(uid, fields)| (uid, fields.to_owned())));
        assert_eq!(out[0].get("json").and_then(Value::as_bytes).unwrap()[..], *b"a/1.json");
        check_resume(group, &files);
    }

    #[test]
    fn what_is_no_file_goes_on_as_it_is() {
        let others = [
            file(1, "a/1.jpg"),
            sample(2, &[("path", "a/1.json".into())]),
            sample(3, &[("value", 3_i64.into())]),
            file(4, "a/1.json"),
        ];
        let out = check(group, &others);
        assert_eq!(out[1..3], others[1..3]);
        assert_eq!(out.len(), 4);
    }
}
