//! `packets`: the packets of each file that comes.

use forebay_core::{
    Blob, Context, DataPipe, FlatMap, Items, Key, Magic, NoOptions, Opens, Others, PipeInfo, Result, Sample,
    State, random::mix,
};

use crate::Packets;

/// Turns a sample that is about a capture into a sample for each of its packets, which has the file's other fields too.
///
/// Takes `bytes`, or else `path`. State: where the next packet begins, so a resume reads nothing before it.
pub struct PacketsOf;

impl DataPipe for PacketsOf {
    const INFO: PipeInfo = PipeInfo {
        name: "packets",
        summary: "The packets of captures (pcap)",
        opens: Some(Opens {
            extensions: &["pcap", "cap", "pcapng"],
            magic: &[
                Magic { offset: 0, bytes: b"\xd4\xc3\xb2\xa1" },
                Magic { offset: 0, bytes: b"\xa1\xb2\xc3\xd4" },
                Magic { offset: 0, bytes: b"\x4d\x3c\xb2\xa1" },
                Magic { offset: 0, bytes: b"\xa1\xb2\x3c\x4d" },
                // Not read, but this is who can say so.
                Magic { offset: 0, bytes: b"\x0a\x0d\x0d\x0a" },
            ],
            then: "",
        }),
        ..PipeInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }
}

impl FlatMap for PacketsOf {
    type Items = PacketItems;

    fn open(&self, sample: Sample, cx: &Context) -> Result<PacketItems> {
        let packets = Packets::open(Blob::of(&sample, cx)?.whole(cx.limits().bytes)?)?;
        let key = Key::whole(sample.key().origin.clone());
        Ok(PacketItems { packets, key, file: sample.uid(), others: Others::of(&sample, &[]) })
    }
}

/// The packets of one file.
pub struct PacketItems {
    packets: Packets,
    key: Key,
    /// The file's uid.
    file: u64,
    others: Others,
}

impl Items for PacketItems {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let next = self.packets.sample(&self.key, |index| mix(&[self.file, index]));
        let Some(mut sample) = next.transpose()? else { return Ok(None) };
        for (name, value) in self.others.fields() {
            if sample.get(name).is_none() {
                sample.set(name, value.clone());
            }
        }
        Ok(Some(sample))
    }

    fn state(&self) -> Result<State> {
        self.packets.state()
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.packets.restore(state)
    }
}
