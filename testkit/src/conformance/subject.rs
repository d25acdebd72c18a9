//! What there is to check of a plugin, and with what.

use std::{
    fmt, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use forebay_core::scheme_of;
use forebay_loader::{
    Error, Graph, Registry, Result,
    graph::{Catalog as _, Class, MagicSpec, PipeSpec},
    registry::{FoundPlugin, HEAD, Manifest},
};
use serde::Serialize;

use super::Kit;

/// The most files of a folder.
const FILES: usize = 10_000;

/// One thing that is checked.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// The plugin as a whole.
    Plugin,
    /// A decoder, with files of its own.
    Decoder { name: String, files: Vec<PathBuf> },
    /// Pipes, in a graph.
    Pipes { names: Vec<String>, graph: String, given: bool },
    /// A store, with a URL that it serves.
    Store { name: String, url: String },
    /// Something that there is nothing to test with.
    Untested { what: String, why: String },
}

/// Which checks a subject has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Those of whole plugins.
    Plugin,
    /// Those of decoders.
    Decoder,
    /// Those of pipes, in a graph.
    Pipe,
    /// Those of stores.
    Store,
    /// None.
    Nothing,
}

impl Subject {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Plugin => Kind::Plugin,
            Self::Decoder { .. } => Kind::Decoder,
            Self::Pipes { .. } => Kind::Pipe,
            Self::Store { .. } => Kind::Store,
            Self::Untested { .. } => Kind::Nothing,
        }
    }

    /// Whether it is tested in a graph that nobody named.
    pub(super) fn is_a_guess(&self) -> bool {
        matches!(self, Self::Pipes { given: false, .. })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin => f.write_str("plugin"),
            Self::Decoder { name, files } => write!(f, "decoder {name}, {} files", files.len()),
            Self::Pipes { names, graph, .. } => write!(f, "pipe {}: {graph}", names.join(", ")),
            Self::Store { name, url } => write!(f, "store {name}: {url}"),
            Self::Untested { what, .. } => f.write_str(what),
        }
    }
}

/// All subjects of a plugin, by what its manifest says; none of its code runs.
///
/// # Errors
/// `Invalid` for data that does not exist, and for data and graphs that nothing of the plugin takes.
pub(super) fn all(kit: &Kit, registry: &Registry, record: &FoundPlugin) -> Result<Vec<Subject>> {
    let manifest = record.manifest();
    let left_out = |name: &String| kit.skip.contains(name);
    let (urls, paths): (Vec<_>, Vec<_>) = kit.data.iter().partition(|path| path.contains("://"));
    let mut files = Files::default();
    paths.into_iter().try_for_each(|path| files.add(Path::new(path)))?;
    let names = manifest.pipes.iter().map(|pipe| &pipe.name);
    let names = names.chain(manifest.decoders.iter().map(|decoder| &decoder.name));
    let names: Vec<_> = names.chain(manifest.stores.iter().map(|store| &store.name)).collect();
    if let Some(name) = kit.skip.iter().find(|name| !names.contains(name)) {
        return Err(Error::invalid(format!("{} has no `{name}` to leave out", record.label())));
    }
    let mut subjects = vec![Subject::Plugin];
    subjects.extend(manifest.decoders.iter().filter(|decoder| !left_out(&decoder.name)).map(|decoder| {
        match files.of(&decoder.extensions, &decoder.magic) {
            own if own.is_empty() => untested("decoder", &decoder.name, "files of its own with `--data`"),
            files => Subject::Decoder { name: decoder.name.clone(), files },
        }
    }));
    pipes(kit, registry, manifest, &mut files, &mut subjects)?;
    let mut served = vec![false; urls.len()];
    for store in manifest.stores.iter().filter(|store| !left_out(&store.name)) {
        let serves = |url: &str| store.schemes.iter().any(|scheme| scheme == scheme_of(url));
        let own: Vec<_> = (0..urls.len()).filter(|&at| serves(urls[at])).collect();
        if own.is_empty() {
            subjects.push(untested("store", &store.name, "the URL of a file with `--data`"));
        }
        for at in own {
            served[at] = true;
            subjects.push(Subject::Store { name: store.name.clone(), url: urls[at].clone() });
        }
    }
    if let Some((url, _)) = urls.iter().zip(served).find(|(_, served)| !served) {
        return Err(Error::invalid("no store of the plugin serves this URL").context("data", url));
    }
    match files.unused().next() {
        None => Ok(subjects),
        Some(file) => {
            let message =
                "no decoder or pipe of the plugin has the extension or the first bytes of these files";
            Err(Error::invalid(message).context("data", file.display()).context("plugin", record.label()))
        }
    }
}

fn untested(what: &str, name: &str, needs: &str) -> Subject {
    Subject::Untested { what: format!("{what} {name}"), why: format!("needs {needs}") }
}

