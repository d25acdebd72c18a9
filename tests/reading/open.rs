//! Any path opens: files of many kinds are found by what they hold, and give the same samples on every executor and after every resume.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, io::Write as _, path::Path};

use forebay_loader::{Executor, Graph, Loader, Registry, Sample, Survey, Value, open};
use forebay_tests::{Setting, build, builder, command::forebay, line, registry, run, seed, within_deadline};

/// A loader for the graph of a path with files that fail, which it only lists.
fn lenient(graph: &Graph, registry: &Registry, setting: Setting) -> Loader {
    builder(graph, setting).allow_failures(true).build(registry).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// An npy file of three bytes.
fn npy() -> Vec<u8> {
    let mut text = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }".to_owned();
    text += &" ".repeat(117 - text.len());
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(text.bytes());
    bytes.extend([1, 2, 3]);
    bytes
}

/// A folder with files of many kinds; the names of some do not tell.
fn many(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let shard =
        tar(&[("a.json", b"{\"n\": 1}"), ("a.cls", b"4"), ("b.json", b"{\"n\": 2}"), ("b.cls", b"5")]);
    write("shard.tar", &shard);
    write("shard-by-another-name", &gzip(&shard));
    write("rows.jsonl", b"{\"x\": 1}\n{\"x\": 2}\n{\"x\": 3}\n");
    write("rows-by-another-name.txt", b"{\"x\": 4}\n{\"x\": 5}\n");
    write("packed{0,1}[a]*.jsonl.gz", &gzip(b"{\"x\": 6}\n{\"x\": 7}\n"));
    write("table.csv", b"p,q\n1,2\n3,4\n");
    write("list.json", b"[{\"y\": 1}, {\"y\": 2}]");
    write("page.json", b"{\"title\": \"heron\"}");
    write("settings.cfg", b"{\"title\": \"egret\"}");
    write("page-by-another-name", &gzip(b"{\"title\": \"stork\"}"));
    write("latin.csv", b"p,q\nJ\xfcrgen,a long cell so that it is a text\n3,4\n");
    write("pair.npy", &npy());
    write("pair.txt", b"a caption");
    write("strange.xyz", b"\x00\x01\x02");
    write("broken.json", b"{\"title\": ");
    write("broken.tar", &shard[..700]);
}

fn survey(folder: &Path, registry: &Registry) -> Survey {
    Survey::of(folder.to_str().unwrap(), registry).unwrap()
}

fn shown(sample: &Sample) -> String {
    let fields = sample.fields().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>();
    let key = sample.key().to_string();
    format!("{} {}", key.rsplit('/').next().unwrap_or_default(), fields.join(" "))
}

#[test]
fn every_kind_of_file_in_a_folder_is_read_by_what_it_holds() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        many(folder.path());
        let found = survey(folder.path(), &registry);
        let kind = |name: &str| {
            let kind =
                found.kinds.iter().find(|kind| kind.first.iter().any(|file| file.ends_with(name))).unwrap();
            match (&kind.decoder, &kind.left) {
                (Some(decoder), _) => decoder.clone(),
                (_, Some(_)) => "left".to_owned(),
                _ => kind.opened_by.join(" | "),
            }
        };
        for (name, expected) in [
            ("/shard.tar", "untar"),
            ("/shard-by-another-name", "untar"),
            ("/broken.tar", "untar"),
            ("/rows.jsonl", "lines | json_lines"),
            ("/rows-by-another-name.txt", "lines | json_lines"),
            ("/packed{0,1}[a]*.jsonl.gz", "lines | json_lines"),
            ("/table.csv", "csv_blocks | csv"),
            ("/list.json", "json_array"),
            ("/page.json", "json"),
            ("/settings.cfg", "json"),
            ("/page-by-another-name", "json"),
            ("/latin.csv", "csv_blocks | csv"),
            ("/pair.npy", "npy"),
            ("/pair.txt", "text"),
            ("/strange.xyz", "left"),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        let mut loader = lenient(&found.graph, &registry, Setting::INLINE);
        let samples: Vec<_> = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
        let all = samples.join("\n");
        for part in [
            "pair.npy npy=",
            "txt=Str(\"a caption\")",
            "strange.xyz xyz=",
            "cls=Int(5)",
            "x=Int(7)",
            "y=Int(2)",
        ] {
            assert!(all.contains(part), "{part} is not in:\n{all}");
        }
        let lost: Vec<_> = loader.quarantine().iter().map(|lost| lost.error.to_string()).collect();
        assert_eq!(lost.len(), 3, "{lost:?}");
        assert!(lost.iter().any(|lost| lost.contains("latin.csv")), "{lost:?}");
        assert!(lost.iter().any(|lost| lost.contains("broken.json")), "{lost:?}");
        assert!(lost.iter().any(|lost| lost.contains("broken.tar")), "{lost:?}");
        // 4 of the two shards, 7 rows of JSON, 2 of the table, 1 of the one with a record that is no UTF-8, 2 of the list, 3 pages,
        // the pair, the strange one, and of the broken shard none.
        assert_eq!(samples.len(), 21, "{all}");
    });
}

