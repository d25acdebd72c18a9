//! One training example, as an author holds it.

use std::fmt;

use crate::{Key, Schema, Str, Value};

/// One training example: ordered, named values, a [`Key`] a person can open, and a uid.
///
/// The uid is fixed where the sample is born and says nothing of order; random draws for the sample
/// are keyed by it. A batch is a sample too, whose tensors have one more leading axis.
///
/// ```
/// use forebay_abi::{Key, Sample, Value};
///
/// let mut sample = Sample::new(7, Key::default());
/// sample.set("label", Value::from(3_i64));
/// assert_eq!(sample.get("label").and_then(Value::as_i64), Some(3));
/// assert!(sample.get("image").is_none());
/// ```
#[derive(Default)]
pub struct Sample {
    pub(crate) uid: u64,
    pub(crate) key: Key,
    pub(crate) schema: Schema,
    pub(crate) values: Vec<Value>,
    /// The schema before this one: the memory of a sample goes to and fro between two while a chunk is mapped, and counts no
    /// references then.
    before: Schema,
}

impl Sample {
    /// A sample without fields.
    #[must_use]
    pub fn new(uid: u64, key: Key) -> Self {
        Self { uid, key, ..Self::default() }
    }

    /// A sample with one value for each name of `schema`; missing values are null, surplus ones dropped.
    #[must_use]
    pub fn with_schema(uid: u64, key: Key, schema: Schema, mut values: Vec<Value>) -> Self {
        values.resize(schema.len(), Value::NULL);
        Self { uid, key, schema, values, before: Schema::empty() }
    }

    /// The number fixed at the source.
    #[must_use]
    pub fn uid(&self) -> u64 {
        self.uid
    }

    /// Gives the sample another number; for pipes that deliver one sample several times.
    pub fn set_uid(&mut self, uid: u64) {
        self.uid = uid;
    }

    /// Where it came from.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Says where it came from.
    pub fn set_key(&mut self, key: Key) {
        self.key = key;
    }

    /// The names of the fields.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The values, one for each name.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The values, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [Value] {
        &mut self.values
    }

    /// Names and values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&Str, &Value)> {
        self.schema.names().iter().zip(&self.values)
    }

    /// The value of the field called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(self.schema.position(name)?)
    }

    /// Sets the field called `name`, which goes to the end if it is new.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        match self.schema.position(name) {
            Some(index) => self.values[index] = value.into(),
            None => {
                self.schema = Schema::new(self.schema.names().iter().cloned().chain([Str::from(name)]));
                self.values.push(value.into());
            }
        }
    }

    /// Removes the field called `name` and gives its value.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.schema.position(name)?;
        let names = self.schema.names().iter().enumerate();
        self.schema = Schema::new(names.filter(|(at, _)| *at != index).map(|(_, name)| name.clone()));
        Some(self.values.remove(index))
    }

    /// Gives the fields other names: one for each value, or nothing changes.
    pub fn relabel(&mut self, schema: Schema) {
        if schema.len() == self.values.len() {
            self.schema = schema;
        }
    }

    /// Replaces the fields by `values`, one for each name of `schema`; missing values are null.
    pub fn replace(&mut self, schema: Schema, values: impl IntoIterator<Item = Value>) {
        self.values = values.into_iter().collect();
        self.schema = schema;
        self.fit();
    }

    /// Gives it the fields of `schema`: `change` is shown the key and the schema, and makes of the values one for each of the new names, in
    /// the memory that they have; missing ones become null, surplus ones are dropped. When it fails the names stay.
    ///
    /// Cost: nothing is allocated once the memory has room; over a chunk whose samples all change alike no references are counted.
    ///
    /// # Errors
    /// That of `change`.
    #[inline]
    pub fn reshape<E>(
        &mut self,
        schema: &Schema,
        change: impl FnOnce(&Key, &Schema, &mut Vec<Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let done = change(&self.key, &self.schema, &mut self.values);
        if done.is_ok() {
            self.turn(schema);
        }
        self.fit();
        done
    }

    /// Makes it another sample, as [`with_schema`](Sample::with_schema) does, but in the memory that it has.
    pub fn refill(&mut self, uid: u64, key: Key, schema: &Schema, values: impl IntoIterator<Item = Value>) {
        (self.uid, self.key) = (uid, key);
        self.turn(schema);
        self.values.clear();
        self.values.extend(values);
        self.fit();
    }

    /// Takes the names of `schema`, whatever the values are.
    #[inline]
    pub(crate) fn turn(&mut self, schema: &Schema) {
        if self.schema.is(schema) {
            return;
        }
        if !self.before.is(schema) {
            self.before = schema.clone();
        }
        std::mem::swap(&mut self.schema, &mut self.before);
    }

    /// Makes the values as many as the names.
    #[inline]
    pub(crate) fn fit(&mut self) {
        if self.values.len() != self.schema.len() {
            self.values.resize(self.schema.len(), Value::NULL);
        }
    }

    /// About how many bytes of memory the values keep.
    #[must_use]
    pub fn size(&self) -> usize {
        self.values.iter().map(Value::size).sum()
    }
}

impl Clone for Sample {
    fn clone(&self) -> Self {
        let Self { uid, key, schema, values, .. } = self;
        Self::with_schema(*uid, key.clone(), schema.clone(), values.clone())
    }
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        let same = (self.uid, &self.key, &self.schema) == (other.uid, &other.key, &other.schema);
        same && self.values == other.values
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.key)?;
        f.debug_map().entries(self.fields()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(names: &[&str], numbers: &[i64]) -> Sample {
        let values = numbers.iter().map(|&number| number.into()).collect();
        Sample::with_schema(7, Key::default(), Schema::new(names.iter().copied()), values)
    }

    #[test]
    fn reshape_changes_names_and_values_in_their_memory() {
        let mut one = sample(&["a", "b"], &[1, 2]);
        for _ in 0..3 {
            let done = one.reshape::<()>(&Schema::new(["c"]), |_, schema, values| {
                assert_eq!(schema.len(), 2);
                values.remove(0);
                Ok(())
            });
            assert_eq!((done, &one), (Ok(()), &sample(&["c"], &[2])));
            // Too few become nulls, too many go.
            let done = one.reshape::<()>(&Schema::new(["c", "d"]), |_, _, _| Ok(()));
            assert!(done.is_ok() && one.get("d") == Some(&Value::NULL));
            let done = one.reshape::<()>(&Schema::new(["a", "b"]), |_, _, values| {
                values.splice(.., [1_i64, 2, 3].map(Value::from));
                Ok(())
            });
            assert_eq!((done, &one), (Ok(()), &sample(&["a", "b"], &[1, 2])));
        }
        let failed = one.reshape(&Schema::new(["c"]), |_, _, values| {
            values.push(3.into());
            Err("no")
        });
        assert_eq!((failed, &one), (Err("no"), &sample(&["a", "b"], &[1, 2])), "the names stay");
        assert_eq!(one.clone(), one);
    }
}
