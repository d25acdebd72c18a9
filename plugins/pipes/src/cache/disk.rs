//! Samples in a folder, for this run and later ones.

use std::{
    collections::VecDeque,
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
};

use forebay_core::{
    Chunk, Context, Error, ErrorKind, Level, Result, Sample,
    codec::{Decoder, Encoder},
};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    Kept,
    folder::{self, Index, Piece},
    memory::size,
    piece,
};

/// About how large a piece is, unless that is much of the limit, and how many samples it has at most.
const PIECE: u64 = 4 << 20;
const MOST: usize = 4096;

/// The last samples of a stream whose pieces, with all other caches in the folder, are no larger than a limit.
#[derive(Debug)]
pub(super) struct Disk {
    /// Where this one's files are.
    cache: PathBuf,
    limit: u64,
    open: Option<Open>,
}

/// The files of one run: that of this one, or of one before it that wrote everything.
#[derive(Debug)]
struct Open {
    run: String,
    /// Held as long as this is.
    _lock: File,
    pieces: VecDeque<Piece>,
    bytes: u64,
    /// What others have in the folder, and how much was written since that was counted.
    others: u64,
    written: u64,
    /// Whether what others have could not be removed the last time.
    in_use: bool,
    /// What is not written yet.
    pending: Vec<Sample>,
    pending_bytes: u64,
    /// The number of the first that is not written yet.
    flushed: u64,
    total: Option<u64>,
    /// A piece that is being read: the number of its first sample, and all of them.
    read: (u64, Vec<Sample>),
    coder: Coder,
}

#[derive(Default)]
struct Coder(Encoder, Decoder);

impl std::fmt::Debug for Coder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Coder")
    }
}

impl Disk {
    pub(super) fn new(folder: &str, limit: u64, identity: &str) -> Self {
        let key = format!("{:032x}", xxh3_128(identity.as_bytes()));
        Self { cache: Path::new(folder).join(folder::FOLDER).join(key), limit, open: None }
    }

    /// Those that another run wrote, or room for one's own.
    fn open(&self) -> Result<Open> {
        if let Some(index) = Index::read(&self.cache)
            && let Some(lock) = folder::lock_old(&self.cache, &index.run)
            // Nobody removed it before it was locked.
            && Index::read(&self.cache).is_some_and(|again| again == index)
        {
            return Ok(Open::of(index, lock));
        }
        let run = folder::name(RandomState::new().build_hasher().finish());
        let lock = folder::lock_new(&self.cache, &run)?;
        folder::tidy(&self.cache);
        let others = folder::make_room(&self.cache, self.limit);
        Ok(Open { others, ..Open::of(Index { run, total: 0, pieces: Vec::new() }, lock) }.begun())
    }

    /// What was kept is no more: it is made anew, in a later pass.
    fn lose(&mut self, why: &Error, cx: &Context) {
        if let Some(open) = self.open.take() {
            let run = open.run.clone();
            drop(open);
            folder::remove_run(&self.cache, &run);
        }
        cx.log(
            Level::Warning,
            &format!("cache: {why}: everything is read anew, in {}", self.cache.display()),
        );
    }
}

impl Open {
    fn of(index: Index, lock: File) -> Self {
        let Index { run, total, pieces } = index;
        let flushed = pieces.last().map_or(total, |piece| piece.first + piece.count);
        Self {
            run,
            _lock: lock,
            bytes: pieces.iter().map(|piece| piece.bytes).sum(),
            pieces: pieces.into(),
            others: 0,
            written: 0,
            in_use: false,
            pending: Vec::new(),
            pending_bytes: 0,
            flushed,
            total: Some(total),
            read: (0, Vec::new()),
            coder: Coder::default(),
        }
    }

    /// The same, of which more is to come.
    fn begun(self) -> Self {
        Self { total: None, ..self }
    }

    fn first(&self) -> u64 {
        self.pieces.front().map_or(self.flushed, |piece| piece.first)
    }

    fn end(&self) -> u64 {
        self.flushed + self.pending.len() as u64
    }

