//! `forebay plugins new`: a crate that is a working plugin, to begin from.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args as Arguments, ValueEnum};
use forebay_loader::Error;

use crate::{
    outcome::{Result, Stop},
    print,
};

/// What `forebay plugins new` is told.
#[derive(Arguments)]
pub(crate) struct Args {
    /// The crate's name: lower-case letters, digits, `-` and `_`
    name: String,
    /// What the plugin provides
    #[arg(long, value_enum)]
    kind: Kind,
    /// The folder to make [default: the crate's name, in this folder]
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
    /// Forebay's sources [default: the sources of this command, if they are still there, else crates.io]
    #[arg(long, value_name = "FOLDER")]
    sources: Option<PathBuf>,
}

/// What a new plugin has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A decoder: makes a value of a field's bytes
    Decoder,
    /// A source: a pipe without inputs
    Source,
    /// A pipe that changes samples
    Pipe,
    /// Two pipes for files with many samples: one cuts files into pieces, the other reads the pieces on all threads
    Container,
    /// A store: reads the URLs of a scheme
    Store,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Source => "source",
            Self::Pipe => "pipe",
            Self::Container => "container",
            Self::Store => "store",
        }
    }
}

/// The names that a crate's goes by.
struct Names {
    /// As given.
    package: String,
    /// With `_`: of the library, and of what is in it.
    library: String,
    /// Of the type.
    of_type: String,
    /// Of a URL scheme, which has no `_`.
    scheme: String,
}

/// Makes the crate.
pub(crate) fn new(args: &Args) -> Result {
    let names = Names::of(&args.name, args.kind)?;
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&names.package));
    let files = files(args.kind, &names, &folder, args.sources.as_deref())?;
    fs::create_dir(&folder).map_err(|error| failed(error, &folder))?;
    for (path, bytes) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(|error| failed(error, parent))?;
        fs::write(&path, bytes).map_err(|error| failed(error, &path))?;
    }
    print::text(|out| {
        writeln!(out, "{} is a {}, ready to be built:\n", folder.display(), args.kind.name())?;
        files.iter().try_for_each(|(path, _)| writeln!(out, "  {}", folder.join(path).display()))?;
        writeln!(out, "\n  cd {} && cargo test && cargo build --release", folder.display())?;
        let library = &names.library;
        writeln!(out, "  forebay --plugin target/release plugins show {}", names.package)?;
        writeln!(out, "  forebay plugins test target/release/lib{library}.so {}", tested(args.kind, &names))
    })?;
    Ok(())
}

fn failed(error: std::io::Error, path: &Path) -> Stop {
    Stop::Failed(Error::from(error).context("path", path.display()))
}

/// Names of crates that are there already, and words of the language.
const TAKEN: &str = "abstract alloc as async await become box break const continue core crate do dyn else enum extern false final fn for forebay_core \
                     forebay_pipes forebay_testkit gen if impl in let loop macro match mod move mut override priv proc_macro pub ref return self static std struct \
                     super test trait true try type typeof unsafe unsized use virtual where while yield";

/// Types that the new crate's code uses.
const USED: &str = "Blob Buffer Context Cuts DType DataPipe Decoder DecoderInfo Entries Error File FlatMap Items Key Magic Map NoOptions Opens Others Path PipeInfo Result Sample \
                    SeekFrom Self Some Source State StateExt Store StoreInfo Str Tensor TensorExt Value View Wanted Option Vec String Box Ok Err None";

impl Names {
    fn of(package: &str, kind: Kind) -> Result<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        let begins = package.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || package.len() > 64 || !package.chars().all(plain) {
            let message = "expected a name of small letters, digits, `-` and `_` that begins with a letter";
            return Err(Stop::Usage(Error::invalid(message).context("name", package)));
        }
        let library = package.replace('-', "_");
        if TAKEN.split(' ').any(|word| word == library) {
            let message = "found a word of Rust or the name of another crate; choose another name";
            return Err(Stop::Usage(Error::invalid(message).context("name", package)));
        }
        let words = package.split(['-', '_']).filter(|word| !word.is_empty());
        let word = |word: &str| word[..1].to_uppercase() + &word[1..];
        let mut of_type: String = words.map(word).collect();
        if USED.split(' ').any(|used| used == of_type) {
            of_type.push_str(&word(kind.name()));
        }
        Ok(Self { package: package.to_owned(), library, of_type, scheme: package.replace('_', "-") })
    }
}

