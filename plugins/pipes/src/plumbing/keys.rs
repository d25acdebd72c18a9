//! What samples are joined and grouped by, and where those that wait are found by it.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
};

use forebay_core::{Chunk, Key, Result, Sample, Schema, Value};

use crate::plumbing::expression::{Expression, Places, write_text, write_whole};

/// What a sample is compared by, as bytes that are equal where the values are.
#[derive(Debug)]
pub(crate) enum By {
    /// Its name in its origin; that of its file, without folder and extension, if it is a whole one; else its number.
    Name,
    /// What an expression gives; with the last schema, and where the fields of the expression are in it.
    Expression(Expression, Option<(Schema, Places)>),
}

impl By {
    /// By an expression, or by the name where there is none.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub(crate) fn new(option: &str, expression: Option<&str>) -> Result<Self> {
        let Some(text) = expression else { return Ok(Self::Name) };
        let expression = Expression::new(text).map_err(|error| error.context("option", option))?;
        Ok(Self::Expression(expression, None))
    }

    /// Writes the key of the foremost sample to `out`; none where there is no sample.
    #[inline]
    pub(crate) fn read(&mut self, input: &Chunk, out: &mut Vec<u8>) -> Option<Result<()>> {
        let (_, key, schema, values) = input.peek()?;
        Some(self.write(key, schema, values, out))
    }

    /// Writes the key of a sample to `out`.
    pub(crate) fn of(&mut self, sample: &Sample, out: &mut Vec<u8>) -> Result<()> {
        self.write(sample.key(), sample.schema(), sample.values(), out)
    }

    /// As [`of`](By::of), of its parts.
    #[inline]
    pub(crate) fn write(
        &mut self,
        key: &Key,
        schema: &Schema,
        values: &[Value],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.clear();
        let Self::Expression(expression, known) = self else {
            write_name(key, out);
            return Ok(());
        };
        let places = match known {
            Some((known, places)) if known.is(schema) => places,
            known => &mut known.insert((schema.clone(), expression.places(schema))).1,
        };
        let written = expression.write(places, key, schema, values, out);
        written.map_err(|error| error.context("sample", key))
    }

    /// The field that the key is, if it is nothing but that.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Name => None,
            Self::Expression(expression, _) => expression.field(),
        }
    }
}

fn write_name(key: &Key, out: &mut Vec<u8>) {
    if !key.name.is_empty() {
        return write_text(&key.name, out);
    }
    if key.index != Key::WHOLE {
        return write_whole(key.index, out);
    }
    let file = key.origin.rsplit('/').next().unwrap_or_default();
    // A name that begins with a dot has no extension for it.
    let stem = file.rfind('.').filter(|&dot| dot > 0).and_then(|dot| file.get(..dot));
    write_text(stem.unwrap_or(file), out);
}

/// Keys, each with the small number of what waits under it.
///
/// The numbers are looked up by the keys' hashes, which are keyed at random so that no data can make them collide; the order
/// of anything never comes from here.
#[derive(Debug)]
pub(crate) struct Index {
    seed: [u64; 2],
    /// The number that was added last of those whose keys have this hash.
    heads: HashMap<u64, u32, BuildHasherDefault<Through>>,
    /// By number.
    entries: Vec<Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    hash: u64,
    key: Vec<u8>,
    /// The number added before, of a key with the same hash.
    next: Option<u32>,
}

/// Keys longer than this do not keep their memory for the next ones.
const SHORT: usize = 256;

impl Default for Index {
    fn default() -> Self {
        let random = RandomState::new();
        let seed = [random.hash_one(0), random.hash_one(1) | 1];
        Self { seed, heads: HashMap::default(), entries: Vec::new() }
    }
}

