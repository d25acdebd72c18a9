//! Documents, of which there are many in one text, to the fields of samples.

use std::sync::Arc;

use forebay_core::{Buffer, Error, Key, OneOrMany, Result, Sample, Schema, Str, Value};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    scan::{DEPTH, Scan},
    select::Selection,
    shapes::{Known, ROOT, Shapes},
    value::{Duplicates, Reader, Rules},
};

/// The field of a document that is no object.
const VALUE: Str = Str::from_static("value");

/// What becomes of each document of a file, and the names that all of a pipe's samples share.
#[derive(Debug, Clone)]
pub struct Form {
    selection: Option<Selection>,
    rules: Rules,
    known: Arc<Known>,
}

impl Form {
    /// Of each object the values with these names or at these pointers, as fields of those names; all that it has when
    /// there are none.
    ///
    /// # Errors
    /// `Invalid` for a name that stands there twice, and for a pointer that is none.
    pub fn new(fields: &[String], rules: Rules) -> Result<Self> {
        let selection = if fields.is_empty() { None } else { Some(Selection::new(fields)?) };
        Ok(Self { selection, rules, known: Arc::default() })
    }

    /// The form that the options of a pipe ask for.
    pub(crate) fn of_options(
        fields: &OneOrMany<String>,
        duplicates: &str,
        invalid_utf8: &str,
        big_integers: &str,
    ) -> Result<Self> {
        let duplicates = match duplicates {
            "first" => Duplicates::First,
            "refuse" => Duplicates::Refuse,
            _ => Duplicates::Last,
        };
        let (replace_invalid, big_as_text) = (invalid_utf8 == "replace", big_integers == "text");
        Self::new(&fields.0, Rules { duplicates, replace_invalid, big_as_text })
    }
}

/// Whose rows they are: what their samples have in common.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    pub(crate) origin: Str,
    /// The uid of the file's sample.
    pub(crate) uid: u64,
    /// Fields of the file's sample that go on with each row, unless the row has one of that name.
    pub(crate) fields: Vec<(Str, Value)>,
}

impl Whose {
    /// The sample of the row with this number.
    pub(crate) fn sample(&self, index: u64, schema: Schema, values: Vec<Value>) -> Sample {
        let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index };
        Sample::with_schema(xxh3_64_with_seed(&index.to_le_bytes(), self.uid), key, schema, values)
    }

    /// The names of a row with those of the file's fields that it lacks, and the values of these.
    pub(crate) fn widen(&self, schema: &Schema, known: &Known) -> (Schema, Vec<Value>) {
        let lacks = |name: &Str| schema.position(name).is_none();
        let more: Vec<_> = self.fields.iter().filter(|(name, _)| lacks(name)).cloned().collect();
        let (names, values): (Vec<_>, Vec<_>) = more.into_iter().unzip();
        let names: Vec<_> = schema.names().iter().cloned().chain(names).collect();
        (known.schema(&names), values)
    }
}

/// Reads the documents of one block.
pub(crate) struct Rows {
    shapes: Shapes,
    form: Form,
    whose: Whose,
    /// The bytes that the values of one row may take.
    limit: u64,
    objects: u64,
    /// The names of the last row, and what became of them with the file's fields.
    wider: Option<(Schema, Schema, Vec<Value>)>,
}

impl Rows {
    pub(crate) fn new(form: Form, whose: Whose, limit: u64) -> Self {
        let shapes = Shapes::new(Arc::clone(&form.known));
        Self { shapes, form, whose, limit, objects: 0, wider: None }
    }

    pub(crate) fn whose(&self) -> &Whose {
        &self.whose
    }

    pub(crate) fn lenient(&self) -> bool {
        self.form.rules.replace_invalid
    }

    /// Reads the document that `scan`, which walks over `source`, is at; the sample's number is `index`.
    #[inline]
    pub(crate) fn read(&mut self, scan: &mut Scan<'_>, source: &Buffer, index: u64) -> Result<Sample> {
        let Scan { bytes, at, base, by_line, lenient } = *scan;
        let own = Scan { bytes, at, base, by_line, lenient };
        let (rules, left) = (self.form.rules, self.limit);
        let mut reader =
            Reader { scan: own, source, shapes: &mut self.shapes, rules, left, objects: self.objects };
        let read = match &mut self.form.selection {
            Some(selection) => {
                let values = reader.select(selection, DEPTH);
                self.objects = reader.objects;
                values.map(|values| (selection.schema().clone(), values))
            }
            None if reader.scan.white() == b'{' => {
                let start = reader.shapes.inner(ROOT);
                reader.object(start, DEPTH)
            }
            None => reader.value(ROOT, DEPTH).map(|value| (Schema::empty(), vec![value])),
        };
        scan.at = reader.scan.at;
        let (mut schema, mut values) =
            read.map_err(|error: Error| error.context("file", &self.whose.origin))?;
        if schema.is_empty() && !values.is_empty() {
            schema = self.form.known.schema(&[VALUE]);
        }
        if !self.whose.fields.is_empty() {
            schema = self.widen(schema, &mut values);
        }
        Ok(self.whose.sample(index, schema, values))
    }

    fn widen(&mut self, schema: Schema, values: &mut Vec<Value>) -> Schema {
        let (from, wider, more) = match self.wider.take() {
            Some(known) if known.0.is(&schema) => known,
            _ => {
                let (wider, more) = self.whose.widen(&schema, &self.form.known);
                (schema, wider, more)
            }
        };
        values.extend(more.iter().cloned());
        let schema = wider.clone();
        self.wider = Some((from, wider, more));
        schema
    }
}
