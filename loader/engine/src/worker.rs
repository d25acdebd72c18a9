//! A worker process: makes its pipes, and works on chunks until its loader is gone.

mod dedicated;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use forebay_audit::AuditLog;
use forebay_core::{Chunk, Error, ErrorKind, Registrar, Result};
use forebay_graph::Graph;
use forebay_guard::{
    call::Seated,
    maps,
    signals::{WORKER, leave},
};
use forebay_queue::{Message, Receiver as _, Sender as _, ledger::Ledger, process::Connection};
use forebay_registry::{Isolation, Registry, Search};

use crate::{
    host::{Destination, Host, Lent},
    messages::{Done, Order, Reply, Setup, pack, unpack},
    plan::Plan,
    prepared::{Prepared, RunSettings},
    record::Records,
    resume::resume_plan,
    run::{Body, Chain, Lost, Mapped, Parallel},
};

/// In a process that a loader started as a worker, works until that loader is gone, and never returns. In any
/// other process, returns at once.
///
/// The command `forebay` calls it first. A program that is its own worker (`LoaderBuilder::worker_self`) must do
/// so too, before it starts threads or prints.
pub fn serve_if_worker() {
    serve_if_worker_with(|_| Ok(()));
}

/// As [`serve_if_worker`], with the plugins that `register` adds to those of the loader's search. It is for a
/// program whose loader has these plugins by [`Registry::with_linked_in_workers`].
pub fn serve_if_worker_with(register: impl FnOnce(&mut dyn Registrar) -> Result<()>) {
    let Some(who) = std::env::var_os(WORKER) else { return };
    let status = match serve(&who.to_string_lossy(), register) {
        Ok(()) => 0,
        Err(error) => {
            eprint_line(&format!("forebay worker {}: {error}", std::process::id()));
            1
        }
    };
    std::process::exit(status);
}

/// Refuses to build a loader in a worker process whose program did not call [`serve_if_worker`]. Such a loader
/// would start workers of its own, and each of those again. The loader that started the process gets the error.
///
/// # Errors
/// `Invalid` in such a process.
pub fn refuse_nested() -> Result<()> {
    static REFUSED: OnceLock<Option<Error>> = OnceLock::new();
    // A program that a plugin starts in a worker has the variable too, and no connection.
    let refused = || {
        std::env::var_os(WORKER)?;
        let mut connection = Connection::from_parent().ok()?;
        let error =
            Error::invalid("a worker process built a loader: its program did not call serve_if_worker")
                .context("next", "call forebay_loader::serve_if_worker() first thing in the program's main");
        let _ = tell(&mut connection, &Reply::Refused(error.clone().into())); // Its loader may be gone.
        Some(error)
    };
    REFUSED.get_or_init(refused).clone().map_or(Ok(()), Err)
}

#[expect(clippy::print_stderr, reason = "a worker has nobody else to tell")]
fn eprint_line(line: &str) {
    eprintln!("{line}");
}

/// Works as the worker `who`, which is its number and how many there are.
fn serve(who: &str, register: impl FnOnce(&mut dyn Registrar) -> Result<()>) -> Result<()> {
    let who = who.split_once('/').and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
    let who = who.ok_or_else(|| Error::invalid(format!("{WORKER} is set, but not by a loader; unset it")))?;
    let mut connection = Connection::from_parent()?;
    let Some(message) = heard(connection.receiver.recv())? else { return Ok(()) };
    let setup: Setup = unpack(&message.head)?;
    if let Some(Err(error)) = setup.sandbox.as_ref().map(crate::sandbox::Sandbox::enter) {
        return tell(&mut connection, &Reply::Refused(error.into()));
    }
    // A worker that is busy, or stuck in a plugin, ends with its loader all the same.
    let hangup = connection.receiver.hangup()?;
    thread::Builder::new().name("forebay-parent".into()).spawn(move || {
        hangup.wait();
        leave(0);
    })?;
    let noted = connection.noted_here();
    let _seated = Seated::new(noted.word());
    let registry = registry_of(&setup, register);
    match registry.and_then(|registry| WorkerPipes::new(&setup, registry, &connection, who)) {
        Err(error) => tell(&mut connection, &Reply::Refused(error.into())),
        Ok(worker) => {
            tell(&mut connection, &Reply::Ready)?;
            if setup.dedicated.is_some() {
                dedicated::serve(worker, connection)
            } else {
                serve_maps(worker, connection)
            }
        }
    }
}

