//! Shared ownership across libraries: a reference count with its own retain and release.

use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering, fence},
};

use abi_stable::StableAbi;

/// Bytes that show a whole file, such as a map of it.
pub trait FileView: AsRef<[u8]> + Send + Sync + 'static {
    /// The file, opened once more; `None` when it is no longer found, or another one is in its place.
    fn open(&self) -> Option<File>;
}

/// Bytes that others may have too, such as another process: whoever gave them away, or got them from here.
///
/// # Safety
/// What [`place`](LentBytes::place) gives stays readable while the value lives, and nobody writes there. Once
/// [`is_alone`](LentBytes::is_alone) is true and the value is not shared, nobody else reads or writes there.
pub unsafe trait LentBytes: Send + Sync + 'static {
    /// Where they are.
    fn place(&self) -> *mut [u8];

    /// Whether nobody else has them.
    fn is_alone(&self) -> bool;
}

/// The entry [`Owner::file`].
type OpenFile = Option<unsafe extern "C" fn(*const (), *const u8, &mut u64) -> i32>;

/// The head of every shared allocation: how to keep it and how to let it go.
///
/// Both functions may be called from any thread, and take the address of this head.
#[repr(C)]
#[derive(StableAbi)]
pub struct Owner {
    /// Adds one reference.
    pub retain: unsafe extern "C" fn(*const ()),
    /// Drops one reference, and the allocation with the last one.
    pub release: unsafe extern "C" fn(*const ()),
    /// Opens the file that the bytes show, and says where in it the given address lies: a descriptor of its own for
    /// the caller, or -1. Bytes that were made to be written give -1, and of the address null they say instead how many references there
    /// are. None for other bytes.
    pub file: Option<unsafe extern "C" fn(*const (), *const u8, &mut u64) -> i32>,
}

/// A value with an [`Owner`] head; only ever reached through that head once shared.
#[repr(C)]
struct Shared<T> {
    owner: Owner,
    count: AtomicUsize,
    value: T,
}

/// Moves `value` to the heap behind an [`Owner`] with one reference; gives the head and the value's place.
pub(crate) fn share<T: Send + Sync + 'static>(value: T) -> (*const Owner, *const T) {
    share_with(value, None)
}

/// As [`share`], for a value whose bytes whoever has the only reference may write.
pub(crate) fn share_mut<T: Send + Sync + 'static>(value: T) -> (*const Owner, *const T) {
    share_with(value, Some(count::<T>))
}

/// As [`share`], for a value whose bytes may be written by whoever has the only reference to it, if it says that nobody else has them.
pub(crate) fn share_lent<T: LentBytes>(value: T) -> (*const Owner, *const T) {
    share_with(value, Some(count_lent::<T>))
}

/// As [`share`], for a value that shows a file.
pub(crate) fn share_file<T: FileView>(value: T) -> (*const Owner, *const T) {
    share_with(value, Some(file::<T>))
}

fn share_with<T>(value: T, file: OpenFile) -> (*const Owner, *const T) {
    let owner = Owner { retain: retain::<T>, release: release::<T>, file };
    let shared = Box::into_raw(Box::new(Shared { owner, count: AtomicUsize::new(1), value }));
    // SAFETY: `shared` was just made from a box; only the field's address is taken.
    (shared.cast(), unsafe { &raw const (*shared).value })
}

/// A shared value of this library, many of whose references were counted ahead: giving one out costs no atomic.
pub(crate) struct Prepaid<T> {
    owner: *const Owner,
    value: *const T,
    /// The references counted and not given out; at least this handle's own.
    left: usize,
}

// SAFETY: it is a handle like any other, with references to spare.
unsafe impl<T: Send + Sync> Send for Prepaid<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Prepaid<T> {}

impl<T: Send + Sync + 'static> Prepaid<T> {
    /// So many are counted at once.
    const STOCK: usize = 1 << 16;

    pub(crate) fn new(value: T) -> Self {
        let (owner, value) = share(value);
        Self { owner, value, left: 1 }
    }

    pub(crate) fn value(&self) -> &T {
        // SAFETY: this handle's own reference keeps it.
        unsafe { &*self.value }
    }

    pub(crate) fn owner(&self) -> *const Owner {
        self.owner
    }

    /// A reference, which whoever takes it gives up with [`let_go`].
    #[inline]
    pub(crate) fn give(&mut self) -> *const Owner {
        if self.left == 1 {
            self.count().fetch_add(Self::STOCK, Ordering::Relaxed);
            self.left += Self::STOCK;
        }
        self.left -= 1;
        self.owner
    }

    /// Takes back so many references that were given out.
    #[inline]
    pub(crate) fn take_back(&mut self, count: usize) {
        self.left += count;
    }

    /// Whether nobody has a reference that was given out; what they did with the value is over then.
    pub(crate) fn is_alone(&self) -> bool {
        self.count().load(Ordering::Acquire) == self.left
    }

    fn count(&self) -> &AtomicUsize {
        // SAFETY: as in `retain`; `new` made the owner the head of a `Shared<T>`.
        unsafe { &(*self.owner.cast::<Shared<T>>()).count }
    }
}

