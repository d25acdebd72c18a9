//! The pipes, as a host calls them: options, fields, randomness, limits.
#![expect(clippy::unwrap_used, reason = "a test")]

use forebay_core::{
    Buffer, DType, DataPipe, Error, ErrorKind, Key, Limits, Map, Options, Sample, Str, Tensor, TensorExt,
};
use forebay_image::{
    CenterCrop, CropRange, Filter, Flip, IMAGENET_MEAN, IMAGENET_STD, Normalize, Pixels, RandomResizedCrop,
    Resize, flip, levels, normalize, resize,
};
use forebay_testkit::Host;

const SHAPE: [usize; 3] = [30, 44, 3];

fn bytes() -> Vec<u8> {
    (0..SHAPE.iter().product::<usize>()).map(|at| (at * 29 + at / 256) as u8).collect()
}

fn sample(uid: u64) -> Sample {
    let key = Key { origin: Str::from("shard.tar"), name: Str::from("0001"), index: 0 };
    let mut sample = Sample::new(uid, key);
    sample.set("cls", 5_i64);
    sample.set("jpg", Tensor::new(DType::U8, &SHAPE, bytes().into()).unwrap());
    sample
}

fn apply<M: Map>(options: &str, epoch: u64, sample: &mut Sample) -> Result<(), Error> {
    let pipe = M::new(M::Options::parse(options)?)?;
    pipe.map(sample, &Host::new().epoch(epoch).context())
}

fn mapped<M: Map>(options: &str, epoch: u64, uid: u64) -> (DType, Vec<i64>, Buffer) {
    let mut sample = sample(uid);
    apply::<M>(options, epoch, &mut sample).unwrap();
    assert_eq!(sample.get("cls").unwrap().as_i64(), Some(5));
    let tensor = sample.get("jpg").unwrap().as_tensor().unwrap();
    (tensor.dtype(), tensor.shape().to_vec(), tensor.data().clone())
}

/// Chi-square of how many fell into each class.
fn chi(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    assert!(expected.iter().all(|&expected| expected > 20.0), "{expected:?}");
    found.iter().zip(expected).map(|(found, expected)| (found - expected).powi(2) / expected).sum()
}

