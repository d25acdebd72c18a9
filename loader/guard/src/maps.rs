//! Maps of files that another program cuts short: a byte that is gone shows as zero, and what was made since fails with an error.
//!
//! Plugins tell where their maps are (`Plugin::maps` of the ABI). The handler of SIGBUS finds the map that
//! was touched, marks it, and counts it. It puts pages of zeros where the file has none any more. Every other
//! SIGBUS goes to its earlier handler. The count comes first, so a thread that has seen a zero sees the
//! count.
//!
//! From then on no loader of this process that was built before gives anything (`Loader`), and no worker
//! (`worker`). Nobody knows which pipes had bytes of that file, so nothing that any of them makes is
//! delivered.
#![expect(
    unsafe_code,
    reason = "a handler of a signal, which is C's, and pages that take the place of others"
)]

use std::{
    fs, ptr,
    sync::{
        Mutex, MutexGuard, Once, OnceLock, PoisonError,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
};

use forebay_core::{
    Error, ErrorKind,
    abi::{
        Maps, MapsRef,
        abi_stable::{prefix_type::WithMetadata, std_types::RStr},
    },
};

use super::handler::pass_on;

/// How many slots the first block has; each of the others has as many as all before it.
const FIRST: usize = 256;
const BLOCKS: usize = 24;

const TABLE: &WithMetadata<Maps> = &WithMetadata::new(Maps { begin, end, cut });
/// What plugins are given.
pub const MAPS: MapsRef = MapsRef(TABLE.static_as_prefix());

/// Where the maps are, for the handler, which takes no lock; a block that was made is never freed.
static SLOTS: [AtomicPtr<MapSlot>; BLOCKS] = [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS];
/// How many maps were cut short.
static CUT: AtomicU64 = AtomicU64::new(0);
/// All that no handler looks at.
static BOOK: Mutex<Book> = Mutex::new(Book { free: Vec::new(), paths: Vec::new(), cut: Vec::new() });
/// How long a page is.
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// What stands in a slot whose map was cut short once that is told.
const TOLD: usize = usize::MAX;

/// One map. Whoever touches it keeps it alive, so it does not change while the handler looks at it.
struct MapSlot {
    /// Its address; 0 for none.
    start: AtomicUsize,
    len: AtomicUsize,
    /// Which byte was found to be gone, and one more; [`TOLD`] once there is an error of it.
    gone: AtomicUsize,
}

#[derive(Default)]
struct Book {
    /// Slots without a map.
    free: Vec<usize>,
    /// The path of each slot's file.
    paths: Vec<Box<str>>,
    /// The maps that were cut short, as they were found.
    cut: Vec<Error>,
}

/// The block that a slot is in, and its place there.
fn place(number: usize) -> (usize, usize) {
    match number.checked_div(FIRST) {
        Some(0) | None => (0, number),
        Some(multiple) => {
            let block = multiple.ilog2() as usize + 1;
            (block, number - (FIRST << (block - 1)))
        }
    }
}

fn size(block: usize) -> usize {
    FIRST << block.saturating_sub(1)
}

fn slot(number: usize) -> Option<&'static MapSlot> {
    let (block, at) = place(number);
    let slots = SLOTS.get(block)?.load(Ordering::Acquire);
    // SAFETY: a block that is there has so many slots and lives for ever.
    (!slots.is_null()).then(|| unsafe { &*slots.add(at) })
}

fn book() -> MutexGuard<'static, Book> {
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    /// The number of a slot without a map; none once there are more maps than a process can have.
    fn take(&mut self) -> Option<usize> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        let number = self.paths.len();
        let (block, at) = place(number);
        let there = SLOTS.get(block)?;
        if at == 0 {
            let new = || MapSlot {
                start: AtomicUsize::new(0),
                len: AtomicUsize::new(0),
                gone: AtomicUsize::new(0),
            };
            let slots: Box<[MapSlot]> = (0..size(block)).map(|_| new()).collect();
            there.store(Box::leak(slots).as_mut_ptr(), Ordering::Release);
        }
        self.paths.push(Box::default());
        Some(number)
    }

    /// Makes an error of a map that was cut short, unless there is one.
    fn note(&mut self, number: usize, slot: &MapSlot) {
        let gone = slot.gone.load(Ordering::Acquire);
        let Some(path) = self.paths.get(number).filter(|_| ![0, TOLD].contains(&gone)) else { return };
        slot.gone.store(TOLD, Ordering::Release);
        let was = slot.len.load(Ordering::Relaxed);
        let found = match fs::metadata(&**path) {
            Ok(now) if now.len() < was as u64 => format!("found {} bytes, expected {was}", now.len()),
            _ => format!("found fewer bytes than {was}"),
        };
        let message = format!("{found}: another program cut the file short while it was read");
        self.cut.push(Error::new(ErrorKind::Io, message).context("byte", gone - 1).context("file", path));
    }

    /// Looks for maps that were cut short and are still there.
    fn look(&mut self) {
        for number in 0..self.paths.len() {
            if let Some(slot) = slot(number) {
                self.note(number, slot);
            }
        }
    }
}

