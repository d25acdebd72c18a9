//! Finds Forebay plugins, builds graphs of pipes, and runs them.
//!
//! - [`Registry`]: the plugins that are found at run time, and which decoder takes a value; [`Trust`]: which
//!   plugins may load; [`Isolation`]: how they are isolated;
//! - [`graph`]: a graph as data, from TOML, JSON, one line or Rust;
//! - [`Plan`]: how a graph is cut for running;
//! - [`Loader`]: runs the graph on an [`Executor`], and gives the samples of each epoch in order.
//!
//! Nothing in this crate knows a format or a pipe. With the feature `bundled`, the in-tree plugins are linked in
//! through the same `register` as any other plugin; nothing else changes.

mod builder;
mod digest;
mod explain;
mod folders;
mod identity;
mod length;
mod lint;
mod loader;
mod open;
mod quality;
pub mod text;

pub use forebay_core::{
    Buffer, Context, DType, Element, Error, ErrorKind, FailedPlugin, Key, Limits, Ragged, Registrar, Result,
    Rng, Sample, SampleExt, Schema, Str, Struct, Tensor, TensorView, Value, View, nearest, without_secrets,
};
pub use forebay_graph::{self as graph, Graph};
pub use forebay_queue as queue;
pub use forebay_registry as registry;

pub use crate::{
    builder::{DEFAULT_BUDGET, DEFAULT_CHECKPOINTS, LoaderBuilder},
    digest::Digest,
    explain::Explanation,
    folders::with_folders,
    lint::{Lint, lints},
    loader::{Epoch, Loader, Stopper},
    open::{FileKind, Survey, open},
    quality::{Measure, Quality, quality},
};
pub use forebay_audit::{EpochAudit, LeftOut, Named, Offence, What, audit};
pub use forebay_engine::{
    Executor, WorkerProgram,
    host::{LostSample, Note},
    plan::{Edge, Plan, Segment},
    stall::{AtWork, Stall},
    stats::{NodeStats, Stats},
    worker::{serve_if_worker, serve_if_worker_with},
    worker_program,
};
pub use forebay_guard::signals::install_signal_handlers;
pub use forebay_registry::{Isolation, IsolationLevel, Registry, Search, Trust};
pub use forebay_snapshot::{
    FileMark, NodeMark, PipeState, PluginMark, Snapshot,
    order::{MapOrder, Span},
};
