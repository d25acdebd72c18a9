//! What a DataPipe says of itself: its name, and four groups of facts by which the loader plans, shuffles, audits and places it.

use serde::{Deserialize, Serialize};

use crate::{Magic, On};

/// What a DataPipe says of itself.
///
/// # Examples
/// ```
/// use forebay_core::{Drops, PipeAudit, PipeInfo};
///
/// const INFO: PipeInfo = PipeInfo {
///     name: "evens",
///     summary: "Every other sample",
///     audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
///     ..PipeInfo::DEFAULT
/// };
/// assert_eq!(INFO.layout.inputs, (1, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeInfo {
    /// The name in a graph: a verb of the field, in snake case.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// Names that other libraries use for it. A user who writes one of these names, and there is no such pipe, is told this one.
    pub also: &'static [&'static str],
    /// Its inputs and outputs.
    pub layout: PipeLayout,
    /// Which samples it gives, and in which order.
    pub order: PipeOrder,
    /// What an audit must know of it.
    pub audit: PipeAudit,
    /// Where it may run.
    pub placement: PipePlacement,
    /// The files it opens, for a map or flat map that stands directly behind the source of files.
    pub opens: Option<Opens>,
}

impl PipeInfo {
    /// One input, one output, nothing special.
    pub const DEFAULT: Self = Self {
        name: "",
        summary: "",
        also: &[],
        layout: PipeLayout::DEFAULT,
        order: PipeOrder::DEFAULT,
        audit: PipeAudit::DEFAULT,
        placement: PipePlacement::DEFAULT,
        opens: None,
    };
}

/// The inputs and outputs of a DataPipe, and the options that shape them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeLayout {
    /// The fewest and the most inputs. A source has none, whatever this says.
    pub inputs: (u32, u32),
    /// How many outputs there are.
    pub outputs: u32,
    /// The option that says how many outputs there are, for pipes whose user decides.
    pub outputs_option: Option<&'static str>,
    /// The options that list one value for each input. A graph whose lists have other lengths is refused.
    pub per_input: &'static [&'static str],
    /// The option that says how many consecutive samples are stacked into one, for pipes that stack. The host
    /// lays output memory for that many side by side, so that stacking copies nothing.
    pub stacks: Option<&'static str>,
    /// What an output is called if it is made of several samples. Without it an output is a sample.
    pub gives: Option<Noun>,
    /// Whether its samples can be asked for by number.
    pub access: Access,
    /// An option whose value the loader finds before the run: the names of folders.
    pub folders_option: Option<FoldersOption>,
}

impl PipeLayout {
    /// One input, one output.
    pub const DEFAULT: Self = Self {
        inputs: (1, 1),
        outputs: 1,
        outputs_option: None,
        per_input: &[],
        stacks: None,
        gives: None,
        access: Access::InOrder,
        folders_option: None,
    };
}

/// The word for one output and the word for several: `batch` and `batches`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noun {
    /// For one.
    pub one: &'static str,
    /// For several, and for none.
    pub many: &'static str,
}

impl Noun {
    /// What most pipes give.
    pub const SAMPLE: Self = Self { one: "sample", many: "samples" };
    /// What pipes that stack give.
    pub const BATCH: Self = Self { one: "batch", many: "batches" };
}

/// Whether samples can be asked for by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They come one after the other.
    InOrder,
    /// It has random access: an [`Indexed`](crate::Indexed) source, the pipes that
    /// [`export_plugin!`](crate::export_plugin) makes of one, or a stream that samplers may draw from. Such a
    /// stream comes with two more pipes. `NAME.len` gives a sampler the count, and passes the samples on by
    /// its second output. `NAME.get` reads that output and the sampler's.
    Indexed,
    /// It says which samples of such a source come: a sampler. Its only input is an
    /// [`Indexed`](crate::Indexed) source, from which it gets one sample with the number of samples,
    /// [`COUNT`](crate::sampling::COUNT). Its outputs are the numbers of samples, [`DRAWN`](crate::sampling::DRAWN).
    Sampler,
}

/// An option that lists folders.
///
/// If a graph gives `root` and not `names`, the loader sets `names` before the run: to the names of the folders
/// directly below `root`, sorted by their bytes, without those that begin with a dot. So the graph that runs
/// has them, and a snapshot of other folders is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldersOption {
    /// The option that lists the folders.
    pub names: &'static str,
    /// The option that names the folder they lie in.
    pub root: &'static str,
}

