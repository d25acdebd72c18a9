//! Tests of `mix`.

use std::collections::HashMap;

use forebay_core::{Options, random::Rng};

use super::*;
use crate::testing::{Drive, Host, Setup, ints, numbers, small_host, uid_of};

fn mix(options: &str) -> Mix {
    Mix::new(MixOptions::parse(options).unwrap()).unwrap()
}

const CYCLING: [&str; 2] = ["cycle_until_all_exhausted", "cycle_forever"];

fn stop(stop: &str) -> String {
    format!(r#"{{"stop": "{stop}", "tag": "from"}}"#)
}

/// How often each input was drawn.
fn counts(out: &[Sample], inputs: usize) -> Vec<usize> {
    let from = ints(out, "from");
    (0..inputs).map(|input| from.iter().filter(|&&from| from == input as i64).count()).collect()
}

fn run(options: &str, inputs: &[&[Sample]], most: usize, host: &Host) -> Vec<Sample> {
    let mut drive = Drive::wide(mix(options), inputs, 1, 3, host);
    drive.run(4, most).unwrap();
    drive.out()[..drive.out().len().min(most)].to_vec()
}

fn host(seed: u64, epoch: u64) -> Host {
    small_host().seed(seed).epoch(epoch)
}

#[test]
fn all_four_ends_b089() {
    let ten = numbers(10);
    let inputs = [&ten[..]; 4];
    for seed in 0..10 {
        let run = |stop_at: &str| counts(&run(&stop(stop_at), &inputs, 256, &host(seed, 0)), 4);
        assert_eq!(run("first_exhausted").iter().max(), Some(&10));
        assert_eq!(run("all_exhausted"), [10; 4]);
        assert!(run("cycle_until_all_exhausted").iter().all(|&count| count >= 10));
        assert_eq!(run("cycle_forever").iter().sum::<usize>(), 256);
    }
}

/// One sample of a reference: which input it is of, in which pass of that, and its number there.
struct Drawn {
    input: usize,
    pass: u64,
    number: usize,
}

/// What the pipe is defined to give, written out plainly.
fn reference(
    stop: &str,
    draw: &str,
    lengths: &[usize],
    weights: &[f64],
    host: &Host,
    most: usize,
) -> Vec<Drawn> {
    let (mut at, mut done) = (vec![0; lengths.len()], vec![false; lengths.len()]);
    let (mut pass, mut given) = (vec![0; lengths.len()], vec![0; lengths.len()]);
    let mut left: Vec<usize> = (0..lengths.len()).collect();
    let mut out = Vec::new();
    let mut draws = 0;
    while out.len() < most && !left.is_empty() {
        if stop == "cycle_until_all_exhausted" && done.iter().all(|&done| done) {
            break;
        }
        let drawn = match draw {
            "sampled" => sampled(&left, weights, host.context().rng(draws).f64()),
            _ => due(&left, weights, &given),
        };
        if at[drawn] < lengths[drawn] {
            out.push(Drawn { input: drawn, pass: pass[drawn], number: at[drawn] });
            at[drawn] += 1;
            given[drawn] += 1;
            draws += 1;
            continue;
        }
        done[drawn] = true;
        match stop {
            "first_exhausted" => break,
            stop if stop == "all_exhausted" || lengths[drawn] == 0 => {
                left.retain(|&input| input != drawn);
                draws += 1;
                given.fill(0);
            }
            _ => {
                at[drawn] = 0;
                pass[drawn] += 1;
            }
        }
    }
    out
}

/// The input in whose part of the sum of the weights a point lies, which is given as a part of 1.
fn sampled(left: &[usize], weights: &[f64], point: f64) -> usize {
    let point = point * left.iter().map(|&input| weights[input]).sum::<f64>();
    let mut sum = 0.0;
    let mut inputs = left.iter().copied();
    let holds = |input: &usize| {
        sum += weights[*input];
        point < sum
    };
    inputs.find(holds).unwrap()
}

/// Of the inputs that with one more have no more than their share rounded up, that whose next sample is due first.
fn due(left: &[usize], weights: &[f64], given: &[u32]) -> usize {
    let whole: f64 = left.iter().map(|&input| weights[input]).sum();
    let next = f64::from(1 + left.iter().map(|&input| given[input]).sum::<u32>());
    let may = left.iter().copied().filter(|&input| f64::from(given[input]) < weights[input] * next / whole);
    let time = |input: usize| f64::from(given[input] + 1) / weights[input];
    may.min_by(|&one, &other| time(one).total_cmp(&time(other))).unwrap()
}

#[test]
fn equals_the_definition_and_goes_on_from_every_moment() {
    let weights = [1.0, 2.0, 0.5];
    for lengths in [&[10, 20][..], &[3, 1, 2], &[0, 4, 1], &[0, 0], &[5]] {
        let inputs: Vec<_> = lengths.iter().map(|&length| numbers(length)).collect();
        let inputs: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
        let weights = &weights[..lengths.len()];
        for stop in ["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"] {
            let options = format!(r#"{{"stop": "{stop}", "tag": "from", "weights": {weights:?}}}"#);
            let most = if stop == "cycle_forever" && *lengths != [0, 0] { 25 } else { usize::MAX };
            let setup = Setup { most, ..Setup::new(&inputs) };
            let out = setup.check(|| mix(&options)).swap_remove(0);
            let found: Vec<_> =
                ints(&out, "from").into_iter().map(|from| from as usize).zip(ints(&out, "value")).collect();
            let wanted = reference(stop, "sampled", lengths, weights, &small_host(), most);
            let wanted: Vec<_> = wanted.iter().map(|drawn| (drawn.input, drawn.number as i64)).collect();
            assert_eq!(found, wanted, "{stop} {lengths:?}");
            if lengths.iter().sum::<usize>() < 12 {
                setup.check_resume(|| mix(&options));
            }
        }
    }
}

#[test]
fn weights_are_met_n1() {
    let (weights, total) = ([0.5, 2.0, 1.0], 20_000);
    let one = numbers(1);
    let options = format!(r#"{{"stop": "cycle_forever", "tag": "from", "weights": {weights:?}}}"#);
    let found = counts(&run(&options, &[&one, &one, &one], total, &host(3, 0)), 3);
    let mut chi = 0.0;
    for (count, weight) in found.into_iter().zip(weights) {
        let share = weight / 3.5;
        chi += (count as f64 - total as f64 * share).powi(2) / (total as f64 * share);
        let sigma = (total as f64 * share * (1.0 - share)).sqrt();
        assert!((count as f64 - total as f64 * share).abs() < 3.0 * sigma, "{count} of weight {weight}");
    }
    assert!(chi < 13.8, "chi-square with 2 degrees of freedom is {chi}");
}

#[test]
fn seed_and_epoch_decide_b090() {
    let ten = numbers(10);
    let order =
        |seed, epoch| ints(&run(&stop("cycle_forever"), &[&ten, &ten], 60, &host(seed, epoch)), "from");
    assert_eq!(order(1, 0), order(1, 0));
    assert_ne!(order(1, 0), order(2, 0));
    assert_ne!(order(1, 0), order(1, 1));
}

#[test]
fn inputs_without_samples_end() {
    for stop_at in CYCLING {
        assert!(run(&stop(stop_at), &[&[], &[]], 9, &small_host()).is_empty());
        let one = numbers(1);
        let out = run(&stop(stop_at), &[&[], &one, &[]], 9, &small_host());
        assert!(counts(&out, 3)[1] == out.len() && !out.is_empty());
    }
}

#[test]
fn every_pass_of_every_input_has_uids_of_its_own() {
    let ten = numbers(10);
    let out = run(&stop("cycle_forever"), &[&ten, &ten, &ten], 200, &small_host());
    let mut seen = HashMap::new();
    for sample in &out {
        *seen.entry(sample.uid()).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 200);
}

#[test]
fn tags_say_where_from_n4() {
    let ten = numbers(10);
    let names = r#"{"tag": "from", "names": ["web", "books"]}"#;
    let out = run(names, &[&ten, &ten], 20, &small_host());
    let numbered = run(r#"{"tag": "from"}"#, &[&ten, &ten], 20, &small_host());
    for (named, numbered) in out.iter().zip(&numbered) {
        let at = numbered.get("from").unwrap().as_i64().unwrap() as usize;
        assert_eq!(named.get("from").unwrap().as_str(), Some(["web", "books"][at]));
    }
    assert!(out[0].schema().is(out[5].schema()) || out[0].schema() == out[5].schema());
    let mut drive = Drive::new(mix(r#"{"tag": "value"}"#), &ten, 1);
    assert_eq!(drive.run(1, 10).unwrap_err().get("field"), Some("value"));
}

#[test]
fn other_weights_apply_from_a_saved_position_on() {
    let ten = numbers(10);
    let inputs = [&ten[..], &ten];
    let with = |weights| mix(&format!(r#"{{"stop": "cycle_forever", "tag": "from", "weights": {weights}}}"#));
    let mut drive = Drive::wide(with("[1, 1]"), &inputs, 1, 3, &small_host());
    drive.run(1, 20).unwrap();
    let mut other = drive.resume(with("[1, 1e-9]"));
    other.run(1, 120).unwrap();
    assert_eq!(counts(other.out(), 2), [100, 0]);
}

#[test]
fn what_does_not_go_together_is_refused_n7() {
    for (options, option) in [
        (r#"{"weights": [1, 0]}"#, "weights"),
        (r#"{"weights": [1, -2.5]}"#, "weights"),
        (r#"{"weights": [1e308, 1e308]}"#, "weights"),
        (r#"{"weights": [1, 2], "after": [9], "then": [1, 2, 3]}"#, "then"),
        (r#"{"weights": [1, 2], "after": [9], "then": [1, 0]}"#, "then"),
        (r#"{"weights": [1, 2], "after": [9]}"#, "then"),
        (r#"{"weights": [1, 2], "then": [1, 2]}"#, "then"),
        (r#"{"then": [1, 2]}"#, "then"),
        (r#"{"weights": [1, 2], "after": [9, 9], "then": [1, 2, 3, 4], "tag": "from"}"#, "after"),
        (r#"{"after": [9]}"#, "after"),
        (r#"{"names": ["a", "b"]}"#, "names"),
        (r#"{"tag": "from", "names": ["a", "a"]}"#, "names"),
        (r#"{"tag": "from", "names": ["a", "b"], "weights": [1, 2, 3]}"#, "names"),
    ] {
        let error = Mix::new(MixOptions::parse(options).unwrap()).unwrap_err();
        assert_eq!(error.get("option"), Some(option));
    }
    assert_eq!(MixOptions::parse(r#"{"stop": "sometime"}"#).unwrap_err().get("option"), Some("stop"));
    let one = numbers(1);
    for (options, option) in
        [(r#"{"weights": [1]}"#, "weights"), (r#"{"tag": "from", "names": ["a", "b", "c"]}"#, "names")]
    {
        let mut drive = Drive::wide(mix(options), &[&one, &one], 1, 1, &small_host());
        assert_eq!(drive.run(1, 1).unwrap_err().get("option"), Some(option));
        assert_eq!(drive.step(1).unwrap(), Step::End, "the error comes once");
    }
}

/// An input that holds these values.
fn values(values: &[i64]) -> Vec<Sample> {
    let one = |(at, &value): (usize, &i64)| crate::testing::sample(at as u64, &[("value", value.into())]);
    values.iter().enumerate().map(one).collect()
}

#[test]
fn proportional_draws_b093() {
    let (even, odd) = (values(&[0, 2, 4, 6, 8]), values(&[1, 3, 5, 7, 9]));
    let inputs = [&even[..], &odd];
    let run = |stop: &str, most: usize| {
        let options = format!(r#"{{"stop": "{stop}", "weights": [0.75, 0.25], "draw": "proportional"}}"#);
        let setup = Setup { most, ..Setup::new(&inputs) };
        setup.check_resume(|| mix(&options));
        ints(&setup.check(|| mix(&options))[0], "value")
    };
    assert_eq!(run("first_exhausted", usize::MAX), [0, 2, 4, 1, 6, 8]);
    assert_eq!(run("cycle_forever", 12), [0, 2, 4, 1, 6, 8, 0, 3, 2, 4, 6, 5]);
    assert_eq!(run("all_exhausted", usize::MAX), [0, 2, 4, 1, 6, 8, 3, 5, 7, 9]);
}

#[test]
fn proportional_counts_are_the_shares_rounded_at_every_moment() {
    let one = numbers(1);
    let mut rng = Rng::new(8, 0);
    for count in [1, 2, 3, 5, 9] {
        let weights: Vec<f64> = (0..count).map(|_| (1 + rng.below(40)) as f64 / 8.0).collect();
        let inputs = vec![&one[..]; count];
        let options = format!(
            r#"{{"stop": "cycle_forever", "tag": "from", "weights": {weights:?}, "draw": "proportional"}}"#
        );
        let from = ints(&run(&options, &inputs, 600, &host(1, 0)), "from");
        assert_eq!(from, ints(&run(&options, &inputs, 600, &host(2, 5)), "from"), "no seed has a part in it");
        let (whole, mut given) = (weights.iter().sum::<f64>(), vec![0; count]);
        for (at, &input) in from.iter().enumerate() {
            given[input as usize] += 1;
            for (given, weight) in given.iter().zip(&weights) {
                let share = weight * (at + 1) as f64 / whole;
                assert!((f64::from(*given) - share).abs() < 1.0, "{given} for a share of {share}");
            }
        }
    }
}

#[test]
fn shares_are_of_the_inputs_that_are_left() {
    let inputs = [numbers(2), numbers(9), numbers(0), numbers(9)];
    let inputs = inputs.each_ref().map(Vec::as_slice);
    let options =
        r#"{"stop": "all_exhausted", "tag": "from", "weights": [2, 1, 1, 1], "draw": "proportional"}"#;
    let setup = Setup::new(&inputs);
    setup.check_resume(|| mix(options));
    let from = ints(&setup.check(|| mix(options))[0], "from");
    assert_eq!(from[..9], [0, 1, 0, 1, 3, 1, 3, 1, 3], "in turn once the others are out");
    assert_eq!(counts(&setup.check(|| mix(options))[0], 4), [2, 9, 0, 9]);
}

#[test]
fn weights_change_on_the_way_n1() {
    let one = numbers(1);
    let inputs = [&one[..], &one];
    for draw in ["sampled", "proportional"] {
        let options = format!(
            r#"{{"stop": "cycle_forever", "tag": "from", "weights": [1e-9, 1], "after": [10, 14], "then": [1, 1e-9, 1, 3], "draw": "{draw}"}}"#
        );
        let setup = Setup { most: 34, ..Setup::new(&inputs) };
        setup.check_resume(|| mix(&options));
        let from = ints(&setup.check(|| mix(&options))[0], "from");
        assert_eq!((&from[..10], &from[10..14]), (&[1; 10][..], &[0; 4][..]), "{draw}");
        let last = from[14..].iter().filter(|&&from| from == 1).count();
        assert!(if draw == "sampled" { last > 9 } else { last == 15 }, "{draw}: {last}");
    }
    let (ten, none) = (numbers(10), numbers(0));
    let options = r#"{"stop": "all_exhausted", "weights": [9, 9, 1e-9], "after": [5], "then": [1, 1, 1], "tag": "from"}"#;
    let from = ints(&run(options, &[&none, &ten, &ten], 99, &small_host()), "from");
    assert_eq!(from[..5], [1; 5], "what was drawn in vain does not count");
}

#[test]
fn other_weights_begin_new_shares() {
    let ten = numbers(10);
    let inputs = [&ten[..], &ten];
    let with = |weights| {
        mix(&format!(
            r#"{{"stop": "cycle_forever", "tag": "from", "weights": {weights}, "draw": "proportional"}}"#
        ))
    };
    let mut drive = Drive::wide(with("[1, 9]"), &inputs, 1, 3, &small_host());
    drive.run(1, 20).unwrap();
    let mut pipe = with("[1, 1]");
    pipe.restore(&drive.state().unwrap(), &small_host().context()).unwrap();
    drive.replace(pipe);
    drive.run(1, 26).unwrap();
    assert_eq!(ints(&drive.out()[20..], "from"), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn equals_the_definition_for_inputs_of_any_length_and_weight() {
    let mut rng = Rng::new(36, 0);
    for round in 0..30 {
        let lengths: Vec<_> = (0..1 + round % 4).map(|_| rng.below(6) as usize).collect();
        let weights: Vec<_> = lengths.iter().map(|_| (1 + rng.below(16)) as f64 / 8.0).collect();
        let inputs: Vec<_> = lengths.iter().map(|&length| numbers(length)).collect();
        let setup = Setup::new(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for stop in ["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"] {
            for draw in ["sampled", "proportional"] {
                let options = format!(r#"{{"stop": "{stop}", "draw": "{draw}", "weights": {weights:?}}}"#);
                let endless = stop == "cycle_forever" && lengths.iter().any(|&length| length > 0);
                let most = if endless { 40 } else { usize::MAX };
                let wanted: Vec<_> = reference(stop, draw, &lengths, &weights, &small_host(), most)
                    .into_iter()
                    .map(|drawn| {
                        let mut sample = inputs[drawn.input][drawn.number].clone();
                        sample.set_uid(uid_of(sample.uid(), [drawn.input as u64, drawn.pass]));
                        sample
                    })
                    .collect();
                let setup = Setup { most, ..Setup::new(&setup.inputs) };
                assert_eq!(setup.check(|| mix(&options))[0], wanted, "{options} {lengths:?}");
                Setup { most: 15, ..Setup::new(&setup.inputs) }.check_resume(|| mix(&options));
            }
        }
    }
}
