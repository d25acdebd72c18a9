//! What parsers are given any bytes with: limits, and decoders and pipes as a host runs them.

use forebay_core::{Buffer, Decoder, FlatMap, Key, Limits, Options as _, Sample, Value, Wanted};
use forebay_testkit::{Host, answers};

/// What a file may take.
pub(crate) const BYTES: u64 = 4 << 20;
pub(crate) const PIXELS: u64 = 1 << 18;
pub(crate) const LIMITS: Limits = Limits { bytes: BYTES, pixels: PIXELS };
/// So many samples of one file are looked at, or pieces and samples.
pub(crate) const MOST: usize = 2000;

/// The bytes, as a decoder gets them.
pub(crate) fn buffer(bytes: &[u8]) -> Buffer {
    bytes.to_vec().into()
}

/// The sample of a file with these bytes.
pub(crate) fn file(bytes: &[u8]) -> Sample {
    let mut sample = Sample::new(1, Key::whole("file"));
    sample.set("bytes", Value::from(buffer(bytes)));
    sample
}

/// What a decoder makes of the bytes.
pub(crate) fn decode<D: Decoder>(bytes: &[u8]) {
    let _ = D::Options::parse("{}").and_then(D::new).and_then(|decoder| {
        decoder.decode(&buffer(bytes), &Wanted::default(), &Host::new().limits(LIMITS).context())
    });
}

/// What one pipe cuts a file into, and another makes of each piece.
pub(crate) fn pieces<Cut: FlatMap, Read: FlatMap>(bytes: &[u8], options: &str) {
    let mut left = MOST;
    let read = pipe::<Read>("{}");
    each(&pipe::<Cut>(options), file(bytes), |piece| {
        each(&read, piece, |_| {
            left -= 1;
            left > 0
        });
        left = left.saturating_sub(1);
        left > 0
    });
}

/// What a pipe makes of a file.
pub(crate) fn expand<P: FlatMap>(options: &str, bytes: &[u8]) {
    let mut left = MOST;
    each(&pipe::<P>(options), file(bytes), |_| {
        left -= 1;
        left > 0
    });
}

fn pipe<P: FlatMap>(options: &str) -> P {
    // Options that are no more would leave nothing to test.
    P::Options::parse(options).and_then(P::new).unwrap_or_else(|error| panic!("{options}: {error}"))
}

/// Calls `more` with each sample that a pipe makes of one, beyond its errors where it goes on, until that says no.
fn each<P: FlatMap>(pipe: &P, sample: Sample, more: impl FnMut(Sample) -> bool) {
    let host = Host::new().limits(LIMITS);
    let cx = &host.context();
    let Ok(mut items) = pipe.open(sample, cx) else { return };
    answers(&mut items, cx).take(MOST).filter_map(Result::ok).all(more);
}
