//! What one node leaves word of, while it runs.

use std::sync::Arc;

use forebay_core::{Chunk, DType, Port, Sample, Value};
use forebay_snapshot::checkpoint_log::Progress;

use super::{
    line::{AuditLine, GivenSample, write_items, write_keys, write_uids},
    log::AuditLog,
};

/// The field for the uids in a batch, unless the graph has one of its own.
const FIELD: &str = "forebay.audit.uids";

/// Leaves word of what one node takes and gives.
#[derive(Clone)]
pub struct Tap {
    log: Arc<AuditLog>,
    node: usize,
    /// The loader's start that this node runs for.
    turn: u64,
    /// The field with the uids of stacked samples, and whether it is for the audit alone.
    members: Option<(String, bool)>,
}

/// What waited at a node's inputs and outputs before a call.
pub struct Before {
    waiting: Vec<Vec<u64>>,
    had: Vec<usize>,
}

impl Tap {
    /// For the node at this place. One that stacks has an option for the field with the uids, which its options may have.
    pub fn new(log: &Arc<AuditLog>, node: usize, given: Option<&str>) -> Self {
        let stacks = log.part(node).stacks;
        let members = stacks.then(|| (given.unwrap_or(FIELD).to_owned(), given.is_none()));
        Self { log: Arc::clone(log), node, turn: 0, members }
    }

    /// The field that the pipe must be told of.
    pub fn field(&self) -> Option<&str> {
        self.members.as_ref().filter(|(_, own)| *own).map(|(field, _)| field.as_str())
    }

    /// The loader starts an epoch.
    pub fn start(&mut self) {
        self.turn = self.log.turn();
    }

    /// Adds the lines that this node and others in one process left there.
    pub fn write_lines(&self, lines: &str) {
        self.log.write_lines(self.turn, lines);
    }

    /// To be asked before a call.
    pub fn before(&self, ports: &[Port], outs: &[Chunk]) -> Before {
        let uids = |port: &Port| port.chunk.names().map(|(uid, _)| uid).collect();
        let takes = self.log.part(self.node).role.takes();
        Before {
            waiting: if takes { ports.iter().map(uids).collect() } else { Vec::new() },
            had: outs.iter().map(Chunk::len).collect(),
        }
    }

    /// Leaves word of what the call took and gave; `place` is that after it.
    pub fn after(&self, before: &Before, place: &Progress, ports: &[Port], outs: &mut [Chunk], ended: bool) {
        for (input, (waited, port)) in before.waiting.iter().zip(ports).enumerate() {
            let taken = &waited[..waited.len().saturating_sub(port.chunk.len())];
            if !taken.is_empty() {
                let rewound = place.rewound.get(input).copied().unwrap_or(0);
                let first = place.taken[input] - taken.len() as u64;
                let uids = write_uids(taken.iter().copied());
                self.write(&AuditLine::Took(self.node, input, place.pass, rewound, first, uids));
            }
        }
        for (output, (&had, out)) in before.had.iter().zip(outs).enumerate() {
            let count = out.len().saturating_sub(had);
            if count > 0 {
                let first = place.given[output] - count as u64;
                let (uids, keys) = self.read(out, had);
                self.write(&AuditLine::Gave(self.node, output, place.pass, first, uids, keys));
            }
        }
        if ended {
            self.write(&AuditLine::Over(self.node, place.pass));
        }
    }

    /// Leaves word of what a parallel flat map is given, from this place of its input on.
    pub fn took(&self, pass: u64, first: u64, chunk: &Chunk) {
        let uids = write_uids(chunk.names().map(|(uid, _)| uid));
        self.write(&AuditLine::Took(self.node, 0, pass, 0, first, uids));
    }

    /// Leaves word of what a parallel flat map made, after the first `given` of a pass.
    pub fn made(&self, pass: u64, given: u64, chunk: &mut Chunk) {
        let (uids, keys) = self.read(chunk, 0);
        self.write(&AuditLine::Gave(self.node, 0, pass, given, uids, keys));
    }

    /// Leaves word of what an unordered map gave, after the first `given` of a pass.
    pub fn gave(&self, pass: u64, given: u64, chunk: &Chunk) {
        let uids = write_uids(chunk.names().map(|(uid, _)| uid));
        self.write(&AuditLine::Gave(self.node, 0, pass, given, uids, Vec::new()));
    }

    /// Leaves word that a map gave all of a pass.
    pub fn over(&self, pass: u64) {
        self.write(&AuditLine::Over(self.node, pass));
    }

    /// Leaves word of a failure that was forgiven, with a number that no other of this pass has.
    pub fn lost(&self, pass: u64, number: u64, uid: Option<u64>) {
        let uid = uid.map(|uid| write_uids([uid]));
        self.write(&AuditLine::Lost(self.node, pass, number, uid));
    }

    fn write(&self, line: &AuditLine) {
        self.log.write(self.turn, line);
    }

    /// The samples of `out` after the first ones, as text, and their keys where they are new.
    fn read(&self, out: &mut Chunk, had: usize) -> (String, Vec<String>) {
        let Some((field, own)) = &self.members else {
            let new = || out.names().skip(had);
            let keys = self.log.part(self.node).role.takes();
            let keys = if keys { write_keys(new().map(|(_, key)| key)) } else { Vec::new() };
            return (write_uids(new().map(|(uid, _)| uid)), keys);
        };
        let (mut whole, mut items, mut sample) = (Chunk::new(), Vec::new(), Sample::default());
        for at in 0..out.len() {
            out.pop_into(&mut sample);
            if at >= had {
                let members = if *own { sample.take(field) } else { sample.get(field).cloned() };
                items.push(GivenSample { uid: sample.uid(), members: uids(members.as_ref()) });
            }
            whole.push_sample(&mut sample);
        }
        *out = whole;
        (write_items(items), Vec::new())
    }
}

/// The uids in a field of a batch; none in anything else.
fn uids(value: Option<&Value>) -> Vec<u64> {
    let tensor = value.and_then(Value::as_tensor).filter(|tensor| tensor.dtype() == DType::U64);
    let words = tensor.map(|tensor| tensor.data().as_chunks::<8>().0).unwrap_or_default();
    words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}
