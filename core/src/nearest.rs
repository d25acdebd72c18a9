//! Which of the names that exist somebody probably meant, for the errors that name them.

/// Names longer than this are never a slip of the finger, and comparing them would cost.
const LONGEST: usize = 64;

/// Up to three of `names` that are near to `word`, the nearest first.
///
/// ```
/// assert_eq!(forebay_core::nearest::nearest("shufle", ["batch", "shuffle"]), ["shuffle"]);
/// ```
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(LONGEST + 1).collect();
    if word.is_empty() || word.len() > LONGEST {
        return Vec::new();
    }
    let allowed = (word.len() / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|name| name.len() <= LONGEST)
        .filter_map(|name| {
            let other: Vec<char> = name.to_lowercase().chars().collect();
            let distance = distance(&word, &other);
            let begins =
                word.len() >= 3 && (other.starts_with(&word) || other.len() >= 3 && word.starts_with(&other));
            (distance <= allowed || begins).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The hint that follows "unknown …": a question when something is near, otherwise nothing.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, names).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", quoted(near, " or ")),
    }
}

/// The names in backticks.
#[must_use]
pub fn quoted(names: &[&str], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

/// How many letters to add, drop, change or swap with a neighbour to make one word of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut two_back: Vec<usize> = Vec::new();
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = back[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(back[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(two_back[j - 2] + 1);
            }
            row.push(best);
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_found() {
        let names = ["shuffle", "batch", "take", "skip", "random_crop"];
        assert_eq!(nearest("shufle", names), ["shuffle"]);
        assert_eq!(nearest("bacth", names), ["batch"]);
        assert_eq!(nearest("Take", names), ["take"]);
        assert_eq!(nearest("random", names), ["random_crop"]);
        assert!(nearest("frobnicate", names).is_empty());
        assert!(nearest(&"x".repeat(100_000), names).is_empty());
        assert_eq!(did_you_mean("tak", names), "; did you mean `take`?");
    }
}
