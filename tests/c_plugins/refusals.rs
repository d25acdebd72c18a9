//! What is refused before a plugin in C is used: by its manifest, or by its tables when it is loaded.

use std::{fs, path::Path};

use forebay_loader::{Error, ErrorKind};

use super::{registry_of, rogue_in};

/// Why the rogue plugin in a folder is refused when its manifest is read, or when it is loaded.
fn refusal(folder: &Path) -> Option<Error> {
    let registry = registry_of(folder);
    let unread = registry.refusals().iter().map(|refusal| refusal.reason.clone()).next();
    let record = registry.plugins().iter().find(|record| record.manifest().name == "rogue-c");
    unread.or_else(|| record.unwrap().check().err())
}

#[test]
fn tables_that_do_not_fit_are_refused_by_name() {
    for (define, says) in [
        (
            "-DMAJOR=9",
            "built against C 9.0, this host has 1.0: compile it again with the header of this host",
        ),
        ("-DCLASS=\"map\"", "its manifest names `rogue_source`, which is no decoder and no source"),
        ("-DCLASS=\"source\",\"shards\":true", "its manifest names `rogue_source`"),
        ("-DSIZE=8", "its ForebayDecoder says it has 8 bytes; that of C 1.0 has 48"),
        ("-DSIZE=1000000", "its ForebayDecoder says it has 1000000 bytes"),
        ("-DSOURCE_SIZE=64", "its ForebaySource says it has 64 bytes; that of C 1.0 has 72"),
        ("-DNAME=\"another\"", "its manifest names `rogue_c`, but it has no ForebayDecoder of that name"),
        ("-DNAME=NULL", "gave no name of a table"),
        ("-DNAME=\"\\xff\"", "a name of a table that is not UTF-8"),
        ("-DDECODE=NULL", "its ForebayDecoder `rogue_c` has no function decode"),
        ("-DNEXT=NULL", "its ForebaySource `rogue_source` has no function next"),
        ("-DRESTORE=NULL", "its ForebaySource `rogue_source` has no function restore, but has a state"),
        ("-DLAST=&DECODER.decoder", "more tables ForebayDecoder than the 1 that its manifest names"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        rogue_in(folder.path(), &[define]);
        let error = refusal(folder.path()).unwrap_or_else(|| panic!("{define} is taken"));
        assert_eq!(error.kind(), ErrorKind::Abi, "{define}: {error}");
        assert!(error.message().contains(says), "{define}: {error}");
        assert!(error.to_string().lines().count() <= 4, "{error}");
    }
}

#[test]
fn what_means_nothing_in_a_manifest_is_refused_and_said() {
    let typed = [
        (
            "\"extensions\"",
            "\"extentions\"",
            "unknown key `extentions` in `rogue_c`; did you mean `extensions`?",
        ),
        ("\"summary\"", "\"sumary\" ", "unknown key `sumary` in `rogue_c`; did you mean `summary`?"),
        ("\"license\"", "\"licence\"", "unknown key `licence`; did you mean `license`?"),
        (
            "\"default\": 7",
            "\"defautl\": 7",
            "unknown key `defautl` in option `count` of `rogue_source`; did you mean `default`?",
        ),
        ("\"default\": 7", "\"default\":\"7", "its manifest is unreadable"),
        (
            "\"default\": 1.5",
            "\"default\":\"no\"",
            "the default in `rogue_source`: option `scale` is \"no\", expected a number",
        ),
        ("\"unsure\"", "\".sure\" ", "extension `.sure` in `rogue_c`, expected it without the dot"),
    ];
    for (from, to, says) in typed {
        let folder = tempfile::tempdir().unwrap();
        let file = rogue_in(folder.path(), &[]);
        let mut bytes = fs::read(&file).unwrap();
        let first = (0..bytes.len()).find(|&at| bytes[at..].starts_with(from.as_bytes())).unwrap();
        // The JSON stays as long as it was: what is longer takes the space behind it.
        let to = format!("{to:<width$}", width = from.len());
        bytes[first..first + to.len()].copy_from_slice(to.as_bytes());
        fs::write(&file, bytes).unwrap();
        let error = refusal(folder.path()).unwrap_or_else(|| panic!("{to} is taken"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains(says), "{to}: {error}");
    }
}

#[test]
fn a_table_of_a_later_version_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    rogue_in(folder.path(), &["-DSIZE=sizeof(DECODER)"]);
    assert_eq!(refusal(folder.path()), None);
}

/// Replaces the only place with these bytes.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let places: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert_eq!(places.len(), 1, "{from:?}");
    bytes[places[0]..places[0] + to.len()].copy_from_slice(to);
}

#[test]
fn an_entry_that_is_not_what_the_manifest_says_is_refused() {
    let entry = |size: u64, major: u32, minor: u32| {
        [&size.to_ne_bytes()[..], &major.to_ne_bytes(), &minor.to_ne_bytes()].concat()
    };
    for (change, says) in [
        (entry(24, 1, 0), "its ForebayPlugin says it has 24 bytes; that of C 1.0 has 40"),
        (entry(40, 1, 3), "its table is of C 1.3 and its manifest of C 1.0, this host has C 1.0"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = rogue_in(folder.path(), &[]);
        let mut bytes = fs::read(&file).unwrap();
        replace(&mut bytes, &entry(40, 1, 0), &change);
        fs::write(&file, bytes).unwrap();
        let error = refusal(folder.path()).unwrap();
        assert!(error.message().contains(says), "{error}");
    }
    // Read without running anything: a manifest that is no JSON, and one without what it must have.
    for (from, to) in [(&b"\"license\""[..], &b"!license\""[..]), (b"\"license\"", b"\"licence\"")] {
        let folder = tempfile::tempdir().unwrap();
        let file = rogue_in(folder.path(), &[]);
        let mut bytes = fs::read(&file).unwrap();
        replace(&mut bytes, from, to);
        fs::write(&file, bytes).unwrap();
        let error = refusal(folder.path()).unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}
