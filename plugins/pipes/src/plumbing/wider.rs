//! Samples of a stream with more fields than they came with.

use std::mem;

use forebay_core::{Error, Io, Result, Sample, Schema, Str, Value};

/// Takes samples and puts new fields behind theirs, in memory that is used again.
#[derive(Debug)]
pub(crate) struct Wider {
    names: Vec<Str>,
    /// The last schema, and the same with the new names behind.
    known: Option<(Schema, Schema)>,
    sample: Sample,
}

impl Wider {
    /// For fields of these names, none of which stands there twice.
    pub(crate) fn new<N: Into<Str>>(names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { names, known: None, sample: Sample::default() }
    }

    /// Takes a sample and adds these values, one for each new name; says whether one waited.
    ///
    /// # Errors
    /// `Invalid`, with the sample, which is gone then, and the field, where it has a field of a new name.
    #[inline]
    pub(crate) fn take(&mut self, io: &mut Io, added: impl IntoIterator<Item = Value>) -> Result<bool> {
        let Self { names, known, sample } = self;
        let Some(input) = io.input(0) else { return Ok(false) };
        let Some((_, key, schema, _)) = input.peek() else { return Ok(false) };
        let wide = match known {
            Some((known, wide)) if known.is(schema) => &*wide,
            known => {
                if let Some(twice) = names.iter().find(|name| schema.position(name).is_some()) {
                    let error =
                        Error::invalid("a field of this name is there already").context("field", twice);
                    let error = error.context("sample", key);
                    input.advance();
                    return Err(error);
                }
                let wide = Schema::new(schema.names().iter().chain(&*names).cloned());
                &known.insert((schema.clone(), wide)).1
            }
        };
        input.pop_with(|uid, key, _, values| {
            sample.refill(uid, key.take(), wide, values.iter_mut().map(mem::take).chain(added));
        });
        Ok(true)
    }

    /// The sample that was taken last, until it is given.
    pub(crate) fn sample(&mut self) -> &mut Sample {
        &mut self.sample
    }
}