#[test]
fn it_is_the_same_on_every_executor_and_after_every_resume() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        many(folder.path());
        let graph = survey(folder.path(), &registry).graph;
        let truth = run(&mut lenient(&graph, &registry, Setting::INLINE), 0).unwrap();
        for executor in [Executor::Threads(3), Executor::Processes(2)] {
            for chunk in [Some(1), None] {
                let setting = Setting { executor, chunk, ..Setting::INLINE };
                assert_eq!(run(&mut lenient(&graph, &registry, setting), 0).unwrap(), truth, "{setting:?}");
            }
        }
        let setting = Setting { marks: true, chunk: Some(1), ..Setting::INLINE };
        let whole: Vec<_> =
            lenient(&graph, &registry, setting).epoch(0).map(|sample| shown(&sample.unwrap())).collect();
        for stop in 0..=whole.len() {
            let mut loader = lenient(&graph, &registry, setting);
            let mut epoch = loader.epoch(0);
            for _ in 0..stop {
                epoch.next().unwrap().unwrap();
            }
            let snapshot = epoch.snapshot().unwrap();
            let mut other = lenient(&graph, &registry, setting);
            let rest = other.resume(&snapshot).unwrap().map(|sample| shown(&sample.unwrap()));
            assert_eq!(rest.collect::<Vec<_>>(), whole[stop..], "after {stop}");
        }
    });
}

#[test]
fn folders_of_one_kind_are_classes() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        for (class, name) in [("gull", "1.txt"), ("bee", "1.txt"), ("bee", "2.txt")] {
            fs::create_dir_all(folder.path().join(class)).unwrap();
            fs::write(folder.path().join(class).join(name), format!("{class} {name}")).unwrap();
        }
        let path = folder.path().to_str().unwrap();
        assert_eq!(survey(folder.path(), &registry).classes, ["bee", "gull"]);
        let graph = open(path, &registry).unwrap();
        let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
        let samples: Vec<_> = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
        assert_eq!(samples.len(), 3);
        assert!(samples[1].contains("label=Int(0)") && samples[1].contains("bee 2.txt"), "{samples:?}");
        assert!(
            samples[2].contains("label=Int(1)") && samples[2].contains("class=Str(\"gull\")"),
            "{samples:?}"
        );
        // What comes later is read too, since the graph names the folder.
        let text = graph.to_string();
        assert!(text.starts_with("files ") && text.contains(&format!("paths={path} ")), "{graph}");
        assert!(open(&format!("{path}/none"), &registry).is_err());
    });
}

/// A folder of classes of small pictures, some without extensions.
fn pictures(folder: &Path, names: &[&str]) {
    for name in names {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, b"P5 2 1 255 \x01\x02").unwrap();
    }
}

