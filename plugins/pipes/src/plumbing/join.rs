//! The fields of several samples in one.

use forebay_core::{Error, Result, Schema, Str};

/// Makes one schema of those of several inputs, and remembers the last.
#[derive(Debug)]
pub(crate) struct Join {
    prefix: Option<Vec<String>>,
    /// An input, and a field of it that is left out.
    without: Option<(usize, Str)>,
    /// The schemas that were joined last, and what they gave.
    parts: Vec<Schema>,
    joined: Schema,
}

impl Join {
    /// With what to put before each input's names.
    pub(crate) fn new(prefix: Option<Vec<String>>) -> Self {
        Self { prefix, without: None, parts: Vec::new(), joined: Schema::empty() }
    }

    /// Leaves a field of one input out.
    pub(crate) fn without(self, input: usize, field: &str) -> Self {
        Self { without: Some((input, field.into())), ..self }
    }

    /// How many prefixes there are, if any.
    pub(crate) fn prefixes(&self) -> Option<usize> {
        self.prefix.as_ref().map(Vec::len)
    }

    /// What [`schema`](Join::schema) gave last.
    pub(crate) fn joined(&self) -> &Schema {
        &self.joined
    }

    /// The schema of a sample with the fields of all, in order.
    ///
    /// # Errors
    /// `Invalid` when two inputs have a field of one name.
    pub(crate) fn schema<'a>(
        &mut self,
        schemas: impl ExactSizeIterator<Item = &'a Schema> + Clone,
    ) -> Result<&Schema> {
        if self.parts.len() == schemas.len()
            && schemas.clone().zip(&self.parts).all(|(one, other)| one == other)
        {
            return Ok(&self.joined);
        }
        let mut names: Vec<(Str, usize)> = Vec::new();
        for (input, schema) in schemas.clone().enumerate() {
            let prefix = self.prefix.as_ref().and_then(|prefix| prefix.get(input));
            for name in schema.names() {
                if self.without.as_ref().is_some_and(|(at, field)| *at == input && field == name) {
                    continue;
                }
                let name = match prefix {
                    Some(prefix) => Str::from(format!("{prefix}{name}")),
                    None => name.clone(),
                };
                if let Some((_, other)) =
                    names.iter().find(|(known, other)| *known == name && *other != input)
                {
                    let message = format!(
                        "inputs {other} and {input} both have this field: tell them apart by `prefix`"
                    );
                    return Err(Error::invalid(message).context("field", name));
                }
                names.push((name, input));
            }
        }
        self.joined = Schema::new(names.into_iter().map(|(name, _)| name));
        self.parts = schemas.cloned().collect();
        Ok(&self.joined)
    }
}
