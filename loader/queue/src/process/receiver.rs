//! The end that takes: buffers that point into the sender's memory, after their places were checked.

use std::{
    collections::HashMap,
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use forebay_core::{Buffer, Error, Result, codec::Decoder};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown},
};

use super::{
    arena::{Arena, Loan},
    block::Block,
    lane::Lane,
    packet::{BytesAt, PACKET, PLACE, PacketHeader},
};
use crate::{Message, Received, Receiver, ended, ending, lost};

/// The receiving end of a connection between two processes.
///
/// What it gives points into shared memory, and goes back to the sender when it is dropped.
pub struct ProcessReceiver {
    arena: Arena,
    lane: Arc<Lane>,
    /// What this process sends: blocks of it come back when the other process hands them on.
    own: Arc<Lane>,
    socket: Arc<OwnedFd>,
    decoder: Decoder,
    packet: Box<[u8]>,
    coming: Option<Coming>,
    failed: Option<Error>,
}

/// A message of which the rest has not come yet.
struct Coming {
    header: PacketHeader,
    body: Option<Buffer>,
    /// The places not looked at yet, the next one last.
    places: Vec<BytesAt>,
    parts: Vec<Buffer>,
    /// The whole of each block in this message, by whose it is and its number.
    blocks: HashMap<(bool, u32), (Range<usize>, Buffer)>,
    /// What comes through the socket now.
    stream: Option<Stream>,
}

struct Stream {
    bytes: Vec<u8>,
    len: usize,
}

impl ProcessReceiver {
    pub(super) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    pub(super) fn new(arena: &Arena, lane: Arc<Lane>, own: Arc<Lane>, socket: Arc<OwnedFd>) -> Self {
        Self {
            arena: arena.clone(),
            lane,
            own,
            socket,
            decoder: Decoder::default(),
            packet: vec![0; PACKET + 1].into(),
            coming: None,
            failed: None,
        }
    }

    fn next(&mut self, flags: RecvFlags) -> Result<Received> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let next = self.read(flags);
        if let Err(error) = &next {
            self.failed = Some(error.clone());
            self.coming = None;
        }
        next
    }

    fn read(&mut self, flags: RecvFlags) -> Result<Received> {
        loop {
            let len = match rustix::net::recv(&self.socket, &mut *self.packet, flags) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => return self.end().map(|()| Received::End),
                Ok((_, len)) => len,
                Err(Errno::AGAIN) => return Ok(Received::Empty),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(std::io::Error::from(error).into()),
            };
            let packet = self.packet.get(..len).filter(|packet| packet.len() <= PACKET);
            let packet = packet.ok_or_else(|| Error::corrupt("a packet is too long"))?;
            match &mut self.coming {
                None => self.coming = Some(Coming::start(packet)?),
                Some(coming) => coming.more(packet)?,
            }
            if let Some(message) = self.complete()? {
                return Ok(Received::Message(message));
            }
        }
    }

    /// The message, if all of it is there.
    fn complete(&mut self) -> Result<Option<Message>> {
        let Some(coming) = &mut self.coming else { return Ok(None) };
        if !coming.locate(&self.arena, &self.lane, &self.own)? {
            return Ok(None);
        }
        let Some(coming) = self.coming.take() else { return Ok(None) };
        let PacketHeader { items, bytes, head, parts, .. } = coming.header;
        let body = coming.body.as_deref().unwrap_or_default();
        let (head, rest) = body.split_at_checked(head as usize).ok_or_else(short)?;
        let flat = rest.get(parts as usize * PLACE..).ok_or_else(short)?;
        let chunk = self.decoder.decode(flat, &coming.parts)?;
        let message = Message { head: head.to_vec(), chunk };
        self.lane.control().take(items, bytes);
        self.lane.wake_sender();
        Ok(Some(message))
    }

    fn end(&self) -> Result<()> {
        if self.coming.is_some() {
            return Err(lost("the sender went in the middle of a message"));
        }
        match self.lane.control().ending.load(Ordering::Acquire) {
            ending::OPEN => Err(lost("the process at the other end died before it closed the queue")),
            how => ended(how),
        }
    }

    /// Waits until something has come, or the other process is gone; says no when `limit` has passed before.
    ///
    /// # Errors
    /// When the system cannot wait.
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        let end = Instant::now().checked_add(limit); // One that is too long for the system is none.
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        loop {
            let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
            match poll(&mut fds, rest.and_then(|rest| Timespec::try_from(rest).ok()).as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
    }

    /// A watch on the other process.
    ///
    /// # Errors
    /// When the system gives no more descriptors.
    pub fn hangup(&self) -> Result<Hangup> {
        Ok(Hangup(self.socket.try_clone()?))
    }
}

fn short() -> Error {
    Error::corrupt("a message is shorter than its header says")
}

fn part_of(block: &Buffer, offset: u64, len: u64) -> Result<Buffer> {
    let [offset, len] = [offset, len].map(|word| usize::try_from(word).unwrap_or(usize::MAX));
    let part = offset.checked_add(len).and_then(|to| block.get(offset..to));
    part.ok_or_else(|| Error::corrupt("a place lies outside of its block"))
}

