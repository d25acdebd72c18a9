//! The whole command from its start to the first batch of `examples/photos.toml`.

use std::{path::Path, process::Command};

use forebay_loader::{Error, Result};

const ROUNDS: usize = 11;

pub(crate) fn run(forebay: &Path) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for executor in ["inline", "threads:2"] {
        let (mut first, mut peak) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let output = Command::new(forebay)
                .args(["run", "examples/photos.toml", "--json", "--executor", executor])
                .output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let number = |name: &str| -> Result<f64> {
                let found = text.split(&format!("\"{name}\":")).nth(1);
                let digits = found
                    .map(|rest| rest.trim_start().split([',', '}', '\n']).next().unwrap_or_default().trim());
                digits
                    .and_then(|digits| digits.parse().ok())
                    .ok_or_else(|| Error::invalid(format!("no {name} in {text}")))
            };
            first.push(number("first_batch_ms")?);
            peak.push(number("peak_rss_bytes")? / 1e6);
        }
        first.sort_by(f64::total_cmp);
        peak.sort_by(f64::total_cmp);
        rows.push(format!(
            "{executor:<10} first batch {:.0} ms (best {:.0}, worst {:.0}), peak memory {:.0} MB",
            first[ROUNDS / 2],
            first[0],
            first[ROUNDS - 1],
            peak[ROUNDS - 1]
        ));
    }
    Ok(rows)
}
