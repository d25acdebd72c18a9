//! The format: a header of the file, then each packet behind a header of its own.
//!
//! <https://ietf-opsawg-wg.github.io/draft-ietf-opsawg-pcap/draft-ietf-opsawg-pcap.html>

use forebay_core::{Buffer, Error, Key, Result, Sample, State, StateExt as _};

/// The bytes before the first packet, and before each.
const FILE_HEAD: usize = 24;
const PACKET_HEAD: usize = 16;
/// More is captured of no packet, whatever the file's own limit: the length of one that claims it is damaged.
const MOST: u32 = 256 << 10;
/// The version of a saved position.
const STATE: u32 = 1;

/// One packet of a capture.
#[derive(Debug, Clone)]
pub struct Packet {
    /// Its number in the file, from 0.
    pub index: u64,
    /// Nanoseconds since 1970, in UTC.
    pub time: i64,
    /// How many bytes it had on the wire.
    pub length: u32,
    /// What of it was captured: a part of the file's memory.
    pub bytes: Buffer,
}

/// The packets of one capture, in the file's order.
pub struct Packets {
    file: Buffer,
    /// Where the next packet begins; the end of the file too, once its framing is lost.
    at: usize,
    index: u64,
    form: Form,
}

/// What the file's header says of all packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    big: bool,
    /// How many nanoseconds the unit of the times' fractions has.
    unit: u32,
    most: u32,
    link: u16,
}

impl Form {
    fn read(file: &[u8]) -> Result<Self> {
        let magic = file.get(..4).unwrap_or(file);
        let (big, unit) = match magic {
            b"\xd4\xc3\xb2\xa1" => (false, 1000),
            b"\xa1\xb2\xc3\xd4" => (true, 1000),
            b"\x4d\x3c\xb2\xa1" => (false, 1),
            b"\xa1\xb2\x3c\x4d" => (true, 1),
            b"\x0a\x0d\x0d\x0a" => {
                let message = "this is pcapng, and pcap is read here: `editcap -F pcap IN OUT` converts it";
                return Err(Error::unsupported(message));
            }
            b"\x34\xcd\xb2\xa1" | b"\xa1\xb2\xcd\x34" => {
                let message = "this is pcap as patched kernels wrote it around 2000: `editcap -F pcap IN OUT` converts it";
                return Err(Error::unsupported(message));
            }
            _ => {
                let message =
                    format!("found {magic:02x?} at its beginning, expected one of pcap's magic numbers");
                return Err(Error::corrupt(message).context("byte", 0));
            }
        };
        let Some(head) = file.get(..FILE_HEAD) else {
            let message = format!("ends within its header: {} of {FILE_HEAD} bytes", file.len());
            return Err(Error::corrupt(message).context("byte", file.len()));
        };
        // Behind version, time zone and accuracy, which nobody writes anything else into: the most bytes of a packet, and the link.
        let [most, link] = [16, 20].map(|at| word(head, at, big));
        // The upper half of the link says how long the checksums are.
        Ok(Self { big, unit, most: most.max(MOST), link: link as u16 })
    }
}

/// Four bytes as a number; of what is in the file, since its length was looked at.
fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).unwrap_or_default();
    if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
}

impl Packets {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for pcapng.
    pub fn open(file: Buffer) -> Result<Self> {
        let form = Form::read(&file)?;
        Ok(Self { file, at: FILE_HEAD, index: 0, form })
    }

    /// What the bytes of all packets begin with, by the number that tcpdump.org gives it.
    #[must_use]
    pub fn link(&self) -> u16 {
        self.form.link
    }

    /// The packet at `self.at`, and where the next one begins.
    fn packet(&self) -> Result<(Packet, usize)> {
        let rest = self.file.len() - self.at;
        let Some(head) = self.file.as_slice().get(self.at..self.at + PACKET_HEAD) else {
            return Err(Error::corrupt(format!(
                "ends within a packet's header: {rest} of {PACKET_HEAD} bytes"
            )));
        };
        let [seconds, fraction, captured, length] = [0, 4, 8, 12].map(|at| word(head, at, self.form.big));
        let most = self.form.most;
        if captured > most {
            return Err(Error::corrupt(format!("a packet of {captured} bytes, expected {most} at most")));
        }
        let begin = self.at + PACKET_HEAD;
        let end = begin + captured as usize;
        let Some(bytes) = self.file.get(begin..end) else {
            let there = rest - PACKET_HEAD;
            return Err(Error::corrupt(format!("ends within a packet: {there} of {captured} bytes")));
        };
        // 2^32 seconds are 4.3e18 ns, which is half of what there is room for.
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * i64::from(self.form.unit);
        Ok((Packet { index: self.index, time, length, bytes }, end))
    }

