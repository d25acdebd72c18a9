//! How many samples a node takes for those that are wanted of it, as far as that is known before a run. So no
//! samples are made that nobody will take.

use forebay_graph::{Node, OnError, PipeSpec};

/// For each sample that a node gives it takes `each`, and no more than `most` in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Takes {
    each: u64,
    most: u64,
}

impl Takes {
    /// One for one.
    const ONE: Self = Self { each: 1, most: u64::MAX };
    /// As many as it likes.
    const ANY: Self = Self { each: u64::MAX, most: u64::MAX };

    /// What a node takes that runs this pipe, if nothing is lost there: the losses of maps are counted as they happen.
    pub(crate) fn of(node: &Node, spec: &PipeSpec) -> Self {
        // Which samples an unordered map gives first is not known.
        if node.inputs.len() != 1 || node.is_unordered() {
            return Self::ANY;
        }
        if spec.is_even() {
            return Self::ONE;
        }
        let number = |option: Option<&str>| node.options.get(option?).and_then(serde_json::Value::as_u64);
        match (number(spec.order.takes), number(spec.layout.stacks)) {
            _ if node.on_error() != OnError::default() => Self::ANY,
            (Some(most), _) => Self { each: 1, most },
            (None, Some(each)) => Self { each, most: u64::MAX },
            (None, None) => Self::ANY,
        }
    }

    /// How many it takes in a pass, in which so many are `wanted` of it; the greatest number for any.
    pub(crate) fn from(self, wanted: u64) -> u64 {
        wanted.saturating_mul(self.each).min(self.most)
    }

    /// Whether it takes no more than so many, whatever is wanted of it.
    pub(crate) fn is_bounded(self) -> bool {
        self.most < u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_of_a_chain_is_followed_up() {
        let (four, five) = (Takes { each: 4, most: u64::MAX }, Takes { each: 1, most: 5 });
        let up =
            |chain: &[Takes], wanted| chain.iter().rev().fold(wanted, |wanted, takes| takes.from(wanted));
        assert_eq!(up(&[Takes::ONE, four, five], u64::MAX), 20);
        assert_eq!(up(&[four, five], 3), 12);
        assert_eq!(up(&[five, four], 3), 5);
        assert_eq!(up(&[five, Takes::ANY], 3), 5);
        assert_eq!(up(&[four, Takes::ANY], 3), u64::MAX);
        assert_eq!(up(&[Takes::ANY, five], u64::MAX), u64::MAX);
        assert_eq!(up(&[four, Takes::ANY], 0), 0);
    }
}
