//! What `forebay-hdf5` makes of a file, in the words of the manifest.

use std::{collections::BTreeMap, path::Path};

use crate::sha256;
use forebay_bundled::forebay_hdf5::{Class, Dataset, Datatype, File, Group, Object, Order, Target};
use forebay_core::{Buffer, Result, Value, View};
use serde_json::{Value as Json, json};

/// Larger datasets have no digest.
const HASH_MOST: u64 = 64 << 20;
const OBJECTS_MOST: usize = 5000;
const DEPTH_MOST: usize = 40;

pub(crate) fn digest(path: &Path) -> Result<Json> {
    let bytes = Buffer::from(std::fs::read(path)?);
    let file = File::open(bytes.into())?;
    let root = file.root()?;
    let mut walk =
        Walk { objects: Vec::new(), seen: BTreeMap::from([(root.address(), "/".to_owned())]), unreadable: 0 };
    walk.visit(&root, "", 0)?;
    Ok(json!({
        "userblock": file.user_block(),
        "root_attributes": root.attribute_count()?,
        "n": walk.objects.len(),
        "unreadable": walk.unreadable,
        "objects": walk.objects,
    }))
}

/// Every object that has a digest must be there and be the same. Of a file in which not all could be read, nothing else counts.
pub(crate) fn compare(expected: &Json, found: &Json) -> Result<(), String> {
    let list = |from: &Json| from["objects"].as_array().cloned().unwrap_or_default();
    let (wanted, got) = (list(expected), list(found));
    let whole = expected["unreadable"] == 0;
    if whole {
        for key in ["userblock", "root_attributes", "n"] {
            if expected[key] != found[key] {
                return Err(format!("{key} is {}, expected {}", found[key], expected[key]));
            }
        }
        for (wanted, got) in wanted.iter().zip(&got) {
            same(wanted, got)?;
        }
        return Ok(());
    }
    for wanted in wanted.iter().filter(|wanted| wanted[1] == "dataset" && wanted[8].is_string()) {
        match got.iter().find(|got| got[0] == wanted[0]) {
            Some(got) => same(wanted, got)?,
            None => return Err(format!("no {}", wanted[0])),
        }
    }
    Ok(())
}

fn same(wanted: &Json, got: &Json) -> Result<(), String> {
    if wanted == got { Ok(()) } else { Err(format!("found {got}, expected {wanted}")) }
}

struct Walk {
    objects: Vec<Json>,
    seen: BTreeMap<u64, String>,
    unreadable: usize,
}

