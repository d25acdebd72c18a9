//! JPEG: sequential and progressive, Huffman-coded, of 8 bits. It reads only what a rectangle of the picture needs, and gives libjpeg's
//! bytes.

mod bits;
mod block;
mod color;
mod fault;
mod header;
mod huffman;
mod idct;
mod progressive;
mod region;
mod scan;
mod separate;
#[expect(unsafe_code, reason = "vector instructions, which load and store through raw pointers")]
mod simd;
mod standard;
mod upsample;

use std::{cell::Cell, rc::Rc};

use forebay_core::{Error, Result};

use crate::jpeg::block::Coder;
use crate::jpeg::header::{Header, Pass, Scans, Segments};
use crate::jpeg::huffman::{Spec, Table};
use crate::jpeg::progressive::Progressive;
use crate::jpeg::region::Region;
use crate::jpeg::scan::{Memory, Scan};
use crate::jpeg::separate::Separate;
use crate::pixels::Crop;
use crate::scratch;

/// A thread keeps this many tables. A picture has up to six of them, nearly always the same.
const TABLES: usize = 12;

/// What a thread keeps from one picture to the next.
#[derive(Default)]
struct Kept {
    memory: Memory,
    tables: Vec<Rc<Table>>,
}

impl Kept {
    fn table(&mut self, spec: &Spec<'_>) -> Rc<Table> {
        if let Some(table) = self.tables.iter().find(|table| table.is_of(spec)) {
            return Rc::clone(table);
        }
        if self.tables.len() >= TABLES {
            self.tables.remove(0);
        }
        let table = Rc::new(Table::new(spec));
        self.tables.push(Rc::clone(&table));
        table
    }
}

thread_local! {
    static KEPT: Cell<Option<Box<Kept>>> = const { Cell::new(None) };
}

/// A JPEG whose header has been read.
pub(crate) struct Picture<'a> {
    header: Header<'a>,
    len: usize,
}

impl<'a> Picture<'a> {
    /// Reads the header.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let rest = match bytes {
            [0xff, 0xd8, rest @ ..] => rest,
            [first, second, ..] => {
                return Err(Error::corrupt(format!(
                    "JPEG begins with {first:02x}{second:02x}, expected ffd8"
                )));
            }
            _ => &[],
        };
        let header = Header::parse(rest).map_err(|fault| fault.error(bytes.len()))?;
        Ok(Self { header, len: bytes.len() })
    }

    /// Height and width.
    pub(crate) fn size(&self) -> [usize; 2] {
        [self.header.height, self.header.width]
    }

    /// The Exif block, without its name.
    pub(crate) fn exif(&self) -> Option<&'a [u8]> {
        self.header.exif
    }

    /// Writes the rectangle `crop`, which is inside of the picture, to `out` as RGB.
    pub(crate) fn read(&self, crop: Crop, out: &mut [u8]) -> Result<()> {
        let region = Region::new(&self.header, crop);
        let mut kept = KEPT.take().unwrap_or_default();
        let result = match &self.header.scans {
            Scans::Sequential(passes) => self.sequential(passes, &region, &mut kept, out),
            Scans::Progressive(segments) => self.progressive(segments, &region, &mut kept.memory, out),
        };
        KEPT.set(Some(kept));
        result
    }

    fn sequential(
        &self,
        passes: &[Pass<'_>],
        region: &Region,
        kept: &mut Kept,
        out: &mut [u8],
    ) -> Result<()> {
        let components = &self.header.components;
        let tables: Vec<_> = components
            .iter()
            .map(|component| (kept.table(&component.dc), kept.table(&component.ac)))
            .collect();
        let coders = components.iter().zip(&tables);
        let coders =
            coders.map(|(component, (dc, ac))| Coder { dc, ac, factors: &component.factors }).collect();
        let memory = &mut kept.memory;
        let result = match passes {
            [pass] => simd::on_this_machine(Scan { pass, region, coders, memory, out }),
            _ => scratch::with(Separate::len(region), |levels| {
                Ok(simd::on_this_machine(Separate { passes, region, coders, levels, memory, out }))
            })?,
        };
        result.map_err(|fault| fault.error(self.len))
    }

    fn progressive(
        &self,
        segments: &Segments<'_>,
        region: &Region,
        memory: &mut Memory,
        out: &mut [u8],
    ) -> Result<()> {
        let len = Progressive::len(region, segments).map_err(|fault| fault.error(self.len))?;
        scratch::with((len + 1) * size_of::<u64>(), |bytes| {
            let (_, words, _) = bytemuck::pod_align_to_mut::<u8, u64>(bytes);
            let (header, segments, words) = (&self.header, segments.clone(), &mut words[..len]);
            let result = simd::on_this_machine(Progressive { header, segments, region, words, memory, out });
            result.map_err(|fault| fault.error(self.len))
        })
    }
}
