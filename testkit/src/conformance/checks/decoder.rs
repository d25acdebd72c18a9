//! Checks of decoders.

use std::thread;

use forebay_core::{AnyDecoder, Buffer};
use forebay_loader::{ErrorKind, Result};

use super::{Check, Kind, Miss, expect};
use crate::{
    Damage,
    conformance::{
        bench::{decode, memory, probe, refuses},
        heads::HEADS,
    },
};

/// So many places of a file are damaged.
const PLACES: usize = 2048;
/// From one damaged form to the next: a prime, so that all have their turn.
const STEP: usize = 7919;
/// Threads that decode at a time.
const THREADS_AT_ONCE: usize = 4;
/// So many damaged forms of a file are decoded on all threads.
const SHARED: usize = 64;
/// How often all files are decoded before memory is looked at once more.
const TIMES: usize = 100;
/// So many bytes more are no leak, but the heap's own room.
const SLACK: u64 = 1 << 20;

pub(super) const PROBE: Check = Check {
    name: "probe",
    kind: Kind::Decoder,
    promise: "it recognises its own files, and is no surer of other files, whatever their names are",
    run: |bench| {
        let (decoder, files, magic) = (bench.decoder()?, bench.files()?, bench.magic()?);
        let mut least = u8::MAX;
        for (at, (extension, bytes)) in files.iter().enumerate() {
            bench.doing(&bench.file(at));
            least = least.min(probe(&decoder, extension, bytes)?);
        }
        expect(least > 0, || "does not recognise one of its own files".to_owned())?;
        let Some((extension, first)) = files.first() else { return Err(Miss::Failed("no files".to_owned())) };
        let mut foreign = 0;
        for (what, head) in HEADS {
            // Its own formats may be among them.
            let own = !head.is_empty()
                && files.iter().any(|(_, bytes)| bytes.iter().take(4).eq(head.iter().take(4)));
            if own || magic.iter().any(|magic| magic.begins(head)) {
                continue;
            }
            bench.doing(&format!("the first bytes of {what}"));
            let sure = probe(&decoder, extension, head)?;
            expect(sure <= least, || format!("is surer of {what} ({sure}) than of its own files ({least})"))?;
            foreign += 1;
        }
        probe(&decoder, "", first)?;
        Ok(format!("{least} or more of 255 for its own; {foreign} others"))
    },
};

pub(super) const DECODE: Check = Check {
    name: "decode",
    kind: Kind::Decoder,
    promise: "a file gives the same value each time, whichever instance decodes it",
    run: |bench| {
        let (one, other, files) = (bench.decoder()?, bench.decoder()?, bench.files()?);
        let (mut refused, mut read) = (None, 0);
        for (at, (extension, bytes)) in files.iter().enumerate() {
            bench.doing(&bench.file(at));
            let first = match decode(&one, extension, bytes) {
                // Some formats are known, and told why they are not read.
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    refused = Some(error);
                    continue;
                }
                first => first.map_err(|error| error.context("file", bench.file(at)))?,
            };
            for decoder in [&one, &other] {
                let again = decode(decoder, extension, bytes)?;
                expect(again == first, || format!("{} gives another value the second time", bench.file(at)))?;
            }
            read += 1;
        }
        match refused.filter(|_| read == 0) {
            Some(error) => Err(Miss::Failed(format!("reads none of its files: {}", error.message()))),
            None => Ok(format!("{read} files")),
        }
    },
};

