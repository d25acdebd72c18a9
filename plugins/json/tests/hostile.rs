//! Broken input: an error with a place in it, or a value, and never a panic.

use forebay_json::{Dialect, Form, Rules, parse, records, rows};

/// A text cut at every byte, and with every byte of it changed in several ways.
fn broken(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let bytes =
        [0, b'"', b'{', b'}', b'[', b']', b',', b':', b'\n', b'\r', b'\\', b'9', b'-', b'e', 0x80, 0xff];
    (0..text.len()).flat_map(move |at| {
        let changed = bytes.into_iter().map(move |byte| {
            let mut changed = text.to_vec();
            changed[at] = byte;
            changed
        });
        let flipped = (0..8).map(move |bit| {
            let mut flipped = text.to_vec();
            flipped[at] ^= 1 << bit;
            flipped
        });
        std::iter::once(text[..at].to_vec()).chain(changed).chain(flipped)
    })
}

const ROWS: &[u8] = br#"{"a": [1, -2.5e-3, "x\u00e9\ud83d\ude00"], "b": {"c": null, "a": true, "a": "\\"}}
{"a": 12345678901234567890123, "b": {"c": [{"d": 1}, {"d": 2, "e": 0.1}]}, "\u0061": "gr\u00fcn und lang genug"}
[1, {"a": 2}]
"#;

#[test]
fn documents() {
    let mut refused = 0;
    for row in ROWS.split(|byte| *byte == b'\n') {
        for text in broken(row) {
            let len = text.len();
            if let Err(error) = parse(&text.into()) {
                refused += 1;
                let at: usize = error.get("byte").unwrap().parse().unwrap();
                assert!(at <= len, "{error}");
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn lines() {
    for fields in [vec![], vec!["a".to_owned(), "/b/c/0/d".into(), "/1/a".into(), "/b".into()]] {
        for text in broken(ROWS) {
            let form = Form::new(&fields, Rules::DEFAULT).unwrap();
            let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
            let read = rows(text.clone().into(), "rows".into(), 0, form);
            let mut count = 0;
            for row in read {
                count += 1;
                if let Err(error) = row {
                    let at: usize = error.get("byte").unwrap().parse().unwrap();
                    assert!(at <= text.len() && error.get("file") == Some("rows"), "{error}");
                }
            }
            assert!(count <= lines, "{count} of {lines}: {}", text.escape_ascii());
        }
    }
}

/// A row that is refused whole is refused when little of it is selected, and the other way round.
#[test]
fn what_is_not_selected_must_be_json_too() {
    let mut refused = 0;
    for text in broken(ROWS.split(|byte| *byte == b'\n').nth(1).unwrap()) {
        let read = |fields: &[String]| {
            let form = Form::new(fields, Rules::DEFAULT).unwrap();
            rows(text.clone().into(), "rows".into(), 0, form).all(|row| row.is_ok())
        };
        let (whole, part) = (read(&[]), read(&["z".into()]));
        refused += usize::from(!part);
        assert!(whole == part || (part && text.contains(&b'\\')), "{}", text.escape_ascii());
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn tables() {
    let text = "name,note\r\nheron,\"grey, \"\"tall\"\"\nand still\"\r\n\nstork,\"a\"b,3\r".as_bytes();
    for text in broken(text) {
        let len = text.len();
        match records(&text.into(), Dialect::CSV) {
            Ok(rows) => assert!(rows.len() <= len),
            Err(error) => assert!(error.get("byte").unwrap().parse::<usize>().unwrap() <= len),
        }
    }
}