impl Coming {
    fn start(packet: &[u8]) -> Result<Self> {
        let (header, rest) = PacketHeader::read(packet)?;
        let mut coming = Self {
            header,
            body: None,
            places: Vec::new(),
            parts: Vec::new(),
            blocks: HashMap::new(),
            stream: None,
        };
        match header.body {
            None => coming.set_body(rest.to_vec().into())?,
            Some(place) => coming.places.push(place),
        }
        Ok(coming)
    }

    /// Takes the body, and reads the places of the parts in it.
    fn set_body(&mut self, body: Buffer) -> Result<()> {
        let mut rest = body.as_slice().get(self.header.head as usize..).ok_or_else(short)?;
        if rest.len() / PLACE < self.header.parts as usize {
            return Err(short());
        }
        for _ in 0..self.header.parts {
            self.places.push(BytesAt::read(&mut rest)?);
        }
        self.places.reverse();
        self.body = Some(body);
        Ok(())
    }

    /// Adds a packet of what comes through the socket.
    fn more(&mut self, packet: &[u8]) -> Result<()> {
        let stream = self.stream.as_mut().ok_or_else(|| Error::bug("a packet came out of turn"))?;
        stream.bytes.extend_from_slice(packet);
        if stream.bytes.len() > stream.len {
            return Err(Error::corrupt("more bytes came than were announced"));
        }
        Ok(())
    }

    /// Finds the bytes of all places; says no while some have to come through the socket.
    fn locate(&mut self, arena: &Arena, lane: &Arc<Lane>, own: &Arc<Lane>) -> Result<bool> {
        loop {
            if let Some(stream) = self.stream.take() {
                if stream.bytes.len() < stream.len {
                    self.stream = Some(stream);
                    return Ok(false);
                }
                self.found(stream.bytes.into())?;
            }
            match self.places.pop() {
                None => return Ok(true),
                Some(BytesAt::Stream { len }) => {
                    let len = usize::try_from(len).map_err(|_| short())?;
                    // More is taken only as it comes.
                    let bytes = Vec::with_capacity(len.min(64 << 20));
                    self.stream = Some(Stream { bytes, len });
                }
                Some(BytesAt::Loan { offset, len }) => {
                    let loan = Loan { offset, len };
                    let found = arena.returned(loan);
                    self.found(found.ok_or_else(|| Error::corrupt(format!("{loan:?} was not lent")))?)?;
                }
                Some(BytesAt::Block { slot, start, end, offset, len }) => {
                    let block = self.block(lane, false, slot, [start, end])?;
                    self.found(part_of(&block, offset, len)?)?;
                }
                Some(BytesAt::Back { slot, start, end, offset, len }) => {
                    let block = self.block(own, true, slot, [start, end])?;
                    self.found(part_of(&block, offset, len)?)?;
                }
            }
        }
    }

    /// The whole block, with one owner however many parts lie in it; each place brings one hold of its own.
    fn block(&mut self, lane: &Arc<Lane>, is_own: bool, slot: u32, place: [u64; 2]) -> Result<Buffer> {
        let [start, end] = place.map(|word| usize::try_from(word).unwrap_or(usize::MAX));
        let blocks = lane.blocks();
        if start > end || start < blocks.start || end > blocks.end || slot as usize >= lane.slots().len() {
            return Err(Error::corrupt(format!("block {slot} at {start}..{end} is not in {blocks:?}")));
        }
        if let Some((range, whole)) = self.blocks.get(&(is_own, slot)) {
            lane.release(slot);
            return if *range == (start..end) {
                Ok(whole.clone())
            } else {
                Err(Error::corrupt(format!("block {slot} is in two places")))
            };
        }
        let block = Block::counted(Arc::clone(lane), slot, start..end);
        let whole = if is_own { block.into_buffer() } else { block.into_view() };
        self.blocks.insert((is_own, slot), (start..end, whole.clone()));
        Ok(whole)
    }

    fn found(&mut self, bytes: Buffer) -> Result<()> {
        match &self.body {
            None => self.set_body(bytes),
            Some(_) => {
                self.parts.push(bytes);
                Ok(())
            }
        }
    }
}

impl Receiver for ProcessReceiver {
    fn try_recv(&mut self) -> Result<Received> {
        self.next(RecvFlags::DONTWAIT)
    }

    fn recv(&mut self) -> Result<Option<Message>> {
        loop {
            match self.next(RecvFlags::empty())? {
                Received::Message(message) => return Ok(Some(message)),
                Received::Empty => {}
                Received::End => return Ok(None),
            }
        }
    }
}

