//! The queue between two threads.

use std::sync::Arc;

use crossbeam_channel::{TryRecvError, unbounded};
use forebay_core::Result;

use super::{
    Bounds, Load, Message, Offer, Received, Receiver, Sender, closed, ended, ending,
    gate::{Admission, Gate},
    sync::{AtomicU32, Ordering},
    unheard,
};

/// A queue between two threads.
#[must_use]
pub fn threads(bounds: Bounds) -> (impl Sender + use<>, impl Receiver + use<>) {
    let (give, take) = unbounded();
    let shared = Arc::new(QueueShared { gate: Gate::new(bounds), ending: AtomicU32::new(ending::OPEN) });
    let sender = ThreadSender { give: Some(give), shared: Arc::clone(&shared) };
    (sender, ThreadReceiver { take, shared })
}

struct QueueShared {
    gate: Gate,
    /// How the sender left; written before its side of the channel goes.
    ending: AtomicU32,
}

struct ThreadSender {
    /// Gone once the queue is closed. Unbounded, since the gate bounds it.
    give: Option<crossbeam_channel::Sender<(Message, Load)>>,
    shared: Arc<QueueShared>,
}

impl ThreadSender {
    fn offer(&self, message: &mut Message, entry: impl FnOnce(&Gate, Load) -> Admission) -> Result<Offer> {
        let give = self.give.as_ref().ok_or_else(closed)?;
        let load = message.load();
        match entry(&self.shared.gate, load) {
            Admission::Full => Ok(Offer::Full),
            Admission::ReceiverGone => Err(unheard()),
            Admission::Open => {
                give.send((message.take(), load)).map_err(|_| unheard())?;
                Ok(Offer::Taken)
            }
        }
    }

    fn leave(&mut self, how: u32) {
        if let Some(give) = self.give.take() {
            self.shared.ending.store(how, Ordering::Release);
            drop(give);
        }
    }
}

impl Sender for ThreadSender {
    fn try_send(&mut self, message: &mut Message) -> Result<Offer> {
        self.offer(message, Gate::try_enter)
    }

    fn send(&mut self, message: &mut Message) -> Result<()> {
        self.offer(message, Gate::enter).map(drop)
    }

    fn close(&mut self) -> Result<()> {
        // Before the end is told: whoever hears that may go.
        let gone = self.shared.gate.receiver_gone();
        self.leave(ending::CLOSED);
        if gone { Err(unheard()) } else { Ok(()) }
    }

    fn resize(&mut self, bounds: Bounds) {
        self.shared.gate.resize(bounds);
    }
}

impl Drop for ThreadSender {
    fn drop(&mut self) {
        self.leave(ending::of_drop());
    }
}

struct ThreadReceiver {
    take: crossbeam_channel::Receiver<(Message, Load)>,
    shared: Arc<QueueShared>,
}

impl ThreadReceiver {
    fn let_out(&self, (message, load): (Message, Load)) -> Message {
        self.shared.gate.leave(load);
        message
    }

    fn ended(&self) -> Result<()> {
        ended(self.shared.ending.load(Ordering::Acquire))
    }
}

impl Receiver for ThreadReceiver {
    fn try_recv(&mut self) -> Result<Received> {
        match self.take.try_recv() {
            Ok(taken) => Ok(Received::Message(self.let_out(taken))),
            Err(TryRecvError::Empty) => Ok(Received::Empty),
            Err(TryRecvError::Disconnected) => self.ended().map(|()| Received::End),
        }
    }

    fn recv(&mut self) -> Result<Option<Message>> {
        match self.take.recv() {
            Ok(taken) => Ok(Some(self.let_out(taken))),
            Err(_) => self.ended().map(|()| None),
        }
    }
}

impl Drop for ThreadReceiver {
    fn drop(&mut self) {
        self.shared.gate.receiver_leaves();
    }
}
