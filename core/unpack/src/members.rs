//! Packed streams that stand one after the other in one source, and nothing behind them.

use std::io::{self, BufRead, Read};

/// A decoder of one packed stream, which leaves what follows in its source.
pub(crate) trait Single: Read {
    /// What it reads from.
    type Source: BufRead;
    /// What another stream begins with; nothing where there is only ever one.
    const NEXT: &'static [u8];

    fn open(source: Self::Source) -> Self;
    fn close(self) -> Self::Source;
}

/// All packed streams of a source. Zeros behind the last are passed over, since writers to tapes pad with them.
pub(crate) struct Members<D: Single> {
    now: Now<D>,
}

enum Now<D: Single> {
    Within(D),
    /// Behind the end of one.
    Between(D::Source),
    Ended,
}

impl<D: Single> Members<D> {
    pub(crate) fn new(source: D::Source) -> Self {
        Self { now: Now::Within(D::open(source)) }
    }

    /// Opens the stream that follows in `source`, or finds the end.
    fn next(mut source: D::Source) -> io::Result<Now<D>> {
        loop {
            let waiting = source.fill_buf()?;
            let zeros = waiting.iter().take_while(|&&byte| byte == 0).count();
            match waiting.get(zeros..) {
                None | Some([]) if waiting.is_empty() => return Ok(Now::Ended),
                None | Some([]) => source.consume(zeros),
                Some([first, ..]) if D::NEXT.first() == Some(first) => {
                    source.consume(zeros);
                    return Ok(Now::Within(D::open(source)));
                }
                Some([first, ..]) => {
                    let message = format!("found byte 0x{first:02x} behind the end");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            }
        }
    }
}

impl<D: Single> Read for Members<D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            self.now = match std::mem::replace(&mut self.now, Now::Ended) {
                Now::Ended => return Ok(0),
                Now::Between(source) => Self::next(source)?,
                Now::Within(mut decoder) => match decoder.read(out) {
                    Ok(0) if !out.is_empty() => Now::Between(decoder.close()),
                    found => {
                        self.now = Now::Within(decoder);
                        return found;
                    }
                },
            };
        }
    }
}
