//! That the checks fail when they should: a small house in order, and one fault at a time.

use std::collections::BTreeMap;

use crate::repo::Repo;
use crate::way::STEPS;
use crate::{CHECKS, problems};

const HOUSE: [(&str, &str); 16] = [
    (
        "ARCHITECTURE.md",
        "# A\n## Map\n```\ncore/  c\ncore/abi/  a\nloader/bundled/  b\nloader/registry/  l\nplugins/*/  p\n```\n",
    ),
    (
        "core/abi/Cargo.toml",
        "[package]\nname = 'abi'\nlicense.workspace = true\n[lints]\nworkspace = true\n[dependencies]\nabi_stable = '1'",
    ),
    ("core/abi/src/lib.rs", "//! A.\nunsafe fn a() {}"),
    (
        "core/Cargo.toml",
        "[package]\nname = 'core'\nlicense.workspace = true\n[lints]\nworkspace = true\n[dependencies]\nabi = '1'",
    ),
    ("core/src/lib.rs", "//! C."),
    (
        "loader/registry/Cargo.toml",
        "[package]\nname = 'registry'\nlicense.workspace = true\n[lints]\nworkspace = true\n\
         [features]\nbundled = ['dep:all']\n[dependencies]\ncore = '1'\nall = { path = '', optional = true }",
    ),
    (
        "loader/bundled/Cargo.toml",
        "[package]\nname = 'all'\nlicense.workspace = true\n[lints]\nworkspace = true\n[dependencies]\nthe-tar = '1'",
    ),
    ("loader/bundled/src/lib.rs", "//! B."),
    (
        "loader/registry/src/lib.rs",
        "//! L.\n// \"untar\"\n#[cfg(test)]\nmod tests { const A: &str = \"untar\"; }",
    ),
    ("loader/registry/src/other.rs", "//! B.\n\nstruct B;"),
    (
        "plugins/tar/Cargo.toml",
        "[package]\nname = 'the-tar'\nlicense.workspace = true\n[lints]\nworkspace = true\n\
         [lib]\ncrate-type = ['cdylib', 'rlib']\n[package.metadata.forebay]\nreads = 'tar'\n[dependencies]\ncore = '1'",
    ),
    ("plugins/tar/README.md", "```text\n```\n```\nthe_tar::a();\n```\n"),
    ("plugins/tar/src/lib.rs", "//! T.\nI { name: \"untar\", extensions: &[\"tgz\", \"tar\"] }"),
    ("README.md", "| what | read by |\n|---|---|\n| tar | [tar](plugins/tar/README.md) |\n"),
    ("Cargo.toml", ""),
    (".ci/run", ""),
];

/// The house, with a way of a sample through it.
fn house() -> BTreeMap<String, String> {
    let mut files: BTreeMap<_, _> = HOUSE.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    for (from, call, function, to) in STEPS {
        for (file, text) in [(from, call), (to, function)] {
            *files.entry(file.to_owned()).or_insert_with(|| "//! W.\n".to_owned()) += &format!("// {text}\n");
            let map = files.entry("ARCHITECTURE.md".to_owned()).or_default();
            if !map.contains(file) {
                *map += &format!("`{file}`\n");
            }
        }
    }
    files
}

/// The house, with one file changed or added.
fn house_with(path: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let mut files = house();
    let text = files.entry(path.to_owned()).or_default();
    *text = change(text);
    problems(&Repo::new(files))
}

#[track_caller]
fn assert_found(problems: Vec<String>, wanted: &str) {
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains(wanted), "{problems:#?}");
}

#[test]
fn a_house_in_order_has_no_problems() {
    assert_eq!(house_with("README.md", str::to_owned), [""; 0]);
}

#[test]
fn an_empty_house_fails_every_check() {
    assert_eq!(problems(&Repo::new(BTreeMap::new())).len(), CHECKS.len());
}

#[test]
fn an_arrow_upwards_is_found() {
    let wanted = "plugins/tar must not depend on loader/registry";
    assert_found(house_with("plugins/tar/Cargo.toml", |text| text.to_owned() + "\nregistry = '1'"), wanted);
    let for_tests = "\n[target.'cfg(unix)'.dev-dependencies]\nx = { package = 'registry', version = '1' }";
    assert_found(house_with("plugins/tar/Cargo.toml", |text| text.to_owned() + for_tests), wanted);
    assert_found(
        house_with("loader/registry/Cargo.toml", |text| text.replace(", optional = true", "")),
        "loader/registry must not depend on loader/bundled",
    );
}

#[test]
fn abi_stable_elsewhere_is_found() {
    let found = house_with("loader/registry/Cargo.toml", |text| text.to_owned() + "\nabi_stable = '1'");
    assert_found(found, "loader/registry must not depend on abi_stable");
}