/// All files of the crate, by their paths in it.
fn files(
    kind: Kind,
    names: &Names,
    folder: &Path,
    sources: Option<&Path>,
) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let sources = match sources {
        Some(given) if !given.join("core/Cargo.toml").is_file() => {
            let error = Error::invalid("these are not Forebay's sources: found no core/Cargo.toml here");
            return Err(Stop::Usage(error.context("sources", given.display())));
        }
        Some(given) => Some(std::path::absolute(given)?),
        // Where this command was built.
        None => Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned),
    };
    let sources = sources.filter(|sources| sources.join("core/Cargo.toml").is_file());
    let dependency = |folder: &str, features: &str| match &sources {
        Some(sources) => format!("{{ path = {:?}{features} }}", sources.join(folder)),
        None => format!("{{ version = {:?}{features} }}", env!("CARGO_PKG_VERSION")),
    };
    let (what, code) = match kind {
        Kind::Decoder => ("A decoder for grids of numbers", include_str!("../../templates/decoder.rs.txt")),
        Kind::Source => {
            ("A source of numbers and their squares", include_str!("../../templates/source.rs.txt"))
        }
        Kind::Pipe => ("A map that multiplies a field", include_str!("../../templates/pipe.rs.txt")),
        Kind::Container => {
            ("A reader of files with many samples", include_str!("../../templates/container.rs.txt"))
        }
        Kind::Store => ("A store for URLs of a scheme", include_str!("../../templates/store.rs.txt")),
    };
    let more = match other_plugin(kind) {
        Some((what, folder, name)) => {
            format!("# {what} for the graphs of the tests.\n{name} = {}\n", dependency(folder, ""))
        }
        None => String::new(),
    };
    let here = std::path::absolute(folder)?;
    let (core, testkit) = (dependency("core", ""), dependency("testkit", ", features = [\"conformance\"]"));
    let (tested_here, used) = (tested(kind, names), used(kind, names, &here));
    let texts = [
        ("crate", &*names.package),
        ("lib", &names.library),
        ("name", &names.library),
        ("Type", &names.of_type),
        ("scheme", &names.scheme),
        ("what", what),
        ("kind", kind.name()),
        ("core", &core),
        ("testkit", &testkit),
        ("more", &more),
        ("with", &with(kind, names)),
        ("test", &tested_here),
        ("use", &used),
        ("data", data(kind)),
    ];
    let fill = |template: &str| {
        let filled = texts
            .iter()
            .fold(template.to_owned(), |text, (name, with)| text.replace(&format!("{{{{{name}}}}}"), with));
        filled.into_bytes()
    };
    let mut files = vec![
        ("Cargo.toml", fill(include_str!("../../templates/Cargo.toml.txt"))),
        ("README.md", fill(include_str!("../../templates/README.md.txt"))),
        (".gitignore", fill(include_str!("../../templates/gitignore.txt"))),
        ("src/lib.rs", fill(code)),
        ("tests/conformance.rs", fill(include_str!("../../templates/conformance.rs.txt"))),
    ];
    match kind {
        Kind::Decoder => files.push(("tests/data/two-by-three.grid", grid())),
        Kind::Container => files.push(("tests/data/three.shelf", shelf())),
        Kind::Store => files.push(("tests/data/hello.txt", b"Hello from a store.\n".to_vec())),
        Kind::Source | Kind::Pipe => {}
    }
    Ok(files)
}

