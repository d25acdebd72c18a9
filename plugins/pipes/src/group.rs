//! `group`: neighbouring files that belong together, as one sample.
//!
//! ```toml
//! [group]
//! page = "batches"
//! examples = [
//!     "cp plugins/image/seeds/rgb.png 1.png && printf 'a bird' > 1.txt",
//!     '''forebay head "files '1.*' | group | decode"''',
//! ]
//! counted = false
//!
//! [[group.ending]]
//! graph = "files '../plugins/pipes/src/*.rs' open=none | take N | group"
//! instead = "files '../plugins/pipes/src/*.rs' open=none | repeat | group"
//! why = "a folder has an end: its files come again"
//! ```

use std::{borrow::Cow, collections::VecDeque, mem};

use forebay_core::{
    Chunk, Context, DataPipe, Error, Io, Output, PipeAudit, PipeInfo, Result, Sample, Schema, State,
    StateExt, Step, Str, Stream, Uids, Value, View, options, without_query,
};
use regex::Regex;

const PATH: &str = "path";
const BYTES: &str = "bytes";
/// The most files in one sample: names of more are not meant to be grouped.
const MOST: u64 = 1024;
/// How many schemas are remembered.
const MOST_KNOWN: usize = 64;

options! {
    /// Options of `group`.
    pub struct GroupOptions {
        /// Extensions of packed files: the extension before them belongs to the field's name too, as in `json.gz`.
        packed: Vec<String> = ["gz", "zst", "xz", "bz2", "lz4", "zz", "z"];
        /// What the files of a sample share. `extension`: folder and name up to the extension. `folder`: the
        /// folder. A pattern for the end of the path, such as `{key}_{field}.png`: the text at `{key}`. A regular
        /// expression over the path, such as `(?<key>.*)-(?<field>[a-z]+)[.]png$`: its group `key`.
        by: String = "extension";
    }
}

/// Turns neighbouring files that belong together into one sample with a field for each: by default those that share a folder and a
/// name up to the extension.
///
/// Takes samples of files, with `path` and `bytes`, and gives the bytes under the extension in lower case, or as `bytes` for a name without one;
/// in a folder, under the name; by a pattern, under what stands for `{field}`, if that is in it. A file whose field is there
/// already begins the next sample; a file called as one of the other fields is an error. The other fields, the key and the uid are those of the first file. What has no path or no bytes, or
/// does not match, goes on as it is. State: nothing of its own; the files of the sample that is not finished come again.
#[derive(Debug)]
pub struct Group {
    names: Names,
    known: Known,
    places: Places,
    held: Held,
}

/// How paths are taken apart.
#[derive(Debug)]
struct Names {
    packed: Vec<String>,
    by: By,
}

/// What the files of a sample share.
#[derive(Debug)]
enum By {
    Extension,
    Folder,
    /// What an expression finds in the path, by the names of its groups.
    Pattern(Regex),
}

/// What a file is a part of, and the field it becomes.
#[derive(Debug)]
struct Part<'a> {
    stem: Cow<'a, str>,
    field: Cow<'a, str>,
}

/// The sample that is being collected.
#[derive(Debug, Default)]
struct Held {
    sample: Sample,
    /// What its files share.
    stem: String,
    /// Whether others may join it.
    joins: bool,
    /// How many files are in it; 0 when there is no sample.
    taken: u64,
}

impl DataPipe for Group {
    const INFO: PipeInfo = PipeInfo {
        name: "group",
        summary: "Neighbouring files that belong together, as one sample",
        audit: PipeAudit { uids: Uids::Made, ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = GroupOptions;

    fn new(options: GroupOptions) -> Result<Self> {
        let by = By::new(&options.by).map_err(|error| error.context("option", "by"))?;
        let names = Names { packed: options.packed, by };
        let (known, places) = (Known::default(), Places::default());
        Ok(Self { names, known, places, held: Held::default() })
    }
}

impl Stream for Group {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.taken = 0;
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if let Some(added) = io.through(0, |input, out| self.add(input, out)).flatten() {
                added?;
            } else if io.ended(0) {
                io.through(0, |_, out| self.held.give(out));
                return Ok(Step::End);
            } else {
                return Ok(Step::NeedInput(0));
            }
        }
        Ok(Step::Ready)
    }

