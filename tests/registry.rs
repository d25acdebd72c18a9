//! Finding plugins: what is taken, what is refused and why, and that nothing is loaded before it is used.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_core::{Buffer, Value, View, Wanted};
use forebay_loader::{Error, ErrorKind, Graph, Loader, Registry, Result, Rng, Search, registry::Manifest};
use forebay_testkit::Host;
use forebay_tests::{PLUGINS, copy, folder_of, line, plugin_file, plugins, registry};

/// The most lines of anything that says why.
const LINES: usize = 10;

fn look(folder: &Path) -> Registry {
    Registry::new(Search::nowhere().first(folder)).unwrap()
}

fn names(registry: &Registry) -> Vec<&str> {
    registry.plugins().iter().map(|record| record.manifest().name.as_str()).collect()
}

fn count(graph: &str, registry: &Registry) -> Result<usize> {
    let mut loader = Loader::builder(line(graph)).build(registry)?;
    let mut count = 0;
    for sample in loader.epoch(0) {
        sample?;
        count += 1;
    }
    Ok(count)
}

/// Whether the library is in this process.
fn is_mapped(file: &Path) -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().contains(file.to_str().unwrap())
}

#[test]
fn a_registry_without_plugins_says_how_to_name_some() {
    let empty = tempfile::tempdir().unwrap();
    assert!(
        look(empty.path()).looked_at().contains("name the folder of their libraries in FOREBAY_PLUGIN_PATH")
    );
    assert!(!look(&plugins()).looked_at().contains("FOREBAY_PLUGIN_PATH"));
}

#[test]
fn all_plugins_of_the_workspace_are_next_to_the_tests() {
    let found = look(&plugins());
    for name in PLUGINS.iter() {
        assert!(
            names(&found).contains(name),
            "{name} is not in {}: {}",
            plugins().display(),
            found.looked_at()
        );
    }
    assert!(found.looked_at().lines().count() <= LINES);
}

#[test]
fn a_plugin_is_loaded_when_it_is_used_and_not_before() {
    let folder = folder_of(&["forebay-pipes", "forebay-rogue"]);
    let registry = look(folder.path());
    let [pipes, rogue] = ["forebay-pipes", "forebay-rogue"]
        .map(|name| registry.plugins().iter().find(|record| record.manifest().name == name).unwrap());
    assert_eq!(rogue.manifest().decoders[0].extensions, ["rogue"]);
    line("range 3 | rogue_map").check(&registry).unwrap();
    for record in [pipes, rogue] {
        assert!(!record.is_loaded() && !is_mapped(record.path().unwrap()));
    }
    assert_eq!(count("range 3", &registry).unwrap(), 3);
    assert!(pipes.is_loaded() && is_mapped(pipes.path().unwrap()));
    assert!(!rogue.is_loaded() && !is_mapped(rogue.path().unwrap()));
}

#[test]
fn buffers_cross_the_boundary_both_ways_without_a_copy() {
    let folder = folder_of(&["forebay-rogue"]);
    let decoder = look(folder.path()).choose("rogue", b"@", None).unwrap();
    let sent = Buffer::from(vec![b'@'; 100 << 10]);
    let host = Host::new();
    let value = decoder.decode(&sent, &Wanted::default(), &host.context()).unwrap();
    let View::List([back, seen, own, lies]) = value.view() else { panic!("{value:?}") };
    let place = |value: &Value| value.as_bytes().unwrap().as_ptr().addr() as i64;
    let here = sent.as_ptr().addr() as i64;
    assert_eq!((seen.as_i64(), place(back)), (Some(here), here), "where it was sent from");
    assert_eq!(Some(place(own)), lies.as_i64(), "where the plugin made it");
    assert_eq!(*own.as_bytes().unwrap().as_slice(), *vec![b'!'; 100 << 10]);
}

#[test]
fn a_stripped_plugin_is_still_one() {
    let folder = folder_of(&["forebay-pipes", "forebay-rogue"]);
    for name in ["libforebay_pipes.so", "libforebay_rogue.so"] {
        let stripped =
            Command::new("strip").arg("--strip-all").arg(folder.path().join(name)).status().unwrap();
        assert!(stripped.success());
    }
    let registry = look(folder.path());
    assert_eq!(names(&registry), ["forebay-pipes", "forebay-rogue"]);
    assert_eq!(count("range 30 | increment | batch 8", &registry).unwrap(), 4);
}

