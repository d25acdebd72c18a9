//! Which buffers an Arrow array has, by its type's format string, and how long each must be.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings>, and for the buffers
//! <https://arrow.apache.org/docs/format/Columnar.html#buffer-listing-for-each-layout>.

use crate::Buffer;

/// What the type is made of: has it a validity buffer, and what the others hold.
pub(crate) struct Layout {
    pub(crate) validity: bool,
    others: &'static [Kind],
    /// How many children it has; any number for structs and unions.
    pub(crate) children: Option<usize>,
    /// Bytes in one value, where a buffer is [`Kind::Fixed`].
    width: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Bits,
    Fixed,
    /// Offsets of so many bytes each, one more than values.
    Offsets(usize),
    /// As many bytes as the last of the offsets before it says, which have so many bytes each.
    Data(usize),
    /// So many bytes a value.
    Each(usize),
    /// Views, then any number of buffers, then their lengths.
    Views,
}

pub(crate) fn layout(format: &str) -> Result<Layout, String> {
    use Kind::{Bits, Data, Each, Fixed, Offsets, Views};
    let of = |validity, others, children, width| Ok(Layout { validity, others, children, width });
    let fixed = |width| of(true, &[Fixed], Some(0), width);
    match format {
        "n" => return of(false, &[], Some(0), 0),
        "b" => return of(true, &[Bits], Some(0), 0),
        "c" | "C" => return fixed(1),
        "s" | "S" | "e" => return fixed(2),
        "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "tiM" => return fixed(4),
        "l" | "L" | "g" | "tdm" | "ttu" | "ttn" | "tiD" => return fixed(8),
        "tin" => return fixed(16),
        "z" | "u" => return of(true, &[Offsets(4), Data(4)], Some(0), 0),
        "Z" | "U" => return of(true, &[Offsets(8), Data(8)], Some(0), 0),
        "vz" | "vu" => return of(true, &[Views], Some(0), 0),
        "+l" | "+m" => return of(true, &[Offsets(4)], Some(1), 0),
        "+L" => return of(true, &[Offsets(8)], Some(1), 0),
        "+vl" => return of(true, &[Each(4), Each(4)], Some(1), 0),
        "+vL" => return of(true, &[Each(8), Each(8)], Some(1), 0),
        "+s" => return of(true, &[], None, 0),
        "+r" => return of(false, &[], Some(2), 0),
        _ => {}
    }
    let (kind, rest) = format.split_once(':').unwrap_or((format, ""));
    match kind {
        "w" => fixed(rest.parse().map_err(|_| format!("`{format}` is no Arrow format"))?),
        "d" => match rest.split(',').nth(2) {
            None | Some("128") => fixed(16),
            Some("32") => fixed(4),
            Some("64") => fixed(8),
            _ => fixed(32),
        },
        "+w" => of(true, &[], Some(1), 0),
        "+ud" => of(false, &[Each(1), Each(4)], None, 0),
        "+us" => of(false, &[Each(1)], None, 0),
        "tss" | "tsm" | "tsu" | "tsn" | "tDs" | "tDm" | "tDu" | "tDn" => fixed(8),
        _ => Err(format!("`{format}` is no Arrow format")),
    }
}

/// How many bytes the buffer at `at` of `count` has, when those that it depends on are known.
pub(crate) fn extent(
    layout: &Layout,
    at: usize,
    count: usize,
    rows: usize,
    known: &[Option<Buffer>],
) -> Result<usize, String> {
    let beyond = || format!("{rows} values are more than memory has");
    let times = |width: usize| rows.checked_mul(width).ok_or_else(beyond);
    let Some(place) = at.checked_sub(layout.validity.into()) else { return Ok(rows.div_ceil(8)) };
    let before = |place: usize| known.get(place).and_then(Option::as_ref).map_or(&[][..], Buffer::as_slice);
    match layout.others.get(place).copied() {
        Some(Kind::Bits) => Ok(rows.div_ceil(8)),
        Some(Kind::Fixed) => times(layout.width),
        Some(Kind::Each(width)) => times(width),
        Some(Kind::Offsets(_)) if rows == 0 => Ok(0),
        Some(Kind::Offsets(width)) => times(width)?.checked_add(width).ok_or_else(beyond),
        Some(Kind::Views) => times(16),
        Some(Kind::Data(_)) if rows == 0 => Ok(0),
        Some(Kind::Data(width)) => number(before(at - 1), rows, width),
        // What follows the views: the lengths come last.
        None if at + 1 == count => Ok((count - 3) * 8),
        None => number(before(count - 1), at - 2, 8),
    }
}

/// The integer at `at` among integers of so many bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Result<usize, String> {
    let missing = || "a buffer of offsets or lengths is missing".to_owned();
    let bytes = bytes.get(at * width..(at + 1) * width).ok_or_else(missing)?;
    let value = match width {
        4 => i64::from(i32::from_ne_bytes(bytes.try_into().unwrap_or_default())),
        _ => i64::from_ne_bytes(bytes.try_into().map_err(|_| missing())?),
    };
    usize::try_from(value).map_err(|_| format!("found {value} for an offset or length"))
}

/// The order in which buffers can be known: the lengths of those that follow views stand in the last.
pub(crate) fn order(layout: &Layout, count: usize) -> Result<Vec<usize>, String> {
    let views = matches!(layout.others.first(), Some(Kind::Views));
    let usual = usize::from(layout.validity) + layout.others.len();
    match views {
        true if count >= 3 => Ok([0, 1, count - 1].into_iter().chain(2..count - 1).collect()),
        false if count == usual => Ok((0..count).collect()),
        _ => Err(format!("found {count} buffers, expected {}", usual + usize::from(views))),
    }
}
