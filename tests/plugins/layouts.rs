//! Plugins built against other layouts of the ABI: what differs is refused with both sides, what was only added to
//! the end of a table fits, whichever side is newer.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_loader::{ErrorKind, Loader, Registry, Result, Search};
use forebay_tests::{
    Cargo, Patch,
    command::{forebay, json},
    crate_on, line, plugin_file, root, within_deadline,
};

/// A source of one sample and nothing else.
const PLUGIN: &str = r#"//! A source of one sample.
use forebay_core::{Context, DataPipe, Key, NoOptions, PipeInfo, Result, Sample, Source};

pub struct Once(bool);

impl DataPipe for Once {
    const INFO: PipeInfo = PipeInfo { name: "once", summary: "One sample", ..PipeInfo::DEFAULT };
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

const CHUNK: &str = "core/abi/src/chunk.rs";
const TABLES: &str = "core/abi/src/tables.rs";
const CONTEXT: &str = "core/abi/src/context.rs";
const PIPES: &str = "core/src/shim/pipes.rs";

/// Tables with one more function than ours: one that plugins have, and one that hosts have.
const LONGER: [Patch; 3] = [
    (
        TABLES,
        "    pub length: unsafe extern \"C\" fn(*const (), &Context, RSlice<'_, u64>, &mut u64) -> Outcome,\n}",
        "    pub length: unsafe extern \"C\" fn(*const (), &Context, RSlice<'_, u64>, &mut u64) -> Outcome,\n    /// New.\n    \
         #[sabi(missing_field(option))]\n    pub more: unsafe extern \"C\" fn(*const (), &mut u64) -> Outcome,\n}",
    ),
    (PIPES, "length: length::<C>,", "length: length::<C>,\n        more: len::<C>,"),
    (
        CONTEXT,
        "    pub store: unsafe extern \"C\" fn(*const (), RStr<'_>, &mut ROption<Store>) -> Outcome,\n}",
        "    pub store: unsafe extern \"C\" fn(*const (), RStr<'_>, &mut ROption<Store>) -> Outcome,\n    /// New.\n    \
         #[sabi(missing_field(option))]\n    pub time: unsafe extern \"C\" fn(*const ()) -> u64,\n}",
    ),
];

/// Builds a plugin against changed sources.
fn plugin(name: &str, patches: &[Patch]) -> PathBuf {
    let manifest = format!(
        "[package]\nname = \"changed-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nlicense = \"MIT\"\n\
         [lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nforebay-core.workspace = true\n"
    );
    let folder = crate_on(&root(), name, patches, &manifest, &[("src/lib.rs", PLUGIN)]);
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
        &["PipeTable.poll", "usize", "u32"],
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

/// That a refusal is short, and has these words and where they come from.
#[track_caller]
fn assert_says(refusal: &str, name: &str, says: &[&str]) {
    assert!(refusal.lines().count() <= 10, "{refusal}");
    for part in says.iter().chain(&["another layout of the ABI"]) {
        assert!(refusal.contains(part), "{name}: {part:?} is not in: {refusal}");
    }
}

#[test]
fn a_plugin_of_another_layout_is_refused_with_both_sides() {
    for (name, patches, says) in REFUSED {
        let file = plugin(name, patches);
        let error = run(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Abi, "{error}");
        let text = error.to_string();
        assert_says(&text, name, says);
        assert_says(&text, name, &["once", &format!("changed-{name}")]);
        // The kit says the same, and runs no check that could only say it again.
        let output = forebay(&[], &["plugins", "test", "--json", file.to_str().unwrap()]);
        let report = json(&output);
        let rows = report["rows"].as_array().unwrap();
        let failed = |row: &&serde_json::Value| row["verdict"] != "passed" && row["verdict"] != "skipped";
        let failed: Vec<_> = rows.iter().filter(failed).collect();
        assert_eq!((output.status.code(), failed.len()), (Some(1), 1), "{report:#}");
        assert_eq!(failed[0]["check"], "layout", "{report:#}");
        assert_says(failed[0]["detail"].as_str().unwrap(), name, says);
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
    let plugin = library::load(std::path::Path::new(&args[1]), &args[2]).unwrap_or_else(|error| {
        println!("{error}");
        std::process::exit(1);
    });
    let mut place = ROption::RNone;
    unsafe { plugin.pipe()(RStr::from(args[3].as_str()), RStr::from("{}"), &mut place) };
    let pipe = place.into_option().unwrap();
    let mut len = 0;
    let outcome = unsafe { pipe.table.len()(pipe.instance, &mut len) };
    unsafe { pipe.table.free()(pipe.instance) };
    println!("{} {len}", outcome.detail);
}
"#;

/// Builds a host from changed sources.
fn host(name: &str, patches: &[Patch]) -> PathBuf {
    let manifest = format!(
        "[package]\nname = \"changed-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\nforebay-core.workspace = true\nlibloading = \"0.9\"\n"
    );
    let library = fs::read_to_string(root().join("loader/registry/src/library.rs")).unwrap();
    let files = [("src/main.rs", HOST), ("src/library.rs", &library)];
    Cargo::apart(&crate_on(&root(), name, patches, &manifest, &files)).build(&format!("changed-{name}"))
}

/// Whether a host takes a plugin, and what it printed.
fn host_runs(host: &Path, plugin: &Path, entry: &str, pipe: &str) -> (bool, String) {
    let (host, plugin) = (host.to_owned(), plugin.to_owned());
    let args = [entry.to_owned(), pipe.to_owned()];
    let output = within_deadline(move || Command::new(&host).arg(plugin).args(args).output().unwrap());
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.success(), text)
}

#[test]
fn a_host_with_more_in_its_tables_takes_a_plugin_of_today() {
    let host = host("host", &LONGER);
    let rogue = plugin_file("forebay-rogue");
    let ran = host_runs(&host, &rogue, "forebay_plugin_forebay_rogue", "rogue_source");
    assert_eq!(ran, (true, "0 0\n".to_owned()));
    // It is as strict as ever with what is not at the end.
    let (name, patches, says) = REFUSED[0];
    let (fits, text) = host_runs(&host, &plugin(name, patches), "forebay_plugin_changed_reordered", "once");
    assert!(!fits, "{text}");
    assert_says(&text, name, says);
}

/// No enum of ours crosses, only numbers. So this gives the context one, with or without a last variant.
macro_rules! with_mood {
    ($last:literal) => {
        [
            (CONTEXT, "    pub node: u64,\n", "    pub node: u64,\n    /// New.\n    pub mood: Mood,\n"),
            (
                CONTEXT,
                "/// The context of one call. It",
                concat!(
                    "/// New.\n#[repr(u8)]\n#[derive(StableAbi, Clone)]\npub enum Mood {\n    /// .\n    Calm,\n    /// .\n    Wild,\n",
                    $last,
                    "}\n\n/// The context of one call. It"
                ),
            ),
        ]
    };
}

#[test]
fn a_plugin_with_a_variant_more_is_refused_by_its_name() {
    let host = host("mood-host", &with_mood!(""));
    let runs = |name: &str, patches: &[Patch]| {
        host_runs(&host, &plugin(name, patches), &format!("forebay_plugin_changed_{name}"), "once")
    };
    assert_eq!(runs("mood", &with_mood!("")), (true, "0 0\n".to_owned()));
    let (fits, text) = runs("variant", &with_mood!("    /// .\n    Odd,\n"));
    assert!(!fits, "{text}");
    assert_says(
        &text,
        "variant",
        &["PipeTable.reset, Context.mood (Mood)", "variants Calm, Wild", "Calm, Wild, Odd"],
    );
}
