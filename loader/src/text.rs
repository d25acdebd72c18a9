//! Tables, numbers and paths as text for people.

use std::{
    env,
    io::{self, Write},
    path::Path,
};

/// Rows under heads. Each column is as wide as it needs to be; a head that starts with `>` aligns its column to
/// the right.
pub struct TextTable {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these heads. If all heads are empty, no line is written for them.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        let heads = heads.iter().map(|head| head.trim_start_matches('>').to_owned()).collect();
        Self { right, rows: vec![heads] }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Writes the table, with `indent` before each line.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        for row in self.rows.iter().filter(|row| row.iter().any(|cell| !cell.is_empty())) {
            let mut line = String::from(indent);
            for ((cell, &right), &width) in row.iter().zip(&self.right).zip(&widths) {
                line += &if right { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number of bytes with a unit: `998 B`, `1.2 MB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    let mut number = count as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if number < 999.5 {
            break;
        }
        (number, unit) = (number / 1000.0, larger);
    }
    let digits = usize::from(unit != "B" && number < 9.95);
    format!("{number:.digits$} {unit}")
}

/// A whole number with commas between the thousands: `1,234,567`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 batch`, `3 batches`.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A rate per second, with at least three digits.
#[must_use]
pub fn rate(number: u64, seconds: f64) -> String {
    let rate = if seconds > 0.0 { number as f64 / seconds } else { 0.0 };
    if rate < 99.95 { format!("{rate:.1}") } else { count(rate.round() as u64) }
}

/// The shortest form of a path, seen from the current folder.
#[must_use]
pub fn near(file: &str) -> String {
    let here = env::current_dir().ok();
    let inside =
        here.and_then(|here| Path::new(file).strip_prefix(here).ok().map(|path| path.display().to_string()));
    inside.unwrap_or_else(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([bytes(0), bytes(999), bytes(1_000)], ["0 B", "999 B", "1.0 kB"]);
        assert_eq!([bytes(999_999), bytes(12_345_678)], ["1.0 MB", "12 MB"]);
        assert_eq!([count(7), count(1_234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!(
            [counted(1, "batch", "batches"), counted(0, "batch", "batches")],
            ["1 batch", "0 batches"]
        );
        assert_eq!([rate(5, 0.0), rate(10, 4.0), rate(2_000_000, 1.0)], ["0.0", "2.5", "2,000,000"]);
    }

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(&["node", ">samples"]);
        table.row(["é".to_owned(), "1,000".to_owned()]);
        let mut text = Vec::new();
        table.write(&mut text, "  ").unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "  node  samples\n  é       1,000\n");
    }
}
