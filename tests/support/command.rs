//! The command `forebay`, run by tests.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Cargo, PLUGINS, plugin_file, root, within_deadline};

/// The command, built once and moved away from the plugins that cargo put beside it.
pub fn command() -> &'static Path {
    static FOLDER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let built = Cargo::workspace(&root()).arg("--bin").arg("forebay").build("forebay");
        let path = folder.path().join("forebay");
        fs::copy(built, &path).unwrap();
        (folder, path)
    });
    path
}

/// All plugins, as `FOREBAY_PLUGIN_PATH` has them.
#[must_use]
pub fn all() -> OsString {
    env::join_paths(PLUGINS.map(plugin_file)).unwrap()
}

/// Runs the command at the root of the repository with nothing of the environment but what is given.
pub fn forebay(variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(args).current_dir(root()).env_clear().env("FOREBAY_PLUGIN_SYSTEM_PATH", "");
    command.env("HOME", "/nowhere").env("FOREBAY_PLUGIN_PATH", all()).envs(variables.iter().copied());
    within_deadline(move || command.output().unwrap())
}

/// The JSON that it printed.
///
/// # Panics
/// When it printed something else.
#[must_use]
#[track_caller]
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}
