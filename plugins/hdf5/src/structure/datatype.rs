//! Datatype messages: what one element is (section IV.A.2.d).

use forebay_core::{Error, Result};

use crate::{
    bytes::{Cursor, size},
    datatype::{Class, Datatype, FloatForm, Member, Order},
    file::File,
    structure::header::Body,
};

/// How deep types may lie in one another.
const DEPTH_LIMIT: usize = 32;

pub(crate) fn read(file: &File, (body, at): &Body) -> Result<Datatype> {
    read_type(&mut file.cursor(body, *at), 0)
}

fn read_type(cursor: &mut Cursor<'_>, depth: usize) -> Result<Datatype> {
    if depth > DEPTH_LIMIT {
        return Err(Error::limit(format!("types lie more than {DEPTH_LIMIT} deep in one another"))
            .context("byte", cursor.at()));
    }
    let first = cursor.u8()?;
    let (version, number) = (first >> 4, first & 15);
    if !(1..=5).contains(&version) {
        return Err(cursor.corrupt(format!("found version {version} of a datatype, expected 1 to 5")));
    }
    let bits = cursor.uint(3)? as u32;
    let size = size(cursor.u32()?.into())?;
    if size == 0 {
        return Err(cursor.corrupt("a datatype of no bytes"));
    }
    let order = if bits & 1 == 0 { Order::Little } else { Order::Big };
    let class = match number {
        0 | 4 => {
            let (offset, precision) = (cursor.u16()?, cursor.u16()?);
            if u64::from(offset) + u64::from(precision) > size as u64 * 8 || precision == 0 {
                return Err(cursor.corrupt(format!("{precision} bits from bit {offset} on, in {size} bytes")));
            }
            Class::Int { signed: number == 0 && bits & 8 != 0, order, offset, precision }
        }
        1 => float(cursor, bits, size)?,
        2 => cursor.skip(2).map(|()| Class::Int {
            signed: true,
            order,
            offset: 0,
            precision: size.min(8) as u16 * 8,
        })?,
        3 => Class::Text { pad: (bits & 15) as u8, utf8: bits >> 4 & 15 == 1 },
        5 => {
            let tag = cursor.take((bits & 0xff) as usize)?;
            let tag = tag.split(|&byte| byte == 0).next().unwrap_or_default();
            Class::Opaque { tag: String::from_utf8_lossy(tag).into_owned() }
        }
        6 => Class::Compound(members(cursor, version, bits & 0xffff, size, depth)?),
        7 => Class::Reference { region: bits & 15 != 0 },
        8 => enumeration(cursor, version, bits & 0xffff, size, depth)?,
        9 => {
            let text = (bits & 15 == 1).then_some(bits >> 8 & 15 == 1);
            let base = Box::new(read_type(cursor, depth + 1)?);
            match text {
                Some(utf8) => Class::VarText { utf8 },
                None => Class::VarList(base),
            }
        }
        10 => array(cursor, version, size, depth)?,
        11 => {
            let base = Box::new(read_type(cursor, depth + 1)?);
            let part = |name: &str, offset| Member { name: name.into(), offset, datatype: (*base).clone() };
            if base.size.checked_mul(2) != Some(size) {
                return Err(
                    cursor.corrupt(format!("a complex number of {size} bytes, of two of {}", base.size))
                );
            }
            Class::Compound(vec![part("r", 0), part("i", base.size)])
        }
        _ => return Err(cursor.corrupt(format!("found a datatype of class {number}, expected 0 to 11"))),
    };
    Ok(Datatype { size, class })
}

