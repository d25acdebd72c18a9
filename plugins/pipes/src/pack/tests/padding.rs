//! How much of the rows is padding, beside Grain's best fit over the same lengths.

use forebay_core::random::Rng;

use super::{pack, tokens};
use crate::testing::Drive;

const LENGTH: usize = 2048;
const BINS: usize = 64;

/// Lengths whose logarithms are normal: on average 464, at most a row.
fn lengths(count: usize) -> Vec<usize> {
    let mut rng = Rng::new(12, 0);
    let mut normal = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    (0..count).map(|_| ((6.0 + normal()).exp() as usize).clamp(1, LENGTH)).collect()
}

/// How many rows Grain's `BestFitPackIterDataset` makes: each sequence goes where the least room is left behind it; where it fits into
/// none, all rows are given out.
fn rows_of_grain(lengths: &[usize]) -> usize {
    let (mut room, mut given) = ([LENGTH; BINS], 0);
    let used = |room: &[usize]| room.iter().filter(|room| **room < LENGTH).count();
    for length in lengths {
        let fits =
            |room: &[usize; BINS]| (0..BINS).filter(|&bin| room[bin] >= *length).min_by_key(|&bin| room[bin]);
        let bin = fits(&room).unwrap_or_else(|| {
            given += used(&room);
            room = [LENGTH; BINS];
            0
        });
        room[bin] -= length;
    }
    given + used(&room)
}

#[test]
fn best_fit_pads_no_more_than_grains() {
    let lengths = lengths(20_000);
    let input = tokens(&lengths);
    let options =
        format!(r#"{{"length": {LENGTH}, "method": "best_fit", "bins": {BINS}, "fields": ["tokens"]}}"#);
    let mut drive = Drive::new(pack(&options), &input, 64);
    drive.run(64, usize::MAX).unwrap();
    let whole = lengths.iter().sum::<usize>() as f64;
    let padding = |rows: usize| 1.0 - whole / (rows * LENGTH) as f64;
    let (ours, grains) = (padding(drive.out().len()), padding(rows_of_grain(&lengths)));
    assert!(ours <= grains && ours < 0.01, "{ours} beside {grains}");
    assert!(grains < 0.03, "the definition pads {grains}");
}