#[test]
fn a_plugin_outside_of_bundled_is_found() {
    let feature = |feature: &str| {
        let feature = format!("[features]\n{feature}\n");
        house_with("loader/registry/Cargo.toml", |text| text.replace("[features]\n", &feature))
    };
    assert_found(feature("more = ['dep:all']"), "and no other feature: more");
    assert_found(feature("default = ['bundled']"), "no feature may turn on");
    assert_found(
        house_with("loader/registry/Cargo.toml", |text| text.to_owned() + "\nthe-tar = '1'"),
        "loader/registry must not depend on plugins/tar",
    );
    assert_found(
        house_with("loader/bundled/Cargo.toml", |text| text.replace("the-tar = '1'", "")),
        "loader/bundled lacks the-tar",
    );
    assert_found(
        house_with("loader/registry/src/lib.rs", |text| text.to_owned() + "use the_tar as _;"),
        "loader/registry/src/lib.rs:4 names the_tar",
    );
}

#[test]
fn a_loader_that_knows_a_pipe_or_a_format_is_found() {
    for name in ["untar", "tgz", "tar"] {
        let found =
            house_with("loader/registry/src/x.rs", |_| format!("//! X.\nconst A: &str = \"{name}\";"));
        assert_found(found, &format!("loader/registry/src/x.rs:2: the loader names \"{name}\""));
        let label = format!("//! X.\nfn a() {{ b.context(\"{name}\", c) }}");
        assert_eq!(house_with("loader/registry/src/x.rs", |_| label.clone()), [""; 0]);
    }
}

#[test]
fn a_map_that_drifted_is_found() {
    let changed = |from: &str, to: &str| house_with("ARCHITECTURE.md", |text| text.replace(from, to));
    assert_found(changed("core/abi/  a\n", ""), "the map lacks core/abi/");
    assert_found(
        changed("loader/registry/  l\n", "loader/registry/  l\npython/  p\n"),
        "the map shows python/, which is no room",
    );
    assert_found(
        changed("loader/registry/  l\n", "loader/registry/  l\nloader/registry/  m\n"),
        "the map shows loader/registry/ twice",
    );
    assert_found(house_with("docs/x.md", |_| String::new()), "the map lacks docs/");
}

#[test]
fn a_map_that_is_a_book_and_wide_pages_are_found() {
    let with = |more: String| house_with("ARCHITECTURE.md", |text| text.to_owned() + &more);
    assert_found(with("X.\n".repeat(180)), "ARCHITECTURE.md: 197 lines, at most 180");
    let wide = "x".repeat(111);
    assert_found(with(wide.clone()), "ARCHITECTURE.md:18: 111 characters, at most 110");
    assert_eq!(with(format!("| {wide} |\n```\n{wide}\n```\n")), [""; 0]);
    let links = [format!("- [a]({wide})"), format!("<https://{wide}>"), format!("[a]: {wide}")];
    for link in links {
        assert_eq!(house_with("core/README.md", |_| link.clone()), [""; 0]);
        let more = house_with("core/README.md", |_| format!("{link} x"));
        assert_found(more, "core/README.md:1: ");
    }
}

#[test]
fn a_long_sentence_is_found() {
    let page = |text: &str| house_with("core/README.md", |_| text.to_owned());
    let words = |count: usize| vec!["x"; count].join(" ");
    let (fits, long) = (words(30), words(31));
    let wanted =
        |line: usize, count: usize| format!("core/README.md:{line}: a sentence of {count} words, at most 30");
    assert_found(page(&long), &wanted(1, 31));
    assert_found(page(&format!("A.\n\n- B.\n  C {long}.")), &wanted(4, 32));
    assert_found(page(&format!("{} e.g. {}", words(15), words(15))), &wanted(1, 31));
    assert_found(page(&format!("{}. {}", words(15), words(16))), &wanted(1, 31));
    assert_found(page(&format!("{} `a b` [c d](e) {}", words(14), words(14))), &wanted(1, 31));
    assert_found(page(&format!("```\n```\n{long}")), &wanted(3, 31));
    let short = [
        format!("# {fits}\n{fits}\n- {fits}\n1. {fits}\n\n{fits}"),
        format!("{fits}. X\n(x {}.)\n`x` {}? *X* x", words(28), words(29)),
        format!("`{long}` {}\n[x](y z) – {}", words(20), words(8)),
        format!("| {long} |\n\n```\n{long}\n```\n\n    {long}\n\n<!-- {long} -->"),
    ];
    for text in short {
        assert_eq!(page(&text), [""; 0]);
    }
}

#[test]
fn a_word_of_this_house_is_found() {
    let page = |text: &str| house_with("core/README.md", |_| text.to_owned());
    assert_found(
        page("A.\n\nFiles *far\naway*."),
        "core/README.md:3: `far away` means nothing outside: remote",
    );
    assert_found(page("| Far away |"), "core/README.md:1: `far away`");
    assert_eq!(page("Not `far away`, far, away or farther.\n\n```\nfar away\n```\n"), [""; 0]);
}

