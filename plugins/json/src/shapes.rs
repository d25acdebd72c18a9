//! The objects seen so far, as a tree of their keys: the next object is likely to have the keys of one before, so that its keys
//! are compared and not read, and its schema is shared.

use std::sync::{Arc, Mutex, PoisonError};

use forebay_core::{Schema, Str};

/// No node: objects there are read without the tree.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// The node that stands for a key where there is none: of the whole document, or of what lies in an array that is one.
pub(crate) const ROOT: u32 = 0;

/// What leads to nothing that is selected.
pub(crate) const UNWANTED: u32 = u32::MAX;

/// More keys than this are not remembered.
const NODES: usize = 4096;
/// As many different keys may follow one.
const BRANCHES: usize = 16;
/// Objects with more keys are read without the tree.
const WIDTH: u32 = 512;
/// How many lists of names all blocks share.
const SCHEMAS: usize = 256;

/// The names of an object without keys.
static NOTHING: Schema = Schema::empty();

/// Lists of names, shared by the trees of one pipe, so that equal ones are the same.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Vec<Schema>>);

impl Known {
    /// The schema with these names: a known one if there is one.
    pub(crate) fn schema(&self, names: &[Str]) -> Schema {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known.iter().find(|schema| schema.names() == names) {
            return schema.clone();
        }
        let schema = Schema::new(names.iter().cloned());
        if known.len() < SCHEMAS {
            known.push(schema.clone());
        }
        schema
    }
}

/// The bytes of a key that are compared at once.
const HEAD: usize = 16;

/// A key after others, or the start of an object.
struct Node {
    /// The key as it stands in the text, with its quotes, the colon and a space that came after it.
    raw: Box<[u8]>,
    /// Its first bytes, and which of them count.
    head: u128,
    mask: u128,
    name: Str,
    before: u32,
    /// Where its value goes among those of the object; that of an equal key before, when there is one.
    slot: u32,
    /// How many values an object has with it.
    width: u32,
    after: Vec<u32>,
    /// The one of those that came last.
    likely: u32,
    /// Of the objects that end here.
    schema: Option<Schema>,
    /// The start of objects that are the value of the key; [`ROOT`] when there was none yet.
    inner: u32,
    /// Which of the values that are selected it leads to.
    want: u32,
}

impl Node {
    /// Whether `rest` begins with the key.
    #[inline]
    fn leads(&self, rest: &[u8]) -> bool {
        match rest.first_chunk::<HEAD>() {
            Some(first) if (u128::from_le_bytes(*first) ^ self.head) & self.mask != 0 => false,
            Some(_) if self.raw.len() <= HEAD => true,
            _ => rest.starts_with(&self.raw),
        }
    }
}

/// The first bytes of a key, and ones where it has any.
fn head(raw: &[u8]) -> (u128, u128) {
    let mut first = [[0; HEAD]; 2];
    for (at, byte) in raw.iter().enumerate().take(HEAD) {
        (first[0][at], first[1][at]) = (*byte, u8::MAX);
    }
    first.map(u128::from_le_bytes).into()
}

/// The tree of keys of one block.
pub(crate) struct Shapes {
    nodes: Vec<Node>,
    known: Arc<Known>,
}

impl Shapes {
    pub(crate) fn new(known: Arc<Known>) -> Self {
        let mut shapes = Self { nodes: Vec::new(), known };
        shapes.add(ROOT, Box::default(), Str::EMPTY, 0, 0);
        shapes
    }

    fn add(&mut self, before: u32, raw: Box<[u8]>, name: Str, slot: u32, width: u32) -> u32 {
        let (after, likely, schema, inner) = (Vec::new(), NOWHERE, None, ROOT);
        let (head, mask) = head(&raw);
        self.nodes.push(Node {
            raw,
            head,
            mask,
            name,
            before,
            slot,
            width,
            after,
            likely,
            schema,
            inner,
            want: UNWANTED,
        });
        self.nodes.len() as u32 - 1
    }

