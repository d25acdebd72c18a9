//! Which call of a plugin runs on this thread, so that a crash, an exit and a stall are told with pipe, plugin and sample.
//!
//! Each call has a record on its thread's stack, and the records of nested calls form a list. They are read on the same thread, by the
//! handler of a signal or at the end of the program, or after the thread was stopped for good.
#![expect(unsafe_code, reason = "records on the stack, found by the address that their thread keeps")]

use std::{
    cell::Cell,
    fmt::{self, Write as _},
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use forebay_core::{
    Chunk, Error, Key,
    abi::{Context, Noting},
};

/// Who is called.
#[derive(Debug, Clone, Default)]
pub struct Callee {
    /// The node or the pipe; of a decoder its name. Empty while a library is loaded.
    pub name: String,
    /// Its plugin and the file of that; empty for what is the program's own.
    pub(crate) plugin: String,
    /// What tells a decoder from all others, for other threads and processes; 0 for what is no decoder.
    pub decoder: u32,
}

/// As `jpeg of forebay-image 1.0.0 in FILE`.
impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.plugin)
    }
}

/// One call, on the stack of its thread.
pub(crate) struct Call {
    callee: *const Callee,
    outer: *const Call,
    /// The key of the sample that the pipe says it is at.
    note: Cell<*const Key>,
    /// What it is given first, and where it gives first; null where there is none.
    given: *const Chunk,
    made: *const Chunk,
    told: Cell<bool>,
}

thread_local! {
    /// The innermost call.
    static CALL: Cell<*const Call> = const { Cell::new(ptr::null()) };
    /// Where others see which decoder this thread is in; null where nobody looks.
    static SEAT: Cell<*const AtomicU32> = const { Cell::new(ptr::null()) };
}

impl Callee {
    /// A pipe or a node of a plugin.
    pub fn new(name: &str, plugin: String) -> Self {
        Self { name: name.to_owned(), plugin, decoder: 0 }
    }

    /// A decoder of the plugin called `of`.
    pub fn decoder(name: &str, of: &str, plugin: String) -> Self {
        let hash = xxhash_rust::xxh3::xxh3_64(format!("{name}\0{of}").as_bytes());
        Self { name: name.to_owned(), plugin, decoder: u32::try_from(hash >> 32).unwrap_or(1).max(1) }
    }

    /// Says in an error which decoder and plugin it comes from.
    pub fn on(&self, error: Error) -> Error {
        error.context("decoder", &self.name).context("plugin", &self.plugin)
    }
}

/// Makes a call that has no samples, and has it told of what happens in it. A callee without a plugin is the program itself, and
/// is told of nothing.
#[inline]
pub fn call<T>(callee: &Callee, work: impl FnOnce() -> T) -> T {
    // SAFETY: null stands for no samples.
    unsafe { call_with(callee, (ptr::null(), ptr::null()), work) }
}

/// Makes a call, as [`call`], that is given samples in one chunk, and gives some in another. Null stands for none.
///
/// What it gives is written where the caller wants it: a copy of what a plugin has just written in pieces costs 5 ns.
///
/// # Safety
/// Both chunks live until `work` is done, and who changes them leaves them whole: a crash within reads the first key of each.
#[inline]
pub unsafe fn call_with<T>(
    callee: &Callee,
    (given, made): (*const Chunk, *const Chunk),
    work: impl FnOnce() -> T,
) -> T {
    /// A call that unwinds, which none of a plugin does, is over too.
    struct Over<'a> {
        outer: *const Call,
        /// Where others see which decoder this thread is in, and in which it was.
        seat: Option<(&'a AtomicU32, u32)>,
    }
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            CALL.set(self.outer);
            if let Some((seat, before)) = self.seat {
                seat.store(before, Ordering::Relaxed);
            }
        }
    }
    let outer = CALL.get();
    let told = Cell::new(callee.plugin.is_empty());
    let call = Call { callee, outer, note: Cell::new(ptr::null()), given, made, told };
    let seat = match callee.decoder {
        0 => None,
        // SAFETY: what sits there lives as long as its `Seated`.
        _ => unsafe { SEAT.get().as_ref() },
    };
    // Nobody else writes there.
    let before = seat.map(|seat| (seat, seat.load(Ordering::Relaxed)));
    seat.iter().for_each(|seat| seat.store(callee.decoder, Ordering::Relaxed));
    let _over = Over { outer, seat: before };
    CALL.set(&raw const call);
    work()
}

/// Until this is dropped, a word tells which decoder its thread is in.
pub struct Seated<'a>(std::marker::PhantomData<&'a AtomicU32>);

impl<'a> Seated<'a> {
    /// Has this thread tell there.
    pub fn new(seat: &'a AtomicU32) -> Self {
        SEAT.set(ptr::from_ref(seat));
        Self(std::marker::PhantomData)
    }
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        SEAT.set(ptr::null());
    }
}

/// The word of a [`Context`] by which pipes find where to note their samples.
pub(super) fn noting() -> u64 {
    (noted as Noting) as usize as u64
}

