//! Markers: what a file says of itself before its scan.

use crate::jpeg::huffman::Spec;

/// One colour plane, and what its blocks are coded with.
#[derive(Debug)]
pub(crate) struct Component<'a> {
    id: u8,
    /// Blocks of an MCU side by side, 1 or 2.
    pub(crate) across: usize,
    /// Blocks of an MCU one below the other, 1 or 2.
    pub(crate) down: usize,
    quant: usize,
    /// What its coefficients are multiplied with, in the order of the file.
    pub(crate) factors: [u16; 64],
    pub(crate) dc: Spec<'a>,
    pub(crate) ac: Spec<'a>,
}

/// A header of the kind that this decoder reads: sequential, 8 bits, grey or YCbCr.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) components: Vec<Component<'a>>,
    /// The Exif block, without its name.
    pub(crate) exif: Option<&'a [u8]>,
    /// One for all components, or several, which together have each component once.
    pub(crate) passes: Vec<Pass<'a>>,
}

/// One of a file's scans.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    /// Which components it has, by their places in the header.
    pub(crate) components: Vec<usize>,
    /// MCUs between two restart markers; 0 is all.
    pub(crate) restart: usize,
    /// The entropy-coded bytes, and what follows them.
    pub(crate) bytes: &'a [u8],
}

/// What the segments before the frame and the scan define.
#[derive(Default)]
struct Tables<'a> {
    quant: [Option<[u16; 64]>; 4],
    dc: [Option<Spec<'a>>; 4],
    ac: [Option<Spec<'a>>; 4],
}

impl<'a> Header<'a> {
    /// Reads up to the last scan; `None` for a file of another kind, and for a broken one.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
        let mut tables = Tables::default();
        let mut header = None::<Self>;
        let (mut restart, mut exif, mut is_jfif, mut adobe) = (0, None, false, None);
        loop {
            let (marker, after) = match *rest {
                [0xff, 0xff, ..] => {
                    rest = &rest[1..];
                    continue;
                }
                [0xff, marker, ref after @ ..] => (marker, after),
                _ => return None,
            };
            let (len, _) = after.split_first_chunk::<2>()?;
            let (segment, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
            let segment = segment.get(2..)?;
            rest = after;
            match marker {
                0xc0 | 0xc1 if header.is_none() => header = Some(frame(segment)?),
                0xc4 => tables.huffman(segment)?,
                0xdb => tables.quant(segment)?,
                0xdd => restart = usize::from(u16::from_be_bytes(segment.try_into().ok()?)),
                0xe1 => exif = segment.strip_prefix(b"Exif\0\0").or(exif),
                0xe0 => is_jfif |= segment.len() >= 14 && segment.starts_with(b"JFIF\0"),
                0xee => adobe = transform(segment)?.or(adobe),
                0xe2..=0xed | 0xef | 0xfe => {}
                0xda => {
                    let header = header.as_mut()?;
                    let components = header.scan(segment, &tables)?;
                    header.passes.push(Pass { components, restart, bytes: rest });
                    let done: usize = header.passes.iter().map(|pass| pass.components.len()).sum();
                    if done == header.components.len() {
                        break;
                    }
                    rest = behind_scan(rest)?;
                }
                _ => return None,
            }
        }
        let header = header?;
        (header.components.len() == 1 || is_jfif || header.is_ycc(adobe)).then_some(Self { exif, ..header })
    }

    /// Whether three components are YCbCr where no JFIF segment says so, as libjpeg guesses.
    fn is_ycc(&self, adobe: Option<u8>) -> bool {
        match adobe {
            Some(transform) => transform != 0,
            None => !self.components.iter().map(|component| component.id).eq(*b"RGB"),
        }
    }

    /// Takes the tables of the components that the header of a scan names, and gives their places.
    fn scan(&mut self, segment: &[u8], tables: &Tables<'a>) -> Option<Vec<usize>> {
        let (count, rest) = segment.split_first()?;
        let (components, rest) = rest.split_at_checked(usize::from(*count) * 2)?;
        if rest != [0, 63, 0] || components.is_empty() {
            return None;
        }
        let mut places = Vec::new();
        for named in components.chunks_exact(2) {
            let [id, table] = *named else { return None };
            let place = self.components.iter().position(|component| component.id == id)?;
            let is_done = self.passes.iter().any(|pass| pass.components.contains(&place));
            if is_done || places.last().is_some_and(|last| *last >= place) {
                return None;
            }
            places.push(place);
            let component = self.components.get_mut(place)?;
            component.factors = (*tables.quant.get(component.quant)?)?;
            component.dc = (*tables.dc.get(usize::from(table >> 4))?)?;
            component.ac = (*tables.ac.get(usize::from(table & 15))?)?;
        }
        Some(places)
    }
}

/// What follows the entropy-coded bytes: the next marker that is no restart.
fn behind_scan(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        bytes = bytes.get(bytes.iter().position(|byte| *byte == 0xff)?..)?;
        match *bytes {
            [_, 0x00 | 0xd0..=0xd7, ref after @ ..] => bytes = after,
            [_, 0xff, ..] => bytes = &bytes[1..],
            [_, _, ..] => return Some(bytes),
            _ => return None,
        }
    }
}

