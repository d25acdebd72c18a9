//! Where an archive lies: in memory or in a map, far away in a store, or packed.

use std::{borrow::Cow, io::Read as _};

use forebay_core::{Blob, Buffer, BufferMut, Context, Error, Limits, Result};
use forebay_unpack::{Codec, Forward, error_of, peek};

use crate::{
    header::{BLOCK, Header},
    sparse::Sparse,
    walk::{Heads, Input, Member, Passed, Place, within},
    window::{Window, Windowed},
};

/// How much of an archive far away is fetched at once, so that small members do not cost a call each.
const FETCH: u64 = 1 << 20;

/// How sure it is that a file that begins so is an archive: by the checksum of its first header, packed or not.
pub(crate) fn probe(head: &[u8], extension: &str) -> u8 {
    let is_header =
        |bytes: &[u8]| bytes.get(..BLOCK).is_some_and(|block| Header::parse(block.into()).is_ok());
    let inside = peek(head, BLOCK);
    let named = extension.eq_ignore_ascii_case("tar");
    match (is_header(head) || inside.as_deref().is_some_and(is_header), named) {
        (true, _) => 255,
        // Of some packings the head gives nothing, as a block of them is longer.
        (false, true) if inside.is_some() => 240,
        // An empty archive; else a broken one had better be told than left as bytes.
        (false, true) if head.iter().all(|&byte| byte == 0) && !head.is_empty() => 255,
        (false, true) if !head.is_empty() => 16,
        _ => 0,
    }
}

/// Output memory and its limits: the host's, or plain memory where there is no host.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'c>(pub(crate) Option<&'c Context<'c>>);

impl Memory<'_> {
    pub(crate) fn limit(self) -> u64 {
        self.0.map_or(Limits::DEFAULT.bytes, |cx| cx.limits().bytes)
    }

    fn alloc(self, len: usize) -> Result<BufferMut> {
        self.0.map_or_else(|| Ok(BufferMut::zeroed(len)), |cx| cx.alloc(len))
    }
}

/// An archive, as far as it was read.
pub(crate) enum Archive {
    /// In memory or mapped, from some byte of it on: contents are slices of it.
    Here(Window, u64),
    Far(Far),
    Packed(Box<Forward>),
}

impl Archive {
    /// The archive in `blob`, and its bytes where they are in memory.
    pub(crate) fn open(blob: &Blob) -> Result<(Self, Buffer)> {
        let (archive, shard, head) = match blob.in_memory() {
            Some(bytes) => {
                // By the window: to touch a map costs a fault, and its end the attention of all cores.
                let mut window = Window::new(bytes);
                let head = covered(&mut window, bytes, 0, &mut Place::default())?.head(0, BLOCK as u64)?;
                let head = head.into_owned();
                (Self::Here(window, 0), bytes.clone(), head)
            }
            None if blob.is_stream() => {
                let head = blob.ahead(0, BLOCK as u64)?;
                (Self::Packed(Box::new(Forward::plain(blob))), Buffer::EMPTY, head.to_vec())
            }
            None => {
                let mut far = Far { blob: blob.clone(), window: Buffer::EMPTY, at: 0 };
                let head = far.read(0, BLOCK as u64)?.to_vec();
                (Self::Far(far), Buffer::EMPTY, head)
            }
        };
        // A name may begin as packed bytes do.
        let is_tar = head.len() == BLOCK && Header::parse(Cow::Borrowed(&head)).is_ok();
        if !is_tar
            && Codec::of(&head).is_some()
            && let Some(packed) = Forward::open(blob)?
        {
            return Ok((Self::Packed(Box::new(packed)), Buffer::EMPTY));
        }
        Ok((archive, shard))
    }

    /// How many bytes it has, where that is known.
    pub(crate) fn len(&self, shard: &Buffer) -> Option<u64> {
        match self {
            Self::Here(_, start) => Some(start.saturating_add(shard.len() as u64)),
            Self::Far(far) => Some(far.blob.len()),
            Self::Packed(_) => None,
        }
    }

    /// The next member, with what is stored of it.
    pub(crate) fn next<'a>(
        &'a mut self,
        shard: &'a Buffer,
        place: &mut Place,
        memory: Memory<'_>,
    ) -> Result<Option<Member<'a, Buffer>>> {
        match self {
            Self::Here(window, start) => {
                let mut input = covered(window, shard, *start, place)?;
                place.next(&mut input)
            }
            Self::Far(far) => place.next(&mut FarInput { far, memory }),
            Self::Packed(packed) => match place.next(&mut PackedInput { packed, memory })? {
                // What follows the end is nothing to us, but the sum behind it is.
                None => packed.pass(u64::MAX).map(|_| None),
                found => Ok(found),
            },
        }
    }

    /// The next member, of which nothing but the headers is read; in the outer result the error of an archive that is packed.
    pub(crate) fn pass<'a>(
        &'a mut self,
        shard: &'a Buffer,
        place: &mut Place,
    ) -> Result<Result<Option<Member<'a, Passed>>>> {
        match self {
            Self::Here(window, start) => {
                Ok(covered(window, shard, *start, place).and_then(|input| place.next(&mut Heads(input))))
            }
            Self::Far(far) => Ok(place.next(&mut Heads(FarInput { far, memory: Memory(None) }))),
            Self::Packed(_) => Err(Error::unsupported(
                "a packed archive or a pipe cannot be read from the middle; let `untar` read it, or save it to a file first, unpacked",
            )),
        }
    }

    /// What is stored at a place that was passed.
    pub(crate) fn again(&mut self, shard: &Buffer, at: u64, len: u64, memory: Memory<'_>) -> Result<Buffer> {
        match self {
            Self::Here(_, start) => {
                let at = at.saturating_sub(*start);
                Blob::from(shard.clone()).read(at..at.saturating_add(len))
            }
            Self::Far(far) => FarInput { far, memory }.take(at, len),
            Self::Packed(_) => Err(Error::unsupported(
                "a link of a packed archive cannot be followed; unpack the archive first",
            )),
        }
    }
}

