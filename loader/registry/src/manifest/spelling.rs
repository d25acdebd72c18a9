//! Manifests of plugins in C are typed by hand: what in one means nothing is refused, and not left out in silence.

use forebay_core::{Error, Result, nearest};
use forebay_graph::{Kind, On, OptionSpec, PipeSpec, fits};
use serde_json::Value;

use crate::{DecoderSpec, Manifest};

/// The keys of each part, as the header has them; of pipes also those that only Rust's have, which the caller refuses by what they say.
const MANIFEST: [&str; 12] = [
    "name",
    "version",
    "license",
    "repository",
    "entry",
    "state_version",
    "rustc",
    "target",
    "cpu",
    "pipes",
    "decoders",
    "stores",
];
const DECODER: [&str; 7] = ["name", "summary", "priority", "extensions", "media_types", "magic", "options"];
const STORE: [&str; 4] = ["name", "summary", "schemes", "options"];
const OPTION: [&str; 10] =
    ["name", "kind", "list", "optional", "required", "default", "min", "max", "choices", "doc"];
const MAGIC: [&str; 2] = ["offset", "bytes"];

/// Refuses keys that are none.
///
/// # Errors
/// `Corrupt`, with the key, where it stands, and those it may have been meant for.
pub(crate) fn keys(json: &[u8]) -> Result<()> {
    // What cannot be read is told by whoever reads it.
    let Ok(manifest) = serde_json::from_slice::<Value>(json) else { return Ok(()) };
    let spec = serde_json::to_value(PipeSpec::map("", "")).unwrap_or_default();
    let pipe: Vec<&str> =
        spec.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).chain(["opens"]).collect();
    known(&manifest, &MANIFEST, "")?;
    for (list, keys) in [("decoders", &DECODER[..]), ("pipes", &pipe), ("stores", &STORE)] {
        for part in items(&manifest, list) {
            let name = part["name"].as_str().unwrap_or("?");
            known(part, keys, &format!(" in `{name}`"))?;
            for option in items(part, "options") {
                let option_name = option["name"].as_str().unwrap_or("?");
                known(option, &OPTION, &format!(" in option `{option_name}` of `{name}`"))?;
            }
            for magic in items(part, "magic") {
                known(magic, &MAGIC, &format!(" in `magic` of `{name}`"))?;
            }
        }
    }
    for pipe in items(&manifest, "pipes") {
        let name = pipe["name"].as_str().unwrap_or("?");
        if let Some(on) = pipe["on"].as_str() {
            on.parse::<On>().map_err(|error| wrong(format!("`on` in `{name}`: {}", error.message())))?;
        }
    }
    Ok(())
}

fn items<'a>(value: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    value[list].as_array().into_iter().flatten()
}

fn known(part: &Value, keys: &[&str], place: &str) -> Result<()> {
    let mut given = part.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    match given.find(|key| !keys.contains(key)) {
        None => Ok(()),
        Some(key) => {
            let hint = nearest::did_you_mean(key, keys.iter().copied());
            Err(wrong(format!("unknown key `{key}`{place}{hint}")))
        }
    }
}

/// Refuses values that can never do what they are for: an extension with its dot, magic that is no hexadecimal, a default that its option refuses.
///
/// # Errors
/// `Corrupt`, with the value and what was expected.
pub(crate) fn values(manifest: &Manifest) -> Result<()> {
    for DecoderSpec { name, extensions, magic, .. } in &manifest.decoders {
        if let Some(extension) = extensions.iter().find(|extension| extension.starts_with('.')) {
            return Err(wrong(format!("extension `{extension}` in `{name}`, expected it without the dot")));
        }
        let is_hex = |bytes: &str| {
            bytes.len().is_multiple_of(2) && bytes.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        if let Some(magic) = magic.iter().find(|magic| !is_hex(&magic.bytes)) {
            let bytes = &magic.bytes;
            return Err(wrong(format!("magic `{bytes}` in `{name}`, expected pairs of hexadecimal digits")));
        }
    }
    let of_decoders = manifest.decoders.iter().map(|decoder| (&decoder.name, &decoder.options));
    let of_pipes = manifest.pipes.iter().map(|pipe| (&pipe.name, &pipe.options));
    for (name, options) in of_decoders.chain(of_pipes) {
        let bad = |option: &&OptionSpec| {
            !option.default.is_null() && option.kind != Kind::Any && fits(&option.default, option).is_err()
        };
        if let Some(option) = options.iter().find(bad) {
            let why = fits(&option.default, option).err().unwrap_or_default();
            return Err(wrong(format!("the default in `{name}`: {why}")));
        }
    }
    Ok(())
}

fn wrong(what: String) -> Error {
    Error::corrupt(format!("not a plugin: its manifest is wrong: {what}"))
}