    /// The node of the key that `rest` begins with, after the key of `node`, if it came there before; and the length of the
    /// key and its colon.
    #[inline]
    pub(crate) fn next(&mut self, node: u32, rest: &[u8]) -> Option<(u32, usize)> {
        let here = self.nodes.get(node as usize)?;
        match self.nodes.get(here.likely as usize) {
            Some(likely) if likely.leads(rest) => Some((here.likely, likely.raw.len())),
            _ => self.other(node, rest),
        }
    }

    fn other(&mut self, node: u32, rest: &[u8]) -> Option<(u32, usize)> {
        let after = &self.nodes.get(node as usize)?.after;
        let leads = |next: &u32| self.nodes.get(*next as usize).is_some_and(|next| next.leads(rest));
        let next = after.iter().copied().find(leads)?;
        self.nodes[node as usize].likely = next;
        Some((next, self.nodes[next as usize].raw.len()))
    }

    /// The start of a tree of its own.
    pub(crate) fn start(&mut self) -> u32 {
        self.add(ROOT, Box::default(), Str::EMPTY, 0, 0)
    }

    /// Which of the values that are selected the key leads to.
    #[inline]
    pub(crate) fn want(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(UNWANTED, |node| node.want)
    }

    /// Notes that.
    pub(crate) fn set_want(&mut self, node: u32, want: u32) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.want = want;
        }
    }

    /// Remembers a key after the one of `node`; `None` when that would be too much.
    pub(crate) fn learn(&mut self, node: u32, raw: &[u8], name: &Str) -> Option<u32> {
        let full = self.nodes.len() >= NODES;
        let here = self.nodes.get(node as usize)?;
        if full || here.after.len() >= BRANCHES || here.width >= WIDTH {
            return None;
        }
        let width = here.width;
        let equal = self.path(node).find(|node| node.name == *name).map(|node| node.slot);
        let slot = equal.unwrap_or(width);
        let next = self.add(node, raw.into(), name.clone(), slot, width + u32::from(slot == width));
        let here = &mut self.nodes[node as usize];
        here.after.push(next);
        here.likely = next;
        Some(next)
    }

    /// The nodes from this key back to the first of its object.
    fn path(&self, node: u32) -> impl Iterator<Item = &Node> {
        let some = |at: u32| self.nodes.get(at as usize).filter(|node| !node.raw.is_empty());
        std::iter::successors(some(node), move |node| some(node.before))
    }

    /// The names of an object whose last key is that of `node`.
    pub(crate) fn names(&self, node: u32) -> Vec<Str> {
        let width = self.nodes.get(node as usize).map_or(0, |node| node.width);
        let mut names = vec![Str::EMPTY; width as usize];
        for key in self.path(node) {
            names[key.slot as usize] = key.name.clone();
        }
        names
    }

    /// The name of the key.
    pub(crate) fn name(&self, node: u32) -> Str {
        self.nodes.get(node as usize).map(|node| node.name.clone()).unwrap_or_default()
    }

    /// Where the value of the key goes.
    #[inline]
    pub(crate) fn slot(&self, node: u32) -> usize {
        self.nodes.get(node as usize).map_or(0, |node| node.slot as usize)
    }

    /// The schema of objects whose last key is that of `node`.
    #[inline]
    pub(crate) fn schema(&mut self, node: u32) -> &Schema {
        if self.nodes.get(node as usize).is_some_and(|node| node.schema.is_none()) {
            // Each block counts for itself: others hold the same schema at the same time.
            let schema = self.known.schema(&self.names(node)).recounted();
            self.nodes[node as usize].schema = Some(schema);
        }
        self.nodes.get(node as usize).and_then(|node| node.schema.as_ref()).unwrap_or(&NOTHING)
    }

    /// The start of objects that are the value of this key, or lie in it.
    #[inline]
    pub(crate) fn inner(&mut self, node: u32) -> u32 {
        match self.nodes.get(node as usize).map(|node| node.inner) {
            Some(ROOT) if self.nodes.len() < NODES => {
                let inner = self.add(ROOT, Box::default(), Str::EMPTY, 0, 0);
                self.nodes[node as usize].inner = inner;
                inner
            }
            Some(ROOT) | None => NOWHERE,
            Some(inner) => inner,
        }
    }
}
