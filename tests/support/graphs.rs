//! Random graphs, each from a seed that is told when one fails.

use std::fmt::Write as _;

use forebay_loader::Rng;

/// A random chain: any pipes with any options, at times with a sample that fails.
#[must_use]
pub fn random_line(rng: &mut Rng) -> String {
    // At times with far more than anybody takes.
    let mut text = if rng.bool(0.3) {
        format!("range 1000000000 | rogue_map spin=500 at=-1 | take {}", rng.below(120))
    } else {
        format!("range {}", rng.below(120))
    };
    let mut batched = false;
    for _ in 0..rng.below(6) {
        let number = 1 + rng.below(40);
        text.push_str(" | ");
        // Writing to a String cannot fail.
        let _ = match rng.below(if batched { 5 } else { 10 }) {
            0 => write!(text, "take {number}"),
            1 => write!(text, "skip {}", number / 4),
            2 => write!(text, "shuffle {number}"),
            3 => write!(text, "repeat {}", 1 + number % 3),
            4 => write!(text, "rogue_stream fault={}", if rng.bool(0.3) { "pending" } else { "none" }),
            5 | 6 => write!(text, "increment"),
            7 => write!(text, "rogue_map spin={}", 100 * number),
            8 => write!(text, "rogue_map fault=error at={}", 3 * number),
            _ => {
                batched = true;
                write!(text, "batch {number} drop_last={}", rng.bool(0.5))
            }
        };
    }
    text
}
