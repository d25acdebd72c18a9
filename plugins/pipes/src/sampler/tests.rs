//! What each sampler draws, beside what its definition says.

use forebay_core::{
    DataPipe as _, Options, Sample,
    sampling::{AGAIN, DRAWN},
};

use super::*;
use crate::testing::{Drive, Host, Setup, check, check_resume, ints, sample, small_host};

/// The sample that a sampler is told.
fn count(count: i64) -> Vec<Sample> {
    vec![sample(0, &[("count", count.into())])]
}

fn make<D: Draw>(options: &str) -> Sampler<D> {
    Sampler::new(D::Options::parse(options).unwrap()).unwrap()
}

/// What it draws of so many samples, after the checks that every stream passes.
fn draws<D: Draw>(options: &str, of: i64) -> Vec<i64> {
    let input = count(of);
    check_resume(|| make::<D>(options), &input);
    ints(&check(|| make::<D>(options), &input), DRAWN)
}

/// What it draws on a host.
fn drive<D: Draw>(options: &str, of: i64, host: &Host) -> Result<Vec<Sample>> {
    let input = count(of);
    let mut drive = Drive::with_host(make::<D>(options), &input, 1, host);
    drive.run(64, usize::MAX)?;
    Ok(drive.out().to_vec())
}

fn refused<D: Draw>(options: &str, of: i64) -> Option<String> {
    let made = D::Options::parse(options).and_then(Sampler::<D>::new);
    let error = made.and_then(|_| drive::<D>(options, of, &small_host())).unwrap_err();
    error.get("option").map(ToOwned::to_owned)
}

#[test]
fn sequential_draws_all_in_order() {
    for of in [0, 1, 7] {
        assert_eq!(draws::<Sequential>("{}", of), (0..of).collect::<Vec<_>>());
    }
}

#[test]
fn random_draws_each_once_b004() {
    for of in [0, 1, 2, 20, 50] {
        let mut drawn = draws::<Random>("{}", of);
        assert!(of < 20 || drawn.windows(2).any(|pair| pair[0] > pair[1]), "{drawn:?}");
        drawn.sort_unstable();
        assert_eq!(drawn, (0..of).collect::<Vec<_>>());
    }
    let epoch = |epoch| ints(&drive::<Random>("{}", 20, &small_host().epoch(epoch)).unwrap(), DRAWN);
    assert_eq!(epoch(1), epoch(1));
    assert_ne!(epoch(0), epoch(1));
}

