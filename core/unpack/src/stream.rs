//! Unpacks bytes as they are read.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bzip2::bufread::BzDecoder;
use flate2::{Decompress, FlushDecompress, Status, bufread::GzDecoder};
use forebay_core::{Blob, Error, ErrorKind, Result};
use liblzma::{bufread::XzDecoder, stream};

use crate::{
    Codec, Input,
    lz4::Lz4,
    lzw::Lzw,
    members::{Members, Single},
};

/// The most layers of packing. A limit is needed because some bytes unpack to themselves.
pub const LAYERS: usize = 4;

/// The most memory that an xz dictionary may take; its presets take 64 MiB at most.
const XZ_MEMORY: u64 = 256 << 20;

/// A source of packed bytes.
type Source = Counted<Box<dyn BufRead + Send>>;

/// Packed bytes, unpacked as they are read. The last read gives an error unless the packed bytes ended where they should.
///
/// ```
/// use forebay_unpack::{Codec, Unpacked};
/// use std::io::Read;
///
/// // "heron\n", written by gzip.
/// let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH-\xca\xcf\xe3\x02\0\x94\x9f\xa1\x9d\x06\0\0\0";
/// let mut text = String::new();
/// Unpacked::new(Codec::of(packed).unwrap(), Box::new(&packed[..]))?.read_to_string(&mut text)?;
/// assert_eq!(text, "heron\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Unpacked {
    /// None where nothing is packed.
    codec: Option<Codec>,
    /// How many layers of packing there are down to what it gives, as far as it opened them.
    layers: usize,
    /// How many packed bytes were taken, and how many bytes were given.
    taken: Arc<AtomicU64>,
    given: u64,
    decoder: Decoder,
}

enum Decoder {
    Gzip(Members<GzDecoder<Source>>),
    Zlib(Members<Zlib>),
    Zstd(zstd::Decoder<'static, Source>),
    Xz(XzDecoder<Source>),
    Bzip2(Members<BzDecoder<Source>>),
    Lz4(Lz4<Source>),
    Compress(Lzw<Source>),
    Plain(Source),
}

impl Unpacked {
    /// Unpacks the bytes of `source`, packed by `codec`.
    ///
    /// # Errors
    /// `Limit` if the system gives no memory for a decoder.
    pub fn new(codec: Codec, source: Box<dyn BufRead + Send>) -> Result<Self> {
        let taken = Arc::new(AtomicU64::new(0));
        let source = Counted { source, count: taken.clone() };
        let no_memory =
            |error: &dyn std::fmt::Display| Error::limit(format!("no {} decoder: {error}", codec.name()));
        let decoder = match codec {
            Codec::Gzip => Decoder::Gzip(Members::new(source)),
            Codec::Zlib => Decoder::Zlib(Members::new(source)),
            Codec::Zstd => {
                Decoder::Zstd(zstd::Decoder::with_buffer(source).map_err(|error| no_memory(&error))?)
            }
            Codec::Xz => {
                let stream = stream::Stream::new_stream_decoder(XZ_MEMORY, stream::CONCATENATED)
                    .map_err(|error| no_memory(&error))?;
                Decoder::Xz(XzDecoder::new_stream(source, stream))
            }
            Codec::Bzip2 => Decoder::Bzip2(Members::new(source)),
            Codec::Lz4 => Decoder::Lz4(Lz4::new(source)),
            Codec::Compress => Decoder::Compress(Lzw::new(source)),
        };
        Ok(Self { codec: Some(codec), layers: 1, taken, given: 0, decoder })
    }

    /// The bytes of `source` as they are.
    #[must_use]
    pub fn plain(source: Box<dyn BufRead + Send>) -> Self {
        let taken = Arc::new(AtomicU64::new(0));
        let source = Counted { source, count: taken.clone() };
        Self { codec: None, layers: 0, taken, given: 0, decoder: Decoder::Plain(source) }
    }

