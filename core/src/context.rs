//! What a pipe, decoder or store is given with every call.

use forebay_abi::{
    self as abi, Buffer, BufferMut, DType, Limits, Tensor, Value, Waker,
    abi_stable::std_types::{ROption, RSlice, RStr},
};

use crate::{
    AnyStore, Error, Result,
    random::{Rng, Rngs, mix, uid_of},
    shim::{Note, check},
    state::TensorExt,
};

/// The level of a line in the host's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is odd.
    Warning = 2,
    /// Something worth knowing.
    Info = 3,
    /// Details, for somebody who searches for a cause.
    Detail = 4,
}

/// The context of one call: output memory, randomness, limits, and the host's services.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    raw: &'a abi::Context,
    /// Worked out once a call, and not for each sample that draws.
    rngs: Rngs,
    /// Where the host is told of the sample that a call is at.
    pub(crate) note: Note,
}

impl<'a> Context<'a> {
    /// Wraps what the host gave.
    #[must_use]
    #[inline]
    pub fn new(raw: &'a abi::Context) -> Self {
        Self { raw, rngs: Rngs::new(mix(&[raw.seed, raw.epoch, raw.pass, raw.node])), note: Note::NONE }
    }

    /// `len` bytes of output memory, with anything in them; the host recycles it.
    ///
    /// Cost: no system call and no page fault once the pool is warm.
    ///
    /// # Errors
    /// `Limit` when the host gives no more.
    pub fn alloc(&self, len: usize) -> Result<BufferMut> {
        let mut memory = ROption::RNone;
        check(crate::shim::services::alloc(self.raw, len, &mut memory))?;
        memory.into_option().ok_or_else(|| Error::bug("the host gave no memory and no reason"))
    }

    /// A row-major tensor, whose elements `fill` is given to write, with anything in them.
    ///
    /// Cost: none of an allocation's for up to [`Value::SMALL`] bytes; that of [`alloc`](Context::alloc) for more.
    ///
    /// # Errors
    /// `Invalid` for more axes than a tensor has; `Limit` for more bytes than one value may have.
    #[inline]
    pub fn tensor(&self, dtype: DType, shape: &[usize], fill: impl FnOnce(&mut [u8])) -> Result<Value> {
        Value::small_tensor(dtype, shape, fill).or_else(|fill| self.large_tensor(dtype, shape, fill))
    }

    fn large_tensor(&self, dtype: DType, shape: &[usize], fill: impl FnOnce(&mut [u8])) -> Result<Value> {
        let limit = self.limits().bytes;
        let len = shape.iter().try_fold(dtype.size(), |bytes, &axis| bytes.checked_mul(axis));
        let len = len.filter(|&len| len as u64 <= limit).ok_or_else(|| {
            Error::limit(format!("{dtype} {shape:?} has more than the {limit} bytes allowed"))
        })?;
        let mut bytes = self.alloc(len)?;
        fill(&mut bytes);
        Ok(Tensor::new(dtype, shape, bytes.freeze())?.into())
    }

    /// Random numbers for the sample with this uid, keyed by (seed, epoch, pass, node).
    #[must_use]
    #[inline]
    pub fn rng(&self, uid: u64) -> Rng {
        self.rngs().of(uid)
    }

    /// As [`rng`](Context::rng), for many samples: what is the same for all is worked out once.
    #[must_use]
    #[inline]
    pub fn rngs(&self) -> Rngs {
        self.rngs
    }

    /// The uid of a sample that this node makes of the sample with the uid `uid`. It is for pipes that give
    /// one sample several times, or samples of several inputs, whose uids may be equal.
    ///
    /// `numbers` tell apart the samples that are made of one: copy, row, input and pass, or anything else
    /// that counts. The first, for which all numbers are 0, keeps the uid, so a pipe that makes one sample of
    /// each changes nothing. The others get uids that no other node makes.
    #[must_use]
    #[inline]
    pub fn uid_of<const N: usize>(&self, uid: u64, numbers: [u64; N]) -> u64 {
        uid_of(self.raw.node, uid, numbers)
    }