#[test]
fn more_than_there_are_begin_another_order() {
    let drawn = draws::<Random>(r#"{"num_samples": 50}"#, 20);
    assert_eq!(drawn.len(), 50);
    for round in drawn[..40].chunks(20) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, (0..20).collect::<Vec<_>>());
    }
    assert_ne!(drawn[..20], drawn[20..40]);
    let samples = drive::<Random>(r#"{"num_samples": 50}"#, 20, &small_host()).unwrap();
    let salts = ints(&samples, AGAIN);
    assert_eq!(salts, (0..50).map(|place| place / 20).collect::<Vec<_>>(), "each time it is another sample");
    assert_eq!(refused::<Random>(r#"{"num_samples": 3}"#, 0).as_deref(), Some("num_samples"));
    assert_eq!(refused::<Random>(r#"{"num_samples": 0}"#, 5).as_deref(), Some("num_samples"));
}

/// Chi-square of how often each of `weights` was drawn.
fn chi(drawn: &[i64], weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    let term = |(at, weight): (usize, &f64)| {
        let expected = drawn.len() as f64 * weight / sum;
        let found = drawn.iter().filter(|&&one| one == at as i64).count() as f64;
        if expected == 0.0 { found * 1e9 } else { (found - expected).powi(2) / expected }
    };
    weights.iter().enumerate().map(term).sum()
}

#[test]
fn with_replacement_all_are_alike() {
    let options = r#"{"replacement": true, "num_samples": 20000}"#;
    let samples = drive::<Random>(options, 10, &small_host()).unwrap();
    let chi = chi(&ints(&samples, DRAWN), &[1.0; 10]);
    assert!(chi < 27.9, "chi-square with 9 degrees of freedom is {chi}");
    let mut salts = ints(&samples, AGAIN);
    salts.sort_unstable();
    salts.dedup();
    assert_eq!(salts.len(), samples.len());
    assert_eq!(draws::<Random>(r#"{"replacement": true}"#, 9).len(), 9);
}

#[test]
fn every_place_is_as_likely_for_a_sample_wherever_orders_are_drawn() {
    // Where sample 0 comes, in each of 4,000 epochs.
    fn place<D: Draw>(options: &str) -> Vec<i64> {
        let order = |epoch| ints(&drive::<D>(options, 10, &small_host().epoch(epoch)).unwrap(), DRAWN);
        let place = |epoch| order(epoch).iter().position(|&drawn| drawn == 0).unwrap() as i64;
        (0..4000).map(place).collect()
    }
    for (name, places) in [
        ("random", place::<Random>("{}")),
        ("subset", place::<Subset>(r#"{"shuffle": true}"#)),
        ("distributed", place::<Distributed>("{}")),
        ("distributed, as torch", place::<Distributed>(r#"{"order": "torch"}"#)),
    ] {
        let found = chi(&places, &[1.0; 10]);
        assert!(found < 27.9, "{name}: chi-square with 9 degrees of freedom is {found}");
    }
}

#[test]
fn weights_say_how_often() {
    let weights = [0.1, 0.0, 3.0, 1.0, 1.0, 0.5, 2.4, 0.0];
    let options = format!(r#"{{"weights": {weights:?}, "num_samples": 20000}}"#);
    let drawn = ints(&drive::<Weighted>(&options, 8, &small_host()).unwrap(), DRAWN);
    let found = chi(&drawn, &weights);
    assert!(found < 20.5, "chi-square with 5 degrees of freedom is {found}");
    assert_eq!(draws::<Weighted>(r#"{"weights": [1, 2, 3]}"#, 3).len(), 3);
}

#[test]
fn without_replacement_the_heavy_come_sooner() {
    let weights = [1.0, 2.0, 3.0, 4.0];
    let options = format!(r#"{{"weights": {weights:?}, "replacement": false}}"#);
    // The first of each order is drawn as by weight, and each order has all.
    let first = |epoch| {
        let drawn = ints(&drive::<Weighted>(&options, 4, &small_host().epoch(epoch)).unwrap(), DRAWN);
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
        drawn[0]
    };
    let firsts: Vec<_> = (0..4000).map(first).collect();
    let found = chi(&firsts, &weights);
    assert!(found < 16.3, "chi-square with 3 degrees of freedom is {found}");
    check_resume(|| make::<Weighted>(&options), &count(4));
    let some = r#"{"weights": [1, 0, 1], "replacement": false, "num_samples": 3}"#;
    assert_eq!(refused::<Weighted>(some, 3).as_deref(), Some("num_samples"));
    for wrong in ["[]", "[0, 0]", "[1, -1]", "[1, 2, 3]"] {
        let options = format!(r#"{{"weights": {wrong}}}"#);
        assert_eq!(refused::<Weighted>(&options, 2).as_deref(), Some("weights"), "{wrong}");
    }
}

#[test]
fn a_slice_is_pythons_b079() {
    let reference = |start: Option<i64>, stop: Option<i64>, step: i64| -> Vec<i64> {
        let all: Vec<i64> = (0..20).collect();
        let inside = |at: i64| {
            let behind =
                start.is_none_or(|start| if step > 0 { at >= clamp(start) } else { at <= clamp(start) });
            let before = stop.is_none_or(|stop| if step > 0 { at < clamp(stop) } else { at > clamp(stop) });
            behind && before
        };
        let mut some: Vec<i64> = all.into_iter().filter(|&at| inside(at)).collect();
        if step < 0 {
            some.reverse();
        }
        some.into_iter().step_by(step.unsigned_abs() as usize).collect()
    };
    let ends = |from: i64| std::iter::once(None).chain((from..8).map(Some)).chain([Some(25), Some(-25)]);
    for step in [-2, -1, 1, 2] {
        for start in ends(-8) {
            for stop in ends(-9) {
                let text = |end: Option<i64>| end.map_or("null".to_owned(), |end| end.to_string());
                let options =
                    format!(r#"{{"start": {}, "stop": {}, "step": {step}}}"#, text(start), text(stop));
                let drawn = ints(&drive::<Subset>(&options, 20, &small_host()).unwrap(), DRAWN);
                assert_eq!(drawn, reference(start, stop, step), "{options}");
            }
        }
    }
    assert_eq!(draws::<Subset>(r#"{"start": 2, "stop": 18, "step": 3}"#, 20), [2, 5, 8, 11, 14, 17]);
}

/// Where an end of a slice of twenty is, counted from the start.
fn clamp(end: i64) -> i64 {
    if end < 0 { end + 20 } else { end }
}

#[test]
fn a_subset_is_a_list() {
    assert_eq!(draws::<Subset>(r#"{"indices": [4, 0, 9]}"#, 10), [4, 0, 9]);
    let mut random = draws::<Subset>(r#"{"indices": [4, 0, 9, 7, 2, 3], "shuffle": true}"#, 10);
    assert_ne!(random, [4, 0, 9, 7, 2, 3]);
    random.sort_unstable();
    assert_eq!(random, [0, 2, 3, 4, 7, 9]);
    let twice = drive::<Subset>(r#"{"indices": [4, 4, 1]}"#, 5, &small_host()).unwrap();
    assert_eq!(ints(&twice, AGAIN), [1, 2, 3]);
    assert_eq!(refused::<Subset>(r#"{"indices": [4, 10]}"#, 10).as_deref(), Some("indices"));
    assert_eq!(refused::<Subset>(r#"{"indices": [4], "start": 1}"#, 10).as_deref(), Some("indices"));
    assert_eq!(refused::<Subset>(r#"{"step": 0}"#, 10).as_deref(), Some("step"));
}

/// What each rank draws.
fn shares(options: &str, of: i64, ranks: u32) -> Vec<Vec<i64>> {
    let share = |rank| drive::<Distributed>(options, of, &small_host().rank(rank, ranks)).unwrap();
    (0..ranks).map(|rank| ints(&share(rank), DRAWN)).collect()
}

#[test]
fn ranks_share_what_there_is_b110_b111() {
    let mut all = shares("{}", 100, 5).concat();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    for (options, len) in [("{}", 34), (r#"{"drop_last": true}"#, 33)] {
        assert!(shares(options, 100, 3).iter().all(|share| share.len() == len), "{options}");
    }
    assert_eq!(shares(r#"{"shuffle": false}"#, 10, 4), [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]);
    assert_eq!(shares(r#"{"shuffle": false}"#, 1, 3), [[0], [0], [0]]);
    assert_eq!(shares("{}", 0, 3), [[]; 3] as [[i64; 0]; 3]);
    let repeat = r#"{"shuffle": false, "repeat": [8, 2]}"#;
    assert_eq!(shares(repeat, 10, 4), [[0, 4, 8], [1, 5, 9], [2, 6, 8], [3, 7, 2]]);
    assert_eq!(shares(r#"{"shuffle": false, "repeat": [0]}"#, 1, 3), [[0], [0], [0]]);
    assert_eq!(refused::<Distributed>(repeat, 8).as_deref(), Some("repeat"));
    for options in [r#"{"repeat": [1, 1]}"#, r#"{"repeat": [1], "drop_last": true}"#] {
        let options = DistributedSamplerOptions::parse(options).unwrap();
        assert_eq!(Distributed::new(options).unwrap_err().get("option"), Some("repeat"));
    }
    assert_eq!(draws::<Distributed>("{}", 12).len(), 12);
}

#[test]
fn other_ranks_go_on_from_a_position() {
    let options = r#"{"shuffle": false}"#;
    let input = count(12);
    let host = |rank, ranks| small_host().rank(rank, ranks);
    let mut first = Drive::with_host(make::<Distributed>(options), &input, 1, &host(0, 2));
    first.run(1, 3).unwrap();
    let rest = |rank| {
        let mut other = first.resume_on(make::<Distributed>(options), &host(rank, 3));
        other.run(1, usize::MAX).unwrap();
        ints(other.out(), DRAWN)
    };
    assert_eq!([rest(0), rest(1), rest(2)], [[6, 9], [7, 10], [8, 11]]);
}

#[test]
fn a_position_of_more_than_a_number_holds_is_refused() {
    let (host, state) = (small_host().rank(1, 2), State::json(VERSION, &(Some(u64::MAX), 7_u64)).unwrap());
    let error = make::<Distributed>("{}").restore(&state, &host.context()).unwrap_err();
    assert!(error.message().contains("in rounds of 2"), "{error}");
    make::<Distributed>(r#"{"drop_last": true}"#).restore(&state, &host.context()).unwrap();
}

#[test]
fn the_order_of_torch_is_torchs() {
    let order = |seed, epoch, of| {
        let host = small_host().seed(seed).epoch(epoch);
        ints(&drive::<Distributed>(r#"{"order": "torch"}"#, of, &host).unwrap(), DRAWN)
    };
    // torch.randperm(10, generator=torch.Generator().manual_seed(0)), and with 42.
    assert_eq!(order(0, 0, 10), [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]);
    assert_eq!(order(42, 0, 10), [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]);
    assert_eq!(order(40, 2, 10), order(42, 0, 10), "the epoch is added to the seed");
    assert_eq!(refused::<Distributed>(r#"{"order": "torch"}"#, 1 << 40).as_deref(), Some("order"));
}

#[test]
fn a_sampler_wants_a_count() {
    let input = [sample(0, &[("value", 3_i64.into())])];
    let mut drive = Drive::new(make::<Sequential>("{}"), &input, 1);
    assert!(drive.run(1, 10).unwrap_err().message().contains("random access"));
    // Endless: the first of a million million at once.
    let input = count(1_000_000_000_000);
    let mut setup = Setup::new(&[&input]);
    setup.most = 100;
    setup.check(|| make::<Random>("{}"));
    setup.check_resume(|| make::<Random>("{}"));
}
