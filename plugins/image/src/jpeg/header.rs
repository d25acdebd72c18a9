//! Markers: what a file says of itself before its scans, and between them.

use crate::jpeg::fault::{Fault, Why};
use crate::jpeg::huffman::Spec;
use crate::jpeg::standard;

/// The most components of a picture.
pub(crate) const COMPONENTS: usize = 4;

/// One colour plane, and what its blocks are coded with.
#[derive(Debug)]
pub(crate) struct Component<'a> {
    id: u8,
    /// Blocks of an MCU side by side, and one below the other: 1 to 4, by which the picture's most can be divided.
    pub(crate) across: usize,
    pub(crate) down: usize,
    quant: usize,
    /// What its coefficients are multiplied with, in the order of the file.
    pub(crate) factors: [u16; 64],
    pub(crate) dc: Spec<'a>,
    pub(crate) ac: Spec<'a>,
}

/// What the levels of a pixel mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colors {
    Grey,
    Ycc,
    Rgb,
    Cmyk,
    /// CMYK, with the first three as YCbCr.
    Ycck,
}

/// A header of the kind that this decoder reads: sequential or progressive, 8 bits, of 1, 3 or 4 components.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) components: Vec<Component<'a>>,
    pub(crate) colors: Colors,
    /// The Exif block, without its name.
    pub(crate) exif: Option<&'a [u8]>,
    pub(crate) scans: Scans<'a>,
}

/// Where the coefficients are.
#[derive(Debug)]
pub(crate) enum Scans<'a> {
    /// In one scan for all components, or in several, which together have each component once.
    Sequential(Vec<Pass<'a>>),
    /// In scans of some bits of some coefficients, the first of which comes next.
    Progressive(Box<Segments<'a>>),
}

/// One of a sequential file's scans.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    /// Which components it has, by their places in the header.
    pub(crate) components: Vec<usize>,
    /// MCUs between two restart markers; 0 is all.
    pub(crate) restart: usize,
    /// The entropy-coded bytes, and what follows them.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads up to the last scan of a sequential file, and up to the first one of a progressive file; `rest` follows the marker of the
    /// start.
    pub(crate) fn parse(rest: &'a [u8]) -> Result<Self, Fault> {
        let mut segments = Segments::new(rest);
        let (mut frame, mut passes) = (None, Vec::new());
        let (mut exif, mut is_jfif, mut adobe) = (None, false, None);
        let (frame, scans) = loop {
            let (marker, segment) = segments.next()?;
            let fault = |why| Fault::at(segments.last, why);
            match marker {
                0xc0..=0xc2 if frame.is_none() => {
                    frame = Some((Frame::parse(segment).map_err(fault)?, marker == 0xc2));
                }
                0xe0 => is_jfif |= segment.len() >= 14 && segment.starts_with(b"JFIF\0"),
                0xe1 => exif = segment.strip_prefix(b"Exif\0\0").or(exif),
                0xee if segment.starts_with(b"Adobe") => adobe = segment.get(11).copied().or(adobe),
                0xe2..=0xef | 0xfe | 0xdc => {}
                0xda => match frame.take().ok_or(fault(Why::BadMarker))? {
                    (frame, true) => {
                        segments.rest = segments.last;
                        break (frame, Scans::Progressive(Box::new(segments)));
                    }
                    (mut taken, false) => {
                        passes.push(taken.pass(segment, &segments, &passes).map_err(fault)?);
                        let done: usize = passes.iter().map(|pass| pass.components.len()).sum();
                        if done == taken.components.len() {
                            break (taken, Scans::Sequential(passes));
                        }
                        frame = Some((taken, false));
                    }
                },
                // ITU-T T.81, table B.1.
                0xc3 | 0xcb => return Err(fault(Why::Kind("lossless JPEG"))),
                0xc5..=0xc7 | 0xcd..=0xcf | 0xde => return Err(fault(Why::Kind("hierarchical JPEG"))),
                0xc9 | 0xca => return Err(fault(Why::Kind("JPEG of arithmetic coding"))),
                0xd9 => return Err(fault(Why::Unfinished)),
                _ => return Err(fault(Why::BadMarker)),
            }
        };
        let Frame { height, width, components } = frame;
        let colors = colors(&components, is_jfif, adobe);
        Ok(Self { height, width, components, colors, exif, scans })
    }
}