/// The plugin of ours that its tests need: what of it, its folder and its name.
fn other_plugin(kind: Kind) -> Option<(&'static str, &'static str, &'static str)> {
    match kind {
        Kind::Source | Kind::Pipe => Some(("Pipes", "plugins/pipes", "forebay-pipes")),
        Kind::Container => Some(("Files", "plugins/files", "forebay-files")),
        Kind::Decoder | Kind::Store => None,
    }
}

/// A grid of two rows and three columns, as the new decoder reads it.
fn grid() -> Vec<u8> {
    let numbers = [1_f32, 2.0, 3.0, 0.5, 0.25, 0.125];
    let head = [2_u16, 3].into_iter().flat_map(u16::to_le_bytes);
    b"GRID".iter().copied().chain(head).chain(numbers.into_iter().flat_map(f32::to_le_bytes)).collect()
}

/// A shelf of three entries, as the new container is.
fn shelf() -> Vec<u8> {
    let entries = ["heron", "", "a grey heron"];
    let numbers = [entries.len()].into_iter().chain(entries.map(str::len));
    let numbers = numbers.flat_map(|number| (number as u32).to_le_bytes());
    b"SHLF".iter().copied().chain(numbers).chain(entries.concat().into_bytes()).collect()
}

/// What its conformance test gives the kit besides the plugin.
fn with(kind: Kind, Names { library, scheme, .. }: &Names) -> String {
    match kind {
        Kind::Decoder => ".data(\"tests/data\")".to_owned(),
        Kind::Source => ".with(forebay_pipes::register)".to_owned(),
        Kind::Container => {
            "\n        .with(forebay_files::register)\n        .data(\"tests/data\")\n        ".to_owned()
        }
        Kind::Pipe => {
            format!(
                "\n        .with(forebay_pipes::register)\n        .graph(\"range 40 | {library} value by=3\")\n        "
            )
        }
        Kind::Store => format!(
            "\n        .data(concat!(\n            \"{scheme}://\",\n            env!(\"CARGO_MANIFEST_DIR\"),\n            \
             \"/tests/data/hello.txt\"\n        ))\n        "
        ),
    }
}

/// The arguments of `forebay plugins test` for it.
fn tested(kind: Kind, Names { library, scheme, .. }: &Names) -> String {
    match kind {
        Kind::Decoder | Kind::Container => "--data tests/data".to_owned(),
        Kind::Source => String::new(),
        Kind::Pipe => format!("--graph 'range 40 | {library} value by=3'"),
        Kind::Store => format!("--data {scheme}://./tests/data/hello.txt"),
    }
}

/// A command that uses it.
fn used(kind: Kind, Names { library, scheme, .. }: &Names, here: &Path) -> String {
    let forebay = "forebay --plugin target/release head";
    match kind {
        Kind::Decoder | Kind::Container => format!("{forebay} tests/data"),
        Kind::Source => format!("{forebay} '{library} 10'"),
        Kind::Pipe => format!("{forebay} 'range 10 | {library} value by=3'"),
        Kind::Store => format!("{forebay} {scheme}://{}/tests/data/", here.display()),
    }
}

/// What to do about the data that it is tested with.
fn data(kind: Kind) -> &'static str {
    match kind {
        Kind::Decoder => {
            "Put small files that other programs wrote into `tests/data`. The tests cut each file off at every byte, and change every byte."
        }
        Kind::Container => {
            "Put small files of your own into `tests/data`. Let the first pipe read as little as it can, and the second do the work. Keep pieces to a few MB. The guide says how uids go from file to piece to sample."
        }
        Kind::Source => "A resume uses `state` and `restore`. The kit stops and resumes after every sample.",
        Kind::Pipe => {
            "Name graphs to test it in `tests/conformance.rs`. A pipe that keeps state is a `Stream`. A pipe that makes several samples of one is a `FlatMap`."
        }
        Kind::Store => {
            "Name URLs that the store serves in `tests/conformance.rs`. The test can run a server for them."
        }
    }
}
