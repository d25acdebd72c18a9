//! B-trees of version 2 (section III.A.2).

use forebay_core::{Error, Result};

use crate::{
    bytes::{size, width_of},
    file::{Budget, File},
};

/// Signature, version, type and checksum of a node.
const NODE_OVERHEAD: u64 = 10;
/// Deeper trees do not fit into any file.
const DEPTH_LIMIT: u16 = 32;

struct Tree<'a> {
    file: &'a File,
    kind: u8,
    node_len: u64,
    record_len: u64,
    /// For each depth from the leaves: bytes in a child's number of records, and in that of all below it.
    widths: Vec<(usize, usize)>,
}

/// Calls `each` with the tree's type and every record, in order.
pub(crate) fn visit(file: &File, address: u64, each: &mut dyn FnMut(u8, &[u8]) -> Result<()>) -> Result<()> {
    let sizes = file.sizes();
    let head = file.read(address, 22 + sizes.address as u64 + sizes.length as u64)?;
    let mut cursor = file.cursor(&head, address);
    cursor.signature(b"BTHD")?;
    cursor.version("the B-tree", 0..=0)?;
    let (kind, node_len, record_len) = (cursor.u8()?, u64::from(cursor.u32()?), u64::from(cursor.u16()?));
    let depth = cursor.u16()?;
    cursor.skip(2)?;
    let (root, count) = (cursor.address()?, cursor.u16()?);
    let _all = cursor.length()?;
    cursor.checksum("the B-tree's header")?;
    if depth > DEPTH_LIMIT || record_len == 0 || node_len < NODE_OVERHEAD + record_len {
        return Err(cursor
            .corrupt(format!("a B-tree {depth} deep, of nodes of {node_len} and records of {record_len}")));
    }
    let tree = Tree { file, kind, node_len, record_len, widths: widths(file, node_len, record_len, depth) };
    let Some(root) = root else { return Ok(()) };
    tree.walk(root, count.into(), depth.into(), &mut Budget::of(file), each)
}

/// How wide the numbers beside a child's address are follows from how many records fit below.
fn widths(file: &File, node_len: u64, record_len: u64, depth: u16) -> Vec<(usize, usize)> {
    let leaf = (node_len - NODE_OVERHEAD) / record_len;
    let mut below = leaf;
    let mut widths = vec![(width_of(leaf), 0)];
    for level in 1..=depth {
        let all = if level == 1 { 0 } else { width_of(below) };
        widths.push((width_of(leaf), all));
        let pointer = (file.sizes().address + width_of(leaf) + all) as u64;
        let most = node_len.saturating_sub(NODE_OVERHEAD + pointer) / (record_len + pointer);
        below = (most + 1).saturating_mul(below).saturating_add(most);
    }
    widths
}

impl Tree<'_> {
    fn walk(
        &self,
        address: u64,
        count: u64,
        depth: usize,
        budget: &mut Budget,
        each: &mut dyn FnMut(u8, &[u8]) -> Result<()>,
    ) -> Result<()> {
        budget.spend(self.node_len)?;
        let bytes = self.file.read_up_to(address, self.node_len)?;
        let mut cursor = self.file.cursor(&bytes, address);
        cursor.signature(if depth == 0 { b"BTLF" } else { b"BTIN" })?;
        cursor.version("the B-tree's node", 0..=0)?;
        if cursor.u8()? != self.kind {
            return Err(Error::corrupt("a node of another kind of B-tree").context("byte", address));
        }
        let record_len = size(self.record_len)?;
        let records = cursor.take(size(count.saturating_mul(self.record_len))?)?;
        let mut children = Vec::new();
        let (width, all) = self.widths.get(depth).copied().unwrap_or_default();
        for _ in 0..if depth == 0 { 0 } else { count + 1 } {
            children.push((cursor.address_of("a child of a B-tree")?, cursor.uint(width)?));
            cursor.skip(all)?;
        }
        cursor.checksum("the B-tree's node")?;
        let mut records = records.chunks_exact(record_len);
        if depth == 0 {
            return records.try_for_each(|record| each(self.kind, record));
        }
        for (child, count) in children {
            self.walk(child, count, depth - 1, budget, each)?;
            if let Some(record) = records.next() {
                each(self.kind, record)?;
            }
        }
        Ok(())
    }
}
