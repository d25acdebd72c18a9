//! Which open row a sequence goes to.
//!
//! Rows have numbers, counted up from the first that was opened. Each is known here by the room that it has left, all its
//! fields together: where one field is packed that is all there is to ask; of several, a row is then asked for each.

use std::collections::BTreeSet;

/// How the row for a sequence is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    FirstFit,
    BestFit,
    Concat,
}

/// The rows that take more.
#[derive(Debug)]
pub(super) enum Index {
    /// By age.
    First(Tree),
    /// By room and age.
    Best(BTreeSet<(usize, u64)>),
    /// There is one at most.
    Last(Option<u64>),
}

impl Index {
    /// For up to `most` rows in a sequence of numbers.
    pub(super) fn new(method: Method, most: usize) -> Self {
        match method {
            Method::FirstFit => Self::First(Tree::new(most)),
            Method::BestFit => Self::Best(BTreeSet::new()),
            Method::Concat => Self::Last(None),
        }
    }

    /// Notes that a row that had room for `was` has room for `now`; none for a row that is not here.
    pub(super) fn set(&mut self, row: u64, was: Option<usize>, now: Option<usize>) {
        match self {
            Self::First(tree) => tree.set(row, now.map_or(0, |now| now.saturating_add(1))),
            Self::Best(rows) => {
                was.map(|was| rows.remove(&(was, row)));
                now.map(|now| rows.insert((now, row)));
            }
            Self::Last(last) => *last = now.map(|_| row),
        }
    }

    /// The row for a sequence that needs so much; `first` is the oldest row there is. `fits` says whether a row with enough
    /// room in all has it in each field.
    pub(super) fn find(&self, need: usize, first: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
        match self {
            Self::First(tree) => tree.find(need, first, fits),
            Self::Best(rows) => rows.range((need, 0)..).map(|(_, row)| *row).find(|row| fits(*row)),
            Self::Last(last) => *last,
        }
    }
}

/// The room of the rows in a ring, and above each pair the greater of both: the oldest with enough is found in steps that are
/// as many as the ring's length has bits.
#[derive(Debug)]
pub(super) struct Tree {
    /// The root at 1, the children of `node` at twice that and behind it; room counts from 1, and 0 is for no row.
    most: Vec<usize>,
}

impl Tree {
    fn new(most: usize) -> Self {
        Self { most: vec![0; 2 * most.next_power_of_two()] }
    }

    fn leaves(&self) -> usize {
        self.most.len() / 2
    }

    fn leaf(&self, row: u64) -> usize {
        (row % self.leaves() as u64) as usize
    }

    fn set(&mut self, row: u64, room: usize) {
        let mut node = self.leaves() + self.leaf(row);
        self.most[node] = room;
        while node > 1 {
            node /= 2;
            self.most[node] = self.most[2 * node].max(self.most[2 * node + 1]);
        }
    }

    fn find(&self, need: usize, first: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
        let (start, leaves) = (self.leaf(first), self.leaves());
        let row = |leaf: usize| first + ((leaf + leaves - start) % leaves) as u64;
        for (from, to) in [(start, leaves), (0, start)] {
            let mut from = from;
            while let Some(leaf) = self.next(from, need).filter(|leaf| *leaf < to) {
                if fits(row(leaf)) {
                    return Some(row(leaf));
                }
                from = leaf + 1;
            }
        }
        None
    }

    /// The first leaf from `from` on with enough room.
    fn next(&self, from: usize, need: usize) -> Option<usize> {
        let leaves = self.leaves();
        if from >= leaves {
            return None;
        }
        let mut node = leaves + from;
        while self.most[node] <= need {
            // A right child has its parent's end: on behind that.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < leaves {
            node *= 2;
            node += usize::from(self.most[node] <= need);
        }
        Some(node - leaves)
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::random::Rng;

    use super::*;

    /// Rows are opened and closed at random, as `pack` does, and every search is compared with a walk over all of them.
    #[test]
    fn finds_what_a_walk_over_all_rows_finds() {
        for (method, most) in [(Method::FirstFit, 1), (Method::FirstFit, 13), (Method::BestFit, 13)] {
            let mut rng = Rng::new(3, most as u64);
            let mut index = Index::new(method, most);
            let (mut first, mut rows): (u64, Vec<Option<usize>>) = (0, Vec::new());
            for _ in 0..4000 {
                let need = rng.below(30) as usize;
                let odd = rng.bool(0.3);
                let fits = |row: u64| !odd || row % 2 == 1;
                let open = (first..).zip(&rows).filter_map(|(row, room)| Some(((*room)?, row)));
                let fitting = open.filter(|(room, row)| *room >= need && fits(*row));
                let expected = match method {
                    Method::BestFit => fitting.min().map(|(_, row)| row),
                    _ => fitting.map(|(_, row)| row).min(),
                };
                assert_eq!(index.find(need, first, fits), expected);
                if let Some(row) = expected {
                    let room = &mut rows[(row - first) as usize];
                    let was = *room;
                    *room = was.map(|was| was - need).filter(|now| *now > 0);
                    index.set(row, was, *room);
                } else {
                    if rows.len() == most {
                        index.set(first, rows.remove(0), None);
                        first += 1;
                    }
                    rows.push(Some(40));
                    index.set(first + rows.len() as u64 - 1, None, Some(40));
                }
            }
        }
    }
}
