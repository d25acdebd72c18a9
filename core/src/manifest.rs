//! The manifest: plain bytes in their own section, which a host reads before any code of the plugin runs.
//!
//! A fixed head, then JSON made from [`PluginInfo`] while the plugin is compiled. The test below holds the head's layout.

mod writer;

use forebay_abi::{ABI_MAJOR, ABI_MINOR};

use self::writer::Writer;
use crate::descriptor::PluginInfo;

/// The first bytes of a manifest.
pub const MAGIC: [u8; 8] = *b"FOREBAY\0";
/// The version of the head; a host refuses another.
pub const VERSION: u32 = 1;
/// The target that this crate was compiled for. Plugin and host must agree.
pub const TARGET: &str = env!("FOREBAY_TARGET");
/// The compiler's version; for people.
pub const RUSTC: &str = env!("FOREBAY_RUSTC");
/// Bytes in the head.
pub const HEAD: usize = 40;

/// A manifest of which `N` bytes are JSON.
#[repr(C)]
pub struct Manifest<const N: usize> {
    magic: [u8; 8],
    version: u32,
    /// 1: tables checked by abi_stable.
    abi_kind: u32,
    abi_major: u32,
    abi_minor: u32,
    pointer_width: u8,
    /// 1 little, 2 big.
    endian: u8,
    /// 1 unwinds, 2 aborts.
    panic: u8,
    zero: u8,
    reserved: u32,
    json_len: u64,
    json: [u8; N],
}

impl<const N: usize> Manifest<N> {
    /// The manifest that says `info`, with the panic strategy that the plugin is compiled with.
    ///
    /// # Panics
    /// While compiling, when `N` is not [`json_len`] of `info`.
    #[must_use]
    pub const fn new(info: &PluginInfo, unwinds: bool) -> Self {
        let mut json = [0; N];
        let len = write(info, &mut json);
        assert!(len == N);
        Self {
            magic: MAGIC,
            version: VERSION,
            abi_kind: 1,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            pointer_width: usize::BITS as u8,
            endian: if cfg!(target_endian = "little") { 1 } else { 2 },
            panic: if unwinds { 1 } else { 2 },
            zero: 0,
            reserved: 0,
            json_len: N as u64,
            json,
        }
    }

    /// The manifest as a file holds it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        for word in [self.version, self.abi_kind, self.abi_major, self.abi_minor] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([self.pointer_width, self.endian, self.panic, self.zero]);
        bytes.extend(self.reserved.to_ne_bytes());
        bytes.extend(self.json_len.to_ne_bytes());
        bytes.extend(self.json);
        bytes
    }
}

/// How many bytes of JSON `info` makes.
#[must_use]
pub const fn json_len(info: &PluginInfo) -> usize {
    write(info, &mut [])
}

const fn write(info: &PluginInfo, out: &mut [u8]) -> usize {
    let mut w = Writer { out, len: 0 };
    w.raw("{");
    w.member("name", info.name);
    w.raw(",");
    w.member("version", info.version);
    w.raw(",");
    w.member("license", info.license);
    w.raw(",");
    w.member("repository", info.repository);
    w.raw(",");
    w.member("entry", info.entry);
    w.raw(",");
    w.member("rustc", RUSTC);
    w.raw(",");
    w.member("target", TARGET);
    w.raw(",");
    w.strings("cpu", info.cpu);
    if let Some(version) = info.state_version {
        w.raw(",\"state_version\":");
        w.number(version);
    }
    w.raw(",\"pipes\":[");
    let mut at = 0;
    while at < info.pipes.len() {
        w.comma(at);
        w.pipe(info.pipes[at].0, &info.pipes[at].1);
        at += 1;
    }
    w.raw("],\"decoders\":[");
    let mut at = 0;
    while at < info.decoders.len() {
        w.comma(at);
        w.decoder(&info.decoders[at]);
        at += 1;
    }
    w.raw("],\"stores\":[");
    let mut at = 0;
    while at < info.stores.len() {
        w.comma(at);
        w.store(&info.stores[at]);
        at += 1;
    }
    w.raw("]}");
    w.len
}

/// Whether a default says that there is none.
pub(crate) const fn is_required(default: &str) -> bool {
    matches!(default.as_bytes(), b"required")
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_head_is_laid_out_as_written_down() {
        type M = Manifest<3>;
        assert_eq!(
            [
                offset_of!(M, magic),
                offset_of!(M, version),
                offset_of!(M, abi_kind),
                offset_of!(M, abi_major),
                offset_of!(M, abi_minor),
                offset_of!(M, pointer_width),
                offset_of!(M, endian),
                offset_of!(M, panic),
                offset_of!(M, zero),
                offset_of!(M, reserved),
                offset_of!(M, json_len),
                offset_of!(M, json),
            ],
            [0, 8, 12, 16, 20, 24, 25, 26, 27, 28, 32, HEAD],
        );
    }

    #[test]
    fn names_are_escaped_and_the_version_of_states_is_there() {
        const INFO: PluginInfo = PluginInfo {
            name: "a \"quoted\" \\ name\n",
            version: "1",
            license: "",
            repository: "",
            entry: "e",
            cpu: &["avx2"],
            state_version: Some(12),
            pipes: &[],
            decoders: &[],
            stores: &[],
        };
        const LEN: usize = json_len(&INFO);
        let bytes = Manifest::<LEN>::new(&INFO, true).to_bytes();
        let json: serde_json::Value = serde_json::from_slice(&bytes[HEAD..]).unwrap();
        assert_eq!(json["name"], INFO.name);
        assert_eq!(json["cpu"][0], "avx2");
        assert_eq!(json["state_version"], 12);
    }
}
