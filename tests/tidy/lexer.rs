//! Tells Rust code from comments and strings, as far as tidy needs it. Offsets stay those of the text.

/// A string literal, without its quotes and with its escapes as written.
pub(crate) struct Literal {
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// The text with comments and literals blanked out, and the string literals that were in it.
pub(crate) fn read(text: &str) -> (String, Vec<Literal>) {
    let bytes = text.as_bytes();
    let (mut code, mut literals) = (bytes.to_vec(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (length, quotes) = match rest {
            [b'/', b'/', ..] => (find(rest, b"\n").unwrap_or(rest.len()), None),
            [b'/', b'*', ..] => (block_comment(rest), None),
            [b'"', ..] => (string(rest), Some((1, 1))),
            [b'r', b'"' | b'#', ..] if starts_literal(bytes, at) => raw_string(rest),
            [b'\'', ..] => (char_literal(rest), None),
            _ => (0, None),
        };
        if let Some((before, after)) = quotes {
            let inner = &text[at + before..(at + length).saturating_sub(after).max(at + before)];
            literals.push(Literal { at, text: inner.to_owned() });
        }
        blank(&mut code, at, at + length);
        at += length.max(1);
    }
    (String::from_utf8_lossy(&code).into_owned(), literals)
}

/// Replaces everything but line ends by spaces.
pub(crate) fn blank(code: &mut [u8], from: usize, to: usize) {
    code[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// Offsets of a whole word in blanked code.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let ends = move |at: usize| bytes.get(at).is_none_or(|byte| !is_word(*byte));
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !follows_word(bytes, *at) && ends(at + word.len()))
}

/// The offset just after the brace that closes the next opened one, or after a `;` that comes before any.
pub(crate) fn end_of_item(code: &str, from: usize) -> usize {
    let (mut braces, mut brackets) = (0_i32, 0_i32);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b'{' => braces += 1,
            b'}' => braces -= 1,
            b';' if braces == 0 && brackets == 0 => return at + 1,
            _ => continue,
        }
        if byte == b'}' && braces <= 0 {
            return at + 1;
        }
    }
    code.len()
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

/// Whether an `r` here starts a word, or stands in one of the prefixes `br` and `cr`.
fn starts_literal(bytes: &[u8], at: usize) -> bool {
    !follows_word(bytes, at) || (matches!(bytes[at - 1], b'b' | b'c') && !follows_word(bytes, at - 1))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Length, and the lengths of the quotes; nothing when it is a raw identifier (`r#type`).
fn raw_string(bytes: &[u8]) -> (usize, Option<(usize, usize)>) {
    let hashes = bytes[1..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(1 + hashes) != Some(&b'"') {
        return (0, None);
    }
    let quote = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let start = hashes + 2;
    let length = find(&bytes[start..], &quote).map_or(bytes.len(), |end| start + end + quote.len());
    (length, Some((start, quote.len())))
}

/// Nothing when it is a lifetime.
fn char_literal(bytes: &[u8]) -> usize {
    match bytes {
        [_, b'\\', ..] => {
            bytes.iter().skip(3).position(|byte| *byte == b'\'').map_or(bytes.len(), |end| end + 4)
        }
        [_, b'\'', ..] => 0,
        _ => {
            let width = bytes.get(1).map_or(0, |byte| byte.leading_ones().max(1) as usize);
            if bytes.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
    }
}

#[test]
fn strings_and_comments_are_not_code() {
    let (code, literals) = read(
        "let a: &'static str = \"un\\\"safe\"; // unsafe\n/* unsafe /* x */ */ let c = ('{', '\\'', b\"tar\", br#\"a\"b\"#);",
    );
    assert_eq!(words(&code, "unsafe").count(), 0, "{code}");
    assert!(code.contains("&'static str") && !code.contains('{'), "{code}");
    let texts: Vec<_> = literals.iter().map(|literal| literal.text.as_str()).collect();
    assert_eq!(texts, ["un\\\"safe", "tar", "a\"b"]);
}

#[test]
fn an_item_ends_where_its_brace_closes() {
    let code = "fn a(x: [u8; 2]) { { } } fn b() {}";
    assert_eq!(&code[..end_of_item(code, 0)], "fn a(x: [u8; 2]) { { } }");
    assert_eq!(end_of_item("mod tests; x", 0), 10);
}
