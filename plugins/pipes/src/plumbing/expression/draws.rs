//! What an evaluation has of the call that it is part of: the random numbers of `random()`, and whether the run was stopped.

use std::cell::{Cell, RefCell};

use forebay_core::{Context, Error, ErrorKind, Result, Rng};

/// How many items macros go over before it is looked whether the run was stopped.
const STRETCH: u32 = 4096;

/// The random numbers of one sample at one node, in the order in which expressions ask for them; nothing is worked out before the first.
pub(crate) struct Draws<'c> {
    /// None where nothing may be drawn.
    cx: Option<&'c Context<'c>>,
    uid: u64,
    rng: RefCell<Option<Rng>>,
    /// How many were given.
    given: Cell<u32>,
    /// How many items macros went over.
    items: Cell<u32>,
}

impl<'c> Draws<'c> {
    /// Of the sample with this uid.
    #[inline]
    pub(crate) fn new(cx: &'c Context<'c>, uid: u64) -> Self {
        Self { cx: Some(cx), uid, rng: RefCell::new(None), given: Cell::new(0), items: Cell::new(0) }
    }

    /// Where nothing may be drawn: what a sample is compared or ordered by is its own.
    #[inline]
    pub(crate) fn none() -> Self {
        Self { cx: None, uid: 0, rng: RefCell::new(None), given: Cell::new(0), items: Cell::new(0) }
    }

    /// The next one, from 0 to before 1.
    ///
    /// # Errors
    /// `Invalid` where nothing may be drawn.
    pub(super) fn next(&self) -> Result<f64> {
        let refused = || Error::invalid("`random()` is for `map`, `filter` and `flat_map`");
        let cx = self.cx.ok_or_else(refused)?;
        self.given.set(self.given.get() + 1);
        Ok(self.rng.borrow_mut().get_or_insert_with(|| cx.rng(self.uid)).f64())
    }

    /// Counts an item that a macro goes over.
    ///
    /// # Errors
    /// `Cancelled`, soon after the run was stopped.
    #[inline]
    pub(super) fn item(&self) -> Result<()> {
        let items = self.items.get().wrapping_add(1);
        self.items.set(items);
        if items.is_multiple_of(STRETCH) { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look(&self) -> Result<()> {
        match self.cx {
            Some(cx) if cx.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the run was stopped")),
            _ => Ok(()),
        }
    }

    /// How many were given so far.
    #[inline]
    pub(super) fn given(&self) -> u32 {
        self.given.get()
    }

    /// Gives those again that came after so many.
    #[cold]
    pub(super) fn go_back(&self, given: u32) {
        self.rng.replace(None);
        self.given.set(0);
        while self.given.get() < given && self.next().is_ok() {}
    }
}