/// Works on chunks of maps.
fn serve_maps(mut worker: WorkerPipes, mut connection: Connection) -> Result<()> {
    let host = Arc::clone(&worker.prepared.host);
    let seat = host.ledger().seat_of_worker(host.worker.0 as usize);
    while let Some(message) = heard(connection.receiver.recv())? {
        let Message { head, chunk } = message;
        let order: Order = unpack(&head)?;
        // What it reserves counts until the loader has it.
        let sent = host.at_seat(seat, order.order, || {
            let (reply, chunk) = worker.work(&order, chunk, &mut connection)?;
            connection.sender.send(&mut Message::new(pack(&reply)?, chunk))
        });
        match sent {
            // Some value is one that no other process can use: the loader makes it itself.
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                tell(&mut connection, &Reply::Unsendable)?
            }
            Err(error) if error.kind() == ErrorKind::Worker => return Ok(()),
            Err(error) if maps::count() > 0 => {
                let failed = Some(error.into());
                tell(&mut connection, &Reply::Done(Done { failed, ..Done::default() }))?;
            }
            sent => sent?,
        }
    }
    Ok(())
}

/// A loader that is gone, however it went, is the end.
fn heard(message: Result<Option<Message>>) -> Result<Option<Message>> {
    match message {
        Err(error) if error.kind() == ErrorKind::Worker => Ok(None),
        other => other,
    }
}

fn tell(connection: &mut Connection, reply: &Reply) -> Result<()> {
    connection.sender.send(&mut Message::new(pack(reply)?, Chunk::new()))
}

/// A worker's pipes.
struct WorkerPipes {
    prepared: Prepared,
    /// Those of maps.
    segments: BTreeMap<usize, WorkerSegment>,
    /// The serial one that is its own.
    chain: Option<Box<Chain>>,
    /// How many plugins the loader was told are loaded.
    loaded: usize,
}

/// The plugins of the loader, which must be the same files, and trusted here as they were there.
fn registry_of(setup: &Setup, register: impl FnOnce(&mut dyn Registrar) -> Result<()>) -> Result<Registry> {
    let mut nowhere =
        Search::nowhere().trust(setup.trust.clone()).isolation(Isolation::sandboxing(&setup.withheld));
    nowhere.ranks.clone_from(&setup.priorities);
    let files = setup.plugins.iter().rev();
    let search = files.fold(nowhere, |search, stamp| search.first(stamp.file()));
    let registry = Registry::with_linked_in_workers(search, register)?;
    let here = registry.linked_in_workers();
    if let Some((name, version)) = setup.linked.iter().find(|linked| !here.contains(linked)) {
        let lacks = format!(
            "the worker program lacks {name} {version}, which is linked into the program of the loader"
        );
        return Err(Error::invalid(lacks)
            .context("next", "name a program that calls serve_if_worker_with with the same plugins"));
    }
    for stamp in &setup.plugins {
        let found = registry.plugins().iter().any(|record| record.path() == Some(stamp.file()));
        let refused = || registry.refusals().iter().find(|refusal| refusal.path == stamp.file());
        // What is locked was compared by its hash.
        let locked = matches!(setup.trust, forebay_registry::Trust::Locked(_));
        let error = if found && (locked || stamp.holds()) {
            continue;
        } else if found {
            Error::invalid("the plugin's file changed since the loader found it")
        } else if let Some(refusal) = refused() {
            refusal.reason.clone()
        } else {
            Error::invalid(format!("the worker found no such plugin; {}", registry.looked_at()))
        };
        return Err(error.context("file", stamp.file().display()));
    }
    Ok(registry.claiming(setup.claims.clone()).knowing(&setup.own))
}

/// What a worker makes its pipes with.
fn prepared(setup: &Setup, registry: Registry, connection: &Connection, who: (u32, u32)) -> Result<Prepared> {
    let graph = Graph::from_json(&setup.graph)?;
    let dedicated = setup.dedicated.as_ref();
    let settings = RunSettings {
        executor: setup.executor.parse()?,
        seed: setup.seed,
        ranks: setup.ranks,
        budget: 0,
        ahead: dedicated.map_or(usize::MAX, |dedicated| dedicated.ahead),
        limits: setup.limits(),
        chunk: dedicated.and_then(|dedicated| dedicated.chunk),
        checkpoints: dedicated.map_or(Duration::MAX, |dedicated| dedicated.checkpoints),
        watch: None,
        dealt: dedicated.map_or_else(Vec::new, |dedicated| dedicated.dealt.clone()),
        identities: setup.identities.clone(),
        worker_program: None,
        sample_timeout: None,
        sandbox_memory: 0,
    };
    let plan = Plan::new(&graph, &registry, settings.executor)?;
    let resume_plan = resume_plan(&graph, &registry, &plan, &settings.dealt)?;
    let ledger = match setup.ledger {
        Some(place) => Ledger::attach(&connection.arena, place)?,
        None => Ledger::nobody(),
    };
    let memory = (connection.heap.clone(), ledger);
    let host = Host::for_worker(registry.clone(), settings.limits, memory, who);
    let audited = dedicated.is_some_and(|dedicated| dedicated.audited);
    let audit = audited.then(|| AuditLog::elsewhere((&graph, &registry, &resume_plan)));
    let audit = audit.transpose()?.map(Arc::new);
    let records = Records::default();
    Ok(Prepared { graph, registry, plan, resume_plan, settings, host, audit, records, arena: None })
}

