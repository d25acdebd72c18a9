//! What a C plugin puts together in one call: a tree of values, checked when the call is over.

use std::ops::Range;

use forebay_core::{Buffer, BufferMut, Context, DType, Error, ErrorKind, Result, Str, Tensor, Value, abi::c};

/// How deep lists and structs may lie in each other.
const DEPTH: u32 = 128;

/// The values of one call. Each has the number of its place here, and stands behind the one that it is in.
pub(super) struct CallValues {
    nodes: Vec<ValueNode>,
    /// Memory that was asked for.
    blocks: Vec<BufferMut>,
}

struct ValueNode {
    depth: u32,
    held: Held,
}

enum Held {
    /// Not set yet.
    Nothing,
    Value(Value),
    Data(CBytes, BytesKind),
    List(Vec<usize>),
    Struct(Vec<Str>, Vec<usize>),
}

/// Where bytes are.
pub(super) enum CBytes {
    Buffer(Buffer),
    /// In one of the blocks, which nobody may share before the call is over.
    Block(usize, Range<usize>),
}

/// What bytes are.
pub(super) enum BytesKind {
    Bytes,
    Tensor(DType, Vec<usize>),
}

/// An error of a plugin that breaks the rules of the interface.
pub(super) fn broken(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Abi, message)
}

impl CallValues {
    pub(super) fn new() -> Self {
        Self { nodes: vec![ValueNode { depth: 0, held: Held::Nothing }], blocks: Vec::new() }
    }

    /// Keeps memory that the plugin is to fill, and gives its place.
    pub(super) fn keep(&mut self, mut block: BufferMut) -> *mut u8 {
        let place = block.as_mut_ptr();
        self.blocks.push(block);
        place
    }

    /// The bytes at this address, where they lie in memory that was asked for.
    pub(super) fn find(&self, address: usize, len: usize) -> Option<CBytes> {
        // What was asked for last is what is given, most of the time.
        self.blocks
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, block)| Some(CBytes::Block(at, within(block, address, len)?)))
    }

    pub(super) fn put(&mut self, at: u32, value: Value) -> Result<()> {
        self.set(at, Held::Value(value))
    }

    pub(super) fn put_data(&mut self, at: u32, place: CBytes, form: BytesKind) -> Result<()> {
        self.set(at, Held::Data(place, form))
    }

    pub(super) fn put_list(&mut self, at: u32) -> Result<()> {
        self.set(at, Held::List(Vec::new()))
    }

    pub(super) fn put_struct(&mut self, at: u32) -> Result<()> {
        self.set(at, Held::Struct(Vec::new(), Vec::new()))
    }

    pub(super) fn add_item(&mut self, list: u32) -> Result<u32> {
        let (node, new, number) = self.inside(list)?;
        if matches!(node.held, Held::Nothing) {
            node.held = Held::List(Vec::new());
        }
        let Held::List(items) = &mut node.held else {
            return Err(broken(format!("added an item to value {list}, which is no list")));
        };
        items.push(new);
        self.add(list, number)
    }

    pub(super) fn add_field(&mut self, fields: u32, name: &str) -> Result<u32> {
        let (node, new, number) = self.inside(fields)?;
        if matches!(node.held, Held::Nothing) {
            node.held = Held::Struct(Vec::new(), Vec::new());
        }
        let Held::Struct(names, values) = &mut node.held else {
            return Err(broken(format!("added the field `{name}` to value {fields}, which is no struct")));
        };
        names.push(Str::from(name));
        values.push(new);
        self.add(fields, number)
    }

    fn node(&mut self, at: u32) -> Result<&mut ValueNode> {
        self.nodes.get_mut(at as usize).ok_or_else(|| broken(format!("there is no value {at} in this call")))
    }

    fn set(&mut self, at: u32, held: Held) -> Result<()> {
        let node = self.node(at)?;
        if !matches!(node.held, Held::Nothing) {
            return Err(broken(format!("value {at} was set twice")));
        }
        node.held = held;
        Ok(())
    }

    /// The value that one is added to, and the place and the number of the new one.
    fn inside(&mut self, at: u32) -> Result<(&mut ValueNode, usize, u32)> {
        let new = self.nodes.len();
        let number = u32::try_from(new).ok().filter(|number| *number != c::FOREBAY_NONE);
        let node = self.node(at)?;
        let number = number.ok_or_else(|| Error::limit("a value of more than 4,294,967,294 parts"))?;
        if node.depth >= DEPTH {
            return Err(Error::limit(format!("a value with more than {DEPTH} levels")));
        }
        Ok((node, new, number))
    }

    fn add(&mut self, parent: u32, number: u32) -> Result<u32> {
        let depth = self.node(parent)?.depth + 1;
        self.nodes.push(ValueNode { depth, held: Held::Nothing });
        Ok(number)
    }

    /// The value that was built.
    pub(super) fn value(self, cx: &Context) -> Result<Value> {
        let mut built = self.finish(cx)?;
        let root = built.first_mut().and_then(Option::take);
        root.ok_or_else(|| broken("succeeded, but gave no value"))
    }

    /// The fields of the root, in order.
    pub(super) fn fields(mut self, cx: &Context) -> Result<(Vec<Str>, Vec<Value>)> {
        let root = self.nodes.first_mut().map(|root| std::mem::replace(&mut root.held, Held::Nothing));
        let (names, at) = match root {
            Some(Held::Struct(names, at)) => (names, at),
            Some(Held::Nothing) | None => return Err(broken("succeeded, but gave no sample")),
            Some(_) => return Err(broken("gave a value for a sample, which is made of fields")),
        };
        let values = take_fields(&mut self.finish(cx)?, &names, &at)?;
        Ok((names, values))
    }

    /// Every value, from the last to the first: what lies in a value stands behind it.
    fn finish(self, cx: &Context) -> Result<Vec<Option<Value>>> {
        let blocks: Vec<_> = self.blocks.into_iter().map(BufferMut::freeze).collect();
        let mut built: Vec<Option<Value>> = vec![None; self.nodes.len()];
        for (at, node) in self.nodes.into_iter().enumerate().rev() {
            built[at] = match node.held {
                Held::Nothing => None,
                Held::Value(value) => Some(value),
                Held::Data(CBytes::Buffer(buffer), form) => Some(form.over(buffer, cx)?),
                Held::Data(CBytes::Block(block, range), form) => {
                    let buffer = blocks.get(block).and_then(|block| block.get(range));
                    Some(form.over(buffer.ok_or_else(|| Error::bug("a block of memory is gone"))?, cx)?)
                }
                Held::List(items) => {
                    Some(Value::list(take(&mut built, &items, |index| format!("item {index}"))?))
                }
                Held::Struct(names, values) => {
                    let values = take_fields(&mut built, &names, &values)?;
                    Some(Value::structure(names.into_iter().zip(values).collect()))
                }
            };
        }
        Ok(built)
    }
}

