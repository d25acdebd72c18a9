//! Makes a graph for any path. The contents of the files decide which pipes open them.
//!
//! Files that some pipe opens (an archive, a table) go to it; all others are decoded. Decoded files that
//! differ only in their extension, in one folder, are one sample. Each kind of file has a branch of its own.
//! The branches come one after the other, in the order of their first files.

mod look;
mod media;

use std::{
    collections::BTreeSet,
    path::{Component, Path},
};

use forebay_core::{Buffer, Error, Result, Value, scheme_of, shown};
use forebay_engine::Executor;
use forebay_engine::host::home::Home;
use forebay_graph::{Catalog as _, Draft, Graph, ON_ERROR, PipeSpec};
use forebay_registry::{Opener, Registry};
use serde::Serialize;

use self::look::{extension, head, look};
use crate::Loader;

/// The pipes that stand around those that open files: whoever writes a graph by hand names them too.
const FILES: &str = "files";
const READ: &str = "read";
const LABEL: &str = "label";
const GROUP: &str = "group";
const DECODE: &str = "decode";
const RENAME: &str = "rename";
const CONCAT: &str = "concat";

/// The option of pipes that make fields of folders called `name=value`.
const HIVE: &str = "hive";
/// The option of pipes that leave a file to another beside it: there is no other.
const ALONE: &str = "alone";
/// What happens to a file or sample that fails: it is listed, the others come, and the epoch ends with an error.
const ASIDE: &str = "fail_at_end";
/// The scheme of paths.
const LOCAL: &str = "file";
/// The most files of one kind that are named one by one where a reason is told.
const NAMED: usize = 5;

/// The files at a path, and the graph that reads them; see [`open`].
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Survey {
    /// Reads all files.
    #[serde(skip)]
    pub graph: Graph,
    /// The kinds of files, in the order of their first files.
    pub kinds: Vec<FileKind>,
    /// Files whose first bytes could not be read, and why.
    pub unreadable: Vec<(String, String)>,
    /// The names of the folders that became labels, in the order of the labels.
    pub classes: Vec<String>,
}

/// Files that are read in the same way.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FileKind {
    /// The extension of the files if they are decoded; the extension of the first file if a pipe opens them.
    pub extension: String,
    /// The pipes that open the files, in order; empty if a decoder takes a whole file.
    pub opened_by: Vec<String>,
    /// The decoder that unpacks a whole file, before the decoder for its contents.
    pub unpacked_by: Option<String>,
    /// The decoder that takes a whole file.
    pub decoder: Option<String>,
    /// The plugin of the decoder, or of the pipe that knows the format.
    pub plugin: Option<String>,
    /// Why the files stay bytes.
    pub left: Option<String>,
    /// How many files there are.
    pub files: u64,
    /// The first few files.
    pub first: Vec<String>,
    /// The nodes that read the files.
    pub nodes: Vec<String>,
    /// Whether it is a pipe or a device.
    #[serde(skip)]
    stream: bool,
    /// What others call the field of such a file, where it is a picture or a sound.
    #[serde(skip)]
    media: Option<&'static str>,
}

/// Makes the graph that reads a path: a file, a folder or a pattern.
///
/// The first bytes of each file decide which pipe opens it or which decoder takes it. So `open` reads the first
/// bytes of all files once.
///
/// - If all files of a folder lie in folders below it, samples have a `class`, the name of the first folder, and a
///   `label`, the index of that name among all names in sorted order.
/// - A file that is an image or a sound becomes a field `image` or `audio`, unless a sample has two of them.
/// - A pipe with the option `hive` gets it if its files lie in folders called `name=value` below the path. A pipe
///   with the option `alone` gets it if there is a single file.
/// - Every pipe has `on_error=fail_at_end`: a bad file is left out, everything else is delivered, and then the
///   epoch ends with an error. [`allow_failures`](crate::LoaderBuilder::allow_failures) turns that error off.
///
/// ```no_run
/// use forebay_loader::{Loader, Registry, open};
///
/// let registry = Registry::from_env()?;
/// let graph = open("data/birds", &registry)?;
/// for sample in Loader::builder(graph).build(&registry)?.epoch(0) {
///     println!("{}", sample?.key());
/// }
/// # Ok::<(), forebay_loader::Error>(())
/// ```
///
/// # Errors
/// `Io` and `Invalid` if there is no such file; `Abi` if a plugin that is needed does not fit.
pub fn open(path: &str, registry: &Registry) -> Result<Graph> {
    Survey::of(path, registry).map(|survey| survey.graph)
}

