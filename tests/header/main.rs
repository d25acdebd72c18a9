//! The header for plugins in C is what `core/abi/src/c.rs` says.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{env, fs};

use cbindgen::{Builder, Config, DocumentationStyle, Language};
use forebay_tests::root;

/// The header, made anew.
fn generated() -> String {
    let mut config = Config {
        language: Language::C,
        header: Some(format!("{}\n#ifndef FOREBAY_H\n#define FOREBAY_H", include_str!("top.h"))),
        no_includes: true,
        sys_includes: ["stddef.h", "stdint.h", "stdio.h"].map(str::to_owned).to_vec(),
        after_includes: Some(format!("\n{}", include_str!("arrow.h").trim_end())),
        trailer: Some(format!("{}\n#endif /* FOREBAY_H */", include_str!("macros.h"))),
        cpp_compat: true,
        documentation_style: DocumentationStyle::C99,
        line_length: 120,
        usize_is_size_t: true,
        ..Config::default()
    };
    // No function leads to them.
    config.export.include =
        ["ForebayPlugin", "ForebayOptions", "ForebayInput", "ForebayHost", "ForebayError"]
            .map(str::to_owned)
            .to_vec();
    // The specification names them by their tags.
    for name in ["ArrowSchema", "ArrowArray"] {
        config.export.rename.insert(name.to_owned(), format!("struct {name}"));
    }
    let mut header = Vec::new();
    let source = root().join("core/abi/src/c.rs");
    Builder::new().with_config(config).with_src(source).generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn the_header_is_what_the_tables_are() {
    let (file, header) = (root().join("core/abi/include/forebay.h"), generated());
    if env::var_os("FOREBAY_HEADER").is_some_and(|what| what == "write") {
        fs::write(&file, &header).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let line = committed.lines().zip(header.lines()).position(|(one, two)| one != two);
    assert!(
        committed == header,
        "core/abi/include/forebay.h is not what core/abi/src/c.rs and tests/header make of it, from line {:?} on: \
         FOREBAY_HEADER=write cargo test -p forebay-tests --test header",
        line.map(|line| line + 1)
    );
}