    /// What may be taken; to be checked before memory is asked for.
    #[must_use]
    pub fn limits(&self) -> &'a Limits {
        &self.raw.limits
    }

    /// The run's seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.raw.seed
    }

    /// The epoch, from 0.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.raw.epoch
    }

    /// Which pass of the epoch this is for this node: 0 for the first; another number for each time it was started over.
    #[must_use]
    pub fn pass(&self) -> u64 {
        self.raw.pass
    }

    /// This process among those that share the data, from 0: see [`world_size`](Context::world_size).
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.raw.rank
    }

    /// How many processes share the data, each with a loader of its own. No pipe needs it for correct shares: the
    /// loader deals the samples out.
    #[must_use]
    pub fn world_size(&self) -> u32 {
        self.raw.world_size.max(1)
    }

    /// Which of the loader's worker processes this is, from 0, and how many there are; none in the loader's own process, on
    /// whatever thread. For log lines, files to write to and devices to choose: what a pipe gives must not depend on it.
    #[must_use]
    pub fn worker(&self) -> Option<(u32, u32)> {
        (self.raw.workers > 0).then_some((self.raw.worker, self.raw.workers))
    }

    /// The number by which a program tells its loaders apart. Pipes that are linked into the program look up
    /// by it what belongs to their loader. It is 0 if the program gave none, and in worker processes.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.raw.reserved[abi::Context::TAG]
    }

    /// Whether the run was stopped: a long call looks now and then, and returns any error.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        crate::shim::services::cancelled(self.raw)
    }

    /// Writes a line to the host's log.
    ///
    /// An [`Info`](Level::Info) line with more lines below it is counted: the first line says what, the rest says why. The host tells it once, at the end of the
    /// run, with the number of times.
    pub fn log(&self, level: Level, line: &str) {
        crate::shim::services::log(self.raw, level as u32, RStr::from(line));
    }

    /// The waker to call when a pipe that answered [`Step::Pending`](crate::Step::Pending) has something.
    #[must_use]
    pub fn waker(&self) -> Option<Waker> {
        crate::shim::services::waker(self.raw)
    }

    /// The decoder of highest rank, in any plugin, for bytes that begin with `head` and came under a
    /// name with this extension; `name` pins the choice.
    ///
    /// # Errors
    /// `Unsupported` when there is none, with the reason each candidate was refused.
    pub fn decoder(&self, extension: &str, head: &[u8], name: Option<&str>) -> Result<AnyDecoder> {
        let mut found = ROption::RNone;
        let name = RStr::from(name.unwrap_or_default());
        let head = RSlice::from(head);
        check(crate::shim::services::decoder(self.raw, RStr::from(extension), head, name, &mut found))?;
        let found =
            found.into_option().ok_or_else(|| Error::bug("the host gave no decoder and no reason"))?;
        Ok(AnyDecoder(found))
    }

    /// The store, in any plugin, that serves URLs of this scheme; `file` for local paths.
    ///
    /// # Errors
    /// `Unsupported` when there is none, naming the scheme.
    pub fn store(&self, scheme: &str) -> Result<AnyStore> {
        let mut found = ROption::RNone;
        check(crate::shim::services::store(self.raw, RStr::from(scheme), &mut found))?;
        let found = found.into_option().ok_or_else(|| Error::bug("the host gave no store and no reason"))?;
        Ok(AnyStore::new(found))
    }
}

/// A decoder of some plugin, chosen by the host. Cheap to clone, safe to call from many threads.
#[derive(Clone)]
pub struct AnyDecoder(pub(crate) abi::Decoder);

impl AnyDecoder {
    /// Takes a decoder that the host made.
    #[must_use]
    pub fn new(raw: abi::Decoder) -> Self {
        Self(raw)
    }

    /// The handle as it crosses.
    #[must_use]
    pub fn into_raw(self) -> abi::Decoder {
        self.0
    }

    /// How sure the decoder is, from 0 to 255, that bytes with this head are its own.
    ///
    /// # Errors
    /// The decoder's own, and `Panic`.
    pub fn probe(&self, head: &[u8], extension: &str) -> Result<u8> {
        let outcome = crate::shim::services::probe(&self.0, RSlice::from(head), RStr::from(extension));
        check(outcome).map(|detail| u8::try_from(detail).unwrap_or(u8::MAX))
    }

    /// Decodes `bytes`.
    ///
    /// # Errors
    /// The decoder's own, and `Panic`.
    #[inline]
    pub fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
        let mut value = Value::NULL;
        let wanted = abi::Wanted { dtype: wanted.dtype, extension: RStr::from(wanted.extension) };
        check(crate::shim::services::decode(&self.0, cx.raw, bytes, &wanted, &mut value))?;
        Ok(value)
    }
}

/// What the caller of a decoder wishes for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The element type of a tensor; [`DType::ANY`] for the one the decoder gives by itself.
    pub dtype: DType,
    /// The extension of the name the bytes came under, without the dot; may be empty.
    pub extension: &'a str,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self { dtype: DType::ANY, extension: "" }
    }
}