/// The graphs that were given, the simplest ones for pipes that are in none of those, and pipes that there is no graph for.
fn pipes(
    kit: &Kit,
    registry: &Registry,
    manifest: &Manifest,
    files: &mut Files,
    subjects: &mut Vec<Subject>,
) -> Result<()> {
    let own = |name: &str| {
        let alone = name.strip_prefix(&format!("{}:", manifest.name)).unwrap_or(name);
        manifest.pipes.iter().find(|pipe| !pipe.is_part() && pipe.name == alone)
    };
    let mut add = |line: &str, given: bool, tested: &mut Vec<String>| -> Result<()> {
        let graph = Graph::from_line(line)?;
        let pipes = graph.nodes().iter().filter_map(|node| own(&node.pipe)).map(|pipe| pipe.name.clone());
        let pipes: Vec<_> = pipes.collect();
        if pipes.is_empty() {
            return Err(Error::invalid("the graph has no pipe of the plugin").context("graph", line));
        }
        tested.extend(pipes.iter().cloned());
        subjects.push(Subject::Pipes { names: pipes, graph: line.to_owned(), given });
        Ok(())
    };
    let mut tested = kit.skip.clone();
    kit.graphs.iter().try_for_each(|line| add(line, true, &mut tested))?;
    // What opens files comes first: other pipes are in its graphs.
    let (openers, others): (Vec<_>, Vec<_>) =
        manifest.pipes.iter().filter(|pipe| !pipe.is_part()).partition(|pipe| pipe.opens.is_some());
    let mut untried = Vec::new();
    for pipe in openers.into_iter().chain(others) {
        // Its files are not left over, whatever graph it is in.
        let graphs = simplest(registry, manifest, pipe, files);
        if tested.contains(&pipe.name) {
            continue;
        }
        if graphs.is_empty() {
            untried.push(untested("pipe", &pipe.name, "a graph that it is in with `--graph`"));
        }
        graphs.iter().try_for_each(|line| add(line, false, &mut tested))?;
    }
    subjects.extend(untried);
    Ok(())
}

/// The graphs that a pipe of this plugin can be tried in without being told of any.
fn simplest(registry: &Registry, plugin: &Manifest, pipe: &PipeSpec, files: &mut Files) -> Vec<String> {
    // Another plugin's may have its name.
    let is_found = registry.plugin_of(&pipe.name).is_some_and(|record| record.manifest().name == plugin.name);
    let name = &if is_found { pipe.name.clone() } else { format!("{}:{}", plugin.name, pipe.name) };
    if let Some(opens) = &pipe.opens {
        let mut own = files.of(&opens.extensions, &opens.magic);
        // `files` reads such names as patterns.
        own.retain(|file| !file.to_string_lossy().contains(['*', '?', '[', ']', '{', '}', '"', '\\']));
        let quoted = own.iter().map(|file| format!("\"{}\"", file.display()));
        let then = if opens.then.is_empty() { String::new() } else { format!(" | {}", opens.then) };
        return quoted.map(|file| format!("files {file} | {name}{then}")).collect();
    }
    if pipe.options.iter().any(|option| option.required) {
        return Vec::new();
    }
    let has = |name: &str| registry.pipe(name).is_some();
    match pipe.class {
        Class::Source if pipe.is_indexed() && has("random_sampler") => {
            vec![name.clone(), format!("{name} | random_sampler")]
        }
        Class::Source => vec![name.clone()],
        _ if pipe.layout.inputs.0 <= 1 && has("range") => vec![format!("range 40 | {name}")],
        _ => Vec::new(),
    }
}

/// A file, its first bytes, and the place of the path that led to it.
struct Found {
    path: PathBuf,
    head: Vec<u8>,
    from: usize,
}

/// The files that were given.
#[derive(Default)]
struct Files {
    all: Vec<Found>,
    /// The paths, and whether a file of each is some subject's.
    paths: Vec<(PathBuf, bool)>,
}

impl Files {
    /// Adds a file, or all below a folder.
    fn add(&mut self, path: &Path) -> Result<()> {
        self.paths.push((path.to_owned(), false));
        let within = |error: std::io::Error| Error::from(error).context("path", path.display());
        self.walk(&std::path::absolute(path).map_err(within)?).map_err(within)
    }

    fn walk(&mut self, path: &Path) -> std::io::Result<()> {
        let found = fs::metadata(path)?;
        if !found.is_dir() {
            if !found.is_file() {
                return Err(std::io::Error::other("neither a file nor a folder"));
            }
            if self.all.len() == FILES {
                return Err(std::io::Error::other(format!("more than {FILES} files")));
            }
            let mut head = Vec::new();
            fs::File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
            self.all.push(Found { path: path.to_owned(), head, from: self.paths.len() - 1 });
            return Ok(());
        }
        let mut entries = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        entries.sort();
        entries.iter().try_for_each(|entry| self.walk(entry))
    }

    /// Those with one of these extensions, or that begin so.
    fn of(&mut self, extensions: &[String], magic: &[MagicSpec]) -> Vec<PathBuf> {
        let own = |Found { path, head, .. }: &Found| {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
                || magic.iter().any(|magic| magic.begins(head))
        };
        let mut found = Vec::new();
        for file in self.all.iter().filter(|file| own(file)) {
            self.paths[file.from].1 = true;
            found.push(file.path.clone());
        }
        found
    }

    /// The paths of which no file was anything's.
    fn unused(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|(_, used)| !used).map(|(path, _)| path.as_path())
    }
}
