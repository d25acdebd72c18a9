//! What opens or decodes one file: what it holds decides, and its name helps where that does not tell.

use forebay_core::{Buffer, ENDLESS, Error, Result, Value, scheme_of, without_query};
use forebay_engine::Executor;
use forebay_graph::{Draft, Graph};
use forebay_registry::{HEAD, Opener, Registry};

use super::{FILES, FileKind, plain};
use crate::Loader;

/// So sure must a pipe be that it opens a packed file itself, or what the name says is in one that cannot be looked into.
const SURE: u8 = 128;
/// The option of a pipe that unpacks files: only so many bytes of what is inside.
const FIRST: &str = "first";

/// The first bytes of a file.
pub(super) fn head(file: &str, registry: &Registry) -> Result<Buffer> {
    registry.store(scheme_of(file))?.read(file, 0, HEAD as u64)
}

/// What opens or decodes a file.
pub(super) fn look(file: &str, registry: &Registry) -> Result<FileKind> {
    let store = registry.store(scheme_of(file))?;
    let head = store.read(file, 0, HEAD as u64)?;
    let stream = store.size(file).is_ok_and(|size| size == ENDLESS);
    let (kind, extension) = (FileKind { stream, ..FileKind::new(file) }, extension(file));
    let decoder = registry.decoder_of(extension, &head);
    let sure = decoder.as_ref().map_or(0, |&(_, _, score)| score);
    for opener in registry.openers(extension, &head)? {
        if opener.unpacks {
            let outer = decoder.as_ref().ok().map(|(decoder, ..)| decoder.as_str());
            if let Some(found) = look_inside(file, &head, &opener, outer, registry)? {
                return Ok(FileKind { stream, ..found });
            }
        } else if opener.score >= sure {
            return Ok(kind.opened(None, opener));
        }
    }
    Ok(match decoder {
        Ok((decoder, plugin, _)) => kind.decoded((decoder, plugin), registry),
        Err(error) => left(kind, extension, &head, &error, registry),
    })
}

/// A file that nobody takes: why.
fn left(kind: FileKind, extension: &str, head: &[u8], error: &Error, registry: &Registry) -> FileKind {
    let why = match registry.strangers(extension, head).as_slice() {
        [] => error.message().to_owned(),
        pipes => {
            let pipes = pipes.join(", ");
            format!(
                "named `.{extension}` like files that {pipes} opens, but its first bytes differ: it is damaged, incomplete or something else"
            )
        }
    };
    FileKind { left: Some(why), ..kind }
}

/// What opens or decodes what is in a file that `unpacker` unpacks, and the decoder `outer`, if there is one. None where neither what
/// is inside nor the name says it.
fn look_inside(
    file: &str,
    head: &[u8],
    unpacker: &Opener,
    outer: Option<&str>,
    registry: &Registry,
) -> Result<Option<FileKind>> {
    let (kind, inner) = (FileKind::new(file), inner(file, &unpacker.extensions));
    let Some(inside) = begins(file, unpacker, registry) else {
        return named(kind, inner, head, unpacker, registry);
    };
    let decoder = registry.decoder_of(inner, &inside);
    let sure = decoder.as_ref().map_or(0, |&(_, _, score)| score);
    let openers = registry.openers(inner, &inside)?.into_iter();
    if let Some(opener) = openers.filter(|opener| !opener.unpacks).find(|opener| opener.score >= sure) {
        // Some unpack as they read, which takes less memory: they say so of packed files that are called as theirs are.
        let called = opener.extensions.first().map_or("", String::as_str);
        let mut others = registry.openers(called, head)?.into_iter();
        let itself = others.any(|other| other.pipe == opener.pipe && other.score >= SURE);
        return Ok(Some(kind.opened((!itself).then_some(unpacker), opener)));
    }
    let Some(outer) = outer else { return Ok(None) };
    let extension = match (inner, extension(file)) {
        ("", outer) => outer.to_owned(),
        (inner, outer) if inner == outer => inner.to_owned(),
        (inner, outer) => format!("{inner}.{outer}"),
    };
    let kind =
        FileKind { extension: extension.to_ascii_lowercase(), unpacked_by: Some(outer.to_owned()), ..kind };
    Ok(Some(match decoder {
        Ok((decoder, plugin, _)) => kind.decoded((decoder, plugin), registry),
        Err(error) => FileKind { left: Some(error.message().to_owned()), ..kind },
    }))
}

