//! What a plugin must leave as it is: where the process works, what it does on signals, and how many files it has open.

use std::{collections::BTreeSet, env, fs, path::PathBuf};

/// So many more open files are no leak: threads and libraries of the host's own keep some.
const SPARE: usize = 16;
/// The last signal that programs send each other: of those above, glibc handles two for its threads.
const SIGNALS_OF_PROGRAMS: u32 = 31;
/// How the system says what becomes of signals, as bits, and what to call them.
const SIGNALS: [(&str, &str); 3] = [("SigCgt:", "handled"), ("SigIgn:", "ignored"), ("SigBlk:", "blocked")];

/// The state of this process at one time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    folder: Option<PathBuf>,
    /// For each of [`SIGNALS`] the set, as bits.
    signals: [u64; 3],
    files: usize,
}

impl State {
    /// As it is now.
    pub(super) fn now() -> Self {
        // Of this thread: what another has blocked, as while it starts one, is none of the plugin's.
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let set = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
        };
        Self {
            folder: env::current_dir().ok(),
            signals: SIGNALS.map(|(name, _)| set(name)),
            files: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
        }
    }

    /// What a plugin changed since then, and what to do in place of that.
    pub(super) fn changed(&self) -> Option<String> {
        let now = Self::now();
        if now.folder != self.folder {
            let shown = |folder: &Option<PathBuf>| {
                folder.as_ref().map_or("one that is gone".to_owned(), |folder| folder.display().to_string())
            };
            return Some(format!(
                "changed the working directory from {} to {}: it belongs to the host; join paths instead",
                shown(&self.folder),
                shown(&now.folder)
            ));
        }
        let sets = self.signals.into_iter().zip(now.signals).zip(SIGNALS);
        for ((before, after), (_, how)) in sets {
            let changed: BTreeSet<u32> =
                (1..=SIGNALS_OF_PROGRAMS).filter(|bit| (before ^ after) >> (bit - 1) & 1 == 1).collect();
            if !changed.is_empty() {
                return Some(format!(
                    "changed whether these signals are {how}: {changed:?}; signals belong to the host"
                ));
            }
        }
        (now.files > self.files + SPARE).then(|| {
            format!(
                "left {} descriptors open, but {} were open before: close each file when its value is done",
                now.files, self.files
            )
        })
    }
}
