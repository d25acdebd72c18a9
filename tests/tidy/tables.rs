//! The tables of plugins, which are made of what their manifests say: `[package.metadata.forebay]` has `reads`, what the plugin reads or gives,
//! and `pipes`, about its pipes. `FOREBAY_TABLES=write cargo test -p forebay-tests --test tidy` writes them anew.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::repo::{Manifest, Repo};
use crate::{Report, looked_at};

pub(crate) const VARIABLE: &str = "FOREBAY_TABLES";

/// A row for a plugin: of its folder's name, what it reads, and its pipes.
type Row = fn(&str, &str, &str) -> Option<String>;

/// The pages, the heads of their tables, and the rows.
const TABLES: [(&str, &str, Row); 2] = [
    ("README.md", "| what | read by |\n|---|---|\n", |name, reads, _| {
        (!reads.is_empty()).then(|| format!("| {reads} | [{name}](plugins/{name}/README.md) |\n"))
    }),
    ("docs/guide/plugins.md", "| plugin | reads | pipes |\n|---|---|---|\n", |name, reads, pipes| {
        let cell = |text: &str| text.replace('|', "\\|");
        Some(format!("| `{name}` | {} | {} |\n", cell(reads), cell(pipes)))
    }),
];

pub(crate) fn tables_list_every_plugin(repo: &Repo) -> Report {
    let mut problems = Vec::new();
    for plugin in repo.plugins() {
        if [said(plugin, "reads"), said(plugin, "pipes")] == ["", ""] {
            let folder = &plugin.folder;
            problems.push(format!("{folder}/Cargo.toml: package.metadata.forebay lacks `reads` and `pipes`"));
        }
    }
    for (page, text) in pages(repo) {
        if repo.files.get(page) != Some(&text) {
            problems.push(format!("{page}: its table is not what plugins say: {VARIABLE}=write writes it"));
        }
    }
    looked_at(repo.plugins().count().min(pages(repo).len()), problems)
}

/// Writes the tables.
pub(crate) fn write(root: &Path) -> io::Result<()> {
    pages(&Repo::read(root)?).into_iter().try_for_each(|(page, text)| fs::write(root.join(page), text))
}

/// The pages that are there, with their tables made anew.
fn pages(repo: &Repo) -> BTreeMap<&'static str, String> {
    let made = TABLES.iter().filter_map(|(page, head, row)| {
        let text = repo.files.get(*page)?;
        let rows: String = repo
            .plugins()
            .filter_map(|plugin| {
                let name = plugin.folder.strip_prefix("plugins/")?;
                row(name, said(plugin, "reads"), said(plugin, "pipes"))
            })
            .collect();
        let Some((before, behind)) = text.split_once(head) else {
            return Some((*page, format!("{text}\n{head}{rows}")));
        };
        let old: usize =
            behind.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
        Some((*page, format!("{before}{head}{rows}{}", &behind[old..])))
    });
    made.collect()
}

/// What a plugin's manifest says under this key; nothing if it does not.
fn said<'a>(plugin: &'a Manifest, key: &str) -> &'a str {
    let package = plugin.table.get("package");
    let said = package.and_then(|package| package.get("metadata")?.get("forebay")?.get(key)?.as_str());
    said.unwrap_or_default()
}
