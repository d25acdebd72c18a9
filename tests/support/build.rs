//! Building more with cargo, from within a test: other plugins, and the command.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_loader::registry::Manifest;

use crate::{plugin_file, plugins, root};

/// A build without the network.
pub struct Cargo {
    /// Cargo, with its environment, and what follows its verb.
    command: Command,
    args: Vec<String>,
    built: PathBuf,
}

impl Cargo {
    /// Builds the crate in `folder`, without optimisation, which is the quickest; all such builds share one folder
    /// beside the tests' own, and with it what they depend on.
    #[must_use]
    pub fn apart(folder: &Path) -> Self {
        let target = beside("apart");
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["--offline", "--quiet"]).current_dir(folder).env("CARGO_TARGET_DIR", &target);
        // What cargo sets for a test is for this package.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") || name == "RUSTFLAGS" {
                command.env_remove(name);
            }
        }
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        Self { command, args: Vec::new(), built: target.join("debug") }
    }

    /// Builds of the workspace in `folder`, as these tests were built and beside them.
    #[must_use]
    pub fn workspace(folder: &Path) -> Self {
        let deps = plugins();
        let target = beside("");
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // Features are those of the whole workspace: with others everything would be built once more.
        let mut args = vec!["--workspace".to_owned()];
        command.args(["--offline", "--quiet"]).current_dir(folder).env("CARGO_TARGET_DIR", &target);
        let profile = deps.parent().and_then(Path::file_name).unwrap().to_owned();
        if profile == "release" {
            args.push("--release".to_owned());
        }
        Self { command, args, built: target.join(profile) }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// With an environment variable, such as a setting of the profile `dev`.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// What cargo prints of the crate and all that it depends on, as JSON.
    ///
    /// # Panics
    /// With cargo's words, when it fails.
    #[must_use]
    pub fn metadata(mut self) -> serde_json::Value {
        // Of this platform alone: what others need is not here, unless something else fetched it.
        let target = Manifest::read(&plugin_file("forebay-pipes")).unwrap().target;
        let platform = ["--filter-platform", &target];
        let output = self.command.args(["metadata", "--format-version=1"]).args(platform).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the tests of the crate instead of building it: what cargo printed, and whether they passed.
    pub fn test(mut self) -> (String, bool) {
        let output = self.command.arg("test").args(&self.args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (text.into_owned(), output.status.success())
    }

    /// Builds, and gives the file of this name that was built.
    ///
    /// # Panics
    /// With cargo's words, when it fails.
    #[must_use]
    pub fn build(mut self, file: &str) -> PathBuf {
        let output = self.command.arg("build").args(&self.args).output().unwrap();
        assert!(output.status.success(), "{:?}: {}", self.command, String::from_utf8_lossy(&output.stderr));
        let file = self.built.join(file);
        assert!(file.is_file(), "{} was not built", file.display());
        file
    }
}

/// A folder of this name in the folder that all targets of the tests lie in.
#[must_use]
pub fn beside(name: &str) -> PathBuf {
    // The tests lie in TARGET/PROFILE/deps.
    let deps = plugins();
    deps.ancestors().nth(2).unwrap().join(name)
}

/// Writes a file and the folders above it, unless it holds just that, so that cargo builds only what changed.
pub fn write(path: &Path, bytes: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// The lock file of the workspace: builds apart take the same versions, which are here already.
#[must_use]
pub fn lock_file() -> PathBuf {
    root().join("Cargo.lock")
}

/// A change of the sources: a file, a piece of it, and what takes its place.
pub type Patch = (&'static str, &'static str, &'static str);

/// Makes a workspace with the sources of `forebay-core` in the folder `from`, changed, and a crate on them; gives the crate's folder.
///
/// All parts lie in a folder of the workspace with its name: cargo tells crates of several workspaces that share a
/// folder for what it builds by their place in the workspace alone.
#[must_use]
pub fn crate_on(
    from: &Path,
    name: &str,
    patches: &[Patch],
    manifest: &str,
    files: &[(&str, &str)],
) -> PathBuf {
    let workspace = beside("apart").join("sources").join(name);
    let house = workspace.join(name);
    let read = |path: &str| fs::read_to_string(from.join(path)).unwrap();
    let mut sources =
        vec!["core/Cargo.toml".to_owned(), "core/build.rs".to_owned(), "core/abi/Cargo.toml".to_owned()];
    let parts = ["core/src", "core/abi/src"];
    for part in parts {
        files_below(from, part, &mut sources);
    }
    // A target folder that is kept may have files that are gone or have another name now.
    let mut kept = Vec::new();
    for part in parts.into_iter().filter(|part| house.join(part).exists()) {
        files_below(&house, part, &mut kept);
    }
    for gone in kept.iter().filter(|path| !sources.contains(path)) {
        fs::remove_file(house.join(gone)).unwrap();
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

/// Adds the paths of all files below a folder in `root`.
fn files_below(root: &Path, folder: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap()) {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        match entry.file_type().unwrap().is_dir() {
            true => files_below(root, &path, paths),
            false => paths.push(path),
        }
    }
}

/// The dynamic symbols that a library defines.
///
/// # Panics
/// When `nm` fails, or is not there.
#[must_use]
pub fn exported(library: &Path) -> Vec<String> {
    let output =
        Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library).output().unwrap();
    assert!(output.status.success(), "{}: {}", library.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}
