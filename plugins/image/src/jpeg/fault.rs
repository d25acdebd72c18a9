//! What can be wrong with a file, and where.

use forebay_core::Error;

/// Why a file could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The data ends before the picture does.
    EndsEarly,
    /// The marker of the end comes before all bits of all coefficients did.
    Unfinished,
    /// A code that the tables lack, or more coefficients than a block has.
    BadCode,
    /// It is of a kind that is not read.
    Kind(&'static str),
    /// Levels of so many bits.
    Bits(u8),
    /// A picture of so many components.
    Components(u8),
    /// Something else where a restart marker belongs.
    NoRestart,
    /// A segment whose length or whose table cannot be.
    BadSegment,
    /// A marker that does not belong where it is.
    BadMarker,
    /// A scan of components, coefficients or bits that cannot be together.
    BadScan,
    /// A scan of bits that have come already, or that do not follow on those that have.
    BadOrder,
    /// A scan whose tables are not there.
    NoTable,
    /// More scans than are read of one picture.
    TooManyScans,
}

/// A fault, and how many bytes there are from its place to the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) why: Why,
    pub(crate) left: usize,
}

impl Fault {
    /// A fault at the first of these last bytes of the file.
    pub(crate) fn at(rest: &[u8], why: Why) -> Self {
        Self { why, left: rest.len() }
    }

    /// What the caller is told, of a file of `len` bytes.
    pub(crate) fn error(self, len: usize) -> Error {
        let error = match self.why {
            Why::EndsEarly => Error::corrupt("JPEG data ends early"),
            Why::Unfinished => {
                Error::corrupt("JPEG data ends early: scans are missing before the marker of the end")
            }
            Why::BadCode => Error::corrupt("JPEG data is broken: a code or a run of zeros that cannot be"),
            Why::Kind(kind) => Error::unsupported(kind),
            Why::Bits(bits) => Error::unsupported(format!("JPEG of {bits} bits, expected 8")),
            Why::Components(count) => {
                Error::unsupported(format!("JPEG of {count} components, expected 1, 3 or 4"))
            }
            Why::NoRestart => Error::corrupt("JPEG data is broken: no restart marker where one belongs"),
            Why::BadSegment => Error::corrupt("JPEG segment is broken"),
            Why::BadMarker => Error::corrupt("JPEG data is broken: a marker that does not belong here"),
            Why::BadScan => Error::corrupt("JPEG scan of components, coefficients or bits that cannot be"),
            Why::BadOrder => {
                Error::corrupt("JPEG scan of bits that came before, or that do not follow on those that did")
            }
            Why::NoTable => Error::corrupt("JPEG scan whose tables are missing"),
            Why::TooManyScans => {
                Error::limit(format!("JPEG has more than {} scans", super::progressive::MOST_SCANS))
            }
        };
        error.context("byte", len.saturating_sub(self.left))
    }
}
