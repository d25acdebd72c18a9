//! `split_idx`: the pictures and labels of IDX files, one a sample, those of MNIST side by side.
//!
//! ```toml
//! [split_idx]
//! examples = ['forebay head -n 1 "files plugins/tensors/seeds/two.idx | split_idx"']
//! ```

use forebay_core::{
    Blob, Buffer, Context, DType, DataPipe, Error, FlatMap, Items, Key, Level, Magic, Opens, Others,
    PipeInfo, Result, Sample, Schema, State, StateExt as _, Str, Value, options, scheme_of, shown,
};
use forebay_unpack::{Forward, peek};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    idx::{self, Header},
    memory::Memory,
};

/// The version of a saved position.
const STATE: u32 = 1;
const IMAGE: &str = "image";
const LABEL: &str = "label";
const VALUE: &str = "value";
/// The longest header that there is.
const LONGEST: u64 = 4 + 4 * 255;
/// How much of a file far away is read at once.
const WINDOW: u64 = 4 << 20;
/// The words by which files of pictures and of their labels are called, and what else differs in their names: MNIST's, and QMNIST's.
const PICTURES: &str = "images";
const LABELS: &str = "labels";
const KINDS: [(&str, &str); 3] = [("idx3-ubyte", "idx1-ubyte"), ("idx3-ubyte", "idx2-int"), ("", "")];

options! {
    /// Options of `split_idx`.
    pub struct SplitIdxOptions {
        /// Give the labels of a label file by themselves, even if the file with their pictures is beside it.
        alone: bool = false;
    }
}

/// Turns a sample that is about an IDX file, packed or not, into a sample for each row of its first axis.
///
/// Takes `bytes`, or else `path`. Gives `image`, `[height, width, channels]`, of a file of bytes with three axes or more; `label`, a number,
/// of one with whole numbers in a single axis; else `value`; and the file's other fields but `path`. If a file called `…labels…` lies beside
/// one of several axes that is called `…images…`, its rows are the field `label` of the pictures, and it gives nothing of its own. State: how
/// many were given; a resume reads nothing before them, but what is packed it unpacks again.
#[derive(Debug)]
pub struct SplitIdx {
    alone: bool,
}