impl Walk {
    fn visit(&mut self, group: &Group, at: &str, depth: usize) -> Result<()> {
        if depth > DEPTH_MOST || self.objects.len() > OBJECTS_MOST {
            return Ok(());
        }
        let mut links = group.links()?;
        links.sort_by(|one, two| one.name.cmp(&two.name));
        for link in links {
            let path = format!("{at}/{}", link.name);
            let address = match &link.target {
                Target::Object(address) => *address,
                Target::Soft(target) => {
                    self.objects.push(json!([path, "link", target]));
                    continue;
                }
                Target::External(file, target) => {
                    self.objects.push(json!([path, "link", format!("{file}::{target}")]));
                    continue;
                }
                _ => {
                    self.unreadable(&path, "a link of a program's own");
                    continue;
                }
            };
            if let Some(first) = self.seen.get(&address) {
                self.objects.push(json!([path, "alias", first]));
                continue;
            }
            match group.follow(&link) {
                Ok(object) => {
                    self.seen.insert(address, path.clone());
                    self.object(object, &path, depth);
                }
                Err(error) => self.unreadable(&path, &error.to_string()),
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &str, error: &str) {
        self.unreadable += 1;
        self.objects.push(json!([path, "unreadable", error]));
    }

    fn object(&mut self, object: Object, path: &str, depth: usize) {
        let result = match object {
            Object::Group(group) => group.links().and_then(|links| {
                self.objects.push(json!([path, "group", links.len(), group.attribute_count()?]));
                self.visit(&group, path, depth + 1)
            }),
            Object::Dataset(dataset) => self.dataset(&dataset, path),
            Object::Datatype(datatype) => {
                self.objects.push(json!([path, "type", name(&datatype)]));
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.unreadable(path, &error.to_string());
        }
    }

    fn dataset(&mut self, dataset: &Dataset, path: &str) -> Result<()> {
        let layout = match dataset.chunk_shape() {
            Some(shape) => format!("chunked{}", dims(shape)),
            None => dataset.layout().to_owned(),
        };
        let filters: Vec<_> = dataset.filters().iter().map(|filter| filter.id).collect();
        let (form, hash) = match contents(dataset) {
            Ok(contents) => contents,
            Err(error) => {
                self.unreadable += 1;
                (format!("unreadable: {error}"), None)
            }
        };
        let attributes = dataset.attribute_count()?;
        let kind = name(dataset.datatype());
        self.objects.push(json!([
            path,
            "dataset",
            kind,
            dataset.shape(),
            layout,
            filters,
            attributes,
            form,
            hash
        ]));
        Ok(())
    }
}

fn dims(shape: &[impl ToString]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// How the contents are told, and their hash.
fn contents(dataset: &Dataset) -> Result<(String, Option<String>)> {
    let datatype = dataset.datatype();
    let plain = |form: &str| Ok((form.to_owned(), None));
    let Some(shape) = dataset.shape() else { return plain("null-space") };
    let item = if matches!(datatype.class, Class::VarText { .. } | Class::VarList(_)) {
        8
    } else {
        datatype.native_size()
    };
    if shape
        .iter()
        .try_fold(item as u64, |len, &axis| len.checked_mul(axis))
        .is_none_or(|len| len > HASH_MOST)
    {
        return plain("too large");
    }
    match &datatype.class {
        Class::VarText { .. } => {
            let texts = flat(&dataset.read_rows(0..dataset.rows())?, shape.len());
            let texts: Vec<_> = texts.iter().map(text).collect();
            return Ok(("json of strings".into(), Some(sha256(dump(&texts)))));
        }
        Class::VarList(base) => {
            if !matches!(base.class, Class::Int { .. } | Class::Float { .. } | Class::Enum { .. }) {
                return plain(&format!("vlen of {}", self::plain(base)));
            }
            let lists = flat(&dataset.read_rows(0..dataset.rows())?, shape.len());
            let lists = lists.iter().map(numbers).collect::<Vec<_>>().join(",");
            return Ok(("json of lists".into(), Some(sha256(format!("[{lists}]")))));
        }
        _ if nested(datatype) => return plain("references or nested objects: not hashed"),
        _ => {}
    }
    let bytes = dataset.bytes(0..dataset.rows(), &|len| Ok(forebay_core::BufferMut::zeroed(len)))?;
    let form = match &datatype.class {
        Class::Opaque { tag } if tag.starts_with("NUMPY:|S") => "fixed-length strings, raw",
        Class::Opaque { tag } if !tag.starts_with("NUMPY:") => "opaque bytes",
        Class::Text { .. } => "fixed-length strings, raw",
        Class::Compound(_) if datatype.numbers().is_none() => "packed little-endian records",
        Class::Array { base, .. } if matches!(innermost(base).class, Class::Compound(_)) => {
            "packed little-endian records"
        }
        Class::Array { base, .. } if matches!(innermost(base).class, Class::Text { .. }) => {
            "fixed-length strings, raw"
        }
        _ => "little-endian values",
    };
    let mut native = datatype.native(&bytes).into_owned();
    pad(datatype, &mut native);
    Ok((form.into(), Some(sha256(&native))))
}

/// Text as NumPy has it, whatever ends it in the file: padded with zeros.
fn pad(datatype: &Datatype, native: &mut [u8]) {
    let size = datatype.native_size().max(1);
    for element in native.chunks_exact_mut(size) {
        match &datatype.class {
            Class::Text { pad, .. } => {
                let end = match pad {
                    0 => element.iter().position(|&byte| byte == 0).unwrap_or(size),
                    2 => element.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
                    _ => size,
                };
                element[end..].fill(0);
            }
            Class::Array { base, .. } => self::pad(base, element),
            Class::Compound(members) => {
                let mut rest = element;
                for member in members {
                    let (part, after) = rest.split_at_mut(member.datatype.native_size());
                    self::pad(&member.datatype, part);
                    rest = after;
                }
            }
            _ => return,
        }
    }
}

fn innermost(datatype: &Datatype) -> &Datatype {
    match &datatype.class {
        Class::Array { base, .. } => innermost(base),
        _ => datatype,
    }
}

/// Whether some of the elements lie elsewhere.
fn nested(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::VarText { .. } | Class::VarList(_) | Class::Reference { .. } => true,
        Class::Array { base, .. } => nested(base),
        Class::Compound(members) => members.iter().any(|member| nested(&member.datatype)),
        _ => false,
    }
}

/// The elements of nested lists.
fn flat(value: &Value, depth: usize) -> Vec<Value> {
    match value.view() {
        View::List(values) if depth > 0 => values.iter().flat_map(|value| flat(value, depth - 1)).collect(),
        _ => vec![value.clone()],
    }
}

/// Text as Python has it: bytes that are no UTF-8 become lone surrogates.
fn text(value: &Value) -> Vec<u16> {
    match value.view() {
        View::Str(text) => text.encode_utf16().collect(),
        View::Bytes(bytes) => {
            let mut units = Vec::new();
            for chunk in bytes.utf8_chunks() {
                units.extend(chunk.valid().encode_utf16());
                units.extend(chunk.invalid().iter().map(|byte| 0xdc00 + u16::from(*byte)));
            }
            units
        }
        _ => Vec::new(),
    }
}

/// A JSON list of texts, in ASCII.
fn dump(texts: &[Vec<u16>]) -> String {
    let one = |text: &Vec<u16>| {
        let escape = |&unit: &u16| match unit {
            0x22 => "\\\"".into(),
            0x5c => "\\\\".into(),
            0x0a => "\\n".into(),
            0x0d => "\\r".into(),
            0x09 => "\\t".into(),
            0x08 => "\\b".into(),
            0x0c => "\\f".into(),
            0x20..=0x7e => char::from(unit as u8).to_string(),
            _ => format!("\\u{unit:04x}"),
        };
        format!("\"{}\"", text.iter().map(escape).collect::<String>())
    };
    format!("[{}]", texts.iter().map(one).collect::<Vec<_>>().join(","))
}

/// A tensor as a JSON list; floats by the bits of a double.
fn numbers(value: &Value) -> String {
    let Some(tensor) = value.as_tensor() else { return "[]".into() };
    let one = |bytes: &[u8]| {
        let bits = bytes.iter().rev().fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
        match Value::scalar(tensor.dtype(), bits).view() {
            View::Int(int) => int.to_string(),
            View::UInt(int) => int.to_string(),
            View::Bool(truth) => truth.to_string(),
            View::Float(float) if float.is_nan() => "\"7ff8000000000000\"".into(),
            View::Float(float) => format!("\"{:016x}\"", float.to_bits()),
            _ => "?".into(),
        }
    };
    let elements = tensor.data().chunks_exact(tensor.dtype().size()).map(one).collect::<Vec<_>>().join(",");
    format!("[{elements}]")
}

/// The type as NumPy names it.
fn name(datatype: &Datatype) -> String {
    let order = |order: &Order, size: usize| match (order, size) {
        (_, 1) => '|',
        (Order::Big, _) => '>',
        _ => '<',
    };
    let size = datatype.size;
    match &datatype.class {
        Class::Int { signed, order: bytes, .. } => {
            format!("{}{}{size}", order(bytes, size), if *signed { 'i' } else { 'u' })
        }
        Class::Float { order: bytes, .. } => format!("{}f{}", order(bytes, size), datatype.native_size()),
        Class::Text { utf8, .. } => format!("string({},{size})", encoding(*utf8)),
        Class::VarText { utf8 } => format!("string({},vlen)", encoding(*utf8)),
        Class::VarList(base) => format!("vlen({})", plain(base)),
        Class::Enum { .. } if datatype.to_string() == "bool" => "|b1".into(),
        Class::Enum { base, names } => {
            let mut names: Vec<_> =
                names.iter().map(|(name, value)| (name.clone(), integer(base, value))).collect();
            names.sort();
            let names: Vec<_> =
                names.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
            format!("enum({},{{{}}})", self::name(base), names.join(","))
        }
        Class::Reference { region } => {
            format!("ref({})", if *region { "RegionReference" } else { "Reference" })
        }
        Class::Array { base, dims } => format!("{}{}", name(base), self::dims(dims)),
        Class::Compound(members) => match datatype.numbers() {
            Some(_) => {
                let base = name(&members[0].datatype);
                format!("{}c{size}", &base[..1])
            }
            None => {
                let members =
                    members.iter().map(|member| format!("{}:{}", member.name, name(&member.datatype)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        },
        Class::Opaque { tag } if tag.starts_with("NUMPY:|S") => format!("string(ascii,{size})"),
        Class::Opaque { tag } if tag.starts_with("NUMPY:") => tag["NUMPY:".len()..].into(),
        _ => format!("|V{size}"),
    }
}

/// The type as NumPy names it without what h5py knows beside.
fn plain(datatype: &Datatype) -> String {
    match &datatype.class {
        Class::VarText { .. } | Class::VarList(_) | Class::Reference { .. } => "|O".into(),
        Class::Enum { base, .. } => name(base),
        Class::Text { .. } => format!("|S{}", datatype.size),
        Class::Compound(_) if datatype.numbers().is_none() => format!("|V{}", datatype.size),
        Class::Array { .. } => format!("|V{}", datatype.size),
        _ => name(datatype),
    }
}

fn encoding(utf8: bool) -> &'static str {
    if utf8 { "utf-8" } else { "ascii" }
}

/// The value of an enumeration's name.
fn integer(base: &Datatype, value: &[u8]) -> i64 {
    let native = base.native(value);
    let bits = native.iter().rev().fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
    match base.numbers().map(|(dtype, _)| Value::scalar(dtype, bits)) {
        Some(value) => value.as_i64().unwrap_or_default(),
        None => 0,
    }
}
