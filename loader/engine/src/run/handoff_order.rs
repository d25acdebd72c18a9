//! Who goes next in an unordered segment: whoever comes, unless the order is known from a snapshot or a record.

use std::{collections::VecDeque, sync::Arc};

use forebay_core::Error;
use forebay_snapshot::{
    checkpoint_log::StartPoint,
    handoff_log::HandoffLog,
    order::{PlaceSet, Span, after, count},
};

use crate::record::Records;

/// Says whose turn it is, and notes who went.
pub(crate) struct HandoffOrder {
    /// The first node of the segment.
    node: usize,
    name: String,
    handoff_log: Arc<HandoffLog>,
    records: Records,
    epoch: u64,
    pass: u64,
    /// What went before this start: it is dropped when it is taken again.
    before: PlaceSet,
    /// What went so far.
    gone: PlaceSet,
    /// What goes next, as far as that is known.
    coming: VecDeque<Span>,
    /// How much of it `handoff_log` has already.
    noted: u64,
    /// Where spans of it begin and end, in order: no chunk reaches across.
    cuts: Vec<u64>,
}

/// Which chunk may go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Whichever is done.
    Any,
    /// The one that begins at this place.
    At(u64),
}

impl HandoffOrder {
    pub(crate) fn new((node, name): (usize, &str), handoff_log: &Arc<HandoffLog>, records: &Records) -> Self {
        Self {
            node,
            name: name.to_owned(),
            handoff_log: Arc::clone(handoff_log),
            records: records.clone(),
            epoch: 0,
            pass: 0,
            before: PlaceSet::default(),
            gone: PlaceSet::default(),
            coming: VecDeque::new(),
            noted: 0,
            cuts: Vec::new(),
        }
    }

    /// Starts an epoch; gives how many samples went before.
    pub(super) fn start(&mut self, epoch: u64, origin: &StartPoint) -> u64 {
        self.epoch = epoch;
        let place = &origin.checkpoint.place;
        let nothing = forebay_snapshot::order::MapOrder::default();
        self.handoff_log.start(
            (epoch, place.pass),
            place.taken[0],
            origin.order.as_ref().unwrap_or(&nothing),
        );
        self.start_pass(place.pass);
        self.before.count()
    }

    /// Starts a pass.
    pub(super) fn start_pass(&mut self, pass: u64) {
        let (before, mut coming) = self.handoff_log.begin(pass);
        self.pass = pass;
        self.noted = count(&coming);
        if let Some(replayed) = &self.records.followed {
            let order = replayed.order(&self.name, self.epoch, pass);
            coming.extend(after(order, before.count() + self.noted));
        }
        self.cuts = coming.iter().flat_map(|span| [span.0, span.end()]).collect();
        self.cuts.sort_unstable();
        self.coming = coming.into();
        self.gone = before.clone();
        self.before = before;
    }

    /// How many of up to `size` samples from this place on one chunk may hold, and whether they went before this start.
    pub(super) fn portion(&self, place: u64, size: usize) -> (usize, bool) {
        let (alike, went) = self.before.alike(place);
        let next = self.cuts.get(self.cuts.partition_point(|&cut| cut <= place));
        let most = next.map_or(alike, |cut| alike.min(cut - place));
        (size.min(usize::try_from(most).unwrap_or(usize::MAX)), went)
    }

    /// Whose turn it is. What a record does not say goes in order.
    pub(super) fn turn(&self) -> Turn {
        match self.coming.front() {
            Some(span) => Turn::At(span.0),
            None if self.records.followed.is_some() => Turn::At(self.gone.low()),
            None => Turn::Any,
        }
    }

    /// Notes that these samples go, whose turn it was; says whether old ones should be forgotten.
    pub(super) fn pass_on(&mut self, span: Span) -> bool {
        let Span(first, len) = span;
        if len == 0 {
            return false;
        }
        if let Some(recording) = &self.records.written {
            recording.add((self.node, &self.name), (self.epoch, self.pass), self.gone.count(), span);
        }
        self.gone.add(span);
        if let Some(front) = self.coming.front_mut() {
            (front.0, front.1) = (first + len, front.1.saturating_sub(len));
            if front.1 == 0 {
                self.coming.pop_front();
            }
        }
        if self.noted > 0 {
            self.noted = self.noted.saturating_sub(len);
            return false;
        }
        self.handoff_log.push(self.pass, span)
    }

    /// Why the input, which has ended, cannot be followed.
    pub(super) fn unfulfilled(&self) -> Option<Error> {
        let place = self.coming.front()?.0;
        let message = format!(
            "the order to follow has sample {place} of the input next, and the input ended without it; \
             it is not the data that the snapshot or the record was made with"
        );
        Some(Error::invalid(message).context("pipe", &self.name))
    }
}
