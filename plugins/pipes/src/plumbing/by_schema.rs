//! What a pipe works out once for each schema.

use std::{
    borrow::Cow,
    sync::{OnceLock, PoisonError, RwLock},
};

use forebay_core::{Result, Schema};

/// The schemas that are found without a lock; a stream has a few.
const FIRST: usize = 8;
/// The most others that are remembered.
const MOST: usize = 32;

/// Values made from schemas, for pipes that many threads share.
///
/// The first schemas stay, so that threads which look them up write to nothing that the others read.
#[derive(Debug)]
pub(crate) struct BySchema<T> {
    first: [OnceLock<(Schema, T)>; FIRST],
    others: RwLock<Vec<(Schema, T)>>,
}

impl<T> Default for BySchema<T> {
    fn default() -> Self {
        Self { first: [const { OnceLock::new() }; FIRST], others: RwLock::default() }
    }
}

impl<T: Clone> BySchema<T> {
    /// The value for `schema`, made by `make` the first time. It must depend on nothing else.
    #[inline]
    pub(crate) fn get(&self, schema: &Schema, make: impl FnOnce() -> Result<T>) -> Result<Cow<'_, T>> {
        let first = || self.first.iter().map_while(OnceLock::get);
        match first().find(|(known, _)| known.is(schema)) {
            Some((_, value)) => Ok(Cow::Borrowed(value)),
            None => self.search(schema, make),
        }
    }

    /// As [`get`](BySchema::get), for a schema that is none of the first by its address.
    fn search(&self, schema: &Schema, make: impl FnOnce() -> Result<T>) -> Result<Cow<'_, T>> {
        let mut first = self.first.iter().map_while(OnceLock::get);
        if let Some((_, value)) = first.find(|(known, _)| known == schema) {
            return Ok(Cow::Borrowed(value));
        }
        {
            let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
            let same = others.iter().find(|(known, _)| known.is(schema));
            if let Some((_, value)) = same.or_else(|| others.iter().find(|(known, _)| known == schema)) {
                return Ok(Cow::Owned(value.clone()));
            }
        }
        let value = make()?;
        let mut known = (schema.clone(), value.clone());
        for place in &self.first {
            match place.set(known) {
                Ok(()) => return Ok(Cow::Owned(value)),
                Err(back) => known = back,
            }
        }
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        if others.len() == MOST {
            others.remove(0);
        }
        others.push(known);
        Ok(Cow::Owned(value))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn each_schema_is_worked_out_once_until_there_are_too_many() {
        let (cache, made) = (BySchema::default(), Cell::new(0));
        let get = |count: usize, schema: &Schema| {
            let value = cache.get(schema, || {
                made.set(made.get() + 1);
                Ok(count)
            });
            assert_eq!(*value.unwrap(), count);
        };
        let schema = |count: usize| Schema::new((0..count).map(|at| at.to_string()));
        for _ in 0..3 {
            (0..FIRST + MOST).for_each(|count| get(count, &schema(count)));
        }
        assert_eq!(made.get(), FIRST + MOST, "also those that are the same only by their names");
        get(100, &schema(100));
        (0..FIRST).chain([100]).for_each(|count| get(count, &schema(count)));
        assert_eq!(made.get(), FIRST + MOST + 1);
        get(FIRST, &schema(FIRST));
        assert_eq!(made.get(), FIRST + MOST + 2, "the oldest of the others had to go");
        assert!(cache.get(&schema(200), || Err(forebay_core::Error::invalid("x"))).is_err());
    }
}
