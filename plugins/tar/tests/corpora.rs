//! Archives by other programs against what reference readers found in them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use forebay_core::ErrorKind;
use forebay_tar::{Kind, read, walk};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// Files whose listing differs from the reference for a reason, which stands beside each.
const DIFFERENT: [(&str, &str); 4] = [
    // Python's tarfile joins the times that GNU's old format keeps where ustar has the prefix; GNU tar and bsdtar do not.
    ("tar/golang/gnu-incremental.tar", "times taken for a prefix"),
    ("tar/tar-stream/gnu-incremental.tar", "times taken for a prefix"),
    // Go before 1.8 wrote a prefix under GNU's magic, where no reader but tarfile looks for it.
    ("tar/golang/invalid-go17.tar", "a prefix under GNU's magic"),
    // Two long names for one member: GNU tar takes the last, tarfile the first.
    ("tar/golang/gnu-multi-hdrs.tar", "two long names"),
];

fn corpora() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = env::var_os("FOREBAY_CORPORA").map_or_else(beside, PathBuf::from);
    folder.join("manifest.jsonl").exists().then_some(folder)
}

fn kind_name(kind: Kind) -> String {
    match kind {
        Kind::File => "file".into(),
        Kind::HardLink => "hardlink".into(),
        Kind::SymLink => "symlink".into(),
        Kind::CharDevice => "char".into(),
        Kind::BlockDevice => "block".into(),
        Kind::Directory => "dir".into(),
        Kind::Fifo => "fifo".into(),
        Kind::Other(flag) => format!("other:{}", flag as char),
        other => format!("{other:?}"),
    }
}

/// A name as the manifest writes it: bytes that are not UTF-8 as `%XX`, no slash at the end.
fn text(name: &[u8]) -> String {
    let parts = name.utf8_chunks().map(|chunk| {
        let odd: String = chunk.invalid().iter().map(|byte| format!("%{byte:02X}")).collect();
        format!("{}{odd}", chunk.valid())
    });
    parts.collect::<String>().trim_end_matches('/').to_owned()
}

/// How one file went: fine, or why not.
fn check(entry: &Json, bytes: &[u8]) -> Result<&'static str, String> {
    let digest = &entry["digest"];
    let found: Vec<_> = walk(bytes).collect();
    let streamed: Vec<_> = read(bytes, 1 << 30).collect();
    // A size above the stream's limit is refused before it is found to be too long for the file.
    let limited = matches!(streamed.last(), Some(Err(error)) if error.kind() == ErrorKind::Limit);
    if found != streamed && !limited {
        return Err("the stream gives other members".into());
    }
    let errors: Vec<_> = found.iter().filter_map(|member| member.as_ref().err()).collect();
    let expect = entry["expect"].as_str().unwrap_or_default();
    match (expect, errors.first()) {
        ("reject", Some(_)) => return Ok("refused"),
        ("reject", None) => return Err("was read, must be refused".into()),
        ("valid", Some(error)) if !digest["compression"].is_null() => {
            let packed = error.message().contains("packed by") || bytes.len() < 512;
            return if packed { Ok("packed, refused") } else { Err(error.to_string()) };
        }
        ("valid", _) => {}
        _ => return Ok("either"),
    }
    let listed = digest["entries"].as_array().ok_or("no entries in the manifest")?;
    if listed.len() != found.len() {
        return Err(format!("{} members, expected {}: {errors:?}", found.len(), listed.len()));
    }
    let mut sparse = false;
    for (member, wanted) in found.iter().zip(listed) {
        let (name, kind) = (wanted[0].as_str().unwrap_or_default(), wanted[1].as_str().unwrap_or_default());
        let member = match member {
            Err(error)
                if kind == "sparse"
                    && error.get("member").map(|name| text(name.as_bytes())) == Some(name.into()) =>
            {
                sparse = true;
                continue;
            }
            Err(error) => return Err(format!("{name}: {error}")),
            Ok(member) => member,
        };
        let is = kind_name(member.kind);
        if text(&member.name) != name || (is != kind && kind != "contiguous") {
            return Err(format!("found {is} {}, expected {kind} {name}", text(&member.name)));
        }
        let value = wanted[3].as_str().unwrap_or_default();
        let link = format!("-> {}", text(&member.link));
        let (size, hash) =
            (wanted[2].as_u64().unwrap_or_default(), format!("{:x}", Sha256::digest(&member.data)));
        match member.kind {
            Kind::File if member.data.len() as u64 != size || hash != value => {
                return Err(format!(
                    "{name}: {} bytes with hash {hash}, expected {size}, {value}",
                    member.data.len()
                ));
            }
            // The manifest drops the slash at the end of names only.
            Kind::HardLink | Kind::SymLink if link.trim_end_matches('/') != value.trim_end_matches('/') => {
                return Err(format!("{name}: {link}, expected {value}"));
            }
            _ => {}
        }
    }
    Ok(if sparse { "matches but for sparse members, refused by name" } else { "matches" })
}

#[test]
fn archives_of_other_programs_list_as_the_references_say() {
    let Some(folder) = corpora() else {
        return say("SKIPPED: no corpora at ../shared/corpora nor at FOREBAY_CORPORA");
    };
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    let mut failures = Vec::new();
    for line in fs::read_to_string(folder.join("manifest.jsonl")).unwrap().lines() {
        let entry: Json = serde_json::from_str(line).unwrap();
        let path = entry["path"].as_str().unwrap();
        if entry["format"] != "tar" {
            continue;
        }
        // The folder holds a part of what the manifest lists.
        let Ok(bytes) = fs::read(folder.join("files").join(path)) else {
            *counts.entry("not in the folder").or_default() += 1;
            continue;
        };
        match (check(&entry, &bytes), DIFFERENT.iter().any(|(known, _)| *known == path)) {
            (Ok(outcome), false) => *counts.entry(outcome).or_default() += 1,
            (Err(_), true) => *counts.entry("differs for a reason").or_default() += 1,
            (Err(why), false) => failures.push(format!("{path}: {why}")),
            (Ok(_), true) => failures.push(format!("{path}: no longer differs")),
        }
    }
    say(&format!("corpora: {counts:?}"));
    assert!(failures.is_empty(), "{counts:?}\n{}", failures.join("\n"));
    assert!(counts.get("matches").is_some_and(|count| *count > 40), "{counts:?}");
}

#[expect(clippy::print_stderr, reason = "a skipped or counted corpus must be seen")]
fn say(line: &str) {
    eprintln!("{line}");
}
