//! Bytes of an object, over as many requests as it takes: each goes on where the one before broke off.

use std::{
    collections::BTreeSet,
    mem,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use forebay_core::{Error, ErrorKind, Result, shown};
use futures_util::{StreamExt, stream::BoxStream};
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
    list::{PaginatedListOptions, PaginatedListStore},
    path::{DELIMITER, Path},
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    settings::Settings,
    sources::Source,
    wire::{Fault, innermost, plain},
};

/// No pause is longer, unless the server asks for it.
const LONGEST: Duration = Duration::from_secs(20);
/// So many bytes between two failures are progress: the attempts are counted anew.
const PROGRESS: u64 = 64 << 10;

/// What a server says of an object: the same as long as its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) size: u64,
    /// Its etag, or else when it was changed; none where the server says neither.
    pub(crate) tag: Option<Arc<str>>,
}

impl Identity {
    fn of(meta: &ObjectMeta) -> Self {
        let changed = || (meta.last_modified.timestamp() > 0).then(|| meta.last_modified.to_rfc3339());
        Self { size: meta.size, tag: meta.e_tag.clone().or_else(changed).map(Arc::from) }
    }

    fn shown(&self) -> String {
        match &self.tag {
            Some(tag) => format!("{} bytes, {tag}", self.size),
            None => format!("{} bytes", self.size),
        }
    }
}

/// How an attempt failed.
pub(crate) enum Failed {
    /// It may be tried again, after so long where the server said so.
    Again(Error, Option<Duration>),
    Over(Error),
}

impl Failed {
    /// What an error of object_store means for whoever asked.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        match Fault::of(error) {
            Some(fault) => {
                let kind = if fault.status == Some(200) { ErrorKind::Unsupported } else { ErrorKind::Io };
                let error = Error::new(kind, fault.to_string());
                if fault.may_pass() { Self::Again(error, fault.after) } else { Self::Over(error) }
            }
            None => Self::Over(Error::new(ErrorKind::Io, plain(error))),
        }
    }
}

/// The attempts at one thing: how many there were and may be.
pub(crate) struct Tries<'a> {
    url: &'a str,
    settings: &'a Settings,
    most: u32,
    pause: Duration,
    made: u32,
    /// Tells this one from others that begin at the same time: of other parts, and in other processes.
    seed: u64,
}

impl<'a> Tries<'a> {
    pub(crate) fn new(url: &'a str, settings: &'a Settings) -> Self {
        let seed = u64::from(std::process::id()) << 32;
        Self { url, settings, most: settings.attempts, pause: settings.pause, made: 0, seed }
    }

    /// After a failure: waits until it is time for the next attempt, or gives the error.
    pub(crate) async fn again(&mut self, failed: Failed) -> Result<()> {
        self.made += 1;
        match failed {
            Failed::Again(_, after) if self.made < self.most => {
                tokio::time::sleep(after.unwrap_or_default().max(self.pause())).await;
                Ok(())
            }
            Failed::Again(error, _) | Failed::Over(error) => {
                Err(error.context("url", shown(self.url)).context("attempts", self.made))
            }
        }
    }

    /// Twice as long each time, and not as long as that of all others who were refused at the same time.
    fn pause(&self) -> Duration {
        let most = self.pause.saturating_mul(1 << (self.made - 1).min(16)).min(LONGEST);
        let part = xxh3_64_with_seed(self.url.as_bytes(), self.seed.wrapping_add(self.made.into())) >> 32;
        most / 2 + (most / 2).mul_f64(part as f64 / 2_f64.powi(32))
    }
}

/// How fast a server sends, so that one that sends a little now and then is not waited for without end.
struct Pace {
    /// What must come in how long a time.
    least: u64,
    over: Duration,
    came: u64,
    waited: Duration,
}

impl Pace {
    fn new(settings: &Settings) -> Self {
        let over = settings.timeout;
        let least = (settings.rate as f64 * over.as_secs_f64()) as u64;
        Self { least, over, came: 0, waited: Duration::ZERO }
    }

    /// So many bytes came after so long a wait.
    fn add(&mut self, bytes: usize, waited: Duration) -> Result<(), Failed> {
        self.came += bytes as u64;
        self.waited += waited;
        if self.waited < self.over {
            return Ok(());
        }
        let (came, waited) = (mem::take(&mut self.came), mem::take(&mut self.waited).as_secs_f64());
        if came >= self.least {
            return Ok(());
        }
        let (least, over) = (self.least, self.over.as_secs_f64());
        let why = format!(
            "the server sent {came} bytes in {waited:.1} s, expected {least} in {over:.1} s at least\n\
             FOREBAY_REMOTE_RATE sets how many bytes a second a server must send"
        );
        Err(Failed::Again(Error::new(ErrorKind::Io, why), None))
    }
}

/// A part of an object, as it comes.
pub(crate) struct Incoming<'a> {
    source: &'a Source,
    tries: Tries<'a>,
    identity: Option<Identity>,
    /// What is still to come.
    range: Range<u64>,
    body: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    pace: Pace,
    /// Where the last failure was.
    failed_at: u64,
    changed: bool,
}

impl<'a> Incoming<'a> {
    /// The bytes of `range`, or those there are, of the object that was known by `identity`.
    pub(crate) fn new(
        source: &'a Source,
        tries: Tries<'a>,
        range: Range<u64>,
        identity: Option<Identity>,
    ) -> Self {
        let failed_at = range.start;
        let tries = Tries { seed: tries.seed.wrapping_add(range.start << 8), ..tries };
        let pace = Pace::new(tries.settings);
        Self { source, tries, identity, range, body: None, pace, failed_at, changed: false }
    }

