//! From a text to 64 bits, few of which differ where the texts do in little.

use xxhash_rust::xxh3::xxh3_64;

/// The fingerprint (SimHash) of a text: of the hashes of each `words` words in a row, what most have in each bit.
///
/// Case, punctuation and white space do not count. A text of fewer words is hashed as a whole; without any it is 0.
///
/// ```
/// use dedup_plugin::fingerprint;
///
/// let [one, same, other] =
///     ["A heron stands in the shallow water.", "a heron stands, in the shallow water", "The gull has flown away."]
///         .map(|text| fingerprint(text, 2));
/// assert_eq!(one, same);
/// assert!((one ^ other).count_ones() > 16);
/// ```
#[must_use]
pub fn fingerprint(text: &str, words: usize) -> u64 {
    let text = text.to_lowercase();
    let all: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if all.is_empty() {
        return 0;
    }
    let mut most = [0_i64; 64];
    let mut row = Vec::new();
    for words in all.windows(words.clamp(1, all.len())) {
        row.clear();
        for word in words {
            row.extend_from_slice(word.as_bytes());
            row.push(b' ');
        }
        let hash = xxh3_64(&row);
        for (bit, most) in most.iter_mut().enumerate() {
            *most += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    most.iter().enumerate().filter(|(_, most)| **most > 0).fold(0, |print, (bit, _)| print | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_little_has_a_fingerprint_near_by() {
        let page: Vec<String> = (0..200).map(|number| format!("word{}", number * 7919 % 1000)).collect();
        let one = page.join(" ");
        let mut changed = page.clone();
        changed[100] = "else".to_owned();
        let other: Vec<String> = (0..200).map(|number| format!("word{}", number * 104_729 % 1001)).collect();
        let near = (fingerprint(&one, 3) ^ fingerprint(&changed.join(" "), 3)).count_ones();
        let far = (fingerprint(&one, 3) ^ fingerprint(&other.join(" "), 3)).count_ones();
        assert!(near <= 8 && far >= 16, "{near} and {far}");
    }

    #[test]
    fn any_text_has_one() {
        assert_eq!([fingerprint("", 3), fingerprint(" .\u{2014}!", 3)], [0, 0]);
        assert_eq!(fingerprint("Heron", 16), fingerprint("heron", 1));
        assert_eq!(fingerprint("Graureiher, ÜBER dem See", 2), fingerprint("graureiher über dem see", 2));
        // Written down, since what a run gives must be the same on every machine.
        assert_eq!(fingerprint("a heron", 1), 0x8263_404e_57c0_1402);
    }
}
