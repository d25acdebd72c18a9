//! Some values of a document, by name or by pointer, and nothing else built.
//!
//! Source: RFC 6901, sections 3 and 4, for pointers.

use forebay_core::{Error, Result, Schema, Str, Value, View};

use crate::{
    scan::deeper,
    shapes::{NOWHERE, ROOT, UNWANTED},
    value::{Duplicates, Reader},
};

/// Which values are wanted, as a tree of the keys that lead to them.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    schema: Schema,
    root: Want,
}

/// What is wanted of one value: itself, or some of what is in it.
#[derive(Debug, Clone, Default)]
struct Want {
    /// The key that leads to it.
    name: String,
    /// The fields that it is the value of.
    slots: Vec<usize>,
    inner: Vec<Want>,
    /// The object in which it was last found, of those that were looked into.
    found_in: u64,
    /// The start of the objects that are looked into here, in the tree of keys.
    start: Option<u32>,
}

/// The parts of a pointer.
pub(crate) fn steps(pointer: &str) -> Result<Vec<String>> {
    let Some(steps) = pointer.strip_prefix('/') else {
        let error = "a pointer is empty or begins with a slash";
        return if pointer.is_empty() { Ok(Vec::new()) } else { Err(Error::invalid(error)) };
    };
    let step = |step: &str| match step.replace("~0", "").replace("~1", "").contains('~') {
        true => Err(Error::invalid(format!("`{step}` has a `~` that is not of `~0` or `~1`"))),
        false => Ok(step.replace("~1", "/").replace("~0", "~")),
    };
    steps.split('/').map(step).collect()
}

impl Selection {
    /// The values with these names, or at these pointers where a name begins with a slash.
    pub(crate) fn new(fields: &[String]) -> Result<Self> {
        let mut root = Want::default();
        for (slot, field) in fields.iter().enumerate() {
            if fields[..slot].contains(field) {
                return Err(Error::invalid("named twice").context("field", field));
            }
            let steps = match field.starts_with('/') {
                true => steps(field).map_err(|error| error.context("field", field))?,
                false => vec![field.clone()],
            };
            if steps.len() > crate::DEPTH {
                return Err(Error::invalid("a pointer that deep").context("field", field));
            }
            let want = steps.into_iter().fold(&mut root, |want, step| want.child(step));
            want.slots.push(slot);
        }
        Ok(Self { schema: Schema::new(fields.iter().map(|field| Str::from(field.as_str()))), root })
    }

    /// The names of the fields.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The same for another block, which counts who holds its names by itself.
    pub(crate) fn recounted(&self) -> Self {
        Self { schema: self.schema.recounted(), ..self.clone() }
    }
}

impl Want {
    fn child(&mut self, name: String) -> &mut Self {
        let at = self.inner.iter().position(|want| want.name == name).unwrap_or_else(|| {
            self.inner.push(Self { name, ..Self::default() });
            self.inner.len() - 1
        });
        &mut self.inner[at]
    }

    /// Makes nothing of all that is in it.
    fn clear(&self, values: &mut [Value]) {
        self.slots.iter().for_each(|slot| values[*slot] = Value::NULL);
        self.inner.iter().for_each(|want| want.clear(values));
    }

    /// Takes what is wanted of a value that was built.
    fn take(&self, value: &Value, values: &mut [Value]) {
        self.slots.iter().for_each(|slot| values[*slot] = value.clone());
        for want in &self.inner {
            let inner = match value.view() {
                View::Struct(fields) => fields.get(&want.name),
                View::List(items) => index(&want.name).and_then(|at| items.get(at)),
                _ => None,
            };
            inner.into_iter().for_each(|inner| want.take(inner, values));
        }
    }
}

/// The place in an array that a step names.
pub(crate) fn index(step: &str) -> Option<usize> {
    let plain = step == "0" || (!step.starts_with(['0', '+']) && !step.is_empty());
    step.parse().ok().filter(|_| plain)
}

impl Reader<'_> {
    /// The values that are wanted of the next one go to the empty stack; what is not there is null.
    pub(crate) fn select(&mut self, selection: &mut Selection, levels: usize) -> Result<()> {
        self.stack.resize(selection.schema.len(), Value::NULL);
        self.pick(&mut selection.root, levels)
    }

    fn pick(&mut self, want: &mut Want, levels: usize) -> Result<()> {
        let first = self.scan.white();
        if !want.slots.is_empty() {
            self.value(ROOT, levels)?;
            let value = self.stack.pop().unwrap_or_default();
            match (&want.slots[..], want.inner.is_empty()) {
                ([slot], true) => self.stack[*slot] = value,
                _ => want.take(&value, self.stack),
            }
            return Ok(());
        }
        match first {
            b'{' => self.pick_keys(want, levels),
            b'[' => self.pick_items(&mut want.inner, levels),
            _ => self.scan.skip(levels),
        }
    }

    fn pick_keys(&mut self, want: &mut Want, levels: usize) -> Result<()> {
        let levels = deeper(levels, &self.scan)?;
        self.scan.at += 1;
        self.objects += 1;
        let object = self.objects;
        let mut node = *want.start.get_or_insert_with(|| self.shapes.start());
        if self.scan.white() == b'}' {
            self.scan.at += 1;
            return Ok(());
        }
        loop {
            let place = self.scan.at;
            let (next, found) = self.wanted(node, &want.inner)?;
            node = next;
            match want.inner.get_mut(found) {
                None => self.scan.skip(levels)?,
                Some(want) => {
                    let again = std::mem::replace(&mut want.found_in, object) == object;
                    match self.rules.duplicates {
                        Duplicates::Refuse if again => return Err(self.twice(place)),
                        Duplicates::First if again => self.scan.skip(levels)?,
                        _ => {
                            if again {
                                want.clear(self.stack);
                            }
                            self.pick(want, levels)?;
                        }
                    }
                }
            }
            if !self.scan.another(b'}', "a comma or the end of an object")? {
                return Ok(());
            }
            self.scan.white();
        }
    }

    /// Passes over a key after that of `node`, and its colon: its node, and the place of what is wanted under it.
    #[inline]
    fn wanted(&mut self, node: u32, wants: &[Want]) -> Result<(u32, usize)> {
        if let Some((next, len)) = self.shapes.next(node, self.scan.rest()) {
            self.scan.at += len;
            return Ok((next, self.shapes.want(next) as usize));
        }
        let (next, name) = match self.key(node)? {
            Ok(next) => (next, self.shapes.name(next)),
            Err(name) => (NOWHERE, name),
        };
        let want = wants.iter().position(|want| want.name == *name).unwrap_or(UNWANTED as usize);
        if next != NOWHERE {
            self.shapes.set_want(next, want as u32);
        }
        Ok((next, want))
    }

    fn pick_items(&mut self, wants: &mut [Want], levels: usize) -> Result<()> {
        let levels = deeper(levels, &self.scan)?;
        self.scan.at += 1;
        if self.scan.white() == b']' {
            self.scan.at += 1;
            return Ok(());
        }
        for at in 0.. {
            match wants.iter_mut().find(|want| index(&want.name) == Some(at)) {
                None => self.scan.skip(levels)?,
                Some(want) => self.pick(want, levels)?,
            }
            if !self.scan.another(b']', "a comma or the end of an array")? {
                break;
            }
        }
        Ok(())
    }
}