#[test]
fn a_table_that_lacks_a_plugin_is_found() {
    let wanted = "README.md: its table is not what plugins say";
    assert_found(house_with("README.md", |text| text.replace("| tar |", "| zip |")), wanted);
    assert_found(house_with("README.md", |_| String::new()), wanted);
    let silent = house_with("plugins/tar/Cargo.toml", |text| text.replace("reads = 'tar'", ""));
    assert_eq!(silent.len(), 2, "{silent:#?}");
    assert!(silent[0].contains("lacks `reads` and `pipes`") && silent[1].contains(wanted), "{silent:#?}");
}

#[test]
fn a_bare_plugin_is_found() {
    let found = house_with("plugins/tar/Cargo.toml", |text| text.replace("'cdylib', ", ""));
    assert_found(found, "crate-type must be cdylib and rlib");
    let found = house_with("plugins/zip/README.md", |_| String::new());
    assert_eq!(found.len(), 2, "{found:#?}");
    for bare in ["", "```text\n```\n", "```sh\n```\n"] {
        let found = house_with("plugins/tar/README.md", |_| bare.to_owned());
        assert_found(found, "plugins/tar/README.md: no example in Rust");
    }
}

#[test]
fn a_crate_with_its_own_lints_is_found() {
    let found = house_with("core/Cargo.toml", |text| text.replace("[lints]\nworkspace = true", ""));
    assert_found(found, "core/Cargo.toml: lints.workspace must be true");
}

#[test]
fn untidy_sources_are_found() {
    let source = |text: String| house_with("core/src/x.rs", |_| text.clone());
    assert_found(source("//! X.\n\nfn a() { unsafe {} }".into()), "core/src/x.rs:3: no unsafe here");
    assert_found(source("fn a() {}".into()), "core/src/x.rs:1: must start with");
    assert_found(source("//! X.\n".repeat(501)), "501 lines, at most 500");
    assert_eq!(source("//! X.\n".repeat(501) + "// tidy: table"), [""; 0]);
    let ignored = "//! X.\n#[test]\n#[ignore = \"slow\"]\nfn a() {}";
    assert_found(source(ignored.into()), "core/src/x.rs:3: a test is ignored");
    let long = format!("//! X.\nfn a() {{{}}}", "\n".repeat(80));
    assert_found(source(long), "core/src/x.rs:2: a function of 81 lines, at most 80");
}

#[test]
fn an_import_that_runs_back_up_is_found() {
    // `a` imports `b`, which imports `c`, from which `a` is reached through what its parent exports.
    let with = |more: &str| {
        let mut files = house();
        let mut add =
            |name: &str, text: &str| files.insert(format!("loader/registry/src/{name}.rs"), text.into());
        add("a", "//! A.\nuse crate::{b::{self, B1}, other};\n#[cfg(test)]\nmod tests { use crate::d::D1; }");
        add("b", "//! B.\npub(crate) use self::below::B1;\nuse crate::c;");
        add("b/below", "//! L.\nuse super::super::d::D1;\npub(super) fn below() {}");
        add("c", &format!("//! C.\n{more}"));
        add("d", "//! D.\npub(crate) use crate::a::A1;");
        problems(&Repo::new(files))
    };
    assert_eq!(with("fn c() {}"), [""; 0]);
    let found = with("fn c() { crate::d::A1::new() }");
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].contains("loader/registry: a imports b, which imports it"), "{found:#?}");
    assert!(with("use super::a;").len() == 3);
}

#[test]
fn a_crate_of_the_loader_that_is_two_is_found() {
    let says = |text: &str| text.replace("[package]", "[package]\ndescription = 'This and that.'");
    assert_found(house_with("loader/registry/Cargo.toml", says), "has an \"and\"");
    let long = "//! X.\n".repeat(400);
    let mut files = house();
    files.extend((0..31).map(|at| (format!("loader/registry/src/x{at}.rs"), long.clone())));
    assert_found(problems(&Repo::new(files)), "lines, at most 12000");
}

#[test]
fn a_name_of_two_types_is_found() {
    let found = house_with("loader/registry/src/b.rs", |_| "//! B.\nenum B {}".into());
    assert_found(
        found,
        "loader/registry/src/b.rs:2 and loader/registry/src/other.rs:3: another type is called B",
    );
    let tests = |_: &str| "//! B.\n#[cfg(test)]\nmod tests { struct B; }\nstruct Inner;".into();
    assert_eq!(house_with("loader/registry/src/b.rs", tests), [""; 0]);
}

#[test]
fn a_way_of_a_sample_that_changed_is_found() {
    let (from, call, ..) = STEPS[0];
    let found = house_with(from, |text| text.replace(call, ""));
    assert_found(found, "does not lead to");
    let found = house_with("ARCHITECTURE.md", |text| text.replace(from, ""));
    assert_found(found, "ARCHITECTURE.md does not list");
}