    /// The sample with this number, which is here.
    fn get(&mut self, cache: &Path, at: u64, cx: &Context) -> Result<&Sample> {
        let gone = || Error::bug("a sample that is not kept");
        if let Some(pending) = at.checked_sub(self.flushed) {
            return usize::try_from(pending).ok().and_then(|at| self.pending.get(at)).ok_or_else(gone);
        }
        let (first, samples) = &self.read;
        if !(*first..first + samples.len() as u64).contains(&at) {
            let place = self.pieces.partition_point(|piece| piece.first <= at);
            let piece = place.checked_sub(1).and_then(|place| self.pieces.get(place)).ok_or_else(gone)?;
            let path = folder::piece(cache, &self.run, piece.first);
            let samples = piece::read(&path, (piece.first, piece.bytes), &mut self.coder.1, cx);
            self.read = (piece.first, samples.map_err(|error| error.context("file", path.display()))?);
        }
        let (first, samples) = &self.read;
        at.checked_sub(*first).and_then(|at| samples.get(usize::try_from(at).ok()?)).ok_or_else(gone)
    }

    /// Writes what is pending as a piece, and forgets the first ones where they become too many.
    fn flush(&mut self, cache: &Path, limit: u64) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut chunk = Chunk::new();
        let first = self.flushed;
        self.flushed += self.pending.len() as u64;
        self.pending.drain(..).for_each(|mut sample| chunk.push_sample(&mut sample));
        self.pending_bytes = 0;
        let path = folder::piece(cache, &self.run, first);
        let bytes = piece::write(&path, first, &mut chunk, &mut self.coder.0)?;
        self.pieces.push_back(Piece { first, count: chunk.len() as u64, bytes });
        (self.bytes, self.written) = (self.bytes + bytes, self.written + bytes);
        let over = |open: &Self| open.bytes.saturating_add(open.others) > limit;
        if self.written > limit / 16 || (over(self) && !self.in_use) {
            self.others = folder::make_room(cache, limit.saturating_sub(self.bytes + limit / 16));
            (self.written, self.in_use) = (0, over(self));
        }
        while self.bytes.saturating_add(self.others) > limit
            && let Some(old) = self.pieces.pop_front()
        {
            self.bytes -= old.bytes;
            folder::remove(&folder::piece(cache, &self.run, old.first), piece::MAGIC);
        }
        Ok(())
    }
}

impl Kept for Disk {
    fn begin(&mut self, _: &Context) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(self.open()?);
        }
        Ok(())
    }

    fn has(&self, at: u64) -> bool {
        self.open.as_ref().is_some_and(|open| (open.first()..open.end()).contains(&at))
    }

    fn end(&self) -> u64 {
        self.open.as_ref().map_or(u64::MAX, Open::end)
    }

    fn get(&mut self, at: u64, sample: &mut Sample, cx: &Context) -> bool {
        let Some(open) = &mut self.open else { return false };
        match open.get(&self.cache, at, cx) {
            Ok(kept) => {
                sample.clone_from(kept);
                true
            }
            Err(error) => {
                self.lose(&error, cx);
                false
            }
        }
    }

    fn push(&mut self, sample: &Sample, cx: &Context) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.pending_bytes += size(sample);
        open.pending.push(sample.clone());
        if open.pending_bytes < PIECE.min(self.limit / 16) && open.pending.len() < MOST {
            return Ok(());
        }
        match open.flush(&self.cache, self.limit) {
            // No room on the disk, say.
            Err(error) if error.kind() == ErrorKind::Io => {
                self.lose(&error, cx);
                Ok(())
            }
            flushed => flushed,
        }
    }

    fn close(&mut self, cx: &Context) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut written = open.flush(&self.cache, self.limit);
        open.total = Some(open.end());
        if written.is_ok() {
            let pieces = open.pieces.iter().copied().collect();
            let index = Index { run: open.run.clone(), total: open.end(), pieces };
            match index.publish(&self.cache) {
                // Another run was faster: its pieces are as good, and one of both is enough.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let run = open.run.clone();
                    self.open = None;
                    folder::remove_run(&self.cache, &run);
                    return Ok(());
                }
                published => written = published.map_err(Error::from),
            }
        }
        match written {
            Err(error) if error.kind() == ErrorKind::Io => {
                self.lose(&error, cx);
                Ok(())
            }
            written => written,
        }
    }

    fn total(&self) -> Option<u64> {
        self.open.as_ref().and_then(|open| open.total)
    }

    fn missing(&self) -> u64 {
        self.open.as_ref().map_or(0, Open::first)
    }
}