fn names(samples: &[Sample]) -> Vec<Vec<String>> {
    samples.iter().map(|sample| sample.fields().map(|(name, _)| name.to_string()).collect()).collect()
}

fn samples(graph: &Graph, registry: &Registry) -> Vec<Sample> {
    let mut loader = build(graph, registry, Setting::INLINE).unwrap();
    loader.epoch(0).map(|sample| sample.unwrap()).collect()
}

#[test]
fn a_picture_opened_by_path_is_called_image_whatever_its_extension() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        pictures(folder.path(), &["ant/1.pgm", "ant/2", "bee/1.PGM", "bee/2.pnm"]);
        fs::write(folder.path().join("bee/readme.txt"), "bees").unwrap();
        let graph = survey(folder.path(), &registry).graph;
        let found = samples(&graph, &registry);
        let image = ["label", "class", "image"];
        let text = ["label", "class", "txt"];
        assert_eq!(names(&found), [image, image, image, image, text], "{graph}");
        assert!(found[1].get("image").unwrap().as_tensor().is_some());
        let labels: Vec<_> = found.iter().map(|sample| sample.get("label").and_then(Value::as_i64)).collect();
        assert_eq!(labels, [Some(0), Some(0), Some(1), Some(1), Some(1)]);
        let path = folder.path().to_str().unwrap();
        let explained = forebay(&[], &["explain", path]);
        let text = String::from_utf8_lossy(&explained.stdout);
        assert!(text.contains("rename") && text.contains("pgm;bytes;pnm=image"), "{text}");

        // Two pictures of one sample keep their names, and so do files of other kinds.
        pictures(folder.path(), &["bee/2.pbm"]);
        fs::write(folder.path().join("bee/2.pbm"), b"P4 2 1 \x80").unwrap();
        let found = names(&samples(&survey(folder.path(), &registry).graph, &registry));
        assert!(
            found.contains(&vec!["label".into(), "class".into(), "pbm".into(), "pnm".into()]),
            "{found:?}"
        );
        assert!(!found.concat().contains(&"image".to_owned()), "{found:?}");
    });
}

#[test]
fn label_finds_the_classes_and_a_resume_notices_others() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        pictures(folder.path(), &["gull/1.pgm", "bee/1.pgm", "bee/2.pgm", ".git/1.pgm"]);
        let root = folder.path().to_str().unwrap();
        let graph = line(&format!("files '{root}/*/*.pgm' | label root='{root}' | decode"));
        let found: Vec<_> = samples(&graph, &registry)
            .iter()
            .map(|sample| (sample.get("label").and_then(Value::as_i64), sample.get("class").cloned()))
            .collect();
        let is = |label: i64, class: &str| (Some(label), Some(class.into()));
        assert_eq!(found, [is(0, "bee"), is(0, "bee"), is(1, "gull")]);
        let shown = forebay(&[], &["explain", &graph.to_string()]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains("[bee, gull]"), "{shown:?}");

        let setting = Setting { executor: Executor::Processes(2), ..Setting::INLINE };
        assert_eq!(
            run(&mut build(&graph, &registry, setting).unwrap(), 0).unwrap(),
            run(&mut build(&graph, &registry, Setting::INLINE).unwrap(), 0).unwrap()
        );
        let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
        let mut epoch = loader.epoch(0);
        epoch.next().unwrap().unwrap();
        let snapshot = epoch.snapshot().unwrap();
        let mut same = build(&graph, &registry, Setting::INLINE).unwrap();
        assert_eq!(same.resume(&snapshot).unwrap().count(), 2);
        // Another class moves the labels of those behind it.
        pictures(folder.path(), &["crow/1.pgm"]);
        let mut other = build(&graph, &registry, Setting::INLINE).unwrap();
        let error = other.resume(&snapshot).err().unwrap();
        assert!(error.message().contains("node label"), "{error}");
    });
}