/// The maps of one segment, and where their output goes.
struct WorkerSegment {
    maps: Parallel,
    lent: Arc<Lent>,
}

impl WorkerPipes {
    fn new(setup: &Setup, registry: Registry, connection: &Connection, who: (u32, u32)) -> Result<Self> {
        let prepared = prepared(setup, registry, connection, who)?;
        let mut worker = Self { prepared, segments: BTreeMap::new(), chain: None, loaded: 0 };
        // Before it is ready, so that no sample waits for it.
        match &setup.dedicated {
            Some(dedicated) => worker.make(dedicated.segment)?,
            None => {
                let here = worker.prepared.plan.segments.iter().enumerate();
                let here = here.filter(|(_, segment)| segment.on.is_elsewhere() && segment.parallel);
                for at in here.map(|(at, _)| at).collect::<Vec<_>>() {
                    worker.make(at)?;
                }
            }
        }
        Ok(worker)
    }

    /// Makes the nodes of a segment.
    fn make(&mut self, at: usize) -> Result<()> {
        let Prepared { graph, plan, .. } = &self.prepared;
        let segment = plan.segments.get(at).ok_or_else(|| Error::bug(format!("no segment {at}")))?;
        let mut nodes: Vec<_> = graph.nodes().iter().map(|_| None).collect();
        let mut maps = match self.prepared.body(segment, &[], &mut nodes)? {
            Body::Parallel(maps, _) => maps,
            Body::Serial(chain) => {
                self.chain = Some(chain);
                return Ok(());
            }
        };
        let lent = Arc::new(Lent::default());
        maps.place_last(Destination::Lent(Arc::clone(&lent)))?;
        self.segments.insert(at, WorkerSegment { maps, lent });
        Ok(())
    }

    fn segment(&mut self, at: usize) -> Result<&mut WorkerSegment> {
        self.segments
            .get_mut(&at)
            .ok_or_else(|| Error::bug(format!("segment {at} is not one of this worker")))
    }

    /// The plugins that were loaded since the last time.
    fn newly_loaded(&mut self) -> Vec<String> {
        let loaded = self.prepared.registry.plugins().iter().filter(|record| record.is_loaded());
        let names: Vec<_> = loaded.map(|record| record.manifest().name.clone()).collect();
        let new = if names.len() > self.loaded { names } else { Vec::new() };
        self.loaded += new.len().saturating_sub(self.loaded);
        new
    }

    fn work(
        &mut self,
        order: &Order,
        mut chunk: Chunk,
        connection: &mut Connection,
    ) -> Result<(Reply, Chunk)> {
        let host = Arc::clone(&self.prepared.host);
        let segment = self.segment(order.segment)?;
        segment.maps.set_passes(order.epoch, &order.passes);
        // Memory that cannot be had is asked for in the usual way.
        let memory = order.loans().map(|loan| connection.arena.adopt(loan).ok()).collect();
        segment.lent.set(order.first, memory);
        let before = segment.maps.work();
        let mut out = Chunk::new();
        let begins = |map| {
            if order.careful {
                // The loader hears of it by the end of this process, if that cannot be sent.
                let _ = tell(connection, &Reply::Begins(map));
            }
        };
        let mut mapped = segment.maps.run_telling(order.first, &mut chunk, &mut out, begins);
        host.keep_home(host.home());
        let work = segment.maps.work().into_iter().zip(before);
        let cut = maps::error_after(0);
        if cut.is_some() {
            // Any of them may be made of zeros.
            (mapped, out) = (Mapped { failed: cut, ..Mapped::default() }, Chunk::new());
        }
        let done = Done {
            bytes: mapped.bytes,
            lost: mapped
                .lost
                .into_iter()
                .map(|Lost { map, at, given, error, .. }| (map, at, given, error.into()))
                .collect(),
            failed: mapped.failed.map(Into::into),
            work: work.map(|(now, then)| (now.0 - then.0, now.1 - then.1, now.2 - then.2)).collect(),
            asked: segment.lent.finish(),
            log: host.take_log(),
            notes: host.take_notes(),
            loaded: self.newly_loaded(),
        };
        Ok((Reply::Done(done), out))
    }
}