    /// The next packet as a sample, with the uid that `uid` makes of its number.
    pub(crate) fn sample(&mut self, origin: &Key, uid: impl Fn(u64) -> u64) -> Option<Result<Sample>> {
        let packet = match self.next()? {
            Ok(packet) => packet,
            Err(error) => return Some(Err(error.context("file", &origin.origin))),
        };
        let key = Key { index: packet.index, ..origin.clone() };
        let mut sample = Sample::new(uid(packet.index), key);
        sample.set("packet", packet.bytes);
        sample.set("time", packet.time);
        sample.set("length", i64::from(packet.length));
        sample.set("link", i64::from(self.form.link));
        Some(Ok(sample))
    }

    pub(crate) fn state(&self) -> Result<State> {
        State::json(STATE, &(self.at, self.index))
    }

    pub(crate) fn restore(&mut self, state: &State) -> Result<()> {
        let (at, index) = state.parse(STATE)?;
        if !(FILE_HEAD..=self.file.len()).contains(&at) {
            let message = format!("the saved position is byte {at}, and the file has {}", self.file.len());
            return Err(Error::invalid(message));
        }
        (self.at, self.index) = (at, index);
        Ok(())
    }
}

impl Iterator for Packets {
    type Item = Result<Packet>;

    fn next(&mut self) -> Option<Result<Packet>> {
        if self.at == self.file.len() {
            return None;
        }
        let (index, at) = (self.index, self.at);
        match self.packet() {
            Ok((packet, end)) => {
                (self.at, self.index) = (end, index + 1);
                Some(Ok(packet))
            }
            Err(error) => {
                // Nothing tells where another packet begins.
                self.at = self.file.len();
                Some(Err(error.context("packet", index).context("byte", at)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;
    use forebay_testkit::Damage;

    use super::*;

    fn file(name: &str) -> Vec<u8> {
        std::fs::read(format!("tests/data/{name}.pcap")).unwrap()
    }

    fn read(file: Vec<u8>) -> Vec<Result<Packet>> {
        match Packets::open(file.into()) {
            Ok(packets) => packets.collect(),
            Err(error) => vec![Err(error)],
        }
    }

    #[test]
    fn all_four_forms_say_the_same() {
        let all = ["ping", "ping-big", "ping-nanos", "ping-big-nanos"].map(|name| read(file(name)));
        for (packets, nanos) in all.iter().zip([0, 0, 789, 789]) {
            let told: Vec<_> = packets
                .iter()
                .map(|packet| packet.as_ref().map(|packet| (packet.time, packet.length, packet.bytes.len())))
                .collect();
            let first = 1_700_000_000_123_456_000 + nanos;
            assert_eq!(
                told,
                [
                    Ok((first, 98, 98)),
                    Ok((first + 1_000_000, 98, 98)),
                    // Cut off by the capture.
                    Ok((first + 2_000_000, 1514, 60)),
                ]
            );
            assert_eq!(packets[0].as_ref().unwrap().bytes[12..14], [8, 0], "IPv4 in Ethernet");
        }
        assert_eq!(Packets::open(file("ping").into()).unwrap().link(), 1);
    }

    #[test]
    fn packets_are_the_files_own_memory() {
        let file = Buffer::from(file("ping"));
        let packet = Packets::open(file.clone()).unwrap().next().unwrap().unwrap();
        assert_eq!(packet.bytes.as_ptr(), file[40..].as_ptr());
    }

    #[test]
    fn what_is_damaged_gives_the_packets_before_it_and_one_error() {
        let (mut refused, mut cut) = (0, 0);
        for name in ["ping", "ping-big-nanos"] {
            let whole = file(name);
            let len = whole.len();
            let damage = Damage::new(whole, 4096);
            for form in 0..damage.forms() {
                let bytes = damage.form(form);
                let shorter = bytes.len() < len;
                let found = read(bytes);
                let errors = found.iter().filter(|packet| packet.is_err()).count();
                assert!(errors <= 1 && found.len() <= 4, "{found:?}");
                if let Some(Err(error)) = found.last() {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{error}");
                    refused += 1;
                    cut += usize::from(shorter);
                }
            }
            // Every prefix, but those that end where a packet does.
            assert_eq!(cut, len - 3, "{name}");
            cut = 0;
        }
        assert!(refused > 700, "{refused}");
    }

    #[test]
    fn what_is_no_pcap_says_so() {
        for (bytes, says) in [
            (&b"\x0a\x0d\x0d\x0a and more"[..], "editcap"),
            (b"\x34\xcd\xb2\xa1 and more", "editcap"),
            (b"GIF89a", "magic numbers"),
            (b"", "magic numbers"),
        ] {
            let error = read(bytes.to_vec()).remove(0).unwrap_err();
            assert!(error.message().contains(says), "{error}");
        }
        let mut long = file("ping");
        long[32..36].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        let error = read(long).remove(0).unwrap_err();
        assert!(error.message().contains("a packet of 2147483647 bytes, expected 262144"), "{error}");
        assert_eq!((error.get("packet"), error.get("byte")), (Some("0"), Some("24")));
    }
}