#[test]
fn label_says_what_it_needs_to_find_classes() {
    let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
    let root = folder.path().to_str().unwrap();
    let error = |options: &str| {
        let graph = line(&format!("files '{root}/*/*' | label {options}"));
        build(&graph, &registry, Setting::INLINE).err().unwrap()
    };
    let missing = error("");
    assert!(
        missing.message().contains("`classes` is missing") && missing.message().contains("`root`"),
        "{missing}"
    );
    let empty = error(&format!("root='{root}'"));
    assert!(empty.message().contains("no folder in it"), "{empty}");
    assert_eq!((empty.get("node"), empty.get("folder")), (Some("label"), Some(root)));
    let nowhere = error(&format!("root='{root}/nowhere'"));
    assert!(nowhere.to_string().contains("nowhere"), "{nowhere}");
}

#[test]
fn of_a_files_own_fields_its_path_and_bytes_stay_behind_and_the_others_go_on() {
    within_deadline(|| {
        let registry = registry();
        for (file, pipes) in [
            ("gnu.tar", "untar"),
            ("gnu.tar", "tar_pieces | untar_pieces"),
            ("two.zip", "unzip"),
            ("two.zip", "unzip group=none"),
            ("flat.parquet", "row_groups | read_rows"),
            ("flat.parquet", "row_groups | read_columns"),
            ("words.arrows", "row_groups | read_rows"),
            ("chunks.h5", "hdf5_pieces | hdf5_rows"),
            ("examples.tfrecord", "tfrecords"),
            ("examples.tfrecord", "tfrecords | parse_example"),
            ("rows.jsonl", "lines | json_lines"),
            ("words.txt", "lines | text_lines"),
            ("list.json", "json_array"),
            ("birds.csv", "csv_blocks | csv"),
            ("two.safetensors", "split_safetensors"),
        ] {
            for open in ["mmap", "none"] {
                let seed = seed(file);
                let folder = seed.ancestors().nth(2).unwrap().display();
                let files = format!("files '{}' open={open}", seed.display());
                let graph = line(&format!(
                    "{files} | label ['other', 'seeds'] root='{folder}' field=place | {pipes}"
                ));
                let mut loader = build(&graph, &registry, Setting::INLINE).unwrap();
                let samples: Vec<_> = loader.epoch(0).collect::<Result<_, _>>().unwrap();
                assert!(!samples.is_empty(), "{file} | {pipes}");
                for sample in samples {
                    let told = || format!("{file} | {pipes}: {}", shown(&sample));
                    assert_eq!(sample.get("place").and_then(Value::as_i64), Some(1), "{}", told());
                    assert_eq!(sample.get("class").and_then(Value::as_str), Some("seeds"), "{}", told());
                    assert_eq!(sample.get("path"), None, "{}", told());
                    let own = matches!(pipes, "unzip group=none" | "tfrecords");
                    assert_eq!(sample.get("bytes").is_some(), own, "{}", told());
                }
            }
        }
    });
}

#[test]
fn records_that_are_examples_come_parsed() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        fs::copy(seed("three.tfrecord"), folder.path().join("birds.tfrecord")).unwrap();
        let plain = b"\x01\0\0\0\0\0\0\0\x01\x75\xde\x41\x37\x80\x57\x9a\x9e";
        fs::write(folder.path().join("plain.tfrecord"), plain).unwrap();
        let found = survey(folder.path(), &registry);
        let opened: Vec<_> = found.kinds.iter().map(|kind| kind.opened_by.join(" | ")).collect();
        assert_eq!(opened, ["tfrecords | parse_example", "tfrecords"]);
        // The third record of the birds is no message.
        let mut loader = lenient(&found.graph, &registry, Setting::INLINE);
        let samples: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
        let names = |sample: &Sample| sample.fields().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&samples[0]), ["id", "name", "x"]);
        assert_eq!(names(samples.last().unwrap()), ["bytes"]);
    });
}

