//! Writes the JSON of a manifest while a plugin is compiled.

use super::is_required;
use crate::{
    Access, Condition, Drops, PipeInfo, Randomness,
    descriptor::{Class, DecoderInfo, Described, List, Magic, OptionSpec, StoreInfo},
};

/// Writes JSON while compiling: past the end of `out` it only counts.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut [u8],
    pub(super) len: usize,
}

impl Writer<'_> {
    const fn byte(&mut self, byte: u8) {
        if self.len < self.out.len() {
            self.out[self.len] = byte;
        }
        self.len += 1;
    }

    pub(super) const fn raw(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            self.byte(bytes[at]);
            at += 1;
        }
    }

    pub(super) const fn comma(&mut self, at: usize) {
        if at > 0 {
            self.raw(",");
        }
    }

    const fn string(&mut self, text: &str) {
        self.raw("\"");
        self.escaped(text);
        self.raw("\"");
    }

    const fn escaped(&mut self, text: &str) {
        let bytes = text.as_bytes();
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
    }

    const fn hex(&mut self, byte: u8) {
        self.byte(b"0123456789abcdef"[(byte >> 4) as usize]);
        self.byte(b"0123456789abcdef"[(byte & 15) as usize]);
    }

    const fn name(&mut self, name: &str) {
        self.string(name);
        self.raw(":");
    }

    pub(super) const fn member(&mut self, name: &str, value: &str) {
        self.name(name);
        self.string(value);
    }

    /// An empty text for none.
    const fn maybe(&mut self, name: &str, value: Option<&str>) {
        self.member(
            name,
            match value {
                Some(value) => value,
                None => "",
            },
        );
    }

    /// One text with a space between the words.
    const fn words(&mut self, name: &str, words: &[&str]) {
        self.name(name);
        self.raw("\"");
        let mut at = 0;
        while at < words.len() {
            if at > 0 {
                self.raw(" ");
            }
            self.escaped(words[at]);
            at += 1;
        }
        self.raw("\"");
    }

    pub(super) const fn strings(&mut self, name: &str, values: &[&str]) {
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

    pub(super) const fn number(&mut self, number: u32) {
        if number >= 10 {
            self.number(number / 10);
        }
        self.byte(b'0' + (number % 10) as u8);
    }

    const fn truth(&mut self, name: &str, value: bool) {
        self.name(name);
        self.raw(if value { "true" } else { "false" });
    }

    pub(super) const fn pipe(&mut self, class: Class, pipe: &Described<PipeInfo>) {
        let info = &pipe.info;
        self.raw("{");
        self.member("name", info.name);
        self.raw(",");
        self.member("class", class.name());
        self.raw(",");
        self.member("summary", info.summary);
        self.raw(",");
        self.words("also", info.also);
        self.raw(",");
        self.layout(info, matches!(class, Class::Source));
        self.raw(",");
        self.audit(info);
        self.raw(",");
        self.order(info);
        self.raw(",");
        self.truth("parallel", info.placement.parallel);
        self.raw(",");
        self.truth("decodes", info.placement.decodes);
        self.raw(",");
        self.member("on", info.placement.on.name());
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

    const fn layout(&mut self, info: &PipeInfo, source: bool) {
        let layout = &info.layout;
        self.raw("\"inputs\":[");
        self.number(if source { 0 } else { layout.inputs.0 });
        self.raw(",");
        self.number(if source { 0 } else { layout.inputs.1 });
        self.raw("],\"outputs\":");
        self.number(layout.outputs);
        self.raw(",");
        self.maybe("outputs_option", layout.outputs_option);
        self.raw(",");
        self.words("per_input", layout.per_input);
        self.raw(",");
        self.maybe("stacks", layout.stacks);
        self.raw(",");
        match &layout.gives {
            Some(noun) => self.words("gives", &[noun.one, noun.many]),
            None => self.member("gives", ""),
        }
        self.raw(",");
        self.truth("indexed", matches!(layout.access, Access::Indexed));
        self.raw(",");
        self.truth("samples", matches!(layout.access, Access::Sampler));
        self.raw(",");
        match &layout.folders_option {
            Some(option) => self.words("folders_option", &[option.names, option.root]),
            None => self.member("folders_option", ""),
        }
    }

    const fn audit(&mut self, info: &PipeInfo) {
        let audit = &info.audit;
        self.member("uids", audit.uids.name());
        self.raw(",");
        self.maybe("uids_option", audit.uids_option);
        self.raw(",");
        match audit.drops {
            Drops::Never => self.member("drops", ""),
            Drops::Always => self.member("drops", "*"),
            Drops::With(options) => self.words("drops", options),
        }
        self.raw(",");
        self.truth("writes", audit.writes);
    }

    const fn order(&mut self, info: &PipeInfo) {
        let order = &info.order;
        self.truth("shuffles", order.shuffles);
        self.raw(",");
        self.draws(&order.draws);
        self.raw(",");
        self.maybe("takes", order.takes);
        self.raw(",");
        self.truth("shards", order.shards);
        self.raw(",");
        self.truth("keeps", order.keeps);
        self.raw(",");
        self.maybe("identity_option", order.identity_option);
        self.raw(",");
        self.truth("rewinds", order.rewinds);
    }

    /// `option=value option~text`, or `*` for always.
    const fn draws(&mut self, draws: &Randomness) {
        let conditions: &[Condition] = match draws {
            Randomness::Never => &[],
            Randomness::Always => return self.member("draws", "*"),
            Randomness::If(conditions) => conditions,
        };
        self.name("draws");
        self.raw("\"");
        let mut at = 0;
        while at < conditions.len() {
            if at > 0 {
                self.raw(" ");
            }
            let (option, sign, value) = match conditions[at] {
                Condition::Is(option, value) => (option, "=", value),
                Condition::Contains(option, text) => (option, "~", text),
            };
            self.escaped(option);
            self.raw(sign);
            self.escaped(value);
            at += 1;
        }
        self.raw("\"");
    }

    pub(super) const fn decoder(&mut self, decoder: &Described<DecoderInfo>) {
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

    pub(super) const fn store(&mut self, store: &Described<StoreInfo>) {
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
