//! The folder that relative paths begin at: a plugin that changes it moves nobody's files.
//!
//! Threads of the loader have one each, so that a change stays where it was made, and it is taken back when the plugin's call is over.
#![expect(unsafe_code, reason = "a thread's parting with what it shares is C's")]

use std::{
    env,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// So many times it is looked each time, then at each power of two, and then each time that the second divides: to look costs as much as
/// ten small samples, and a plugin that changes the folder does so as it begins.
const FIRST: u32 = 4;
const OFTEN: u32 = 64;

/// A folder that a thread works in.
pub struct Home {
    path: Arc<Path>,
    /// Its device and number there.
    is: (u64, u64),
    /// How often there was reason to look.
    asked: AtomicU32,
}

/// Whether it is looked this time, after so many.
pub(crate) fn is_due(asked: u32) -> bool {
    asked < FIRST || asked.is_power_of_two() || asked.is_multiple_of(OFTEN)
}

impl Home {
    /// The folder of this thread; none where it is gone.
    pub fn here() -> Option<Self> {
        Some(Self { path: env::current_dir().ok()?.into(), is: identity()?, asked: AtomicU32::new(0) })
    }

    /// As [`here`](Self::here), without asking the system for the name again if this is still the folder.
    pub(crate) fn still(&self) -> Option<Self> {
        let is = identity()?;
        if is != self.is {
            return Self::here();
        }
        Some(Self { path: Arc::clone(&self.path), is, asked: AtomicU32::new(0) })
    }

    /// As [`here`](Self::here), and this thread has the folder for itself from here on, with those that it starts; none where the system refuses that,
    /// for others may then have changed it on purpose.
    pub(crate) fn parted() -> Option<Self> {
        // SAFETY: it changes nothing but what the thread shares with others: the folder, and the mask for new files.
        let parted = unsafe { libc::unshare(libc::CLONE_FS) } == 0;
        if parted { Self::here() } else { None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this thread works there.
    pub(crate) fn is_here(&self) -> bool {
        identity() == Some(self.is)
    }

    /// As [`come_back`](Self::come_back), where it is time to look again.
    pub(crate) fn come_back_at_times(&self) -> bool {
        is_due(self.asked.fetch_add(1, Ordering::Relaxed)) && self.come_back()
    }

    /// Goes back, and says whether that was needed.
    pub fn come_back(&self) -> bool {
        !self.is_here() && env::set_current_dir(&self.path).is_ok()
    }
}

fn identity() -> Option<(u64, u64)> {
    let found = rustix::fs::stat(".").ok()?;
    Some((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, thread};

    use super::*;

    #[test]
    fn a_change_stays_on_its_thread_and_is_taken_back() {
        let before = env::current_dir().unwrap();
        let other = thread::spawn(|| {
            let home = Home::parted().unwrap();
            env::set_current_dir("/").unwrap();
            let away = env::current_dir().unwrap();
            (away, home.come_back(), home.come_back(), env::current_dir().unwrap())
        });
        let found = other.join().unwrap();
        assert_eq!(found, (PathBuf::from("/"), true, false, before.clone()));
        assert_eq!(env::current_dir().unwrap(), before);
    }
}
