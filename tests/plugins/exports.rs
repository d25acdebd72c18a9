//! What plugins' libraries show: the entry, and nothing that could meet a symbol of another library.

use forebay_tests::{PLUGINS, exported, plugin_file};

#[test]
fn a_plugin_exports_its_entry_and_nothing_else() {
    for plugin in PLUGINS.iter() {
        let file = plugin_file(plugin);
        let names = exported(&file);
        assert_eq!(names, [format!("forebay_plugin_{}", plugin.replace('-', "_"))], "{}", file.display());
    }
}
