//! Decoders that a node of a graph gives options: an instance each for that node, beside the one that all others share.

use std::sync::OnceLock;

use forebay_core::{AnyDecoder, Result};
use forebay_graph::{Node, PipeSpec};
use serde_json::{Map, Value};

use super::{DecoderSlot, Registry};

/// The decoders that one node has given options; none unless it has.
#[derive(Default)]
pub struct Tuned(Vec<TunedDecoders>);

struct TunedDecoders {
    /// The plugin, and the place of the decoder in its manifest.
    decoder: (usize, usize),
    /// A JSON object.
    options: String,
    made: OnceLock<Result<AnyDecoder>>,
}

impl Tuned {
    /// The node's own instance of a decoder, if it has one, and its options.
    pub(super) fn of(&self, slot: &DecoderSlot) -> Option<(&OnceLock<Result<AnyDecoder>>, &str)> {
        let found = self.0.iter().find(|instance| instance.decoder == (slot.plugin, slot.index))?;
        Some((&found.made, &found.options))
    }
}

impl Registry {
    /// The decoders that a node of a checked graph gives options. What is said of one plugin's decoder wins over what is said of all of its name.
    pub fn tuned(&self, node: &Node, spec: &PipeSpec) -> Tuned {
        let mut tuned: Vec<TunedDecoders> = Vec::new();
        let mut given: Vec<(&str, &Map<String, Value>)> = match spec.configures() {
            true => node.decoder_options().collect(),
            false => Vec::new(),
        };
        given.sort_by_key(|(name, _)| !name.contains('@'));
        for (name, options) in given {
            for slot in self.called_so(name) {
                let decoder = (slot.plugin, slot.index);
                if tuned.iter().all(|known| known.decoder != decoder) {
                    let options = Value::Object(options.clone()).to_string();
                    tuned.push(TunedDecoders { decoder, options, made: OnceLock::new() });
                }
            }
        }
        Tuned(tuned)
    }
}