    /// The contents of `blob` beneath all layers of packing. `None` if it is not packed, unless it is a stream,
    /// which can be read only in this way.
    ///
    /// # Errors
    /// Those of the blob and of reading; `Limit` for more than [`LAYERS`] layers.
    pub fn open(blob: &Blob) -> Result<Option<BufReader<Self>>> {
        let head = blob.ahead(0, Codec::HEAD as u64)?;
        let input = Box::new(Input::new(blob.clone(), 0));
        let Some(codec) = Codec::of(&head) else {
            return Ok(blob.is_stream().then(|| buffered(Self::plain(input))));
        };
        let mut reader = buffered(Self::new(codec, input)?);
        for layers in 2..=LAYERS {
            let Some(codec) = Codec::of(reader.fill_buf().map_err(error_of)?) else {
                return Ok(Some(reader));
            };
            reader = buffered(Self { layers, ..Self::new(codec, Box::new(reader))? });
        }
        match Codec::of(reader.fill_buf().map_err(error_of)?) {
            Some(_) => Err(Error::limit(format!("packed more than {LAYERS} times, one within the other"))),
            None => Ok(Some(reader)),
        }
    }

    /// How many layers of packing it removes: 0 for plain bytes, 1, or as many as [`open`](Self::open) found.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.layers
    }

    fn describe(&self, error: io::Error) -> Error {
        let named =
            error.get_ref().is_some_and(|inner| inner.is::<Error>()) || error.raw_os_error().is_some();
        if named {
            return error_of(error);
        }
        let codec = self.codec.map_or("plain", Codec::name);
        let message = match error.kind() {
            io::ErrorKind::UnexpectedEof => format!("truncated {codec} data"),
            _ => format!("broken {codec} data: {error}"),
        };
        Error::corrupt(message)
            .context("packed byte", self.taken.load(Relaxed))
            .context("unpacked byte", self.given)
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let found = match &mut self.decoder {
            Decoder::Gzip(members) => members.read(out),
            Decoder::Zlib(members) => members.read(out),
            Decoder::Zstd(decoder) => decoder.read(out),
            Decoder::Xz(decoder) => decoder.read(out),
            Decoder::Bzip2(members) => members.read(out),
            Decoder::Lz4(decoder) => decoder.read(out),
            Decoder::Compress(decoder) => decoder.read(out),
            Decoder::Plain(source) => source.read(out),
        };
        match found {
            Ok(count) => {
                self.given = self.given.saturating_add(count as u64);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(io::Error::other(self.describe(error))),
        }
    }
}

fn buffered(unpacked: Unpacked) -> BufReader<Unpacked> {
    BufReader::with_capacity(64 << 10, unpacked)
}

/// The [`Error`] inside an error of reading [`Unpacked`]; any other error becomes the kind `Io`.
#[must_use]
pub fn error_of(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(inner) => inner,
        Err(error) => Error::new(ErrorKind::Io, error.to_string()),
    }
}

/// A reader that tells how far it is.
struct Counted<R> {
    source: R,
    count: Arc<AtomicU64>,
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count.fetch_add(count as u64, Relaxed);
        self.source.consume(count);
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl Single for GzDecoder<Source> {
    type Source = Source;
    const NEXT: &'static [u8] = b"\x1f\x8b";

    fn open(source: Source) -> Self {
        Self::new(source)
    }

    fn close(self) -> Source {
        self.into_inner()
    }
}

impl Single for BzDecoder<Source> {
    type Source = Source;
    const NEXT: &'static [u8] = b"BZh";

    fn open(source: Source) -> Self {
        Self::new(source)
    }

    fn close(self) -> Source {
        self.into_inner()
    }
}

/// One zlib stream.
struct Zlib {
    source: Source,
    inflate: Decompress,
    ended: bool,
}

impl Single for Zlib {
    type Source = Source;
    const NEXT: &'static [u8] = b"";

    fn open(source: Source) -> Self {
        Self { source, inflate: Decompress::new(true), ended: false }
    }

    fn close(self) -> Source {
        self.source
    }
}

impl Read for Zlib {
    /// As flate2's own reader, which takes the end of its source for the end of the stream.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !out.is_empty() {
            let waiting = self.source.fill_buf()?;
            let flush = if waiting.is_empty() { FlushDecompress::Finish } else { FlushDecompress::None };
            let at_end = waiting.is_empty();
            let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(waiting, out, flush);
            let status = status.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let (taken, given) = (self.inflate.total_in() - taken, self.inflate.total_out() - given);
            // Both counts lie within the slices given.
            self.source.consume(taken as usize);
            self.ended = status == Status::StreamEnd;
            if given > 0 {
                return Ok(given as usize);
            }
            if at_end && !self.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
