//! The context that a pipe, decoder or store gets with every call.

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
    /// Details, to search for a cause.
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
    /// Wraps the host's context.
    #[must_use]
    #[inline]
    pub fn new(raw: &'a abi::Context) -> Self {
        Self { raw, rngs: Rngs::new(mix(&[raw.seed, raw.epoch, raw.pass, raw.node])), note: Note::NONE }
    }

    /// `len` bytes of output memory, with arbitrary contents. The host recycles it.
    ///
    /// Cost: no system call and no page fault once the pool is warm.
    ///
    /// # Errors
    /// `Limit` if the host gives no more.
    pub fn alloc(&self, len: usize) -> Result<BufferMut> {
        let mut memory = ROption::RNone;
        check(crate::shim::services::alloc(self.raw, len, &mut memory))?;
        memory.into_option().ok_or_else(|| Error::bug("the host gave no memory and no reason"))
    }

    /// A row-major tensor. `fill` writes its elements; before, their contents are arbitrary.
    ///
    /// Cost: no allocation for up to [`Value::SMALL`] bytes; that of [`alloc`](Context::alloc) for more.
    ///
    /// # Errors
    /// `Invalid` for more axes than a tensor can have; `Limit` for more bytes than one value can have.
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

    /// As [`rng`](Context::rng), for many samples: the common part is computed once.
    #[must_use]
    #[inline]
    pub fn rngs(&self) -> Rngs {
        self.rngs
    }

    /// The uid of a sample that this node makes from the sample with the uid `uid`. It is for pipes that give one
    /// sample several times, or samples of several inputs, whose uids can be equal.
    ///
    /// `numbers` distinguish the samples that are made from one: copy, row, input and pass, or any other count.
    /// The first, for which all numbers are 0, keeps the uid, so a pipe that makes one sample of each changes
    /// nothing. The others get uids that no other node makes.
    #[must_use]
    #[inline]
    pub fn uid_of<const N: usize>(&self, uid: u64, numbers: [u64; N]) -> u64 {
        uid_of(self.raw.node, uid, numbers)
    }

    /// The limits. Check them before you ask for memory.
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

    /// The pass of the epoch for this node: 0 for the first, another number each time the node is started over.
    #[must_use]
    pub fn pass(&self) -> u64 {
        self.raw.pass
    }

    /// The number of this process among those that share the data, from 0: see
    /// [`world_size`](Context::world_size).
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.raw.rank
    }

    /// How many processes share the data, each with its own loader. No pipe needs it for correct shares, because
    /// the loader assigns samples to ranks.
    #[must_use]
    pub fn world_size(&self) -> u32 {
        self.raw.world_size.max(1)
    }

    /// The number of this worker process of the loader, from 0, and how many there are; `None` in the loader's own
    /// process, on every thread. It is for log lines, file names and the choice of devices. The output of a pipe
    /// must not depend on it.
    #[must_use]
    pub fn worker(&self) -> Option<(u32, u32)> {
        (self.raw.workers > 0).then_some((self.raw.worker, self.raw.workers))
    }

    /// The number that tells the loaders of a program apart. Linked pipes use it to find the data of their loader.
    /// It is 0 if the program set none, and in worker processes.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.raw.reserved[abi::Context::TAG]
    }

    /// Whether the run was stopped. A long call must look now and then, and return any error.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        crate::shim::services::cancelled(self.raw)
    }

    /// Writes a line to the host's log.
    ///
    /// An [`Info`](Level::Info) line with more lines below it is counted: the first line says what happened, the
    /// rest says why. The host prints it once, at the end of the run, with the count.
    pub fn log(&self, level: Level, line: &str) {
        crate::shim::services::log(self.raw, level as u32, RStr::from(line));
    }

    /// The waker for a pipe that returned [`Step::Pending`](crate::Step::Pending): call it when there is
    /// something.
    #[must_use]
    pub fn waker(&self) -> Option<Waker> {
        crate::shim::services::waker(self.raw)
    }

    /// The best decoder of any plugin for bytes that begin with `head` and came under a name with this extension.
    /// `name` pins the choice.
    ///
    /// # Errors
    /// `Unsupported` if there is none, with the reason why each candidate was refused.
    pub fn decoder(&self, extension: &str, head: &[u8], name: Option<&str>) -> Result<AnyDecoder> {
        let mut found = ROption::RNone;
        let name = RStr::from(name.unwrap_or_default());
        let head = RSlice::from(head);
        check(crate::shim::services::decoder(self.raw, RStr::from(extension), head, name, &mut found))?;
        let found =
            found.into_option().ok_or_else(|| Error::bug("the host gave no decoder and no reason"))?;
        Ok(AnyDecoder(found))
    }

    /// The store of any plugin that serves URLs of this scheme; `file` for local paths.
    ///
    /// # Errors
    /// `Unsupported` if there is none, with the scheme.
    pub fn store(&self, scheme: &str) -> Result<AnyStore> {
        let mut found = ROption::RNone;
        check(crate::shim::services::store(self.raw, RStr::from(scheme), &mut found))?;
        let found = found.into_option().ok_or_else(|| Error::bug("the host gave no store and no reason"))?;
        Ok(AnyStore::new(found))
    }
}

/// A decoder of some plugin, chosen by the host. It is cheap to clone, and safe to call from many threads.
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
    /// Those of the decoder, and `Panic`.
    pub fn probe(&self, head: &[u8], extension: &str) -> Result<u8> {
        let outcome = crate::shim::services::probe(&self.0, RSlice::from(head), RStr::from(extension));
        check(outcome).map(|detail| u8::try_from(detail).unwrap_or(u8::MAX))
    }

    /// Decodes `bytes`.
    ///
    /// # Errors
    /// Those of the decoder, and `Panic`.
    #[inline]
    pub fn decode(&self, bytes: &Buffer, wanted: &Wanted<'_>, cx: &Context<'_>) -> Result<Value> {
        let mut value = Value::NULL;
        let wanted = abi::Wanted { dtype: wanted.dtype, extension: RStr::from(wanted.extension) };
        check(crate::shim::services::decode(&self.0, cx.raw, bytes, &wanted, &mut value))?;
        Ok(value)
    }
}

/// What the caller of a decoder wants.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The element type of a tensor; [`DType::ANY`] for the decoder's default.
    pub dtype: DType,
    /// The extension of the name of the bytes, without the dot. It can be empty.
    pub extension: &'a str,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self { dtype: DType::ANY, extension: "" }
    }
}
