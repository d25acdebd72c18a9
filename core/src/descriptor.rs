//! What a plugin says of itself, as constants that the export macro writes into the library.

/// What a DataPipe says of itself.
#[derive(Debug, Clone, Copy)]
pub struct PipeInfo {
    /// The name in a graph: a verb of the field, in snake case.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// What others call it, names with a space between: who asks for one of those, which is no pipe, is told of this.
    pub also: &'static str,
    /// The fewest and the most inputs; a source has none whatever stands here.
    pub inputs: (u32, u32),
    /// How many outputs there are.
    pub outputs: u32,
    /// The option that says how many outputs there are, for pipes whose user decides.
    pub outputs_option: &'static str,
    /// The options that list one value for each input, with a space between: a graph whose lists are of other lengths is refused.
    pub per_input: &'static str,
    /// The option that says how many consecutive samples are stacked into one, for pipes that do:
    /// the host lays output memory for that many side by side, so that stacking copies nothing.
    pub stacks: &'static str,
    /// The option that names a field for the uids of the samples in each that it gives, a u64 tensor `[n]` in their order; for pipes that put several
    /// into one, consecutive or not. An audit sees by it that each is in one of them, once; or, where the [uids](PipeInfo::uids) are made,
    /// in one or, in pieces, in several. Without one a run of a pipe that [stacks](PipeInfo::stacks) cannot be audited, and of others what is in what they give is not known.
    pub uids_option: &'static str,
    /// What people call one of the samples it gives, and several, with a space between, where each is made of several others: `batch batches`,
    /// `file files`. Empty for samples.
    pub gives: &'static str,
    /// Which uids the samples it gives have. Sources and flat maps make their own whatever stands here.
    pub uids: Uids,
    /// The option by which it leaves samples out on purpose, whenever it is not at its default; of several one space between; `*` for a pipe that always
    /// may. To an audit, whatever else does not come out is lost.
    pub drops: &'static str,
    /// The option that says how many samples it hands on, the first ones of its only input, before it ends. It takes no more than those, so nothing
    /// that the host knows to lie beyond them is made. A value of null means all.
    pub takes: &'static str,
    /// Brings its samples out of the run, to files or to somewhere else. Ranks that share the data get their share before it, so that no two bring out
    /// the same sample.
    pub writes: bool,
    /// A flat map of pieces: what it makes of one sample is little enough to be held whole, so several samples may be worked on at
    /// once, on any thread or in any worker process.
    pub parallel: bool,
    /// Of a pipe that [`export_plugin!`](crate::export_plugin) makes of an [`Indexed`](crate::Indexed) source, and of that; else of a stream that samplers may draw from, which
    /// comes with two pipes more: `NAME.len`, which gives a sampler the count and hands the samples on by its second output, and `NAME.get`, which reads that and what the sampler gives.
    pub indexed: bool,
    /// A sampler: its only input is an [`Indexed`](crate::Indexed) source, of which it is told how many samples there are, in one sample, [`COUNT`](crate::sampling::COUNT);
    /// what it gives are the numbers of samples, [`DRAWN`](crate::sampling::DRAWN).
    pub samples: bool,
    /// Gives samples in a random order, or, a map, what is in each. People are told where that is lost, and a run may leave it out.
    pub shuffles: bool,
    /// When what it gives is random, beside its order: `option=value`, also where that is the default, or `option~text` where the option has this text in it; of
    /// several one space between; `*` for always. People are told where that is lost. Where a pipe neither says so nor has an option `seed`
    /// that is not given, what is kept from run to run behind it is kept for every seed.
    pub draws: &'static str,
    /// Keeps what it reads for later epochs and passes. So that this is the same whenever it is read, everything before it is told of epoch 0 and
    /// pass 0 at all times; and none of that runs before this asks for input.
    pub keeps: bool,
    /// The option, a text, that the loader sets to the identity of what this reads, followed by what a graph gives it:
    /// the same as long as all is that can be known before a run: the nodes before this one, the plugins and limits, the seed if any of those
    /// [draws](PipeInfo::draws), the folder that relative paths begin at and, with ranks, how many there are; and of the files that a source names
    /// (it has an option `open` with the choice `none`, which gives a `path` alone), or options of other nodes, their lengths and times of change.
    /// What is behind URLs, closures and the environment are not in it. For pipes that keep something from run to run, which an option tells them to: where a graph
    /// gives a node none, this is not set.
    pub identity_option: &'static str,
    /// An option that lists folders and, after a space, the option that names the folder they lie in. Where a graph gives the second and not the
    /// first, the loader sets the first before the run: to the names of the folders directly below, sorted by their bytes, without those that begin with a dot. So
    /// the graph that runs has them, and a snapshot of other folders is refused.
    pub folders_option: &'static str,
    /// May answer [`Step::Rewind`](crate::Step::Rewind): what it reads from must feed nothing else.
    pub rewinds: bool,
    /// Gives each rank its share of the samples, by [`Context::rank`](crate::Context::rank).
    pub shards: bool,
    /// Asks for decoders, by [`Context::decoder`](crate::Context::decoder): where those are isolated, so is this.
    pub decodes: bool,
    /// Where its work is done best; a graph may say otherwise.
    pub on: On,
    /// The files it opens, for a map or flat map that stands directly behind the source of files.
    pub opens: Option<Opens>,
}