impl DataPipe for SplitIdx {
    const INFO: PipeInfo = PipeInfo {
        name: "split_idx",
        summary: "The pictures and labels of IDX files, as MNIST's, one a sample",
        opens: Some(Opens {
            extensions: &["idx", "ubyte", "idx1-ubyte", "idx2-ubyte", "idx3-ubyte", "idx4-ubyte"],
            // Four bytes say little, and the file may be packed: the probe is asked of every file.
            magic: &[Magic { offset: 0, bytes: b"" }, Magic { offset: 0, bytes: &[0, 0, 8, 3] }],
            then: "",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = SplitIdxOptions;

    fn new(options: SplitIdxOptions) -> Result<Self> {
        Ok(Self { alone: options.alone })
    }

    fn probe(head: &[u8], extension: &str) -> u8 {
        let header = |head: &[u8]| Header::read(head).ok().filter(|header| !header.shape.is_empty());
        let Some(inside) = peek(head, LONGEST as usize) else {
            return header(head).map_or(0, |_| idx::probe(head, extension));
        };
        // How long it is nobody sees before it is unpacked.
        let fits =
            header(&inside).and_then(|header| header.len()).is_some_and(|len| len >= inside.len() as u64);
        match (fits, extension.to_ascii_lowercase().as_str()) {
            (true, _) => 200,
            // Less than who unpacks it to look.
            (false, "idx") => 160,
            _ => 0,
        }
    }
}

impl FlatMap for SplitIdx {
    type Items = IdxRows;

    fn open(&self, sample: Sample, cx: &Context) -> Result<IdxRows> {
        let named = |error: Error| error.context("file", &sample.key().origin);
        let mut rows = idx_rows(Blob::of(&sample, cx)?, &sample, cx.limits().bytes).map_err(named)?;
        if let Some(path) = sample.get("path").and_then(Value::as_str) {
            if rows.shape.len() >= 2 {
                rows.take_labels(path, &sample, cx).map_err(named)?;
            }
            if rows.labels.is_none() && !self.alone {
                rows.leave_to_pictures(path, cx).map_err(named)?;
            }
        }
        Ok(rows)
    }
}

/// The rows of the IDX file `file`, which `sample` is about: none may take more than `limit` bytes. Nothing is looked for beside it.
///
/// # Errors
/// `Corrupt` for what is no IDX file; `Unsupported` for one without an axis; `Limit`.
pub fn idx_rows(file: Blob, sample: &Sample, limit: u64) -> Result<IdxRows> {
    let (source, header) = Source::open(file)?;
    let Some((&count, row)) = header.shape.split_first() else {
        return Err(Error::unsupported("a single number has no rows; the decoder `idx` gives it as it is"));
    };
    let whole = [DType::U8, DType::I8, DType::I16, DType::I32].contains(&header.dtype);
    let field = match row {
        [] if whole => LABEL,
        [_, _, ..] if header.dtype == DType::U8 => IMAGE,
        _ => VALUE,
    };
    let size = header.bytes_of(row).filter(|&size| size as u64 <= limit).ok_or_else(|| {
        Error::limit(format!("a row of {} {row:?}, expected at most {limit} bytes", header.dtype))
    })?;
    // As any other picture has it: channels behind.
    let shape = if row.len() == 2 && field == IMAGE { [row, &[1]].concat() } else { row.to_vec() };
    let mut rows = IdxRows {
        source,
        header,
        count: count as u64,
        size,
        shape,
        field,
        labels: None,
        next: 0,
        origin: sample.key().origin.clone(),
        uid: sample.uid(),
        schema: Schema::empty(),
        others: Vec::new(),
    };
    rows.set_fields(sample, &[field]);
    Ok(rows)
}

/// The rows of one file, in its order; made by [`idx_rows`].
pub struct IdxRows {
    source: Source,
    header: Header,
    count: u64,
    /// Bytes and axes of a row.
    size: usize,
    shape: Vec<usize>,
    field: &'static str,
    /// A row for each row, from the file beside this one.
    labels: Option<Box<IdxRows>>,
    /// Behind the count: the end was looked at.
    next: u64,
    origin: Str,
    uid: u64,
    schema: Schema,
    /// The fields that go on.
    others: Vec<Value>,
}

impl Items for IdxRows {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.next_within(&Memory::of(cx)).map_err(|error| error.context("file", &self.origin))
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next: u64 = state.parse(STATE)?;
        if next > self.count.saturating_add(1) {
            let error = Error::invalid(format!("the saved place is row {next} of {}", self.count));
            return Err(error.context("file", &self.origin));
        }
        self.next = next;
        Ok(())
    }
}

impl IdxRows {
    fn next_within(&mut self, memory: &Memory) -> Result<Option<Sample>> {
        let index = self.next;
        if index > self.count {
            return Ok(None);
        }
        // Nothing follows an error: of a file that ends early no other row is there.
        self.next = self.count + 1;
        let at = self.header.start as u64 + index * self.size as u64;
        if index == self.count {
            if let Some(labels) = &mut self.labels {
                labels.next = index;
                labels.next_within(memory).map_err(|error| error.context("labels", &labels.origin))?;
            }
            return self.source.end(at, memory).map(|()| None);
        }
        let bytes = self.source.read(at, self.size, memory).map_err(|error| error.context("row", index))?;
        self.next = index + 1;
        let mut values = vec![self.value(bytes, memory)?];
        if let Some(labels) = &mut self.labels {
            labels.next = index;
            let label =
                labels.next_within(memory).map_err(|error| error.context("labels", &labels.origin))?;
            values.extend(label.and_then(|mut row| row.take(labels.field)));
        }
        values.extend(self.others.iter().cloned());
        let uid = xxh3_64_with_seed(&index.to_le_bytes(), self.uid);
        let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index };
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), values)))
    }

    /// The value of a row; a label is of the widest type, as what counts classes wants it.
    fn value(&self, bytes: Buffer, memory: &Memory) -> Result<Value> {
        let dtype = self.header.dtype;
        let value = idx::elements(dtype, &self.shape, bytes, memory)?;
        let number = value.as_tensor().filter(|tensor| tensor.shape().is_empty());
        let number = number.and_then(|tensor| dtype.scalar_bits(tensor.data()));
        Ok(match number {
            Some(bits) if self.field == LABEL => Value::from(bits as i64),
            Some(bits) => Value::scalar(dtype, bits),
            None => value,
        })
    }

    /// The fields: its own, then those of the file's sample.
    fn set_fields(&mut self, sample: &Sample, own: &[&'static str]) {
        let others = Others::of(sample, own);
        let (names, values): (Vec<Str>, Vec<Value>) = others.fields().iter().cloned().unzip();
        self.schema = Schema::new(own.iter().map(|&name| Str::from(name)).chain(names));
        self.others = values;
    }

    /// Has the labels that lie beside pictures, if there are any.
    fn take_labels(&mut self, path: &str, sample: &Sample, cx: &Context) -> Result<()> {
        let Some(found) = beside(path, true, cx)? else { return Ok(()) };
        let named = |error: Error| error.context("labels", shown(&found));
        let mut file = idx_rows(Blob::open(&found, cx)?, sample, cx.limits().bytes).map_err(named)?;
        if file.count != self.count {
            let error =
                format!("found {} labels, expected one for each of {} pictures", file.count, self.count);
            return Err(named(Error::corrupt(error)));
        }
        file.origin = Str::from(shown(&found).into_owned());
        self.labels = Some(Box::new(file));
        self.set_fields(sample, &[self.field, LABEL]);
        Ok(())
    }

    /// Gives nothing, where the pictures that these labels belong to lie beside them: they come with those.
    fn leave_to_pictures(&mut self, path: &str, cx: &Context) -> Result<()> {
        if let Some(found) = beside(path, false, cx)? {
            self.next = self.count + 1;
            let line = format!(
                "split_idx: the labels in {} come with the pictures in {}; `alone=true` gives them by themselves",
                shown(path),
                shown(&found)
            );
            cx.log(Level::Info, &line);
        }
        Ok(())
    }
}

