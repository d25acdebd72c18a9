//! How a worker is given its ends: over a socket that is its standard input.
//!
//! Descriptors travel in a packet on that socket, so none but these three is ever inherited, and nothing has to run
//! between fork and exec.

use std::{
    fs::File,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
};

use forebay_core::{Error, Result};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::{Arena, Bounds, Connection};

/// What the packet begins with.
const MAGIC: [u8; 8] = *b"forebay1";
/// Its length: the magic bytes and six numbers.
const LENGTH: usize = 56;

/// What a worker's standard input is once its ends are taken.
const NOTHING: &str = "/dev/null";

/// The worker's ends of a connection, until it is spawned.
pub struct WorkerEnds {
    pub(super) arena: Arena,
    /// Its input and its output.
    pub(super) sockets: [OwnedFd; 2],
    pub(super) lanes: [Range<usize>; 2],
    pub(super) bounds: Bounds,
}

impl WorkerEnds {
    /// Starts `command` with these ends; there, [`Connection::from_parent`] takes them from the standard input.
    ///
    /// The command and this process's copies of the ends are gone afterwards, so that the worker's death is seen.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn spawn(self, mut command: Command) -> Result<Child> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(system)?;
        self.send(&ours)?;
        command.stdin(Stdio::from(theirs));
        let child = command.spawn().map_err(|error| {
            Error::from(error).context("command", command.get_program().to_string_lossy())
        })?;
        Ok(child)
    }

    /// The worker's connection, in this very process.
    #[cfg(test)]
    pub(crate) fn attach_here(self) -> Result<Connection> {
        let arena = Arena::attach(self.arena.fd()?)?;
        Connection::attach(arena, self.sockets, self.lanes, self.bounds)
    }

    fn send(&self, socket: &OwnedFd) -> Result<()> {
        let [input, output] = &self.lanes;
        let Bounds { items, bytes } = self.bounds;
        let mut packet = Vec::from(MAGIC);
        let places = [input.start, input.end, output.start, output.end].map(|place| place as u64);
        for number in places.into_iter().chain([items, bytes]) {
            packet.extend_from_slice(&number.to_le_bytes());
        }
        let [its_input, its_output] = &self.sockets;
        let fds = [self.arena.fd()?, its_input.as_fd(), its_output.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(Error::bug("three descriptors do not fit their message"));
        }
        sendmsg(socket, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL).map_err(system)?;
        Ok(())
    }
}

impl Connection {
    /// The ends that [`WorkerEnds::spawn`] gave this process. They can be taken once: from then on the standard input is `/dev/null`, so that
    /// no plugin, and no program that one starts, has the socket.
    ///
    /// # Errors
    /// When the standard input is not such a socket: this process was not spawned as a worker. Then it stays as it is.
    pub fn from_parent() -> Result<Self> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
        let mut packet = [0; LENGTH + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = recvmsg(&stdin, &mut [IoSliceMut::new(&mut packet)], &mut control, flags)
            .map_err(|error| not_a_worker(&std::io::Error::from(error).to_string()))?;
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                fds.extend(some);
            }
        }
        let Ok([memory, input, output]) = <[OwnedFd; 3]>::try_from(fds) else {
            return Err(not_a_worker("three descriptors expected"));
        };
        let numbers = packet.get(..received.bytes).and_then(read_packet);
        let Some([a, b, c, d, items, bytes]) = numbers else {
            return Err(not_a_worker("another version of the program started it"));
        };
        let nothing = File::open(NOTHING).map_err(|error| Error::from(error).context("file", NOTHING))?;
        rustix::stdio::dup2_stdin(nothing).map_err(system)?;
        let place =
            |number: u64| usize::try_from(number).map_err(|_| not_a_worker("a place is out of range"));
        let lanes = [place(a)?..place(b)?, place(c)?..place(d)?];
        let arena = Arena::attach(memory.as_fd())?;
        Self::attach(arena, [input, output], lanes, Bounds { items, bytes })
    }
}

fn read_packet(packet: &[u8]) -> Option<[u64; 6]> {
    let mut numbers = [0; 6];
    let (words, []) = packet.strip_prefix(&MAGIC)?.as_chunks::<8>() else { return None };
    if words.len() != numbers.len() {
        return None;
    }
    numbers.iter_mut().zip(words).for_each(|(number, word)| *number = u64::from_le_bytes(*word));
    Some(numbers)
}

fn not_a_worker(why: &str) -> Error {
    Error::invalid(format!("the standard input is not a worker's connection: {why}"))
}

fn system(error: rustix::io::Errno) -> Error {
    std::io::Error::from(error).into()
}