/// Which files a pipe opens, so that it is found by what a file holds.
///
/// A map that opens files unpacks them: what is in `bytes` or at `path` becomes `bytes`. It has the option `first`, only so many bytes
/// of that, by which what is inside is looked at; its extensions are those of packing, which say nothing of that. A flat map that unpacks
/// packed files itself, as it reads, says so in [`probe`](crate::DataPipe::probe), by 128 or more of a packed head under its own first extension.
#[derive(Debug, Clone, Copy)]
pub struct Opens {
    /// Extensions in lower case, without the dot: a hint.
    pub extensions: &'static [&'static str],
    /// Any of these makes it a candidate, whatever the extension; an empty one makes it a candidate for every file. With none
    /// at all the extension must match.
    pub magic: &'static [Magic],
    /// The pipe that turns its pieces into samples, or does more with them; empty where none follows. It is left out for a
    /// file of which its own [`probe`](crate::DataPipe::probe) says 0.
    pub then: &'static str,
}

/// Where the work of a pipe is done best. It never changes what comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// On any thread.
    Threads,
    /// On a thread that does nothing else: its calls wait for a disk or a server. For pipes that see samples in order.
    OwnThread,
    /// In a process of its own: it may crash, or keeps state of the whole process that threads must not share. Maps run in several.
    Process,
}

impl On {
    /// The name in a manifest, and in a graph.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::OwnThread => "own_thread",
            Self::Process => "process",
        }
    }
}

impl PipeInfo {
    /// One input, one output, nothing special.
    pub const DEFAULT: Self = Self {
        name: "",
        summary: "",
        also: "",
        inputs: (1, 1),
        outputs: 1,
        outputs_option: "",
        per_input: "",
        stacks: "",
        uids_option: "",
        gives: "",
        uids: Uids::Kept,
        drops: "",
        takes: "",
        writes: false,
        parallel: false,
        indexed: false,
        samples: false,
        shuffles: false,
        draws: "",
        keeps: false,
        identity_option: "",
        folders_option: "",
        rewinds: false,
        shards: false,
        decodes: false,
        on: On::Threads,
        opens: None,
    };
}

/// Which uids the samples have that a stream gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uids {
    /// Those they came with.
    Kept,
    /// Made of those they came with, by [`Context::uid_of`](crate::Context::uid_of) with the numbers of the input and of the pass
    /// over it, in this order: for pipes that would give samples of different inputs or passes the same uid.
    Derived,
    /// New ones.
    Made,
}

