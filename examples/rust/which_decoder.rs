//! What decodes a file, and why. It uses plugins without running a graph.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example which_decoder -- plugins/image/tests/jpeg/420.jpg
//! ```

use std::{
    env,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use forebay_loader::{Registry, Result, registry::HEAD};

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    let path =
        PathBuf::from(env::args().nth(1).unwrap_or_else(|| "plugins/image/tests/jpeg/420.jpg".to_owned()));
    let mut head = Vec::new();
    File::open(&path)?.take(HEAD as u64).read_to_end(&mut head)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();

    let registry = Registry::from_env()?;
    for candidate in registry.rank(extension, &head).iter().filter(|candidate| candidate.score > 0) {
        println!(
            "{:>3} {} of {}: {}",
            candidate.score, candidate.decoder, candidate.plugin, candidate.reason
        );
    }
    let (decoder, plugin, _) = registry.decoder_of(extension, &head)?;
    println!(
        "{} is decoded by {decoder} of {plugin}",
        path.file_name().map(Path::new).unwrap_or(&path).display()
    );
    Ok(())
}
