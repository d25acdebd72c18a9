//! Threads that a plugin's crash does not take the program with: the thread that crashed stops for good, in the signal's handler, and
//! somebody else is told.
//!
//! Nothing of what it held is freed, and it never runs again: so no code runs on a stack that is broken, and what others see of the world is
//! as it was a moment before the crash. It cannot be told whether the plugin had written where it should not; and if it crashed
//! while it had a lock of the whole program, such as that of the memory, others wait for it: a watchman ends the program then,
//! as the crash would have.
#![expect(unsafe_code, reason = "handlers of signals, which are C's, and the stacks they run on")]

use std::{
    cell::Cell,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use forebay_core::Result;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// What is told when nothing goes on.
const STUCK: &[u8] = b"forebay: a plugin crashed, and what goes on without it did not come to an end: it may have taken a lock of the whole program along; isolate it as `process`\n";
/// What a crash is known by.
const SIGNALS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGSYS, libc::SIGTRAP];
/// For the handler, since the thread's own stack may be used up.
const STACK: usize = 64 << 10;
/// How long it may take to go on without the plugin: other pipes finish what they are at first.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    /// Of the thread that a handler runs on.
    static POST: Cell<*const Post> = const { Cell::new(ptr::null()) };
}

/// What the signals did before.
static BEFORE: OnceLock<Vec<libc::sigaction>> = OnceLock::new();

/// The threads of a run, of which any may crash.
pub(crate) struct Crashes {
    posts: Vec<Arc<Post>>,
    bell: Arc<OwnedFd>,
    /// Counts the threads that are gone, by their end or by a crash.
    gone: Arc<OwnedFd>,
    /// Counts up as something begins that must end soon, and as it ends.
    watched: [OwnedFd; 2],
    patience: Duration,
    over: AtomicBool,
}

/// What is known of one thread.
struct Post {
    /// The segment that it works on, and one more; 0 for none that may crash.
    segment: AtomicUsize,
    /// The signal that it crashed with.
    signal: AtomicI32,
    told: AtomicBool,
    bell: Arc<OwnedFd>,
    gone: Arc<OwnedFd>,
}

/// A thread that crashed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) worker: usize,
    pub(crate) segment: usize,
    pub(crate) signal: i32,
}

impl Crashes {
    /// For so many threads, without which others go on in so much time, or not at all.
    ///
    /// # Errors
    /// `Io`, when the system has no more of what it takes.
    pub(crate) fn new(threads: usize, patience: Duration) -> Result<Arc<Self>> {
        install()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
        let count = || eventfd(0, flags).map_err(io::Error::from);
        let (bell, gone) = (Arc::new(count()?), Arc::new(count()?));
        let post = || Post {
            segment: AtomicUsize::new(0),
            signal: AtomicI32::new(0),
            told: AtomicBool::new(false),
            bell: Arc::clone(&bell),
            gone: Arc::clone(&gone),
        };
        let posts = (0..threads).map(|_| Arc::new(post())).collect();
        let crashes = Arc::new(Self {
            posts,
            bell,
            gone,
            watched: [count()?, count()?],
            patience,
            over: AtomicBool::new(false),
        });
        let watchman = Arc::clone(&crashes);
        thread::Builder::new().name("forebay-watch".into()).spawn(move || watchman.watch())?;
        Ok(crashes)
    }

    /// This thread is the `worker`th, until what comes back is dropped.
    pub(crate) fn enlist(&self, worker: usize) -> Enlisted {
        let post = Arc::clone(&self.posts[worker]);
        POST.set(Arc::as_ptr(&post));
        Enlisted { post, _stack: Stack::new() }
    }

    /// Waits for a thread that crashes; none when that is over.
    pub(crate) fn wait(&self) -> Option<Crash> {
        loop {
            let _ = rustix::io::read(&*self.bell, &mut [0; 8]); // Interrupted, it looks and waits again.
            for (worker, post) in self.posts.iter().enumerate() {
                let signal = post.signal.load(Ordering::Acquire);
                if signal != 0 && !post.told.swap(true, Ordering::AcqRel) {
                    let segment = post.segment.load(Ordering::Acquire).saturating_sub(1);
                    return Some(Crash { worker, segment, signal });
                }
            }
            if self.over.load(Ordering::Acquire) {
                return None;
            }
        }
    }

