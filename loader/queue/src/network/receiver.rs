//! The end that takes: reads frames as far as they came, and never waits in the middle of one unless it was asked to.

use std::os::fd::{AsFd, BorrowedFd};

use forebay_core::{Buffer, Error, Result, codec::Decoder};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags},
};

use super::{
    frame::{ANSWER, FrameHeader, HEADER, answer, within},
    stream::NetworkLink,
};
use crate::{Load, Message, Received, Receiver, ended, lost};

/// Short pieces are read together, this much at a time.
const AHEAD: usize = 32 << 10;

/// The receiving end of a queue over a socket.
pub struct NetworkReceiver {
    link: NetworkLink,
    limit: usize,
    decoder: Decoder,
    frame: IncomingFrame,
    /// What was read and not looked at: from `at` to `end`.
    ahead: Box<[u8]>,
    at: usize,
    end: usize,
    taken: Load,
    answers: PendingAnswers,
    /// How the sender said that it leaves.
    left: Option<u32>,
    failed: Option<Error>,
}

/// A frame as far as it came: the piece that is being read, and those before it.
struct IncomingFrame {
    stage: Stage,
    piece: Vec<u8>,
    filled: usize,
    parts: u32,
    head: usize,
    flat: usize,
    load: Load,
    lengths: Vec<usize>,
    text: Vec<u8>,
    buffers: Vec<Buffer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    FrameHeader,
    Lengths,
    Text,
    Part,
}

/// PendingAnswers that did not leave yet. Only the latest matters, but one that left in part must be completed.
#[derive(Default)]
struct PendingAnswers {
    leaving: Vec<u8>,
    is_news: bool,
}

impl IncomingFrame {
    fn new() -> Self {
        Self {
            stage: Stage::FrameHeader,
            piece: vec![0; HEADER],
            filled: 0,
            parts: 0,
            head: 0,
            flat: 0,
            load: Load::default(),
            lengths: Vec::new(),
            text: Vec::new(),
            buffers: Vec::new(),
        }
    }

    fn expect(&mut self, stage: Stage, len: usize) {
        (self.stage, self.piece, self.filled) = (stage, vec![0; len], 0);
    }

    fn missing(&mut self) -> &mut [u8] {
        self.piece.get_mut(self.filled..).unwrap_or_default()
    }

    /// Goes on after a piece that is whole; says whether the frame is.
    fn advance(&mut self, limit: usize) -> Result<bool> {
        match self.stage {
            Stage::FrameHeader => self.expect(Stage::Lengths, self.parts as usize * 8),
            Stage::Lengths => {
                let words = self.piece.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
                let text = (self.head + self.flat) as u64;
                within(words.clone().fold(text, u64::saturating_add), limit)?;
                self.lengths = words.map(|len| len as usize).collect(); // Within the limit, and so a usize.
                self.lengths.reverse();
                self.expect(Stage::Text, self.head + self.flat);
            }
            Stage::Text => {
                self.text = std::mem::take(&mut self.piece);
                return Ok(self.next_part());
            }
            Stage::Part => {
                self.buffers.push(std::mem::take(&mut self.piece).into());
                return Ok(self.next_part());
            }
        }
        Ok(false)
    }

    fn next_part(&mut self) -> bool {
        match self.lengths.pop() {
            Some(len) => self.expect(Stage::Part, len),
            None => return true,
        }
        false
    }
}

impl NetworkReceiver {
    pub(super) fn new(link: NetworkLink, limit: usize) -> Self {
        Self {
            link,
            limit,
            decoder: Decoder::default(),
            frame: IncomingFrame::new(),
            ahead: vec![0; AHEAD].into(),
            at: 0,
            end: 0,
            taken: Load::default(),
            answers: PendingAnswers::default(),
            left: None,
            failed: None,
        }
    }

