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
#[derive(Clone, PartialEq, Default)]
pub struct Sample {
    pub(crate) uid: u64,
    pub(crate) key: Key,
    pub(crate) schema: Schema,
    pub(crate) values: Vec<Value>,
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
        Self { uid, key, schema, values }
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
        let values: Vec<Value> = values.into_iter().collect();
        self.schema = schema;
        self.values = values;
        self.values.resize(self.schema.len(), Value::NULL);
    }

    /// Makes it another sample, as [`with_schema`](Sample::with_schema) does, but in the memory that it has.
    pub fn refill(&mut self, uid: u64, key: Key, schema: &Schema, values: impl IntoIterator<Item = Value>) {
        (self.uid, self.key) = (uid, key);
        if !self.schema.is(schema) {
            self.schema = schema.clone();
        }
        self.values.clear();
        self.values.extend(values);
        self.values.resize(schema.len(), Value::NULL);
    }

    /// About how many bytes of memory the values keep.
    #[must_use]
    pub fn size(&self) -> usize {
        self.values.iter().map(Value::size).sum()
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.key)?;
        f.debug_map().entries(self.fields()).finish()
    }
}
