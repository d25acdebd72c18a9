//! What the fields of files are called that are one picture or one sound each: as other tools do, and not by their extensions.

use std::collections::HashSet;

use super::FileKind;

/// The first parts of media types that are names of fields.
const NAMES: [&str; 3] = ["image", "audio", "video"];
/// The field of a file without an extension.
const NAMELESS: &str = "bytes";

/// The name of the field for a file whose decoder reads these media types.
pub(super) fn of(media_types: &[String]) -> Option<&'static str> {
    let name = |media: &String| NAMES.into_iter().find(|name| media.split('/').next() == Some(name));
    media_types.iter().find_map(name)
}

/// What fields are renamed to: `jpg;png=image`.
///
/// Nothing is where that could not be told apart: where two such files are of one sample, as a picture and its mask, or a file is called by that name.
pub(super) fn names(kinds: &[FileKind], files: &[String]) -> Vec<String> {
    NAMES.iter().filter_map(|name| renamed(name, kinds, files)).collect()
}

fn renamed(name: &str, kinds: &[FileKind], files: &[String]) -> Option<String> {
    let is_other = |extension: &str| {
        kinds
            .iter()
            .any(|kind| kind.extension == extension && kind.decoder.is_some() && kind.media != Some(name))
    };
    let mut extensions: Vec<&str> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.media == Some(name)) {
        let extension = kind.extension.as_str();
        if !extensions.contains(&extension) && !extension.contains([';', '=']) && !is_other(extension) {
            extensions.push(extension);
        }
    }
    // The longest first: `png.gz` is not `gz`.
    let mut longest = extensions.clone();
    longest.sort_by_key(|extension| std::cmp::Reverse(extension.len()));
    let mut stems = HashSet::new();
    for file in files {
        let own = longest.iter().find_map(|extension| stem(file, extension));
        if stem(file, name).is_some() || own.is_some_and(|stem| !stems.insert(stem)) {
            return None;
        }
    }
    let fields: Vec<_> = extensions
        .into_iter()
        .map(|extension| if extension.is_empty() { NAMELESS } else { extension })
        .collect();
    (!fields.is_empty()).then(|| format!("{}={name}", fields.join(";")))
}

/// The path of a file with this extension, up to it.
fn stem<'a>(file: &'a str, extension: &str) -> Option<&'a str> {
    if extension.is_empty() {
        let name = file.rsplit('/').next().unwrap_or(file);
        return name.rfind('.').is_none_or(|at| at == 0).then_some(file);
    }
    let at = file.len().checked_sub(extension.len() + 1)?;
    let ends = file.get(at..)?.strip_prefix('.')?.eq_ignore_ascii_case(extension);
    ends.then(|| &file[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(of: &[(&str, &str, &str)]) -> Vec<FileKind> {
        let kind = |&(extension, decoder, media): &(&str, &str, &str)| FileKind {
            extension: extension.to_owned(),
            decoder: (!decoder.is_empty()).then(|| decoder.to_owned()),
            media: self::of(&[media.to_owned()]),
            ..FileKind::new("x")
        };
        of.iter().map(kind).collect()
    }

    fn named(of: &[(&str, &str, &str)], files: &[&str]) -> Vec<String> {
        names(&kinds(of), &files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_picture_is_an_image_unless_a_sample_has_two() {
        let both = [("jpg", "jpeg", "image/jpeg"), ("png", "png", "image/png")];
        assert_eq!(named(&both, &["d/1.jpg", "d/2.PNG", "e/1.png"]), ["jpg;png=image"]);
        assert!(named(&both, &["d/1.jpg", "d/1.png"]).is_empty(), "a picture and its mask");
        assert!(named(&both, &["d/1.jpg", "d/1.image"]).is_empty(), "the name is taken");
        assert_eq!(named(&[("", "png", "image/png")], &["d.x/1", ".2"]), ["bytes=image"]);
        let mixed =
            [("png.gz", "png", "image/png"), ("wav", "wav", "audio/wav"), ("txt", "text", "text/plain")];
        let files = ["1.png.gz", "1.wav", "1.txt"];
        assert_eq!(named(&mixed, &files), ["png.gz=image", "wav=audio"]);
        let other = [("dat", "png", "image/png"), ("dat", "text", "text/plain")];
        assert!(named(&other, &["1.dat", "2.dat"]).is_empty(), "not all are pictures");
        let broken = [("jpg", "jpeg", "image/jpeg"), ("jpg", "", "")];
        assert_eq!(named(&broken, &["1.jpg", "2.jpg"]), ["jpg=image"]);
    }
}
