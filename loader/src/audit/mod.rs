//! Proves that every sample came exactly once, or names those that did not.
//!
//! While a graph runs, each node that is no map leaves word of the uids that it gave, by their place (`tap`); nodes that give
//! other uids than they take leave word of what they took as well. All of it is written to a file (`log`, `line`), beside
//! what the consumer was given. A place says the same in every run of one graph and seed, so the files of several runs and
//! ranks are put together by place (`records`), and then judged node by node (`judge`): what went in must have come out, once.

mod judge;
mod line;
mod log;
mod records;
mod tap;
mod uids;
mod verdict;

pub(crate) use self::{
    log::{AuditLog, open_to_append, unlock},
    tap::Tap,
};
pub use self::{
    records::audit,
    verdict::{EpochAudit, LeftOut, Named, Offence, What},
};
