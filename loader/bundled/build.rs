//! Writes `plugins.rs`: the crates of the folders in `plugins/`, and a function that registers them all.
#![expect(clippy::print_stderr, reason = "what the manifest lacks is said as a line that can be copied")]

use std::{env, error::Error, fs, path::Path, process::exit};

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let mut folders = Vec::new();
    for entry in fs::read_dir("../../plugins")? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.file_name().into_string().map_err(|name| format!("{name:?}"))?);
        }
    }
    folders.sort();
    if folders.is_empty() {
        return Err("no folder in plugins/".into());
    }
    let (mut crates, mut calls) = (String::new(), String::new());
    for folder in folders {
        let line = format!("forebay-{folder} = {{ path = \"../../plugins/{folder}\" }}");
        if !manifest.lines().any(|has| has == line) {
            eprintln!("loader/bundled/Cargo.toml lacks this line:\n{line}");
            exit(1);
        }
        let name = format!("forebay_{}", folder.replace('-', "_"));
        crates += &format!("pub use {name};\n");
        calls += &format!("    {name}::register(registrar)?;\n");
    }
    let text = format!(
        "{crates}\n/// Adds every plugin by the `register` that `export_plugin!` wrote.\n///\n/// # Errors\n\
         /// `Abi`, when one does not fit, which would be a broken build.\n\
         pub fn register(registrar: &mut dyn Registrar) -> Result<()> {{\n{calls}    Ok(())\n}}\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("plugins.rs"), text)?;
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../plugins");
    Ok(())
}
