//! `examples/c_plugin`: built by one call of `cc`, dropped into a folder, found and used.

use std::{fs, path::Path, process::Command};

use forebay_core::{AnyDecoder, Buffer, DType, View};
use forebay_loader::{ErrorKind, Executor, Registry, Snapshot};
use forebay_testkit::Damage;
use forebay_tests::{Setting, build, command::forebay, line, read, root};

use super::{compile, decode, registry_of};

fn source() -> std::path::PathBuf {
    root().join("examples/c_plugin/nifti.c")
}

fn sample() -> Vec<u8> {
    fs::read(root().join("examples/c_plugin/sample.nii")).unwrap()
}

/// The sample as a machine of the other byte order would have written it.
fn swapped() -> Vec<u8> {
    let mut bytes = sample();
    let pairs = (40..56).step_by(2).chain([70, 72]).chain((352..400).step_by(2)).map(|at| (at, 2));
    let words = (76..120).step_by(4).chain([0]).map(|at| (at, 4));
    for (at, len) in pairs.chain(words) {
        bytes[at..at + len].reverse();
    }
    bytes
}

fn nifti(registry: &Registry) -> AnyDecoder {
    registry.choose("nii", &sample(), None).unwrap()
}

#[test]
fn it_is_found_by_its_manifest_and_exports_one_symbol() {
    let folder = tempfile::tempdir().unwrap();
    let library = compile(&source(), folder.path(), &[]);
    let registry = registry_of(folder.path());
    assert!(registry.refusals().is_empty(), "{:?}", registry.refusals());
    let record = registry.plugins().iter().find(|record| record.manifest().name == "nifti").unwrap();
    let manifest = record.manifest();
    assert_eq!((manifest.version.as_str(), manifest.license.as_str()), ("1.0.0", "MIT"));
    assert_eq!((manifest.abi_name().as_str(), manifest.unwinds), ("C 1.0", false));
    assert_eq!((manifest.decoders[0].extensions[0].as_str(), manifest.decoders[0].priority), ("nii", 128));
    assert!(manifest.pipes[0].options[0].required);
    line("nifti_slices /nowhere.nii").check(&registry).unwrap();
    assert!(line("nifti_slices").problems(&registry)[0].message().contains("path"));
    assert_eq!((record.path(), record.is_loaded()), (Some(library.as_path()), false));
    record.check().unwrap();

    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let symbols: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(symbols, ["forebay_plugin_nifti"]);
    // Another copy: this one is in use.
    let folder = tempfile::tempdir().unwrap();
    let library = compile(&source(), folder.path(), &[]);
    let stripped = Command::new("strip").arg("--strip-all").arg(&library).status().unwrap();
    assert!(stripped.success());
    assert_eq!(registry_of(folder.path()).rank("nii", &sample())[0].decoder, "nifti");
}

#[test]
fn the_sample_is_decoded_in_both_byte_orders_and_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    compile(&source(), folder.path(), &[]);
    let registry = registry_of(folder.path());
    let input = Buffer::from(sample());
    let value = decode(&nifti(&registry), input.clone(), "nii").unwrap();
    let View::Struct(fields) = value.view() else { panic!("{value:?}") };
    let names: Vec<_> = fields.schema().names().iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["image", "spacing", "slope", "intercept"]);
    let image = fields.get("image").unwrap().as_tensor().unwrap();
    assert_eq!((image.dtype(), image.shape()), (DType::I16, &[2, 3, 4][..]));
    let voxels: Vec<_> = image.data().chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    assert_eq!(voxels, (0..24).collect::<Vec<_>>());
    assert_eq!(image.data().as_ptr(), input[352..].as_ptr(), "the input's own bytes");
    assert_eq!(
        format!("{:?}", fields.get("spacing").unwrap().view()),
        "List([Float(2.5), Float(1.0), Float(1.0)])"
    );
    assert_eq!(fields.get("slope").unwrap().view(), View::Float(2.0));
    assert_eq!(decode(&nifti(&registry), swapped(), "nii").unwrap(), value);
    // Elements that are not in line are copied to where they are.
    let odd = Buffer::from([&[0][..], &sample()].concat()).slice(1..);
    assert_eq!(decode(&nifti(&registry), odd, "nii").unwrap(), value);
}