/// The file of labels that lies beside the pictures at `path`, or the file of pictures beside labels: packed or not.
fn beside(path: &str, labels: bool, cx: &Context) -> Result<Option<String>> {
    let (folder, name) =
        path.rsplit_once('/').map_or(("", path), |(folder, _)| path.split_at(folder.len() + 1));
    let names = partners(name, labels);
    if names.is_empty() {
        return Ok(None);
    }
    let store = cx.store(scheme_of(path))?;
    let within = match folder {
        "" => ".",
        "/" => "/",
        folder => folder.trim_end_matches('/'),
    };
    // Whoever lists no files is asked for each.
    let listed = store.list(within).ok();
    let is_there = |name: &String| match &listed {
        Some(files) => files.iter().any(|(path, _)| path.rsplit('/').next() == Some(name.as_str())),
        None => store.size(&format!("{folder}{name}")).is_ok(),
    };
    Ok(names.into_iter().find(is_there).map(|name| format!("{folder}{name}")))
}

/// What the other file of a pair may be called, the likeliest first.
fn partners(name: &str, labels: bool) -> Vec<String> {
    let turn = |(pictures, of_labels)| if labels { (pictures, of_labels) } else { (of_labels, pictures) };
    let (own, other) = turn((PICTURES, LABELS));
    let Some(at) = name.rfind(own) else { return Vec::new() };
    let called = format!("{}{other}{}", &name[..at], &name[at + own.len()..]);
    let kinds = KINDS.map(turn).into_iter().filter(|(own, _)| called.contains(own));
    let called = kinds.map(|(own, other)| called.replacen(own, other, 1));
    let both = |name: String| [name.strip_suffix(".gz").map_or(format!("{name}.gz"), str::to_owned), name];
    called.flat_map(|name| both(name).into_iter().rev()).collect()
}

