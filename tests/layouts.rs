//! Plugins built against other layouts of the ABI: what differs is refused with both sides, what was only added to
//! the end of a table fits, whichever side is newer.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_loader::{ErrorKind, Loader, Registry, Result, Search};
use forebay_tests::{Cargo, beside, line, lock_file, plugin_file, root, within_deadline, write};

/// A source of one sample and nothing else.
const PLUGIN: &str = r#"//! A source of one sample.
use forebay_core::{Context, DataPipe, Key, NoOptions, PipeInfo, Result, Sample, Source};

pub struct Once(bool);

impl DataPipe for Once {
    const INFO: PipeInfo = PipeInfo { name: "once", ..PipeInfo::DEFAULT };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self(false))
    }
}

impl Source for Once {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.0 = false;
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let first = !std::mem::replace(&mut self.0, true);
        let mut sample = Sample::new(3, Key::default());
        sample.set("value", 17);
        Ok(first.then_some(sample))
    }
}

forebay_core::export_plugin! { sources: [Once] }
"#;

/// A change of the sources: a file, a piece of it, and what takes its place.
type Patch = (&'static str, &'static str, &'static str);

const CHUNK: &str = "core/abi/src/chunk.rs";
const TABLES: &str = "core/abi/src/tables.rs";
const CONTEXT: &str = "core/abi/src/context.rs";
const PIPES: &str = "core/src/shim/pipes.rs";

/// A table with one more function than ours.
const LONGER: [Patch; 2] = [
    (
        TABLES,
        "    pub probe: unsafe extern \"C\" fn(*const (), RSlice<'_, u8>, RStr<'_>) -> Outcome,\n}",
        "    pub probe: unsafe extern \"C\" fn(*const (), RSlice<'_, u8>, RStr<'_>) -> Outcome,\n    /// New.\n    \
         pub more: unsafe extern \"C\" fn(*const (), &mut u64) -> Outcome,\n}",
    ),
    (PIPES, "probe: probe::<C>,", "probe: probe::<C>,\n        more: len::<C>,"),
];

/// Makes a workspace with the changed sources and a crate, and gives the crate's folder.
///
/// All parts lie in a folder of the workspace with its name: cargo tells crates of several workspaces that share a
/// folder for what it builds by their place in the workspace alone.
fn changed(name: &str, patches: &[Patch], manifest: &str, files: &[(&str, &str)]) -> PathBuf {
    let workspace = beside("apart").join("sources").join(name);
    let house = workspace.join(name);
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let mut sources =
        vec!["core/Cargo.toml".to_owned(), "core/build.rs".to_owned(), "core/abi/Cargo.toml".to_owned()];
    for part in ["core/src", "core/src/codec", "core/src/shim", "core/abi/src"] {
        let entries = fs::read_dir(root().join(part)).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        sources.extend(files.map(|entry| format!("{part}/{}", entry.file_name().to_string_lossy())));
    }
    for path in &sources {
        let mut text = read(path);
        for (_, from, to) in patches.iter().filter(|patch| patch.0 == path) {
            assert_eq!(text.matches(from).count(), 1, "{name}: {path} holds {from:?} once");
            text = text.replace(from, to);
        }
        write(&house.join(path), text.as_bytes());
    }
    let ours = read("Cargo.toml");
    let inherited = &ours[ours.find("[workspace.package]").unwrap()..ours.find("[profile").unwrap()];
    let inherited = inherited.replace("path = \"", &format!("path = \"{name}/"));
    let members = ["core", "core/abi", "it"].map(|member| format!("\"{name}/{member}\"")).join(", ");
    write(
        &workspace.join("Cargo.toml"),
        format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n{inherited}").as_bytes(),
    );
    if !workspace.join("Cargo.lock").exists() {
        fs::copy(lock_file(), workspace.join("Cargo.lock")).unwrap();
    }
    write(&house.join("it/Cargo.toml"), manifest.as_bytes());
    for (path, text) in files {
        write(&house.join("it").join(path), text.as_bytes());
    }
    house.join("it")
}

/// Builds a plugin against changed sources.
fn plugin(name: &str, patches: &[Patch]) -> PathBuf {
    let manifest = format!(
        "[package]\nname = \"changed-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nforebay-core.workspace = true\n"
    );
    let folder = changed(name, patches, &manifest, &[("src/lib.rs", PLUGIN)]);
    Cargo::apart(&folder).build(&format!("libchanged_{name}.so"))
}

fn run(file: &Path) -> Result<i64> {
    let registry = Registry::new(Search::nowhere().first(file))?;
    let mut loader = Loader::builder(line("once")).build(&registry)?;
    let samples = loader.epoch(0).collect::<Result<Vec<_>>>()?;
    assert_eq!(samples.len(), 1);
    Ok(samples[0].get("value").and_then(forebay_loader::Value::as_i64).unwrap())
}

/// Changes that a plugin is refused for, and what the refusal names: the type or field, ours, and theirs.
const REFUSED: [(&str, &[Patch], &[&str]); 4] = [
    (
        "reordered",
        &[(CHUNK, "    uid: u64,\n    key: Key,\n", "    key: Key,\n    uid: u64,\n")],
        &["Row", "uid", "key"],
    ),
    (
        "argument",
        &[
            (TABLES, "RSliceMut<'_, Chunk>, usize) -> Outcome,", "RSliceMut<'_, Chunk>, u32) -> Outcome,"),
            (PIPES, "    room: usize,\n) -> Outcome", "    room: u32,\n) -> Outcome"),
            (PIPES, "outs.as_mut_slice(), room))", "outs.as_mut_slice(), room as usize))"),
        ],
        &["poll", "usize", "u32"],
    ),
    (
        "field",
        &[(CONTEXT, "    pub node: u64,\n", "    pub node: u64,\n    /// New.\n    pub extra: u64,\n")],
        &["Context", "extra"],
    ),
    (
        "method",
        &[
            (
                TABLES,
                "pub state: unsafe extern \"C\" fn(*const (), &mut State) -> Outcome,",
                "pub saved: unsafe extern \"C\" fn(*const (), &mut State) -> Outcome,",
            ),
            (PIPES, "        state: state::<C>,", "        saved: state::<C>,"),
        ],
        &["state", "saved"],
    ),
];

#[test]
fn a_plugin_of_another_layout_is_refused_with_both_sides() {
    for (name, patches, says) in REFUSED {
        let error = run(&plugin(name, patches)).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Abi, "{text}");
        assert!(text.lines().count() <= 10, "{text}");
        for part in says.iter().chain(&["another layout of the ABI", "once", &format!("changed-{name}")]) {
            assert!(text.contains(part), "{name}: {part:?} is not in: {text}");
        }
    }
}

