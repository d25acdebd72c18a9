//! The manifest: plain bytes in a section of their own, which a host reads before any code of the plugin runs.
//!
//! A fixed head, then JSON made from [`PluginInfo`] while the plugin is compiled. The test below holds the head's layout.

use forebay_abi::{ABI_MAJOR, ABI_MINOR};

use crate::descriptor::{
    Class, DecoderInfo, Described, List, Magic, OptionSpec, PipeInfo, PluginInfo, StoreInfo,
};

/// The first bytes of a manifest.
pub const MAGIC: [u8; 8] = *b"FOREBAY\0";
/// The version of the head; a host refuses another.
pub const VERSION: u32 = 1;
/// What this crate was compiled for; plugin and host must agree.
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

/// Writes JSON while compiling: past the end of `out` it only counts.
struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    const fn byte(&mut self, byte: u8) {
        if self.len < self.out.len() {
            self.out[self.len] = byte;
        }
        self.len += 1;
    }

    const fn raw(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            self.byte(bytes[at]);
            at += 1;
        }
    }

    const fn comma(&mut self, at: usize) {
        if at > 0 {
            self.raw(",");
        }
    }

    const fn string(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.raw("\"");
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'"' | b'\\' => {
                    self.byte(b'\\');
                    self.byte(bytes[at]);
                }
                control @ 0..0x20 => {
                    self.raw("\\u00");
                    self.hex(control);
                }
                byte => self.byte(byte),
            }
            at += 1;
        }
        self.raw("\"");
    }

    const fn hex(&mut self, byte: u8) {
        self.byte(b"0123456789abcdef"[(byte >> 4) as usize]);
        self.byte(b"0123456789abcdef"[(byte & 15) as usize]);
    }

    const fn name(&mut self, name: &str) {
        self.string(name);
        self.raw(":");
    }

    const fn member(&mut self, name: &str, value: &str) {
        self.name(name);
        self.string(value);
    }

    const fn strings(&mut self, name: &str, values: &[&str]) {
        self.name(name);
        self.raw("[");
        let mut at = 0;
        while at < values.len() {
            self.comma(at);
            self.string(values[at]);
            at += 1;
        }
        self.raw("]");
    }

    const fn number(&mut self, number: u32) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.byte(b'0' + (number % 10) as u8);
    }

    const fn truth(&mut self, name: &str, value: bool) {
        self.name(name);
        self.raw(if value { "true" } else { "false" });
    }

    const fn pipe(&mut self, class: Class, pipe: &Described<PipeInfo>) {
        let info = &pipe.info;
        let source = matches!(class, Class::Source);
        self.raw("{");
        self.member("name", info.name);
        self.raw(",");
        self.member("class", class.name());
        self.raw(",");
        self.member("summary", info.summary);
        self.raw(",");
        self.member("also", info.also);
        self.raw(",\"inputs\":[");
        self.number(if source { 0 } else { info.inputs.0 });
        self.raw(",");
        self.number(if source { 0 } else { info.inputs.1 });
        self.raw("],\"outputs\":");
        self.number(info.outputs);
        self.raw(",");
        self.member("outputs_option", info.outputs_option);
        self.raw(",");
        self.member("per_input", info.per_input);
        self.raw(",");
        self.member("stacks", info.stacks);
        self.raw(",");
        self.member("uids_option", info.uids_option);
        self.raw(",");
        self.member("gives", info.gives);
        self.raw(",");
        self.member("uids", info.uids.name());
        self.raw(",");
        self.member("drops", info.drops);
        self.raw(",");
        self.member("takes", info.takes);
        self.raw(",");
        self.truth("writes", info.writes);
        self.raw(",");
        self.truth("parallel", info.parallel);
        self.raw(",");
        self.truth("indexed", info.indexed);
        self.raw(",");
        self.truth("samples", info.samples);
        self.raw(",");
        self.truth("shuffles", info.shuffles);
        self.raw(",");
        self.member("draws", info.draws);
        self.raw(",");
        self.truth("keeps", info.keeps);
        self.raw(",");
        self.member("identity_option", info.identity_option);
        self.raw(",");
        self.member("folders_option", info.folders_option);
        self.raw(",");
        self.truth("rewinds", info.rewinds);
        self.raw(",");
        self.truth("shards", info.shards);
        self.raw(",");
        self.truth("decodes", info.decodes);
        self.raw(",");
        self.member("on", info.on.name());
        self.raw(",");
        if let Some(opens) = &info.opens {
            self.raw("\"opens\":{");
            self.strings("extensions", opens.extensions);
            self.raw(",");
            self.magic(opens.magic);
            self.raw(",");
            self.member("then", opens.then);
            self.raw("},");
        }
        self.options(pipe.options);
        self.raw("}");
    }

    const fn decoder(&mut self, decoder: &Described<DecoderInfo>) {
        let info = &decoder.info;
        self.raw("{");
        self.member("name", info.name);
        self.raw(",");
        self.member("summary", info.summary);
        self.raw(",\"priority\":");
        self.number(info.priority);
        self.raw(",");
        self.strings("extensions", info.extensions);
        self.raw(",");
        self.strings("media_types", info.media_types);
        self.raw(",");
        self.magic(info.magic);
        self.raw(",");
        self.options(decoder.options);
        self.raw("}");
    }

    const fn magic(&mut self, magic: &[Magic]) {
        self.raw("\"magic\":[");
        let mut at = 0;
        while at < magic.len() {
            self.comma(at);
            self.raw("{\"offset\":");
            self.number(magic[at].offset);
            self.raw(",\"bytes\":\"");
            let mut byte = 0;
            while byte < magic[at].bytes.len() {
                self.hex(magic[at].bytes[byte]);
                byte += 1;
            }
            self.raw("\"}");
            at += 1;
        }
        self.raw("]");
    }

    const fn store(&mut self, store: &Described<StoreInfo>) {
        self.raw("{");
        self.member("name", store.info.name);
        self.raw(",");
        self.member("summary", store.info.summary);
        self.raw(",");
        self.strings("schemes", store.info.schemes);
        self.raw(",");
        self.options(store.options);
        self.raw("}");
    }

    const fn options(&mut self, options: &[OptionSpec]) {
        self.raw("\"options\":[");
        let mut at = 0;
        while at < options.len() {
            self.comma(at);
            self.option(&options[at]);
            at += 1;
        }
        self.raw("]");
    }

    const fn option(&mut self, option: &OptionSpec) {
        self.raw("{");
        self.member("name", option.name);
        self.raw(",");
        self.member("kind", option.kind.base);
        self.raw(",");
        let list = match option.kind.list {
            List::No => "no",
            List::Yes => "yes",
            List::Either => "either",
        };
        self.member("list", list);
        self.raw(",");
        self.truth("optional", option.kind.optional);
        self.raw(",");
        self.truth("required", is_required(option.default));
        self.raw(",\"default\":");
        assert!(!is_grouped(option.default), "a default is written as JSON, without underscores in numbers");
        self.raw(if is_required(option.default) { "null" } else { option.default });
        self.raw(",\"min\":");
        self.raw(if option.min.is_empty() { "null" } else { option.min });
        self.raw(",\"max\":");
        self.raw(if option.max.is_empty() { "null" } else { option.max });
        self.raw(",");
        self.strings("choices", option.choices);
        self.raw(",");
        self.member("doc", option.doc.trim_ascii());
        self.raw("}");
    }
}

/// Whether a default is a number with underscores, as Rust may write it and JSON not.
const fn is_grouped(default: &str) -> bool {
    let bytes = default.as_bytes();
    let number = !bytes.is_empty() && (bytes[0].is_ascii_digit() || bytes[0] == b'-');
    let mut at = 0;
    while number && at < bytes.len() {
        if bytes[at] == b'_' {
            return true;
        }
        at += 1;
    }
    false
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
