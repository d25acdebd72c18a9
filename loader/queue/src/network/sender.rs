//! The end that gives: a thread writes, so that a large message or a slow network keeps no caller waiting.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use forebay_core::{Buffer, Error, Result, codec::Encoder};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown},
};

use super::{
    frame::{ANSWER, FrameHeader, from_answer},
    stream::NetworkLink,
};
use crate::{Bounds, Load, Message, Offer, Sender, closed, ending, lost};

/// The sending end of a queue over a socket.
///
/// Dropped after [`close`](Sender::close) it goes on in the background until the receiver has everything; a program
/// that is about to exit waits for that with [`finish`](NetworkSender::finish).
pub struct NetworkSender {
    shared: Arc<SenderShared>,
    /// To the thread that writes; gone once the queue is closed. Bounded by what the receiver has not taken.
    frames: Option<crossbeam_channel::Sender<OutgoingFrame>>,
    writer: Option<JoinHandle<()>>,
    bounds: Bounds,
    sent: Load,
    encoder: Encoder,
}

/// What the sender and its writing thread share.
struct SenderShared {
    link: NetworkLink,
    /// Held while an answer that is there is read, never for longer.
    answers: Mutex<Answers>,
}

/// What the receiver said.
#[derive(Default)]
struct Answers {
    taken: Load,
    piece: [u8; ANSWER],
    filled: usize,
    failed: Option<Error>,
}

/// What is written at once.
struct OutgoingFrame {
    bytes: Vec<u8>,
    parts: Vec<Buffer>,
}

impl NetworkSender {
    pub(super) fn new(link: NetworkLink, bounds: Bounds) -> Result<Self> {
        let (frames, waiting) = crossbeam_channel::unbounded();
        let shared = Arc::new(SenderShared { link, answers: Mutex::default() });
        let writers = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("queue writer".to_owned());
        let writer = writer.spawn(move || writers.write_all(&waiting))?;
        let (sent, encoder) = (Load::default(), Encoder::default());
        Ok(Self { shared, frames: Some(frames), writer: Some(writer), bounds, sent, encoder })
    }

    /// Closes the queue and waits until the receiver has taken everything.
    ///
    /// # Errors
    /// When the receiver went before that.
    pub fn finish(mut self) -> Result<()> {
        self.leave(ending::CLOSED);
        while self.held().items > 0 {
            let answered = self.shared.wait_for_answers();
            // A receiver that has everything may go.
            if self.held().items > 0 {
                answered?;
            }
        }
        Ok(())
    }

    fn offer(&mut self, message: &mut Message, wait: bool) -> Result<Offer> {
        let Some(frames) = &self.frames else { return Err(closed()) };
        let load = message.load();
        self.shared.read_answers()?;
        while !self.bounds.admit(self.held(), load) {
            if !wait {
                return Ok(Offer::Full);
            }
            self.shared.wait_for_answers()?;
        }
        self.encoder.encode(&message.chunk)?;
        let frame = OutgoingFrame::of(message, load, &mut self.encoder)?;
        frames.send(frame).map_err(|_| lost("the thread that writes is gone"))?;
        self.sent = self.sent.plus(load);
        message.head.clear();
        message.chunk.clear();
        Ok(Offer::Taken)
    }

    fn held(&self) -> Load {
        self.sent.minus(self.shared.answers().taken)
    }

    fn leave(&mut self, how: u32) {
        if let Some(frames) = self.frames.take() {
            let bytes = FrameHeader::Ending(how).to_bytes().to_vec();
            // The thread is gone when the connection is.
            let _ = frames.send(OutgoingFrame { bytes, parts: Vec::new() });
            drop(self.writer.take());
        }
    }
}

impl OutgoingFrame {
    fn of(message: &Message, load: Load, encoder: &mut Encoder) -> Result<Self> {
        let parts = std::mem::take(&mut encoder.parts);
        let count = u32::try_from(parts.len());
        let count = count.map_err(|_| Error::limit("a message holds at most 2^32 - 1 large buffers"))?;
        let (head, flat) = (message.head.len() as u64, encoder.flat.len() as u64);
        let mut bytes = FrameHeader::Message { parts: count, head, flat, load }.to_bytes().to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(&(part.len() as u64).to_le_bytes()));
        bytes.extend_from_slice(&message.head);
        bytes.extend_from_slice(&encoder.flat);
        encoder.forget();
        Ok(Self { bytes, parts })
    }
}

impl SenderShared {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the receiver has said by now.
    fn read_answers(&self) -> Result<()> {
        let mut answers = self.answers();
        if answers.failed.is_none() {
            answers.failed = answers.read(&self.link).err();
        }
        answers.failed.clone().map_or(Ok(()), Err)
    }

    /// Waits until the receiver says something, and reads it.
    fn wait_for_answers(&self) -> Result<()> {
        match poll(&mut [PollFd::new(&self.link, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => self.read_answers(),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }

    /// The thread that writes: all frames, and then it listens until the receiver has what it wants, since a
    /// socket that is closed with answers unread takes back what was sent.
    fn write_all(&self, frames: &crossbeam_channel::Receiver<OutgoingFrame>) {
        for frame in frames {
            let pieces =
                std::iter::once(frame.bytes.as_slice()).chain(frame.parts.iter().map(|part| &**part));
            for piece in pieces {
                if let Err(error) = write(&self.link, piece) {
                    self.answers().failed.get_or_insert(error);
                    // Wakes a sender that waits for room; broken it is anyway.
                    let _ = rustix::net::shutdown(&self.link, Shutdown::Both);
                    return;
                }
            }
        }
        let _ = rustix::net::shutdown(&self.link, Shutdown::Write);
        while self.wait_for_answers().is_ok() {}
    }
}

fn write(link: &NetworkLink, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(link, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(gone()),
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
    Ok(())
}

fn gone() -> Error {
    lost("the receiver is gone, or the connection to it")
}

impl Answers {
    fn read(&mut self, link: &NetworkLink) -> Result<()> {
        loop {
            let missing = self.piece.get_mut(self.filled..).unwrap_or_default();
            match rustix::net::recv(link, missing, RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET | Errno::PIPE) => return Err(gone()),
                Ok((_, read)) => self.filled += read,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
            if self.filled == ANSWER {
                self.filled = 0;
                self.taken = from_answer(self.piece);
            }
        }
    }
}

impl Sender for NetworkSender {
    fn try_send(&mut self, message: &mut Message) -> Result<Offer> {
        self.offer(message, false)
    }

    fn send(&mut self, message: &mut Message) -> Result<()> {
        self.offer(message, true).map(drop)
    }

    fn close(&mut self) -> Result<()> {
        // Before the end is told: whoever hears that may go.
        let heard = self.shared.read_answers();
        self.leave(ending::CLOSED);
        heard
    }

    fn resize(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }
}

impl Drop for NetworkSender {
    fn drop(&mut self) {
        self.leave(ending::of_drop());
    }
}
