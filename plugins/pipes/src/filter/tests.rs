//! What `filter` keeps, and what it says of what it drops.

use forebay_core::{Options, Sample, Value};
use forebay_testkit::logged;

use super::*;
use crate::testing::{Drive, check, check_resume, errors, ints, numbers, sample};

fn filter(predicate: &str) -> Filter {
    filter_with(predicate, "")
}

/// With more options.
fn filter_with(predicate: &str, more: &str) -> Filter {
    Filter::new(FilterOptions::parse(&format!(r#"{{"predicate": "{predicate}"{more}}}"#)).unwrap()).unwrap()
}

#[test]
fn keeps_what_holds_in_its_order() {
    for (predicate, wanted) in [
        ("value % 3 == 0", vec![0, 3, 6, 9, 12]),
        ("value > 12", vec![13]),
        ("false", vec![]),
        ("true", (0..14).collect()),
    ] {
        assert_eq!(ints(&check(|| filter(predicate), &numbers(14)), "value"), wanted, "{predicate}");
        check_resume(|| filter(predicate), &numbers(14));
    }
    assert!(check(|| filter("true"), &[]).is_empty());
}

#[test]
fn drops_all_and_ends_b029() {
    let input = numbers(10);
    let mut drive = Drive::new(filter("value > 100"), &input, 3);
    drive.run(2, 1).unwrap();
    assert!(drive.out().is_empty() && drive.fed() == 10 && drive.told_the_end());
}

#[test]
fn goes_on_behind_a_saved_position_b031() {
    let input = numbers(10);
    let mut drive = Drive::new(filter("value % 2 == 0"), &input, 1);
    drive.run(1, 2).unwrap();
    let mut other = drive.resume(filter("value % 2 == 0"));
    other.run(1, 5).unwrap();
    assert_eq!((ints(drive.out(), "value"), ints(other.out(), "value")), (vec![0, 2], vec![4, 6, 8]));
}

#[test]
fn what_is_left_is_batched_b038() {
    let batch = || crate::Batch::new(crate::BatchOptions::parse(r#"{"size": 2}"#).unwrap()).unwrap();
    let even = check(|| filter("value % 2 == 0"), &numbers(9)[1..]);
    let batches: Vec<_> =
        check(batch, &even).iter().map(|one| ints(std::slice::from_ref(one), "value")).collect();
    assert_eq!(batches, [[2, 4], [6, 8]]);
}

#[test]
fn a_sample_that_fails_is_named_and_the_others_come() {
    let bad = |at: u64| if at % 4 == 1 { Value::from("x") } else { Value::from(at as i64) };
    let input: Vec<Sample> = (0..9).map(|at| sample(at, &[("value", bad(at))])).collect();
    let mut drive = Drive::new(filter("value < 7"), &input, 2);
    let errors = errors(&mut drive);
    let names: Vec<_> = errors.iter().map(|error| error.get("sample").unwrap()).collect();
    assert_eq!(names, ["test#1", "test#5"]);
    assert!(errors[0].message().contains("text cannot be compared"), "{}", errors[0]);
    assert_eq!(ints(drive.out(), "value"), [0, 2, 3, 4, 6]);
}

#[test]
fn a_predicate_must_be_one() {
    assert_eq!(FilterOptions::parse("{}").unwrap_err().get("option"), Some("predicate"));
    let error = Filter::new(FilterOptions::parse(r#"{"predicate": "value <"}"#).unwrap()).unwrap_err();
    assert_eq!(error.get("option"), Some("predicate"));
    let mut drive_input = numbers(1);
    let mut drive = Drive::new(filter("value"), &drive_input, 1);
    let error = loop {
        if let Err(error) = drive.step(1) {
            break error;
        }
    };
    assert!(error.message().contains("it gives an integer"), "{error}");
    drive_input.clear();
}

#[test]
fn a_random_share_b143() {
    let input = numbers(1000);
    for (share, wanted) in [("1.0", 1000..=1000), ("0.0", 0..=0), ("0.1", 80..=120)] {
        let predicate = format!("random() < {share}");
        let out = check(|| filter(&predicate), &input);
        assert!(wanted.contains(&out.len()), "{share}: {}", out.len());
    }
    check_resume(|| filter("random() < 0.5"), &numbers(12));
}

#[test]
fn batches_by_what_their_numbers_come_to_b030() {
    let batch = || crate::Batch::new(crate::BatchOptions::parse(r#"{"size": 4}"#).unwrap()).unwrap();
    let out = check(|| filter("sum(value) % 10 == 0"), &check(batch, &numbers(20)));
    assert_eq!((out.len(), ints(&out, "value")), (1, vec![16, 17, 18, 19]));
}

#[test]
fn dropping_too_many_is_an_error_or_a_warning_b033() {
    let input = numbers(1000);
    let raise = r#", "raise_threshold_ratio": 0.9"#;
    let mut drive = Drive::new(filter_with("false", raise), &input, 64);
    let error = drive.run(8, 1).unwrap_err();
    let told = "100 % of the samples were dropped, 1000 of 1000; at most 90 % may be";
    assert_eq!((error.message(), error.get("option")), (told, Some("raise_threshold_ratio")));
    drop(logged());
    let mut drive = Drive::new(filter_with("false", r#", "warn_threshold_ratio": 0.9"#), &input, 64);
    drive.run(8, 1).unwrap();
    assert_eq!(logged(), [format!("{told} (warn_threshold_ratio)")]);
    assert!(errors(&mut Drive::new(filter_with("value % 10 == 0", raise), &input, 64)).is_empty(), "90 %");
}

/// After how many samples, and how many of them kept, the shares of those dropped are first above these, by the definition.
fn judged(keeps: &[bool], most: f64, least: usize) -> Option<(usize, usize)> {
    (1..=keeps.len()).find_map(|seen| {
        let kept = keeps[..seen].iter().filter(|&&keeps| keeps).count();
        let above = (seen - kept) as f64 / seen as f64 > most;
        (above && (seen >= least || seen == keeps.len())).then_some((seen, kept))
    })
}

#[test]
fn the_share_is_judged_at_every_sample_from_so_many_on_and_at_the_end() {
    let mut rng = forebay_core::random::Rng::new(4, 0);
    let (mut told, mut at_the_end) = (0, 0);
    for _ in 0..60 {
        let count = rng.below(40) as usize;
        let (most, share) = (rng.below(11) as f64 / 10.0, rng.f64());
        let least = 1 + rng.below(30) as usize;
        let keeps: Vec<bool> = (0..count).map(|_| rng.bool(share)).collect();
        let input: Vec<_> =
            keeps.iter().zip(0..).map(|(&keep, at)| sample(at, &[("value", keep.into())])).collect();
        let more = format!(
            r#", "raise_threshold_ratio": {most}, "warn_threshold_ratio": {most}, "min_samples": {least}"#
        );
        let wanted = judged(&keeps, most, least);
        for (chunk, room) in [(1, 1), (3, 2), (40, 64)] {
            drop(logged());
            let mut drive = Drive::new(filter_with("value", &more), &input, chunk);
            let mut found = None;
            while found.is_none() {
                match drive.step(room) {
                    Ok(Step::End) => break,
                    Ok(_) => {}
                    Err(error) => found = Some((drive.taken(0), drive.out().len(), error)),
                }
            }
            assert_eq!(found.as_ref().map(|(seen, kept, _)| (*seen, *kept)), wanted, "{more} of {keeps:?}");
            assert_eq!(logged().len(), usize::from(wanted.is_some()));
            if let Some((seen, kept, error)) = found {
                assert!(error.message().contains(&format!("{} of {seen}; ", seen - kept)), "{error}");
            }
            assert!(errors(&mut drive).is_empty() && logged().is_empty(), "it is told once in a pass");
            assert_eq!(
                drive.out().len(),
                keeps.iter().filter(|&&keeps| keeps).count(),
                "all that is kept comes"
            );
        }
        told += usize::from(wanted.is_some());
        at_the_end += usize::from(wanted.is_some_and(|(seen, _)| seen < least));
    }
    assert!(told > 15 && told < 50 && at_the_end > 5, "{told} {at_the_end}");
}

#[test]
fn counts_go_on_behind_a_saved_position_and_begin_anew_with_a_pass() {
    let more = r#", "raise_threshold_ratio": 0.6, "warn_threshold_ratio": 0.5, "min_samples": 5"#;
    for (predicate, count) in
        [("value % 3 == 0", 14), ("value > 9", 12), ("value < 4", 14), ("false", 3), ("true", 0)]
    {
        check_resume(|| filter_with(predicate, more), &numbers(count));
    }
    let input = numbers(12);
    let mut drive = Drive::new(filter_with("value < 4", more), &input, 3);
    assert_eq!(errors(&mut drive).len(), 1);
    let saved: (u64, u64, bool, bool) = drive.state().unwrap().parse::<Option<_>>(VERSION).unwrap().unwrap();
    assert_eq!(saved, (4, 8, true, true));
    let mut again = Drive::new(drive.into_pipe(), &input, 3);
    assert_eq!(errors(&mut again).len(), 1, "again in the next pass");
    // A threshold that came or went since the position was saved.
    let (with, without) = (again.state().unwrap(), State::json(VERSION, &()).unwrap());
    let host = crate::testing::small_host();
    filter("true").restore(&with, &host.context()).unwrap();
    filter_with("true", more).restore(&without, &host.context()).unwrap();
    assert!(filter("true").restore(&State::json(VERSION, &"x").unwrap(), &host.context()).is_err());
}

#[test]
fn samples_that_fail_count_for_neither() {
    let bad = |at: u64| if at % 2 == 1 { Value::from("x") } else { Value::from(at as i64) };
    let input: Vec<Sample> = (0..20).map(|at| sample(at, &[("value", bad(at))])).collect();
    let make = || filter_with("value < 9", r#", "raise_threshold_ratio": 0.4, "min_samples": 2"#);
    let mut drive = Drive::new(make(), &input, 4);
    let found = errors(&mut drive);
    let told: Vec<_> = found.iter().filter(|error| error.get("sample").is_none()).collect();
    assert_eq!((found.len(), told.len()), (11, 1));
    assert!(
        told[0].message().starts_with("44.44 % of the samples were dropped, 4 of 9; at most 40 %"),
        "{}",
        told[0]
    );
    check_resume(make, &input);
}

#[test]
fn bad_thresholds_are_refused_by_name() {
    for (option, value) in [
        ("raise_threshold_ratio", "1.5"),
        ("raise_threshold_ratio", "-0.1"),
        ("warn_threshold_ratio", "90"),
        ("min_samples", "0"),
    ] {
        let options = format!(r#"{{"predicate": "true", "{option}": {value}}}"#);
        assert_eq!(FilterOptions::parse(&options).unwrap_err().get("option"), Some(option));
    }
}