impl Index {
    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.entries.clear();
    }

    /// The hash of a key.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        let [start, factor] = self.seed;
        // The length tells keys apart that end in zeros.
        words(key).fold(start ^ key.len() as u64, |hash, word| {
            let product = u128::from(hash ^ word) * u128::from(factor);
            product as u64 ^ (product >> 64) as u64
        })
    }

    /// The number of a key, which has this hash.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let mut at = self.heads.get(&hash).copied();
        while let Some(number) = at.filter(|&number| !same(self.key(number), key)) {
            at = self.entries[number as usize].next;
        }
        at
    }

    /// The key of a number that has one.
    #[inline]
    pub(crate) fn key(&self, number: u32) -> &[u8] {
        &self.entries[number as usize].key
    }

    /// All keys by their numbers, where none was removed.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.entries.iter().map(|entry| entry.key.as_slice())
    }

    /// Puts a key, which has this hash, under a number that has none.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, key: &[u8], number: u32) {
        let at = number as usize;
        if at >= self.entries.len() {
            self.entries.resize_with(at + 1, Entry::default);
        }
        let entry = &mut self.entries[at];
        entry.hash = hash;
        entry.key.clear();
        entry.key.extend_from_slice(key);
        entry.next = self.heads.insert(hash, number);
    }

    /// Forgets the key of a number.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        if entry.key.capacity() > SHORT {
            entry.key = Vec::new();
        }
        let (hash, next) = (entry.hash, entry.next.take());
        match (self.heads.get_mut(&hash), next) {
            (Some(head), None) if *head == number => drop(self.heads.remove(&hash)),
            (Some(head), Some(next)) if *head == number => *head = next,
            (Some(head), _) => {
                let mut at = *head as usize;
                while let Some(before) = self.entries[at].next.filter(|&before| before != number) {
                    at = before as usize;
                }
                self.entries[at].next = next;
            }
            (None, _) => {}
        }
    }
}

/// A key in the words that it was mostly written in: bytes that were just written wait before they can be read in larger pieces.
#[inline]
fn words(key: &[u8]) -> impl Iterator<Item = u64> {
    let (words, rest) = key.as_chunks();
    let last = (!rest.is_empty()).then(|| last_word(rest));
    words.iter().copied().map(u64::from_le_bytes).chain(last)
}

/// Up to seven bytes, and zeros behind them, as a word.
// From two pieces that overlap: one put together in memory has to wait there before it is read.
#[inline]
fn last_word(rest: &[u8]) -> u64 {
    let behind = |piece: u64, size: usize| piece << (8 * (rest.len() - size));
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | behind(u32::from_le_bytes(*last).into(), 4)
    } else if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        u64::from(u16::from_le_bytes(*first)) | behind(u16::from_le_bytes(*last).into(), 2)
    } else {
        rest.first().copied().unwrap_or_default().into()
    }
}

#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && words(one).eq(words(other))
}

/// A hasher of what is a hash already.
#[derive(Debug, Default)]
pub(crate) struct Through(u64);

