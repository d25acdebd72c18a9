//! Building more with cargo, from within a test: other plugins, and the command.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{plugins, root};

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
