//! Proves that every sample came exactly once, or names those that did not.
//!
//! While a graph runs, each node that is no map notes the uids that it gave, by their place (`tap`). Nodes that
//! change uids also note the uids that they took. All notes go to a file (`log`, `line`), with the samples that
//! the consumer got.
//!
//! A place means the same in every run of one graph and seed. So the files of several runs and ranks are joined by
//! place (`records`), and then judged node by node (`judge`): each sample that went in must come out, once.

mod audit;
mod judge;
mod line;
mod log;
mod records;
mod tap;
mod uids;
mod verdict;

pub use self::{
    audit::audit,
    verdict::{EpochAudit, LeftOut, Named, Offence, What},
};
pub use self::{
    log::{AuditLog, open_to_append, unlock},
    tap::Tap,
};
