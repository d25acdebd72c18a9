//! Samples in a folder, for this run and later ones.

use std::{
    collections::VecDeque,
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
};

use forebay_core::{
    Chunk, Context, Error, ErrorKind, Level, Result,
    codec::{Decoder, Encoder},
    maps_cut,
};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    Kept, Parts,
    folder::{self, Found, Index, Piece},
    memory::size,
    piece,
};

/// About how large a piece is, unless that is much of the limit, and how many samples it has at most.
const PIECE: u64 = 4 << 20;
const MOST: usize = 16_384;

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
    lock: File,
    /// Of a run that is still writing.
    claim: Option<File>,
    pieces: VecDeque<Piece>,
    bytes: u64,
    /// What others have in the folder, and how much was written since that was counted.
    others: u64,
    written: u64,
    /// Whether what others have could not be removed the last time.
    in_use: bool,
    /// What is not written yet.
    pending: Chunk,
    pending_bytes: u64,
    /// The number of the first that is not written yet.
    flushed: u64,
    total: Option<u64>,
    /// How many maps of files had been cut short when it was opened.
    cut: u64,
    /// A piece that is being read: the number of its first sample, and all of them.
    read: (u64, Chunk),
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

    /// Those that another run wrote, or room for one's own; nothing while another program writes them.
    fn open(&self, cx: &Context) -> io::Result<Option<Open>> {
        let begun = match self.written()? {
            Some(whole) if whole.first() == 0 => return Ok(Some(whole)),
            begun => begun,
        };
        let Some(claim) = folder::claim(&self.cache)? else { return Ok(begun) };
        // Whoever had it before may have written them all.
        let begun = self.written()?;
        let others = folder::make_room(&self.cache, self.limit);
        if let Some(open) = begun {
            let room = self.limit.saturating_sub(others);
            if open.first() == 0 || room <= open.bytes + open.bytes / 4 + PIECE {
                return Ok(Some(open));
            }
        }
        if Index::look(&self.cache)? == Found::Foreign {
            let line = format!(
                "cache: a file called `index` is in {} that is none; nothing is kept",
                self.cache.display()
            );
            cx.log(Level::Warning, &line);
            return Ok(None);
        }
        let run = folder::name(RandomState::new().build_hasher().finish());
        let lock = folder::lock_new(&self.cache, &run)?;
        folder::tidy(&self.cache);
        let begun = Open::of(Index { run, total: 0, pieces: Vec::new() }, lock);
        Ok(Some(Open { others, claim: Some(claim), total: None, ..begun }))
    }

    /// What the index names, if nobody is removing it.
    fn written(&self) -> io::Result<Option<Open>> {
        let Found::Whole(index) = Index::look(&self.cache)? else { return Ok(None) };
        let Some(lock) = folder::lock_old(&self.cache, &index.run) else { return Ok(None) };
        // Nobody removed it before it was locked.
        let again = Index::look(&self.cache)?;
        Ok((again == Found::Whole(index.clone())).then(|| Open::of(index, lock)))
    }

    /// What was kept is no more in this pass. What is damaged is made anew in a later one.
    fn lose(&mut self, why: &Error, cx: &Context) {
        if let Some(Open { run, claim, lock, .. }) = self.open.take() {
            drop(lock);
            let is_own = claim.is_some();
            let gone = why.kind() == ErrorKind::Corrupt;
            let claim = claim.or_else(|| folder::claim(&self.cache).ok().flatten());
            if claim.is_some() && (is_own || gone) {
                folder::remove_run(&self.cache, &run);
            }
        }
        cx.log(
            Level::Warning,
            &format!("cache: {why}: everything is read anew, in {}", self.cache.display()),
        );
    }
}

impl Open {
    fn of(index: Index, lock: File) -> Self {
        let bytes = index.bytes();
        let Index { run, total, pieces } = index;
        let flushed = pieces.last().map_or(total, |piece| piece.first + piece.count);
        Self {
            run,
            lock,
            claim: None,
            bytes,
            pieces: pieces.into(),
            others: 0,
            written: 0,
            in_use: false,
            pending: Chunk::new(),
            pending_bytes: 0,
            flushed,
            total: Some(total),
            cut: maps_cut(),
            read: (0, Chunk::new()),
            coder: Coder::default(),
        }
    }

    fn first(&self) -> u64 {
        self.pieces.front().map_or(self.flushed, |piece| piece.first)
    }

