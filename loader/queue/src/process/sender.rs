//! The end that gives: puts what is large into shared memory, once, and announces the message.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
};

use forebay_core::{Buffer, Error, Result, codec::Encoder};
use forebay_guard::maps;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown},
};

use super::{
    arena::{Arena, Loan},
    block::Block,
    heap::Heap,
    lane::Lane,
    packet::{BytesAt, HEADER, PACKET, PacketHeader},
};
use crate::{Bounds, Load, Message, Offer, Sender, closed, ending, lost};

/// The sending end of a connection between two processes.
pub struct ProcessSender {
    arena: Arena,
    heap: Heap,
    /// What the other process sends: received from there, it can go back as it is.
    back: Arc<Lane>,
    socket: Arc<OwnedFd>,
    bounds: Bounds,
    sent: Load,
    closed: bool,
    encoder: Encoder,
    packet: Vec<u8>,
    body: Vec<u8>,
    /// How many maps of files had been cut short when it was made.
    cut: u64,
}

/// The places of one message, with the holds that go over to the receiver when it is sent.
#[derive(Default)]
struct Placed {
    places: Vec<BytesAt>,
    holds: Vec<Block>,
    /// What goes through the socket, in order: no shared memory was left for it.
    stream: Vec<Buffer>,
}

impl ProcessSender {
    pub(super) fn new(
        arena: &Arena,
        heap: &Heap,
        back: Arc<Lane>,
        socket: Arc<OwnedFd>,
        bounds: Bounds,
    ) -> Self {
        Self {
            arena: arena.clone(),
            heap: heap.clone(),
            back,
            socket,
            bounds,
            sent: Load::default(),
            closed: false,
            encoder: Encoder::default(),
            packet: Vec::new(),
            body: Vec::new(),
            cut: maps::count(),
        }
    }

    pub(super) fn lane(&self) -> &Arc<Lane> {
        self.heap.lane()
    }

    /// Sends `message`; with `wait` it never answers that there is no room.
    fn offer(&mut self, message: &mut Message, wait: bool) -> Result<Offer> {
        if self.closed {
            return Err(closed());
        }
        let load = message.load();
        if !self.make_room(load, wait)? {
            return Ok(Offer::Full);
        }
        self.encoder.encode(&message.chunk)?;
        let sent = self.place_and_announce(message, load, wait);
        self.encoder.forget();
        if !sent? {
            return Ok(Offer::Full);
        }
        self.sent = self.sent.plus(load);
        message.head.clear();
        message.chunk.clear();
        Ok(Offer::Taken)
    }

    /// Whether `load` may be sent now, or after a wait.
    fn make_room(&self, load: Load, wait: bool) -> Result<bool> {
        self.check_receiver()?;
        loop {
            if self.bounds.admit(self.held(), load) {
                return Ok(true);
            }
            if !wait {
                return self.peek_receiver().map(|()| false);
            }
            self.wait_until(|| self.bounds.admit(self.held(), load))?;
        }
    }

    /// What was sent and not received yet.
    fn held(&self) -> Load {
        let (items, bytes) = self.lane().control().taken();
        self.sent.minus(Load { items, bytes })
    }

    fn place_and_announce(&mut self, message: &Message, load: Load, wait: bool) -> Result<bool> {
        let parts = std::mem::take(&mut self.encoder.parts);
        let placed = self.place_all(&parts, wait);
        self.encoder.parts = parts;
        let Some(mut placed) = placed? else { return Ok(false) };
        let too_long = |_| Error::limit("a message's control bytes are 4 GiB or more");
        let head = u32::try_from(message.head.len()).map_err(too_long)?;
        let parts = u32::try_from(placed.places.len()).map_err(too_long)?;
        self.body.clear();
        self.body.extend_from_slice(&message.head);
        placed.places.iter().for_each(|place| place.write(&mut self.body));
        self.body.extend_from_slice(&self.encoder.flat);
        let mut header = PacketHeader { items: load.items, bytes: load.bytes, head, parts, body: None };
        if HEADER + self.body.len() > PACKET {
            let body = Buffer::from(std::mem::take(&mut self.body));
            let Some(first) = self.place_all(std::slice::from_ref(&body), wait)? else { return Ok(false) };
            header.body = first.places.first().copied();
            placed.holds.extend(first.holds);
            placed.stream.splice(0..0, first.stream);
        }
        self.packet.clear();
        header.write(&mut self.packet);
        if header.body.is_none() {
            self.packet.extend_from_slice(&self.body);
        }
        // Of a map that was cut short zeros may have been copied.
        if !message.chunk.is_empty()
            && let Some(error) = maps::error_after(self.cut)
        {
            return Err(error);
        }
        if !self.announce(&self.packet, wait)? {
            return Ok(false);
        }
        placed.holds.into_iter().for_each(Block::hand_over);
        for piece in placed.stream.iter().flat_map(|buffer| buffer.chunks(PACKET)) {
            self.announce(piece, true)?;
        }
        Ok(true)
    }

