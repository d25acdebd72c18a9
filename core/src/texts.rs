//! Many texts in one block of memory, for options with a list of up to a million paths.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
    value::{MapAccessDeserializer, SeqAccessDeserializer},
};
use serde_json::Value as Json;

use crate::{OptionType, descriptor::OptionKind, options::OneOrMany};

/// A list of texts in one block of memory. As an option, it takes one text or a list of texts. Use it for lists
/// that can be long.
///
/// Cost: the bytes of the texts, and eight more for each. No text is allocated by itself.
///
/// ```
/// use forebay_core::{Options, Texts, options};
///
/// options! {
///     /// Options of a source.
///     pub struct Paths {
///         /// What to read.
///         paths: Texts = required;
///     }
/// }
///
/// let options = Paths::parse(r#"{"paths": ["a.tar", "b.tar"]}"#)?;
/// assert_eq!(options.paths.get(1), Some("b.tar"));
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    text: String,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl Texts {
    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text with this number, from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(start..end)
    }

    /// The texts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn json(&self) -> Vec<Json> {
        self.iter().map(Json::from).collect()
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut these = Self::default();
        texts.into_iter().for_each(|text| these.push(text.as_ref()));
        these
    }
}

impl OptionType for Texts {
    const KIND: OptionKind = OneOrMany::<String>::KIND;

    fn read(value: Json) -> Result<Self, Json> {
        OneOrMany::<String>::read(value).map(|OneOrMany(texts)| texts.iter().collect())
    }

    fn of_texts(texts: Texts) -> Result<Self, Json> {
        Ok(texts)
    }
}

/// The value of an option as it was read from JSON text.
pub(crate) enum Given {
    /// A list of nothing but texts.
    Texts(Texts),
    Json(Json),
}

impl Given {
    /// As any other JSON.
    pub(crate) fn into_json(self) -> Json {
        match self {
            Self::Texts(texts) => Json::Array(texts.json()),
            Self::Json(value) => value,
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut texts = Texts::default();
        let other = Reading { texts: &mut texts, whole: true }.deserialize(deserializer)?;
        Ok(other.map_or(Self::Texts(texts), Self::Json))
    }
}

/// Reads a `whole` value, or one of its items: texts of a list go to `texts`, anything else is given.
struct Reading<'a> {
    texts: &'a mut Texts,
    whole: bool,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Option<Json>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Option<Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        if self.whole {
            return Ok(Some(text.into()));
        }
        self.texts.push(text);
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        if !self.whole {
            return Json::deserialize(SeqAccessDeserializer::new(items)).map(Some);
        }
        while let Some(item) = items.next_element_seed(Reading { texts: self.texts, whole: false })? {
            let Some(other) = item else { continue };
            let mut all = self.texts.json();
            all.push(other);
            while let Some(item) = items.next_element()? {
                all.push(item);
            }
            return Ok(Some(Json::Array(all)));
        }
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        Json::deserialize(MapAccessDeserializer::new(entries)).map(Some)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Some(Json::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_read_as_it_is() {
        for text in [
            "[]",
            r#"["a"]"#,
            r#"["a","b\n\"c\"","","ü"]"#,
            r#"["a",1,"b",["c"],{"d":"e"},null,true]"#,
            r#"[["a"],"b"]"#,
            r#"[1,2.5,-3]"#,
            r#""a""#,
            "18446744073709551615",
            "-1",
            "0.5",
            "null",
            "false",
            r#"{"a":["b"]}"#,
        ] {
            let given: Given = serde_json::from_str(text).unwrap();
            let of_texts =
                matches!(text, "[]") || text.starts_with("[\"a\"]") || text.starts_with("[\"a\",\"b");
            assert_eq!(matches!(given, Given::Texts(_)), of_texts, "{text}");
            assert_eq!(given.into_json(), serde_json::from_str::<Json>(text).unwrap(), "{text}");
        }
        assert!(serde_json::from_str::<Given>(r#"["a","#).is_err());
    }

    #[test]
    fn texts_come_back_in_order() {
        let texts: Texts = ["a", "", "bc", "ü"].iter().collect();
        assert_eq!((texts.len(), texts.is_empty()), (4, false));
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "", "bc", "ü"]);
        assert_eq!(texts.get(4), None);
        assert_eq!(format!("{texts:?}"), r#"["a", "", "bc", "ü"]"#);
    }
}