/// The header of the frame; its components have no tables yet.
fn frame<'a>(segment: &[u8]) -> Option<Header<'a>> {
    let (head, rest) = segment.split_first_chunk::<6>()?;
    let [8, h0, h1, w0, w1, count @ (1 | 3)] = *head else { return None };
    let (height, width) =
        (usize::from(u16::from_be_bytes([h0, h1])), usize::from(u16::from_be_bytes([w0, w1])));
    if height == 0 || width == 0 || rest.len() != usize::from(count) * 3 {
        return None;
    }
    let mut components = Vec::with_capacity(3);
    for component in rest.chunks_exact(3) {
        let [id, sampling, quant] = *component else { return None };
        let (across, down) = match (count, sampling >> 4, sampling & 15) {
            // A lone component is not interleaved: an MCU is one block.
            (1, 1..=4, 1..=4) => (1, 1),
            (_, across @ (1 | 2), down @ (1 | 2)) => (usize::from(across), usize::from(down)),
            _ => return None,
        };
        let (quant, dc, ac) = (usize::from(quant), Spec::default(), Spec::default());
        components.push(Component { id, across, down, quant, factors: [0; 64], dc, ac });
    }
    Some(Header { height, width, components, exif: None, passes: Vec::new() })
}

/// What an Adobe segment says of the colours, if this is one; the outer `None` if it is broken.
fn transform(segment: &[u8]) -> Option<Option<u8>> {
    match segment.strip_prefix(b"Adobe") {
        Some(rest) => Some(Some(*rest.get(6)?)),
        None => (segment.len() >= 12).then_some(None),
    }
}

impl<'a> Tables<'a> {
    fn quant(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((kind, rest)) = segment.split_first() {
            let slot = self.quant.get_mut(usize::from(kind & 15))?;
            let mut factors = [0; 64];
            segment = match kind >> 4 {
                0 => {
                    let (bytes, rest) = rest.split_first_chunk::<64>()?;
                    factors = bytes.map(u16::from);
                    rest
                }
                1 => {
                    let (bytes, rest) = rest.split_at_checked(128)?;
                    for (factor, bytes) in factors.iter_mut().zip(bytes.as_chunks::<2>().0) {
                        *factor = u16::from_be_bytes(*bytes);
                    }
                    rest
                }
                _ => return None,
            };
            *slot = Some(factors);
        }
        Some(())
    }

    fn huffman(&mut self, mut segment: &'a [u8]) -> Option<()> {
        while let Some((kind, rest)) = segment.split_first() {
            let tables = match kind >> 4 {
                0 => &mut self.dc,
                1 => &mut self.ac,
                _ => return None,
            };
            let (spec, rest) = Spec::parse(rest, kind >> 4 == 0)?;
            *tables.get_mut(usize::from(kind & 15))? = Some(spec);
            segment = rest;
        }
        Some(())
    }
}