/// What the levels mean, as libjpeg takes it.
fn colors(components: &[Component<'_>], is_jfif: bool, adobe: Option<u8>) -> Colors {
    match (components, adobe) {
        ([_], _) => Colors::Grey,
        ([_, _, _], _) if is_jfif => Colors::Ycc,
        ([_, _, _], Some(0)) => Colors::Rgb,
        ([_, _, _], Some(_)) => Colors::Ycc,
        ([first, second, third], None) if [first.id, second.id, third.id] == *b"RGB" => Colors::Rgb,
        ([_, _, _], None) => Colors::Ycc,
        (_, None | Some(0)) => Colors::Cmyk,
        (_, Some(_)) => Colors::Ycck,
    }
}

/// What the header of the frame says.
struct Frame<'a> {
    height: usize,
    width: usize,
    /// They have no tables yet.
    components: Vec<Component<'a>>,
}

impl<'a> Frame<'a> {
    fn parse(segment: &[u8]) -> Result<Self, Why> {
        let (head, rest) = segment.split_first_chunk::<6>().ok_or(Why::BadSegment)?;
        let [bits, h0, h1, w0, w1, count] = *head;
        let (height, width) = (u16::from_be_bytes([h0, h1]), u16::from_be_bytes([w0, w1]));
        if bits != 8 {
            return Err(Why::Bits(bits));
        }
        if !matches!(count, 1 | 3 | 4) {
            return Err(Why::Components(count));
        }
        if height == 0 {
            return Err(Why::Kind("JPEG whose height is told behind its first scan"));
        }
        if width == 0 || rest.len() != usize::from(count) * 3 {
            return Err(Why::BadSegment);
        }
        let mut components = Vec::with_capacity(COMPONENTS);
        for component in rest.chunks_exact(3) {
            let [id, sampling, quant] = *component else { return Err(Why::BadSegment) };
            let (across, down) = match (count, sampling >> 4, sampling & 15) {
                // A lone component is not interleaved: an MCU is one block.
                (1, 1..=4, 1..=4) => (1, 1),
                (_, across @ 1..=4, down @ 1..=4) => (usize::from(across), usize::from(down)),
                _ => return Err(Why::BadSegment),
            };
            let (quant, dc, ac) = (usize::from(quant), Spec::default(), Spec::default());
            components.push(Component { id, across, down, quant, factors: [0; 64], dc, ac });
        }
        let fits = |count: fn(&Component<'_>) -> usize| {
            let most = components.iter().map(count).max().unwrap_or(1);
            components.iter().all(|component| most.is_multiple_of(count(component)))
        };
        if !fits(|component| component.across) || !fits(|component| component.down) {
            return Err(Why::Kind("JPEG of colour planes whose sizes do not divide that of the largest"));
        }
        Ok(Self { height: usize::from(height), width: usize::from(width), components })
    }

    /// Takes the tables of the components that the header of a sequential scan names; the scan, whose bytes come next.
    fn pass(
        &mut self,
        segment: &[u8],
        segments: &Segments<'a>,
        before: &[Pass<'_>],
    ) -> Result<Pass<'a>, Why> {
        // Some writers leave zeros where the range of coefficients stands.
        let Some((named, [0, 63 | 0, 0])) = named(segment, &self.components) else {
            return Err(Why::BadScan);
        };
        for &(place, table) in &named {
            if before.iter().any(|pass| pass.components.contains(&place)) {
                return Err(Why::BadScan);
            }
            let component = &mut self.components[place];
            component.factors = segments.factors(component).ok_or(Why::NoTable)?;
            // Files of motion JPEG leave out the tables of the standard.
            component.dc = segments.dc(table).or_else(|| standard::dc(table >> 4)).ok_or(Why::NoTable)?;
            component.ac = segments.ac(table).or_else(|| standard::ac(table & 15)).ok_or(Why::NoTable)?;
        }
        let components = named.into_iter().map(|(place, _)| place).collect();
        Ok(Pass { components, restart: segments.restart, bytes: segments.rest })
    }
}

