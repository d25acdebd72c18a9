//! Says which compiler builds this, for the manifest of every plugin.

use std::{env, process::Command};

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok().map(|output| output.stdout);
    let version = String::from_utf8_lossy(version.as_deref().unwrap_or_default()).trim().to_owned();
    println!("cargo::rustc-env=FOREBAY_RUSTC={version}");
    println!("cargo::rustc-env=FOREBAY_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
}