    fn state(&self) -> Result<State> {
        Ok(State::default().again(0, self.held.taken))
    }

    fn restore(&mut self, _: &State, _: &Context) -> Result<()> {
        Ok(())
    }
}

impl Held {
    fn give(&mut self, out: &mut Output) {
        if self.taken > 0 {
            out.push(&mut self.sample);
            self.taken = 0;
        }
    }
}

impl Group {
    /// Takes the next file, if there is one; gives the sample before it, once that is whole.
    fn add(&mut self, input: &mut Chunk, out: &mut Output) -> Option<Result<()>> {
        let Self { names, known, places, held } = self;
        input.pop_with(|uid, key, schema, values| {
            let places = places.of(schema);
            let part = places.and_then(|places| Some((names.part(values, places)?, places)));
            let Some((Part { stem, field }, (path, bytes))) = part else {
                held.give(out);
                held.sample.refill(uid, key.take(), schema, values.iter_mut().map(mem::take));
                (held.joins, held.taken) = (false, 1);
                return Ok(());
            };
            if held.taken > 0
                && held.joins
                && held.stem == stem
                && held.taken < MOST
                && let Some(whole) = known.get(held.sample.schema(), &field, false)
            {
                held.taken += 1;
                return held.sample.reshape(whole, |_, _, held| {
                    held.push(mem::take(&mut values[bytes]));
                    Ok(())
                });
            }
            held.give(out);
            let Some(first) = known.get(schema, &field, true) else {
                let error = Error::invalid("a field of this name is there already");
                return Err(error.context("field", field).context("sample", &*key));
            };
            held.stem.clear();
            held.stem.push_str(&stem);
            // The bytes go to the end, and the path is gone.
            let last = mem::take(&mut values[bytes]);
            let others = values.iter_mut().enumerate().filter(|(at, _)| ![path, bytes].contains(at));
            let others = others.map(|(_, value)| mem::take(value));
            held.sample.refill(uid, key.take(), first, others.chain([last]));
            (held.joins, held.taken) = (true, 1);
            Ok(())
        })
    }
}

/// Where path and bytes are in samples of the last schema.
#[derive(Debug, Default)]
struct Places(Option<(Schema, Option<(usize, usize)>)>);

impl Places {
    fn of(&mut self, schema: &Schema) -> Option<(usize, usize)> {
        match &self.0 {
            Some((known, places)) if known.is(schema) => *places,
            _ => {
                let places = schema.position(PATH).zip(schema.position(BYTES));
                self.0 = Some((schema.clone(), places));
                places
            }
        }
    }
}

/// The schemas that samples have with a file's field more: to make a schema costs more than all else here.
#[derive(Debug, Default)]
struct Known(VecDeque<Joined>);

/// What becomes of samples of one schema with a field.
#[derive(Debug)]
struct Joined {
    from: Schema,
    field: String,
    /// Whether it is the first one, in the place of path and bytes.
    first: bool,
    /// Nothing where there is a field of this name.
    to: Option<Schema>,
}

impl Known {
    fn get(&mut self, from: &Schema, field: &str, first: bool) -> Option<&Schema> {
        let is = |known: &Joined| known.first == first && known.field == field && known.from.is(from);
        let at = match self.0.iter().position(is) {
            Some(at) => at,
            None => {
                self.0.truncate(MOST_KNOWN - 1);
                self.0.push_front(Joined::new(from, field, first));
                0
            }
        };
        self.0.get(at)?.to.as_ref()
    }
}

impl Joined {
    fn new(from: &Schema, field: &str, first: bool) -> Self {
        let goes = |name: &Str| first && [PATH, BYTES].contains(&name.as_str());
        let names = || from.names().iter().filter(|name| !goes(name));
        let to = names()
            .all(|name| name.as_str() != field)
            .then(|| Schema::new(names().cloned().chain([field.into()])));
        Self { from: from.clone(), field: field.to_owned(), first, to }
    }
}

