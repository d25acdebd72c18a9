//! A minimal host for tests.

use std::{
    cell::RefCell,
    collections::HashMap,
    ptr,
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use forebay_core::{
    BufferMut, Context, Decoder, Error, Limits, Result, Store,
    abi::{
        self, HostServices, HostServicesRef, Outcome,
        abi_stable::{
            prefix_type::WithMetadata,
            std_types::{ROption, RSlice, RStr},
        },
        code,
    },
    shim,
};

/// A host that gives a pipe or a decoder its context: memory that was used before, limits, and decoders and a
/// store if you add some.
///
/// The defaults are seed 7, epoch 0, pass 0, rank 0 of 1, the default limits, and node 3.
pub struct Host {
    raw: abi::Context,
}

/// Finds a decoder for a value by its extension, its first bytes, and the pinned name, which is empty if there is
/// none.
pub type Choice = fn(&str, &[u8], &str) -> Result<abi::Decoder>;

/// What hosts were given, by the numbers that stand for them in a context.
static GIVEN: LazyLock<Mutex<HashMap<usize, Given>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Copy)]
struct Given {
    decoders: Choice,
    store: fn() -> Result<abi::Store>,
}

impl Given {
    const NOTHING: Self = Self {
        decoders: |extension, _, _| Err(Error::unsupported(format!("nothing decodes {extension}"))),
        store: || Err(Error::unsupported("no stores here")),
    };

    fn of(host: *const ()) -> Self {
        let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        given.get(&host.addr()).copied().unwrap_or(Self::NOTHING)
    }
}

const TABLE: &WithMetadata<HostServices> =
    &WithMetadata::new(HostServices { alloc, cancelled, log, decoder: decoder_of, store });

impl Host {
    /// A host that offers only memory.
    #[must_use]
    pub fn new() -> Self {
        let raw = abi::Context {
            services: HostServicesRef(TABLE.static_as_prefix()),
            host: ptr::null(),
            seed: 7,
            epoch: 0,
            pass: 0,
            node: 3,
            rank: 0,
            world_size: 1,
            limits: Limits::DEFAULT,
            waker: ptr::null(),
            worker: 0,
            workers: 0,
            reserved: [0; 7],
        };
        Self { raw }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.raw.limits = limits;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.raw.seed = seed;
        self
    }

    /// Sets the epoch.
    #[must_use]
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.raw.epoch = epoch;
        self
    }

    /// Sets the pass over an input that is repeated.
    #[must_use]
    pub fn pass(mut self, pass: u64) -> Self {
        self.raw.pass = pass;
        self
    }

    /// Sets the rank, one of `world_size`.
    #[must_use]
    pub fn rank(mut self, rank: u32, world_size: u32) -> Self {
        (self.raw.rank, self.raw.world_size) = (rank, world_size);
        self
    }

    /// Adds decoders.
    #[must_use]
    pub fn decoders(self, decoders: Choice) -> Self {
        self.give(|given| given.decoders = decoders)
    }

    /// Adds a store, made with its default options, for URLs of any scheme.
    #[must_use]
    pub fn store<S: Store>(self) -> Self {
        self.give(|given| given.store = || (shim::store_entry::<S>().make)("{}", "the test"))
    }

    /// The context for calls of a pipe or decoder.
    #[must_use]
    pub fn context(&self) -> Context<'_> {
        Context::new(&self.raw)
    }

    fn give(mut self, change: impl FnOnce(&mut Given)) -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(1);
        let mut given = Given::of(self.raw.host);
        change(&mut given);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(number, given);
        self.raw.host = ptr::without_provenance(number);
        self
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Host {
    fn clone(&self) -> Self {
        Self { raw: abi::Context { ..self.raw } }
    }
}

/// A decoder with its default options, for [`Host::decoders`].
///
/// # Errors
/// Those of [`Decoder::new`].
pub fn decoder<D: Decoder>() -> Result<abi::Decoder> {
    (shim::decoder_entry::<D>().make)("{}", "the test")
}

extern "C" fn alloc(_: *const (), len: usize, place: &mut ROption<BufferMut>) -> Outcome {
    *place = ROption::RSome(BufferMut::from_owner(vec![0xa5; len]));
    Outcome::of(code::READY, 0)
}

extern "C" fn cancelled(_: *const ()) -> bool {
    false
}

thread_local! {
    /// What was logged on this thread.
    static LOGGED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes the lines that were logged on this thread, whatever their level.
#[must_use]
pub fn logged() -> Vec<String> {
    LOGGED.take()
}

extern "C" fn log(_: *const (), _: u32, line: RStr<'_>) {
    LOGGED.with_borrow_mut(|lines| lines.push(line.as_str().to_owned()));
}

extern "C" fn decoder_of(
    host: *const (),
    extension: RStr<'_>,
    head: RSlice<'_, u8>,
    name: RStr<'_>,
    place: &mut ROption<abi::Decoder>,
) -> Outcome {
    put((Given::of(host).decoders)(extension.as_str(), head.as_slice(), name.as_str()), place)
}

extern "C" fn store(host: *const (), _: RStr<'_>, place: &mut ROption<abi::Store>) -> Outcome {
    put((Given::of(host).store)(), place)
}

fn put<T>(made: Result<T>, place: &mut ROption<T>) -> Outcome {
    match made {
        Ok(made) => {
            *place = ROption::RSome(made);
            Outcome::of(code::READY, 0)
        }
        Err(error) => Outcome::failed(error.into()),
    }
}