impl Hasher for Through {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 ^ u64::from(byte));
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;

    fn key_of(by: &mut By, key: Key, value: Value) -> Result<Vec<u8>> {
        let mut given = sample(1, &[("value", value)]);
        given.set_key(key);
        let mut chunk = Chunk::new();
        chunk.push_sample(&mut given);
        let mut out = Vec::new();
        by.read(&chunk, &mut out).unwrap()?;
        Ok(out)
    }

    #[test]
    fn the_words_of_a_key_are_its_bytes_with_zeros_behind_them() {
        let bytes: Vec<u8> = (0..40_u8).map(|at| at.wrapping_mul(83) ^ 0xa5).collect();
        for (from, len) in (0..8).flat_map(|from| (0..=32).map(move |len| (from, len))) {
            let key = &bytes[from..from + len];
            let mut padded = key.to_vec();
            padded.resize(len.next_multiple_of(8), 0);
            let wanted = padded.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            assert!(words(key).eq(wanted), "{key:?}");
            assert!(same(key, &padded[..len]) && !same(key, &bytes[from..=from + len]));
        }
    }

    #[test]
    fn keys_are_equal_where_the_values_are() {
        let mut by = By::new("key", Some("value")).unwrap();
        let list = |values: &[i64]| Value::list(values.iter().map(|&value| value.into()).collect());
        let groups: Vec<Vec<Value>> = vec![
            vec![1_i64.into(), 1_u8.into(), 1.0_f32.into(), 1.0_f64.into()],
            vec![0_i64.into(), (-0.0).into(), 0_u64.into()],
            vec![(-3_i8).into(), (-3.0).into()],
            vec![i64::MIN.into(), (i64::MIN as f64).into()],
            vec![u64::MAX.into()],
            vec![2_f64.powi(64).into()],
            vec![(-(2_f64.powi(64))).into()],
            vec![0.5.into(), 0.5_f32.into()],
            vec![f64::INFINITY.into()],
            vec!["1".into()],
            vec!["".into()],
            vec![forebay_core::Buffer::from(b"1".to_vec()).into()],
            vec![true.into()],
            vec![Value::NULL],
            vec![list(&[])],
            vec![list(&[1, 2]), Value::list(vec![1.0.into(), 2_u8.into()])],
            vec![list(&[12])],
            vec![Value::list(vec![list(&[1]), 2_i64.into()])],
            vec![Value::list(vec!["a".into(), "bc".into()])],
            vec![Value::list(vec!["ab".into(), "c".into()])],
        ];
        let groups: Vec<Vec<_>> = groups
            .into_iter()
            .map(|values| {
                values.into_iter().map(|value| key_of(&mut by, Key::default(), value).unwrap()).collect()
            })
            .collect();
        for (at, group) in groups.iter().enumerate() {
            assert!(group.iter().all(|key| *key == group[0]), "group {at}");
            assert!(groups[..at].iter().all(|other| other[0] != group[0]), "group {at}");
        }
        let opaque = || Value::opaque("thing", 3_u8);
        for wrong in [opaque(), Value::list(vec![opaque()])] {
            let error = key_of(&mut by, Key::whole("a"), wrong).unwrap_err();
            assert!(error.message().contains("cannot be compared"), "{error}");
            assert_eq!(error.get("sample"), Some("a"));
        }
    }

    #[test]
    fn names_are_those_of_samples_files_or_rows() {
        let text = |text: &str| {
            let mut by = By::new("key", Some("value")).unwrap();
            key_of(&mut by, Key::default(), text.into()).unwrap()
        };
        let mut by = By::Name;
        let mut name = |key: Key| key_of(&mut by, key, Value::NULL).unwrap();
        assert_eq!(name(Key { name: "a/1.x".into(), ..Key::whole("x.tar") }), text("a/1.x"));
        for (path, stem) in [("a/b/0001.jpg", "0001"), ("1.2.jpg", "1.2"), (".x", ".x"), ("a/b", "b")] {
            assert_eq!(name(Key::whole(path)), text(stem), "{path}");
        }
        let mut by = By::new("key", Some("value")).unwrap();
        let seven = key_of(&mut by, Key::default(), 7_i64.into()).unwrap();
        assert_eq!(name(Key { index: 7, ..Key::whole("x.jsonl") }), seven);
    }

    #[test]
    fn numbers_are_found_by_their_keys_also_where_hashes_are_alike() {
        let mut index = Index::default();
        for hash in [5, 5, 6] {
            index.clear();
            let keys: [&[u8]; 4] = [b"a", b"b", b"", b"d"];
            for (number, key) in keys.iter().enumerate() {
                index.insert(hash.min(5 + number as u64), key, number as u32);
            }
            for removed in [1, 3, 0, 2] {
                assert_eq!(index.find(hash.min(5 + removed as u64), keys[removed]), Some(removed as u32));
                index.remove(removed as u32);
                let left = |number: usize| index.find(hash.min(5 + number as u64), keys[number]);
                assert_eq!(left(removed), None);
            }
            assert!(index.heads.is_empty());
        }
        let mut index = Index::default();
        let long = vec![7; 1000];
        index.insert(index.hash(&long), &long, 0);
        assert_eq!(index.find(index.hash(&long), &long), Some(0));
        index.remove(0);
        assert_eq!(index.entries[0].key.capacity(), 0);
    }
}
