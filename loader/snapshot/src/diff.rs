//! Compares two snapshots, and describes nodes for people.

use std::fmt::Write as _;

use super::{NodeMark, Snapshot};

impl Snapshot {
    /// The differences between two snapshots, one a line; empty if both have the same place.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |what: &str, one: String, two: String| {
            if one != two {
                lines.push(format!("{what}: {one} / {two}"));
            }
        };
        line("seed", self.seed.to_string(), other.seed.to_string());
        line("epoch", self.epoch.to_string(), other.epoch.to_string());
        line("delivered", self.delivered.to_string(), other.delivered.to_string());
        line("ended", self.ended.to_string(), other.ended.to_string());
        line("rank", self.rank.to_string(), other.rank.to_string());
        line("world size", self.world_size.to_string(), other.world_size.to_string());
        for (name, one) in &self.plugins {
            let two = other.plugins.get(name);
            line(
                &format!("plugin {name}"),
                format!("{one:?}"),
                two.map_or("none".into(), |two| format!("{two:?}")),
            );
        }
        let names = |snapshot: &Self| snapshot.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        let mut all = names(self);
        all.extend(names(other).into_iter().filter(|name| !self.nodes.iter().any(|node| node.name == *name)));
        for name in all {
            let of = |snapshot: &Self| {
                let node = snapshot.nodes.iter().find(|node| node.name == name);
                node.map_or("none".to_owned(), NodeMark::summary)
            };
            line(&format!("node {name}"), of(self), of(other));
        }
        lines
    }
}

impl NodeMark {
    /// The node's place in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let list = |numbers: &[u64]| {
            let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
            numbers.join("+")
        };
        let mut text = format!("`{}`", self.what);
        let mut part = |name: &str, numbers: &[u64], always: bool| {
            if always && !numbers.is_empty() || numbers.iter().any(|&number| number > 0) {
                let _ = write!(text, ", {name} {}", list(numbers)); // Writing to a String cannot fail.
            }
        };
        part("pass", &[self.pass], false);
        part("rewound", &self.rewound, false);
        part("taken", &self.taken, true);
        part("given", &self.given, true);
        part("then skips", &self.skip, false);
        let files: Vec<_> = self.files.iter().map(|file| format!("`{}`", file.path)).collect();
        if let Some((first, more)) = files.split_first() {
            let more =
                if more.is_empty() { String::new() } else { format!(" and {} more files", more.len()) };
            let _ = write!(text, ", in {first}{more}");
        }
        if let Some(state) = self.state.as_ref().filter(|state| !state.bytes.is_empty()) {
            let size = state.bytes.len();
            let _ = match std::str::from_utf8(&state.bytes) {
                Ok(short) if size <= 80 => write!(text, ", state {short}"),
                _ => write!(text, ", state of {size} bytes"),
            };
        }
        text
    }
}
