//! Bytes that can be shared, sliced and handed over without a copy.

use std::{
    fmt,
    fs::File,
    ops::{Bound, Deref, DerefMut, RangeBounds},
    ptr, slice,
};

use abi_stable::StableAbi;

use crate::shared::{
    FileView, LentBytes, Owner, file_of, is_alone, keep, let_go, share, share_file, share_lent, share_mut,
};

/// Shared, immutable bytes: a place, a length, and the owner that keeps them alive.
///
/// A clone or a [`slice`](Buffer::slice) shares the same bytes. The owner may be a vector, a memory
/// map, a pool's slot or anything else; a null owner means that the bytes live for ever.
#[repr(C)]
#[derive(StableAbi)]
pub struct Buffer {
    pub(crate) ptr: *const u8,
    pub(crate) len: usize,
    pub(crate) owner: *const Owner,
}

// SAFETY: the bytes are immutable and the owner counts atomically.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// No bytes.
    pub const EMPTY: Self = Self::from_static(&[]);

    /// Bytes that live for ever.
    #[must_use]
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len(), owner: ptr::null() }
    }

    /// The bytes of `owner`, which is kept until the last slice of them is dropped.
    ///
    /// `owner.as_ref()` is asked once, and must give the same place for as long as `owner` lives.
    pub fn from_owner<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> Self {
        let (owner, value) = share(owner);
        // SAFETY: `value` points into the allocation that `owner` keeps.
        let bytes = unsafe { (*value).as_ref() };
        Self { ptr: bytes.as_ptr(), len: bytes.len(), owner }
    }

    /// The bytes of `view`, which show a file; [`file`](Buffer::file) gives it to who would rather read.
    ///
    /// `view.as_ref()` must give the same place for as long as `view` lives.
    pub fn from_file_view<T: FileView>(view: T) -> Self {
        let (owner, value) = share_file(view);
        // SAFETY: `value` points into the allocation that `owner` keeps.
        let bytes = unsafe { (*value).as_ref() };
        Self { ptr: bytes.as_ptr(), len: bytes.len(), owner }
    }

    /// The file that the bytes show, opened once more, and where in it they start; `None` for bytes in memory.
    ///
    /// To look at a few bytes of a map here and there costs a page fault each, and the mapping of all pages around; to
    /// read them costs a fraction.
    #[must_use]
    pub fn file(&self) -> Option<(File, u64)> {
        file_of(self.owner, self.ptr)
    }

    /// The bytes of `owner`, which others may have too; while they do not, [`try_into_mut`](Buffer::try_into_mut) gives them.
    pub fn from_lent<T: LentBytes>(owner: T) -> Self {
        let bytes = owner.place();
        let (owner, _) = share_lent(owner);
        Self { ptr: bytes.cast(), len: bytes.len(), owner }
    }

    /// Whether [`try_into_mut`](Buffer::try_into_mut) would give the bytes: nobody else has a part of them.
    #[must_use]
    pub fn is_unshared(&self) -> bool {
        is_alone(self.owner)
    }

    /// The bytes, to be written, if they came from a [`BufferMut`] and nobody else has a part of that; else the buffer again.
    ///
    /// Memory of a plugin that was built before this was there, and a file's map, are never given.
    ///
    /// ```
    /// use forebay_abi::BufferMut;
    ///
    /// let buffer = BufferMut::zeroed(4).freeze();
    /// let other = buffer.clone();
    /// let buffer = buffer.try_into_mut().unwrap_err();
    /// drop(other);
    /// buffer.try_into_mut().unwrap()[0] = 1;
    /// ```
    ///
    /// # Errors
    /// The same buffer.
    pub fn try_into_mut(self) -> Result<BufferMut, Self> {
        if !is_alone(self.owner) {
            return Err(self);
        }
        let this = std::mem::ManuallyDrop::new(self);
        // The pointer is that of the `BufferMut` which these bytes were frozen from.
        Ok(BufferMut { ptr: this.ptr.cast_mut(), len: this.len, owner: this.owner })
    }

    /// The bytes in `range`, shared.
    ///
    /// Gives `None` when the range does not lie within the buffer.
    #[must_use]
    pub fn get(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.checked_add(1)?,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        let len = self.as_slice().get(start..end)?.len();
        keep(self.owner);
        // From the whole's pointer, so that a join may reach over the part's ends again.
        Some(Self { ptr: self.ptr.wrapping_add(start), len, owner: self.owner })
    }

    /// The bytes in `range`, shared.
    ///
    /// # Panics
    /// When the range does not lie within the buffer; [`get`](Buffer::get) gives `None` instead.
    #[must_use]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        match self.get(range) {
            Some(part) => part,
            None => panic!("the range does not lie within a buffer of {} bytes", self.len),
        }
    }

    /// The bytes.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `ptr` and `len` name bytes that `owner` keeps alive and nobody changes.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }

    /// Whether both are kept alive by the same owner, and so came from one allocation.
    #[must_use]
    pub fn same_owner(&self, other: &Self) -> bool {
        self.owner == other.owner
    }

    /// Joins buffers that lie one after the other in the same allocation, without a copy.
    ///
    /// Gives `None` when they do not, and for bytes that live for ever: nobody says which allocation those are of.
    #[must_use]
    pub fn join<'a>(parts: impl IntoIterator<Item = &'a Buffer>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        let mut len = first.len;
        for part in parts {
            if part.owner.is_null() || !part.same_owner(first) || part.ptr != first.ptr.wrapping_add(len) {
                return None;
            }
            len += part.len;
        }
        keep(first.owner);
        Some(Self { ptr: first.ptr, len, owner: first.owner })
    }
}