/// The bytes of an archive, with the next header read.
fn covered<'a>(
    window: &'a mut Window,
    shard: &'a Buffer,
    start: u64,
    place: &mut Place,
) -> Result<Windowed<'a>> {
    if let Some(at) = place.at() {
        window.cover(shard, at.saturating_sub(start)).inspect_err(|_| place.stop())?;
    }
    Ok(Windowed { archive: shard, window, start })
}

/// The contents of a file: what is stored, or, in memory of its own, with the holes of a sparse one.
pub(crate) fn whole(member: Member<'_, Buffer>, memory: Memory<'_>) -> Result<Buffer> {
    match &member.sparse {
        None => Ok(member.data),
        Some(sparse) => filled(sparse, &member.data, memory),
    }
}

/// The contents of a sparse file, of which `stored` is stored.
pub(crate) fn filled(sparse: &Sparse, stored: &[u8], memory: Memory<'_>) -> Result<Buffer> {
    let mut bytes = memory.alloc(within(sparse.size, memory.limit())?)?;
    sparse.expand(stored, &mut bytes)?;
    Ok(bytes.freeze())
}

/// An archive in a store that cannot show it.
pub(crate) struct Far {
    blob: Blob,
    /// What was fetched last, and where it lies.
    window: Buffer,
    at: u64,
}

impl Far {
    /// The `len` bytes from `at` on, or those there are; fetched together with what follows.
    fn read(&mut self, at: u64, len: u64) -> Result<Buffer> {
        let end = at.saturating_add(len).min(self.blob.len()).max(at.min(self.blob.len()));
        let at = at.min(end);
        if end - at > FETCH {
            return self.blob.read(at..end);
        }
        let within = |window: &Buffer, from: u64| {
            let start = usize::try_from(at.checked_sub(from)?).ok()?;
            // As above: no more than is fetched at once.
            window.get(start..start.checked_add((end - at) as usize)?)
        };
        if let Some(found) = within(&self.window, self.at) {
            return Ok(found);
        }
        self.window = self.blob.read(at..self.blob.len().min(at.saturating_add(FETCH)))?;
        self.at = at;
        within(&self.window, at).ok_or_else(|| Error::bug("the window is shorter than it was made"))
    }
}

struct FarInput<'x, 'c> {
    far: &'x mut Far,
    memory: Memory<'c>,
}

impl<'a> Input<'a> for FarInput<'_, '_> {
    type Data = Buffer;

    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        Ok(Cow::Owned(self.far.read(at, len)?.to_vec()))
    }

    /// A copy, so that no small member keeps alive all that was fetched with it.
    fn take(&mut self, at: u64, len: u64) -> Result<Buffer> {
        within(len, self.memory.limit())?;
        let found = self.far.read(at, len)?;
        if !found.same_owner(&self.far.window) {
            return Ok(found);
        }
        let mut copy = self.memory.alloc(found.len())?;
        copy.copy_from_slice(&found);
        Ok(copy.freeze())
    }

    fn skip(&mut self, at: u64, len: u64) -> Result<u64> {
        Ok(self.far.blob.len().saturating_sub(at).min(len))
    }
}

/// An archive that is unpacked as it is read: only forwards.
struct PackedInput<'x, 'c> {
    packed: &'x mut Forward,
    memory: Memory<'c>,
}

impl<'a> Input<'a> for PackedInput<'_, '_> {
    type Data = Buffer;

    fn head(&mut self, at: u64, len: u64) -> Result<Cow<'a, [u8]>> {
        self.packed.go_to(at)?;
        let mut bytes = Vec::new();
        self.packed.by_ref().take(len).read_to_end(&mut bytes).map_err(error_of)?;
        Ok(Cow::Owned(bytes))
    }

    fn take(&mut self, at: u64, len: u64) -> Result<Buffer> {
        self.packed.go_to(at)?;
        let len = within(len, self.memory.limit())?;
        self.packed.part(len, &mut |len| self.memory.alloc(len))
    }

    fn skip(&mut self, at: u64, len: u64) -> Result<u64> {
        self.packed.go_to(at)?;
        self.packed.pass(len)
    }
}
