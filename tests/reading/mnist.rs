//! MNIST's own files, IDX by their bytes, opened by path.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, io::Write as _, path::Path};

use forebay_loader::{Executor, Sample, Survey, Value, open};
use forebay_tests::{Setting, build, builder, command::forebay, registry, run, within_deadline};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn shown(sample: &Sample) -> String {
    let fields = sample.fields().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>();
    let key = sample.key().to_string();
    format!("{} {}", key.rsplit('/').next().unwrap_or_default(), fields.join(" "))
}

/// An IDX file of bytes.
fn idx(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
    let lengths = shape.iter().flat_map(|len| len.to_be_bytes());
    [0, 0, 8, shape.len() as u8].into_iter().chain(lengths).chain(bytes.iter().copied()).collect()
}

/// MNIST's four files, with few pictures of two rows and three columns: all packed, or one.
fn mnist(folder: &Path, packed: bool) {
    for (split, count) in [("train", 5_u8), ("t10k", 3)] {
        let pixels: Vec<u8> = (0..count * 6).map(|pixel| pixel.wrapping_mul(37)).collect();
        let pictures = idx(&[count.into(), 2, 3], &pixels);
        let labels = idx(&[count.into()], &(0..count).map(|at| 9 - at).collect::<Vec<_>>());
        for (name, bytes) in [("images-idx3-ubyte", pictures), ("labels-idx1-ubyte", labels)] {
            let path = folder.join(format!("{split}-{name}"));
            match packed || (split == "t10k" && name.starts_with("labels")) {
                true => fs::write(path.with_extension("gz"), gzip(&bytes)).unwrap(),
                false => fs::write(path, bytes).unwrap(),
            }
        }
    }
}

#[test]
fn the_four_files_of_mnist_are_pictures_with_labels_on_every_executor_and_after_every_resume() {
    within_deadline(|| {
        let registry = registry();
        for packed in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            mnist(folder.path(), packed);
            let output = forebay(&[], &["head", folder.path().to_str().unwrap()]);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains("image") && text.contains("[2, 3, 1]"),
                "{text}"
            );
            let found = Survey::of(folder.path().to_str().unwrap(), &registry).unwrap();
            assert_eq!(found.kinds.iter().map(|kind| kind.files).sum::<u64>(), 4);
            for kind in &found.kinds {
                assert_eq!((&kind.opened_by[..], &kind.left), (&["split_idx".to_owned()][..], &None));
            }
            let truth = run(&mut build(&found.graph, &registry, Setting::INLINE).unwrap(), 0).unwrap();
            for executor in [Executor::Threads(3), Executor::Processes(2)] {
                let setting = Setting { executor, chunk: Some(1), ..Setting::INLINE };
                assert_eq!(run(&mut build(&found.graph, &registry, setting).unwrap(), 0).unwrap(), truth);
            }
            let setting = Setting { marks: true, chunk: Some(1), ..Setting::INLINE };
            let mut loader = build(&found.graph, &registry, setting).unwrap();
            let samples: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
            let labels: Vec<_> = samples.iter().filter_map(|sample| sample.get("label")?.as_i64()).collect();
            assert_eq!(labels, [9, 8, 7, 9, 8, 7, 6, 5], "t10k comes before train");
            let last = samples[7].get("image").and_then(Value::as_tensor).unwrap();
            let pixels: Vec<u8> = (24..30_u8).map(|pixel| pixel.wrapping_mul(37)).collect();
            assert_eq!((last.shape(), &**last.data()), (&[2, 3, 1][..], &pixels[..]));
            assert_eq!(samples[7].fields().count(), 2, "{}", shown(&samples[7]));
            assert!(loader.quarantine().is_empty());
            for stop in 0..=samples.len() {
                let mut loader = build(&found.graph, &registry, setting).unwrap();
                let mut epoch = loader.epoch(0);
                for _ in 0..stop {
                    epoch.next().unwrap().unwrap();
                }
                let snapshot = epoch.snapshot().unwrap();
                let mut other = builder(&found.graph, setting).build(&registry).unwrap();
                let rest: Vec<_> =
                    other.resume(&snapshot).unwrap().map(|sample| shown(&sample.unwrap())).collect();
                assert_eq!(rest, samples[stop..].iter().map(shown).collect::<Vec<_>>(), "after {stop}");
            }
        }
    });
}

