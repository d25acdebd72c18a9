//! Any bytes as one parser reads them: the one that `FOREBAY_PARSER` names when this is compiled.
#![no_main]

const PARSE: fn(&[u8]) = forebay_formats::parser_called(env!("FOREBAY_PARSER", "name a parser: FOREBAY_PARSER=tar"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forebay_fuzz::run(PARSE, bytes));
