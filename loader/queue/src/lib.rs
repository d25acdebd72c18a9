//! Queues of messages between exactly two ends: on one thread, between threads, processes, or machines.
//!
//! All four keep the same promises. The order is strict, nothing is lost and nothing comes twice. A bound in
//! items and in bytes holds from end to end; an empty queue lets one message of any size past. If one end
//! goes without being closed, the other gets an error, never silence.
//!
//! | | what a message costs | how the two ends meet |
//! |---|---|---|
//! | [`local()`] | a move | both are returned |
//! | [`threads()`] | a move | both are returned |
//! | [`process`] | small values are copied; large ones lie in shared memory and are used in place | a worker is given its ends as it is spawned |
//! | [`network`] | every byte is sent, large values straight into their final memory | an address and a secret |

mod gate;
pub mod ledger;
mod local;
#[cfg(unix)]
pub mod network;
#[cfg(target_os = "linux")]
pub mod process;
mod seats;
mod sync;
mod threads;
pub mod tide;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use forebay_core::{Chunk, Error, ErrorKind, Result};

pub use self::{local::local, threads::threads};

/// The error of a run that was stopped from outside.
#[must_use]
pub fn stopped() -> Error {
    Error::new(ErrorKind::Cancelled, "the run was stopped")
}

/// What a queue carries: control bytes, and samples.
#[derive(Default)]
pub struct Message {
    /// Bytes that mean something to the two ends.
    pub head: Vec<u8>,
    /// The samples.
    pub chunk: Chunk,
}

impl Message {
    /// A message of `head` and `chunk`.
    #[must_use]
    pub fn new(head: impl Into<Vec<u8>>, chunk: Chunk) -> Self {
        Self { head: head.into(), chunk }
    }

    /// What the message counts for: each sample is an item, and so is a message without samples.
    fn load(&self) -> Load {
        let bytes = self.chunk.size().saturating_add(self.head.len());
        Load { items: self.chunk.len().max(1) as u64, bytes: bytes as u64 }
    }

    /// Moves the message out, and leaves an empty one.
    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// The most that may wait in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Samples; a message without any counts as one.
    pub items: u64,
    /// Bytes that the samples and the control bytes keep.
    pub bytes: u64,
}

impl Bounds {
    /// Whether `more` may join what is `held`: within both bounds, or the queue is empty.
    fn admit(self, held: Load, more: Load) -> bool {
        held.items == 0
            || (held.items.saturating_add(more.items) <= self.items
                && held.bytes.saturating_add(more.bytes) <= self.bytes)
    }
}

/// What messages count for against the [`Bounds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    items: u64,
    bytes: u64,
}

impl Load {
    fn plus(self, other: Self) -> Self {
        Self { items: self.items.saturating_add(other.items), bytes: self.bytes.saturating_add(other.bytes) }
    }

    fn minus(self, other: Self) -> Self {
        Self { items: self.items.saturating_sub(other.items), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// What became of a message that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Offer {
    /// It is on its way; the message is empty now, and its memory can be filled again.
    Taken,
    /// There is no room; the message is as it was.
    Full,
}

/// What waits at a receiver.
#[must_use]
pub enum Received {
    /// The next message.
    Message(Message),
    /// Nothing yet.
    Empty,
    /// The other end closed, and everything it sent was received.
    End,
}

/// The end that gives. Dropped without [`close`](Sender::close), it leaves an error to the other end.
pub trait Sender: Send {
    /// Sends `message` unless that would mean to wait.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] with the cause when the other end is gone; [`ErrorKind::Unsupported`], naming sample and
    /// field, for a value that cannot cross, and then the message is as it was.
    fn try_send(&mut self, message: &mut Message) -> Result<Offer>;

    /// Sends `message`, and waits for room if there is none.
    ///
    /// # Errors
    /// As [`try_send`](Sender::try_send).
    fn send(&mut self, message: &mut Message) -> Result<()>;

    /// Ends the queue: the receiver gets what was sent, and then the end.
    ///
    /// # Errors
    /// When the other end is gone.
    fn close(&mut self) -> Result<()>;

    /// Changes how much may wait. What waits already stays.
    fn resize(&mut self, bounds: Bounds);
}

/// The end that takes.
pub trait Receiver: Send {
    /// The next message, if it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] with the cause when the other end went without closing; the same error from then on.
    /// [`ErrorKind::Corrupt`] when what came is no message.
    fn try_recv(&mut self) -> Result<Received>;

    /// Waits for the next message; `None` after the end.
    ///
    /// # Errors
    /// As [`try_recv`](Receiver::try_recv).
    fn recv(&mut self) -> Result<Option<Message>>;
}

/// How a sender left, as a number that fits an atomic.
mod ending {
    /// It is there, or died.
    pub(super) const OPEN: u32 = 0;
    /// It closed the queue.
    pub(super) const CLOSED: u32 = 1;
    /// It was dropped.
    pub(super) const DROPPED: u32 = 2;
    /// It was dropped by a panic.
    pub(super) const PANICKED: u32 = 3;

    /// What a drop of the sender leaves.
    pub(super) fn of_drop() -> u32 {
        if std::thread::panicking() { PANICKED } else { DROPPED }
    }
}

/// What a receiver makes of how its sender left.
fn ended(how: u32) -> Result<()> {
    match how {
        ending::CLOSED => Ok(()),
        ending::DROPPED => Err(lost("the sender was dropped before it closed the queue")),
        ending::PANICKED => Err(lost("the sender panicked before it closed the queue")),
        _ => Err(lost("the sender died before it closed the queue")),
    }
}

/// The error of an end that misses the other.
fn lost(how: &str) -> Error {
    Error::new(ErrorKind::Worker, how)
}

/// The error of a sender whose receiver was dropped.
fn unheard() -> Error {
    lost("the receiver is gone")
}

/// The error of a sender that closed the queue itself.
fn closed() -> Error {
    Error::invalid("this end closed the queue already")
}