fn float(cursor: &mut Cursor<'_>, bits: u32, size: usize) -> Result<Class> {
    let order = match (bits & 1, bits >> 6 & 1) {
        (0, 0) => Order::Little,
        (1, 0) => Order::Big,
        _ => Order::Vax,
    };
    let (offset, precision) = (cursor.u16()?, cursor.u16()?);
    let form = FloatForm {
        offset,
        precision,
        sign: (bits >> 8) as u8,
        exponent: (cursor.u8()?, cursor.u8()?),
        mantissa: (cursor.u8()?, cursor.u8()?),
        bias: cursor.u32()?,
        implied: bits >> 4 & 3 == 2,
    };
    let ends = [u32::from(form.sign) + 1, sum(form.exponent), sum(form.mantissa), sum((offset, precision))];
    if ends.iter().any(|&end| u64::from(end) > size as u64 * 8) {
        return Err(cursor.corrupt(format!("a float whose parts do not lie within its {size} bytes")));
    }
    Ok(Class::Float { order, form })
}

fn sum((from, len): (impl Into<u32>, impl Into<u32>)) -> u32 {
    from.into() + len.into()
}

fn name(cursor: &mut Cursor<'_>, padded: bool) -> Result<String> {
    let start = cursor.at();
    let name = String::from_utf8_lossy(cursor.text()?).into_owned();
    if padded {
        cursor.align_from(start)?;
    }
    Ok(name)
}

fn members(
    cursor: &mut Cursor<'_>,
    version: u8,
    count: u32,
    size: usize,
    depth: usize,
) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    // As many bytes as the largest offset takes, as of version 3.
    let width = if version < 3 { 4 } else { crate::bytes::width_of(size as u64) };
    for _ in 0..count {
        let name = name(cursor, version < 3)?;
        let offset = crate::bytes::size(cursor.uint(width)?)?;
        let mut dims = Vec::new();
        if version == 1 {
            let rank = usize::from(cursor.u8()?);
            cursor.skip(3 + 4 + 4)?;
            dims = (0..4).map(|_| Ok(cursor.u32()? as usize)).collect::<Result<Vec<_>>>()?;
            dims.truncate(rank);
        }
        let mut datatype = read_type(cursor, depth + 1)?;
        if !dims.is_empty() {
            datatype = array_of(cursor, dims, datatype)?;
        }
        if offset.checked_add(datatype.size).is_none_or(|end| end > size) {
            let len = datatype.size;
            return Err(
                cursor.corrupt(format!("member `{name}` of {len} bytes at {offset} of a record of {size}"))
            );
        }
        members.push(Member { name, offset, datatype });
    }
    Ok(members)
}

fn enumeration(cursor: &mut Cursor<'_>, version: u8, count: u32, size: usize, depth: usize) -> Result<Class> {
    let base = read_type(cursor, depth + 1)?;
    if !matches!(base.class, Class::Int { .. }) || base.size != size {
        return Err(cursor.corrupt("an enumeration of something else than integers of its size"));
    }
    let names = (0..count).map(|_| name(cursor, version < 3)).collect::<Result<Vec<_>>>()?;
    let values = (0..count).map(|_| Ok(cursor.take(size)?.to_vec())).collect::<Result<Vec<_>>>()?;
    Ok(Class::Enum { base: Box::new(base), names: names.into_iter().zip(values).collect() })
}

fn array(cursor: &mut Cursor<'_>, version: u8, size: usize, depth: usize) -> Result<Class> {
    let rank = usize::from(cursor.u8()?);
    cursor.skip(if version < 3 { 3 } else { 0 })?;
    let dims = (0..rank).map(|_| Ok(cursor.u32()? as usize)).collect::<Result<Vec<_>>>()?;
    cursor.skip(if version < 3 { 4 * rank } else { 0 })?;
    let base = read_type(cursor, depth + 1)?;
    let array = array_of(cursor, dims, base)?;
    if array.size != size {
        return Err(cursor.corrupt(format!("an array of {} bytes, expected {size}", array.size)));
    }
    Ok(array.class)
}

fn array_of(cursor: &Cursor<'_>, dims: Vec<usize>, base: Datatype) -> Result<Datatype> {
    let size = dims.iter().try_fold(base.size, |size, &dim| size.checked_mul(dim)).filter(|&size| size > 0);
    match size {
        Some(size) if dims.len() <= 32 => {
            Ok(Datatype { size, class: Class::Array { base: Box::new(base), dims } })
        }
        _ => Err(cursor.corrupt(format!("an array of shape {dims:?}"))),
    }
}
