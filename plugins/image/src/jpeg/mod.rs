//! A decoder of its own for the common kind of JPEG, which reads only what a rectangle of the picture needs.
//!
//! It gives libjpeg's bytes. What is not sequential, of 8 bits, and grey or YCbCr is left to zune-jpeg.

mod bits;
mod block;
mod color;
mod header;
mod huffman;
mod idct;
mod region;
mod scan;
mod separate;
#[expect(unsafe_code, reason = "vector instructions, which load and store through raw pointers")]
mod simd;
mod upsample;

use std::{cell::Cell, rc::Rc};

use forebay_core::{Error, Result};

use crate::jpeg::block::Coder;
use crate::jpeg::header::Header;
use crate::jpeg::huffman::{Spec, Table};
use crate::jpeg::region::Region;
use crate::jpeg::scan::{Fault, Memory, Scan};
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

/// A JPEG of the common kind whose header has been read.
pub(crate) struct Sequential<'a>(Header<'a>);

impl<'a> Sequential<'a> {
    /// Reads the header; `None` for a file of another kind, and for a broken header.
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        Header::parse(bytes).map(Self)
    }

    /// Height and width.
    pub(crate) fn size(&self) -> [usize; 2] {
        [self.0.height, self.0.width]
    }

    /// The Exif block, without its name.
    pub(crate) fn exif(&self) -> Option<&'a [u8]> {
        self.0.exif
    }

    /// Writes the rectangle `crop`, which is inside of the picture, to `out` as RGB.
    pub(crate) fn read(&self, crop: Crop, out: &mut [u8]) -> Result<()> {
        let header = &self.0;
        let region = Region::new(header, crop);
        let mut kept = KEPT.take().unwrap_or_default();
        let tables: Vec<_> = header
            .components
            .iter()
            .map(|component| (kept.table(&component.dc), kept.table(&component.ac)))
            .collect();
        let coders = header.components.iter().zip(&tables);
        let coders =
            coders.map(|(component, (dc, ac))| Coder { dc, ac, factors: &component.factors }).collect();
        let memory = &mut kept.memory;
        let region = &region;
        let result = match &*header.passes {
            [pass] => Ok(simd::on_this_machine(Scan { pass, region, coders, memory, out })),
            _ => scratch::with(Separate::len(region), |levels| {
                Ok(simd::on_this_machine(Separate { header, region, coders, levels, memory, out }))
            }),
        };
        KEPT.set(Some(kept));
        result?.map_err(|fault| {
            Error::corrupt(match fault {
                Fault::EndsEarly => "JPEG data ends early",
                Fault::BadCode => "JPEG data is broken: a code or a run of zeros that cannot be",
                Fault::NoRestart => "JPEG data is broken: no restart marker where one belongs",
            })
        })
    }
}
