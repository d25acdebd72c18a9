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
    /// The option that says how many consecutive samples are stacked into one, for pipes that stack. The host
    /// lays output memory for that many side by side, so that stacking copies nothing.
    pub stacks: &'static str,
    /// The option that names a field for the uids of the samples in each output, a u64 tensor `[n]` in their
    /// order. It is for pipes that put several samples into one, consecutive or not.
    ///
    /// With it an audit checks that each sample is in one output, once. If the [uids](PipeInfo::uids) are
    /// made, a sample is in one output or, in pieces, in several. Without the field, a run of a pipe that
    /// [stacks](PipeInfo::stacks) cannot be audited, and the contents of other pipes' outputs are unknown.
    pub uids_option: &'static str,
    /// The words for one output and for several, with a space between, if an output is made of several
    /// samples: `batch batches`, `file files`. Empty for samples.
    pub gives: &'static str,
    /// Which uids the outputs have. Sources and flat maps make their own, whatever this says.
    pub uids: Uids,
    /// The option by which it leaves samples out on purpose, whenever it is not at its default. Several
    /// options have a space between; `*` is for a pipe that always may. An audit calls every other missing
    /// sample lost.
    pub drops: &'static str,
    /// The option that says how many samples it passes on before it ends: the first ones of its only input.
    /// It takes no more than those, so the host makes no samples that it knows to lie beyond them. A value of
    /// null means all.
    pub takes: &'static str,
    /// Writes its samples out of the run, to files or elsewhere. Ranks that share the data get their share
    /// before it, so no two ranks write the same sample.
    pub writes: bool,
    /// A flat map of pieces: its outputs for one sample are few enough to be held together. So several
    /// samples may be worked on at once, on any thread or in any worker process.
    pub parallel: bool,
    /// It has random access: an [`Indexed`](crate::Indexed) source, the pipes that
    /// [`export_plugin!`](crate::export_plugin) makes of one, or a stream that samplers may draw from. Such a
    /// stream comes with two more pipes. `NAME.len` gives a sampler the count, and passes the samples on by
    /// its second output. `NAME.get` reads that output and the sampler's.
    pub indexed: bool,
    /// A sampler. Its only input is an [`Indexed`](crate::Indexed) source, from which it gets one sample with
    /// the number of samples, [`COUNT`](crate::sampling::COUNT). Its outputs are the numbers of samples,
    /// [`DRAWN`](crate::sampling::DRAWN).
    pub samples: bool,
    /// Gives samples in a random order or, for a map, the contents of each in a random order. Users are told
    /// if that order is lost, and a run can leave the pipe out.
    pub shuffles: bool,
    /// When its output is random, beside the order: `option=value`, also for a default, or `option~text` if
    /// the option contains this text. Several have one space between; `*` means always. Users are told if
    /// that randomness is lost.
    ///
    /// If a pipe neither says so nor has an option `seed` that is not given, samples that are kept from run
    /// to run behind it are kept for every seed.
    pub draws: &'static str,
    /// Keeps its input for later epochs and passes. To make the input the same whenever it is read,
    /// everything before this pipe always sees epoch 0 and pass 0. None of that runs before this pipe asks
    /// for input.
    pub keeps: bool,
    /// The option, a text, that the loader sets to the identity of the node's input, followed by the value
    /// that a graph gives. It is for pipes that keep something from run to run if an option tells them to. If
    /// a graph gives the node no such option, this one is not set.
    ///
    /// The identity is the same as long as everything is that can be known before a run: the nodes before
    /// this one, the plugins and the limits. The seed counts if one of those nodes [draws](PipeInfo::draws).
    /// So does the folder that relative paths begin at and, with ranks, their number. Files count by their
    /// lengths and times of change. These are the files that options name, and those of a source with an
    /// option `open` and its choice `none`, which gives a `path` alone. Contents behind URLs, closures and
    /// the environment do not count.
    pub identity_option: &'static str,
    /// An option that lists folders and, after a space, the option that names the folder they lie in. If a
    /// graph gives the second and not the first, the loader sets the first before the run. Its value is the
    /// names of the folders directly below, sorted by their bytes, without those that begin with a dot. So
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
    /// Made of the inputs' uids by [`Context::uid_of`](crate::Context::uid_of), with the number of the input
    /// and of the pass over it, in this order. It is for pipes that would otherwise give samples of different
    /// inputs or passes the same uid.
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
