//! Reads what can be read of a folder in which a file is broken, and says which one and why.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example broken_files -- FOLDER
//! ```

use std::{env, fs, path::PathBuf};

use forebay_loader::{ErrorKind, Loader, Registry, Result, open};

/// A folder with three files of JSON, of which one ends too early.
fn example() -> Result<PathBuf> {
    let folder = env::temp_dir().join(format!("forebay-broken-files-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    for (name, text) in [("a", r#"{"bird": "heron"}"#), ("b", r#"{"bird": "#), ("c", r#"{"bird": "stork"}"#)]
    {
        fs::write(folder.join(format!("{name}.json")), text)?;
    }
    Ok(folder)
}

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    let folder = env::args().nth(1).map_or_else(example, |folder| Ok(PathBuf::from(folder)))?;
    let registry = Registry::from_env()?;
    let graph = open(&folder.to_string_lossy(), &registry)?;
    let mut loader = Loader::builder(graph).build(&registry)?;
    loader.begin(0);
    let mut count = 0;
    let failure = loop {
        match loader.next_sample() {
            Some(Ok(_)) => count += 1,
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    println!("{count} files were read");
    for lost in loader.quarantine() {
        let (error, name) = (&lost.error, |path: &str| path.rsplit('/').next().map(str::to_owned));
        let file = error.file().or(lost.key.as_deref()).and_then(name).unwrap_or_default();
        let damaged = if error.kind() == ErrorKind::Corrupt { "damaged" } else { "not read" };
        println!("{file} is {damaged}: {} (pipe {})", error.message(), error.pipe().unwrap_or("?"));
    }
    // After everything readable the epoch ends with an error, unless the program allowed failures.
    println!("the epoch failed: {}", failure.is_some());
    Ok(())
}