impl<T> Drop for Prepaid<T> {
    fn drop(&mut self) {
        let spare = self.left - 1;
        // SAFETY: as in `count`.
        unsafe { &(*self.owner.cast::<Shared<T>>()).count }.fetch_sub(spare, Ordering::Release);
        // SAFETY: this handle's own reference is left, and ends here.
        unsafe { let_go(self.owner) }
    }
}

unsafe extern "C" fn retain<T>(owner: *const ()) {
    // SAFETY: `owner` is the head of a live `Shared<T>`: the caller holds a reference to it. Only the count
    // is borrowed: somebody may be writing to the value.
    let count = unsafe { &(*owner.cast::<Shared<T>>()).count };
    // Relaxed: a new reference is made from one that is held, so nothing needs ordering (as in `Arc`).
    count.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn release<T>(owner: *const ()) {
    let shared = owner.cast::<Shared<T>>();
    // SAFETY: as in `retain`; the reference given up here is the caller's.
    if unsafe { &(*shared).count }.fetch_sub(1, Ordering::Release) != 1 {
        return;
    }
    fence(Ordering::Acquire);
    // A panic must not unwind into another library; the value is gone either way.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: that was the last reference, and the allocation came from a box.
        drop(unsafe { Box::from_raw(shared.cast_mut()) });
    }));
}

/// A descriptor that is the caller's, or none.
unsafe extern "C" fn file<T: FileView>(owner: *const (), from: *const u8, place: &mut u64) -> i32 {
    // SAFETY: as in `retain`; only bytes that nobody writes to have this entry.
    let value = unsafe { &(*owner.cast::<Shared<T>>()).value };
    // A panic must not unwind into another library.
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let start = from.addr().checked_sub(value.as_ref().as_ptr().addr())?;
        *place = u64::try_from(start).ok()?;
        value.open()
    }));
    opened.ok().flatten().map_or(-1, descriptor)
}

/// How many references there are, of the address null.
unsafe extern "C" fn count<T>(owner: *const (), from: *const u8, place: &mut u64) -> i32 {
    if from.is_null() {
        // SAFETY: as in `retain`.
        let count = unsafe { &(*owner.cast::<Shared<T>>()).count };
        // Acquire: what others did with the bytes before they let go comes before what is written now.
        *place = count.load(Ordering::Acquire) as u64;
    }
    -1
}

/// As [`count`], and one more for others who have the bytes.
unsafe extern "C" fn count_lent<T: LentBytes>(owner: *const (), from: *const u8, place: &mut u64) -> i32 {
    // SAFETY: as in `count`.
    let counted = unsafe { count::<T>(owner, from, place) };
    // SAFETY: as in `retain`.
    let value = unsafe { &(*owner.cast::<Shared<T>>()).value };
    let alone = catch_unwind(AssertUnwindSafe(|| value.is_alone())).unwrap_or(false);
    *place += u64::from(!alone);
    counted
}

/// Whether the caller has the only reference to bytes that may be written.
pub(crate) fn is_alone(owner: *const Owner) -> bool {
    if owner.is_null() {
        return false;
    }
    let mut count = 0;
    // SAFETY: as in `keep`. One that shows a file finds no place for null, and leaves the number as it is.
    let entry = unsafe { (*owner).file };
    // SAFETY: as above; it opens nothing.
    entry.is_some_and(|entry| unsafe { entry(owner.cast(), std::ptr::null(), &mut count) } < 0 && count == 1)
}

#[cfg(unix)]
fn descriptor(file: File) -> i32 {
    std::os::fd::IntoRawFd::into_raw_fd(file)
}

#[cfg(not(unix))]
fn descriptor(_: File) -> i32 {
    -1
}

/// Asks `owner` for the file that its bytes show, and where in it `from` lies.
pub(crate) fn file_of(owner: *const Owner, from: *const u8) -> Option<(File, u64)> {
    if owner.is_null() {
        return None;
    }
    let mut place = 0;
    // SAFETY: as in `keep`; `from` lies in the owner's bytes, since a handle held it.
    let descriptor = unsafe { ((*owner).file?)(owner.cast(), from, &mut place) };
    taken(descriptor).map(|file| (file, place))
}

#[cfg(unix)]
fn taken(descriptor: i32) -> Option<File> {
    // SAFETY: the entry gives a descriptor that is open and that nobody else will close.
    (descriptor >= 0).then(|| unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) })
}

#[cfg(not(unix))]
fn taken(_: i32) -> Option<File> {
    None
}

/// Adds a reference to `owner`, unless it is null (memory that lives for ever).
#[inline]
pub(crate) fn keep(owner: *const Owner) {
    if !owner.is_null() {
        // SAFETY: a non-null owner held by a live handle is a valid head (invariant of every handle here).
        unsafe { ((*owner).retain)(owner.cast()) }
    }
}

/// Gives up a reference to `owner`, unless it is null.
///
/// # Safety
/// The caller owns the reference and does not use it again.
#[inline]
pub(crate) unsafe fn let_go(owner: *const Owner) {
    if !owner.is_null() {
        // SAFETY: as in `keep`; the caller gives up its reference.
        unsafe { ((*owner).release)(owner.cast()) }
    }
}