    /// What the server said of the object, once something has come or the end.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Whether the object is another than the one that was known.
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// The next bytes; `None` at the end, when all have come.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            match self.piece().await {
                Ok(Some(bytes)) => {
                    self.range.start += bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                Ok(None) => return Ok(None),
                Err(failed) => {
                    self.body = None;
                    self.pace = Pace::new(self.tries.settings);
                    if self.range.start - self.failed_at >= PROGRESS {
                        self.tries.made = 0;
                    }
                    self.failed_at = self.range.start;
                    let Range { start, end } = self.range;
                    let asked = self.tries.again(failed).await;
                    asked.map_err(|error| error.context("bytes", format!("{start} to {end}")))?;
                }
            }
        }
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, Failed> {
        let body = match &mut self.body {
            Some(body) => body,
            None => match self.open().await? {
                Some(body) => self.body.insert(body),
                None => return Ok(None),
            },
        };
        if self.range.is_empty() {
            return Ok(None);
        }
        let left = self.range.end - self.range.start;
        let begun = Instant::now();
        match body.next().await {
            // The last ones are here, however long they took.
            Some(Ok(bytes)) if bytes.len() as u64 == left => Ok(Some(bytes)),
            Some(Ok(bytes)) if (bytes.len() as u64) < left => {
                let pace = self.pace.add(bytes.len(), begun.elapsed());
                pace.map(|()| Some(bytes))
            }
            Some(Ok(bytes)) => Err(Failed::Over(Error::new(
                ErrorKind::Io,
                format!("the server sent {} bytes more than it said", bytes.len() as u64 - left),
            ))),
            Some(Err(error)) => {
                let why =
                    format!("the connection broke off, with {left} bytes to come: {}", innermost(&error));
                Err(Failed::Again(Error::new(ErrorKind::Io, why), None))
            }
            None => {
                let why = format!("the answer ended, with {left} bytes to come");
                Err(Failed::Again(Error::new(ErrorKind::Io, why), None))
            }
        }
    }

    /// Asks for what is still to come; gives nothing where the object has no bytes.
    async fn open(&mut self) -> Result<Option<BoxStream<'static, object_store::Result<Bytes>>>, Failed> {
        let Source { client, path, .. } = self.source;
        let range = Some(GetRange::Bounded(self.range.clone()));
        let found = match client.get_opts(path, GetOptions { range, ..GetOptions::default() }).await {
            Ok(found) => found,
            Err(error) => {
                let beyond = Fault::of(&error).is_some_and(|fault| fault.status == Some(416));
                return if beyond { self.beyond().await.map(|()| None) } else { Err(Failed::of(&error)) };
            }
        };
        self.meet(Identity::of(&found.meta))?;
        if found.range.start != self.range.start {
            let message =
                format!("the server sent bytes from {} on, expected {}", found.range.start, self.range.start);
            return Err(Failed::Over(Error::new(ErrorKind::Io, message)));
        }
        Ok(Some(found.into_stream()))
    }

    /// The range begins at or behind the end: an object that has no bytes has no range either.
    async fn beyond(&mut self) -> Result<(), Failed> {
        let meta = self.source.client.head(&self.source.path).await;
        let found = Identity::of(&meta.map_err(|error| Failed::of(&error))?);
        let size = found.size;
        self.meet(found)?;
        if size > self.range.start {
            let message =
                format!("the server says that there are {size} bytes, and that those asked for are not");
            return Err(Failed::Over(Error::new(ErrorKind::Io, message)));
        }
        Ok(())
    }

    /// Compares the object with the one that was known; an object is read as one, or not.
    fn meet(&mut self, found: Identity) -> Result<(), Failed> {
        if i64::try_from(found.size).is_err() {
            let message =
                format!("the server says that there are {} bytes, more than any file has", found.size);
            return Err(Failed::Over(Error::new(ErrorKind::Io, message)));
        }
        match &self.identity {
            Some(known) if *known != found => {
                let (found, known) = (found.shown(), known.shown());
                let message = format!("the object changed while it was read: it was {known}, and is {found}");
                self.changed = true;
                return Err(Failed::Over(Error::new(ErrorKind::Io, message)));
            }
            Some(_) => {}
            None => {
                self.range.end = self.range.end.min(found.size).max(self.range.start);
                self.identity = Some(found);
            }
        }
        Ok(())
    }
}

/// What is directly under a folder: paths, and whether each is a folder, sorted. Each page has attempts of its own.
pub(crate) async fn list(
    store: &dyn PaginatedListStore,
    folder: &Path,
    url: &str,
    settings: &Settings,
) -> Result<Vec<(String, bool)>> {
    let prefix = (!folder.is_root()).then(|| format!("{folder}{DELIMITER}"));
    let (mut entries, mut token) = (BTreeSet::new(), None);
    loop {
        let mut tries = Tries::new(url, settings);
        let page = loop {
            let delimiter = Some(DELIMITER.into());
            let options = PaginatedListOptions {
                delimiter,
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            match store.list_paginated(prefix.as_deref(), options).await {
                Ok(page) => break page,
                Err(error) => tries.again(Failed::of(&error)).await?,
            }
        };
        entries.extend(page.result.common_prefixes.into_iter().map(|path| (path.to_string(), true)));
        // Some programs write an empty object for the folder itself.
        let objects = page.result.objects.into_iter().map(|meta| meta.location).filter(|path| path != folder);
        entries.extend(objects.map(|path| (path.to_string(), false)));
        match page.page_token.filter(|next| !next.is_empty()) {
            Some(next) if token.as_ref() == Some(&next) => {
                let message = "the server gives the same page of the listing again and again";
                return Err(Error::new(ErrorKind::Io, message).context("url", shown(url)));
            }
            Some(next) => token = Some(next),
            None => return Ok(entries.into_iter().collect()),
        }
    }
}
