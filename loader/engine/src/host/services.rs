//! What a node's calls find in their context: the host's services, and where the output of a call is to lie.
#![expect(unsafe_code, reason = "the services are C functions that find their host by address")]

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use forebay_core::{
    BufferMut, Error, Level, Waker,
    abi::{
        Context, Decoder, HostServices, HostServicesRef, Outcome, Store,
        abi_stable::{
            prefix_type::WithMetadata,
            std_types::{ROption, RSlice, RStr},
        },
    },
    shim::guarded,
};
use forebay_registry::Tuned;

use super::{Host, Lent, Note, Pool, Stacker};

/// One node's access to the host: its address is what the node's context carries.
pub(crate) struct NodeServices {
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

/// A node's context, with the node's services that it points to.
pub struct NodeContext {
    cx: Context,
    services: Arc<NodeServices>,
    /// Whether what it gives is kept, and is the same in every epoch and pass.
    kept: bool,
}

impl Clone for NodeContext {
    fn clone(&self) -> Self {
        Self { cx: self.cx.clone(), services: Arc::clone(&self.services), kept: self.kept }
    }
}

impl NodeContext {
    /// For the calls of a node; `kept` where it gives the same in every epoch and pass.
    pub fn new(host: &Arc<Host>, node: &str, seed: u64, ranks: (u32, u32), kept: bool) -> Self {
        let mut cx = host.context(node, seed, ranks);
        let services = Arc::new(NodeServices {
            host: Arc::clone(host),
            node: cx.node,
            tuned: Arc::default(),
            slots: None,
        });
        cx.host = Arc::as_ptr(&services).cast();
        Self { cx, services, kept }
    }

    /// With these options for decoders.
    pub(crate) fn with_decoders(mut self, tuned: Tuned) -> Self {
        let host = Arc::clone(&self.services.host);
        self.services =
            Arc::new(NodeServices { host, node: self.cx.node, tuned: Arc::new(tuned), slots: None });
        self.cx.host = Arc::as_ptr(&self.services).cast();
        self
    }

    /// What a pipe is given.
    pub fn raw(&self) -> &Context {
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
        let NodeServices { host, node, tuned, .. } = &*self.services;
        let services = NodeServices {
            host: Arc::clone(host),
            node: *node,
            tuned: Arc::clone(tuned),
            slots: Some(slots),
        };
        let mut cx = self.cx.clone();
        cx.host = ptr::from_ref(&services).cast();
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
pub(super) const SERVICES: HostServicesRef = HostServicesRef(TABLE.static_as_prefix());

/// # Safety
/// `services` is the address of live ones: what `NodeContext` put beside the context.
unsafe fn of<'a>(services: *const ()) -> &'a NodeServices {
    // SAFETY: the caller's promise.
    unsafe { &*services.cast() }
}

unsafe extern "C" fn alloc(services: *const (), len: usize, place: &mut ROption<BufferMut>) -> Outcome {
    // SAFETY: a context carries the address of its services, here and below.
    let services = unsafe { of(services) };
    guarded(|| {
        let host = &services.host;
        if len as u64 > host.limits.bytes {
            let message = format!("{len} bytes of output asked for, at most {} allowed", host.limits.bytes);
            return Err(Error::limit(message));
        }
        if let Some(slot) = services.slots.as_ref().and_then(|slots| slots.alloc(&host.pool, len)) {
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
    let services = unsafe { of(host) };
    match line.as_str().split_once('\n') {
        Some((what, why)) if level == Level::Info as u32 => {
            services.host.count(services.node, Note { what: what.to_owned(), why: why.to_owned(), times: 1 });
        }
        _ => services.host.note(level, line.as_str().to_owned()),
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
    let services = unsafe { of(host) };
    guarded(|| {
        let name = (!name.is_empty()).then_some(name.as_str());
        let (registry, tuned) = (&services.host.registry, &services.tuned);
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
