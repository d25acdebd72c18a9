//! `rogue_reach`: tries what a plugin has no business to do, and says how that went.

use std::{
    env, fs, io,
    net::{SocketAddr, TcpStream, UdpSocket},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixStream,
    },
    process::Command,
    thread,
};

use forebay_core::{Context, DataPipe, Error, Map, PipeInfo, Result, Sample, options};

options! {
    /// Options of `rogue_reach`.
    pub struct RogueReachOptions {
        /// What it tries.
        what: String = "read", one_of [
            "read", "list", "write", "remove", "chmod", "link", "tcp", "udp", "unix", "pair", "run", "memory", "thread", "environment"
        ];
        /// The file, folder, address or variable; behind a `@` no path that the graph names.
        at: String = "";
        /// A path that the graph names for nothing else.
        named: String = "";
        /// The bytes of memory.
        bytes: u64 = 0;
    }
}

/// Tries what a plugin has no business to do, and says how that went in the field `reached`.
#[derive(Debug)]
pub struct RogueReach(RogueReachOptions);

impl DataPipe for RogueReach {
    const INFO: PipeInfo =
        PipeInfo { name: "rogue_reach", summary: "Tries what it should not", ..PipeInfo::DEFAULT };
    type Options = RogueReachOptions;

    fn new(options: RogueReachOptions) -> Result<Self> {
        Ok(Self(options))
    }
}

impl RogueReach {
    fn tried(&self) -> io::Result<()> {
        let at = self.0.at.trim_start_matches('@');
        match self.0.what.as_str() {
            "read" => fs::read(at).map(drop),
            "list" => fs::read_dir(at).map(drop),
            "write" => fs::write(at, b"rogue"),
            "remove" => fs::remove_file(at),
            "chmod" => fs::set_permissions(at, fs::Permissions::from_mode(0o777)),
            "link" => symlink("/", at),
            "tcp" => TcpStream::connect(at.parse::<SocketAddr>().map_err(io::Error::other)?).map(drop),
            "udp" => UdpSocket::bind(at).map(drop),
            "unix" => UnixStream::connect(at).map(drop),
            "pair" => UnixStream::pair().map(drop),
            "run" => Command::new(at).status().map(drop),
            "memory" => {
                let bytes = usize::try_from(self.0.bytes).map_err(io::Error::other)?;
                Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| io::ErrorKind::OutOfMemory.into())
            }
            "thread" => thread::Builder::new().spawn(|| ()).map(drop),
            _ => env::var(at).map(drop).map_err(|_| io::ErrorKind::NotFound.into()),
        }
    }
}

impl Map for RogueReach {
    fn map(&self, sample: &mut Sample, _: &Context) -> Result<()> {
        let how = self.tried().map_or_else(|error| format!("{:?}", error.kind()), |()| "reached".to_owned());
        sample.set("reached", how.as_str());
        if how == "Uncategorized" { Err(Error::bug(format!("{:?}", self.tried()))) } else { Ok(()) }
    }
}