#[test]
fn files_that_are_known_and_not_read_are_told_by_what_they_are() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("classic.nc", b"CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        write("secret.parquet", b"PAREsecretPARE");
        write("part-1.h5", &[7; 600]);
        let found = survey(folder.path(), &registry);
        let left: Vec<_> = found.kinds.iter().filter_map(|kind| kind.left.as_deref()).collect();
        assert!(
            matches!(&left[..], [only] if only.contains("named `.h5`") && only.contains("hdf5_pieces")),
            "{left:?}"
        );
        let mut loader = lenient(&found.graph, &registry, Setting::INLINE);
        assert_eq!(loader.epoch(0).map(Result::unwrap).count(), 1, "the part comes as bytes");
        let lost: Vec<_> = loader.quarantine().iter().map(|lost| lost.error.to_string()).collect();
        for (error, parts) in lost.iter().zip([["classic.nc", "NetCDF-3"], ["secret.parquet", "encrypted"]]) {
            assert!(
                parts.iter().all(|part| error.contains(part)) && error.contains("not supported"),
                "{error}"
            );
        }
        assert_eq!(lost.len(), 2, "{lost:?}");
    });
}

#[test]
fn of_hdf5_files_all_comes_that_can_and_the_rest_is_named_on_every_executor() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/hdf5/tests/data");
        for name in ["below.h5", "mixed.h5"] {
            fs::copy(format!("{data}/{name}"), folder.path().join(name)).unwrap();
        }
        let graph = survey(folder.path(), &registry).graph;
        for executor in [Executor::Inline, Executor::Threads(3), Executor::Processes(2)] {
            let setting = Setting { executor, ..Setting::INLINE };
            let mut loader = lenient(&graph, &registry, setting);
            let samples: Vec<_> = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
            assert_eq!(samples.len(), 9, "{samples:?}");
            for (nth, sample) in samples.iter().take(3).enumerate() {
                assert!(
                    sample.contains("image=") && sample.contains(&format!("label=Int({nth})")),
                    "{sample}"
                );
            }
            assert!(samples[3..].iter().all(|sample| sample.contains("rate=Float(0.5)")), "{samples:?}");
            let lost = loader.quarantine();
            let lost: Vec<_> = lost.iter().map(|lost| format!("{:?} {}", lost.key, lost.error)).collect();
            for part in [
                "below.h5",
                "`names` is no group",
                "mixed.h5",
                "/virtual",
                "/outside",
                "/elsewhere",
                "zfp",
                "`/names` has 2",
            ] {
                assert!(
                    lost.iter().any(|lost| lost.contains(part)),
                    "{executor:?}: {part} is not in {lost:#?}"
                );
            }
            assert_eq!(lost.len(), 6, "{lost:#?}");
        }
    });
}

#[test]
fn packed_bytes_that_begin_with_ones_are_no_arrow_stream() {
    within_deadline(|| {
        let (registry, folder) = (registry(), tempfile::tempdir().unwrap());
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("ones.gz", &gzip(&[0xff; 5000]));
        write("ones.bin.gz", &gzip(&[0xff; 40]));
        write("plain", &[0xff; 300]);
        write("counted.gz", &gzip(&[&[0xff; 4][..], &[16, 0, 0, 0], &[0; 400]].concat()));
        let stream = fs::read(seed("batches.arrows")).unwrap();
        write("stream.gz", &gzip(&stream));
        let found = survey(folder.path(), &registry);
        for kind in &found.kinds {
            let arrow = kind.plugin.as_ref().is_some_and(|plugin| plugin.contains("arrow"));
            assert_eq!(arrow, kind.first[0].ends_with("stream.gz"), "{kind:?}");
        }
        let mut loader = build(&found.graph, &registry, Setting::INLINE).unwrap();
        let samples: Vec<_> = loader.epoch(0).map(|sample| shown(&sample.unwrap())).collect();
        assert!(loader.quarantine().is_empty(), "{:?}", loader.quarantine());
        assert!(samples.len() > 4, "{samples:?}");
    });
}