    fn end(&self) -> u64 {
        self.flushed + self.pending.len() as u64
    }

    /// The sample with this number, which is here and was [reached](Open::reach).
    fn get(&self, at: u64) -> Option<Parts<'_>> {
        let (first, kept) = match at >= self.flushed {
            true => (self.flushed, &self.pending),
            false => (self.read.0, &self.read.1),
        };
        kept.get(usize::try_from(at.checked_sub(first)?).ok()?)
    }

    /// Has the sample with this number in memory.
    fn reach(&mut self, cache: &Path, at: u64, cx: &Context) -> Result<()> {
        let (first, samples) = &self.read;
        if at >= self.flushed || (*first..first + samples.len() as u64).contains(&at) {
            return Ok(());
        }
        let place = self.pieces.partition_point(|piece| piece.first <= at);
        let piece = place.checked_sub(1).and_then(|place| self.pieces.get(place));
        let piece = piece.ok_or_else(|| Error::bug("a sample of no piece"))?;
        let path = folder::piece(cache, &self.run, piece.first);
        let samples = match path.exists() {
            true => piece::read(&path, (piece.first, piece.bytes), &mut self.coder.1, cx),
            false => Err(Error::corrupt("a piece is not there")),
        };
        let samples = samples.and_then(|samples| match at - piece.first < samples.len() as u64 {
            true => Ok(samples),
            false => Err(Error::corrupt("it has fewer samples than the index says")),
        });
        self.read = (piece.first, samples.map_err(|error| error.context("file", path.display()))?);
        Ok(())
    }

    /// Writes what is pending as a piece, and forgets the first ones where they become too many.
    fn flush(&mut self, cache: &Path, limit: u64) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (first, count) = (self.flushed, self.pending.len() as u64);
        let path = folder::piece(cache, &self.run, first);
        let bytes = piece::write(&path, first, &self.pending, &mut self.coder.0)?;
        self.pending.clear();
        (self.flushed, self.pending_bytes) = (first + count, 0);
        self.pieces.push_back(Piece { first, count, bytes });
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
    fn begin(&mut self, cx: &Context) -> Result<()> {
        if self.open.is_none() {
            let folder = |error: io::Error| {
                Error::from(error).context("folder", self.cache.display()).context("option", "folder")
            };
            self.open = self.open(cx).map_err(folder)?;
        }
        Ok(())
    }

    fn has(&self, at: u64) -> bool {
        self.open.as_ref().is_some_and(|open| (open.first()..open.end()).contains(&at))
    }

    fn end(&self) -> u64 {
        self.open.as_ref().map_or(u64::MAX, Open::end)
    }

    fn get(&mut self, at: u64, cx: &Context) -> Option<Parts<'_>> {
        if let Err(error) = self.open.as_mut()?.reach(&self.cache, at, cx) {
            self.lose(&error, cx);
        }
        self.open.as_ref()?.get(at)
    }

    fn push(&mut self, (uid, key, schema, values): Parts, cx: &Context) {
        let Some(open) = &mut self.open else { return };
        open.pending_bytes += size(values);
        open.pending.push(uid, key.clone(), schema, values.iter().cloned());
        if open.pending_bytes < PIECE.min(self.limit / 16) && open.pending.len() < MOST {
            return;
        }
        // No room on the disk, say, or a value that only its plugin reads.
        if let Err(error) = open.flush(&self.cache, self.limit) {
            self.lose(&error, cx);
        }
    }

    fn close(&mut self, cx: &Context) {
        let Some(open) = self.open.as_mut().filter(|open| open.total.is_none()) else { return };
        let whole = match maps_cut() == open.cut {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Io, "a file was cut short while it was read")),
        };
        let mut written = whole.and_then(|()| open.flush(&self.cache, self.limit));
        open.total = Some(open.end());
        if written.is_ok() {
            let pieces = open.pieces.iter().copied().collect();
            let index = Index { run: open.run.clone(), total: open.end(), pieces };
            written = index.publish(&self.cache).map_err(Error::from);
        }
        match written {
            Ok(()) => {
                // What it takes the place of.
                folder::tidy(&self.cache);
                open.claim = None;
            }
            Err(error) => self.lose(&error, cx),
        }
    }

    fn total(&self) -> Option<u64> {
        self.open.as_ref().and_then(|open| open.total)
    }

    fn missing(&self) -> u64 {
        self.open.as_ref().map_or(0, Open::first)
    }
}