    fn next(&mut self) -> Result<Received> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.answers.leave(&self.link, self.taken);
        let next = self.read();
        if let Err(error) = &next {
            self.failed = Some(error.clone());
        }
        next
    }

    fn read(&mut self) -> Result<Received> {
        loop {
            if let Some(how) = self.left {
                return ended(how).map(|()| Received::End);
            }
            while self.frame.missing().is_empty() {
                if let Some(message) = self.advance()? {
                    return Ok(Received::Message(message));
                }
                if self.left.is_some() {
                    break;
                }
            }
            if self.left.is_none() && !self.fill()? {
                return Ok(Received::Empty);
            }
        }
    }

    /// Goes on after a whole piece.
    fn advance(&mut self) -> Result<Option<Message>> {
        let frame = &mut self.frame;
        if frame.stage == Stage::FrameHeader {
            match FrameHeader::from_bytes(&frame.piece, self.limit)? {
                FrameHeader::Ending(how) => {
                    self.left = Some(how);
                    return Ok(None);
                }
                FrameHeader::Message { parts, head, flat, load } => {
                    // Both are within the limit, which is a usize.
                    (frame.parts, frame.head, frame.flat, frame.load) =
                        (parts, head as usize, flat as usize, load);
                }
            }
        }
        if !frame.advance(self.limit)? {
            return Ok(None);
        }
        let frame = std::mem::replace(frame, IncomingFrame::new());
        let (head, flat) = frame.text.split_at_checked(frame.head).unwrap_or_default();
        let chunk = self.decoder.decode(flat, &frame.buffers)?;
        let head = head.to_vec();
        self.taken = self.taken.plus(frame.load);
        self.answers.is_news = true;
        self.answers.leave(&self.link, self.taken);
        Ok(Some(Message { head, chunk }))
    }

    /// Reads some of what is missing; says no when nothing came.
    fn fill(&mut self) -> Result<bool> {
        let missing = self.frame.missing();
        if self.at == self.end && missing.len() >= AHEAD {
            return match receive(&self.link, missing)? {
                Some(read) => {
                    self.frame.filled += read;
                    Ok(true)
                }
                None => Ok(false),
            };
        }
        if self.at == self.end {
            let Some(read) = receive(&self.link, &mut self.ahead)? else { return Ok(false) };
            (self.at, self.end) = (0, read);
        }
        let waiting = self.ahead.get(self.at..self.end).unwrap_or_default();
        let count = waiting.len().min(missing.len());
        for (place, byte) in missing.chunks_mut(count.max(1)).take(1).zip(waiting.chunks(count.max(1))) {
            place.copy_from_slice(byte);
        }
        self.at += count;
        self.frame.filled += count;
        Ok(true)
    }
}

/// Reads what is there: `None` when that is nothing.
fn receive(link: &NetworkLink, to: &mut [u8]) -> Result<Option<usize>> {
    loop {
        match rustix::net::recv(link, &mut *to, RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => {
                return Err(lost("the connection ended before the sender closed the queue"));
            }
            Ok((_, read)) => return Ok(Some(read)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
}

impl PendingAnswers {
    /// Sends what can be sent without a wait. That nobody hears it shows when the next frame is read.
    fn leave(&mut self, link: &NetworkLink, taken: Load) {
        loop {
            if self.leaving.is_empty() && std::mem::take(&mut self.is_news) {
                self.leaving.extend_from_slice(&answer(taken));
            }
            if self.leaving.is_empty() {
                return;
            }
            match rustix::net::send(link, &self.leaving, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.leaving.drain(..sent.min(ANSWER))),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl Receiver for NetworkReceiver {
    fn try_recv(&mut self) -> Result<Received> {
        self.next()
    }

    fn recv(&mut self) -> Result<Option<Message>> {
        loop {
            match self.next()? {
                Received::Message(message) => return Ok(Some(message)),
                Received::End => return Ok(None),
                Received::Empty => {}
            }
            let news = if self.answers.leaving.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            match poll(&mut [PollFd::new(&self.link, PollFlags::IN | news)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
    }
}

impl AsFd for NetworkReceiver {
    /// The socket: when it is readable, [`try_recv`](Receiver::try_recv) may have something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}
