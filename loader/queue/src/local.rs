//! The queue on one thread: messages are moved, and nobody can be waited for.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_core::{Error, Result};

use super::{Bounds, Load, Message, Offer, Received, Receiver, Sender, closed, ended, ending, unheard};

/// A queue whose two ends one thread uses in turn.
///
/// Where another queue would wait, `send` and `recv` return errors here, because nothing could end the wait.
#[must_use]
pub fn local(bounds: Bounds) -> (impl Sender + use<>, impl Receiver + use<>) {
    let held = Load::default();
    let inner = Inner { waiting: VecDeque::new(), held, bounds, ending: ending::OPEN, receiver_gone: false };
    let inner = Arc::new(Mutex::new(inner));
    (LocalSender(Arc::clone(&inner)), LocalReceiver(inner))
}

struct Inner {
    waiting: VecDeque<(Message, Load)>,
    held: Load,
    bounds: Bounds,
    ending: u32,
    receiver_gone: bool,
}

/// The lock is never waited for while both ends are on one thread; it lets them move together to another.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

struct LocalSender(Arc<Mutex<Inner>>);

impl Sender for LocalSender {
    fn try_send(&mut self, message: &mut Message) -> Result<Offer> {
        let mut inner = lock(&self.0);
        if inner.ending != ending::OPEN {
            return Err(closed());
        }
        if inner.receiver_gone {
            return Err(unheard());
        }
        let load = message.load();
        if !inner.bounds.admit(inner.held, load) {
            return Ok(Offer::Full);
        }
        inner.held = inner.held.plus(load);
        inner.waiting.push_back((message.take(), load));
        Ok(Offer::Taken)
    }

    fn send(&mut self, message: &mut Message) -> Result<()> {
        match self.try_send(message)? {
            Offer::Taken => Ok(()),
            Offer::Full => Err(Error::invalid("the queue is full, and its receiver is on this thread")),
        }
    }

    fn close(&mut self) -> Result<()> {
        let mut inner = lock(&self.0);
        inner.ending = ending::CLOSED;
        if inner.receiver_gone { Err(unheard()) } else { Ok(()) }
    }

    fn resize(&mut self, bounds: Bounds) {
        lock(&self.0).bounds = bounds;
    }
}

impl Drop for LocalSender {
    fn drop(&mut self) {
        let mut inner = lock(&self.0);
        if inner.ending == ending::OPEN {
            inner.ending = ending::of_drop();
        }
    }
}

struct LocalReceiver(Arc<Mutex<Inner>>);

impl Receiver for LocalReceiver {
    fn try_recv(&mut self) -> Result<Received> {
        let mut inner = lock(&self.0);
        match inner.waiting.pop_front() {
            Some((message, load)) => {
                inner.held = inner.held.minus(load);
                Ok(Received::Message(message))
            }
            None if inner.ending == ending::OPEN => Ok(Received::Empty),
            None => ended(inner.ending).map(|()| Received::End),
        }
    }

    fn recv(&mut self) -> Result<Option<Message>> {
        match self.try_recv()? {
            Received::Message(message) => Ok(Some(message)),
            Received::Empty => Err(Error::invalid("the queue is empty, and its sender is on this thread")),
            Received::End => Ok(None),
        }
    }
}

impl Drop for LocalReceiver {
    fn drop(&mut self) {
        let mut inner = lock(&self.0);
        inner.receiver_gone = true;
        let waiting = std::mem::take(&mut inner.waiting);
        // Samples may be the last to hold what a plugin frees: not under the lock.
        drop(inner);
        drop(waiting);
    }
}