#[test]
fn plugins_of_one_kind_are_all_reachable() {
    let registry = registry();
    for (extension, head, decoder) in [
        ("rogue", &b"x"[..], "rogue"),
        ("json", b"{}", "json"),
        ("png", b"\x89PNG\r\n\x1a\n", "png"),
        ("jpg", b"\xff\xd8\xff\xe0", "jpeg"),
    ] {
        let best = &registry.rank(extension, head)[0];
        assert_eq!((best.decoder.as_str(), best.score > 0), (decoder, true), "{extension}: {best:?}");
        assert!(registry.choose(extension, head, None).is_ok());
    }
    // One graph with pipes of both, and a decoder of the second in a pipe of the first.
    assert_eq!(count("rogue_source count=9 payload=x | increment | decode | batch 3", &registry).unwrap(), 3);
    for missing in ["nothing", "rogue@forebay-json"] {
        let error = registry.choose("x", b"", Some(missing)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(missing), "{error}");
    }
}

#[test]
fn one_file_under_two_paths_is_one_plugin() {
    let folder = folder_of(&["forebay-pipes"]);
    let file = folder.path().join("libforebay_pipes.so");
    let other = tempfile::tempdir().unwrap();
    symlink(&file, other.path().join("liblink.so")).unwrap();
    fs::hard_link(&file, folder.path().join("libhard.so")).unwrap();
    let search = Search::nowhere().first(&file).first(other.path()).first(folder.path()).first(folder.path());
    let registry = Registry::new(search).unwrap();
    assert_eq!(names(&registry), ["forebay-pipes"]);
    assert!(registry.refusals().is_empty(), "{:?}", registry.refusals());
}

#[test]
fn of_two_copies_the_first_is_taken_and_the_other_told() {
    let (first, second) = (folder_of(&["forebay-pipes"]), folder_of(&["forebay-pipes"]));
    let registry = Registry::new(Search::nowhere().first(second.path()).first(first.path())).unwrap();
    assert_eq!(registry.plugin_of("range").unwrap().path(), Some(&*first.path().join("libforebay_pipes.so")));
    let [refusal] = registry.refusals() else { panic!("{:?}", registry.refusals()) };
    assert!(refusal.path.starts_with(second.path()));
    let winner = first.path().to_str().unwrap();
    assert!(refusal.reason.message().contains("gives way") && refusal.reason.message().contains(winner));
    assert!(registry.looked_at().contains("gives way"));
}

#[test]
fn of_two_versions_the_higher_is_taken() {
    let (first, second) = (folder_of(&["forebay-pipes"]), tempfile::tempdir().unwrap());
    let version = env!("CARGO_PKG_VERSION");
    let higher = format!("9{}", &version[1..]);
    let newer = doctored("forebay-pipes", second.path(), |bytes| {
        replace(bytes, &format!("\"version\":\"{version}\""), &format!("\"version\":\"{higher}\""));
    });
    let registry = Registry::new(Search::nowhere().first(second.path()).first(first.path())).unwrap();
    assert_eq!(registry.plugin_of("range").unwrap().path(), Some(&*newer));
    assert!(registry.refusals()[0].path.starts_with(first.path()));
    assert_eq!(count("range 5", &registry).unwrap(), 5);
}

#[test]
fn of_two_pipes_with_one_name_both_are_reachable() {
    let folder = folder_of(&["forebay-pipes"]);
    doctored("forebay-pipes", folder.path(), |bytes| {
        replace(bytes, "\"name\":\"forebay-pipes\"", "\"name\":\"another-pipes\"")
    });
    fs::rename(folder.path().join("libdoctored.so"), folder.path().join("libzz.so")).unwrap();
    let registry = look(folder.path());
    assert_eq!(names(&registry), ["forebay-pipes", "another-pipes"]);
    assert_eq!(registry.plugin_of("range").unwrap().manifest().name, "forebay-pipes");
    assert_eq!(registry.plugin_of("another-pipes:range").unwrap().manifest().name, "another-pipes");
    let told =
        registry.refusals().iter().find(|refusal| refusal.reason.message().contains("pipe range")).unwrap();
    assert!(told.reason.message().contains("another-pipes:range"), "{}", told.reason);
    assert_eq!(count("another-pipes:range 7 | take 5", &registry).unwrap(), 5);
}