#[test]
fn damaged_volumes_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    compile(&source(), folder.path(), &[]);
    let registry = registry_of(folder.path());
    let decoder = nifti(&registry);
    let (mut refused, mut kinds) = (0, std::collections::BTreeSet::new());
    for whole in [sample(), swapped()] {
        let damage = Damage::new(whole, 400);
        for form in 0..damage.forms() {
            if let Err(error) = decode(&decoder, damage.form(form), "nii") {
                assert!(error.get("decoder").unwrap().contains("nifti 1.0.0"), "{error}");
                kinds.insert(error.kind().name());
                refused += 1;
            }
        }
    }
    // Every prefix, at the least.
    assert!(refused > 800, "{refused}");
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["corrupt", "unsupported"]);
    // 32767 voxels along each axis.
    let mut vast = sample();
    (42..48).step_by(2).for_each(|at| vast[at..at + 2].copy_from_slice(&[0xff, 0x7f]));
    let error = decode(&decoder, vast, "nii").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");

    // The same through the source, which reads files.
    let file = folder.path().join("damaged.nii");
    let damage = Damage::new(sample(), 400);
    let graph = line(&format!("nifti_slices '{}'", file.display()));
    let mut failed = 0;
    for form in (0..damage.forms()).step_by(3) {
        fs::write(&file, damage.form(form)).unwrap();
        let (_, error) = read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(0));
        failed += usize::from(error.is_some());
    }
    assert!(failed > 130, "{failed}");
}

#[test]
fn the_examples_pass_the_conformance_kit() {
    let folder = tempfile::tempdir().unwrap();
    let sample = root().join("examples/c_plugin/sample.nii").display().to_string();
    let ramp = folder.path().join("ramp.pfm").display().to_string();
    fs::write(&ramp, pfm("Pf", "3 2", "-1", &[0, 1, 2, 3, 4, 5].map(|n| (n as f32).to_le_bytes()))).unwrap();
    let slices = format!("nifti_slices '{sample}'");
    for (file, args) in
        [("nifti.c", &["--data", &sample, "--graph", &slices][..]), ("pfm.c", &["--data", &ramp])]
    {
        let library = compile(&root().join("examples/c_plugin").join(file), folder.path(), &[]);
        let output = forebay(&[], &[&["plugins", "test", library.to_str().unwrap()], args].concat());
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && report.contains("checks passed"), "{file}: {report} {output:?}");
    }
}

/// A float map of this header and these numbers.
fn pfm(kind: &str, sides: &str, scale: &str, numbers: &[[u8; 4]]) -> Vec<u8> {
    [format!("{kind}\n{sides}\n{scale}\n").as_bytes(), numbers.as_flattened()].concat()
}

#[test]
fn float_maps_of_either_byte_order_are_tensors_with_the_highest_row_first() {
    let folder = tempfile::tempdir().unwrap();
    compile(&root().join("examples/c_plugin/pfm.c"), folder.path(), &[]);
    let registry = registry_of(folder.path());
    let decoder = registry.choose("pfm", b"Pf\n", None).unwrap();
    let numbers = [0.5_f32, 0.25, -8.0, 1.0, 2.0, 3.0];
    for (kind, sides, shape) in [
        ("Pf", "3 2", &[2, 3][..]),
        ("Pf", "1 6", &[6, 1]),
        ("PF", "1 2", &[2, 1, 3]),
        ("PF ", "2 1\r", &[1, 2, 3]),
    ] {
        for (scale, bytes) in [("-1.0", numbers.map(f32::to_le_bytes)), ("2", numbers.map(f32::to_be_bytes))]
        {
            let value = decode(&decoder, pfm(kind, sides, scale, &bytes), "pfm").unwrap();
            let tensor = value.as_tensor().unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (DType::F32, shape));
            let mut rows: Vec<_> = numbers.chunks(6 / shape[0] as usize).collect();
            rows.reverse();
            let wanted: Vec<u8> = rows.concat().iter().flat_map(|number| number.to_ne_bytes()).collect();
            assert_eq!(tensor.data()[..], *wanted, "{kind} {sides} {scale}");
        }
    }
    for (kind, sides, scale, says) in [
        ("Pg", "3 2", "1", "found `Pg`"),
        ("Pf", "3", "1", "expected a width and a height"),
        ("Pf", "3 -2", "1", "expected a width and a height"),
        ("Pf", "3 2 1", "1", "expected a width and a height"),
        ("Pf", "999999999 999999999", "1", "found 24 bytes of numbers"),
        ("Pf", "1000000000 2", "1", "expected a width and a height"),
        ("Pf", "3 2", "one", "expected a number"),
        ("Pf", &"3".repeat(80), "1", "the header is cut off behind byte 3"),
    ] {
        let bytes = pfm(kind, sides, scale, &numbers.map(f32::to_le_bytes));
        let error = decode(&decoder, bytes, "pfm").unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.message().contains(says), "{sides}: {error}");
    }
}

