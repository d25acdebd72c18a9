//! Maps of files, which the host watches: another program may cut a file short while it is mapped.

use std::sync::OnceLock;

use forebay_abi::{MapsRef, abi_stable::std_types::RStr};

/// The host of this process, which never changes.
static HOST: OnceLock<MapsRef> = OnceLock::new();

/// Takes what the host offers; called by the table that [`export_plugin!`](crate::export_plugin) writes.
pub extern "C" fn attach(host: MapsRef) {
    let _ = HOST.set(host); // It is the same one again.
}

/// A map of a file that the host watches, until this is dropped; to be dropped before the map goes.
///
/// If another program cuts the file short, touching the bytes that are gone would end the process by SIGBUS. The host then shows zeros in
/// their place, and the run fails with an error that names the file. Without a host, as in tests of a plugin alone, nobody watches.
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
    /// Has the host watch a map for reading, which shows the file at `path`.
    #[must_use]
    pub fn new(map: &[u8], path: &str) -> Self {
        let begin = |host: &MapsRef| host.begin()(map.as_ptr().addr(), map.len(), RStr::from(path));
        Self { number: HOST.get().map(begin), now: u64::MAX }
    }

    /// Ends, and says how many bytes the file has now: bytes behind its end in its last page show as zeros without a signal.
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

/// How many maps of this process were cut short so far. If the number grew while a pipe wrote something that stays, such as a file, what it
/// wrote may hold zeros and must not be kept.
///
/// Cost: one call.
#[must_use]
pub fn maps_cut() -> u64 {
    HOST.get().map_or(0, |host| host.cut()())
}
