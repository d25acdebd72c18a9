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
use forebay_loader::{Executor, Result};

use crate::measure::{Row, Spent, Unit, cpu_of_all, spend, verdict};

const ROUNDS: usize = 3;
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
    let mut ours = [Executor::Threads(THREADS), Executor::Processes(THREADS)]
        .map(|executor| (executor, row(&executor.to_string()), String::new()));
    for round in 0..=ROUNDS {
        let (floor_spent, ()) = spend(|| floor(&photos))?;
        if round > 0 {
            floor_row.rounds.push(floor_spent); // The first round warms the page cache.
        }
        for (executor, row, limiting) in &mut ours {
            let mut loader = crate::loader(&line, *executor, &registry)?;
            let before = cpu_of_all(&loader);
            let (spent, batches) =
                spend(|| loader.epoch(0).try_fold(0, |count, batch| batch.map(|_| count + 1)))?;
            assert_eq!(batches, photos.len().div_ceil(BATCH), "the run lost batches");
            let spent = Spent { cpu: cpu_of_all(&loader) - before, ..spent };
            *limiting = loader.stats().limiting();
            loader.finish()?;
            if round > 0 {
                row.rounds.push(spent);
            }
        }
    }
    let rate = |(_, row, limiting): &(Executor, Row, String)| {
        format!(
            "{}: rate {:.1} % of the floor's; limiting: {limiting}",
            row.name,
            100.0 * floor_row.wall() / row.wall()
        )
    };
    let [threads, processes] = &ours;
    let got = format!("{:.1} %", 100.0 * threads.1.wall() / processes.1.wall());
    Ok(vec![
        format!("{samples} photos"),
        floor_row.to_string(),
        threads.1.to_string(),
        processes.1.to_string(),
        rate(threads),
        rate(processes),
        verdict("processes:2 beside threads:2", ">= 90 %", &got),
    ])
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

/// Decode a rectangle, resize, flip and normalise on two threads: memory is made once, and batches go nowhere.
fn floor(photos: &[Vec<u8>]) -> Result<()> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| work(photos, &next))).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn work(photos: &[Vec<u8>], next: &AtomicUsize) -> Result<()> {
    let levels = levels(&IMAGENET_MEAN, &IMAGENET_STD)?;
    let (mut small, mut mirrored) = (vec![0; SIDE * SIDE * 3], vec![0; SIDE * SIDE * 3]);
    let mut batch = vec![0.0_f32; BATCH * 3 * SIDE * SIDE];
    let mut part = Vec::new();
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
        resize(&part, part.whole(), [SIDE, SIDE], Filter::Bilinear, &mut small)?;
        let picture = if at.is_multiple_of(2) {
            flip(&Pixels::new(&small, [SIDE, SIDE, 3])?, &mut mirrored)?;
            &mirrored
        } else {
            &small
        };
        let slot = &mut batch[at % BATCH * 3 * SIDE * SIDE..][..3 * SIDE * SIDE];
        normalize(&Pixels::new(picture, [SIDE, SIDE, 3])?, &levels, slot)?;
    }
}
