//! What checks work with: the plugin's things, and what comes of them.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::Path,
    time::Instant,
};

use forebay_core::{AnyDecoder, Buffer, Wanted};
use forebay_loader::{
    Digest, Error, ErrorKind, Executor, Graph, Key, Loader, LoaderBuilder, Registry, Result, Sample, Value,
    graph::MagicSpec, registry::HEAD,
};
use rustix::{
    param::page_size,
    time::{ClockId, clock_gettime},
};

use super::{Kit, Plugin, subject::Subject};
use crate::Host;

/// So many samples of a graph are read; of endless ones no more.
pub(super) const MOST: usize = 200;
/// The seed of all runs.
const SEED: u64 = 7;

/// What a check is given.
pub(super) struct Bench<'a> {
    pub(super) kit: &'a Kit,
    pub(super) subject: &'a Subject,
    pub(super) begun: Instant,
    /// Where it is said what is worked on.
    pub(super) doing: Option<File>,
}

/// So many bytes of that are kept.
const DOING: usize = 200;

/// What a graph gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    /// The uid and the digest of each sample.
    pub(super) samples: Vec<String>,
    /// Whether it came to its end, and was not cut off.
    pub(super) ended: bool,
}

impl Bench<'_> {
    /// All plugins, with nothing loaded or made yet.
    pub(super) fn registry(&self) -> Result<Registry> {
        self.kit.registry()
    }

    /// Says what is worked on now, so that it is known if the process dies over it.
    pub(super) fn doing(&self, what: &str) {
        let Some(file) = &self.doing else { return };
        let mut text = [b' '; DOING];
        let len = what.len().min(DOING);
        text[..len].copy_from_slice(&what.as_bytes()[..len]);
        // Nobody is told then, and nothing else goes wrong.
        let _ = file.write_all_at(&text, 0);
    }

    /// The name of one of a decoder's files.
    pub(super) fn file(&self, at: usize) -> String {
        match self.subject {
            Subject::Decoder { files, .. } => files.get(at).map(|path| path.display().to_string()),
            _ => None,
        }
        .unwrap_or_default()
    }

    /// Whether half of the time for this check is over: what can be done in part is left at that.
    pub(super) fn is_late(&self) -> bool {
        // The processor's clock does not run for a plugin that waits.
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
        used >= self.kit.seconds.div_ceil(2) || self.begun.elapsed().as_secs() >= self.kit.seconds
    }

    /// What the manifest says of the decoder.
    pub(super) fn magic(&self) -> Result<Vec<MagicSpec>> {
        let Subject::Decoder { name, .. } = self.subject else { return Ok(Vec::new()) };
        let registry = self.registry()?;
        let decoders = &self.kit.record(&registry)?.manifest().decoders;
        Ok(decoders.iter().filter(|decoder| decoder.name == *name).flat_map(|it| it.magic.clone()).collect())
    }

    /// Whether it is a library, which worker processes can load.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.kit.plugin, Plugin::File(..))
    }

    /// The files of a decoder, with their extensions.
    pub(super) fn files(&self) -> Result<Vec<(String, Buffer)>> {
        let Subject::Decoder { files, .. } = self.subject else { return Ok(Vec::new()) };
        let read = |path: &Path| {
            let bytes = fs::read(path).map_err(|error| Error::from(error).context("file", path.display()))?;
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            Ok((extension.to_owned(), Buffer::from(bytes)))
        };
        files.iter().map(|path| read(path)).collect()
    }

    /// A new instance of the decoder.
    pub(super) fn decoder(&self) -> Result<AnyDecoder> {
        let Subject::Decoder { name, .. } = self.subject else { return Err(Error::bug("no decoder")) };
        let registry = self.registry()?;
        let plugin = self.kit.record(&registry)?.manifest().name.clone();
        registry.choose("", &[], Some(&format!("{name}@{plugin}")))
    }

    /// The graph of a pipe.
    pub(super) fn graph(&self) -> Result<Graph> {
        match self.subject {
            Subject::Pipes { graph, .. } => Graph::from_line(graph),
            _ => Err(Error::bug("no graph")),
        }
    }

    pub(super) fn builder(&self, executor: Executor) -> Result<LoaderBuilder> {
        let builder = Loader::builder(self.graph()?).executor(executor).seed(SEED).epochs(3);
        // Not what the plugin would have by itself: several chunks are on their way, and end anywhere.
        let builder = if executor == Executor::Inline { builder } else { builder.chunk(3) };
        match &self.kit.worker {
            Some(worker) => Ok(builder.worker(worker.clone())),
            None => builder.worker_self(),
        }
    }

    pub(super) fn loader(&self, executor: Executor) -> Result<Loader> {
        self.builder(executor)?.build(&self.registry()?)
    }

    /// What the graph gives in epoch 0 by a loader of its own, on the consumer's thread.
    pub(super) fn whole(&self) -> Result<Given> {
        let mut loader = self.loader(Executor::Inline)?;
        let given = given(&mut loader, 0)?;
        loader.finish()?;
        Ok(given)
    }
}

/// What a loader gives in an epoch. A plugin that moved the process while it did is an error: the loader goes back, and logs it.
pub(super) fn given(loader: &mut Loader, epoch: u64) -> Result<Given> {
    let given = take(loader.epoch(epoch), MOST)?;
    if loader.take_log().iter().any(|(_, line)| line.contains("changed the folder")) {
        return Err(Error::invalid(
            "changed the working directory: it belongs to the host; join paths instead",
        ));
    }
    Ok(given)
}

/// So many samples of an epoch.
pub(super) fn take(samples: impl Iterator<Item = Result<Sample>>, most: usize) -> Result<Given> {
    let mut given = Given { samples: Vec::new(), ended: true };
    for sample in samples {
        if given.samples.len() == most {
            given.ended = false;
            break;
        }
        given.samples.push(digest(&sample?));
    }
    Ok(given)
}

/// A sample in a few digits: where it is from, and its values.
pub(super) fn digest(sample: &Sample) -> String {
    let mut digest = Digest::default();
    digest.update(sample);
    format!("{:016x} {}", sample.uid(), digest.finish())
}

/// What comes of bytes: a digest of the value, or the error.
pub(super) fn decode(decoder: &AnyDecoder, extension: &str, bytes: &Buffer) -> Result<String> {
    let host = Host::new();
    let value = decoder.decode(bytes, &Wanted { extension, ..Wanted::default() }, &host.context())?;
    Ok(value_digest(value))
}

fn value_digest(value: Value) -> String {
    let mut sample = Sample::new(0, Key::default());
    sample.set("value", value);
    digest(&sample)
}

/// How sure a decoder is of bytes.
pub(super) fn probe(decoder: &AnyDecoder, extension: &str, bytes: &[u8]) -> Result<u8> {
    decoder.probe(&bytes[..bytes.len().min(HEAD)], extension)
}

/// Whether this is how a plugin may refuse what it is given to read.
pub(super) fn refuses(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Limit)
}

/// How many bytes of memory this process has in use.
pub(super) fn memory() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map(|pages| pages * page_size() as u64).ok_or_else(|| Error::bug("statm has no resident pages"))
}
