//! Documents, of which there are many in one text, to the fields of samples.

use std::sync::Arc;

use forebay_core::{Arena, Buffer, Key, OneOrMany, Result, Sample, Schema, Str, Value};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    scan::{DEPTH, Scan},
    select::Selection,
    shapes::{Known, ROOT, Shapes},
    value::{Duplicates, Names, Reader, Rules},
};

/// The field of a document that is no object.
const VALUE: Str = Str::from_static("value");

/// Rows that come later have their values in other memory, once so many values lie in that of those before.
const MOST: usize = 1 << 14;

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
        Sample::with_schema(self.uid_of(index), key, schema, values)
    }

    fn uid_of(&self, index: u64) -> u64 {
        xxh3_64_with_seed(&index.to_le_bytes(), self.uid)
    }

    /// The names of a row with those of the file's fields that it lacks, and the values of these.
    pub(crate) fn widen(&self, schema: &Schema, known: &Known) -> (Schema, Vec<Value>) {
        let lacks = |name: &Str| schema.position(name).is_none();
        let more: Vec<_> = self.fields.iter().filter(|(name, _)| lacks(name)).cloned().collect();
        let (names, values): (Vec<_>, Vec<_>) = more.into_iter().unzip();
        let names: Vec<_> = schema.names().iter().cloned().chain(names).collect();
        (known.schema(&names).recounted(), values)
    }
}

/// Reads the documents of one block.
pub(crate) struct Rows {
    shapes: Shapes,
    form: Form,
    whose: Whose,
    /// Over the block.
    arena: Arena,
    /// The file's name, as the arena's own.
    origin: Str,
    /// The bytes that the values of one row may take.
    limit: u64,
    objects: u64,
    /// For the values of a row that is not yet whole.
    stack: Vec<Value>,
    /// The names of a document that is no object.
    single: Schema,
    wider: Option<Wider>,
}

/// What becomes of names with the file's fields.
struct Wider {
    of: Schema,
    schema: Schema,
    more: Vec<Value>,
}

impl Rows {
    pub(crate) fn new(form: Form, whose: Whose, limit: u64, block: Buffer) -> Self {
        let shapes = Shapes::new(Arc::clone(&form.known));
        let single = form.known.schema(&[VALUE]).recounted();
        let form = Form { selection: form.selection.as_ref().map(Selection::recounted), ..form };
        let mut arena = Arena::new(block);
        let origin = arena.keep(&whose.origin);
        let (objects, stack, wider) = (0, Vec::new(), None);
        Self { shapes, form, whose, arena, origin, limit, objects, stack, single, wider }
    }

    pub(crate) fn whose(&self) -> &Whose {
        &self.whose
    }

    /// Whether text that is passed over need not be looked at.
    pub(crate) fn lenient(&self) -> bool {
        self.form.rules.replace_invalid || self.arena.is_text()
    }

    /// Reads the document that `scan`, which walks over the block, is at, into `sample`, whose number is `index`.
    pub(crate) fn read(&mut self, scan: &mut Scan<'_>, index: u64, sample: &mut Sample) -> Result<()> {
        if self.arena.len() >= MOST {
            self.arena.renew();
            self.origin = self.arena.keep(&self.whose.origin);
        }
        let names = self.values(scan).map_err(|error| error.context("file", &self.whose.origin))?;
        let mut schema = match (&self.form.selection, &names) {
            (Some(selection), _) => selection.schema(),
            (None, Some(names)) => names.schema(&mut self.shapes),
            (None, None) => &self.single,
        };
        if !self.whose.fields.is_empty() {
            let wider = self.wider.take().filter(|wider| wider.of.is(schema)).unwrap_or_else(|| {
                let (wider, more) = self.whose.widen(schema, &self.form.known);
                Wider { of: schema.clone(), schema: wider, more }
            });
            self.stack.extend(wider.more.iter().cloned());
            schema = &self.wider.insert(wider).schema;
        }
        let key = Key { origin: self.arena.again(&self.origin), name: Str::EMPTY, index };
        sample.refill(self.whose.uid_of(index), key, schema, self.stack.drain(..));
        Ok(())
    }

    /// Reads the values of a document to the stack; gives their names, if they are not selected and it is an object.
    #[inline]
    fn values(&mut self, scan: &mut Scan<'_>) -> Result<Option<Names>> {
        self.stack.clear(); // Of a document that failed.
        let Scan { bytes, at, base, by_line, lenient } = *scan;
        let own = Scan { bytes, at, base, by_line, lenient };
        let mut reader = Reader {
            scan: own,
            arena: &mut self.arena,
            stack: &mut self.stack,
            shapes: &mut self.shapes,
            rules: self.form.rules,
            left: self.limit,
            objects: self.objects,
        };
        let names = match &mut self.form.selection {
            Some(selection) => reader.select(selection, DEPTH).map(|()| None),
            None if reader.scan.white() == b'{' => {
                let start = reader.shapes.inner(ROOT);
                reader.object(start, DEPTH).map(Some)
            }
            None => reader.value(ROOT, DEPTH).map(|()| None),
        };
        (scan.at, self.objects) = (reader.scan.at, reader.objects);
        names
    }
}
