//! What is lost with a worker or a thread that dies.

use forebay_core::Error;

/// The end of a worker that had a serial segment, whose state is gone with it.
pub struct Death {
    /// Who it was, how it ended, and what it was given last.
    pub error: Error,
    /// Whether it ended by its own doing.
    pub crashed: bool,
}

/// A segment that a thread crashed over, and how: it is lost with the thread, and is to go on in worker processes.
#[derive(Clone)]
pub struct CrashedSegment {
    /// Which one.
    pub segment: usize,
    /// How, with the plugin.
    pub error: Error,
}
