//! The fields that each sample in a file gets from the file's sample.

use forebay_abi::{Sample, Schema, Str, Value};

/// The fields of a file's sample that the samples in the file get too: all but its `path` and `bytes`.
///
/// ```
/// use forebay_core::{Key, Others, Sample, Schema, Value};
///
/// let mut file = Sample::new(1, Key::whole("birds.zip"));
/// file.set("path", "birds.zip");
/// file.set("label", 3_i64);
/// let mut values = vec![Value::from("heron")];
/// let schema = Others::of(&file, &[]).join(Schema::new(["name"]), &mut values);
/// assert_eq!((schema.position("label"), schema.len(), values.len()), (Some(1), 2, 2));
/// ```
#[derive(Default)]
pub struct Others {
    fields: Vec<(Str, Value)>,
    /// What the schema of the last sample became.
    last: Option<Wider>,
}

struct Wider {
    of: Schema,
    schema: Schema,
    /// Of those fields that are not in `of`.
    values: Vec<Value>,
}

impl Others {
    /// The fields of a file's sample without its path, its bytes, and these.
    #[must_use]
    pub fn of(sample: &Sample, but: &[&str]) -> Self {
        let goes_on = |name: &str| !matches!(name, "path" | "bytes") && !but.contains(&name);
        let fields = sample.fields().filter(|(name, _)| goes_on(name));
        Self { fields: fields.map(|(name, value)| (name.clone(), value.clone())).collect(), last: None }
    }

    /// The fields, in their order.
    #[must_use]
    pub fn fields(&self) -> &[(Str, Value)] {
        &self.fields
    }

    /// Adds the fields that a sample with this schema lacks to its values, and returns the new schema.
    #[must_use]
    pub fn join(&mut self, schema: Schema, values: &mut Vec<Value>) -> Schema {
        if self.fields.is_empty() {
            return schema;
        }
        let known = self.last.take().filter(|wider| wider.of.is(&schema));
        let wider = self.last.insert(known.unwrap_or_else(|| {
            let lacks = |(name, _): &&(Str, Value)| schema.position(name).is_none();
            let (names, values): (Vec<Str>, Vec<Value>) = self.fields.iter().filter(lacks).cloned().unzip();
            let names = schema.names().iter().cloned().chain(names);
            Wider { schema: Schema::new(names), of: schema.clone(), values }
        }));
        values.extend(wider.values.iter().cloned());
        wider.schema.clone()
    }
}