extern "C" fn begin(start: usize, len: usize, path: RStr<'_>) -> u64 {
    let mut book = book();
    let Some(number) = book.take() else { return u64::MAX };
    if let (Some(slot), Some(known)) = (slot(number), book.paths.get_mut(number)) {
        *known = path.as_str().into();
        slot.gone.store(0, Ordering::Relaxed);
        slot.len.store(len, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
    }
    number as u64
}

extern "C" fn end(number: u64, now: u64) {
    let Some((number, slot)) = usize::try_from(number).ok().and_then(|number| Some((number, slot(number)?)))
    else {
        return;
    };
    let mut book = book();
    if let Some(now) = usize::try_from(now).ok().filter(|&now| now < slot.len.load(Ordering::Relaxed)) {
        mark(slot, now);
    }
    book.note(number, slot);
    slot.start.store(0, Ordering::Release);
    book.free.push(number);
}

extern "C" fn cut() -> u64 {
    CUT.load(Ordering::Acquire)
}

/// A map has no byte at this place any more. The count comes before anybody can see what is there instead.
fn mark(slot: &MapSlot, gone: usize) {
    if slot.gone.compare_exchange(0, gone + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        CUT.fetch_add(1, Ordering::SeqCst);
    }
}

/// How many maps of this process were cut short so far.
pub fn count() -> u64 {
    cut()
}

/// The error of the first map that was cut short after so many were.
#[inline]
pub fn error_after(count: u64) -> Option<Error> {
    if cut() == count { None } else { Some(first_after(count)) }
}

#[cold]
fn first_after(count: u64) -> Error {
    let mut book = book();
    book.look();
    let first = usize::try_from(count).ok().and_then(|count| book.cut.get(count));
    // Another thread may be in the handler at this moment.
    let unknown = || Error::new(ErrorKind::Io, "another program cut a file short while it was read");
    first.cloned().unwrap_or_else(unknown)
}

/// Has SIGBUS come here first, once for the whole program.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all-zero is a valid `sigaction`.
        let (mut old, mut new): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        // SAFETY: asks only.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut old) } != 0 {
            return;
        }
        // SAFETY: asks only.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        PAGE.store(page.unwrap_or(4096), Ordering::Relaxed);
        let _ = BEFORE.set(old); // Before the handler can look for it.
        new.sa_sigaction = on_signal as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: the handler does only what a handler may. If it cannot be installed all is as it was.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const new, ptr::null_mut()) };
    });
}

/// Shows zeros where the file of a map was cut short. Says whether this was what the signal is about: then the thread goes on.
///
/// It may come between any two instructions, so it takes no lock and no memory.
pub(super) fn mend(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the system's own place for the number of the last error, which code between two instructions must find as it was.
    let errno = unsafe { *libc::__errno_location() };
    let mended = show_zeros(info);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    mended
}

fn show_zeros(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the system gives one with each signal.
    let (code, at) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if code != libc::BUS_ADRERR {
        return false;
    }
    for (block, slots) in SLOTS.iter().enumerate() {
        let slots = slots.load(Ordering::Acquire);
        if slots.is_null() {
            return false;
        }
        for number in 0..size(block) {
            // SAFETY: as in `slot`.
            let slot = unsafe { &*slots.add(number) };
            let start = slot.start.load(Ordering::Acquire);
            let len = slot.len.load(Ordering::Acquire);
            // Another thread's may end between the two, and another begin; the own one is alive.
            let still = slot.start.load(Ordering::Acquire) == start;
            if still && start != 0 && (start..start.saturating_add(len)).contains(&at) {
                mark(slot, at - start);
                return zero(at, start + len);
            }
        }
    }
    false
}