impl Uids {
    /// The name in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Derived => "derived",
            Self::Made => "made",
        }
    }
}

/// Bytes that files of one kind have at one place.
#[derive(Debug, Clone, Copy)]
pub struct Magic {
    /// Where, from the start.
    pub offset: u32,
    /// Which.
    pub bytes: &'static [u8],
}

/// What a Decoder says of itself.
#[derive(Debug, Clone, Copy)]
pub struct DecoderInfo {
    /// The name that pins it.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// Among decoders that are equally sure the higher one wins: 64 marginal, 128 usual, 256 primary.
    pub priority: u32,
    /// Extensions in lower case, without the dot: a hint.
    pub extensions: &'static [&'static str],
    /// Media types: a hint.
    pub media_types: &'static [&'static str],
    /// Any of these makes it a candidate, whatever the extension. Bytes that begin with none are not its own, whatever their extension;
    /// an empty one says that they may be.
    pub magic: &'static [Magic],
}

impl DecoderInfo {
    /// Priority 128 and no hints.
    pub const DEFAULT: Self =
        Self { name: "", summary: "", priority: 128, extensions: &[], media_types: &[], magic: &[] };
}

/// What a Store says of itself.
#[derive(Debug, Clone, Copy)]
pub struct StoreInfo {
    /// Its name.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// URL schemes it serves, without `://`.
    pub schemes: &'static [&'static str],
}

impl StoreInfo {
    /// No schemes.
    pub const DEFAULT: Self = Self { name: "", summary: "", schemes: &[] };
}

/// What a DataPipe does to a stream, which is all the planner looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// No input.
    Source,
    /// Stateless, sample by sample, shared by threads.
    Map,
    /// Stateless, one sample to a stream.
    FlatMap,
    /// Stateful, in order.
    Stream,
}

impl Class {
    /// The name in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Map => "map",
            Self::FlatMap => "flat_map",
            Self::Stream => "stream",
        }
    }
}

/// What kind of value an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionKind {
    /// `bool`, `int`, `uint`, `float`, `str` or `any`.
    pub base: &'static str,
    /// Whether one value, a list of them, or either is taken.
    pub list: List,
    /// Whether null is taken too.
    pub optional: bool,
}

/// Whether an option takes one value, a list, or either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// One value.
    No,
    /// A list.
    Yes,
    /// One value or a list.
    Either,
}

/// The schema of one option. Defaults and bounds are JSON text.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// The key in a graph.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// The default; `required` when there is none.
    pub default: &'static str,
    /// The least number; empty when there is no bound.
    pub min: &'static str,
    /// The greatest number.
    pub max: &'static str,
    /// The only values, if not empty.
    pub choices: &'static [&'static str],
    /// For people.
    pub doc: &'static str,
}

/// A thing with its options' schema.
#[derive(Debug, Clone, Copy)]
pub struct Described<T: 'static> {
    /// What it says of itself.
    pub info: T,
    /// Its options; the first may be given by position.
    pub options: &'static [OptionSpec],
}

/// All that a manifest says.
#[derive(Debug, Clone, Copy)]
pub struct PluginInfo {
    /// The crate's name.
    pub name: &'static str,
    /// The crate's version.
    pub version: &'static str,
    /// The crate's licence.
    pub license: &'static str,
    /// The crate's repository.
    pub repository: &'static str,
    /// The symbol that leads to the plugin's table.
    pub entry: &'static str,
    /// CPU features that the plugin was compiled to need.
    pub cpu: &'static [&'static str],
    /// The version of what its pipes save and give: builds that say the same number go on from each other's snapshots. Without one
    /// only the same file does.
    pub state_version: Option<u32>,
    /// DataPipes.
    pub pipes: &'static [(Class, Described<PipeInfo>)],
    /// Decoders.
    pub decoders: &'static [Described<DecoderInfo>],
    /// Stores.
    pub stores: &'static [Described<StoreInfo>],
}
