//! How far one output of a node may be ahead of another, whose reader everything waits for.

use forebay_core::{Error, Result};

use crate::run::link::Blame;

/// So many bytes may always wait.
const LEAST: usize = 4 << 30;
/// What may wait, in budgets.
const BUDGETS: usize = 16;
/// So many chunks may always wait, whatever their bytes: a sample alone may be of any size.
const FEW: usize = 16;

/// The most bytes that may wait at one output of a node while another has nothing and its reader asks for more: beyond the budget, since
/// nothing else can go on, but not without end.
#[derive(Debug, Clone, Copy)]
pub(super) struct MostAhead(usize);

impl MostAhead {
    pub(super) fn new(budget: usize) -> Self {
        Self(budget.saturating_mul(BUDGETS).max(LEAST))
    }

    /// Looks at the number of chunks that wait at each output, and at their bytes, before more of them come.
    ///
    /// # Errors
    /// `Limit`, on the node to `blame`, when more waits at an output.
    pub(super) fn check(
        self,
        waiting: impl IntoIterator<Item = (usize, usize)>,
        blame: impl FnOnce() -> Option<Blame>,
    ) -> Result<()> {
        let mut waiting = waiting.into_iter().enumerate();
        let Some((output, (_, bytes))) =
            waiting.find(|(_, (chunks, bytes))| *chunks > FEW && *bytes > self.0)
        else {
            return Ok(());
        };
        let error = Error::limit(format!(
            "{bytes} bytes wait at output {output} while another needs more, at most {} may wait: read both at one rate, \
             or give the run a `budget` of {} bytes",
            self.0,
            bytes.div_ceil(BUDGETS)
        ));
        Err(match blame() {
            Some(blame) => blame.on(error),
            None => error,
        })
    }
}