/// Where the rows lie: in a file of which any part can be read, or in a packed one, which is unpacked as it is read.
enum Source {
    Plain {
        file: Blob,
        /// The part of a file far away that was read last, and where it begins.
        window: (u64, Buffer),
    },
    Packed(Box<Forward>),
}

impl Source {
    /// Reads the header.
    fn open(file: Blob) -> Result<(Self, Header)> {
        if let Some(mut packed) = Forward::open(&file)? {
            let memory = Memory::own();
            let head = packed.ahead(LONGEST as usize, &mut |len| memory.take(len))?;
            let header = Header::read(&head).or_else(|error| packed.ended().and(Err(error)))?;
            return Ok((Self::Packed(Box::new(packed)), header));
        }
        let header = Header::read(&file.ahead(0, LONGEST)?)?;
        Ok((Self::Plain { file, window: (0, Buffer::EMPTY) }, header))
    }

    /// The bytes of a row.
    fn read(&mut self, at: u64, len: usize, memory: &Memory) -> Result<Buffer> {
        let short = |found: u64| {
            Error::corrupt(format!("{found} bytes, and the file ends; expected {len}")).context("byte", at)
        };
        let (file, window) = match self {
            Self::Packed(packed) => {
                packed.go_to(at)?;
                let bytes = packed.part(len, &mut |len| memory.take(len))?;
                return if bytes.len() == len { Ok(bytes) } else { Err(short(bytes.len() as u64)) };
            }
            Self::Plain { file, window } => (file, window),
        };
        let end = at.saturating_add(len as u64);
        if end > file.len() {
            return Err(short(file.len().saturating_sub(at)));
        }
        if file.in_memory().is_some() {
            return file.read(at..end);
        }
        if at < window.0 || end > window.0 + window.1.len() as u64 {
            *window = (at, file.read(at..end.max(at.saturating_add(WINDOW).min(file.len())))?);
        }
        let start = (at - window.0) as usize;
        window.1.get(start..start + len).ok_or_else(|| Error::bug("fewer bytes than were asked for"))
    }

