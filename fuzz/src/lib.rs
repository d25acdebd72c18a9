#![doc = include_str!("../README.md")]

#[path = "../../tests/mutations/parsers.rs"]
mod parsers;

/// Gives any bytes to the parser of this name.
///
/// # Panics
/// When there is none, and when the parser does, which is what is looked for.
pub fn run(name: &str, bytes: &[u8]) {
    let parser = parsers::PARSERS.iter().find(|parser| parser.0 == name);
    parser.expect("each target is named as its parser").1(bytes);
}
