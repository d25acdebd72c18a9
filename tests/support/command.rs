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

use crate::{Cargo, PLUGINS, beside, plugin_file, root, within_deadline};

/// The command, built once, and away from the plugins that cargo put beside it.
pub fn command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| {
        let built = Cargo::workspace(&root()).arg("--bin").arg("forebay").build("forebay");
        let folder = beside("command");
        fs::create_dir_all(&folder).unwrap();
        // A link takes no room, and another test may have the command running.
        let (link, path) = (folder.join(format!("forebay-{}", std::process::id())), folder.join("forebay"));
        fs::hard_link(built, &link).unwrap();
        fs::rename(&link, &path).unwrap();
        // Of two names of one file `rename` leaves both.
        let _ = fs::remove_file(link);
        path
    })
}

/// All plugins, as `FOREBAY_PLUGIN_PATH` has them.
#[must_use]
pub fn all() -> OsString {
    env::join_paths(PLUGINS.iter().map(|name| plugin_file(name))).unwrap()
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
