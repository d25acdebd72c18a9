//! Photos to training batches on two threads and in two processes, beside a bare two-thread loop around the same calls.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use forebay_image::{
    CropRange, Filter, IMAGENET_MEAN, IMAGENET_STD, Jpeg, Pixels, flip, levels, normalize, resize,
};
use forebay_loader::{Executor, Loader, Result};

use crate::measure::{Row, Spent, Unit, cpu_of_all, spend, verdict};

const ROUNDS: u64 = 5;
const SIDE: usize = 224;
const BATCH: usize = 64;
const THREADS: usize = 2;

pub(crate) fn run(folder: &Path) -> Result<Vec<String>> {
    let registry = crate::registry()?;
    let photos = photos(folder)?;
    let line = format!(
        "files '{}/*.tar' | untar | select [jpg, cls] | random_resized_crop {SIDE} | decode | flip | normalize | batch {BATCH}",
        folder.display()
    );
    let samples = photos.len() as u64;
    let row = |name: &str| Row { name: name.to_owned(), samples, rounds: Vec::new(), unit: Unit::Micros };
    let mut floor_row = row("floor: bare loop, two threads");
    let mut memory: Vec<_> = (0..THREADS).map(|_| Memory::new()).collect();
    let mut ours = Vec::new();
    for executor in [Executor::Threads(THREADS), Executor::Processes(THREADS)] {
        ours.push((crate::loader(&line, executor, &registry)?, row(&executor.to_string())));
    }
    let mut lines = vec![format!("{samples} photos an epoch")];
    for round in 0..=ROUNDS {
        let spent = spend(|| floor(&photos, &mut memory))?.0;
        floor_row.rounds.push(spent);
        for (loader, row) in &mut ours {
            row.rounds.push(epoch(loader, round, photos.len())?);
        }
        if round == 0 {
            // It starts threads and processes, fills the page cache, and touches memory that later ones use again.
            floor_row.rounds.clear();
            for row in ours.iter_mut().map(|(_, row)| row) {
                let first = row.wall();
                row.rounds.clear();
                lines.push(format!("{}, first epoch: {first:.1} us a photo", row.name));
            }
        }
    }
    lines.push(floor_row.to_string());
    lines.extend(ours.iter().map(|(_, row)| row.to_string()));
    for (loader, row) in &ours {
        let rate = format!("{:.1} %; {}", 100.0 * floor_row.wall() / row.wall(), loader.stats().limiting());
        lines.push(verdict(&format!("{} beside the floor", row.name), ">= 90 %", &rate));
    }
    let [(_, threads), (_, processes)] = &ours[..] else { return Ok(lines) };
    let got = format!("{:.1} %", 100.0 * threads.wall() / processes.wall());
    lines.push(verdict("processes:2 beside threads:2", ">= 90 %", &got));
    ours.into_iter().try_for_each(|(loader, _)| loader.finish())?;
    Ok(lines)
}

/// Runs an epoch to its end.
fn epoch(loader: &mut Loader, epoch: u64, photos: usize) -> Result<Spent> {
    let before = cpu_of_all(loader);
    let (spent, batches) =
        spend(|| loader.epoch(epoch).try_fold(0, |count, batch| batch.map(|_| count + 1)))?;
    assert_eq!(batches, photos.div_ceil(BATCH), "the run lost batches");
    Ok(Spent { cpu: cpu_of_all(loader) - before, ..spent })
}

/// The JPEG members of all shards.
fn photos(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut photos = Vec::new();
    let mut shards: Vec<_> =
        fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?.iter().map(fs::DirEntry::path).collect();
    shards.sort();
    for shard in shards {
        let bytes = fs::read(shard)?;
        for member in forebay_tar::walk(&bytes) {
            let member = member?;
            if member.name.ends_with(b".jpg") {
                photos.push(member.data.to_vec());
            }
        }
    }
    Ok(photos)
}

/// What one thread of the floor writes to, over and over.
struct Memory {
    part: Vec<u8>,
    small: Vec<u8>,
    mirrored: Vec<u8>,
    batch: Vec<f32>,
}

impl Memory {
    fn new() -> Self {
        let small = vec![0; SIDE * SIDE * 3];
        Self { part: Vec::new(), mirrored: small.clone(), small, batch: vec![0.0; BATCH * 3 * SIDE * SIDE] }
    }
}

/// Decode a rectangle, resize, flip and normalise on two threads: memory is made once, and batches go nowhere.
fn floor(photos: &[Vec<u8>], memory: &mut [Memory]) -> Result<()> {
    let next = &AtomicUsize::new(0);
    thread::scope(|scope| {
        let workers: Vec<_> =
            memory.iter_mut().map(|memory| scope.spawn(move || work(photos, next, memory))).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn work(photos: &[Vec<u8>], next: &AtomicUsize, memory: &mut Memory) -> Result<()> {
    let levels = levels(&IMAGENET_MEAN, &IMAGENET_STD)?;
    let Memory { part, small, mirrored, batch } = memory;
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(photo) = photos.get(at) else { return Ok(()) };
        let jpeg = Jpeg::open(photo, u64::MAX)?;
        let [height, width] = jpeg.size();
        let mut draws = (0..u64::MAX).map(|draw| forebay_loader::Rng::new(at as u64, draw).f64());
        let crop = CropRange::default().draw([height, width], || draws.next().unwrap_or(0.5));
        if part.len() < crop.height * crop.width * 3 {
            part.resize(crop.height * crop.width * 3, 0);
        }
        let part = &mut part[..crop.height * crop.width * 3];
        jpeg.read_region(crop, part)?;
        let part = Pixels::new(part, [crop.height, crop.width, 3])?;
        resize(&part, part.whole(), [SIDE, SIDE], Filter::Bilinear, &mut small[..])?;
        let picture = if at.is_multiple_of(2) {
            flip(&Pixels::new(&small[..], [SIDE, SIDE, 3])?, &mut mirrored[..])?;
            &mirrored[..]
        } else {
            &small[..]
        };
        let slot = &mut batch[at % BATCH * 3 * SIDE * SIDE..][..3 * SIDE * SIDE];
        normalize(&Pixels::new(picture, [SIDE, SIDE, 3])?, &levels, slot)?;
    }
}