impl Clone for Buffer {
    #[inline]
    fn clone(&self) -> Self {
        keep(self.owner);
        Self { ..*self }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: every handle owns one reference, and this one ends here.
        unsafe { let_go(self.owner) }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self::EMPTY } else { Self::from_owner(bytes) }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

/// Bytes that only their holder can reach, to be filled and then [frozen](BufferMut::freeze).
///
/// The bytes are initialised, but with anything: a host gives recycled memory.
#[repr(C)]
#[derive(StableAbi)]
pub struct BufferMut {
    ptr: *mut u8,
    len: usize,
    owner: *const Owner,
}

// SAFETY: the bytes are reached through this handle alone, and the owner counts atomically.
unsafe impl Send for BufferMut {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for BufferMut {}

impl BufferMut {
    /// `len` zeroed bytes of fresh memory. The context's `alloc` is cheaper, where there is one.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self::from_owner(vec![0; len])
    }

    /// The bytes of `owner`, which must give the same place for as long as it lives.
    pub fn from_owner<T: AsMut<[u8]> + Send + Sync + 'static>(owner: T) -> Self {
        let (owner, value) = share_mut(owner);
        // SAFETY: nobody else can reach the value that was just shared.
        let bytes = unsafe { (*value.cast_mut()).as_mut() };
        Self { ptr: bytes.as_mut_ptr(), len: bytes.len(), owner }
    }

    /// Makes the bytes immutable and shareable; nothing is copied.
    #[must_use]
    pub fn freeze(self) -> Buffer {
        let this = std::mem::ManuallyDrop::new(self);
        Buffer { ptr: this.ptr, len: this.len, owner: this.owner }
    }

    /// Cuts off the first `len` bytes, or all there are; both parts keep the one allocation.
    ///
    /// Frozen, they can be [joined](Buffer::join) again.
    #[must_use]
    pub fn split_off_front(&mut self, len: usize) -> Self {
        let len = len.min(self.len);
        keep(self.owner);
        let front = Self { ptr: self.ptr, len, owner: self.owner };
        // The parts do not overlap, so each is still the only way to reach its bytes.
        self.ptr = self.ptr.wrapping_add(len);
        self.len -= len;
        front
    }

    /// Leaves out all bytes from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Drop for BufferMut {
    fn drop(&mut self) {
        // SAFETY: the handle owns one reference, and this one ends here.
        unsafe { let_go(self.owner) }
    }
}