/// Takes the values at these places; each must have been set.
fn take(built: &mut [Option<Value>], at: &[usize], name: impl Fn(usize) -> String) -> Result<Vec<Value>> {
    let one = |(index, at): (usize, &usize)| {
        let value = built.get_mut(*at).and_then(Option::take);
        value.ok_or_else(|| broken(format!("{} was added but not set", name(index))))
    };
    at.iter().enumerate().map(one).collect()
}

/// As [`take`], of a struct, which has each name once.
fn take_fields(built: &mut [Option<Value>], names: &[Str], at: &[usize]) -> Result<Vec<Value>> {
    let mut sorted: Vec<_> = names.iter().map(Str::as_str).collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(broken(format!("field `{}` was added twice", twice[0])));
    }
    take(built, at, |index| format!("field `{}`", names[index]))
}

impl BytesKind {
    fn over(self, data: Buffer, cx: &Context) -> Result<Value> {
        let Self::Tensor(dtype, shape) = self else { return Ok(data.into()) };
        // Readers of tensors may count on aligned elements; a part of a file lies anywhere.
        let is_aligned = data.is_empty() || data.as_ptr().addr().is_multiple_of(dtype.size().max(1));
        let data = if is_aligned { data } else { copied(&data, cx)? };
        Ok(Tensor::try_new(dtype, &shape, data).map_err(broken)?.into())
    }
}

fn copied(data: &[u8], cx: &Context) -> Result<Buffer> {
    let mut memory = cx.alloc(data.len())?;
    memory.copy_from_slice(data);
    Ok(memory.freeze())
}

/// The range of `bytes` that so many bytes at an address are.
pub(super) fn within(bytes: &[u8], address: usize, len: usize) -> Option<Range<usize>> {
    let start = address.checked_sub(bytes.as_ptr().addr())?;
    let end = start.checked_add(len)?;
    (end <= bytes.len()).then_some(start..end)
}