/// One kind of files while they are counted.
struct Branch {
    kinds: Vec<FileKind>,
    /// The pipes that open the files; none for those that are decoded.
    chain: Vec<String>,
    paths: Vec<String>,
    /// Whether there are pipes among them.
    streams: bool,
}

impl Survey {
    /// Looks into all files at a path.
    ///
    /// Cost: reads the first 4 KiB of each file. If these do not tell what a packed file contains, it reads as
    /// much as unpacks to 4 KiB.
    ///
    /// # Errors
    /// As [`open`].
    pub fn of(path: &str, registry: &Registry) -> Result<Self> {
        let mut branches: Vec<Branch> = Vec::new();
        let (mut unreadable, mut whole, home) = (Vec::new(), true, Home::here());
        for file in list(path, registry)? {
            let Some(file) = file.as_str() else {
                // No graph can name it. That there is no such file fails at the end, so that it is not missed in silence.
                let name = String::from_utf8_lossy(file.as_bytes().map_or(&[], |name| name)).into_owned();
                let why = "its name is not UTF-8; `files` reads it by its folder or by a pattern";
                put(&mut branches, FileKind::left(&name, &Error::invalid(why)), &name);
                unreadable.push((name, why.to_owned()));
                whole = false;
                continue;
            };
            let looked = look(file, registry);
            let _ = home.as_ref().map(Home::come_back);
            if let Err(error) = &looked {
                unreadable.push((shown(file).into_owned(), error.to_string()));
            }
            // Reading it will say so again, as the loss of a sample.
            put(&mut branches, looked.unwrap_or_else(|error| FileKind::left(file, &error)), file);
        }
        let classes = match &branches[..] {
            [only] if only.chain.is_empty() => classes(path, &only.paths),
            _ => Vec::new(),
        };
        // A pattern that stands for one kind of file stays one, and what is added later is read too.
        let alone = branches.len() == 1 && whole;
        let graph = graph(path, &branches, alone, &classes, registry)?;
        let nodes = graph.nodes().chunk_by(|_, next| next.pipe != FILES);
        for (branch, nodes) in branches.iter_mut().zip(nodes) {
            let names: Vec<_> = nodes.iter().map(|node| node.name.clone()).collect();
            branch.kinds.iter_mut().for_each(|kind| kind.nodes.clone_from(&names));
        }
        let kinds = branches.into_iter().flat_map(|branch| branch.kinds).collect();
        Ok(Self { graph, kinds, unreadable, classes })
    }
}

/// Puts a file among those that the same pipes open.
fn put(branches: &mut Vec<Branch>, kind: FileKind, file: &str) {
    let at = branches.iter().position(|branch| branch.chain == kind.opened_by);
    let at = at.unwrap_or_else(|| {
        let chain = kind.opened_by.clone();
        branches.push(Branch { kinds: Vec::new(), chain, paths: Vec::new(), streams: false });
        branches.len() - 1
    });
    branches[at].add(kind, file);
}

impl Branch {
    fn add(&mut self, kind: FileKind, file: &str) {
        self.paths.push(file.to_owned());
        self.streams |= kind.stream;
        let alike = |known: &&mut FileKind| {
            (&known.unpacked_by, &known.decoder, &known.plugin)
                == (&kind.unpacked_by, &kind.decoder, &kind.plugin)
                && (kind.left.is_none() == known.left.is_none())
                && (!self.chain.is_empty() || known.extension == kind.extension)
        };
        match self.kinds.iter_mut().find(alike) {
            Some(known) => {
                known.files += 1;
                if known.first.len() < NAMED {
                    known.first.push(shown(file).into_owned());
                }
            }
            None => self.kinds.push(kind),
        }
    }
}