impl Deref for BufferMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: initialised bytes kept by `owner`; see `from_owner`.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl DerefMut for BufferMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this handle is the only way to reach them.
        unsafe { slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}

impl fmt::Debug for BufferMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferMut({} bytes)", self.len)
    }
}

/// Shared, immutable text.
#[repr(C)]
#[derive(StableAbi, Clone, PartialEq, Eq, Default)]
pub struct Str {
    bytes: Buffer,
}

impl Str {
    /// No text.
    pub const EMPTY: Self = Self::from_static("");

    /// Text that lives for ever.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self { bytes: Buffer::from_static(text.as_bytes()) }
    }

    /// These texts one behind the other.
    ///
    /// Cost: up to 63 bytes of text one allocation, more two.
    #[must_use]
    pub fn concat(parts: &[&str]) -> Self {
        let mut short = Short::EMPTY;
        if parts.iter().all(|part| short.add(part)) {
            return if short.len > 0 { Self { bytes: Buffer::from_owner(short) } } else { Self::EMPTY };
        }
        Self::from(parts.concat())
    }

    /// The text of `bytes`, shared; the bytes come back when they are not UTF-8.
    ///
    /// # Errors
    /// The same bytes, when they are not UTF-8.
    pub fn from_utf8(bytes: Buffer) -> Result<Self, Buffer> {
        if std::str::from_utf8(&bytes).is_ok() { Ok(Self { bytes }) } else { Err(bytes) }
    }

    /// The text of `bytes`.
    ///
    /// # Safety
    /// They are UTF-8.
    #[inline]
    pub(crate) unsafe fn over(bytes: Buffer) -> Self {
        Self { bytes }
    }

    /// The text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        // SAFETY: every constructor checks or is given UTF-8, and the bytes never change.
        unsafe { std::str::from_utf8_unchecked(&self.bytes) }
    }

    pub(crate) fn bytes(&self) -> &Buffer {
        &self.bytes
    }

    /// The text's bytes, shared.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.bytes
    }
}

impl Deref for Str {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::concat(&[text])
    }
}

/// A short text beside its reference count: keys and words take one allocation, not two.
struct Short {
    len: u8,
    bytes: [u8; Self::MOST],
}

impl Short {
    /// With the count and what keeps it, a cache line and a half.
    const MOST: usize = 63;

    const EMPTY: Self = Self { len: 0, bytes: [0; Self::MOST] };

    /// Adds a text at the end; says whether there was room.
    #[inline]
    fn add(&mut self, text: &str) -> bool {
        let start = usize::from(self.len);
        let Some(place) = self.bytes.get_mut(start..start + text.len()) else { return false };
        place.copy_from_slice(text.as_bytes());
        self.len += text.len() as u8;
        true
    }
}

impl AsRef<[u8]> for Short {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self { bytes: text.into_bytes().into() }
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct View(&'static [u8], &'static str);

    impl AsRef<[u8]> for View {
        fn as_ref(&self) -> &[u8] {
            self.0
        }
    }

    impl FileView for View {
        fn open(&self) -> Option<File> {
            assert_ne!(self.1, "", "no name");
            File::open(self.1).ok()
        }
    }

    #[test]
    fn only_bytes_that_show_a_file_give_one_and_say_where_they_start() {
        let view = Buffer::from_file_view(View(b"heron", "Cargo.toml"));
        assert_eq!(view.file().map(|(_, start)| start), Some(0));
        assert_eq!(view.slice(2..).slice(1..3).file().map(|(_, start)| start), Some(3));
        assert!(Buffer::from_file_view(View(b"heron", "missing")).file().is_none());
        assert!(Buffer::from(b"heron".to_vec()).file().is_none());
        assert!(Buffer::from_static(b"heron").file().is_none());
    }

    #[test]
    fn a_view_that_panics_gives_no_file() {
        assert!(Buffer::from_file_view(View(b"heron", "")).file().is_none());
    }
}
