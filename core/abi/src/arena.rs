//! Many values that share the memory of one text, and are freed at once.

use std::{
    cell::UnsafeCell,
    fmt,
    mem::{self, ManuallyDrop},
    ops::Range,
    ptr,
};

use crate::{Buffer, Schema, Str, Struct, Value, shared::Prepaid, tag};

/// The first piece of memory has room for so many values or structs, later ones for twice as many each time.
const FIRST: usize = 8;
/// Up to so many; longer lists have one to themselves.
const MOST: usize = 1024;
/// Of more bytes than this it is not found out at once whether they are UTF-8.
const KNOWN: usize = 4 << 20;

/// Texts, lists and structs made from one buffer, a block of a file: all in the arena's own memory, which goes with the last of
/// them.
///
/// A value costs a few stores: no allocation and no atomic operation. In return each keeps the whole buffer and all that was made
/// in the arena, so an arena is for values that are used and dropped at about the same time.
///
/// ```
/// use forebay_abi::{Arena, Schema, Value, View};
///
/// let mut arena = Arena::new(b"heron stork".to_vec().into());
/// let mut items: Vec<Value> = [0..5, 6..11].into_iter().filter_map(|at| arena.text(at)).map(Value::from).collect();
/// let birds = arena.list(&mut items, 0);
/// let row = arena.structure(&Schema::new(["birds"]), &mut vec![birds], 0);
/// drop(arena);
/// let View::Struct(row) = row.view() else { unreachable!() };
/// assert_eq!(row.get("birds"), Some(&Value::list(vec!["heron".into(), "stork".into()])));
/// ```
pub struct Arena {
    kept: Prepaid<Kept>,
    /// Whether all of the buffer is known to be UTF-8.
    is_text: bool,
    /// How many values lie in it.
    len: usize,
}

/// What the values of an arena lie in.
struct Kept {
    source: Buffer,
    memory: UnsafeCell<Memory>,
}

// SAFETY: the memory is reached by the one `Arena`, and when nobody holds it any more; what is in it may go to any thread.
unsafe impl Send for Kept {}
// SAFETY: as above: the source may be used from any thread.
unsafe impl Sync for Kept {}

/// What is in here and is the arena's own holds no reference to it: that would keep it for ever.
#[derive(Default)]
struct Memory {
    values: Slabs<Value>,
    structs: Slabs<Struct>,
    schemas: Vec<Schema>,
    /// What came from elsewhere and is held by values in here.
    others: Vec<Value>,
}

/// Memory whose items stay where they are. What is in them is not dropped.
struct Slabs<T>(Vec<Vec<ManuallyDrop<T>>>);