impl Names {
    /// What a file is a part of, with path and bytes in these places; nothing for what is no file, or does not match.
    fn part<'a>(&self, file: &'a [Value], (path, bytes): (usize, usize)) -> Option<Part<'a>> {
        let (View::Str(path), View::Bytes(_)) = (file.get(path)?.view(), file.get(bytes)?.view()) else {
            return None;
        };
        let (stem, field) = match &self.by {
            By::Extension => {
                let (stem, extension) = self.split(path);
                (Cow::from(stem), lower_case(extension))
            }
            By::Folder => {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                (folder.into(), name.into())
            }
            By::Pattern(pattern) => {
                let found = pattern.captures(path)?;
                let text = |name| found.name(name).map(|found| found.as_str());
                let field = text(FIELD).map_or_else(|| lower_case(self.split(path).1), Cow::from);
                let key = text(KEY)?;
                let stem = match text(BEFORE) {
                    Some(before) => Cow::from(before.to_owned() + key),
                    None => key.into(),
                };
                (stem, field)
            }
        };
        let field = if field.is_empty() { BYTES.into() } else { field };
        Some(Part { stem, field })
    }

    /// A path up to its extension, and that.
    fn split<'a>(&self, path: &'a str) -> (&'a str, &'a str) {
        let path = without_query(path);
        let Some(last) = dot(path) else { return (path, "") };
        let packed = |extension: &str| self.packed.iter().any(|known| known.eq_ignore_ascii_case(extension));
        let at = Some(last)
            .filter(|&last| packed(&path[last + 1..]))
            .and_then(|last| dot(&path[..last]))
            .unwrap_or(last);
        (&path[..at], &path[at + 1..])
    }
}

/// Where the extension of a path begins. A name that begins with a dot has none for that.
fn dot(path: &str) -> Option<usize> {
    let bytes = path.as_bytes();
    let at = bytes.iter().rposition(|byte| b"./".contains(byte))?;
    (bytes[at] == b'.' && at > 0 && bytes[at - 1] != b'/').then_some(at)
}

fn lower_case(extension: &str) -> Cow<'_, str> {
    let is_lower = extension.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { extension.into() } else { extension.to_lowercase().into() }
}

/// What groups of a pattern are called: what the files of a sample share, the field, and what stands before a template.
const KEY: &str = "key";
const FIELD: &str = "field";
const BEFORE: &str = "before_the_template";

impl By {
    fn new(text: &str) -> Result<Self> {
        let pattern = match text {
            "extension" => return Ok(Self::Extension),
            "folder" => return Ok(Self::Folder),
            text if text.contains("{key}") => template(text)?,
            text => text.to_owned(),
        };
        let pattern = Regex::new(&pattern).map_err(|error| Error::invalid(error.to_string()))?;
        if !pattern.capture_names().flatten().any(|name| name == KEY) {
            let message = "expected `extension`, `folder`, a pattern with `{key}`, or a regular expression with a group `(?<key>…)`";
            return Err(Error::invalid(format!("found `{text}`, {message}")));
        }
        Ok(Self::Pattern(pattern))
    }
}

/// The regular expression of a template, with which a path ends. The folders before it belong to what the files share.
fn template(text: &str) -> Result<String> {
    let mut pattern = format!("(?s)^(?<{BEFORE}>(?:.*/)?)");
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        pattern += &regex::escape(before);
        pattern += match name {
            _ if text.matches(&format!("{{{name}}}")).count() != 1 => {
                return Err(Error::invalid(format!(
                    "found `{{{name}` in `{text}`, expected `{{key}}` and `{{field}}` once each"
                )));
            }
            KEY => "(?<key>[^/]+)",
            FIELD => "(?<field>[^/]+?)",
            _ => {
                return Err(Error::invalid(format!(
                    "found `{{{name}}}`, expected `{{key}}` and `{{field}}`"
                )));
            }
        };
        rest = behind;
    }
    Ok(pattern + &regex::escape(rest) + "$")
}

#[cfg(test)]
mod tests;