impl FileKind {
    /// Finds what opens or decodes one file or URL, in the way that [`Survey`] chooses for every file.
    ///
    /// # Errors
    /// `Io` if the file cannot be read; `Abi` if a plugin that is asked does not fit.
    pub fn of(file: &str, registry: &Registry) -> Result<Self> {
        look(file, registry)
    }

    /// Reads the first bytes of a file or URL. Pipes and decoders are chosen by them.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn head_of(file: &str, registry: &Registry) -> Result<Buffer> {
        head(file, registry)
    }

    /// The extension that pipes and decoders are asked about: the text after the last dot, without a shard's
    /// number.
    #[must_use]
    pub fn extension_of(file: &str) -> &str {
        extension(file)
    }

    fn new(file: &str) -> Self {
        Self {
            extension: extension(file).to_ascii_lowercase(),
            opened_by: Vec::new(),
            unpacked_by: None,
            decoder: None,
            plugin: None,
            left: None,
            files: 1,
            first: vec![shown(file).into_owned()],
            nodes: Vec::new(),
            stream: false,
            media: None,
        }
    }

    /// Decoded by this decoder of this plugin.
    fn decoded(self, (decoder, plugin): (String, String), registry: &Registry) -> Self {
        let media = media::of(registry.media_types(&decoder, &plugin));
        Self { decoder: Some(decoder), plugin: Some(plugin), media, ..self }
    }

    /// Opened by a pipe, and one that unpacks the files before.
    fn opened(self, unpacker: Option<&Opener>, opener: Opener) -> Self {
        let unpacker = unpacker.map(|unpacker| unpacker.pipe.clone());
        let pipes = unpacker.into_iter().chain([opener.pipe, opener.then]);
        let opened_by = pipes.filter(|pipe| !pipe.is_empty()).collect();
        Self { opened_by, plugin: Some(opener.plugin), ..self }
    }

    fn left(file: &str, error: &Error) -> Self {
        Self { left: Some(error.message().to_owned()), ..Self::new(file) }
    }
}

/// The files at a path, in order.
fn list(path: &str, registry: &Registry) -> Result<Vec<Value>> {
    let graph = Graph::builder().pipe(FILES).option("paths", path).option("open", "none").build()?;
    let mut loader = Loader::builder(graph).executor(Executor::modest(registry)).build(registry)?;
    let mut paths = Vec::new();
    for sample in loader.epoch(0) {
        paths.extend(sample?.take("path"));
    }
    Ok(paths)
}

/// The folders directly below `path`, sorted by their bytes, if all files lie in one, and not all in the same.
fn classes(path: &str, files: &[String]) -> Vec<String> {
    let root = Path::new(path);
    let folder = |file: &String| {
        let mut below = Path::new(file).strip_prefix(root).ok()?.components();
        let first = below.next()?.as_os_str().to_str()?.to_owned();
        below.next().map(|_| first)
    };
    let folders: Option<BTreeSet<String>> = files.iter().map(folder).collect();
    let folders = folders.filter(|folders| folders.len() > 1).unwrap_or_default();
    folders.into_iter().collect()
}

/// Whether any of the files lies, below `path`, in a folder called `name=value`.
fn partitioned(path: &str, files: &[String]) -> bool {
    let named = |folder: Component<'_>| {
        folder
            .as_os_str()
            .to_str()
            .and_then(|name| name.split_once('='))
            .is_some_and(|(name, _)| !name.is_empty())
    };
    let below =
        |file: &String| Some(Path::new(file).strip_prefix(path).ok()?.parent()?.components().any(named));
    files.iter().any(|file| below(file) == Some(true))
}

