//! Services of the loader for plugins while a graph runs: memory, the choice of decoders, a log, a stop.

pub mod home;
mod lent;
mod losses;
mod notes;
mod pool;
mod services;
mod stacker;

use std::{
    collections::BTreeSet,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use forebay_core::{Error, Key, Limits, Waker, abi::Context, without_secrets};
use forebay_graph::{Action, OnError, node_hash};
use forebay_guard::call;
use forebay_queue::{ledger::Ledger, process::Heap};
use forebay_registry::Registry;

use self::{home::Home, losses::Losses, notes::Notes};
pub(crate) use self::{lent::Lent, services::Destination, stacker::Stacker};
pub use self::{
    notes::Note,
    pool::{OwnMemory, Pool},
    services::NodeContext,
};

/// The most lines that wait to be read in the log.
const LOG: usize = 1000;
/// The most bytes of unshared memory that a worker keeps to use again.
const KEEP_IN_WORKER: usize = 64 << 20;

/// A running graph's services.
pub struct Host {
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

/// A sample that was left out because a pipe failed on it: see [`OnError`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostSample {
    /// The node that failed.
    pub node: String,
    /// The sample's key, for people; `None` if a source failed before it gave the sample.
    pub key: Option<String>,
    /// The sample's uid, if it had one.
    pub uid: Option<u64>,
    /// What went wrong, and where.
    pub error: Error,
}

impl Host {
    /// A host whose pool and ledger these are.
    pub fn new(registry: Registry, limits: Limits, pool: Arc<Pool>, ledger: Arc<Ledger>) -> Arc<Self> {
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
    pub fn home(&self) -> Option<&Home> {
        self.home.as_ref()
    }

    /// Has this thread back in its folder, and says so if a plugin had it leave.
    pub fn keep_home(&self, home: Option<&Home>) {
        if home.is_some_and(Home::come_back_at_times) {
            self.note(
                2,
                "a plugin changed the folder that relative paths start at; the loader changed it back"
                    .to_owned(),
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
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.ledger.stop();
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Waker::wake);
    }

    /// Has `waker` called when the run is stopped.
    pub(crate) fn on_cancel(&self, waker: Waker) {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Whether the run was stopped.
    pub fn is_cancelled(&self) -> bool {
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
    pub fn take_trim(&self) -> bool {
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
    pub fn expect_losses_again(&self) {
        self.losses().expect_again();
    }

    /// An epoch starts, and nothing runs now.
    pub fn start(&self) {
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
    pub fn plugins_elsewhere(&self) -> BTreeSet<String> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The samples that were set aside so far.
    pub fn lost(&self) -> Vec<LostSample> {
        self.losses().all.clone()
    }

    /// Takes the lines that plugins wrote since the last time: level and text.
    pub fn take_log(&self) -> Vec<(u32, String)> {
        std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a line to the log, at a plugin's level: 1 for an error to 4 for a detail.
    pub fn note(&self, level: u32, line: String) {
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
    pub fn memory(&self) -> (u64, u64) {
        self.pool.counts()
    }

    /// The context of a node's calls.
    fn context(&self, node: &str, seed: u64, (rank, world_size): (u32, u32)) -> Context {
        let mut cx = Context {
            services: services::SERVICES,
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
        cx.reserved[Context::TAG] = self.registry.tag();
        call::note_in(&mut cx);
        cx
    }
}
