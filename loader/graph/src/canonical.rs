//! A graph's values as JSON text: one text for one value, with keys sorted and no space.

use serde_json::Value;

/// How long a part of the text is: it stays in the processor's cache, where that of a list of a million paths would not.
const PART: usize = 1 << 14;

/// A text, of which only the last part is held; `each` sees the parts.
pub(super) struct Text<E> {
    part: String,
    each: E,
}

impl<E: FnMut(&str)> Text<E> {
    pub(super) fn new(each: E) -> Self {
        Self { part: String::with_capacity(2 * PART), each }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.part.push_str(text);
    }

    /// Shows what is left.
    pub(super) fn flush(&mut self) {
        (self.each)(&self.part);
        self.part.clear();
    }

    pub(super) fn value(&mut self, value: &Value) {
        if self.part.len() >= PART {
            self.flush();
        }
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.push("[");
                for (at, item) in items.iter().enumerate() {
                    self.push(if at > 0 { "," } else { "" });
                    self.value(item);
                }
                self.push("]");
            }
            Value::Object(entries) => {
                // The map keeps the written order when some crate of the build asks serde_json for that.
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                self.entries(entries.into_iter().map(|(key, value)| (key.as_str(), value)));
            }
            // Equal to 0.0, so it must not print as -0.0.
            Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => self.push("0.0"),
            // A number, true, false or null.
            plain => self.push(&plain.to_string()),
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        // Looking at all of it, without a way out, is what a compiler makes fast.
        let plain = |plain: bool, byte: &u8| plain & (*byte >= 0x20) & (*byte != b'"') & (*byte != b'\\');
        if text.as_bytes().iter().fold(true, plain) {
            self.part.push('"');
            self.push(text);
            self.part.push('"');
        } else {
            self.push(&Value::from(text).to_string());
        }
    }

    pub(super) fn entries<'a>(&mut self, entries: impl Iterator<Item = (&'a str, &'a Value)>) {
        self.push("{");
        for (at, (key, value)) in entries.enumerate() {
            self.push(if at > 0 { "," } else { "" });
            self.string(key);
            self.push(":");
            self.value(value);
        }
        self.push("}");
    }
}