/// Puts pages of zeros from the page of `at` on to `end`.
fn zero(at: usize, end: usize) -> bool {
    let from = at & !(PAGE.load(Ordering::Relaxed) - 1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the pages are those of a map for reading that the thread is just reading, so it is alive; the system call is one that
    // handlers may make. Whoever unmaps the map unmaps these pages.
    let place =
        unsafe { libc::mmap(ptr::without_provenance_mut(from), end - from, libc::PROT_READ, flags, -1, 0) };
    place != libc::MAP_FAILED
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if !mend(info)
        && let Some(before) = BEFORE.get()
    {
        pass_on(before, (signal, info, context));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        fs::File,
        path::PathBuf,
        process::{Command, ExitStatus},
    };

    use memmap2::Mmap;

    use super::*;

    /// Which part of a test its child process is: what is counted is counted for a whole process.
    const PART: &str = "FOREBAY_TEST_PART";
    const LEN: usize = 5 * 4096;

    /// Runs `part` in a process of its own.
    fn apart(test: &str, part: impl FnOnce()) -> Option<ExitStatus> {
        if env::var_os(PART).is_some() {
            part();
            return None;
        }
        let mut child = Command::new(env::current_exe().unwrap());
        child.args([test, "--nocapture", "--test-threads=1"]).env(PART, "1");
        Some(child.status().unwrap())
    }

    /// A file of sevens, and a map of it that is not told of.
    fn mapped() -> (tempfile::TempDir, PathBuf, Mmap) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, [7; LEN]).unwrap();
        // SAFETY: nobody but this test changes it, which is what the test is about.
        let map = unsafe { Mmap::map(&File::open(&path).unwrap()) }.unwrap();
        (folder, path, map)
    }

    fn cut_to(path: &PathBuf, len: u64) {
        File::options().write(true).open(path).unwrap().set_len(len).unwrap();
    }

    #[test]
    fn bytes_that_are_gone_are_zeros_and_counted() {
        let ended = apart("bytes_that_are_gone_are", || {
            install();
            let (_folder, path, map) = mapped();
            let number = begin(map.as_ptr().addr(), map.len(), path.to_str().unwrap().into());
            // So many that they are in several blocks.
            let others: Vec<_> = (0..2000).map(|at| begin(1 + at, 0, "other".into())).collect();
            cut_to(&path, 5000);
            assert_eq!((map[0], map[4999], count()), (7, 7, 0));
            assert!(error_after(0).is_none());
            assert_eq!((map[3 * 4096 + 5], map[2 * 4096], map[4096], count()), (0, 0, 7, 1));
            let error = error_after(0).unwrap();
            assert_eq!((error.get("byte"), error.get("file")), (Some("12293"), path.to_str()));
            assert!(error.message().starts_with("found 5000 bytes, expected 20480: "), "{error}");
            others.into_iter().for_each(|number| end(number, u64::MAX));
            end(number, 5000);
            assert_eq!((count(), error_after(1).is_none()), (1, true));
        });
        assert!(ended.is_none_or(|ended| ended.success()));
    }

    #[test]
    fn bytes_that_are_gone_from_the_last_page_are_found_as_the_map_ends() {
        let ended = apart("bytes_that_are_gone_from", || {
            let (_folder, path, map) = mapped();
            let number = begin(map.as_ptr().addr(), map.len(), path.to_str().unwrap().into());
            cut_to(&path, LEN as u64 - 10);
            assert_eq!((map[LEN - 1], count()), (0, 0), "no signal comes");
            end(number, LEN as u64 - 10);
            assert_eq!(error_after(0).unwrap().get("byte"), Some("20470"));
            let whole = begin(map.as_ptr().addr(), map.len(), "whole".into());
            end(whole, LEN as u64);
            assert_eq!(count(), 1);
        });
        assert!(ended.is_none_or(|ended| ended.success()));
    }

    #[test]
    fn a_map_of_the_program_itself_is_its_own_affair() {
        extern "C" fn theirs(_: i32) {
            // SAFETY: it may be called by handlers.
            unsafe { libc::_exit(42) }
        }
        let ended = apart("a_map_of_the_program", || {
            // SAFETY: the handler does what one may do.
            unsafe { libc::signal(libc::SIGBUS, theirs as *const () as usize) };
            install();
            let (_folder, path, map) = mapped();
            cut_to(&path, 0);
            assert_eq!(map[0], 7, "this is never reached");
        });
        assert!(ended.is_none_or(|ended| ended.code() == Some(42)), "{ended:?}");
    }
}
