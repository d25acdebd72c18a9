//! Maps of files that the host watches, because another program can cut a file short while it is mapped.

use std::sync::OnceLock;

use forebay_abi::{MapsRef, abi_stable::std_types::RStr};

/// The host of this process, which never changes.
static HOST: OnceLock<MapsRef> = OnceLock::new();

/// Takes what the host offers; called by the table that [`export_plugin!`](crate::export_plugin) writes.
pub extern "C" fn attach(host: MapsRef) {
    let _ = HOST.set(host); // It is the same one again.
}

/// A map of a file that the host watches until this is dropped. Drop it before the map.
///
/// If another program cuts the file short, a read of the missing bytes would end the process by SIGBUS. The host
/// then shows zeros instead, and the run fails with an error that names the file. Without a host, as in unit tests
/// of a plugin, nothing watches the map.
///
/// ```
/// let bytes = [7; 64]; // A map, in a plugin.
/// let watched = forebay_core::WatchedMap::new(&bytes, "a.bin");
/// watched.ends_with_file_of(64);
/// ```
#[derive(Debug)]
pub struct WatchedMap {
    number: Option<u64>,
    now: u64,
}

impl WatchedMap {
    /// Lets the host watch a read-only map of the file at `path`.
    #[must_use]
    pub fn new(map: &[u8], path: &str) -> Self {
        let begin = |host: &MapsRef| host.begin()(map.as_ptr().addr(), map.len(), RStr::from(path));
        Self { number: HOST.get().map(begin), now: u64::MAX }
    }

    /// Ends the watch, and tells the host the current size of the file. In the last page, bytes behind the end of
    /// the file read as zeros without a signal.
    pub fn ends_with_file_of(mut self, now: u64) {
        self.now = now;
    }
}

impl Drop for WatchedMap {
    fn drop(&mut self) {
        if let Some((number, host)) = self.number.zip(HOST.get()) {
            host.end()(number, self.now);
        }
    }
}

/// How many maps of this process were cut short so far. If the number grew while a pipe wrote something that
/// stays, such as a file, the output can hold zeros and must not be kept.
///
/// Cost: one call.
#[must_use]
pub fn maps_cut() -> u64 {
    HOST.get().map_or(0, |host| host.cut()())
}