extern "C" fn noted() -> *mut *const Key {
    // SAFETY: the innermost call's record is on this thread's stack.
    unsafe { CALL.get().as_ref() }.map_or(ptr::null_mut(), |call| call.note.as_ptr())
}

/// The innermost call of this thread that is to be told of, once; null for none.
pub(super) fn untold() -> *const Call {
    let call = CALL.get();
    // SAFETY: as above.
    match unsafe { call.as_ref() } {
        Some(found) if !found.told.replace(true) => call,
        _ => ptr::null(),
    }
}

/// The innermost call of this thread.
pub(super) fn innermost() -> *const Call {
    CALL.get()
}

/// What is known of a call, for people.
pub(super) struct CallReport<'a> {
    call: &'a Call,
}

impl CallReport<'_> {
    /// Looks at a call.
    ///
    /// # Safety
    /// The call runs on this very thread, or on one that was stopped in it for good.
    pub(super) unsafe fn new<'a>(call: *const Call) -> Option<CallReport<'a>> {
        // SAFETY: the caller's promise.
        unsafe { call.as_ref() }.map(|call| CallReport { call })
    }

    fn callee(call: &Call) -> &Callee {
        // SAFETY: a callee outlives the calls of it, which hold a reference.
        unsafe { &*call.callee }
    }

    fn each(&self) -> impl Iterator<Item = &Call> {
        // SAFETY: outer calls are on the same stack.
        std::iter::successors(Some(self.call), |call| unsafe { call.outer.as_ref() })
    }

    /// The pipe.
    fn pipe(&self) -> Option<&str> {
        let mut pipes = self.each().map(Self::callee).filter(|callee| callee.decoder == 0);
        pipes.find(|callee| !callee.name.is_empty()).map(|callee| callee.name.as_str())
    }

    pub(super) fn decoder(&self) -> Option<&Callee> {
        Some(Self::callee(self.call)).filter(|callee| callee.decoder != 0)
    }

    fn plugin(&self) -> &str {
        &Self::callee(self.call).plugin
    }

    /// The sample that it is at, or how that lies to one that is known.
    pub(super) fn sample(&self) -> Option<(&'static str, &Key)> {
        // SAFETY: pipes note what stays where it is while they may fail, and chunks live as long as the call.
        let noted = self.each().find_map(|call| unsafe { call.note.get().as_ref() });
        if let Some(key) = noted.filter(|key| **key != Key::default()) {
            return Some(("sample", key));
        }
        let call = self.each().find(|call| !call.given.is_null() || !call.made.is_null())?;
        // SAFETY: as above.
        let (given, made) = unsafe { (call.given.as_ref(), call.made.as_ref()) };
        // While a map of an older plugin works on a sample, that has no name in the chunk.
        let known = |(_, key): &(u64, &Key)| **key != Key::default();
        let last = made.and_then(|made| made.names().take_while(known).last());
        let next = || given.and_then(Chunk::front);
        last.map(|(_, key)| ("after sample", key)).or_else(|| next().map(|(_, key)| ("before sample", key)))
    }
}

/// Writes an error to standard error from where no memory may be taken: what happened, where, and what to do.
///
/// What may be broken by the plugin comes last, so that the rest was said by then.
pub(super) fn tell(told: &CallReport<'_>, what: fmt::Arguments<'_>, next: &str) {
    let mut line = StderrLine { bytes: [0; LINE], len: 0 };
    let _ = write!(line, "error: {what}");
    if let Some(pipe) = told.pipe() {
        let _ = write!(line, "\n  pipe: {pipe}");
    }
    if let Some(decoder) = told.decoder() {
        let _ = write!(line, "\n  decoder: {}", decoder.name);
    }
    let _ = write!(line, "\n  plugin: {}\n  next: {next}\n", told.plugin());
    line.see_off();
    if let Some((how, key)) = told.sample() {
        let _ = writeln!(line, "  {how}: {key}");
        line.see_off();
    }
}

/// So much goes to standard error at once, so that threads which die together do not mix their words.
const LINE: usize = 1024;

/// Bytes on their way to standard error.
struct StderrLine {
    bytes: [u8; LINE],
    len: usize,
}

impl StderrLine {
    fn see_off(&mut self) {
        let mut rest = &self.bytes[..self.len];
        while !rest.is_empty() {
            // SAFETY: `write` may be called by handlers; the bytes are there.
            let wrote = unsafe { libc::write(2, rest.as_ptr().cast(), rest.len()) };
            let Some(left) = usize::try_from(wrote).ok().filter(|&wrote| wrote > 0) else { break };
            rest = rest.get(left..).unwrap_or_default();
        }
        self.len = 0;
    }
}

impl fmt::Write for StderrLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.len == self.bytes.len() {
                self.see_off();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Ok(())
    }
}

/// Puts the word for notes into a context.
pub fn note_in(cx: &mut Context) {
    cx.reserved[Context::NOTING] = noting();
}
