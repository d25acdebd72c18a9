//! The order in which an unordered segment passes its samples on, as data.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// Consecutive samples of an input: the place of the first, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span(pub u64, pub u64);

/// The data that an unordered map needs to go on after a snapshot: it repeats the order of what it gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MapOrder {
    /// Samples that it takes again, but gave before this place. It drops them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Span>,
    /// What it gave after this place, by pass, in order of time. The first entry is the rest of the pass of this
    /// place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<(u64, Vec<Span>)>,
}

impl Span {
    /// Whether it holds something, and ends.
    pub fn is_sound(self) -> bool {
        self.1 > 0 && self.0.checked_add(self.1).is_some()
    }

    /// The place behind its last.
    pub fn end(self) -> u64 {
        self.0.saturating_add(self.1)
    }
}

/// How many samples these are.
pub fn count(spans: &[Span]) -> u64 {
    spans.iter().fold(0, |count, span| count.saturating_add(span.1))
}

/// Adds a span to a list, as one with the last if they are side by side.
pub fn append(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.end() == span.0 => last.1 += span.1,
        _ => spans.push(span),
    }
}

/// The spans after so many samples.
pub fn after(spans: &[Span], mut count: u64) -> Vec<Span> {
    let mut rest = Vec::new();
    for &Span(first, len) in spans {
        let left_out = count.min(len);
        count -= left_out;
        if left_out < len {
            rest.push(Span(first + left_out, len - left_out));
        }
    }
    rest
}

/// How many of their first places are the same.
pub fn agree(one: &[Span], other: &[Span]) -> u64 {
    let (mut one, mut other) = (one.iter().copied(), other.iter().copied());
    let (mut left, mut right) = (one.next(), other.next());
    let mut same = 0;
    while let (Some(Span(at, len)), Some(Span(place, more))) = (left, right) {
        if at != place {
            break;
        }
        let both = len.min(more);
        same += both;
        left = if len > both { Some(Span(at + both, len - both)) } else { one.next() };
        right = if more > both { Some(Span(at + both, more - both)) } else { other.next() };
    }
    same
}

impl MapOrder {
    /// Whether every span of it can be followed.
    pub(crate) fn is_sound(&self) -> bool {
        self.ahead.iter().chain(self.passes.iter().flat_map(|(_, spans)| spans)).all(|span| span.is_sound())
    }
}

/// A set of places of an input: all below one, and some beyond.
#[derive(Debug, Clone, Default)]
pub struct PlaceSet {
    low: u64,
    /// The end of each span, by its first; none touches another.
    ahead: BTreeMap<u64, u64>,
}

impl PlaceSet {
    /// All places before `low`, and those `ahead` of it.
    pub fn new(low: u64, ahead: &[Span]) -> Self {
        let mut places = Self { low, ahead: BTreeMap::new() };
        ahead.iter().for_each(|&span| places.add(span));
        places
    }

    /// The first place that is not among them.
    pub fn low(&self) -> u64 {
        self.low
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.low + self.ahead.iter().map(|(first, end)| end - first).sum::<u64>()
    }

    /// Those beyond the first that is missing.
    pub(super) fn ahead(&self) -> Vec<Span> {
        self.ahead.iter().map(|(&first, &end)| Span(first, end - first)).collect()
    }

    /// Adds those of a span.
    pub fn add(&mut self, span: Span) {
        let (mut first, mut end) = (span.0, span.end());
        if first == end {
            return;
        }
        if let Some((&before, &met)) = self.ahead.range(..=first).next_back()
            && met >= first
        {
            (first, end) = (before, end.max(met));
        }
        while let Some((&next, &met)) = self.ahead.range(first..=end).next() {
            self.ahead.remove(&next);
            end = end.max(met);
        }
        if first <= self.low {
            self.low = self.low.max(end);
        } else {
            self.ahead.insert(first, end);
        }
    }

    /// Whether these are as many as the first of an order, after which places follow one another, and the spans of `again` are
    /// those that come next.
    pub fn lead<'a>(self, order: &[Span], again: impl IntoIterator<Item = &'a Span>) -> bool {
        let (mut first, mut left) = (Self::default(), self.count());
        for &Span(at, len) in order {
            first.add(Span(at, len.min(left)));
            left -= len.min(left);
        }
        first.go_on(left);
        if (first.low, &first.ahead) != (self.low, &self.ahead) {
            return false;
        }
        // What comes next in the order, and behind it the places that it has not, one after the other.
        let mut rest = VecDeque::from(after(order, self.count()));
        order.iter().for_each(|&span| first.add(span));
        for &Span(mut at, mut len) in again {
            while len > 0 {
                let next = match rest.pop_front() {
                    Some(span) if span.1 > len => {
                        rest.push_front(Span(span.0 + len, span.1 - len));
                        Span(span.0, len)
                    }
                    Some(span) => span,
                    None => Span(first.low, first.alike(first.low).0.min(len)),
                };
                if next.0 != at {
                    return false;
                }
                first.add(next);
                (at, len) = (next.end(), len - next.1);
            }
        }
        true
    }

    /// Adds so many of the places that are missing, the first ones first.
    fn go_on(&mut self, mut left: u64) {
        while left > 0 {
            let (len, _) = self.alike(self.low);
            self.add(Span(self.low, len.min(left)));
            left -= len.min(left);
        }
    }

    /// How many places from this one on are alike, and whether they are among these.
    pub fn alike(&self, place: u64) -> (u64, bool) {
        if place < self.low {
            return (self.low - place, true);
        }
        match self.ahead.range(..=place).next_back() {
            Some((_, &end)) if end > place => (end - place, true),
            _ => {
                let next = self.ahead.range(place..).next();
                (next.map_or(u64::MAX, |(first, _)| first - place), false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_any_order_are_the_same_places() {
        let mut all: Vec<u64> = (0..200).collect();
        let mut rng = forebay_core::Rng::new(3, 4);
        for at in (1..all.len()).rev() {
            all.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let mut places = PlaceSet::default();
        let mut seen = std::collections::BTreeSet::new();
        for place in all {
            places.add(Span(place, 1));
            seen.insert(place);
            let low = (0..).find(|place| !seen.contains(place)).unwrap_or(0);
            assert_eq!((places.low(), places.count()), (low, seen.len() as u64));
            for at in 0..201 {
                let (len, within) = places.alike(at);
                let end = len.saturating_add(at).min(201);
                assert!((at..end).all(|place| seen.contains(&place) == within), "{places:?} at {at}");
            }
            let beyond: Vec<_> = places.ahead().iter().flat_map(|span| span.0..span.end()).collect();
            assert!(seen.range(low..).eq(&beyond));
        }
    }

    #[test]
    fn the_rest_of_an_order_begins_within_a_span() {
        let mut spans = Vec::new();
        for span in [Span(5, 2), Span(7, 1), Span(0, 5), Span(9, 1)] {
            append(&mut spans, span);
        }
        assert_eq!(spans, [Span(5, 3), Span(0, 5), Span(9, 1)]);
        assert_eq!(count(&spans), 9);
        assert_eq!(after(&spans, 4), [Span(1, 4), Span(9, 1)]);
        assert_eq!(after(&spans, 8), [Span(9, 1)]);
        assert_eq!(after(&spans, 9), []);
    }
}
