//! One plugin, built in other ways than its host.

use std::{
    collections::BTreeMap,
    env::consts::DLL_SUFFIX,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use forebay_loader::{ErrorKind, Registry, Search};
use forebay_testkit::Host;
use forebay_tests::{
    Cargo, beside,
    command::{forebay, json},
    lock_file, write,
};

use super::{crate_of_ours, expected, given};

const PLUGIN: &str = include_str!("plugin.rs");
const ALLOCATOR: &str = include_str!("allocator.rs");

/// Dependencies of a plugin that another version is put in place of: abi_stable's, which are in its types and its checks, and ours. Those that
/// others ask for with `=` cannot move.
const MOVED: [&str; 7] =
    ["generational-arena", "itoa", "lock_api", "memchr", "parking_lot", "serde_json", "xxhash-rust"];

/// Builds the plugin, and gives its library.
fn build(name: &str, edition: &str, settings: &[(&str, &str)]) -> PathBuf {
    build_with(name, &crate_of_ours(name, edition, "", &[("src/lib.rs", PLUGIN)]), settings)
}

fn build_with(name: &str, folder: &Path, settings: &[(&str, &str)]) -> PathBuf {
    let cargo = settings.iter().fold(Cargo::apart(folder), |cargo, (name, value)| cargo.env(name, value));
    cargo.build(&format!("lib{}{DLL_SUFFIX}", name.replace('-', "_")))
}

/// The folder of the plugin as it is, and its library.
fn plain() -> &'static (PathBuf, PathBuf) {
    static PLAIN: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let folder = crate_of_ours("skew-plain", "2024", "", &[("src/lib.rs", PLUGIN)]);
        let file = build_with("skew-plain", &folder, &[]);
        (folder, file)
    })
}

/// That a library loads, gives what every other gives, and passes the kit.
fn assert_sound(file: &Path) {
    assert_eq!(given(file), expected(), "{}", file.display());
    // An error is made on one side and dropped on the other.
    let registry = Registry::new(Search::nowhere().first(file)).unwrap();
    let decoder = registry.choose("counted", &[], None).unwrap();
    let cut = b"\x05\0\0\0four".to_vec().into();
    let error = decoder.decode(&cut, &Default::default(), &Host::new().context()).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, "found 4 bytes, expected 5"));

    let data = tempfile::tempdir().unwrap();
    let sample = data.path().join("five.counted");
    fs::write(&sample, b"\x05\0\0\0hello").unwrap();
    let [file, sample] = [file, &sample].map(|path| path.to_str().unwrap());
    let output = forebay(&[], &["plugins", "test", "--json", file, "--data", sample]);
    let report = json(&output);
    let rows = report["rows"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let passed = rows.iter().filter(|row| row["verdict"] == "passed").count();
    assert!(output.status.success() && passed >= 15, "{report:#}");
}

#[test]
fn without_optimisation() {
    assert_sound(&plain().1);
}

#[test]
fn with_all_optimisation_and_lto() {
    let settings = [
        ("CARGO_PROFILE_DEV_OPT_LEVEL", "3"),
        ("CARGO_PROFILE_DEV_LTO", "fat"),
        ("CARGO_PROFILE_DEV_CODEGEN_UNITS", "1"),
    ];
    assert_sound(&build("skew-lto", "2024", &settings));
}

#[test]
fn with_panics_that_abort() {
    let file = build("skew-abort", "2024", &[("CARGO_PROFILE_DEV_PANIC", "abort")]);
    assert_sound(&file);
    for (file, says) in [(&file, "end the process"), (&plain().1, "are caught")] {
        let name = file.file_stem().unwrap().to_str().unwrap()["lib".len()..].replace('_', "-");
        let output = forebay(&[], &["--plugin", file.to_str().unwrap(), "plugins", "show", &name]);
        let said = String::from_utf8_lossy(&output.stdout);
        let panics = said.lines().find(|line| line.starts_with("panics")).unwrap_or_else(|| panic!("{said}"));
        assert!(panics.ends_with(says), "{said}");
    }
}

#[test]
fn in_another_edition() {
    assert_sound(&build("skew-2021", "2021", &[]));
}

#[test]
fn stripped() {
    let whole = &plain().1;
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join(whole.file_name().unwrap());
    let output = Command::new("strip").arg("-o").args([&bare, whole]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let length = |file: &Path| fs::metadata(file).unwrap().len();
    assert!(length(&bare) < length(whole));
    assert_sound(&bare);
}

#[test]
fn with_an_allocator_of_its_own() {
    let code = format!("{PLUGIN}\nmod allocator;\n");
    let files = [("src/lib.rs", code.as_str()), ("src/allocator.rs", ALLOCATOR)];
    let name = "skew-allocator";
    assert_sound(&build_with(name, &crate_of_ours(name, "2024", "", &files), &[]));
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => write(&to, &fs::read(entry.path()).unwrap()),
        }
    }
}

/// Copies the sources of a dependency and calls them a later patch: its version, and where the copy is.
fn later_patch(name: &str, version: &str, sources: &Path) -> (String, PathBuf) {
    let (release, patch) = version.rsplit_once('.').unwrap();
    let later = format!("{release}.{}", patch.parse::<u32>().unwrap() + 100);
    let to = beside("apart").join("sources/moved").join(name);
    copy(&sources.join("src"), &to.join("src"));
    let build = sources.join("build.rs");
    if build.exists() {
        write(&to.join("build.rs"), &fs::read(build).unwrap());
    }
    let manifest = fs::read_to_string(sources.join("Cargo.toml")).unwrap();
    let line = format!("\nversion = \"{version}\"\n");
    assert!(manifest.contains(&line), "{manifest}");
    let manifest = manifest.replacen(&line, &format!("\nversion = \"{later}\"\n"), 1);
    write(&to.join("Cargo.toml"), format!("{manifest}\n[workspace]\n").as_bytes());
    (later, to)
}

#[test]
fn with_later_patches_of_its_dependencies() {
    let name = "skew-moved";
    let metadata = Cargo::apart(&plain().0).metadata();
    let mut later = BTreeMap::new();
    let mut more = "[patch.crates-io]\n".to_owned();
    for package in metadata["packages"].as_array().unwrap() {
        let [name, version, manifest] =
            ["name", "version", "manifest_path"].map(|key| package[key].as_str().unwrap());
        if MOVED.contains(&name) {
            let (version, folder) = later_patch(name, version, Path::new(manifest).parent().unwrap());
            more += &format!("{name} = {{ path = {folder:?} }}\n");
            later.insert(name, version);
        }
    }
    assert_eq!(later.len(), MOVED.len(), "{later:?}");
    let folder = crate_of_ours(name, "2024", &more, &[("src/lib.rs", PLUGIN)]);
    // What is locked is not moved: these are left out of the lock.
    let mut lock: toml::Table = fs::read_to_string(lock_file()).unwrap().parse().unwrap();
    let packages = lock["package"].as_array_mut().unwrap();
    packages.retain(|package| !MOVED.contains(&package["name"].as_str().unwrap()));
    write(&folder.join("Cargo.lock"), toml::to_string(&lock).unwrap().as_bytes());
    let file = build_with(name, &folder, &[]);
    let built: toml::Table = fs::read_to_string(folder.join("Cargo.lock")).unwrap().parse().unwrap();
    for (name, version) in later {
        let is = |package: &&toml::Value| {
            package["name"].as_str() == Some(name) && package["version"].as_str() == Some(&version)
        };
        assert!(built["package"].as_array().unwrap().iter().any(|package| is(&package)), "{name} {version}");
    }
    assert_sound(&file);
}
