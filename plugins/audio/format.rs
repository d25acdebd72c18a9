//! Sound, for the tests of all formats.

mod corpus;

use forebay_bundled::forebay_audio;
use forebay_core::DType;

use crate::{Corpus, Format, buffer, parser};

pub(crate) const FORMAT: Format = Format {
    parsers: &[parser("flac", flac, &["flac"]), parser("wav", wav, &["wav"])],
    readers: &[decoded!("flac", ["mono.flac", "stereo.flac"]), decoded!("wav", ["mono.wav", "stereo.wav"])],
    corpora: &[Corpus::new("wav", corpus::digest, 1.0)],
    ..Format::NONE
};

fn flac(bytes: &[u8]) {
    let _ = forebay_audio::parse_flac(&buffer(bytes), DType::ANY);
    let _ = forebay_audio::parse_flac(&buffer(bytes), DType::F32);
}

fn wav(bytes: &[u8]) {
    let _ = forebay_audio::parse_wav(&buffer(bytes), DType::ANY);
    let _ = forebay_audio::parse_wav(&buffer(bytes), DType::F32);
}
