//! Groups of the first kind: a B-tree of symbol nodes, and a local heap with the names (sections III.A.1, III.B to D).

use forebay_core::{Buffer, Error, Result};

use crate::{
    bytes::{Cursor, size},
    file::{Budget, File},
    structure::{
        btree1,
        link::{Link, Target, text},
    },
};

/// The links of the group whose symbol table message is `body`.
pub(crate) fn links(file: &File, body: &[u8], at: u64) -> Result<Vec<Link>> {
    let mut cursor = file.cursor(body, at);
    let tree = cursor.address_of("a group's B-tree")?;
    let heap = local_heap(file, cursor.address_of("a group's heap")?)?;
    let mut links = Vec::new();
    let mut budget = Budget::of(file);
    btree1::visit(file, tree, btree1::Group, &mut |node| {
        read_node(file, node, &heap, &mut budget, &mut links)
    })?;
    Ok(links)
}

fn read_node(
    file: &File,
    address: u64,
    heap: &Buffer,
    budget: &mut Budget,
    links: &mut Vec<Link>,
) -> Result<()> {
    let head = file.read(address, 8)?;
    let mut cursor = file.cursor(&head, address);
    cursor.signature(b"SNOD")?;
    cursor.version("the symbol node", 1..=1)?;
    cursor.skip(1)?;
    let count = u64::from(cursor.u16()?);
    let entry = 2 * file.sizes().address as u64 + 24;
    budget.spend(8 + count * entry)?;
    let bytes = file.read(address + 8, count * entry)?;
    let mut cursor = file.cursor(&bytes, address + 8);
    for _ in 0..count {
        links.push(read_entry(&mut cursor, heap)?);
    }
    Ok(())
}

fn read_entry(cursor: &mut Cursor<'_>, heap: &Buffer) -> Result<Link> {
    let at = cursor.at();
    let name = name(cursor.uint(cursor.sizes().address)?, heap, at)?;
    let header = cursor.address()?;
    let cache = cursor.u32()?;
    cursor.skip(4)?;
    let mut scratch = Cursor::new(cursor.take(16)?, at, cursor.sizes());
    let target = match (cache, header) {
        (2, _) => Target::Soft(self::name(scratch.u32()?.into(), heap, at)?),
        (_, Some(header)) => Target::Object(header),
        _ => return Err(cursor.corrupt(format!("`{name}` leads nowhere"))),
    };
    Ok(Link { name, target })
}

/// The name at this place of a heap.
fn name(offset: u64, heap: &Buffer, at: u64) -> Result<String> {
    let rest = size(offset)?;
    let rest = heap.as_slice().get(rest..).unwrap_or_default();
    match rest.iter().position(|&byte| byte == 0) {
        Some(end) => Ok(text(&rest[..end])),
        None => {
            let len = heap.len();
            Err(Error::corrupt(format!("a name at byte {offset} of a heap of {len}")).context("byte", at))
        }
    }
}

/// The data of the local heap at `address`.
pub(crate) fn local_heap(file: &File, address: u64) -> Result<Buffer> {
    let head = file.read(address, 8 + 2 * file.sizes().length as u64 + file.sizes().address as u64)?;
    let mut cursor = file.cursor(&head, address);
    cursor.signature(b"HEAP")?;
    cursor.version("the local heap", 0..=0)?;
    cursor.skip(3)?;
    let (len, _free) = (cursor.length()?, cursor.length()?);
    let data = cursor.address_of("a heap's data")?;
    file.read(data, len)
}
