//! What damage to lines, tables and arrays of text may cost.

use forebay_testkit::Costs;

use crate::{END, apart};

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