/// What opens a packed file that cannot be looked into, by its name: whoever does will tell why.
fn named(
    kind: FileKind,
    inner: &str,
    head: &[u8],
    unpacker: &Opener,
    registry: &Registry,
) -> Result<Option<FileKind>> {
    for (head, unpacker) in [(head, None), (&[][..], Some(unpacker))] {
        let mut openers = registry.openers(inner, head)?.into_iter();
        if let Some(opener) = openers.find(|opener| !opener.unpacks && opener.score >= SURE) {
            return Ok(Some(kind.opened(unpacker, opener)));
        }
    }
    Ok(None)
}

/// The first bytes of what is in a packed file; none where it is broken before them.
fn begins(file: &str, unpacker: &Opener, registry: &Registry) -> Option<Vec<u8>> {
    let files = Draft::new(FILES).option("paths", plain(file)).option("open", "none");
    let unpacker = Draft::new(&unpacker.pipe).option(FIRST, HEAD as u64);
    let graph = Graph::builder().node(files.inputs([""; 0])).node(unpacker).build().ok()?;
    let mut loader = Loader::builder(graph).executor(Executor::modest(registry)).build(registry).ok()?;
    let sample = loader.epoch(0).next()?.ok()?;
    sample.get("bytes").and_then(Value::as_bytes).map(|bytes| bytes.to_vec())
}

/// What follows the last dot of a file's name; a shard's number is passed over, as in `train.tfrecord-00000-of-00010`.
pub(super) fn extension(file: &str) -> &str {
    let name = without_query(file).rsplit('/').next().unwrap_or(file);
    let extension =
        name.rsplit_once('.').map_or("", |(before, after)| if before.is_empty() { "" } else { after });
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shard = extension
        .split_once('-')
        .filter(|(_, rest)| rest.split_once("-of-").is_some_and(|(one, all)| number(one) && number(all)));
    shard.map_or(extension, |(before, _)| before)
}

/// The extension of what is in a packed file: that before the endings of packing.
fn inner<'a>(file: &'a str, packing: &[String]) -> &'a str {
    let mut rest = without_query(file);
    loop {
        let found = extension(rest);
        let before = rest.rfind('.').map_or("", |dot| &rest[..dot]);
        if found.is_empty() || !packing.iter().any(|known| known.eq_ignore_ascii_case(found)) {
            return found;
        }
        rest = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_is_that_of_the_last_part() {
        for (file, expected) in [
            ("a/b.tar", "tar"),
            ("a.b/c", ""),
            (".hidden", ""),
            ("x.tfrecord-00000-of-00010", "tfrecord"),
            ("x.tar-old", "tar-old"),
            ("x.jsonl.gz", "gz"),
        ] {
            assert_eq!(extension(file), expected, "{file}");
        }
    }

    #[test]
    fn the_extension_inside_is_that_before_the_packing() {
        let packing = ["gz".to_owned(), "zst".to_owned()];
        for (file, expected) in [
            ("a/b.json.gz", "json"),
            ("a/b.json.GZ.zst", "json"),
            ("a.b/c.gz", ""),
            ("a.b/.gz", ""),
            ("a/b.json", "json"),
            ("x.tfrecord-00000-of-00010.gz", "tfrecord"),
            ("x.tfrecord.gz-00000-of-00010", "tfrecord"),
            ("gz", ""),
        ] {
            assert_eq!(inner(file, &packing), expected, "{file}");
        }
    }
}
