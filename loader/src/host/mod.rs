//! What the loader offers to plugins while a graph runs: memory, the choice of decoders, a log, a stop.
#![expect(unsafe_code, reason = "the services are C functions that find their host by address")]

pub(crate) mod call;
mod counter;
pub(crate) mod crash;
pub(crate) mod decoding;
pub(crate) mod home;
mod lent;
mod losses;
pub(crate) mod maps;
mod notes;
mod pool;
pub(crate) mod signals;
mod stacker;

use std::{
    collections::BTreeSet,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use forebay_core::{
    BufferMut, Error, ErrorKind, Key, Level, Limits, Waker,
    abi::{
        Context, Decoder, HostServices, HostServicesRef, Outcome, Store,
        abi_stable::{
            prefix_type::WithMetadata,
            std_types::{ROption, RSlice, RStr},
        },
    },
    shim::guarded,
    without_secrets,
};

pub use self::notes::Note;
use self::{home::Home, losses::Losses, notes::Notes};
pub(crate) use self::{lent::Lent, pool::Pool, stacker::Stacker};
use crate::{
    Registry,
    graph::{Action, OnError},
    ledger::Ledger,
    queue::process::Heap,
    registry::Tuned,
};

/// The most lines that wait to be read in the log.
const LOG: usize = 1000;
/// The most bytes of unshared memory that a worker keeps to use again.
const KEEP_IN_WORKER: usize = 64 << 20;

/// A running graph's services.
pub(crate) struct Host {
    registry: Registry,
    /// Which worker process this is, of how many; of none in the loader's own.
    pub(crate) worker: (u32, u32),
    pool: Arc<Pool>,
    ledger: Arc<Ledger>,
    limits: Limits,
    cancelled: AtomicBool,
    /// Chains are to come back, since an epoch is given up.
    paused: AtomicBool,
    /// Some node has so many marks that old ones should be forgotten.
    trim: AtomicBool,
    bells: Mutex<Vec<Waker>>,
    log: Mutex<Vec<(u32, String)>>,
    notes: Mutex<Notes>,
    lost: Mutex<Losses>,
    elsewhere: Mutex<BTreeSet<String>>,
    /// Where relative paths begin.
    home: Option<Home>,
}

/// A sample that was left out because a pipe failed on it; see [`OnError`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostSample {
    /// The node that failed.
    pub node: String,
    /// What a person can open; none where a source failed to give it.
    pub key: Option<String>,
    /// The sample's uid, where it had one.
    pub uid: Option<u64>,
    /// Why, and where.
    pub error: Error,
}

impl Host {
    /// A host whose pool and ledger these are.
    pub(crate) fn new(registry: Registry, limits: Limits, pool: Arc<Pool>, ledger: Arc<Ledger>) -> Arc<Self> {
        Self::of(registry, limits, (pool, ledger), (0, 0))
    }

    fn of(
        registry: Registry,
        limits: Limits,
        (pool, ledger): (Arc<Pool>, Arc<Ledger>),
        worker: (u32, u32),
    ) -> Arc<Self> {
        Arc::new(Self {
            registry,
            worker,
            pool,
            ledger,
            limits,
            cancelled: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            trim: AtomicBool::new(false),
            bells: Mutex::default(),
            log: Mutex::default(),
            notes: Mutex::default(),
            lost: Mutex::default(),
            elsewhere: Mutex::default(),
            home: Home::here(),
        })
    }

    /// The host of this worker process of so many, whose output memory is shared with its loader.
    pub(crate) fn for_worker(
        registry: Registry,
        limits: Limits,
        (heap, ledger): (Heap, Arc<Ledger>),
        worker: (u32, u32),
    ) -> Arc<Self> {
        Self::of(registry, limits, (Pool::new(KEEP_IN_WORKER, Some(heap)), ledger), worker)
    }

    /// Whether this is a worker process.
    pub(crate) fn is_worker(&self) -> bool {
        self.worker.1 > 0
    }

