//! What plugins' libraries show: the entry, and nothing that could meet a symbol of another library.

use std::process::Command;

use forebay_tests::{PLUGINS, plugin_file};

#[test]
fn a_plugin_exports_its_entry_and_nothing_else() {
    for plugin in PLUGINS {
        let file = plugin_file(plugin);
        let output =
            Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let names: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(names, [format!("forebay_plugin_{}", plugin.replace('-', "_"))], "{}", file.display());
    }
}
