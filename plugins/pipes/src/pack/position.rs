//! The form of a saved position: which samples lie in which row, not what is in them.

use super::row::{Member, Row};
use crate::plumbing::numbers;

/// What is saved.
///
/// As [`numbers`]: length, method, piece, count, the number of rows; for each row how many pieces it has, and for each of these how
/// many samples came after the piece before it (in the first of a row: after the first of the row before), doubled, and one more
/// if the number of the piece follows, which it does unless that is 0; then the cut.
#[derive(Debug, PartialEq)]
pub(super) struct Position {
    /// The options that it hangs on.
    pub(super) length: u64,
    pub(super) method: u64,
    /// How many pieces of the next sample were taken.
    pub(super) piece: u64,
    /// How many samples were taken from the oldest in a row on.
    pub(super) count: u64,
    /// The rows, the oldest first; their samples are counted from the oldest.
    pub(super) rows: Vec<Vec<Member>>,
    /// Where the sample was cut that a row begins within.
    pub(super) cut: Vec<usize>,
}

/// The bytes of a position.
pub(super) fn write<'a>(
    head: [u64; 4],
    rows: impl ExactSizeIterator<Item = &'a Row>,
    cut: &[usize],
) -> Vec<u8> {
    let mut words = head.to_vec();
    words.push(rows.len() as u64);
    let mut first = None;
    for row in rows {
        words.push(row.members.len() as u64);
        let mut before = first.unwrap_or(row.members.first().map_or(0, |member| member.ordinal));
        first = row.members.first().map(|member| member.ordinal);
        for Member { ordinal, piece } in &row.members {
            words.push((ordinal - before) << 1 | u64::from(*piece > 0));
            words.extend((*piece > 0).then_some(*piece));
            before = *ordinal;
        }
    }
    words.extend(cut.iter().map(|&at| at as u64));
    numbers::write(words.into_iter())
}

/// The position in these bytes, if they hold one.
pub(super) fn read(bytes: &[u8]) -> Option<Position> {
    let mut words = numbers::read(bytes)?.into_iter();
    let mut next = || words.next();
    let [length, method, piece, count] = [next()?, next()?, next()?, next()?];
    let (mut rows, mut first) = (Vec::new(), 0_u64);
    for _ in 0..next()? {
        let (mut members, mut before) = (Vec::new(), first);
        for _ in 0..next()? {
            let word = next()?;
            let ordinal = before.checked_add(word >> 1)?;
            members.push(Member { ordinal, piece: if word & 1 == 1 { next()? } else { 0 } });
            before = ordinal;
        }
        first = members.first()?.ordinal;
        rows.push(members);
    }
    let cut = words.map(|at| usize::try_from(at).ok()).collect::<Option<_>>()?;
    let position = Position { length, method, piece, count, rows, cut };
    position.holds().then_some(position)
}

impl Position {
    /// Every piece, the oldest last, and its row.
    pub(super) fn wanted(&self) -> Vec<(Member, usize)> {
        let rows = self.rows.iter().enumerate();
        let all = rows.flat_map(|(row, members)| members.iter().map(move |member| (*member, row)));
        let mut wanted: Vec<_> = all.collect();
        wanted.sort_unstable_by(|one, other| other.cmp(one));
        wanted
    }

    /// Whether there can be such rows.
    fn holds(&self) -> bool {
        let wanted = self.wanted();
        let once = wanted.windows(2).all(|pair| pair[0].0 != pair[1].0);
        let taken = |member: &Member| (member.ordinal, member.piece) < (self.count, self.piece);
        once && wanted.iter().all(|(member, _)| taken(member))
            && wanted.last().map_or(self.count == 0, |(member, _)| member.ordinal == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(ordinal: u64, piece: u64) -> Member {
        Member { ordinal, piece }
    }

    #[test]
    fn what_is_written_is_read() {
        let rows = [
            vec![member(900, 2), member(901, 0), member(905, 0)],
            vec![member(900, 3), member(1000, 0)],
            vec![member(1200, 0)],
        ];
        let held: Vec<_> = rows.iter().cloned().map(Row::awaiting).collect();
        let bytes = write([8, 1, 1, 300], held.iter(), &[5, 6]);
        assert_eq!(bytes.len(), 18 + 3, "one byte each; three take two");
        let from_the_oldest =
            |row: &Vec<Member>| row.iter().map(|m| member(m.ordinal - 900, m.piece)).collect();
        let rows = rows.iter().map(from_the_oldest).collect();
        assert_eq!(
            read(&bytes),
            Some(Position { length: 8, method: 1, piece: 1, count: 300, rows, cut: vec![5, 6] })
        );
    }

    #[test]
    fn rows_that_cannot_be_are_refused() {
        let read = |words: &[u64]| read(&numbers::write(words.iter().copied()));
        assert!(read(&[8, 1, 0, 0, 0]).is_some());
        assert!(read(&[8, 1, 0, 2, 1, 2, 0, 2]).is_some());
        for (words, why) in [
            (&[8, 1, 0][..], "cut off"),
            (&[8, 1, 0, 2, 1, 3, 0, 2], "a row cut off"),
            (&[8, 1, 0, 2, 1, 0], "a row without samples"),
            (&[8, 1, 0, 2, 0], "samples in no row"),
            (&[8, 1, 0, 2, 1, 2, 0, 4], "a sample that was not taken"),
            (&[8, 1, 0, 2, 1, 2, 0, 0], "one twice"),
            (&[8, 1, 0, 2, 1, 1, 2], "none that is the oldest"),
            (&[8, 1, 0, 2, u64::MAX], "too many rows"),
        ] {
            assert_eq!(read(words), None, "{why}");
        }
    }
}
