//! Expressions over the fields of a sample, in the Common Expression Language (CEL): compiled once, run on values where they lie.
//!
//! The language is that of <https://github.com/google/cel-spec>; the crate `cel` parses it. What runs it is our own: the crate's
//! interpreter wants all fields in values of its own first, which costs ten times as much as most expressions do.

mod compile;
mod fold;
mod functions;
mod node;
mod numbers;
#[cfg(test)]
mod tests;
mod val;

use forebay_core::{Error, Key, Result, Schema, Value};

use self::{
    node::{Node, Row},
    val::Val,
};

/// Where in a sample the fields of an expression are, in the order in which it first names them.
pub(crate) type Places = Box<[Option<usize>]>;

/// An expression that was compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    text: String,
    node: Node,
    /// The fields it may name: `a.b` is the field of that name, or else `b` in `a`.
    fields: Vec<String>,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// `Invalid`, with the place in it.
    pub(crate) fn new(text: &str) -> Result<Self> {
        let (node, fields) = compile::compile(text)?;
        Ok(Self { text: text.to_owned(), node, fields })
    }

    /// Where its fields are in samples of a schema.
    pub(crate) fn places(&self, schema: &Schema) -> Places {
        self.fields.iter().map(|field| schema.position(field)).collect()
    }

    /// Whether it holds of a sample; `places` are those of its schema.
    ///
    /// # Errors
    /// `Invalid` when it gives no truth value, names what is not there, or does to values what cannot be done to them.
    #[inline]
    pub(crate) fn holds(
        &self,
        places: &Places,
        key: &Key,
        schema: &Schema,
        values: &[Value],
    ) -> Result<bool> {
        let given = match self.node.eval(&Row { places, key, schema, values }, None) {
            Ok(Val::Bool(truth)) => return Ok(truth),
            Ok(other) => Error::invalid(format!("it gives {}, expected true or false", other.kind())),
            Err(error) => error,
        };
        Err(self.blame(given))
    }

    /// What it gives for a sample. A field that is taken as it is shares its memory.
    ///
    /// # Errors
    /// `Invalid` when it names what is not there, or does to values what cannot be done to them.
    pub(crate) fn value(
        &self,
        places: &Places,
        key: &Key,
        schema: &Schema,
        values: &[Value],
    ) -> Result<Value> {
        let row = Row { places, key, schema, values };
        let value = match &self.node {
            Node::Field(at, name) => row.field(*at, name).cloned(),
            node => node.eval(&row, None).map(Val::into_value),
        };
        value.map_err(|error| self.blame(error))
    }

    #[cold]
    fn blame(&self, error: Error) -> Error {
        error.context("expression", &self.text)
    }
}