pub(super) const DAMAGE: Check = Check {
    name: "damage",
    kind: Kind::Decoder,
    promise: "it refuses or reads a file that is cut off or changed anywhere; it never panics, hangs or takes all memory",
    run: |bench| {
        let (decoder, files) = (bench.decoder()?, bench.files()?);
        let (mut forms, mut refused) = (0, 0);
        for (at, (extension, bytes)) in files.iter().enumerate() {
            let damage = Damage::new(bytes.to_vec(), PLACES);
            let name = bench.file(at);
            // Here and there, so that of a file that takes long some of each part is damaged.
            let count = damage.forms();
            let step = if count.is_multiple_of(STEP) { 1 } else { STEP };
            for form in
                (0..count).take_while(|at| *at < SHARED || !bench.is_late()).map(|at| at * step % count)
            {
                bench.doing(&format!("{name}, {}", damage.describe(form)));
                let found = decode(&decoder, extension, &Buffer::from(damage.form(form)));
                if let Err(error) = &found {
                    expect(refuses(error), || {
                        format!("{name}, {}: {error}: {}", damage.describe(form), advice(error.kind()))
                    })?;
                    expect(!error.message().is_empty(), || format!("{name}: an error without a message"))?;
                }
                refused += usize::from(found.is_err());
                forms += 1;
            }
        }
        expect(forms > 0, || "its files are all empty".to_owned())?;
        let part = if bench.is_late() { ", as many as there was time for" } else { "" };
        Ok(format!("{forms} damaged files{part}, {refused} refused"))
    },
};

fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Panic => "check every number from the file before you use it",
        _ => "refuse bytes as corrupt, unsupported or beyond a limit",
    }
}

pub(super) const THREADS: Check = Check {
    name: "threads",
    kind: Kind::Decoder,
    promise: "one instance decodes the same on many threads at once as on one",
    run: |bench| {
        let (decoder, files) = (bench.decoder()?, bench.files()?);
        let work = |decoder: &AnyDecoder| -> Vec<String> {
            let forms = files.iter().flat_map(|(extension, bytes)| {
                let damage = Damage::new(bytes.to_vec(), SHARED / 4);
                (0..=damage.forms()).map(move |form| (extension, Buffer::from(damage.form(form))))
            });
            forms.map(|(extension, bytes)| told(decode(decoder, extension, &bytes))).collect()
        };
        let alone = work(&decoder);
        let together: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS_AT_ONCE).map(|_| scope.spawn(|| work(&decoder))).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        for found in together {
            let found = found.map_err(|_| Miss::Failed("a thread panicked".to_owned()))?;
            let other = found.iter().zip(&alone).find(|(one, other)| one != other);
            expect(other.is_none(), || format!("on several threads: {other:?}"))?;
        }
        Ok(format!("{THREADS_AT_ONCE} threads, {} values each", alone.len()))
    },
};

fn told(found: Result<String>) -> String {
    found.unwrap_or_else(|error| error.to_string())
}

pub(super) const MEMORY: Check = Check {
    name: "memory",
    kind: Kind::Decoder,
    promise: "it keeps no memory of values that it decoded",
    run: |bench| {
        let (decoder, files) = (bench.decoder()?, bench.files()?);
        grows(|| {
            for _ in (0..TIMES).take_while(|at| *at == 0 || !bench.is_late()) {
                for (at, (extension, bytes)) in files.iter().enumerate() {
                    bench.doing(&bench.file(at));
                    let found = decode(&decoder, extension, bytes);
                    found.map(drop).or_else(|error| match error.kind() {
                        ErrorKind::Unsupported => Ok(()),
                        _ => Err(error),
                    })?;
                }
            }
            Ok(())
        })
    },
};

/// Whether the memory of this process grows each time that something is done.
pub(super) fn grows(mut once: impl FnMut() -> Result<()>) -> super::Found {
    let mut sizes = Vec::new();
    for _ in 0..4 {
        once()?;
        sizes.push(memory()?);
    }
    // What is kept for good, and in the first rounds, is no leak.
    let more: Vec<_> = sizes.windows(2).skip(1).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    expect(more.iter().any(|more| *more < SLACK), || {
        format!("grew by {more:?} bytes in rounds of the same work: something is never freed")
    })?;
    Ok(format!("{} MiB after four rounds", sizes.last().unwrap_or(&0) >> 20))
}
