//! Which samples a source of files gave: a resume that makes some again must make the same ones.

use forebay_core::Chunk;

use super::{checkpoint_log::CheckpointLog, seen::Field};

/// Notes which samples of a source are about files.
#[derive(Default)]
pub struct Names(Field);

impl Names {
    /// Notes those of `out` after the first `had`, the next of which is sample `first` of this pass.
    pub fn note(
        &mut self,
        checkpoint_log: &CheckpointLog,
        (pass, first): (u64, u64),
        out: &Chunk,
        had: usize,
    ) {
        let about_files = |(_, _, schema, values)| self.0.path(schema, values).is_some();
        if out.len() > had && out.samples().skip(had).take(1).all(about_files) {
            checkpoint_log.note_uids((pass, first), out.names().skip(had).map(|(uid, _)| uid));
        }
    }
}

/// Which sample the last one must be of those that come again after a resume.
#[derive(Default)]
pub struct Expected {
    uid: Option<u64>,
    difference: Option<String>,
}

impl Expected {
    /// That a sample has this uid; none where any will do.
    pub fn new(uid: Option<u64>) -> Self {
        Self { uid, difference: None }
    }

    /// Its uid, before it came.
    pub fn uid(&self) -> Option<u64> {
        self.uid
    }

    /// Compares the first sample of `out`, the last that comes again.
    pub fn compare(&mut self, out: &Chunk) {
        if let (Some(expected), Some((uid, key))) = (self.uid.take(), out.names().next())
            && uid != expected
        {
            self.difference = Some(format!("the samples before the saved position changed, such as {key}"));
        }
    }

    /// How it differs, if it does.
    pub fn take_difference(&mut self) -> Option<String> {
        self.difference.take()
    }
}
