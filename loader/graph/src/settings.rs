//! How to run a graph, kept apart from the graph itself.

use forebay_core::parse_bytes;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize};

/// How to run a graph. Settings that are not set have the loader's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// Where the work runs, such as `inline` or `threads:4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// The seed of all random choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many epochs to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// The most bytes in flight; written as a number, or as text with a unit (`"512MiB"`).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "bytes")]
    pub budget: Option<u64>,
    /// The most samples that wait between two segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
}

impl Settings {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = u64;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a size in bytes, such as 1000000 or \"512MiB\"")
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<u64, E> {
            Ok(value)
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<u64, E> {
            u64::try_from(value).map_err(|_| E::custom(format!("size is {value}, expected at least 0")))
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
            parse_bytes(text).map_err(|error| E::custom(error.message()))
        }
    }

    from.deserialize_any(Bytes).map(Some).map_err(D::Error::custom)
}