/// Twenty volumes, no two alike.
fn volumes(folder: &Path) {
    for number in 0..20 {
        let mut bytes = if number % 2 == 0 { sample() } else { swapped() };
        bytes[352] = number;
        fs::write(folder.join(format!("{number:02}.nii")), bytes).unwrap();
    }
}

#[test]
fn every_executor_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    compile(&source(), folder.path(), &[]);
    volumes(folder.path());
    let (registry, place) = (registry_of(folder.path()), folder.path().display());
    for text in [
        format!("files '{place}/*.nii' | group | decode | shuffle 7"),
        format!("nifti_slices '{place}/04.nii' | batch 2"),
        format!("nifti_slices '{place}/05.nii' on=process | repeat 3"),
    ] {
        let graph = line(&text);
        let truth = read(build(&graph, &registry, Setting::INLINE).unwrap().epoch(1));
        assert!(truth.1.is_none() && !truth.0.is_empty(), "{text}: {truth:?}");
        for executor in [Executor::Threads(1), Executor::Threads(4), Executor::Processes(2)] {
            let setting = Setting { executor, ..Setting::INLINE };
            let found = read(build(&graph, &registry, setting).unwrap().epoch(1));
            assert_eq!(found, truth, "{text} on {executor:?}");
        }
    }
}

#[test]
fn a_resume_at_every_slice_goes_on_exactly() {
    let folder = tempfile::tempdir().unwrap();
    compile(&source(), folder.path(), &[]);
    let mut bytes = sample();
    // As twelve slices: the fourth axis has six.
    bytes[40] = 4;
    bytes[48] = 6;
    bytes.extend((0..240).map(|at| at as u8));
    let file = folder.path().join("long.nii");
    fs::write(&file, bytes).unwrap();
    let registry = registry_of(folder.path());
    let graph = line(&format!("nifti_slices '{}'", file.display()));
    let exact = Setting { chunk: Some(1), marks: true, ..Setting::INLINE };
    let mut loader = build(&graph, &registry, exact).unwrap();
    let keys: Vec<_> = loader.epoch(0).map(|sample| sample.unwrap().key().to_string()).collect();
    assert_eq!(keys[11], format!("{}#11", file.display()));
    let truth = read(build(&graph, &registry, exact).unwrap().epoch(0)).0;
    assert_eq!(truth.len(), 12);
    for at in 0..=truth.len() {
        let mut loader = build(&graph, &registry, exact).unwrap();
        let mut epoch = loader.epoch(0);
        assert_eq!(read(epoch.by_ref().take(at)).0, truth[..at]);
        let snapshot = Snapshot::from_json(&epoch.snapshot().unwrap().to_json()).unwrap();
        drop(epoch);
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let mut loader = build(&graph, &registry, Setting { executor, ..exact }).unwrap();
            assert_eq!(read(loader.resume(&snapshot).unwrap()), (truth[at..].to_vec(), None), "after {at}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    compile(&source(), folder.path(), &[]);
    let registry = registry_of(folder.path());
    let error = forebay_tests::error_of(&line("nifti_slices /nowhere.nii"), &registry, Setting::INLINE).0;
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "cannot open /nowhere.nii"), "{error}");
    assert_eq!(error.get("pipe"), Some("nifti_slices"), "{error}");
}

#[test]
fn the_plugin_that_the_header_shows_is_one() {
    let header = fs::read_to_string(root().join("core/abi/include/forebay.h")).unwrap();
    let shown = header.lines().map_while(|line| line.strip_prefix(['/', ' '])?.strip_prefix('*'));
    let shown = shown.take_while(|line| *line != " To compile it:");
    let code: Vec<_> = shown.filter_map(|line| line.strip_prefix("     ")).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pairs.c");
    fs::write(&file, code.join("\n") + "\n").unwrap();
    compile(&file, folder.path(), &[]);
    let registry = registry_of(folder.path());
    let decoder = registry.choose("pairs", b"", None).unwrap();
    let value = decode(&decoder, vec![1, 0, 2, 0], "pairs").unwrap();
    assert_eq!(format!("{:?}", value.view()), "Tensor(int16 [2])");
    let error = decode(&decoder, vec![1], "pairs").unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, "1 bytes, expected pairs"), "{error}");
}
