//! `pcap`: the packets of one capture.

use forebay_core::{Blob, Context, DataPipe, Error, Key, PipeInfo, Result, Sample, Source, State, options};

use crate::Packets;

options! {
    /// Options of `pcap`.
    pub struct PcapOptions {
        /// The capture: a path, or a URL that some plugin serves.
        path: String = required;
    }
}

/// Gives the packets of a capture, one a sample.
///
/// State: where the next packet begins, so a resume reads nothing before it.
pub struct Pcap {
    path: String,
    key: Key,
    /// None before the first epoch.
    packets: Option<Packets>,
}

impl DataPipe for Pcap {
    const INFO: PipeInfo =
        PipeInfo { name: "pcap", summary: "The packets of a capture (pcap)", ..PipeInfo::DEFAULT };
    type Options = PcapOptions;

    /// Opens nothing: graphs are made and explained where their data is not.
    fn new(options: PcapOptions) -> Result<Self> {
        let key = Key::whole(options.path.as_str());
        Ok(Self { path: options.path, key, packets: None })
    }
}

impl Source for Pcap {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        // A local file is mapped, whatever its size; one that is far away comes whole.
        let open = || Packets::open(Blob::open(&self.path, cx)?.whole(cx.limits().bytes)?);
        self.packets = Some(open().map_err(|error| error.context("file", &self.path))?);
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        // The packet's number is its uid: the same in every run.
        self.packets.as_mut().ok_or_else(too_early)?.sample(&self.key, |index| index).transpose()
    }

    fn state(&self) -> Result<State> {
        self.packets.as_ref().ok_or_else(too_early)?.state()
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.packets.as_mut().ok_or_else(too_early)?.restore(state)
    }
}

/// The host resets a source before any other call.
fn too_early() -> Error {
    Error::bug("called before its first epoch")
}
