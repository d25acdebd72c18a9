//! How the two ends meet: an address, a secret, and which end is which.

use std::{
    fmt,
    fs::File,
    io::{Read, Write},
    net::{TcpListener, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use forebay_core::{Error, Result};

/// What each end says first: the protocol and its version.
const HELLO: [u8; 8] = *b"fbqueue1";
/// How long a stranger may take to say hello.
const PATIENCE: Duration = Duration::from_secs(10);

/// The secret that the connecting end must know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 16]);

impl Secret {
    fn new() -> Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl FromStr for Secret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number =
            Some(text).filter(|text| text.len() == 32).and_then(|text| u128::from_str_radix(text, 16).ok());
        let number = number.ok_or_else(|| Error::invalid("a secret is 32 hexadecimal digits"))?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// Which end of a queue this is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum QueueEnd {
    Sender = 1,
    Receiver = 2,
}

/// Two programs, connected; [`sender`](super::sender) and [`receiver`](super::receiver) make it a queue.
pub struct NetworkLink(Socket);

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl NetworkLink {
    /// Says which end this is, and hears that the other is the other.
    pub(super) fn agree(&self, role: QueueEnd) -> Result<()> {
        self.write(&[role as u8])?;
        let mut other = [0];
        self.read(&mut other)?;
        match other {
            [1 | 2] if other != [role as u8] => Ok(()),
            _ => Err(Error::invalid("both ends of the connection are the same end of a queue")),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        let done = match &self.0 {
            Socket::Tcp(stream) => (&*stream).write_all(bytes),
            Socket::Unix(stream) => (&*stream).write_all(bytes),
        };
        Ok(done?)
    }

    fn read(&self, bytes: &mut [u8]) -> Result<()> {
        let done = match &self.0 {
            Socket::Tcp(stream) => (&*stream).read_exact(bytes),
            Socket::Unix(stream) => (&*stream).read_exact(bytes),
        };
        Ok(done?)
    }

    fn patience(&self, time: Option<Duration>) -> Result<()> {
        let done = match &self.0 {
            Socket::Tcp(stream) => stream.set_read_timeout(time),
            Socket::Unix(stream) => stream.set_read_timeout(time),
        };
        Ok(done?)
    }

    /// Whether whoever connected knows the secret.
    fn knows(&self, secret: Secret) -> Result<bool> {
        self.patience(Some(PATIENCE))?;
        let mut heard = [0; 24];
        self.read(&mut heard)?;
        self.patience(None)?;
        // All of it is compared, so that the time says nothing.
        let wanted = HELLO.iter().chain(&secret.0);
        let differs = heard.iter().zip(wanted).fold(0, |differs, (one, other)| differs | (one ^ other));
        Ok(differs == 0)
    }
}

impl AsFd for NetworkLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl From<TcpStream> for NetworkLink {
    fn from(stream: TcpStream) -> Self {
        // Without it small messages only wait a little for company.
        let _ = stream.set_nodelay(true);
        Self(Socket::Tcp(stream))
    }
}

impl From<UnixStream> for NetworkLink {
    fn from(stream: UnixStream) -> Self {
        Self(Socket::Unix(stream))
    }
}

/// Waits for the other end of a queue.
pub struct Listener {
    socket: Listening,
    secret: Secret,
}

enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at `tcp:HOST:PORT`, where port 0 takes a free one, or at `unix:PATH`.
    ///
    /// # Errors
    /// When the address is none, or in use.
    pub fn bind(address: &str) -> Result<Self> {
        let socket = match Address::parse(address)? {
            Address::Tcp(host) => TcpListener::bind(host).map(Listening::Tcp),
            Address::Unix(path) => {
                UnixListener::bind(path).map(|socket| Listening::Unix(socket, path.into()))
            }
        };
        let socket = socket.map_err(|error| Error::from(error).context("address", address))?;
        Ok(Self { socket, secret: Secret::new()? })
    }

    /// The address for [`connect`].
    ///
    /// # Errors
    /// If the system does not tell it.
    pub fn address(&self) -> Result<String> {
        match &self.socket {
            Listening::Tcp(socket) => Ok(format!("tcp:{}", socket.local_addr()?)),
            Listening::Unix(_, path) => Ok(format!("unix:{}", path.display())),
        }
    }

    /// The secret for [`connect`].
    #[must_use]
    pub fn secret(&self) -> Secret {
        self.secret
    }

    /// Waits for the first program that knows the secret. All others are refused, and nobody can connect
    /// afterwards.
    ///
    /// # Errors
    /// If the system refuses to listen.
    pub fn accept(self) -> Result<NetworkLink> {
        loop {
            let link: NetworkLink = match &self.socket {
                Listening::Tcp(socket) => socket.accept()?.0.into(),
                Listening::Unix(socket, _) => socket.accept()?.0.into(),
            };
            // A stranger's silence or noise is not our error.
            if link.knows(self.secret).unwrap_or(false) && link.write(&HELLO).is_ok() {
                return Ok(link);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listening::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path); // Somebody may have been quicker.
        }
    }
}

/// Connects to a [`Listener`].
///
/// # Errors
/// If no program listens at `address`, or the secret differs.
pub fn connect(address: &str, secret: Secret) -> Result<NetworkLink> {
    let link = match Address::parse(address)? {
        Address::Tcp(host) => TcpStream::connect(host).map(NetworkLink::from),
        Address::Unix(path) => UnixStream::connect(path).map(NetworkLink::from),
    };
    let link = link.map_err(|error| Error::from(error).context("address", address))?;
    link.write(&[HELLO.as_slice(), &secret.0].concat())?;
    let mut answer = [0; 8];
    link.patience(Some(PATIENCE))?;
    let heard = link.read(&mut answer).is_ok() && answer == HELLO;
    link.patience(None)?;
    if heard {
        Ok(link)
    } else {
        let message =
            "the program that listens there refused this one: the secret differs, or the place is taken";
        Err(Error::invalid(message).context("address", address))
    }
}

enum Address<'a> {
    Tcp(&'a str),
    Unix(&'a str),
}

impl<'a> Address<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        match text.split_once(':') {
            Some(("tcp", host)) if host.contains(':') && host.to_socket_addrs().is_ok() => {
                Ok(Self::Tcp(host))
            }
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path)),
            _ => Err(Error::invalid(format!("address is `{text}`, expected tcp:HOST:PORT or unix:PATH"))),
        }
    }
}