fn graph(
    path: &str,
    branches: &[Branch],
    alone: bool,
    classes: &[String],
    registry: &Registry,
) -> Result<Graph> {
    let mut builder = Graph::builder();
    let pipe = |name: &str| Draft::new(name).option(ON_ERROR, ASIDE);
    let mut ends = Vec::new();
    for (number, branch) in branches.iter().enumerate() {
        let mut files = pipe(FILES).inputs([""; 0]);
        if branch.streams && branch.chain.is_empty() {
            files = files.option("open", "read"); // No worker process can.
        }
        builder = builder.node(match alone {
            true => files.option("paths", path),
            false => files.option("paths", branch.paths.iter().map(|path| plain(path)).collect::<Vec<_>>()),
        });
        if !classes.is_empty() {
            builder = builder.node(pipe(LABEL).option("root", path).option("classes", classes.to_vec()));
        }
        if branch.chain.is_empty() {
            // Of a URL `files` gives the path alone.
            if branch.paths.iter().any(|path| scheme_of(path) != LOCAL) {
                builder = builder.node(pipe(READ));
            }
            builder = builder.node(pipe(GROUP));
        }
        for name in &branch.chain {
            let takes = |wanted: &str| {
                let has = |spec: &PipeSpec| spec.options.iter().any(|option| option.name == wanted);
                registry.pipe(name).is_some_and(has)
            };
            let mut node = pipe(name);
            if takes(HIVE) && partitioned(path, &branch.paths) {
                node = node.option(HIVE, true);
            }
            if takes(ALONE) && branch.paths.len() == 1 {
                node = node.option(ALONE, true);
            }
            builder = builder.node(node);
        }
        let end = if number == 0 { DECODE.to_owned() } else { format!("{DECODE}-{}", number + 1) };
        builder = builder.node(pipe(DECODE).name(&end));
        ends.push(end);
        let fields =
            if branch.chain.is_empty() { media::names(&branch.kinds, &branch.paths) } else { Vec::new() };
        if !fields.is_empty() {
            let end = if number == 0 { RENAME.to_owned() } else { format!("{RENAME}-{}", number + 1) };
            builder =
                builder.node(pipe(RENAME).name(&end).option("fields", fields).option("missing", "keep"));
            ends[number] = end;
        }
    }
    match ends.len() {
        0 => builder.node(Draft::new(FILES).option("paths", path)).build(),
        1 => builder.build(),
        _ => builder.node(Draft::new(CONCAT).inputs(ends)).build(),
    }
}

/// A pattern that stands for this one file.
fn plain(path: &str) -> String {
    if matches!(scheme_of(path), "http" | "https") {
        return path.to_owned(); // No letter is a wildcard there, and `?` begins a query.
    }
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter {
            '*' | '?' | '[' | '{' | '}' => pattern.extend(['[', letter, ']']),
            _ => pattern.push(letter),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_classes_where_all_files_lie_in_one() {
        let files = |names: &[&str]| names.iter().map(|name| format!("d/{name}")).collect::<Vec<_>>();
        assert_eq!(classes("d", &files(&["b/1.jpg", "a/x/2.jpg", "b/3.jpg"])), ["a", "b"]);
        assert!(classes("d", &files(&["b/1.jpg", "2.jpg"])).is_empty());
        assert!(classes("d", &files(&["b/1.jpg", "b/2.jpg"])).is_empty());
        assert!(classes("d/*/*", &files(&["a/1.jpg", "b/2.jpg"])).is_empty());
    }

    #[test]
    fn folders_below_the_path_are_partitions() {
        let files = ["d=1/t/year=2026/a.parquet".to_owned(), "d=1/t/_metadata".to_owned()];
        for (path, expected) in [
            ("d=1/t", true),
            ("d=1/t/", true),
            ("d=1/t/year=2026", false),
            ("d=1/t/year=2026/a.parquet", false),
        ] {
            assert_eq!(partitioned(path, &files), expected, "{path}");
        }
        assert!(!partitioned("t", &["t/=x/y/a=b.parquet".to_owned()]));
    }

    #[test]
    fn a_path_stands_for_itself_alone() {
        assert_eq!(plain("a[1]*?{0,1}.tar"), "a[[]1][*][?][{]0,1[}].tar");
        assert_eq!(plain("https://host/a.tar?x=[1]"), "https://host/a.tar?x=[1]");
    }
}
