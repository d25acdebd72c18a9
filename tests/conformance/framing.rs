//! Where the samples of a format's files lie, and what damage there may cost: found by other means than its plugin's.

use std::ops::Range;

use forebay_testkit::Costs;

/// The end of a file.
const END: usize = usize::MAX;

/// Nothing is promised: one sample a file, or one packed stream.
pub(crate) const fn nothing(_: &[u8]) -> Costs {
    Costs::new()
}

/// What lies in the file one after the other, each to be found without the others: these bytes, and the samples that they are of.
fn apart(parts: &[(Range<usize>, Range<usize>)]) -> Costs {
    parts.iter().fold(Costs::new(), |costs, (bytes, samples)| costs.part(bytes.clone(), samples.clone()))
}

/// Lines, of which those that `gives` names are samples. Where a line has no end, the next one is joined to it.
fn by_line(bytes: &[u8], gives: impl Fn(&[u8]) -> bool) -> Costs {
    let (mut costs, mut at, mut sample) = (Costs::new(), 0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let next = sample + usize::from(gives(text));
        let end = at + line.len();
        costs = costs.part(at..at + text.len(), sample..next);
        costs = costs.part(at + text.len()..if end == bytes.len() { END } else { end }, sample..next + 1);
        (at, sample) = (end, next);
    }
    costs
}

pub(crate) fn text_lines(bytes: &[u8]) -> Costs {
    by_line(bytes, |_| true)
}

pub(crate) fn json_lines(bytes: &[u8]) -> Costs {
    by_line(bytes, |line| !line.trim_ascii().is_empty())
}

/// As lines, but that all want the header, and that a quote may swallow what is behind it: where there is one, or what one
/// comes of.
pub(crate) fn csv(bytes: &[u8]) -> Costs {
    let (mut costs, mut at) = (Costs::new(), 0);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if let Some(record) = number.checked_sub(1) {
            let quotes = line.iter().any(|byte| matches!(byte, b'"' | b'#'));
            let last = at + line.len() - 1;
            let behind = |cost| if quotes { END } else { record + cost };
            costs = costs.part(at..last, record..behind(1));
            costs = costs.part(last..if last + 1 == bytes.len() { END } else { last + 1 }, record..behind(2));
        }
        at += line.len();
    }
    costs
}

/// The objects of an array, and a number behind them: what comes after one that is broken cannot be told apart.
pub(crate) fn json_array(bytes: &[u8]) -> Costs {
    let object = |at: &usize| bytes[*at..].starts_with(b"{\"a\"");
    let mut starts: Vec<_> = (0..bytes.len()).filter(object).collect();
    starts.extend(bytes.iter().rposition(u8::is_ascii_digit));
    behind(&starts)
}

/// Damage costs the sample that begins here, and all behind it.
fn behind(starts: &[usize]) -> Costs {
    let ends = starts.iter().skip(1).copied().chain([END]);
    let parts = starts.iter().zip(ends).enumerate();
    apart(&parts.map(|(sample, (start, end))| (*start..end, sample..END)).collect::<Vec<_>>())
}

/// A length, its checksum, so many bytes and theirs. Behind a length that is wrong nobody finds the next.
pub(crate) fn tfrecord(bytes: &[u8]) -> Costs {
    let (mut costs, mut at, mut sample) = (Costs::new(), 0, 0);
    while at < bytes.len() {
        let data = at + 12;
        let end = data + number(&bytes[at..at + 8]) + 4;
        costs = costs.part(at..data, sample..END);
        costs = costs.part(data..if end == bytes.len() { END } else { end }, sample..sample + 1);
        (at, sample) = (end, sample + 1);
    }
    costs
}

/// Members, of which those that share their name up to the dot are a sample.
pub(crate) fn tar(bytes: &[u8]) -> Costs {
    members(bytes, true)
}

/// Members, each a sample.
pub(crate) fn tar_files(bytes: &[u8]) -> Costs {
    members(bytes, false)
}