impl<T> Default for Slabs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slabs<T> {
    /// A slab with room for so many more.
    fn room(&mut self, count: usize) -> &mut Vec<ManuallyDrop<T>> {
        let last = self.0.last().map_or((0, 0), |slab| (slab.capacity(), slab.capacity() - slab.len()));
        if last.1 < count || self.0.is_empty() {
            self.0.push(Vec::with_capacity(count.max((last.0 * 2).clamp(FIRST, MOST))));
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl Arena {
    /// An arena for values made from `source`.
    ///
    /// Cost: one look at all of its bytes, unless they are more than 4 MiB, to know whether they are UTF-8.
    #[must_use]
    pub fn new(source: Buffer) -> Self {
        let is_text = source.len() <= KNOWN && std::str::from_utf8(&source).is_ok();
        Self::over(source, is_text)
    }

    fn over(source: Buffer, is_text: bool) -> Self {
        let kept = Kept { source, memory: UnsafeCell::default() };
        Self { kept: Prepaid::new(kept), is_text, len: 0 }
    }

    /// An arena over the same source, so that what was made so far can go without what comes.
    pub fn renew(&mut self) {
        *self = Self::over(self.source().clone(), self.is_text);
    }

    /// How many values and structs lie in it.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether all of the source is known to be UTF-8.
    #[must_use]
    #[inline]
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// The bytes that values are made from.
    #[must_use]
    #[inline]
    pub fn source(&self) -> &Buffer {
        &self.kept.value().source
    }

    /// The text in this range of the source; `None` when it does not lie there, or is not UTF-8.
    #[must_use]
    #[inline]
    pub fn text(&mut self, range: Range<usize>) -> Option<Str> {
        let bytes = self.part(range)?;
        // SAFETY: `part` gives UTF-8 of a buffer that the arena keeps.
        Some(unsafe { Str::over(Buffer { ptr: bytes.cast(), len: bytes.len(), owner: self.kept.give() }) })
    }

    /// As [`text`](Arena::text), but puts it behind `values`, and says whether it did: it is written once, and not copied.
    #[must_use]
    #[inline]
    pub fn push_text(&mut self, range: Range<usize>, values: &mut Vec<Value>) -> bool {
        let Some(bytes) = self.part(range) else { return false };
        let payload = Buffer { ptr: bytes.cast(), len: bytes.len(), owner: self.kept.give() };
        values.push(Value { tag: tag::STR, word: 0, payload });
        true
    }

    /// What is text in this range.
    #[inline]
    fn part(&self, range: Range<usize>) -> Option<*const [u8]> {
        let source = self.source().as_slice();
        let (is_first, end) = (|at| source.get(at).is_none_or(|byte| byte & 0xc0 != 0x80), range.end);
        // A part of text is text when it begins and ends where characters do.
        let whole = self.is_text && is_first(range.start) && is_first(end);
        let bytes = source.get(range)?;
        (whole || std::str::from_utf8(bytes).is_ok()).then_some(ptr::from_ref(bytes))
    }

    /// A text from elsewhere, which the arena keeps; what [`again`](Arena::again) gives of it costs as little as its own.
    #[must_use]
    pub fn keep(&mut self, text: &Str) -> Str {
        if text.is_empty() {
            return Str::EMPTY;
        }
        self.memory().others.push(text.clone().into());
        let (ptr, len) = (text.as_ptr(), text.len());
        // SAFETY: it is text, which `others` keeps.
        unsafe { Str::over(Buffer { ptr, len, owner: self.kept.give() }) }
    }

    /// A clone of `text`, for nothing if that is of this arena.
    #[must_use]
    #[inline]
    pub fn again(&mut self, text: &Str) -> Str {
        let bytes = text.bytes();
        if !ptr::eq(bytes.owner, self.kept.owner()) {
            return text.clone();
        }
        // SAFETY: a clone, whose reference was counted ahead.
        unsafe { Str::over(Buffer { ptr: bytes.ptr, len: bytes.len, owner: self.kept.give() }) }
    }

    /// A list of the last of `items`, from `from` on, which are taken off.
    #[must_use]
    pub fn list(&mut self, items: &mut Vec<Value>, from: usize) -> Value {
        let len = items.len().saturating_sub(from);
        if len == 0 {
            return Value::EMPTY_LIST;
        }
        let ptr = self.move_in(items, from).cast();
        Value { tag: tag::LIST, word: 0, payload: Buffer { ptr, len, owner: self.kept.give() } }
    }

    /// The last of `values`, from `from` on, under the names of `schema`: they are taken off. Missing ones are null, surplus ones dropped.
    #[must_use]
    pub fn structure(&mut self, schema: &Schema, values: &mut Vec<Value>, from: usize) -> Value {
        values.resize(from.saturating_add(schema.len()), Value::NULL);
        let first = self.move_in(values, from);
        let memory = self.memory();
        if !memory.schemas.iter().rev().any(|known| known.is(schema)) {
            memory.schemas.push(schema.clone());
        }
        // SAFETY: a bit copy that is never dropped; `schemas` keeps the names, and the slabs the values, as long as it.
        let fields = unsafe { Struct::over(ptr::read(schema), first) };
        self.len += 1;
        let slab = self.memory().structs.room(1);
        slab.push(ManuallyDrop::new(fields));
        let ptr = slab[slab.len() - 1..].as_ptr().cast();
        Value { tag: tag::STRUCT, word: 0, payload: Buffer { ptr, len: 0, owner: self.kept.give() } }
    }

    /// Moves values in, and gives the place of the first.
    fn move_in(&mut self, values: &mut Vec<Value>, from: usize) -> *const Value {
        let home = self.kept.owner();
        let Memory { values: slabs, others, .. } = self.memory();
        let len = values.len() - from;
        let slab = slabs.room(len);
        let (start, mut own) = (slab.len(), 0);
        for value in values.drain(from..) {
            // SAFETY: a bit copy that is never dropped; what it holds is the arena's own, or kept by `others`.
            slab.push(ManuallyDrop::new(unsafe { ptr::read(&raw const value) }));
            let owner = value.payload.owner;
            if owner.is_null() || ptr::eq(owner, home) {
                own += usize::from(!owner.is_null());
                mem::forget(value);
            } else {
                others.push(value);
            }
        }
        let place = slab[start..].as_ptr().cast();
        self.kept.take_back(own);
        self.len += len;
        place
    }

    fn memory(&mut self) -> &mut Memory {
        // SAFETY: nobody else reaches the memory: the one arena is borrowed.
        unsafe { &mut *self.kept.value().memory.get() }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena over {:?}", self.source())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::View;

    /// Bytes that say when they go.
    struct Told(Arc<AtomicUsize>, &'static str);

    impl AsRef<[u8]> for Told {
        fn as_ref(&self) -> &[u8] {
            self.1.as_bytes()
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_last_value_takes_all_with_it() {
        let gone = Arc::new(AtomicUsize::new(0));
        let told = |text| Buffer::from_owner(Told(Arc::clone(&gone), text));
        let mut arena = Arena::new(told("grey heron"));
        let schema = Schema::new(["words", "other", "bytes", "lacking"]);
        for keeps in 0..3 {
            let words = [0..4, 5..10].map(|at| Value::from(arena.text(at).unwrap()));
            let mut stack = vec![Value::NULL, words[0].clone(), words[1].clone()];
            let list = arena.list(&mut stack, 1);
            let nested = arena.list(&mut vec![list.clone(), Value::list(vec!["far".into()])], 0);
            stack.extend([nested, Value::from(7_u8), told("other").into()]);
            let row = arena.structure(&schema, &mut stack, 1);
            assert_eq!(stack, [Value::NULL]);
            let View::Struct(fields) = row.view() else { unreachable!() };
            let words = Value::list(words.to_vec());
            assert_eq!(fields.values()[0], Value::list(vec![words.clone(), Value::list(vec!["far".into()])]));
            assert_eq!(
                (&fields.values()[1..], list),
                (&[7_u8.into(), Value::from(told("other")), Value::NULL][..], words)
            );
            // A clone of what lies inside holds the arena as the whole does.
            let inner = fields.values()[0].clone();
            let kept = [&row, &inner, &inner][keeps].clone();
            drop((row, inner));
            drop(kept);
        }
        // Three times the one that was only compared with.
        assert_eq!(gone.swap(0, Ordering::Relaxed), 3);
        let last = arena.text(0..4);
        drop(arena);
        assert_eq!(gone.load(Ordering::Relaxed), 0);
        drop(last);
        assert_eq!(gone.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn text_is_cut_only_where_characters_are() {
        for source in ["grün ☂", "grün ☂\u{fffd}"] {
            let mut bytes = source.as_bytes().to_vec();
            if source.ends_with('\u{fffd}') {
                bytes.push(0xff);
            }
            let mut arena = Arena::new(bytes.clone().into());
            for from in 0..bytes.len() + 2 {
                for to in 0..bytes.len() + 2 {
                    let expected = bytes.get(from..to).and_then(|part| std::str::from_utf8(part).ok());
                    assert_eq!(arena.text(from..to).as_deref(), expected, "{from}..{to}");
                }
            }
        }
    }

    #[test]
    fn texts_kept_from_elsewhere_are_given_again() {
        let gone = Arc::new(AtomicUsize::new(0));
        let origin = Str::from_utf8(Buffer::from_owner(Told(Arc::clone(&gone), "birds.jsonl"))).unwrap();
        let mut arena = Arena::new(b"grey heron".to_vec().into());
        let kept = arena.keep(&origin);
        drop(origin);
        let again = arena.again(&kept);
        let mut values = Vec::new();
        assert!(arena.push_text(5..10, &mut values) && !arena.push_text(5..11, &mut values));
        assert_eq!(values, ["heron".into()]);
        arena.renew();
        assert!(arena.is_empty());
        let last = arena.again(&kept);
        drop((kept, again, arena, values));
        assert_eq!((gone.load(Ordering::Relaxed), last.as_str()), (0, "birds.jsonl"));
        drop(last);
        assert_eq!(gone.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn long_lists_and_many_structs_stay_where_they_are() {
        let mut arena = Arena::new(Buffer::EMPTY);
        let schema = Schema::new(["n"]);
        let mut rows: Vec<_> =
            (0..5000_u64).map(|n| arena.structure(&schema, &mut vec![n.into()], 0)).collect();
        let copy = rows.clone();
        let whole = arena.list(&mut rows, 0);
        drop(arena);
        assert_eq!(whole, Value::list(copy));
    }

    #[test]
    fn more_values_than_were_counted_ahead() {
        let mut arena = Arena::new(b"x".to_vec().into());
        let texts: Vec<_> = (0..200_000).map(|_| arena.text(0..1).unwrap()).collect();
        let source = arena.source().clone();
        drop(arena);
        let threads = texts.chunks(50_000).map(|texts| texts.to_vec()).collect::<Vec<_>>();
        drop(texts);
        std::thread::scope(|scope| {
            for texts in threads {
                scope.spawn(|| drop(texts));
            }
        });
        assert_eq!(source.as_slice(), b"x");
    }
}