#[test]
fn labels_of_mnist_by_themselves_come_and_what_does_not_go_together_is_told() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        mnist(folder.path(), true);
        let all = |name: &str| {
            let graph = open(folder.path().join(name).to_str().unwrap(), &registry).unwrap();
            let mut loader = builder(&graph, Setting::INLINE).allow_failures(true).build(&registry).unwrap();
            let samples: Vec<_> = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
            let lost: Vec<_> = loader.quarantine().iter().map(|lost| lost.error.to_string()).collect();
            (samples, lost)
        };
        let (samples, lost) = all("train-labels-idx1-ubyte.gz");
        assert_eq!((samples.len(), lost.len()), (5, 0));
        assert!(samples[0].ends_with("label=Int(9)"), "{samples:?}");
        let (samples, lost) = all("train-images-idx3-ubyte.gz");
        assert_eq!((samples.len(), lost.len()), (5, 0));
        assert!(samples[0].contains("image=") && samples[0].contains("label=Int(9)"), "{samples:?}");
        fs::write(folder.path().join("t10k-labels-idx1-ubyte.gz"), gzip(&idx(&[2], &[1, 2]))).unwrap();
        let (samples, lost) = all("");
        assert_eq!(samples.len(), 5, "those for training");
        assert!(
            lost.len() == 1 && lost[0].contains("found 2 labels, expected one for each of 3"),
            "{lost:?}"
        );
        fs::remove_file(folder.path().join("t10k-labels-idx1-ubyte.gz")).unwrap();
        let (samples, lost) = all("");
        assert_eq!((samples.len(), lost.len()), (8, 0), "{lost:?}");
        assert_eq!(samples.iter().filter(|sample| sample.contains("label=")).count(), 5);
        let whole = fs::read(folder.path().join("train-images-idx3-ubyte.gz")).unwrap();
        fs::write(folder.path().join("train-images-idx3-ubyte.gz"), &whole[..whole.len() - 4]).unwrap();
        let (samples, lost) = all("");
        assert_eq!((samples.len(), lost.len()), (8, 1), "the rows come, then that the file is cut: {lost:?}");
    });
}

#[test]
fn labels_of_any_kind_come_with_pictures_of_any_kind() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        // QMNIST's labels have eight numbers each; masks are pictures; and pictures may be of floats.
        let wide: Vec<u8> = (0..16_u32).flat_map(u32::to_be_bytes).collect();
        let kind = |kind: u8, shape: &[u32], bytes: &[u8]| {
            let mut file = idx(shape, bytes);
            file[2] = kind;
            file
        };
        for (name, bytes) in [
            ("q-images-idx3-ubyte.gz", gzip(&idx(&[2, 1, 2], &[1, 2, 3, 4]))),
            ("q-labels-idx2-int.gz", gzip(&kind(0x0c, &[2, 8], &wide))),
            ("masked-images-idx3-ubyte", idx(&[2, 1, 2], &[5, 6, 7, 8])),
            ("masked-labels-idx3-ubyte", idx(&[2, 1, 2], &[0, 1, 1, 0])),
            ("wide-images.idx", kind(0x0d, &[2, 1, 1], &[63, 128, 0, 0, 64, 0, 0, 0])),
            ("wide-labels.idx", idx(&[2], &[3, 4])),
        ] {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let graph = open(folder.path().to_str().unwrap(), &registry).unwrap();
        let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
        let samples: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
        let shape = |sample: &Sample, field: &str| {
            sample.get(field).and_then(Value::as_tensor).map(|tensor| tensor.shape().to_vec())
        };
        let found: Vec<_> = samples
            .iter()
            .map(|sample| {
                (
                    shape(sample, "image").or(shape(sample, "value")),
                    shape(sample, "label"),
                    sample.get("label").and_then(Value::as_i64),
                )
            })
            .collect();
        let of = |picture: &[i64], label: Option<&[i64]>, number| {
            (Some(picture.to_vec()), label.map(<[i64]>::to_vec), number)
        };
        let expected = [
            of(&[1, 2, 1], Some(&[1, 2, 1]), None),
            of(&[1, 2, 1], Some(&[1, 2, 1]), None),
            of(&[1, 2, 1], Some(&[8]), None),
            of(&[1, 2, 1], Some(&[8]), None),
            of(&[1, 1], None, Some(3)),
            of(&[1, 1], None, Some(4)),
        ];
        assert_eq!(found, expected, "{:?}", samples.iter().map(shown).collect::<Vec<_>>());
    });
}