/// Blocks of 512 bytes: headers, and the contents of files, which nothing checks. Behind a header that is wrong nobody finds the next, and
/// the sample before it, if it is a group, may go on there.
fn members(bytes: &[u8], grouped: bool) -> Costs {
    let text = |field: &[u8]| String::from_utf8(field.to_vec()).unwrap();
    let (mut costs, mut at, mut samples) = (Costs::new(), 0, 0_usize);
    // Of the sample being collected; none where a header before its own has its name.
    let mut key = None;
    while let Some(header) = bytes.get(at..at + 512).filter(|header| header[0] != 0) {
        let size = usize::from_str_radix(text(&header[124..136]).trim_end_matches(['\0', ' ']), 8).unwrap();
        let end = at + 512 + size.next_multiple_of(512);
        let is_file = matches!(header[156], b'0' | 0);
        let name = text(&header[..100]);
        let name = name.split(if grouped { '.' } else { '\0' }).next().unwrap_or_default().to_owned();
        let same = is_file && key.is_none_or(|key| key == name);
        samples += usize::from(!same || samples == 0);
        key = is_file.then_some(name);
        let sample = samples - 1;
        let broken = sample.saturating_sub(usize::from(grouped))..END;
        costs = costs.part(at..at + 512, broken.clone());
        costs = costs.part(at + 512..end, if is_file { sample..samples } else { broken });
        at = end;
    }
    costs.part(at..END, samples - usize::from(grouped)..samples)
}

/// Members, which the directory behind them tells of.
pub(crate) fn zip(bytes: &[u8]) -> Costs {
    let starts = |mark: &[u8]| -> Vec<usize> {
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(mark)).collect()
    };
    let (members, directory) = (starts(b"PK\x03\x04"), starts(b"PK\x01\x02"));
    let ends = members.iter().skip(1).chain(directory.first());
    let parts = members.iter().zip(ends).enumerate();
    apart(&parts.map(|(sample, (start, end))| (*start..*end, sample..sample + 1)).collect::<Vec<_>>())
}

/// A header with its length before it, which all want, and the bytes of two tensors.
pub(crate) fn safetensors(bytes: &[u8]) -> Costs {
    let data = 8 + number(&bytes[..8]);
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..data]).unwrap();
    let place = |tensor: &serde_json::Value| {
        let place = tensor["data_offsets"].as_array()?.iter().filter_map(serde_json::Value::as_u64);
        place.map(|place| data + place as usize).collect::<Vec<_>>().try_into().ok()
    };
    let mut places: Vec<[usize; 2]> = header.as_object().unwrap().values().filter_map(place).collect();
    places.sort_unstable();
    let parts = places.into_iter().enumerate();
    apart(&parts.map(|(sample, [start, end])| (start..end, sample..sample + 1)).collect::<Vec<_>>())
}

/// What h5py says: where the chunks are, of two rows each, or the rows themselves; by the length of the file.
pub(crate) fn hdf5(bytes: &[u8]) -> Costs {
    match bytes.len() {
        // chunks.h5
        4064 => apart(&[(4016..4032, 0..2), (4032..4048, 2..4), (4048..4064, 4..6)]),
        // newer.h5: behind the chunks of one dataset the rows of another, of a byte each.
        2114 => {
            let costs = apart(&[(2048..2068, 0..2), (2068..2088, 2..4), (2088..2108, 4..6)]);
            (0..6).fold(costs, |costs, row| costs.part(2108 + row..2109 + row, row..row + 1))
        }
        // words.h5: the rows say where their text is.
        6192 => apart(&[(2048..2064, 0..1), (2064..2080, 1..2), (2080..2096, 2..3)]),
        _ => Costs::new(),
    }
}

/// The rows of row groups and of record batches, each group by itself.
pub(crate) fn rows(bytes: &[u8]) -> Costs {
    columns(bytes, 1)
}

/// The same, where a sample is two rows.
pub(crate) fn batches(bytes: &[u8]) -> Costs {
    columns(bytes, 2)
}

/// What pyarrow says: where the groups are, and the bodies of the batches; by the length of the file.
fn columns(bytes: &[u8], rows: usize) -> Costs {
    let (places, each) = match bytes.len() {
        // groups.parquet
        761 => ([4..118, 118..232, 232..346], 4),
        // batches.arrow
        1482 => ([416..544, 776..880, 1112..1208], 2),
        // batches.arrows: behind the head of a batch that is wrong nobody finds the next.
        1208 => {
            let each = 2 / rows;
            return Costs::new()
                .part(176..408, 0..END)
                .part(408..536, 0..each)
                .part(536..768, each..END)
                .part(768..872, each..2 * each)
                .part(872..1104, 2 * each..END)
                .part(1104..1200, 2 * each..3 * each)
                .part(1200..END, 3 * each..END);
        }
        _ => return Costs::new(),
    };
    let each = each / rows;
    let parts = places.into_iter().enumerate();
    apart(&parts.map(|(at, place)| (place, at * each..(at + 1) * each)).collect::<Vec<_>>())
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}
