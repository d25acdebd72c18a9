//! How far one output of a node may be ahead of another, whose reader everything waits for.

use forebay_core::Error;

use super::link::Blame;

/// So many bytes may always wait.
const LEAST: usize = 1 << 30;
/// What may wait, in budgets.
const BUDGETS: usize = 16;

/// The most bytes that one output of a node may be ahead of another: beyond the budget, since nothing else can go on, but not without end.
#[derive(Debug, Clone, Copy)]
pub(super) struct MostAhead(usize);

impl MostAhead {
    pub(super) fn new(budget: usize) -> Self {
        Self(budget.saturating_mul(BUDGETS).max(LEAST))
    }

    /// # Errors
    /// `Limit`, when of what is `waiting` at the outputs of the node to `blame` one has more than that more than another.
    pub(super) fn check(self, waiting: &[usize], blame: impl FnOnce() -> Blame) -> Result<(), Error> {
        let places = || 0..waiting.len();
        let (Some(ahead), Some(behind)) =
            (places().max_by_key(|&at| waiting[at]), places().min_by_key(|&at| waiting[at]))
        else {
            return Ok(());
        };
        let (bytes, most) = (waiting[ahead] - waiting[behind], self.0);
        if bytes <= most {
            return Ok(());
        }
        let error = Error::limit(format!(
            "output {ahead} is {bytes} bytes ahead of output {behind}, whose reader asks for more, at most {most} may wait: \
             read both alike, or raise the run's `budget`, of which so much is {BUDGETS} times"
        ));
        Err(blame().on(error))
    }
}
