//! The queue between two processes, over shared memory.
//!
//! ```text
//! loader                              arena (one memfd)                        worker
//! ProcessSender  ──writes──▶ [ words | counters | blocks ] ◀──reads in place── ProcessReceiver     a lane
//! ProcessReceiver ─reads───▶ [ words | counters | blocks ] ◀──writes─────────  ProcessSender       a lane
//!        └──────────── one socket for each lane: messages one way, wake-ups the other ────┘
//! ```
//!
//! A lane's blocks are given out by the process that sends on it ([`Heap`]), so a pipe's output can be written where
//! it is sent from. A message is one packet on the socket that says which blocks it lies in, together with all
//! values that are small. The receiver's buffers point into the blocks; a counter of each block, in shared memory,
//! says when the last process has let it go. When no shared memory is left, and the receiver holds on to what it has,
//! `send` puts the bytes through the socket: slower, but nobody waits for ever. `try_send` says that the queue is full.
//!
//! A process that dies closes its sockets, so the other end gets an error within a moment. The memory of a lane is
//! reused only when neither process can reach it any more.

mod arena;
mod block;
mod heap;
mod lane;
mod packet;
mod receiver;
mod sender;
mod shared;
mod shares;
mod space;
mod spawn;
mod words;

use std::{ops::Range, os::fd::OwnedFd, sync::Arc};

use forebay_core::{Error, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use self::lane::Lane;
use super::{Bounds, sync};

pub(crate) use self::shared::Board;
pub use self::{
    arena::{Arena, Loan},
    heap::Heap,
    receiver::{Hangup, ProcessReceiver},
    sender::ProcessSender,
    spawn::WorkerEnds,
};

/// How large a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of shared memory for what goes to the worker.
    pub to_worker: usize,
    /// Bytes of shared memory for what comes from it.
    pub from_worker: usize,
    /// The bound of both queues; each sender can change its own.
    pub bounds: Bounds,
}

/// One process's ends of the two queues between a loader and a worker.
pub struct Connection {
    /// Gives to the other process.
    pub sender: ProcessSender,
    /// Takes from the other process.
    pub receiver: ProcessReceiver,
    /// Memory that [`sender`](Connection::sender) sends without a copy.
    pub heap: Heap,
    /// The memory that all of it lies in.
    pub arena: Arena,
}

impl Connection {
    /// Makes both queues; the worker's ends go to it as it is [spawned](WorkerEnds::spawn).
    ///
    /// # Errors
    /// When the arena has no room, or the system no more descriptors.
    pub fn open(arena: &Arena, sizes: Sizes) -> Result<(Self, WorkerEnds)> {
        let (to_worker, its_input) = pair()?;
        let (from_worker, its_output) = pair()?;
        let out =
            Lane::create(arena.map(), arena.lease(sizes.to_worker)?, Some(Arc::clone(&to_worker)), false)?;
        let back =
            Lane::create(arena.map(), arena.lease(sizes.from_worker)?, Some(Arc::clone(&from_worker)), true)?;
        let ends = WorkerEnds {
            arena: arena.clone(),
            sockets: [its_input, its_output],
            lanes: [out.range(), back.range()],
            bounds: sizes.bounds,
        };
        let heap = Heap::new(Arc::clone(&out), Heap::lane_tide());
        let sender = ProcessSender::new(arena, &heap, Arc::clone(&back), to_worker, sizes.bounds);
        let receiver = ProcessReceiver::new(arena, back, out, from_worker);
        Ok((Self { sender, receiver, heap, arena: arena.clone() }, ends))
    }

    /// The word for what the process at the other end is at.
    #[must_use]
    pub fn noted_there(&self) -> Noted {
        Noted(Arc::clone(self.receiver.lane()))
    }

    /// The word for what this process is at.
    #[must_use]
    pub fn noted_here(&self) -> Noted {
        Noted(Arc::clone(self.sender.lane()))
    }

    /// The ends that a worker was given: its input, its output, and where their memory lies.
    fn attach(arena: Arena, sockets: [OwnedFd; 2], lanes: [Range<usize>; 2], bounds: Bounds) -> Result<Self> {
        let [input, output] = sockets.map(Arc::new);
        let [input_range, output_range] = lanes;
        if input_range.start < output_range.end && output_range.start < input_range.end {
            return Err(Error::invalid("the two lanes of the connection overlap"));
        }
        arena.note_lane(input_range.clone());
        arena.note_lane(output_range.clone());
        let back = Lane::attach(arena.map(), input_range, Arc::clone(&input), true)?;
        let out = Lane::attach(arena.map(), output_range, Arc::clone(&output), false)?;
        let heap = Heap::new(Arc::clone(&out), Heap::lane_tide());
        let sender = ProcessSender::new(&arena, &heap, Arc::clone(&back), output, bounds);
        let receiver = ProcessReceiver::new(&arena, back, out, input);
        Ok(Self { sender, receiver, heap, arena })
    }
}

/// The word in which a worker says what it is at, as the worker and its loader have it.
pub struct Noted(Arc<Lane>);

impl Noted {
    /// The word.
    #[must_use]
    pub fn word(&self) -> &sync::AtomicU32 {
        &self.0.control().note
    }
}

/// Two connected sockets that keep messages apart, and that no child inherits.
fn pair() -> Result<(Arc<OwnedFd>, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|error| Error::from(std::io::Error::from(error)))?;
    Ok((Arc::new(ours), theirs))
}
