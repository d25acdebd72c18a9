//! `Length`: how long a sample is, as an expression says.

use forebay_core::{Error, Key, Result, Schema, Value, View};

use crate::plumbing::expression::{Draws, Expression, Places};

/// An expression that gives a number, or what has a length.
#[derive(Debug)]
pub(crate) struct Length {
    expression: Expression,
    /// The last schema, and where the fields of the expression are in it.
    known: Option<(Schema, Places)>,
}

impl Length {
    /// # Errors
    /// `Invalid`, with the place in the expression, naming the option `length`.
    pub(crate) fn new(expression: &str) -> Result<Self> {
        let expression = Expression::new(expression).map_err(|error| error.context("option", "length"))?;
        Ok(Self { expression, known: None })
    }

    /// The length of a sample: an integer itself; the items of a list, the first axis of a tensor, the characters of a text, the
    /// bytes of bytes.
    ///
    /// # Errors
    /// Those of the expression, and `Invalid` when it gives something else; they name the sample.
    #[inline]
    pub(crate) fn of(&mut self, key: &Key, schema: &Schema, values: &[Value]) -> Result<usize> {
        self.measure(key, schema, values).map_err(|error| error.context("sample", key))
    }

    fn measure(&mut self, key: &Key, schema: &Schema, values: &[Value]) -> Result<usize> {
        if !self.known.as_ref().is_some_and(|(known, _)| known.is(schema)) {
            self.known = Some((schema.clone(), self.expression.places(schema)));
        }
        let Some((_, places)) = &self.known else { return Ok(0) };
        let draws = Draws::none();
        if let Some(length) = self.expression.quick(places, values, &draws).and_then(|found| found.count()) {
            return Ok(length);
        }
        let value = self.expression.long_value(places, key, schema, values, &draws)?;
        let length = match value.view() {
            View::Int(length) => usize::try_from(length).ok(),
            View::UInt(length) => usize::try_from(length).ok(),
            View::List(items) => Some(items.len()),
            View::Tensor(tensor) => tensor.shape().first().and_then(|&axis| usize::try_from(axis).ok()),
            View::Str(text) => Some(text.chars().count()),
            View::Bytes(bytes) => Some(bytes.len()),
            _ => None,
        };
        length.ok_or_else(|| {
            let message = "the length is no integer from 0, and nothing that has one";
            Error::invalid(message).context("option", "length")
        })
    }
}
