//! Errors on their way between processes.

use forebay_core::{Error, abi::Fault};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An error on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Problem {
    kind: u32,
    message: String,
    context: Vec<(String, String)>,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let Fault { kind, message, context } = error.into();
        let context = context.into_iter().map(|place| (place.0.into(), place.1.into())).collect();
        Self { kind, message: message.into(), context }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let Problem { kind, message, context } = problem;
        let context = context.into_iter().map(|(name, value)| (name.into(), value.into()).into()).collect();
        Fault { kind, message: message.into(), context }.into()
    }
}

/// For `#[serde(with = "problem")]`.
pub(crate) fn serialize<S: Serializer>(error: &Error, serializer: S) -> Result<S::Ok, S::Error> {
    Problem::from(error.clone()).serialize(serializer)
}

/// For `#[serde(with = "problem")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Error, D::Error> {
    Problem::deserialize(deserializer).map(Error::from)
}
