//! Where blocks of so many lines end: an index of a file of lines.

use forebay_core::{Blob, Error, Keep, Result, Stamp, local_path};

/// So many bytes are looked at together.
const WINDOW: u64 = 4 << 20;

/// Where each block of a file ends; all but the last have the same number of lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ends(Vec<u64>);

impl Ends {
    /// The blocks of `rows` lines of `blob`; where a path and a place to keep them is given, found there if the file is as it was.
    ///
    /// # Errors
    /// `Limit` when they take more than `most` bytes; the blob's own.
    pub(crate) fn of(blob: &Blob, rows: u64, kept: Option<(&str, &Keep)>, most: u64) -> Result<Self> {
        let Some((path, keep)) = kept else { return Self::find(blob, rows, most) };
        let (path, kind) = (local_path(path), format!("lines {rows}"));
        let stamp = Stamp::of(path).filter(|stamp| stamp.size == blob.len());
        let found =
            stamp.and_then(|stamp| keep.load(path, &kind, stamp, (most / 8).min(stamp.size / rows + 1)));
        if let Some(ends) = found.filter(|ends| are_ends(ends, blob.len())) {
            return Ok(Self(ends));
        }
        let ends = Self::find(blob, rows, most)?;
        if let Some(stamp) = stamp {
            // A folder that cannot be written to costs time, not the run.
            let _ = keep.save(path, &kind, stamp, &ends.0);
        }
        Ok(ends)
    }

    fn find(blob: &Blob, rows: u64, most: u64) -> Result<Self> {
        let (len, mut ends, mut left) = (blob.len(), Vec::new(), rows);
        let mut start = 0;
        while start < len {
            let behind = start.saturating_add(WINDOW).min(len);
            for at in memchr::memchr_iter(b'\n', &blob.read(start..behind)?) {
                left -= 1;
                if left == 0 {
                    ends.push(start + at as u64 + 1);
                    left = rows;
                }
            }
            if ends.len() as u64 > most / 8 {
                let error = format!("more than {} blocks of {rows} lines; take more lines in each", most / 8);
                return Err(Error::limit(error).context("byte", start));
            }
            start = behind;
        }
        if ends.last().copied().unwrap_or(0) < len {
            ends.push(len);
        }
        Ok(Self(ends))
    }

    /// The end of the block that starts at byte `from`.
    ///
    /// # Errors
    /// `Invalid` when none starts there, as in a saved place of another file.
    pub(crate) fn after(&self, from: u64) -> Result<u64> {
        let next = self.0.partition_point(|end| *end <= from);
        let start = next.checked_sub(1).and_then(|at| self.0.get(at)).copied().unwrap_or(0);
        match self.0.get(next) {
            Some(end) if start == from => Ok(*end),
            _ => Err(Error::invalid(format!("no block starts at byte {from}"))),
        }
    }
}

/// Whether these may be where the blocks of a file of `len` bytes end.
fn are_ends(ends: &[u64], len: u64) -> bool {
    let grow = ends.windows(2).all(|pair| pair[0] < pair[1]);
    grow && ends.first() != Some(&0) && ends.last().copied().unwrap_or(0) == len
}

#[cfg(test)]
mod tests {
    use forebay_core::{Buffer, ErrorKind};

    use super::*;

    fn find(text: &str, rows: u64) -> Vec<u64> {
        Ends::find(&Buffer::from(text.as_bytes().to_vec()).into(), rows, 800).unwrap().0
    }

    #[test]
    fn blocks_have_so_many_lines() {
        assert_eq!(find("a\nbc\n\nd\n", 1), [2, 5, 6, 8]);
        assert_eq!(find("a\nbc\n\nd", 2), [5, 7]);
        assert_eq!(find("a\nbc\n\nd\n", 3), [6, 8]);
        assert!(find("", 1).is_empty());
        assert_eq!(find("\n", 9), [1]);
        let many = Buffer::from(vec![b'\n'; 101]);
        assert_eq!(Ends::find(&many.into(), 1, 800).unwrap_err().kind(), ErrorKind::Limit);
        let long = Buffer::from(["x\n".repeat(1 << 21), "y".to_owned()].concat().into_bytes());
        let ends = Ends::find(&long.into(), 3, 1 << 30).unwrap();
        assert_eq!((ends.0.len(), ends.0.last()), ((1 << 21) / 3 + 1, Some(&((1 << 22) + 1))));
        assert!(ends.0.windows(2).rev().skip(1).all(|pair| pair[1] - pair[0] == 6));
    }

    #[test]
    fn only_where_a_block_ends_another_starts() {
        let ends = Ends(vec![5, 7]);
        assert_eq!((ends.after(0).unwrap(), ends.after(5).unwrap()), (5, 7));
        for from in [1, 4, 6, 7, 8] {
            assert_eq!(ends.after(from).unwrap_err().kind(), ErrorKind::Invalid, "{from}");
        }
    }

    #[test]
    fn they_are_kept_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("birds.jsonl");
        let text = "{}\n[]\n1\n";
        std::fs::write(&path, text).unwrap();
        let blob = Blob::from(Buffer::from(text.as_bytes().to_vec()));
        let place = path.to_str().unwrap();
        let of = |rows| Ends::of(&blob, rows, Some((place, &Keep::Beside)), 1 << 20).unwrap().0;
        assert_eq!(of(2), [6, 8]);
        let stamp = Stamp::of(&path).unwrap();
        assert_eq!(Keep::Beside.load(&path, "lines 2", stamp, 3), Some(vec![6, 8]));
        // What is kept is used, as far as it can be true.
        Keep::Beside.save(&path, "lines 2", stamp, &[3, 8]).unwrap();
        assert_eq!(of(2), [3, 8]);
        for wrong in [&[][..], &[0, 8], &[6], &[6, 6, 8], &[6, 9]] {
            Keep::Beside.save(&path, "lines 2", stamp, wrong).unwrap();
            assert_eq!(of(2), [6, 8], "{wrong:?}");
        }
        assert_eq!(of(1), [3, 6, 8]);
    }
}