impl AsFd for ProcessReceiver {
    /// The socket: readable when [`try_recv`](Receiver::try_recv) has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for ProcessReceiver {
    fn drop(&mut self) {
        self.lane.control().receiver_gone.store(1, Ordering::Release);
        // A full socket wakes the sender too, and a broken one has none.
        let _ = rustix::net::send(&self.socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        // One that waits for room in the socket itself; views may keep that open.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Read);
    }
}

/// Tells when the process at the other end is gone.
pub struct Hangup(OwnedFd);

impl Hangup {
    /// Waits until the process at the other end is gone, whatever ended it.
    pub fn wait(&self) {
        loop {
            let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, random::Rng};

    use super::super::{Connection, Sizes, packet::HEADER};
    use super::*;
    use crate::Bounds;

    /// What a receiver says to these packets of a forger.
    fn forged(packets: &[&[u8]]) -> Result<Option<Message>> {
        let arena = Arena::create(8 << 20).unwrap();
        let bounds = Bounds { items: 10, bytes: 1 << 20 };
        let sizes = Sizes { to_worker: 1 << 20, from_worker: 1 << 20, bounds };
        let (mut connection, ends) = Connection::open(&arena, sizes).unwrap();
        let [_, forger] = ends.sockets;
        for packet in packets {
            rustix::net::send(&forger, packet, SendFlags::NOSIGNAL).unwrap();
        }
        drop(forger);
        let first = connection.receiver.recv();
        if first.is_err() {
            assert!(connection.receiver.recv().is_err(), "the error stays");
        }
        first
    }

    fn written(header: PacketHeader, places: &[BytesAt], rest: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        header.write(&mut packet);
        places.iter().for_each(|place| place.write(&mut packet));
        packet.extend_from_slice(rest);
        packet
    }

    /// A chunk without samples.
    const EMPTY: [u8; 4] = [0; 4];
    const PLAIN: PacketHeader = PacketHeader { items: 1, bytes: 4, head: 0, parts: 0, body: None };

    #[track_caller]
    fn is_corrupt(packets: &[&[u8]]) {
        assert_eq!(forged(packets).map(drop).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn forged_headers_and_places_are_refused() {
        assert!(forged(&[&written(PLAIN, &[], &EMPTY)]).unwrap().is_some());
        is_corrupt(&[&written(PacketHeader { head: 5, ..PLAIN }, &[], &EMPTY)]);
        is_corrupt(&[&written(PacketHeader { parts: 1, ..PLAIN }, &[], &EMPTY)]);
        is_corrupt(&[&written(PacketHeader { head: u32::MAX, parts: u32::MAX, ..PLAIN }, &[], &EMPTY)]);
        is_corrupt(&[&written(PLAIN, &[], &[7; 60])]);
        is_corrupt(&[&[0; HEADER]]);
        is_corrupt(&[&[1; PACKET + 1]]);
        let lane = 1 << 20;
        let block = |slot, start, end, offset, len| BytesAt::Block { slot, start, end, offset, len };
        for place in [
            block(0, 0, 4096, 0, 1),
            block(0, lane + 8192, u64::MAX, 0, 1),
            block(0, lane + 16384, lane + 12288, 0, 1),
            block(u32::MAX, lane + 12288, lane + 16384, 0, 1),
            block(64, lane + 12288, lane + 16384, 0, 1),
            block(0, lane + 12288, lane + 16384, 1, 4096),
            block(0, lane + 12288, lane + 16384, u64::MAX, 2),
            BytesAt::Back { slot: 0, start: lane + 12288, end: lane + 16384, offset: 0, len: 1 },
            BytesAt::Back { slot: 0, start: 12288, end: 16384, offset: 4096, len: 1 },
            BytesAt::Loan { offset: lane, len: 1 },
            BytesAt::Loan { offset: u64::MAX, len: u64::MAX },
        ] {
            is_corrupt(&[&written(PacketHeader { parts: 1, ..PLAIN }, &[place], &EMPTY)]);
            is_corrupt(&[&written(PacketHeader { body: Some(place), ..PLAIN }, &[], &[])]);
        }
    }

    #[test]
    fn forged_streams_are_refused() {
        let stream = |len| written(PacketHeader { body: Some(BytesAt::Stream { len }), ..PLAIN }, &[], &[]);
        assert!(forged(&[&stream(4), &EMPTY]).unwrap().is_some());
        is_corrupt(&[&stream(3), &EMPTY]);
        // It never came.
        for len in [5, u64::MAX] {
            assert_eq!(forged(&[&stream(len), &EMPTY]).map(drop).unwrap_err().kind(), ErrorKind::Worker);
        }
    }

    #[test]
    fn noise_is_an_error() {
        let mut random = Rng::new(5, 6);
        let place =
            BytesAt::Block { slot: 1, start: 12288 + (1 << 20), end: (1 << 20) + 20000, offset: 4, len: 100 };
        let good = written(PacketHeader { parts: 1, ..PLAIN }, &[place], &EMPTY);
        for _ in 0..2000 {
            let mut packet = good.clone();
            for _ in 0..1 + random.below(6) {
                let at = random.below(packet.len() as u64) as usize;
                packet[at] = random.u64() as u8;
            }
            let _ = forged(&[&packet]);
        }
    }
}
