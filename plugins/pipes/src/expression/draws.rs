//! The random numbers of `random()`.

use std::cell::{Cell, RefCell};

use forebay_core::{Context, Error, Result, Rng, random::Rngs};

/// The random numbers of one sample at one node, in the order in which expressions ask for them; nothing is worked out before the first.
pub(crate) struct Draws {
    /// None where nothing may be drawn.
    rngs: Option<Rngs>,
    uid: u64,
    rng: RefCell<Option<Rng>>,
    /// How many were given.
    given: Cell<u32>,
}

impl Draws {
    /// Of the sample with this uid.
    #[inline]
    pub(crate) fn new(cx: &Context, uid: u64) -> Self {
        Self { rngs: Some(cx.rngs()), uid, rng: RefCell::new(None), given: Cell::new(0) }
    }

    /// Where nothing may be drawn: what a sample is compared or ordered by is its own.
    #[inline]
    pub(crate) fn none() -> Self {
        Self { rngs: None, uid: 0, rng: RefCell::new(None), given: Cell::new(0) }
    }

    /// The next one, from 0 to before 1.
    ///
    /// # Errors
    /// `Invalid` where nothing may be drawn.
    pub(super) fn next(&self) -> Result<f64> {
        let refused = || Error::invalid("`random()` is for `map`, `filter` and `flat_map`");
        let rngs = self.rngs.ok_or_else(refused)?;
        self.given.set(self.given.get() + 1);
        Ok(self.rng.borrow_mut().get_or_insert_with(|| rngs.of(self.uid)).f64())
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