#[test]
fn plugins_can_be_left_out_and_decoders_ranked() {
    let mut search = Search::nowhere().first(plugin_file("forebay-rogue")).first(plugin_file("forebay-json"));
    search.skip = vec!["forebay-json".into(), "nobody".into()];
    search.ranks = vec![("rogue".into(), None)];
    let registry = Registry::new(search).unwrap();
    assert_eq!(names(&registry), ["forebay-rogue"]);
    let told: Vec<_> = registry.refusals().iter().map(|refusal| refusal.reason.to_string()).collect();
    assert!(told[0].contains("FOREBAY_PLUGIN_SKIP") && told[0].contains("forebay-json"), "{told:?}");
    assert!(told[1].contains("nobody"), "{told:?}");
    let candidate = &registry.rank("rogue", b"")[0];
    assert_eq!(
        (candidate.score, candidate.reason.contains("FOREBAY_PLUGIN_RANK")),
        (0, true),
        "{candidate:?}"
    );
    let error = registry.choose("rogue", b"", None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn an_unknown_pipe_tells_where_was_looked_in_a_few_lines() {
    let mut search = Search::nowhere().first(plugin_file("forebay-pipes")).first("/nowhere/at/all");
    for number in 0..20 {
        search = search.first(format!("/nowhere/{number}"));
    }
    for (search, says) in [
        (Search::nowhere(), vec!["no place"]),
        (
            Search::nowhere().first(plugin_file("forebay-pipes")).first("/nowhere"),
            vec!["shuffle", "/nowhere", "not there", "libforebay_pipes.so"],
        ),
        (search, vec!["more"]),
    ] {
        let registry = Registry::new(search).unwrap();
        let error = line("range 5 | shufle 3").problems(&registry).pop().unwrap().to_string();
        assert!(error.contains("shufle") && says.iter().all(|part| error.contains(part)), "{error}");
        assert!(error.lines().count() <= LINES + 1, "{error}");
    }
}

/// A copy of a plugin in `folder`, changed.
fn doctored(plugin: &str, folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read(plugin_file(plugin)).unwrap();
    change(&mut bytes);
    let file = folder.join("libdoctored.so");
    fs::write(&file, bytes).unwrap();
    file
}

/// Replaces a text in the manifest by one of the same length.
fn replace(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = find(bytes, from.as_bytes());
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

/// Changes one byte of the manifest's head.
fn poke(bytes: &mut [u8], at: usize, byte: u8) {
    let head = find(bytes, b"FOREBAY\0\x01\0\0\0");
    bytes[head + at] = byte;
}

type Change = fn(&mut Vec<u8>);

/// What is done to a plugin's file, and what the refusal says.
const REFUSED: [(Change, ErrorKind, &str); 13] = [
    (|bytes| *bytes = b"just a text".to_vec(), ErrorKind::Unsupported, "no library"),
    (|bytes| bytes.clear(), ErrorKind::Corrupt, "the library is cut off after 0 bytes"),
    (|bytes| bytes.truncate(bytes.len() / 2), ErrorKind::Corrupt, "the library is cut off after "),
    (|bytes| bytes.truncate(40), ErrorKind::Corrupt, "the library is cut off after 40 bytes"),
    (|bytes| poke(bytes, 0, b'X'), ErrorKind::Corrupt, "does not begin with FOREBAY"),
    (|bytes| poke(bytes, 8, 9), ErrorKind::Abi, "of version 9, this host reads 1"),
    (|bytes| poke(bytes, 12, 2), ErrorKind::Abi, "which is no decoder and no source"),
    (|bytes| poke(bytes, 12, 3), ErrorKind::Abi, "of kind 3, this host knows kinds 1 and 2"),
    (|bytes| poke(bytes, 16, 7), ErrorKind::Abi, "built against ABI 7."),
    (|bytes| poke(bytes, 34, 255), ErrorKind::Corrupt, "bytes, but says"),
    (|bytes| poke(bytes, 33, 0), ErrorKind::Corrupt, "bytes, but says"),
    (|bytes| poke(bytes, 40, b'!'), ErrorKind::Corrupt, "unreadable"),
    (|bytes| replace(bytes, "-linux-gnu\"", "-linux-hurd"), ErrorKind::Corrupt, "unreadable"),
];

#[test]
fn what_is_no_plugin_is_refused_with_the_reason() {
    for (change, kind, says) in REFUSED {
        let folder = tempfile::tempdir().unwrap();
        let file = doctored("forebay-json", folder.path(), change);
        let registry = look(folder.path());
        let [refusal] = registry.refusals() else { panic!("{says}: {:?}", registry.refusals()) };
        assert_eq!((&refusal.path, refusal.reason.kind()), (&file, kind), "{}", refusal.reason);
        assert!(refusal.reason.message().contains(says), "{}", refusal.reason);
        assert!(refusal.reason.to_string().lines().count() <= LINES, "{}", refusal.reason);
        assert!(registry.plugins().is_empty());
    }
}

#[test]
fn a_library_that_is_no_plugin_and_a_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.split_whitespace().find(|word| word.contains("/libc.so")).unwrap();
    fs::copy(library, folder.path().join("liba.so")).unwrap();
    fs::create_dir(folder.path().join("libb.so")).unwrap();
    symlink("/nowhere", folder.path().join("libc.so")).unwrap();
    let registry = look(folder.path());
    let told: Vec<_> = registry.refusals().iter().map(|refusal| refusal.reason.message()).collect();
    assert!(told[0].contains("without a .forebay section"), "{told:?}");
    assert!(told[1].contains("not a regular file"), "{told:?}");
    assert!(told[2].contains("No such file"), "{told:?}");
    assert_eq!(told.len(), 3);
}

#[test]
fn a_plugin_without_its_entry_or_with_a_broken_body_is_refused_when_loaded() {
    let says = |change: fn(&mut Vec<u8>)| -> Error {
        let folder = tempfile::tempdir().unwrap();
        doctored("forebay-pipes", folder.path(), change);
        let error = count("range 3", &look(folder.path())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Abi, "{error}");
        assert!(error.get("plugin").is_some_and(|plugin| plugin.contains("libdoctored.so")), "{error}");
        assert_eq!(error.get("pipe"), Some("range"), "{error}");
        assert!(error.to_string().lines().count() <= LINES, "{error}");
        error
    };
    let error =
        says(|bytes| replace(bytes, "\"forebay_plugin_forebay_pipes\"", "\"forebay_plugin_forebay_pixes\""));
    assert!(error.message().contains("has no symbol forebay_plugin_forebay_pixes"), "{error}");
    // For another kind of machine, so that the system's own loader refuses it.
    let error = says(|bytes| bytes[18] = 0xb7);
    assert!(error.message().contains("cannot be loaded"), "{error}");
}

#[test]
fn a_damaged_manifest_never_panics() {
    let bytes = fs::read(plugin_file("forebay-json")).unwrap();
    let at = find(&bytes, b"FOREBAY\0\x01\0\0\0");
    let len = 40 + usize::from(bytes[at + 32]) + 256 * usize::from(bytes[at + 33]);
    let manifest = &bytes[at..at + len];
    assert_eq!(Manifest::parse(manifest).unwrap().name, "forebay-json");
    for len in 0..manifest.len() {
        assert!(Manifest::parse(&manifest[..len]).is_err());
    }
    let mut rng = Rng::new(2, 0);
    for _ in 0..20_000 {
        let mut damaged = manifest.to_vec();
        for _ in 0..=rng.below(3) {
            damaged[rng.below(len as u64) as usize] = rng.below(256) as u8;
        }
        let _ = Manifest::parse(&damaged);
    }
}

#[test]
fn a_graph_knows_its_pipes_from_manifests_alone() {
    let folder = folder_of(&["forebay-pipes"]);
    let registry = look(folder.path());
    let problems = |text: &str| {
        let problems = Graph::from_line(text).unwrap().problems(&registry);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(problems("range 5 | batch size=x").contains("size"));
    assert!(problems("range 5 | batch 4 sizes=3").contains("size"));
    assert!(problems("range 5 | batch").contains("size"));
    assert!(problems("batch 5").contains("input"));
    assert!(!registry.plugins()[0].is_loaded());
}

#[test]
fn plugins_work_from_a_folder_that_is_gone_by_then() {
    let folder = folder_of(&["forebay-pipes"]);
    let file = copy(&plugin_file("forebay-rogue"), folder.path());
    let registry = look(folder.path());
    fs::remove_file(&file).unwrap();
    let error = count("range 3 | increment", &registry).unwrap_err();
    assert_eq!((error.kind(), error.get("pipe")), (ErrorKind::Abi, Some("increment")), "{error}");
    assert!(error.message().contains("cannot be loaded"), "{error}");
    assert_eq!(count("range 3", &registry).unwrap(), 3);
}
