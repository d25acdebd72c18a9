//! What the queues wait and count with; the models in `tests` put loom's in their place.

pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