    /// Where relative paths begin: where the program was as this was made.
    pub(crate) fn home(&self) -> Option<&Home> {
        self.home.as_ref()
    }

    /// Has this thread back in its folder, and says so if a plugin had it leave.
    pub(crate) fn keep_home(&self, home: Option<&Home>) {
        if home.is_some_and(Home::come_back) {
            self.note(
                2,
                "a plugin changed the folder that relative paths begin at; it was changed back".to_owned(),
            );
        }
    }

    /// The decoder that a thread or worker process noted as the one it is in.
    pub(crate) fn decoder_noted(&self, id: u32) -> Option<call::Callee> {
        self.registry.decoder_noted(id)
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Works on the chunk with this number on this thread, at this seat: its large blocks wait for those of others.
    pub(crate) fn at_seat<T>(&self, seat: usize, number: u64, work: impl FnOnce() -> T) -> T {
        let _sitting = self.ledger.sit(seat, number);
        work()
    }

    /// Tells every pipe that looks to give up.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.ledger.stop();
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Waker::wake);
    }

    /// Has `waker` called when the run is stopped.
    pub(crate) fn on_cancel(&self, waker: Waker) {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Has chains come back at once, or no more.
    pub(crate) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Says that marks should be forgotten.
    pub(crate) fn ask_for_trim(&self) {
        self.trim.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked, since the last time.
    pub(crate) fn take_trim(&self) -> bool {
        self.trim.load(Ordering::Relaxed) && self.trim.swap(false, Ordering::Relaxed)
    }

    /// A node failed on a sample, or failed and goes on, and its policy forgives.
    pub(crate) fn lose(&self, node: &str, policy: OnError, who: Option<(u64, &Key)>, error: Error) {
        if matches!(policy.action, Action::Quarantine | Action::FailAtEnd) {
            let key = who.map(|(_, key)| without_secrets(&key.to_string()).into_owned());
            let key = key.or_else(|| error.get("sample").map(str::to_owned));
            self.add_lost(LostSample { node: node.to_owned(), key, uid: who.map(|(uid, _)| uid), error });
        } else {
            self.note(2, error.to_string());
        }
    }

    /// Lists a sample that was set aside.
    pub(crate) fn add_lost(&self, lost: LostSample) {
        self.losses().add(lost);
    }

    /// Takes the samples that were set aside since the last time.
    pub(crate) fn take_lost(&self) -> Vec<LostSample> {
        std::mem::take(&mut *self.losses()).all
    }

    /// The next start is of the same epoch: what it loses again is on the list.
    pub(crate) fn expect_losses_again(&self) {
        self.losses().expect_again();
    }

    /// An epoch starts, and nothing runs now.
    pub(crate) fn start(&self) {
        self.losses().start();
    }

    fn losses(&self) -> MutexGuard<'_, Losses> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes plugins that a worker process has loaded.
    pub(crate) fn note_plugins(&self, names: Vec<String>) {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    /// The plugins that worker processes have loaded.
    pub(crate) fn plugins_elsewhere(&self) -> BTreeSet<String> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The samples that were set aside so far.
    pub(crate) fn lost(&self) -> Vec<LostSample> {
        self.losses().all.clone()
    }

    /// Takes the lines that plugins wrote since the last time: level and text.
    pub(crate) fn take_log(&self) -> Vec<(u32, String)> {
        std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note(&self, level: u32, line: String) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < LOG {
            log.push((level, without_secrets(&line).into_owned()));
        }
    }

    /// Takes down what a pipe noted of a sample, or of several.
    pub(crate) fn count(&self, node: u64, note: Note) {
        self.notes().add(node, note);
    }

    /// What a node noted so far.
    pub(crate) fn notes_of(&self, node: &str) -> Vec<Note> {
        self.notes().of(node_hash(node))
    }

    /// Takes what was noted since the last time, by the number of the node.
    pub(crate) fn take_notes(&self) -> Vec<(u64, Note)> {
        self.notes().take()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Large blocks of output memory: taken fresh, and used again.
    pub(crate) fn memory(&self) -> (u64, u64) {
        self.pool.counts()
    }

    /// The context of a node's calls.
    fn context(&self, node: &str, seed: u64, (rank, world_size): (u32, u32)) -> Context {
        let mut cx = Context {
            services: SERVICES,
            host: ptr::null(),
            seed,
            epoch: 0,
            pass: 0,
            node: node_hash(node),
            rank,
            world_size,
            limits: self.limits,
            waker: ptr::null(),
            worker: self.worker.0,
            workers: self.worker.1,
            reserved: [0; 7],
        };
        call::note_in(&mut cx);
        cx
    }
}

/// What tells a node of this name from all others of its graph: its random numbers and the uids that it makes are keyed by it.
pub(crate) fn node_hash(name: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(name.as_bytes())
}

/// One node's access to the host: its address is what the node's context carries.
pub(crate) struct Desk {
    host: Arc<Host>,
    /// The decoders that the node has given options.
    tuned: Arc<Tuned>,
    /// The number of the node.
    node: u64,
    /// Where the output of this very call goes, if that is known.
    slots: Option<Slots>,
}

/// Where the output of a map is to lie.
#[derive(Clone)]
pub(crate) enum Destination {
    /// In its place of a coming batch.
    Batch(Arc<Stacker>),
    /// In memory that another process lent for it.
    Lent(Arc<Lent>),
}

impl Destination {
    /// Begins an epoch or a pass.
    pub(crate) fn clear(&self) {
        if let Self::Batch(stacker) = self {
            stacker.clear();
        }
    }
}

/// The places of the samples of one call.
struct Slots {
    destination: Destination,
    next: AtomicU64,
    end: u64,
}

/// A node's context, with the desk that it points to.
pub(crate) struct NodeContext {
    cx: Context,
    desk: Arc<Desk>,
    /// Whether what it gives is kept, and is the same in every epoch and pass.
    kept: bool,
}

impl Clone for NodeContext {
    fn clone(&self) -> Self {
        Self { cx: self.cx.clone(), desk: Arc::clone(&self.desk), kept: self.kept }
    }
}

impl NodeContext {
    pub(crate) fn new(host: &Arc<Host>, node: &str, seed: u64, ranks: (u32, u32), kept: bool) -> Self {
        let mut cx = host.context(node, seed, ranks);
        let desk =
            Arc::new(Desk { host: Arc::clone(host), node: cx.node, tuned: Arc::default(), slots: None });
        cx.host = Arc::as_ptr(&desk).cast();
        Self { cx, desk, kept }
    }

    /// With these options for decoders.
    pub(crate) fn with_decoders(mut self, tuned: Tuned) -> Self {
        let host = Arc::clone(&self.desk.host);
        self.desk = Arc::new(Desk { host, node: self.cx.node, tuned: Arc::new(tuned), slots: None });
        self.cx.host = Arc::as_ptr(&self.desk).cast();
        self
    }

    pub(crate) fn raw(&self) -> &Context {
        &self.cx
    }

    pub(crate) fn start(&mut self, epoch: u64, pass: u64) {
        (self.cx.epoch, self.cx.pass) = if self.kept { (0, 0) } else { (epoch, pass) };
    }

    pub(crate) fn set_pass(&mut self, pass: u64) {
        self.cx.pass = if self.kept { 0 } else { pass };
    }

    /// Calls `call` with a context that holds `waker`.
    pub(crate) fn with_waker<T>(&mut self, waker: &Waker, call: impl FnOnce(&Context) -> T) -> T {
        self.cx.waker = ptr::from_ref(waker);
        let result = call(&self.cx);
        self.cx.waker = ptr::null();
        result
    }

    /// Calls `call` with a context whose output memory lies where the samples will be stacked: those
    /// numbered `first` and on, `count` of them.
    pub(crate) fn stacked<T>(
        &self,
        destination: Option<&Destination>,
        first: u64,
        count: usize,
        call: impl FnOnce(&Context) -> T,
    ) -> T {
        let Some(destination) = destination else { return call(&self.cx) };
        let slots = Slots {
            destination: destination.clone(),
            next: AtomicU64::new(first),
            end: first + count as u64,
        };
        let Desk { host, node, tuned, .. } = &*self.desk;
        let desk = Desk { host: Arc::clone(host), node: *node, tuned: Arc::clone(tuned), slots: Some(slots) };
        let mut cx = self.cx.clone();
        cx.host = ptr::from_ref(&desk).cast();
        call(&cx)
    }
}

impl Slots {
    /// Memory for the next sample's output: the first time it is asked for, in a call with one for each.
    fn alloc(&self, pool: &Arc<Pool>, len: usize) -> Option<BufferMut> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        match &self.destination {
            _ if at >= self.end => None,
            Destination::Batch(stacker) => stacker.slot(at, len, pool),
            Destination::Lent(lent) => lent.slot(at, len),
        }
    }
}

const TABLE: &WithMetadata<HostServices> =
    &WithMetadata::new(HostServices { alloc, cancelled, log, decoder, store });
const SERVICES: HostServicesRef = HostServicesRef(TABLE.static_as_prefix());

/// # Safety
/// `desk` is the address of a live desk: what `NodeContext` put beside the services.
unsafe fn of<'a>(desk: *const ()) -> &'a Desk {
    // SAFETY: the caller's promise.
    unsafe { &*desk.cast() }
}

unsafe extern "C" fn alloc(desk: *const (), len: usize, place: &mut ROption<BufferMut>) -> Outcome {
    // SAFETY: a context pairs its desk with these services, here and below.
    let desk = unsafe { of(desk) };
    guarded(|| {
        let host = &desk.host;
        if len as u64 > host.limits.bytes {
            let message = format!("{len} bytes of output asked for, at most {} allowed", host.limits.bytes);
            return Err(Error::limit(message));
        }
        if let Some(slot) = desk.slots.as_ref().and_then(|slots| slots.alloc(&host.pool, len)) {
            *place = ROption::RSome(slot);
            return Ok(());
        }
        let claim = host.ledger.claim(len)?;
        let memory = host.pool.alloc(len)?;
        *place = ROption::RSome(match claim {
            Some(claim) => claim.on(memory),
            None => memory,
        });
        Ok(())
    })
}

unsafe extern "C" fn cancelled(host: *const ()) -> bool {
    // SAFETY: as above.
    unsafe { of(host) }.host.is_cancelled()
}

unsafe extern "C" fn log(host: *const (), level: u32, line: RStr<'_>) {
    // SAFETY: as above.
    let desk = unsafe { of(host) };
    match line.as_str().split_once('\n') {
        Some((what, why)) if level == Level::Info as u32 => {
            desk.host.count(desk.node, Note { what: what.to_owned(), why: why.to_owned(), times: 1 });
        }
        _ => desk.host.note(level, line.as_str().to_owned()),
    }
}

unsafe extern "C" fn decoder(
    host: *const (),
    extension: RStr<'_>,
    head: RSlice<'_, u8>,
    name: RStr<'_>,
    place: &mut ROption<Decoder>,
) -> Outcome {
    // SAFETY: as above.
    let desk = unsafe { of(host) };
    guarded(|| {
        let name = (!name.is_empty()).then_some(name.as_str());
        let (registry, tuned) = (&desk.host.registry, &desk.tuned);
        let chosen = registry.choose_tuned((extension.as_str(), head.as_slice()), name, tuned)?;
        *place = ROption::RSome(chosen.into_raw());
        Ok(())
    })
}

unsafe extern "C" fn store(host: *const (), scheme: RStr<'_>, place: &mut ROption<Store>) -> Outcome {
    // SAFETY: as above.
    let registry = &unsafe { of(host) }.host.registry;
    guarded(|| {
        *place = ROption::RSome(registry.store(scheme.as_str())?.into_raw());
        Ok(())
    })
}

/// The error of a run that was stopped from outside.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "the run was stopped")
}
