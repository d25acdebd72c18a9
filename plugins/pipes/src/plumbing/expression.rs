//! Expressions over the fields of a sample, in the Common Expression Language (CEL): compiled once, run on values where they lie.
//!
//! The language is that of <https://github.com/google/cel-spec>; the crate `cel` parses it. What runs it is our own: the crate's
//! interpreter wants all fields in values of its own first, which costs ten times as much as most expressions do.

mod canonical;
mod compile;
mod draws;
mod fold;
mod functions;
mod node;
mod numbers;
mod quick;
mod rank;
mod reduce;
#[cfg(test)]
mod tests;
mod val;

use forebay_core::{Chunk, Error, Key, Result, Schema, Value};

pub(crate) use self::{
    canonical::{shown, text, write, write_text, write_whole},
    draws::Draws,
    rank::Rank,
};
use self::{
    node::{Node, Row, there},
    quick::Quick,
    val::Val,
};

/// Where in a sample the fields of an expression are, in the order in which it first names them.
pub(crate) type Places = Box<[Option<usize>]>;

/// An expression that was compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    text: String,
    node: Node,
    /// Whether the [short way](quick) is worth trying.
    quick: bool,
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
        Ok(Self { text: text.to_owned(), quick: node.is_quick(), node, fields })
    }

    /// Where its fields are in samples of a schema.
    pub(crate) fn places(&self, schema: &Schema) -> Places {
        self.fields.iter().map(|field| schema.position(field)).collect()
    }

    /// Whether it holds of a sample; `places` are those of its schema, `draws` its random numbers.
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
        draws: &Draws,
    ) -> Result<bool> {
        if let Some(truth) = self.quick(places, values, draws).and_then(Quick::truth) {
            return Ok(truth);
        }
        let given = match self.node.eval(&Row { places, key, schema, values, draws }, None) {
            Ok(Val::Bool(truth)) => return Ok(truth),
            Ok(other) => Error::invalid(format!("it gives {}, expected true or false", other.kind())),
            Err(error) => error,
        };
        Err(self.blame(given))
    }

    /// The field that it is, as it lies in a sample; none where it is more than that, or the field is not there.
    #[inline]
    fn field_of<'a>(&self, places: &Places, values: &'a [Value]) -> Option<&'a Value> {
        match self.node {
            Node::Field(at, _) => there(places, values, at),
            _ => None,
        }
    }

    /// What it gives for a sample, if that is found the [short way](quick); if not, nothing was drawn.
    ///
    /// Who puts it straight where it goes saves what [`value`](Expression::value) costs to move it.
    #[inline]
    pub(crate) fn quick(&self, places: &Places, values: &[Value], draws: &Draws) -> Option<Quick> {
        if !self.quick {
            return None;
        }
        let before = draws.given();
        let found = self.node.quick(places, values, draws);
        if found.is_none() && draws.given() > before {
            draws.go_back(before);
        }
        found
    }

    /// What it gives for a sample. A field that is taken as it is shares its memory.
    ///
    /// # Errors
    /// `Invalid` when it names what is not there, or does to values what cannot be done to them.
    #[inline]
    pub(crate) fn value(
        &self,
        places: &Places,
        key: &Key,
        schema: &Schema,
        values: &[Value],
        draws: &Draws,
    ) -> Result<Value> {
        match self.quick(places, values, draws) {
            Some(found) => Ok(found.into_value()),
            None => self.long_value(places, key, schema, values, draws),
        }
    }

    /// As [`value`](Expression::value), found the long way.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn long_value(
        &self,
        places: &Places,
        key: &Key,
        schema: &Schema,
        values: &[Value],
        draws: &Draws,
    ) -> Result<Value> {
        let value = self.node.value(&Row { places, key, schema, values, draws });
        value.map_err(|error| self.blame(error))
    }

    /// The field that it is, if it is nothing but that.
    pub(crate) fn field(&self) -> Option<&str> {
        match &self.node {
            Node::Field(_, name) => Some(name),
            _ => None,
        }
    }

    #[cold]
    fn blame(&self, error: Error) -> Error {
        error.context("expression", &self.text)
    }
}

/// An expression for the samples of a stream, which remembers where the last schema has its fields.
#[derive(Debug)]
pub(crate) struct Running {
    expression: Expression,
    known: Option<(Schema, Places)>,
}

impl Running {
    /// Compiles the expression that an option holds.
    ///
    /// # Errors
    /// `Invalid`, with the option and the place in the expression.
    pub(crate) fn new(text: &str, option: &'static str) -> Result<Self> {
        let expression = Expression::new(text).map_err(|error| error.context("option", option))?;
        Ok(Self { expression, known: None })
    }

    /// The expression, and where its fields are in samples of a schema.
    #[inline]
    pub(crate) fn of(&mut self, schema: &Schema) -> (&Expression, &Places) {
        let Self { expression, known } = self;
        if known.as_ref().is_some_and(|(known, _)| !known.is(schema)) {
            *known = None;
        }
        let (_, places) = known.get_or_insert_with(|| (schema.clone(), expression.places(schema)));
        (expression, places)
    }

    /// Whether it holds of the foremost sample; none where there is no sample. An error names the sample.
    #[inline]
    pub(crate) fn holds(&mut self, input: &Chunk) -> Option<Result<bool>> {
        let (_, key, schema, values) = input.peek()?;
        let (expression, places) = self.of(schema);
        let holds = expression.holds(places, key, schema, values, &Draws::none());
        Some(holds.map_err(|error| error.context("sample", key)))
    }
}
