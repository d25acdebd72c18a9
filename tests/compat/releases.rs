//! Plugins of releases before in this host, and plugins of today in hosts of those releases. The README says how a release comes here.

use std::{
    env::consts::DLL_SUFFIX,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    process::Command,
};

use flate2::read::GzDecoder;
use forebay_core::abi::{ABI_MAJOR, ABI_MINOR};
use forebay_tests::{Cargo, beside, crate_on, root, within_deadline, write};

use super::{expected, given, manifest};

/// Where a release's sources end.
const ARCHIVE: &str = ".tar.gz";

/// The sources of a release, or of today: a plugin and a host can be built of them.
struct Side {
    name: String,
    sources: PathBuf,
}

/// The releases that were frozen, unpacked, by their numbers.
fn releases() -> Vec<Side> {
    let here = root().join("tests/compat");
    let files = fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> =
        files.filter_map(|file| Some(file.to_str()?.strip_suffix(ARCHIVE)?.to_owned())).collect();
    names.sort();
    let all: Vec<_> = (0..=ABI_MINOR).map(|minor| format!("{ABI_MAJOR}.{minor}")).collect();
    assert_eq!(names, all, "every minor version is frozen, and none is given up");
    let unpack = |name: String| {
        let sources = beside("apart").join("releases").join(&name);
        let archive = File::open(here.join(format!("{name}{ARCHIVE}"))).unwrap();
        for entry in tar::Archive::new(GzDecoder::new(archive)).entries().unwrap() {
            let mut entry = entry.unwrap();
            if entry.header().entry_type().is_file() {
                let path = sources.join(entry.path().unwrap());
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).unwrap();
                write(&path, &bytes);
            }
        }
        Side { name, sources }
    };
    names.into_iter().map(unpack).collect()
}

fn today() -> Side {
    Side { name: "today".to_owned(), sources: root() }
}

impl Side {
    fn crate_name(&self, what: &str) -> String {
        format!("{what}-{}", self.name.replace('.', "-"))
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.sources.join(path)).unwrap()
    }

    /// Where the loader's check of layouts is: until 1.2 the loader was one crate.
    fn check_of_layouts(&self) -> &'static str {
        let now = "loader/registry/src/library.rs";
        if self.sources.join(now).exists() { now } else { "loader/src/registry/library.rs" }
    }

    /// The plugin, and its entry.
    fn plugin(&self) -> (PathBuf, String) {
        let name = self.crate_name("plugin");
        let manifest = manifest(&name, "2024", "{ workspace = true }");
        let code = self.read("tests/compat/plugin.rs");
        let folder = crate_on(&self.sources, &name, &[], &manifest, &[("src/lib.rs", &code)]);
        let library = name.replace('-', "_");
        let file = Cargo::apart(&folder).build(&format!("lib{library}{DLL_SUFFIX}"));
        (file, format!("forebay_plugin_{library}"))
    }

    /// The host: a program.
    fn host(&self) -> PathBuf {
        let name = self.crate_name("host");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nforebay-core.workspace = true\nlibloading = \"0.9\"\n"
        );
        let (host, library) = (self.read("tests/compat/host.rs"), self.read(self.check_of_layouts()));
        let files = [("src/main.rs", host.as_str()), ("src/library.rs", &library)];
        Cargo::apart(&crate_on(&self.sources, &name, &[], &manifest, &files)).build(&name)
    }
}

/// What a host says of a plugin.
fn hosted(host: &Path, (file, entry): &(PathBuf, String)) -> String {
    let mut command = Command::new(host);
    command.arg(file).arg(entry);
    let output = within_deadline(move || command.output().unwrap());
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{} and {}: {text}", host.display(), file.display());
    text
}

#[test]
fn plugins_of_every_release_run_in_every_host() {
    let mut sides = releases();
    sides.push(today());
    let plugins: Vec<_> = sides.iter().map(Side::plugin).collect();
    for (file, _) in &plugins {
        assert_eq!(given(file), expected(), "{}", file.display());
    }
    // A host in little has no stream; it decodes something that is cut off too.
    let mut lines: Vec<_> =
        expected().iter().map(|line| line.rsplit_once(" sum=").unwrap().0.to_owned()).collect();
    lines.push("Corrupt: found 4 bytes, expected 5, byte Some(\"4\")".to_owned());
    for side in &sides {
        let host = side.host();
        for plugin in &plugins {
            let said = hosted(&host, plugin);
            assert_eq!(said.lines().collect::<Vec<_>>(), lines, "{} and {}", side.name, plugin.1);
        }
    }
}
