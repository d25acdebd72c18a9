//! Where the text of a file comes from that is cut: any range of a plain file; a packed one is unpacked as it is read.

use forebay_core::{Blob, Buffer, Context, Result, Sample, State, StateExt as _};
use forebay_unpack::Forward;

use crate::piece::{STATE, saved};

/// A file of text, by the bytes that are in it.
pub(crate) enum Source {
    Plain(Blob),
    Packed(Box<Forward>),
}

/// What lies behind some text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// More of it.
    More,
    /// The end of the file.
    End,
    /// The place where a packed file is broken.
    Damage,
}

impl Source {
    /// The file that a sample is about; what is packed is told by its first bytes.
    pub(crate) fn of(sample: &Sample, cx: &Context<'_>) -> Result<Self> {
        let blob = Blob::of(sample, cx)?;
        Ok(match Forward::open(&blob)? {
            Some(packed) => Self::Packed(Box::new(packed)),
            None => Self::Plain(blob),
        })
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed(_))
    }

    /// So many bytes of blocks, or fewer: what is unpacked must leave room for a line more within the limit for one value.
    pub(crate) fn block(&self, wanted: u64, cx: &Context<'_>) -> u64 {
        if self.is_packed() { wanted.min(cx.limits().bytes / 2).max(1) } else { wanted }
    }

    /// What begins at byte `at`: at least `len` bytes, or all there are, and what lies behind them. Of a packed file `at` is no
    /// byte before those that were read.
    pub(crate) fn ahead(&mut self, at: u64, len: u64, cx: &Context<'_>) -> Result<(Buffer, Rest)> {
        match self {
            Self::Plain(blob) => {
                let all = blob.len();
                let end = at.saturating_add(len).min(all);
                let bytes = if at < end { blob.read(at..end)? } else { Buffer::EMPTY };
                Ok((bytes, if end == all { Rest::End } else { Rest::More }))
            }
            Self::Packed(text) => {
                let passed = usize::try_from(at.saturating_sub(text.at())).unwrap_or(usize::MAX);
                let len = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(passed);
                let held = text.ahead(len, &mut |len| cx.alloc(len))?;
                let rest = match text.ended() {
                    Ok(false) => Rest::More,
                    Ok(true) => Rest::End,
                    Err(_) => Rest::Damage,
                };
                Ok((held.get(passed..).filter(|bytes| !bytes.is_empty()).unwrap_or_default(), rest))
            }
        }
    }

    /// The bytes from `from` to `to`, which were looked at; those before go.
    pub(crate) fn read(&mut self, from: u64, to: u64, cx: &Context<'_>) -> Result<Buffer> {
        match self {
            Self::Plain(blob) => blob.read(from..to),
            Self::Packed(text) => {
                text.go_to(from)?;
                // They are held, so they fit in.
                text.part((to - from) as usize, &mut |len| cx.alloc(len))
            }
        }
    }

    /// Why a packed file goes no further.
    ///
    /// # Errors
    /// Always, where [`Rest::Damage`] was found.
    pub(crate) fn damage(&self) -> Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Packed(text) => text.ended().map(|_| ()),
        }
    }

    /// Goes to a byte that was saved.
    pub(crate) fn restore(&mut self, state: &State) -> Result<u64> {
        match self {
            Self::Plain(blob) => saved(state, blob.len()),
            Self::Packed(text) => {
                let at = state.parse(STATE)?;
                text.go_to(at)?;
                Ok(at)
            }
        }
    }
}
