//! B-trees of version 1, of groups and of chunks (section III.A.1).

use std::ops::Range;

use forebay_core::Result;

use crate::{
    bytes::Cursor,
    file::{Budget, File},
};

/// What the keys of a tree are.
pub(crate) trait Kind {
    /// The number of the kind.
    const NUMBER: u8;
    type Key;

    /// Bytes in a key.
    fn key_len(&self, file: &File) -> u64;

    fn key(&self, cursor: &mut Cursor<'_>) -> Result<Self::Key>;

    /// Whether anything between these keys is wanted.
    fn wanted(&self, from: &Self::Key, to: &Self::Key) -> bool;
}

/// A tree of symbol nodes: all of them are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Group;

impl Kind for Group {
    const NUMBER: u8 = 0;
    type Key = ();

    fn key_len(&self, file: &File) -> u64 {
        file.sizes().length as u64
    }

    fn key(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        cursor.length().map(|_| ())
    }

    fn wanted(&self, (): &(), (): &()) -> bool {
        true
    }
}

/// The chunks that touch some rows.
pub(crate) struct Chunks {
    pub(crate) axes: usize,
    pub(crate) rows: Range<u64>,
    /// Rows in a chunk.
    pub(crate) height: u64,
}

/// Where a chunk lies among the elements, how many bytes it takes, and which filters were left out.
pub(crate) struct ChunkKey {
    pub(crate) size: u32,
    pub(crate) mask: u32,
    pub(crate) offset: Vec<u64>,
}

impl Kind for Chunks {
    const NUMBER: u8 = 1;
    type Key = ChunkKey;

    fn key_len(&self, _: &File) -> u64 {
        16 + 8 * self.axes as u64
    }

    fn key(&self, cursor: &mut Cursor<'_>) -> Result<ChunkKey> {
        let (size, mask) = (cursor.u32()?, cursor.u32()?);
        let offset = (0..self.axes).map(|_| cursor.u64()).collect::<Result<_>>()?;
        // The last one counts within an element.
        cursor.skip(8)?;
        Ok(ChunkKey { size, mask, offset })
    }

    fn wanted(&self, from: &ChunkKey, to: &ChunkKey) -> bool {
        let (first, last) = (from.offset.first().copied(), to.offset.first().copied());
        first.is_none_or(|first| first < self.rows.end)
            && last.is_none_or(|last| last.saturating_add(self.height) > self.rows.start)
    }
}

/// Calls `each` with every wanted child of the leaves.
pub(crate) fn visit(
    file: &File,
    root: u64,
    kind: Group,
    each: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    walk(file, root, &kind, &mut |(), address| each(address))
}

/// Calls `each` with every chunk that touches the rows.
pub(crate) fn visit_chunks(
    file: &File,
    root: u64,
    kind: &Chunks,
    each: &mut dyn FnMut(ChunkKey, u64) -> Result<()>,
) -> Result<()> {
    walk(file, root, kind, each)
}

fn walk<K: Kind>(
    file: &File,
    root: u64,
    kind: &K,
    each: &mut dyn FnMut(K::Key, u64) -> Result<()>,
) -> Result<()> {
    let mut budget = Budget::of(file);
    let mut open = vec![(root, None)];
    while let Some((address, expected)) = open.pop() {
        let (level, children) = node(file, address, kind, expected, &mut budget)?;
        if level == 0 {
            children.into_iter().try_for_each(|(key, child)| each(key, child))?;
        } else {
            // The last one goes down first, so that the first comes out first.
            open.extend(children.into_iter().rev().map(|(_, child)| (child, Some(level - 1))));
        }
    }
    Ok(())
}

/// A node's level and its wanted children.
type Node<K> = (u8, Vec<(K, u64)>);

fn node<K: Kind>(
    file: &File,
    address: u64,
    kind: &K,
    expected: Option<u8>,
    budget: &mut Budget,
) -> Result<Node<K::Key>> {
    let head_len = 8 + 2 * file.sizes().address as u64;
    let head = file.read(address, head_len)?;
    let mut cursor = file.cursor(&head, address);
    cursor.signature(b"TREE")?;
    let (number, level, count) = (cursor.u8()?, cursor.u8()?, u64::from(cursor.u16()?));
    if number != K::NUMBER || expected.is_some_and(|expected| expected != level) {
        let wanted = K::NUMBER;
        return Err(cursor.corrupt(format!(
            "found a B-tree's node of type {number} and level {level}, expected type {wanted} and level {expected:?}"
        )));
    }
    let key = kind.key_len(file);
    let len = count * (key + file.sizes().address as u64) + if count == 0 { 0 } else { key };
    budget.spend(head_len + len)?;
    let bytes = file.read(address + head_len, len)?;
    let mut cursor = file.cursor(&bytes, address + head_len);
    let mut children = Vec::new();
    if count == 0 {
        return Ok((level, children));
    }
    let mut from = kind.key(&mut cursor)?;
    for _ in 0..count {
        let child = cursor.address_of("a child of a B-tree")?;
        let to = kind.key(&mut cursor)?;
        let wanted = kind.wanted(&from, &to);
        let key = std::mem::replace(&mut from, to);
        if wanted {
            children.push((key, child));
        }
    }
    Ok((level, children))
}