#[test]
fn flip_is_fair_and_repeatable() {
    let mut mirrored = vec![0; bytes().len()];
    flip(&Pixels::new(&bytes(), SHAPE).unwrap(), &mut mirrored).unwrap();
    let is_mirrored = |options: &str, epoch, uid| {
        let (_, shape, data) = mapped::<Flip>(options, epoch, uid);
        assert_eq!(shape, [30, 44, 3]);
        assert!(data == mapped::<Flip>(options, epoch, uid).2);
        assert!(data.as_slice() == bytes() || data.as_slice() == mirrored);
        data.as_slice() == mirrored
    };
    for p in [0.5, 0.1, 0.8] {
        // Of many samples in one epoch, and of one sample in many epochs.
        for samples in [true, false] {
            let options = format!(r#"{{"p": {p}}}"#);
            let drawn = (0..2000).map(|at| match samples {
                true => is_mirrored(&options, 0, at),
                false => is_mirrored(&options, at, 9),
            });
            let count = drawn.filter(|&mirrored| mirrored).count() as f64;
            let chi = chi(&[count, 2000.0 - count], &[2000.0 * p, 2000.0 * (1.0 - p)]);
            assert!(chi < 10.83, "{p}: chi-square with 1 degree of freedom is {chi}, above the 99.9 % bound");
        }
    }
    assert!(is_mirrored(r#"{"p": 1}"#, 0, 1));
    assert!(!is_mirrored(r#"{"p": 0}"#, 0, 1));
}

#[test]
fn the_draws_of_flip_in_two_epochs_know_nothing_of_each_other() {
    let mut mirrored = vec![0; bytes().len()];
    flip(&Pixels::new(&bytes(), SHAPE).unwrap(), &mut mirrored).unwrap();
    let mut found = [0.0; 4];
    for uid in 0..2000 {
        let drawn = [0, 1].map(|epoch| mapped::<Flip>("{}", epoch, uid).2.as_slice() == mirrored);
        found[usize::from(drawn[0]) * 2 + usize::from(drawn[1])] += 1.0;
    }
    let chi = chi(&found, &[500.0; 4]);
    assert!(chi < 16.27, "chi-square with 3 degrees of freedom is {chi}, above the 99.9 % bound: {found:?}");
}

/// A square of so many pixels a side, each of which holds its row and its column.
fn places(side: usize, uid: u64) -> Sample {
    let pixels = (0..side * side).flat_map(|at| [(at / side) as u8, (at % side) as u8, 0]);
    let mut sample = sample(uid);
    sample.set("jpg", Tensor::new(DType::U8, &[side, side, 3], pixels.collect::<Vec<_>>().into()).unwrap());
    sample
}

/// The rectangle that `random_resized_crop` cut from a square of `side` pixels: top, left, height and width. It writes more pixels than it reads.
fn cut_from(side: usize, options: &str, uid: u64) -> [usize; 4] {
    let mut sample = places(side, uid);
    apply::<RandomResizedCrop>(options, 0, &mut sample).unwrap();
    let data = sample.get("jpg").unwrap().as_tensor().unwrap().data().clone();
    let of = |channel: usize| data.iter().skip(channel).step_by(3).map(|&place| usize::from(place));
    let span = |channel| (of(channel).min().unwrap(), of(channel).max().unwrap());
    let ((top, bottom), (left, right)) = (span(0), span(1));
    [top, left, bottom - top + 1, right - left + 1]
}

#[test]
fn every_place_of_a_random_resized_crop_is_as_likely_as_any() {
    let mut found = [0.0; 36];
    for uid in 0..3600 {
        // A quarter of the area of ten pixels by ten: five by five, in one of six rows and of six columns.
        let options = r#"{"size": 10, "scale": [0.25, 0.25], "ratio": [1, 1], "filter": "nearest"}"#;
        let [top, left, height, width] = cut_from(10, options, uid);
        assert_eq!([height, width], [5, 5]);
        found[top * 6 + left] += 1.0;
    }
    let chi = chi(&found, &[100.0; 36]);
    assert!(chi < 66.62, "chi-square with 35 degrees of freedom is {chi}, above the 99.9 % bound: {found:?}");
}

#[test]
fn areas_and_ratios_of_a_random_resized_crop_are_drawn_as_they_should_be() {
    // A square whose area is even between 4 and 100 pixels has so many pixels a side with the probability of the areas that round to it.
    let edge = |side: f64| (side * side).clamp(4.0, 100.0);
    let expected: Vec<_> = (2..=10)
        .map(|side| 4000.0 * (edge(f64::from(side) + 0.5) - edge(f64::from(side) - 0.5)) / 96.0)
        .collect();
    let mut found = [0.0; 9];
    for uid in 0..4000 {
        let options = r#"{"size": 10, "scale": [0.04, 1], "ratio": [1, 1], "filter": "nearest"}"#;
        let [_, _, height, width] = cut_from(10, options, uid);
        assert_eq!(height, width);
        found[height - 2] += 1.0;
    }
    let areas = chi(&found, &expected);
    assert!(
        areas < 26.12,
        "chi-square with 8 degrees of freedom is {areas}, above the 99.9 % bound: {found:?}"
    );
    // The logarithm of the ratio is even: a tenth of the way from a half to two is a factor of 2^0.2.
    let mut found = [0.0; 10];
    for uid in 0..2000 {
        let options = r#"{"size": 160, "scale": [0.25, 0.25], "ratio": [0.5, 2], "filter": "nearest"}"#;
        let [_, _, height, width] = cut_from(200, options, uid);
        let tenth = (5.0 * (2.0 * width as f64 / height as f64).log2()).floor();
        found[(tenth as usize).min(9)] += 1.0;
    }
    let ratios = chi(&found, &[200.0; 10]);
    assert!(
        ratios < 27.88,
        "chi-square with 9 degrees of freedom is {ratios}, above the 99.9 % bound: {found:?}"
    );
}

#[test]
fn random_resized_crop_equals_its_parts_and_changes_with_the_epoch() {
    let options = r#"{"size": 16}"#;
    let (dtype, shape, data) = mapped::<RandomResizedCrop>(options, 3, 9);
    assert_eq!((dtype, &shape[..]), (DType::U8, &[16, 16, 3][..]));
    let mut rng = Host::new().epoch(3).context().rng(9);
    let crop = CropRange::default().draw([SHAPE[0], SHAPE[1]], || rng.f64());
    let src = bytes();
    let mut expected = vec![0; 16 * 16 * 3];
    let src = Pixels::new(&src, SHAPE).unwrap();
    resize(&src, crop, [16, 16], Filter::Bilinear, &mut expected).unwrap();
    assert!(data.as_slice() == expected);
    assert!(data != mapped::<RandomResizedCrop>(options, 4, 9).2, "another epoch");
    assert!(data != mapped::<RandomResizedCrop>(options, 3, 10).2, "another sample");
}

#[test]
fn resize_crop_and_normalize() {
    assert_eq!(mapped::<Resize>(r#"{"size": [5, 7]}"#, 0, 0).1, [5, 7, 3]);
    assert_eq!(mapped::<Resize>(r#"{"size": 15, "shorter": true}"#, 0, 0).1, [15, 22, 3]);
    assert!(mapped::<Resize>(r#"{"size": [30, 44]}"#, 0, 0).2.as_slice() == bytes());
    let (_, shape, data) = mapped::<CenterCrop>(r#"{"size": [10, 44]}"#, 0, 0);
    assert_eq!(shape, [10, 44, 3]);
    assert!(data.as_slice() == &bytes()[10 * 44 * 3..20 * 44 * 3]);

    let (dtype, shape, data) = mapped::<Normalize>("{}", 0, 0);
    assert_eq!((dtype, &shape[..]), (DType::F32, &[3, 30, 44][..]));
    let mut expected = vec![0.0; bytes().len()];
    let levels = levels(&IMAGENET_MEAN, &IMAGENET_STD).unwrap();
    normalize(&Pixels::new(&bytes(), SHAPE).unwrap(), &levels, &mut expected).unwrap();
    assert!(data.as_slice() == bytemuck::cast_slice::<f32, u8>(&expected));
}

#[test]
fn fields_are_found_or_named_in_the_error() {
    let mut named = sample(0);
    apply::<Resize>(r#"{"size": 4, "field": "jpg"}"#, 0, &mut named).unwrap();
    let error = apply::<Resize>(r#"{"size": 4, "field": "png"}"#, 0, &mut named).unwrap_err();
    assert!(error.message().contains("cls, jpg"), "{error}");
    let error = apply::<Resize>(r#"{"size": 4, "field": "cls"}"#, 0, &mut named).unwrap_err();
    assert_eq!((error.kind(), error.get("field")), (ErrorKind::Invalid, Some("cls")));
    named.set("jpg", Buffer::from(vec![0xff, 0xd8]));
    let error = apply::<Flip>(r#"{"p": 0}"#, 0, &mut named).unwrap_err();
    assert!(error.message().contains("is it decoded"), "{error}");
}

/// Those of some options that a pipe does not refuse by the name of the one that is wrong, or of either where two do not go together.
fn unnamed<M: Map>(wrong: &[(&str, &str)]) -> Vec<String> {
    let told = |&(options, name): &(&str, &str)| {
        let error = M::Options::parse(options).and_then(M::new).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{options}: {error}");
        let named = error.get("option").is_some_and(|option| name.split('/').any(|name| name == option));
        (!named).then(|| format!("{} {options}: {error}, and not {name}", M::INFO.name))
    };
    wrong.iter().filter_map(told).collect()
}

#[test]
fn wrong_options_are_refused_by_their_names() {
    let unnamed = [
        unnamed::<RandomResizedCrop>(&[
            ("{}", "size"),
            (r#"{"size": 0}"#, "size"),
            (r#"{"size": 65536}"#, "size"),
            (r#"{"size": [1, 2, 3]}"#, "size"),
            (r#"{"size": 4, "scale": [0.5]}"#, "scale"),
            (r#"{"size": 4, "scale": [0.5, 0.1]}"#, "scale"),
            (r#"{"size": 4, "scale": [0, 1]}"#, "scale"),
            (r#"{"size": 4, "ratio": [1]}"#, "ratio"),
            (r#"{"size": 4, "ratio": [2, 0.5]}"#, "ratio"),
            (r#"{"size": 4, "filter": "cubic"}"#, "filter"),
            (r#"{"size": 4, "sides": 4}"#, "sides"),
        ]),
        unnamed::<Normalize>(&[
            (r#"{"std": [0, 1, 1]}"#, "std"),
            (r#"{"std": [1, 1]}"#, "mean/std"),
            (r#"{"mean": [0.5]}"#, "mean/std"),
            (r#"{"mean": [], "std": []}"#, "mean/std"),
            (r#"{"mean": "half"}"#, "mean"),
        ]),
        unnamed::<Resize>(&[
            ("{}", "size"),
            (r#"{"size": [4, 4], "shorter": true}"#, "size"),
            (r#"{"size": 4, "shorter": 1}"#, "shorter"),
            (r#"{"size": 4, "filter": "cubic"}"#, "filter"),
        ]),
        unnamed::<CenterCrop>(&[
            ("{}", "size"),
            (r#"{"size": [0, 4]}"#, "size"),
            (r#"{"size": [1, 2, 3]}"#, "size"),
        ]),
        unnamed::<Flip>(&[(r#"{"p": 1.5}"#, "p"), (r#"{"p": -0.1}"#, "p"), (r#"{"field": 3}"#, "field")]),
    ]
    .concat();
    assert!(unnamed.is_empty(), "{}", unnamed.join("\n"));
    // What a picture is too small for is told with the picture.
    let error = apply::<CenterCrop>(r#"{"size": 40}"#, 0, &mut sample(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("40"), "{error}");
}

#[test]
fn the_limit_holds_for_what_a_pipe_makes() {
    let limits = Limits { bytes: 1000, pixels: 1 << 20 };
    let pipe = Resize::new(Options::parse(r#"{"size": 200}"#).unwrap()).unwrap();
    let error = pipe.map(&mut sample(0), &Host::new().limits(limits).context()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}
