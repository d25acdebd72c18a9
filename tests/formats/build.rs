//! Writes `formats.rs`: a module for each `format.rs` in a folder of `plugins/`, and the list of all.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let plugins = fs::canonicalize("../../plugins")?;
    let mut folders = Vec::new();
    for entry in fs::read_dir(&plugins)? {
        let folder = entry?.path();
        if folder.join("format.rs").exists() {
            folders.push(folder);
        }
    }
    folders.sort();
    if folders.is_empty() {
        return Err("no folder of plugins/ has a format.rs".into());
    }
    let (mut modules, mut list) = (String::new(), String::new());
    for folder in &folders {
        let name = folder.file_name().and_then(|name| name.to_str()).ok_or("a name that is not UTF-8")?;
        let module = name.replace('-', "_");
        modules += &format!("#[path = {folder:?}]\nmod {module} {{\n    pub(crate) mod format;\n}}\n");
        list += &format!("    ({name:?}, &{module}::format::FORMAT),\n");
    }
    let text = format!(
        "{modules}\n/// The formats, by the folders of their plugins.\npub const FORMATS: &[(&str, &Format)] = &[\n{list}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("formats.rs"), text)?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../plugins");
    Ok(())
}