    /// Finds that nothing stands behind the last row.
    fn end(&mut self, at: u64, memory: &Memory) -> Result<()> {
        let more = match self {
            Self::Packed(packed) => {
                packed.go_to(at)?;
                let more = packed.ahead(1, &mut |len| memory.take(len))?.len() as u64;
                packed.ended()?;
                more
            }
            Self::Plain { file, .. } => file.len().saturating_sub(at),
        };
        match more {
            0 => Ok(()),
            _ => Err(Error::corrupt("found more bytes behind the last row").context("byte", at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;

    use super::*;

    /// `count` pictures of two rows and three columns.
    fn pictures(count: u8) -> Vec<u8> {
        let head = [0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 2, 0, 0, 0, 3];
        head.into_iter().chain(0..count * 6).collect()
    }

    fn open(file: Vec<u8>) -> Result<IdxRows> {
        let mut sample = Sample::new(5, Key::whole("train-images-idx3-ubyte"));
        sample.set("path", "train-images-idx3-ubyte");
        sample.set("split", "train");
        idx_rows(Buffer::from(file).into(), &sample, 1 << 20)
    }

    fn all(mut rows: IdxRows) -> (Vec<Sample>, Option<Error>) {
        let mut samples = Vec::new();
        loop {
            match rows.next_within(&Memory::own()) {
                Ok(Some(sample)) => samples.push(sample),
                Ok(None) => return (samples, None),
                Err(error) => {
                    assert!(rows.next_within(&Memory::own()).unwrap().is_none(), "nothing follows");
                    return (samples, Some(error));
                }
            }
        }
    }

    #[test]
    fn pictures_have_their_channel_behind_and_labels_are_whole_numbers() {
        let (samples, error) = all(open(pictures(3)).unwrap());
        assert_eq!((samples.len(), error), (3, None));
        let image = samples[2].get(IMAGE).and_then(Value::as_tensor).unwrap();
        assert_eq!((image.shape(), &**image.data()), (&[2, 3, 1][..], &[12, 13, 14, 15, 16, 17][..]));
        assert_eq!(samples[2].get("split").and_then(Value::as_str), Some("train"));
        assert_eq!(samples[2].key().index, 2);
        let (labels, _) = all(open([&[0, 0, 9, 1, 0, 0, 0, 2][..], &[7, 255]].concat()).unwrap());
        let labels: Vec<_> = labels.iter().map(|sample| sample.get(LABEL).cloned()).collect();
        assert_eq!(labels, [Some(Value::from(7_i64)), Some(Value::from(-1_i64))]);
        let wide = [&[0, 0, 13, 2, 0, 0, 0, 1, 0, 0, 0, 1][..], &2.5_f32.to_be_bytes()].concat();
        let (rows, _) = all(open(wide).unwrap());
        assert_eq!(&**rows[0].get(VALUE).and_then(Value::as_tensor).unwrap().data(), &2.5_f32.to_le_bytes());
    }

    #[test]
    fn a_file_that_is_cut_or_too_long_tells_so_behind_the_rows_that_are_whole() {
        let whole = pictures(3);
        for len in 16..whole.len() {
            let (samples, error) = all(open(whole[..len].to_vec()).unwrap());
            assert_eq!(
                (samples.len(), error.map(|error| error.kind())),
                ((len - 16) / 6, Some(ErrorKind::Corrupt))
            );
        }
        let (samples, error) = all(open([&whole[..], &[0]].concat()).unwrap());
        assert_eq!((samples.len(), error.map(|error| error.kind())), (3, Some(ErrorKind::Corrupt)));
        for len in 0..16 {
            assert_eq!(open(whole[..len].to_vec()).err().unwrap().kind(), ErrorKind::Corrupt, "{len}");
        }
    }

    #[test]
    fn it_is_known_by_its_content_alone() {
        assert_eq!(SplitIdx::probe(&pictures(3), ""), 200);
        assert_eq!(SplitIdx::probe(&pictures(3), "idx3-ubyte"), 240);
        assert_eq!(SplitIdx::probe(&pictures(3)[..20], ""), 0, "shorter than its header says");
        assert_eq!(SplitIdx::probe(&[&pictures(3)[..], b"x"].concat(), ""), 0, "longer");
        let large = [&[0, 0, 8, 3, 0, 0, 255, 0, 0, 0, 0, 28, 0, 0, 0, 28][..], &[0; 4080]].concat();
        assert_eq!(SplitIdx::probe(&large, ""), 200, "all that is shown of a file that is longer");
        for other in [&b"\0\0\x01\0\x01\0"[..], b"", b"\0\0\x08\0\x05", b"\xfftOc\0\0\0\x02"] {
            assert_eq!(SplitIdx::probe(other, "idx"), 0, "{other:?}");
        }
    }

    #[test]
    fn pairs_are_found_by_the_names_that_sets_have() {
        let first = |name, labels| partners(name, labels).first().cloned();
        for (pictures, labels) in [
            ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
            ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
            ("emnist-letters-test-images-idx3-ubyte", "emnist-letters-test-labels-idx1-ubyte"),
            ("images.idx", "labels.idx"),
        ] {
            assert_eq!(first(pictures, true).as_deref(), Some(labels));
            assert_eq!(first(labels, false).as_deref(), Some(pictures));
        }
        let many = partners("qmnist-train-images-idx3-ubyte.gz", true);
        assert!(many.contains(&"qmnist-train-labels-idx2-int.gz".to_owned()), "{many:?}");
        assert!(partners("train-images-idx3-ubyte.gz", true).contains(&"train-labels-idx1-ubyte".to_owned()));
        assert!(partners("train.idx", true).is_empty());
    }
}