/// The places of a scan's components with the numbers of their tables, and which coefficients and bits of them come.
pub(crate) type Named = (Vec<(usize, u8)>, [u8; 3]);

/// What the header of a scan says.
pub(crate) fn named(segment: &[u8], components: &[Component<'_>]) -> Option<Named> {
    let (count, rest) = segment.split_first()?;
    let (named, rest) = rest.split_at_checked(usize::from(*count) * 2)?;
    let mut places = Vec::with_capacity(COMPONENTS);
    for &[id, table] in named.as_chunks::<2>().0 {
        let place = components.iter().position(|component| component.id == id)?;
        if places.last().is_some_and(|(last, _)| *last >= place) {
            return None;
        }
        places.push((place, table));
    }
    (!places.is_empty()).then_some((places, rest.try_into().ok()?))
}

/// Goes from segment to segment, and keeps what those with tables define.
#[derive(Debug, Clone)]
pub(crate) struct Segments<'a> {
    /// From the last segment's marker on, and what follows that segment.
    pub(crate) last: &'a [u8],
    pub(crate) rest: &'a [u8],
    /// MCUs between two restart markers; 0 is all.
    pub(crate) restart: usize,
    quant: [Option<[u16; 64]>; 4],
    dc: [Option<Spec<'a>>; 4],
    ac: [Option<Spec<'a>>; 4],
}

impl<'a> Segments<'a> {
    fn new(rest: &'a [u8]) -> Self {
        Self { last: rest, rest, restart: 0, quant: [None; 4], dc: [None; 4], ac: [None; 4] }
    }

    /// The next segment without tables: its marker and what it holds, which is nothing of the marker of the end.
    ///
    /// Like libjpeg it passes over what stands between segments, which may be the rest of a scan.
    pub(crate) fn next(&mut self) -> Result<(u8, &'a [u8]), Fault> {
        loop {
            let at = self.rest.iter().position(|byte| *byte == 0xff).unwrap_or(self.rest.len());
            self.last = &self.rest[at..];
            let (marker, after) = match *self.last {
                [_, 0xff, ..] => {
                    self.rest = &self.last[1..];
                    continue;
                }
                // A coded byte, or a marker that is no segment's.
                [_, 0x00 | 0x01 | 0xd0..=0xd7, ref after @ ..] => {
                    self.rest = after;
                    continue;
                }
                [_, 0xd9, ..] => return Ok((0xd9, &[])),
                [_, marker, ref after @ ..] => (marker, after),
                _ => return Err(Fault::at(self.last, Why::EndsEarly)),
            };
            let fault = |why| Fault::at(self.last, why);
            let (len, _) = after.split_first_chunk::<2>().ok_or(fault(Why::EndsEarly))?;
            let len = usize::from(u16::from_be_bytes(*len));
            let (segment, after) = after.split_at_checked(len).ok_or(fault(Why::EndsEarly))?;
            self.rest = after;
            let segment = segment.get(2..).ok_or(fault(Why::BadSegment))?;
            let is_whole = match marker {
                0xc4 => self.huffman(segment),
                0xdb => self.quant(segment),
                0xdd => self.interval(segment),
                _ => return Ok((marker, segment)),
            };
            is_whole.ok_or(Fault::at(self.last, Why::BadSegment))?;
        }
    }

    fn interval(&mut self, segment: &[u8]) -> Option<()> {
        self.restart = usize::from(u16::from_be_bytes(segment.try_into().ok()?));
        Some(())
    }

    /// What the coefficients of a component are multiplied with, in the order of the file.
    pub(crate) fn factors(&self, component: &Component<'_>) -> Option<[u16; 64]> {
        *self.quant.get(component.quant)?
    }

    /// The tables that the header of a scan gives a component.
    pub(crate) fn dc(&self, number: u8) -> Option<Spec<'a>> {
        *self.dc.get(usize::from(number >> 4))?
    }

    pub(crate) fn ac(&self, number: u8) -> Option<Spec<'a>> {
        *self.ac.get(usize::from(number & 15))?
    }

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