#[test]
fn a_plugin_built_against_our_own_sources_elsewhere_runs() {
    assert_eq!(run(&plugin("same", &[])).unwrap(), 17);
}

#[test]
fn a_plugin_with_more_in_its_tables_runs() {
    assert_eq!(run(&plugin("newer", &LONGER)).unwrap(), 17);
}

/// A host with more in its tables: the loader's own way of opening a library, and calls of what it gave.
const HOST: &str = r#"//! Loads the plugin at the first argument by the loader's own check, and makes its pipe.
#[path = "library.rs"]
mod library;

use forebay_core::abi::abi_stable::std_types::{ROption, RStr};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let plugin = library::load(std::path::Path::new(&args[1]), &args[2]).unwrap_or_else(|error| panic!("{error}"));
    let mut place = ROption::RNone;
    unsafe { plugin.pipe()(RStr::from(args[3].as_str()), RStr::from("{}"), &mut place) };
    let pipe = place.into_option().unwrap();
    let mut len = 0;
    let outcome = unsafe { pipe.table.len()(pipe.instance, &mut len) };
    unsafe { pipe.table.free()(pipe.instance) };
    println!("{} {len}", outcome.detail);
}
"#;

#[test]
fn a_host_with_more_in_its_tables_takes_a_plugin_of_today() {
    within_deadline(|| {
        let manifest = "[package]\nname = \"newer-host\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                        [dependencies]\nforebay-core.workspace = true\nlibloading = \"0.9\"\n";
        let library = fs::read_to_string(root().join("loader/src/registry/library.rs")).unwrap();
        let files = [("src/main.rs", HOST), ("src/library.rs", &library)];
        let folder = changed("host", &LONGER, manifest, &files);
        let host = Cargo::apart(&folder).build("newer-host");
        let run = |plugin: &Path, entry: &str, pipe: &str| {
            let output = Command::new(&host).arg(plugin).args([entry, pipe]).output().unwrap();
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            (output.status.success(), text)
        };
        let rogue = plugin_file("forebay-rogue");
        assert_eq!(run(&rogue, "forebay_plugin_forebay_rogue", "rogue_source"), (true, "0 0\n".to_owned()));
        // It is as strict as ever with what is not at the end.
        let (fits, text) =
            run(&plugin(REFUSED[0].0, REFUSED[0].1), "forebay_plugin_changed_reordered", "once");
        assert!(!fits && text.contains("another layout"), "{text}");
    });
}
