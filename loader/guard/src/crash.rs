//! Threads that a plugin's crash does not take the program with: the thread that crashed stops for good, in the signal's handler, and
//! somebody else is told.
//!
//! Nothing of what it held is freed, and it never runs again. So no code runs on a broken stack, and others
//! see the world as it was a moment before the crash. It cannot be told whether the plugin had written where
//! it should not. If it crashed while it had a lock of the whole program, such as that of the memory, others
//! wait for it. A watchdog then ends the program, as the crash would have.
#![expect(unsafe_code, reason = "what handlers of signals read, by address")]

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use forebay_core::{Error, Result};

use super::{
    call::{Call, CallReport},
    counter::Counter,
    handler::Stack,
    post::{POST, ThreadRecord},
    signals::install,
};

/// What is told when nothing goes on.
const STUCK: &[u8] = b"forebay: a plugin crashed, and the program could not go on without it: it may have held a lock of the whole program; isolate it as `process`\n";
/// How long it may take to go on without the plugin: other pipes finish what they are at first.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The threads of a run, of which any may crash.
pub struct Crashes {
    posts: Vec<Arc<ThreadRecord>>,
    bell: Arc<Counter>,
    /// Counts the threads that are gone, by their end or by a crash.
    gone: Arc<Counter>,
    /// Counts up as something begins that must end soon, and as it ends.
    watched: [Counter; 2],
    patience: Duration,
    over: AtomicBool,
}

/// A thread that crashed.
#[derive(Clone, Copy)]
pub struct Crash {
    /// Its number among those that were enlisted.
    pub worker: usize,
    /// The segment that it worked on.
    pub segment: usize,
    /// The signal of the crash.
    pub signal: i32,
    call: *const Call,
}

impl Crash {
    /// Says in an error which sample and decoder it was, as far as is known; and whether the sample is.
    pub fn on(&self, error: Error) -> (Error, bool) {
        // SAFETY: the thread was stopped in that call for good.
        let Some(told) = (unsafe { CallReport::new(self.call) }) else { return (error, false) };
        let error = match told.decoder() {
            Some(decoder) => decoder.on(error),
            None => error,
        };
        match told.sample() {
            Some(("sample", key)) => (error.of_sample(key), true),
            _ => (error, false),
        }
    }
}

impl Crashes {
    /// For so many threads, without which others go on in so much time, or not at all.
    ///
    /// # Errors
    /// `Io`, when the system has no more of what it takes.
    pub fn new(threads: usize, patience: Duration) -> Result<Arc<Self>> {
        install()?;
        let (bell, gone) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let post = || ThreadRecord {
            segment: AtomicUsize::new(0),
            signal: AtomicI32::new(0),
            call: AtomicPtr::default(),
            told: AtomicBool::new(false),
            bell: Arc::clone(&bell),
            gone: Arc::clone(&gone),
        };
        let posts = (0..threads).map(|_| Arc::new(post())).collect();
        let crashes = Arc::new(Self {
            posts,
            bell,
            gone,
            watched: [Counter::default(), Counter::default()],
            patience,
            over: AtomicBool::new(false),
        });
        let watchman = Arc::clone(&crashes);
        thread::Builder::new().name("forebay-watch".into()).spawn(move || watchman.watch())?;
        Ok(crashes)
    }

    /// This thread is the `worker`th, until what comes back is dropped.
    pub fn enlist(&self, worker: usize) -> Enlisted {
        let post = Arc::clone(&self.posts[worker]);
        POST.set(Arc::as_ptr(&post));
        Enlisted { post, _stack: Stack::new() }
    }

    /// Waits for a thread that crashes; none when that is over.
    pub fn wait(&self) -> Option<Crash> {
        loop {
            self.bell.down();
            for (worker, post) in self.posts.iter().enumerate() {
                let signal = post.signal.load(Ordering::Acquire);
                if signal != 0 && !post.told.swap(true, Ordering::AcqRel) {
                    let segment = post.segment.load(Ordering::Acquire).saturating_sub(1);
                    let call = post.call.load(Ordering::Acquire);
                    return Some(Crash { worker, segment, signal, call });
                }
            }
            if self.over.load(Ordering::Acquire) {
                return None;
            }
        }
    }

    /// Waits until every thread has ended or crashed; once.
    pub fn wait_for_all(&self) {
        self.posts.iter().for_each(|_| self.gone.down());
    }

    /// Whether this thread crashed, and never ends.
    pub fn has(&self, worker: usize) -> bool {
        self.posts.get(worker).is_some_and(|post| post.signal.load(Ordering::Acquire) != 0)
    }

    /// Whether any thread crashed.
    pub fn has_any(&self) -> bool {
        (0..self.posts.len()).any(|worker| self.has(worker))
    }

    /// Ends the program if what goes on until this is dropped does not end soon.
    pub fn watched(self: &Arc<Self>) -> Watched {
        self.watched[0].up();
        Watched(Arc::clone(self))
    }

    /// No more crashes are waited for.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.bell.up();
        self.watched[0].up();
    }

    /// The life of the watchman, who takes no memory and no lock.
    fn watch(&self) {
        loop {
            self.watched[0].down();
            if self.over.load(Ordering::Acquire) {
                return;
            }
            if !self.watched[1].down_within(self.patience) {
                let _ = rustix::io::write(rustix::stdio::stderr(), STUCK);
                std::process::abort();
            }
        }
    }
}

/// See [`Crashes::watched`].
pub struct Watched(Arc<Crashes>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.watched[1].up();
    }
}

/// A thread whose crash is told.
pub struct Enlisted {
    post: Arc<ThreadRecord>,
    _stack: Stack,
}

impl Enlisted {
    /// Calls `work` on a segment; where that crashes, this never returns.
    pub fn guard<T>(&self, segment: usize, work: impl FnOnce() -> T) -> T {
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
        self.post.gone.up();
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