/// Which samples a DataPipe gives, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeOrder {
    /// Gives samples in a random order or, for a map, the contents of each in a random order. Users are told
    /// if that order is lost, and a run can leave the pipe out.
    pub shuffles: bool,
    /// When its output is random, beside the order. Users are told if that randomness is lost.
    ///
    /// If a pipe neither says so nor has an option `seed` that is not given, samples that are kept from run
    /// to run behind it are kept for every seed.
    pub draws: Randomness,
    /// The option that says how many samples it passes on before it ends: the first ones of its only input.
    /// It takes no more than those, so the host makes no samples that it knows to lie beyond them. A value of
    /// null means all.
    pub takes: Option<&'static str>,
    /// Gives each rank its share of the samples, by [`Context::rank`](crate::Context::rank).
    pub shards: bool,
    /// Keeps its input for later epochs and passes. To make the input the same whenever it is read,
    /// everything before this pipe always sees epoch 0 and pass 0. None of that runs before this pipe asks
    /// for input.
    pub keeps: bool,
    /// The option, a text, that the loader sets to the identity of the node's input, followed by the value
    /// that a graph gives. It is for pipes that keep something from run to run if an option tells them to. If
    /// a graph gives the node no such option, this one is not set.
    ///
    /// The identity is the same as long as everything is that can be known before a run: the nodes before
    /// this one, the plugins and the limits. The seed counts if one of those nodes [draws](PipeOrder::draws).
    /// So does the folder that relative paths begin at and, with ranks, their number. Files count by their
    /// lengths and times of change. These are the files that options name, and those of a source with an
    /// option `open` and its choice `none`, which gives a `path` alone. Contents behind URLs, closures and
    /// the environment do not count.
    pub identity_option: Option<&'static str>,
    /// May answer [`Step::Rewind`](crate::Step::Rewind): the pipe it reads from must feed no other pipe.
    pub rewinds: bool,
}

impl PipeOrder {
    /// All samples, in the order in which they come.
    pub const DEFAULT: Self = Self {
        shuffles: false,
        draws: Randomness::Never,
        takes: None,
        shards: false,
        keeps: false,
        identity_option: None,
        rewinds: false,
    };
}

/// When the output of a DataPipe is random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Randomness {
    /// The same input gives the same output.
    Never,
    /// Whatever its options say.
    Always,
    /// If one of these holds.
    If(&'static [Condition]),
}

/// A condition on an option of a node, which counts at its default too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The option has this value: JSON, or a text without its quotes.
    Is(&'static str, &'static str),
    /// The option, written as JSON, contains this text, which has no blanks.
    Contains(&'static str, &'static str),
}

/// What an audit must know of a DataPipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeAudit {
    /// Which uids the outputs have. Sources and flat maps make their own, whatever this says.
    pub uids: Uids,
    /// The option that names a field for the uids of the samples in each output, a u64 tensor `[n]` in their
    /// order. It is for pipes that put several samples into one, consecutive or not.
    ///
    /// With it an audit checks that each sample is in one output, once. If the [uids](PipeAudit::uids) are
    /// made, a sample is in one output or, in pieces, in several. Without the field, a run of a pipe that
    /// [stacks](PipeLayout::stacks) cannot be audited, and the contents of other pipes' outputs are unknown.
    pub uids_option: Option<&'static str>,
    /// When it leaves samples out on purpose. An audit calls every other missing sample lost.
    pub drops: Drops,
    /// Writes its samples out of the run, to files or elsewhere. Ranks that share the data get their share
    /// before it, so no two ranks write the same sample.
    pub writes: bool,
}

impl PipeAudit {
    /// Every sample comes out once, with its uid.
    pub const DEFAULT: Self =
        Self { uids: Uids::Kept, uids_option: None, drops: Drops::Never, writes: false };
}

/// When a DataPipe leaves samples out on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drops {
    /// Never.
    Never,
    /// It always may.
    Always,
    /// When one of these options is not at its default.
    With(&'static [&'static str]),
}

/// Which uids the samples have that a stream gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uids {
    /// Those they came with.
    #[default]
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

/// Where a DataPipe may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipePlacement {
    /// Where its work is done best; a graph may say otherwise.
    pub on: On,
    /// A flat map of pieces: its outputs for one sample are few enough to be held together. So several
    /// samples may be worked on at once, on any thread or in any worker process.
    pub parallel: bool,
    /// Asks for decoders, by [`Context::decoder`](crate::Context::decoder): if those are isolated, so is this pipe.
    pub decodes: bool,
}

impl PipePlacement {
    /// On any thread.
    pub const DEFAULT: Self = Self { on: On::Threads, parallel: false, decodes: false };
}

/// Which files a pipe opens, so that it is found by what a file holds.
///
/// A map that opens files unpacks them: what is in `bytes` or at `path` becomes `bytes`. It has the option `first`, only so many bytes
/// of that, by which what is inside is looked at; its extensions are those of packing, which say nothing of that. A flat map that unpacks
/// packed files itself, as it reads, says so in [`probe`](crate::DataPipe::probe), by 128 or more of a packed head under its own first extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
