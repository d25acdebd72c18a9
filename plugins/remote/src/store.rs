//! The store: who asks is answered from blocks that are kept, and what is missing is fetched by a runtime of its own.

use std::{
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use forebay_core::{Buffer, Error, ErrorKind, NoOptions, Result, Store, StoreInfo, shown};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{
    disk::{self, Disk},
    fetch::{self, Identity, Incoming, Tries},
    place::Place,
    settings::Settings,
    sources::Sources,
    table::{Anew, Ask, BLOCK, Found, Known, Opened, Table},
};

/// How long the runtime may take to end its requests when the store is dropped.
const FAREWELL: Duration = Duration::from_secs(1);
/// Memory for a long read grows with what comes, from so many bytes on.
const FIRST: u64 = 8 << 20;

/// Serves `http`, `https`, `s3`, `s3a`, `gs`, `az`, `azure`, `adl`, `abfs` and `abfss`.
///
/// Objects are fetched in blocks of 256 KiB, up to eight with one request, and kept within a bound of memory. Whoever reads forwards
/// has what follows asked for ahead. Requests that break off go on at the byte where they did. An object that changes while
/// it is read is an error.
pub struct RemoteStore {
    shared: Arc<Shared>,
    /// Made when it is first needed.
    runtime: Mutex<Option<Runtime>>,
}

struct Shared {
    settings: Settings,
    sources: Sources,
    table: Mutex<Table>,
    /// Told whenever something in the table came or failed.
    news: Condvar,
    disk: Option<Arc<Disk>>,
}

impl Store for RemoteStore {
    const INFO: StoreInfo = StoreInfo {
        name: "remote",
        summary: "Files by http, in S3, Google Cloud Storage and Azure",
        schemes: &["http", "https", "s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"],
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Self::with(Settings::from_env()?)
    }

    fn list(&self, path: &str) -> Result<Vec<(String, bool)>> {
        let place = Place::of(path)?;
        if place.is_web() {
            let why = "a server of http lists no files; name each one, with braces: {000..099}";
            return Err(Error::unsupported(why).context("url", shown(path)));
        }
        let source = self.shared.sources.of(path)?;
        let lists = source.lists.ok_or_else(|| Error::bug("a bucket that lists nothing"))?;
        let (tell, told) = mpsc::channel();
        let (shared, url) = (self.shared.clone(), path.to_owned());
        // Not waited for by the runtime, as the caller may be on a thread of another.
        self.runtime()?.spawn(async move {
            let entries = fetch::list(&*lists, &source.path, &url, &shared.settings).await;
            // Nobody waits any more where the host gave up.
            drop(tell.send(entries));
        });
        let entries = told.recv().unwrap_or_else(|_| Err(panicked(path)))?;
        let whole = |(name, folder): (String, bool)| (format!("{}/{name}", place.root()), folder);
        Ok(entries.into_iter().map(whole).collect())
    }

    fn size(&self, path: &str) -> Result<u64> {
        Ok(self.open(&path.into(), Anew::Changed)?.identity.size)
    }

    /// A read of no bytes asks for those before `offset`, and does not wait for them: [`Prefetch`](crate::Prefetch) does so.
    fn read_range(&self, path: &str, offset: u64, len: u64) -> Result<Buffer> {
        let url = Arc::from(path);
        if len == 0 {
            self.shared.lock().expect(&url, offset);
            self.shared.go_ahead(&self.runtime()?);
            return Ok(Buffer::EMPTY);
        }
        let known = self.open(&url, Anew::Failed)?;
        let (size, end) = (known.identity.size, offset.saturating_add(len));
        self.read(&known, offset.min(size)..end.min(size))
    }
}

impl RemoteStore {
    /// A store with these settings instead of the environment's.
    ///
    /// ```
    /// # use std::io::{BufRead, BufReader, Write};
    /// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let host = server.local_addr()?;
    /// # std::thread::spawn(move || {
    /// #     let file = std::fs::read("../../plugins/json/seeds/birds.csv").unwrap();
    /// #     for stream in server.incoming().flatten() {
    /// #         let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    /// #         let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    /// #         let range = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    /// #         let whole = (200, 0, file.len(), String::new());
    /// #         let (status, from, to, said) = range.map_or(whole, |range| {
    /// #             let (from, to) = range.split_once('-').unwrap();
    /// #             let (from, to) = (from.parse().unwrap(), (to.parse::<usize>().unwrap() + 1).min(file.len()));
    /// #             (206, from, to, format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, file.len()))
    /// #         });
    /// #         let body = if head[0].starts_with("HEAD") { &[][..] } else { &file[from..to] };
    /// #         let said = format!("HTTP/1.1 {status} OK\r\nContent-Length: {}\r\n{said}Connection: close\r\n\r\n", to - from);
    /// #         let _ = (&stream).write_all(&[said.as_bytes(), body].concat());
    /// #     }
    /// # });
    /// use forebay_core::Store;
    /// use forebay_remote::{RemoteStore, Settings};
    ///
    /// let store = RemoteStore::with(Settings { attempts: 3, ..Settings::default() })?;
    /// let url = format!("http://{host}/birds.csv");
    /// assert_eq!((store.size(&url)?, &*store.read_range(&url, 5, 4)?), (111, &b"legs"[..]));
    /// # Ok::<(), forebay_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io`, when the folder of the cache cannot be made.
    pub fn with(settings: Settings) -> Result<Self> {
        let disk =
            settings.cache.as_ref().map(|folder| Disk::open(folder, settings.cache_bytes)).transpose()?;
        let shared = Shared {
            sources: Sources::new(&settings),
            table: Mutex::new(Table::new(settings.memory, settings.ahead)),
            news: Condvar::new(),
            disk: disk.map(Arc::new),
            settings,
        };
        Ok(Self { shared: Arc::new(shared), runtime: Mutex::new(None) })
    }

    fn runtime(&self) -> Result<Handle> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let made = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(4)
            .thread_name("forebay-remote")
            .enable_all()
            .build()?;
        Ok(runtime.insert(made).handle().clone())
    }

    /// Who the object is; the first to ask has its first block fetched.
    fn open(&self, url: &Arc<str>, anew: Anew) -> Result<Known> {
        let mut table = self.shared.lock();
        let mut anew = anew;
        loop {
            match table.open(url, anew)? {
                Opened::Known(known) => return Ok(known),
                Opened::Opening => table = self.shared.wait(table),
                Opened::Ask => {
                    drop(table);
                    // Whatever becomes of it, the table is told.
                    let opening = Opening { shared: self.shared.clone(), url: url.clone(), done: false };
                    let runtime = self.runtime()?;
                    runtime.spawn(opening.run(runtime.clone()));
                    table = self.shared.lock();
                }
            }
            // Its own attempts are over: whoever waited is told.
            anew = Anew::Nothing;
        }
    }

    fn read(&self, known: &Known, bytes: Range<u64>) -> Result<Buffer> {
        if bytes.is_empty() {
            return Ok(Buffer::EMPTY);
        }
        let ahead = self.shared.lock().reads(known, &bytes);
        let mut all = Vec::new();
        for index in bytes.start / BLOCK..bytes.end.div_ceil(BLOCK) {
            let start = index * BLOCK;
            let part = bytes.start.max(start)..bytes.end.min(start + BLOCK);
            let block = self.block(known, index, part.start..bytes.end, ahead)?;
            // Both lie within a block.
            let part = block.get((part.start - start) as usize..(part.end - start) as usize);
            let part = part.ok_or_else(|| Error::bug("a block is shorter than it should be"))?;
            if part.len() as u64 == bytes.end - bytes.start {
                // A little of a block would keep all of it, beyond what is counted.
                return Ok(if part.len() * 4 < block.len() { part.to_vec().into() } else { part });
            }
            if all.capacity() == 0 {
                all.reserve((bytes.end - bytes.start).min(FIRST) as usize);
            }
            all.extend_from_slice(&part);
        }
        Ok(all.into())
    }

    /// One block, for a read of `bytes` that begins in it; what is missing of them and ahead of them is asked for.
    fn block(&self, known: &Known, index: u64, bytes: Range<u64>, ahead: u64) -> Result<Buffer> {
        let runtime = self.runtime()?;
        let shared = &self.shared;
        let mut waits = false;
        let mut table = shared.lock();
        loop {
            let runs = table.wanted(known, &bytes, ahead);
            shared.fetch(&runtime, known, runs);
            let found = table.find(known, index, &mut waits, BLOCK.min(bytes.end - bytes.start));
            // The last to be told of a failure makes way for those who came too late to be, and wait to ask again.
            match found.inspect_err(|_| shared.news.notify_all())? {
                Found::Here(block) => {
                    drop(table);
                    shared.go_ahead(&runtime);
                    return Ok(block);
                }
                Found::Coming => table = shared.wait(table),
                Found::Missing => {}
            }
        }
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtime.take() {
            // On a thread of somebody's runtime nothing may wait.
            match Handle::try_current() {
                Ok(_) => runtime.shutdown_background(),
                Err(_) => runtime.shutdown_timeout(FAREWELL),
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, table: MutexGuard<'a, Table>) -> MutexGuard<'a, Table> {
        self.news.wait(table).unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for what is expected to be read, as far as there is room.
    fn go_ahead(self: &Arc<Self>, runtime: &Handle) {
        let asks = self.lock().asks();
        for ask in asks {
            match ask {
                Ask::Open(url) => {
                    let opening = Opening { shared: self.clone(), url, done: false };
                    drop(runtime.spawn(opening.run(runtime.clone())));
                }
                Ask::Blocks(known, runs) => self.fetch(runtime, &known, runs),
            }
        }
    }

    /// Begins to fetch runs of blocks, each with a request of its own.
    fn fetch(self: &Arc<Self>, runtime: &Handle, known: &Known, runs: Vec<Range<u64>>) {
        for run in runs {
            let flight = Flight { shared: self.clone(), known: known.clone(), left: run };
            runtime.spawn(flight.run());
        }
    }

    /// The first block of an object, and who it is.
    async fn first(&self, url: &Arc<str>) -> Result<(Identity, Buffer)> {
        let source = self.sources.of(url)?;
        let mut incoming = Incoming::new(&source, Tries::new(url, &self.settings), 0..BLOCK, None);
        let mut block = Vec::new();
        while let Some(bytes) = incoming.next().await? {
            block.extend_from_slice(&bytes);
        }
        let identity = incoming.identity().cloned();
        Ok((identity.ok_or_else(|| Error::bug("the object has no end"))?, block.into()))
    }
}

/// An object that is asked for; whatever becomes of it, those who wait are told.
struct Opening {
    shared: Arc<Shared>,
    url: Arc<str>,
    done: bool,
}

impl Opening {
    async fn run(mut self, runtime: Handle) {
        let found = self.shared.first(&self.url).await;
        self.done = true;
        self.shared.lock().opened(&self.url, found);
        self.shared.news.notify_all();
        self.shared.go_ahead(&runtime);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.done {
            self.shared.lock().opened(&self.url, Err(given_up(&self.url)));
            self.shared.news.notify_all();
        }
    }
}

/// A run of blocks on its way; whatever becomes of it, those who wait are told.
struct Flight {
    shared: Arc<Shared>,
    known: Known,
    /// The blocks that have yet to come.
    left: Range<u64>,
}

impl Flight {
    async fn run(mut self) {
        let found = self.fetch().await;
        if let Err(error) = found {
            self.shared.lock().failed(&self.known, self.left.clone(), &error);
            self.left = 0..0;
            self.shared.news.notify_all();
        }
    }

    async fn fetch(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        let kept = self.kept().await;
        let source = shared.sources.of(&self.known.url)?;
        let mut kept = kept.into_iter();
        while !self.left.is_empty() {
            if let Some(Some(block)) = kept.next() {
                self.came(block);
                continue;
            }
            // As far as nothing is kept.
            let missing = 1 + kept.as_slice().iter().take_while(|block| block.is_none()).count() as u64;
            for _ in 1..missing {
                kept.next();
            }
            self.fetch_run(&source, missing.min(self.left.end - self.left.start)).await?;
        }
        Ok(())
    }

    /// The blocks of this run that are on disk.
    async fn kept(&self) -> Vec<Option<Buffer>> {
        let none = vec![None; self.left.clone().count()];
        let Some(disk) = self.shared.disk.clone() else { return none };
        let keys: Vec<_> = self.left.clone().map(|index| (self.key(index), self.len(index))).collect();
        let read = move || keys.into_iter().map(|(key, len)| disk.get(key?, len)).collect();
        tokio::task::spawn_blocking(read).await.unwrap_or(none)
    }

    /// Fetches the next blocks.
    async fn fetch_run(&mut self, source: &crate::sources::Source, blocks: u64) -> Result<()> {
        let shared = self.shared.clone();
        let (url, identity) = (self.known.url.clone(), self.known.identity.clone());
        let start = self.left.start * BLOCK;
        let end = (start + blocks * BLOCK).min(identity.size);
        let mut incoming =
            Incoming::new(source, Tries::new(&url, &shared.settings), start..end, Some(identity));
        let mut block = Vec::new();
        loop {
            let next = incoming.next().await.inspect_err(|error| {
                if incoming.changed() {
                    shared.lock().changed(&self.known, error);
                }
            })?;
            let Some(bytes) = next else { break };
            let mut bytes = &bytes[..];
            while !bytes.is_empty() {
                let len = self.len(self.left.start);
                block.reserve_exact(len - block.len());
                let (now, later) = bytes.split_at(bytes.len().min(len - block.len()));
                block.extend_from_slice(now);
                bytes = later;
                if block.len() == len {
                    let block = Buffer::from(std::mem::take(&mut block));
                    self.keep(&block).await;
                    self.came(block);
                }
            }
        }
        Ok(())
    }

    async fn keep(&self, block: &Buffer) {
        if let (Some(disk), Some(key)) = (self.shared.disk.clone(), self.key(self.left.start)) {
            let block = block.clone();
            // One that cannot be kept is here all the same.
            let _ = tokio::task::spawn_blocking(move || disk.put(key, &block)).await;
        }
    }

    fn key(&self, index: u64) -> Option<u128> {
        disk::key(&self.known.url, &self.known.identity, index)
    }

    /// How many bytes a block has.
    fn len(&self, index: u64) -> usize {
        self.known.identity.size.saturating_sub(index * BLOCK).min(BLOCK) as usize
    }

    fn came(&mut self, block: Buffer) {
        self.shared.lock().arrived(&self.known, self.left.start, block);
        self.left.start += 1;
        self.shared.news.notify_all();
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.left.is_empty() {
            self.shared.lock().failed(&self.known, self.left.clone(), &given_up(&self.known.url));
            self.shared.news.notify_all();
        }
    }
}

/// Why a request ends without an answer.
fn given_up(url: &str) -> Error {
    if std::thread::panicking() {
        return panicked(url);
    }
    Error::new(ErrorKind::Cancelled, "the request was given up, since its store is dropped")
}

fn panicked(url: &str) -> Error {
    Error::bug("the request panicked").context("url", shown(url))
}
