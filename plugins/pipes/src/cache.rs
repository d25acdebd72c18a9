//! What a pipe works out once for each schema.

use std::sync::{PoisonError, RwLock};

use forebay_core::{Result, Schema};

/// The most schemas remembered; a stream has a few.
const MOST: usize = 32;

/// Values made from schemas, for pipes that many threads share.
#[derive(Debug)]
pub(crate) struct Cache<T>(RwLock<Vec<(Schema, T)>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Clone> Cache<T> {
    /// The value for `schema`, made by `make` the first time. It must depend on nothing else.
    pub(crate) fn get(&self, schema: &Schema, make: impl FnOnce() -> Result<T>) -> Result<T> {
        {
            let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let same = known.iter().find(|(other, _)| other.is(schema));
            if let Some((_, value)) = same.or_else(|| known.iter().find(|(other, _)| other == schema)) {
                return Ok(value.clone());
            }
        }
        let value = make()?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((schema.clone(), value.clone()));
        Ok(value)
    }
}