    /// Waits until every thread has ended or crashed; once.
    pub(crate) fn wait_for_all(&self) {
        let mut left = self.posts.len();
        while left > 0 {
            left -= usize::from(rustix::io::read(&*self.gone, &mut [0; 8]).is_ok());
        }
    }

    /// Whether this thread crashed, and never ends.
    pub(crate) fn has(&self, worker: usize) -> bool {
        self.posts.get(worker).is_some_and(|post| post.signal.load(Ordering::Acquire) != 0)
    }

    /// Whether any thread crashed.
    pub(crate) fn has_any(&self) -> bool {
        (0..self.posts.len()).any(|worker| self.has(worker))
    }

    /// Ends the program if what goes on until this is dropped does not end soon.
    pub(crate) fn watched(self: &Arc<Self>) -> Watched {
        count_up(&self.watched[0]);
        Watched(Arc::clone(self))
    }

    /// No more crashes are waited for.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        count_up(&self.bell);
        count_up(&self.watched[0]);
    }

    /// The life of the watchman, who takes no memory and no lock.
    fn watch(&self) {
        loop {
            // Interrupted, it begins to wait again.
            if rustix::io::read(&self.watched[0], &mut [0; 8]).is_err() {
                continue;
            }
            if self.over.load(Ordering::Acquire) {
                return;
            }
            let begun = Instant::now();
            loop {
                let left = self.patience.saturating_sub(begun.elapsed());
                let nanos = left.subsec_nanos().into();
                let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: nanos };
                match poll(&mut [PollFd::new(&self.watched[1], PollFlags::IN)], Some(&left)) {
                    Ok(0) => {
                        let _ = rustix::io::write(rustix::stdio::stderr(), STUCK);
                        std::process::abort();
                    }
                    Ok(_) => {
                        let _ = rustix::io::read(&self.watched[1], &mut [0; 8]);
                        break;
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

/// See [`Crashes::watched`].
pub(crate) struct Watched(Arc<Crashes>);

impl Drop for Watched {
    fn drop(&mut self) {
        count_up(&self.0.watched[1]);
    }
}

/// A thread whose crash is told.
pub(crate) struct Enlisted {
    post: Arc<Post>,
    _stack: Stack,
}

impl Enlisted {
    /// Calls `work` on a segment; where that crashes, this never returns.
    pub(crate) fn guard<T>(&self, segment: usize, work: impl FnOnce() -> T) -> T {
        /// A panic is no crash, and what comes behind it is not guarded.
        struct Reset<'a>(&'a AtomicUsize);
        impl Drop for Reset<'_> {
            fn drop(&mut self) {
                self.0.store(0, Ordering::Release);
            }
        }
        self.post.segment.store(segment + 1, Ordering::Release);
        let _reset = Reset(&self.post.segment);
        work()
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        POST.set(ptr::null());
        count_up(&self.post.gone);
    }
}

fn count_up(counter: &OwnedFd) {
    let _ = rustix::io::write(counter, &1_u64.to_ne_bytes()); // It fails at 2^64.
}

/// Has the signals of a crash come here first, once for the whole program.
fn install() -> io::Result<()> {
    static FAILED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = FAILED.get_or_init(|| {
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: all-zero is a valid `sigaction`; likewise below.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: asks only.
            unsafe { libc::sigaction(signal, ptr::null(), &raw mut old) };
            before.push(old);
        }
        // Before any handler can look for it.
        let _ = BEFORE.set(before);
        for signal in SIGNALS {
            // SAFETY: as above.
            let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
            new.sa_sigaction = on_signal as *const () as usize;
            // One that has stopped does nothing else.
            // SAFETY: it is a set of signals.
            unsafe { libc::sigfillset(&raw mut new.sa_mask) };
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            // SAFETY: the handler does only what a handler may; see there.
            if unsafe { libc::sigaction(signal, &raw const new, ptr::null_mut()) } != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
        }
        None
    });
    failed.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
}

/// Stops a thread that crashed at work, for good; any other crash is whose it was before.
///
/// It may come between any two instructions, so it takes no lock and no memory.
extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let post = POST.get();
    // SAFETY: the system gives one with each signal.
    let told = unsafe { (*info).si_code } == libc::SI_USER;
    // SAFETY: what a thread's `Enlisted` keeps alive, and takes away before it goes.
    if let Some(post) = unsafe { post.as_ref() }
        && !told // By another program, to whichever thread.
        && post.segment.load(Ordering::Acquire) != 0
        && post.signal.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_ok()
    {
        // SAFETY: `write` and `pause` may be called by handlers; the descriptor lives as long as the post.
        unsafe {
            libc::write(post.bell.as_raw_fd(), (&raw const ONE).cast(), 8);
            libc::write(post.gone.as_raw_fd(), (&raw const ONE).cast(), 8);
            loop {
                libc::pause();
            }
        }
    }
    let known = SIGNALS.iter().position(|&known| known == signal);
    let Some(before) = BEFORE.get().zip(known).and_then(|(before, at)| before.get(at)) else { return };
    match before.sa_sigaction {
        libc::SIG_IGN if told => {}
        // What a thread does itself cannot be ignored.
        libc::SIG_IGN | libc::SIG_DFL => {
            // SAFETY: as the system would have done.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: it was installed as one with these arguments.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed as one with this argument.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

static ONE: u64 = 1;

/// A stack for handlers, where the thread has none.
struct Stack(Option<Vec<u8>>);

impl Stack {
    /// Without one, a stack that is used up ends the program.
    fn new() -> Self {
        // SAFETY: all-zero is a valid `stack_t`.
        let mut old: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: asks only.
        let asked = unsafe { libc::sigaltstack(ptr::null(), &raw mut old) };
        if asked != 0 || old.ss_flags & libc::SS_DISABLE == 0 {
            return Self(None);
        }
        let mut memory = vec![0; STACK];
        let new = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: the memory is this thread's until it is taken away again, by the drop.
        let given = unsafe { libc::sigaltstack(&raw const new, ptr::null_mut()) };
        Self((given == 0).then_some(memory))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if self.0.is_some() {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: STACK };
            // SAFETY: no handler runs on it, since this does.
            unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::process::ExitStatusExt as _, process::Command};

    use super::*;

    /// Which part of a test its child process is.
    const PART: &str = "FOREBAY_TEST_PART";

    #[test]
    fn what_cannot_go_on_ends_the_program_and_says_why() {
        if env::var_os(PART).is_some() {
            let crashes = Crashes::new(1, Duration::from_millis(10)).unwrap();
            // As when somebody waits for a lock that a thread took along.
            std::mem::forget(crashes.watched());
            loop {
                thread::park();
            }
        }
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["what_cannot_go_on", "--nocapture", "--test-threads=1"]).env(PART, "1");
        let ended = child.output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{ended:?}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains("isolate it as `process`"), "{ended:?}");
    }

    #[test]
    fn a_thread_that_crashes_is_told_and_others_are_not_touched() {
        let crashes = Crashes::new(2, PATIENCE).unwrap();
        for worker in 0..2 {
            let crashes = Arc::clone(&crashes);
            thread::spawn(move || {
                let enlisted = crashes.enlist(worker);
                enlisted.guard(worker + 4, || {
                    if worker == 1 {
                        std::process::abort()
                    }
                });
            });
        }
        let crash = crashes.wait().unwrap();
        assert_eq!((crash.worker, crash.segment, crash.signal), (1, 5, libc::SIGABRT));
        crashes.wait_for_all();
        assert!(crashes.has(1) && !crashes.has(0));
        crashes.end();
        assert!(crashes.wait().is_none());
    }

    #[test]
    fn a_crash_of_nobody_is_whose_it_was() {
        if env::var_os(PART).is_some() {
            let crashes = Crashes::new(1, PATIENCE).unwrap();
            let enlisted = crashes.enlist(0);
            enlisted.guard(0, || ());
            std::process::abort();
        }
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["a_crash_of_nobody", "--test-threads=1"]).env(PART, "1");
        assert_eq!(child.output().unwrap().status.signal(), Some(libc::SIGABRT));
    }
}
