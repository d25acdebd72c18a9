//! Two plugins in one process that each bring along a library in C with the same names and another behaviour.

use std::{env::consts::DLL_SUFFIX, path::PathBuf, thread};

use forebay_core::{AnyDecoder, Buffer, Value, View, Wanted};
use forebay_loader::{Registry, Search};
use forebay_testkit::Host;
use forebay_tests::{Cargo, exported};

use super::crate_of_ours;

/// How often each of two threads calls each plugin.
const CALLS: u32 = 2_000;

/// Builds the plugin with its library in this version.
fn bundling(name: &str, version: u32) -> PathBuf {
    let build = format!(
        "//! Builds the library.\nfn main() {{\n    cc::Build::new().file(\"codec.c\").define(\"CODEC_VERSION\", \
         \"{version}\").warnings_into_errors(true).compile(\"codec\");\n}}\n"
    );
    let files = [
        ("build.rs", build.as_str()),
        ("codec.c", include_str!("codec.c")),
        ("src/lib.rs", include_str!("bundling.rs")),
    ];
    let folder = crate_of_ours(name, "2024", "[build-dependencies]\ncc = \"1\"\n", &files);
    Cargo::apart(&folder).build(&format!("lib{}{DLL_SUFFIX}", name.replace('-', "_")))
}

/// The version, the sum, and the count that a decoder gives.
fn decode(decoder: &AnyDecoder, bytes: &Buffer) -> [u32; 3] {
    let value = decoder.decode(bytes, &Wanted::default(), &Host::new().context()).unwrap();
    let View::List(numbers) = value.view() else { panic!("{value:?}") };
    let numbers: Vec<_> = numbers.iter().filter_map(Value::as_i64).collect();
    <[i64; 3]>::try_from(numbers).unwrap().map(|number| u32::try_from(number).unwrap())
}

/// What `codec_sum` in this version gives.
fn sum(version: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(version, |sum, byte| sum.wrapping_mul(version + 1).wrapping_add((*byte).into()))
}

#[test]
fn libraries_of_the_same_names_do_not_meet() {
    let plugins = [("bundling-one", 1), ("bundling-two", 2)];
    let files = plugins.map(|(name, version)| bundling(name, version));
    for (file, (name, _)) in files.iter().zip(plugins) {
        assert_eq!(exported(file), [format!("forebay_plugin_{}", name.replace('-', "_"))]);
    }
    let registry = Registry::new(files.iter().fold(Search::nowhere(), Search::first)).unwrap();
    let decoders = plugins.map(|(name, version)| {
        let pinned = format!("{}@{name}", name.replace('-', "_"));
        (registry.choose("", &[], Some(&pinned)).unwrap(), version)
    });
    let work = || {
        let mut counts = [Vec::new(), Vec::new()];
        for call in 0..CALLS {
            let bytes = Buffer::from(call.to_le_bytes().to_vec());
            for ((decoder, version), counts) in decoders.iter().zip(&mut counts) {
                let [found, summed, count] = decode(decoder, &bytes);
                assert_eq!((found, summed), (*version, sum(*version, &bytes)));
                counts.push(count);
            }
        }
        counts
    };
    let [one, other] =
        thread::scope(|scope| [scope.spawn(work), scope.spawn(work)].map(|it| it.join().unwrap()));
    for (at, (_, version)) in plugins.iter().enumerate() {
        let mut counts = [&one[at][..], &other[at][..]].concat();
        counts.sort_unstable();
        let alone: Vec<_> = (1..=2 * CALLS).map(|call| call * version).collect();
        assert_eq!(counts, alone, "nobody else adds to the count of version {version}");
    }
}
