//! Plain references, over random inputs, of the pipes whose definitions are a line each.

use forebay_core::{DataPipe as _, NoOptions, Options, Sample, Value, random::Rng};

use crate::{
    AssertLength, AssertLengthOptions, Filter, FilterOptions, InBatchShuffle, Map, MapOptions, PadToLength,
    PadToLengthOptions, RepeatEach, RepeatEachOptions, Skip, SkipOptions, Subsample, SubsampleOptions, Take,
    TakeOptions,
    testing::{check, check_resume, expand, ints, map, sample, small_host},
};

/// Up to 11 samples with numbers below 12, and the numbers.
fn any(rng: &mut Rng) -> (Vec<i64>, Vec<Sample>) {
    let values: Vec<_> = (0..rng.below(12)).map(|_| rng.below(12) as i64).collect();
    let of = |(&value, uid): (&i64, u64)| sample(uid, &[("value", value.into())]);
    let samples = values.iter().zip(0..).map(of).collect();
    (values, samples)
}

/// That a stream gives this, however it is fed, and goes on from every place.
macro_rules! gives {
    ($pipe:ident, $options:ident: $text:expr, $input:expr, $wanted:expr) => {{
        let text = $text;
        let make = || $pipe::new($options::parse(&text).unwrap()).unwrap();
        assert_eq!(check(make, $input), $wanted, "{} {text}", stringify!($pipe));
        check_resume(make, $input);
    }};
}

#[test]
fn streams_that_give_some_of_their_input() {
    let mut rng = Rng::new(71, 0);
    for _ in 0..60 {
        let (values, input) = any(&mut rng);
        let count = rng.below(13) as usize;
        let options = format!(r#"{{"count": {count}}}"#);
        gives!(Take, TakeOptions: &options, &input, input[..count.min(input.len())]);
        gives!(Skip, SkipOptions: &options, &input, input[count.min(input.len())..]);
        gives!(AssertLength, AssertLengthOptions: format!(r#"{{"count": {}}}"#, input.len()), &input, input);

        let (divisor, least) = (1 + rng.below(5) as i64, rng.below(5) as i64);
        let passes = |(_, value): &(&Sample, &i64)| **value % divisor < least;
        let passed: Vec<_> =
            input.iter().zip(&values).filter(passes).map(|(sample, _)| sample.clone()).collect();
        let predicate = format!(r#"{{"predicate": "value % {divisor} < {least}"}}"#);
        gives!(Filter, FilterOptions: &predicate, &input, passed);

        let keep = rng.below(11) as f64 / 10.0;
        let host = small_host();
        let kept: Vec<_> =
            input.iter().filter(|sample| host.context().rng(sample.uid()).f64() < keep).cloned().collect();
        let options = format!(r#"{{"keep": {keep}, "epochs": "anew"}}"#);
        gives!(Subsample, SubsampleOptions: &options, &input, kept);
    }
}

#[test]
fn a_stream_that_is_padded() {
    let mut rng = Rng::new(72, 0);
    for _ in 0..60 {
        let (values, input) = any(&mut rng);
        let (count, multiple) = (rng.below(15) as usize, 1 + rng.below(6) as usize);
        let Some(&last) = values.last() else { continue };
        let whole = values.len().max(count).next_multiple_of(multiple);
        let text = format!(r#"{{"count": {count}, "multiple": {multiple}}}"#);
        let make = || PadToLength::new(PadToLengthOptions::parse(&text).unwrap()).unwrap();
        let out = check(make, &input);
        let wanted = [values.clone(), vec![last; whole - values.len()]].concat();
        assert_eq!(ints(&out, "value"), wanted, "{text} of {values:?}");
        let valid: Vec<_> = out.iter().map(|sample| sample.get("valid").cloned()).collect();
        let came = (0..whole).map(|at| Some(Value::from(at < values.len()))).collect::<Vec<_>>();
        assert_eq!(valid, came, "{text} of {values:?}");
        check_resume(make, &input);
    }
}

#[test]
fn what_changes_or_multiplies_each_sample() {
    let mut rng = Rng::new(73, 0);
    let host = small_host();
    for _ in 0..60 {
        let (values, input) = any(&mut rng);
        let (factor, more) = (rng.below(9) as i64 - 4, rng.below(9) as i64 - 4);
        let options = format!(r#"{{"fields": ["value=value * {factor} + {more}", "was=value"]}}"#);
        let pipe = Map::new(MapOptions::parse(&options).unwrap()).unwrap();
        for (value, input) in values.iter().zip(&input) {
            let fields = [("value", (value * factor + more).into()), ("was", (*value).into())];
            assert_eq!(map(&pipe, input, &host).unwrap(), sample(input.uid(), &fields), "{options}");
        }
        let count = 1 + rng.below(5);
        let pipe = RepeatEach::new(RepeatEachOptions { count }).unwrap();
        let wanted: Vec<_> = values.iter().flat_map(|&value| vec![value; count as usize]).collect();
        assert_eq!(ints(&expand(&pipe, &input).unwrap(), "value"), wanted, "{count}");

        // The order by Fisher and Yates, from the back, of the draws that the batch's uid has.
        let uid = rng.below(100);
        let items = |values: &[i64]| Value::list(values.iter().map(|&value| value.into()).collect());
        let (mut wanted, mut draws) = (values.clone(), host.context().rng(uid));
        for end in (1..wanted.len()).rev() {
            wanted.swap(end, draws.below(end as u64 + 1) as usize);
        }
        let pipe = InBatchShuffle::new(NoOptions).unwrap();
        let batch = sample(uid, &[("values", items(&values))]);
        assert_eq!(map(&pipe, &batch, &host).unwrap().get("values"), Some(&items(&wanted)), "{values:?}");
    }
}
