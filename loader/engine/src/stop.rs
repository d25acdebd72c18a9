//! Why a serial segment stopped, in this process or in a worker.

use forebay_core::Error;
use serde::{Deserialize, Serialize};

use crate::problem;

/// Why a chain stopped.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Stop {
    /// There is something in its outputs, or the chain is to be given back at once.
    Progress,
    /// Nothing more before this input has samples or has ended.
    NeedInput(usize),
    /// Nothing before the waker is called.
    Pending,
    /// Nothing any more in this pass.
    End,
    /// These inputs, which have ended, are to start over, in the pass with this number.
    Rewind(Vec<usize>, u64),
    /// Failed; nothing any more.
    Failed(#[serde(with = "problem")] Error),
}