    /// Finds or makes a place for each part; `None` when there is no memory, and waiting was not asked for.
    fn place_all(&self, parts: &[Buffer], wait: bool) -> Result<Option<Placed>> {
        let mut placed = Placed::default();
        for part in parts {
            let Some((place, hold)) = self.place(part, wait)? else { return Ok(None) };
            if matches!(place, BytesAt::Stream { .. }) {
                placed.stream.push(part.clone());
            }
            placed.places.push(place);
            placed.holds.extend(hold);
        }
        Ok(Some(placed))
    }

    /// Where one part lies, or is copied to, with the hold that the receiver gets.
    fn place(&self, part: &Buffer, wait: bool) -> Result<Option<(BytesAt, Option<Block>)>> {
        let len = part.len() as u64;
        if let Some(Loan { offset, len }) = self.arena.borrowed(part) {
            return Ok(Some((BytesAt::Loan { offset, len }, None)));
        }
        let at = self.lane().map().place_of(part).unwrap_or_default();
        if let Some(block) = self.heap.hold(part) {
            let offset = (at - block.range().start) as u64;
            let [start, end] = block.ends();
            return Ok(Some((BytesAt::Block { slot: block.slot(), start, end, offset, len }, Some(block))));
        }
        if let Some(block) = self.hold_back(part) {
            let offset = (at - block.range().start) as u64;
            let [start, end] = block.ends();
            return Ok(Some((BytesAt::Back { slot: block.slot(), start, end, offset, len }, Some(block))));
        }
        match self.copy(part, wait)? {
            Some(block) => {
                let [start, end] = block.ends();
                Ok(Some((BytesAt::Block { slot: block.slot(), start, end, offset: 0, len }, Some(block))))
            }
            None if wait => Ok(Some((BytesAt::Stream { len }, None))),
            None => Ok(None),
        }
    }

    /// One more hold on the block that the other process sent, if `part` lies in one.
    fn hold_back(&self, part: &[u8]) -> Option<Block> {
        let place = self.lane().map().place_of(part)?;
        let (slot, range) = self.back.hold_view(&(place..place + part.len()))?;
        Some(Block::counted(Arc::clone(&self.back), slot, range))
    }

    /// The part in shared memory; `None` when there is none, and none will come: the receiver has taken everything, so
    /// what is still in use may stay so for ever.
    fn copy(&self, part: &[u8], wait: bool) -> Result<Option<Block>> {
        loop {
            if let Some(mut block) = self.heap.block(part.len()) {
                block.fill(part);
                return Ok(Some(block));
            }
            let all_taken = || self.held().items == 0;
            if !wait || all_taken() || !self.heap.could_hold(part.len()) {
                return Ok(None);
            }
            self.wait_until(|| self.heap.has_freed() || all_taken())?;
        }
    }

    /// Sends one packet; says no if that would mean to wait, and that was not asked for.
    fn announce(&self, packet: &[u8], wait: bool) -> Result<bool> {
        let flags = if wait { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT };
        loop {
            match rustix::net::send(&self.socket, packet, flags) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) if !wait => return Ok(false),
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(self.unheard()),
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
    }

    /// Waits until the receiver may have changed something, unless `ready` by now.
    fn wait_until(&self, ready: impl Fn() -> bool) -> Result<()> {
        let control = self.lane().control();
        control.announce_wait();
        if !ready() {
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        control.end_wait();
        self.peek_receiver()
    }

    /// Reads the wake-ups that came, and sees whether the receiver is gone.
    fn peek_receiver(&self) -> Result<()> {
        self.check_receiver()?;
        loop {
            match rustix::net::recv(&self.socket, &mut [0; 8], RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => return Err(self.unheard()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.check_receiver(),
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
    }

    fn check_receiver(&self) -> Result<()> {
        match self.lane().control().receiver_gone.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => Err(self.unheard()),
        }
    }

    fn unheard(&self) -> Error {
        match self.lane().control().receiver_gone.load(Ordering::Acquire) {
            0 => lost("the process at the other end died"),
            _ => lost("the receiver was dropped"),
        }
    }

    /// Ends the queue; what waits in the socket is still received.
    fn leave(&mut self, how: u32) {
        if !std::mem::replace(&mut self.closed, true) {
            self.lane().control().ending.store(how, Ordering::Release);
            // It only fails when the other end is gone.
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
        }
    }
}

impl Sender for ProcessSender {
    fn try_send(&mut self, message: &mut Message) -> Result<Offer> {
        self.offer(message, false)
    }

    fn send(&mut self, message: &mut Message) -> Result<()> {
        self.offer(message, true).map(drop)
    }

    fn close(&mut self) -> Result<()> {
        // Before the end is told: whoever hears that may go.
        let heard = self.peek_receiver();
        self.leave(ending::CLOSED);
        heard
    }

    fn resize(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }
}

impl Drop for ProcessSender {
    fn drop(&mut self) {
        self.leave(ending::of_drop());
    }
}
