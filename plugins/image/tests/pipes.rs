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

#[test]
fn flip_is_fair_and_repeatable() {
    let mut mirrored = vec![0; bytes().len()];
    flip(&Pixels::new(&bytes(), SHAPE).unwrap(), &mut mirrored).unwrap();
    let mut count = 0;
    for uid in 0..400 {
        let (_, shape, data) = mapped::<Flip>("{}", 0, uid);
        assert_eq!(shape, [30, 44, 3]);
        assert!(data == mapped::<Flip>("{}", 0, uid).2);
        assert!(data.as_slice() == bytes() || data.as_slice() == mirrored);
        count += u32::from(data.as_slice() == mirrored);
    }
    assert!((150..250).contains(&count), "{count} of 400");
    assert!(mapped::<Flip>(r#"{"p": 1}"#, 0, 1).2.as_slice() == mirrored);
    assert!(mapped::<Flip>(r#"{"p": 0}"#, 0, 1).2.as_slice() == bytes());
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

#[test]
fn wrong_options_are_refused() {
    let refused = |error: Option<Error>| assert_eq!(error.unwrap().kind(), ErrorKind::Invalid);
    let made = |options: &str| RandomResizedCrop::new(Options::parse(options)?).map(drop);
    refused(made("{}").err());
    refused(made(r#"{"size": 0}"#).err());
    refused(made(r#"{"size": [1, 2, 3]}"#).err());
    refused(made(r#"{"size": 4, "scale": [0.5]}"#).err());
    refused(made(r#"{"size": 4, "scale": [0.5, 0.1]}"#).err());
    refused(made(r#"{"size": 4, "filter": "cubic"}"#).err());
    let made = |options: &str| Normalize::new(Options::parse(options)?).map(drop);
    refused(made(r#"{"std": [0, 1, 1]}"#).err());
    refused(made(r#"{"mean": [0.5]}"#).err());
    let made = |options: &str| Resize::new(Options::parse(options)?).map(drop);
    refused(made(r#"{"size": [4, 4], "shorter": true}"#).err());
    refused(apply::<CenterCrop>(r#"{"size": 40}"#, 0, &mut sample(0)).err());
}

#[test]
fn the_limit_holds_for_what_a_pipe_makes() {
    let limits = Limits { bytes: 1000, pixels: 1 << 20 };
    let pipe = Resize::new(Options::parse(r#"{"size": 200}"#).unwrap()).unwrap();
    let error = pipe.map(&mut sample(0), &Host::new().limits(limits).context()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}
