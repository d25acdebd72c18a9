//! What comes behind an error in one stream: all that the damage spares, as it was; each loss once, and the same on another executor and
//! after a resume.

use std::{fs, path::Path};

use forebay_formats::Reader;
use forebay_loader::{Epoch, Executor, Graph, Loader, Sample, Snapshot};
use forebay_testkit::{Costs, Damage};
use forebay_tests::{Setting, builder, digest, line};

use super::{LIMITS, each_reader, plugins, read};

/// A file is damaged at so many places, and at those that show whether its format's promises hold.
const SPREAD: usize = 6;
/// From so many places of a run it is gone on, about.
const RESUMES: usize = 10;

#[test]
fn behind_an_error_comes_all_that_it_does_not_cost() {
    each_reader("behind::behind_an_error_comes_all_that_it_does_not_cost", |reader| {
        reader.files.iter().map(|name| Damaged::new(reader, name).check(reader)).sum()
    });
}

/// A file, whole and damaged in many ways.
struct Damaged {
    name: &'static str,
    costs: Costs,
    damage: Damage,
    /// What is done to each of the files that are read.
    forms: Vec<Vec<usize>>,
    folder: tempfile::TempDir,
}

/// A sample: the number of the file that it is of, and what must be the same of the whole one.
type Found = (usize, String);

/// What a run gave, and what it lost.
#[derive(Debug, Default, PartialEq)]
struct Told {
    samples: Vec<Found>,
    losses: Vec<Found>,
}

impl Damaged {
    fn new(reader: &Reader, name: &'static str) -> Self {
        let whole = read(name);
        let costs = (reader.costs)(&whole);
        let spread = (0..whole.len()).step_by(whole.len().div_ceil(SPREAD));
        let damage = Damage::at(whole.clone(), costs.places(whole.len()).into_iter().chain(spread));
        let count = damage.forms();
        // Alone, and with another one; and whole, last and between them.
        let single = (0..=count).map(|form| vec![form]);
        let double = (0..count).step_by(2).map(|form| vec![form, (form + count / 3) % count]);
        let forms: Vec<_> = double.chain([vec![]]).chain(single).collect();
        let folder = tempfile::tempdir().unwrap();
        for which in ["whole", "damaged"] {
            fs::create_dir(folder.path().join(which)).unwrap();
        }
        let this = Self { name, costs, damage, forms, folder };
        for (number, forms) in this.forms.iter().enumerate() {
            fs::write(this.path("whole", number), &whole).unwrap();
            fs::write(this.path("damaged", number), this.damage.done(forms)).unwrap();
        }
        this
    }

    fn path(&self, which: &str, number: usize) -> String {
        let extension = Path::new(self.name).extension().unwrap().to_str().unwrap();
        self.folder.path().join(format!("{which}/{number:04}.{extension}")).to_str().unwrap().to_owned()
    }

    /// Checks what the reader's pipes make of all forms; how many there were.
    fn check(&self, reader: &Reader) -> usize {
        let whole = self.graph(reader, "whole", self.forms.len());
        let whole = self.told(self.loader(&whole, Setting::INLINE).epoch(0));
        assert!(whole.losses.is_empty() || reader.refuses, "{}: {:?}", self.name, whole.losses);
        // Damage may split records, and make each of these an error, but not go on for ever.
        let most = 4 * whole.samples.len() / self.forms.len() + 16;
        let graph = self.graph(reader, "damaged", most * self.forms.len());
        let told = self.told(self.loader(&graph, Setting::INLINE).epoch(0));
        self.judge(&whole, &told, most);
        let threads = self.told(self.loader(&graph, Setting::threads(2)).epoch(0));
        assert_eq!(threads.samples, told.samples, "{}: on two threads", self.name);
        let (inline, threads) = differences(&told.losses, &threads.losses);
        assert!(inline.is_empty() && threads.is_empty(), "{}: {inline:#?} or {threads:#?}", self.name);
        for chunk in [Some(1), None] {
            let setting = Setting { chunk, marks: true, ..Setting::INLINE };
            let points = points(self.loader(&graph, setting));
            for (at, (snapshot, given, lost)) in points.iter().enumerate() {
                let executor = [Executor::Threads(2), Executor::Inline][at % 2];
                let mut loader = self.loader(&graph, Setting { executor, ..Setting::INLINE });
                let rest = self.told(loader.resume(snapshot).unwrap());
                let here = format!("{}: {executor}, resumed after {given} samples", self.name);
                assert_eq!(rest.samples, told.samples[*given..], "{here}");
                let (before, again) = differences(&told.losses, &rest.losses);
                assert!(again.is_empty(), "{here}: not of the run, or told twice: {again:#?}");
                let (never, _) = differences(&before, lost);
                assert!(never.is_empty(), "{here}: not told before, nor again: {never:#?}");
            }
        }
        self.forms.len()
    }

    /// The reader's pipes behind the files of a folder; at most so many samples may fail at each.
    fn graph(&self, reader: &Reader, which: &str, most: usize) -> Graph {
        let pipes = reader.pipes.iter().map(|pipe| format!(" | {pipe} on_error=quarantine:{most}"));
        let rename = if reader.field == "bytes" {
            String::new()
        } else {
            format!(" | rename 'bytes={}'", reader.field)
        };
        let folder = self.folder.path().join(which);
        line(&format!("files '{}/*'{rename}{}", folder.display(), pipes.collect::<String>()))
    }

    fn loader(&self, graph: &Graph, setting: Setting) -> Loader {
        let built = builder(graph, setting).limits(LIMITS).build(plugins());
        built.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// All that comes of an epoch. More losses than may be end it with an error.
    fn told(&self, mut epoch: Epoch<'_>) -> Told {
        let mut samples = Vec::new();
        for sample in epoch.by_ref() {
            samples.push(found(&sample.unwrap_or_else(|error| panic!("{}: {error}", self.name))));
        }
        let losses = losses(&epoch);
        Told { samples, losses }
    }

    /// All that the damage spares came of each file, as it comes of the whole one, and no more samples and errors than `most`.
    fn judge(&self, whole: &Told, told: &Told, most: usize) {
        let of = |found: &[Found], number| -> Vec<String> {
            found.iter().filter(|(of, _)| *of == number).map(|(_, what)| what.clone()).collect()
        };
        for (number, forms) in self.forms.iter().enumerate() {
            let reach: Vec<_> = forms.iter().map(|form| self.damage.reach(*form)).collect();
            let (wanted, found) = (of(&whole.samples, number), of(&told.samples, number));
            let missing = self.costs.missing(&reach, &wanted, &found).map(|sample| &wanted[sample]);
            let count = (found.len(), told.losses.iter().filter(|(of, _)| *of == number).count());
            if missing.is_some() || count.0 > most || count.1 > most {
                let done: Vec<_> = forms.iter().map(|form| self.damage.describe(*form)).collect();
                let lost = of(&told.losses, number);
                panic!(
                    "{}, {done:?}: gave {} samples of {}, and {} errors; lacks {missing:?}; {lost:#?}",
                    self.name,
                    count.0,
                    wanted.len(),
                    count.1
                );
            }
        }
    }
}

/// Snapshots of a run, with how many samples came before and what had been lost: right behind losses, and some of the others.
fn points(mut loader: Loader) -> Vec<(Snapshot, usize, Vec<Found>)> {
    let (mut all, mut given, mut before) = (Vec::new(), 0, 0);
    let mut epoch = loader.epoch(0);
    while let Some(sample) = epoch.next() {
        sample.unwrap();
        given += 1;
        let lost = epoch.stats().nodes.iter().map(|node| node.lost).sum::<u64>();
        if lost != std::mem::replace(&mut before, lost) || given % 4 == 0 {
            all.push((epoch.snapshot().unwrap(), given, lost));
        }
    }
    let losses = losses(&epoch);
    let step = all.len().div_ceil(RESUMES).max(1);
    let some = all.into_iter().step_by(step);
    some.map(|(snapshot, given, lost)| (snapshot, given, losses[..lost as usize].to_vec())).collect()
}

/// What was lost so far, in order, with the numbers of the files.
fn losses(loader: &Loader) -> Vec<Found> {
    let told = loader.quarantine().into_iter().map(|lost| {
        let key = lost.key.unwrap_or_default();
        let text = format!("{} {key} {}", lost.node, lost.error);
        (number_in(&key).unwrap_or_else(|| panic!("names no file: {text}")), text)
    });
    told.collect()
}

/// What each of two has that the other lacks, in any order.
fn differences(one: &[Found], two: &[Found]) -> (Vec<Found>, Vec<Found>) {
    let (mut left, mut more) = (one.to_vec(), Vec::new());
    for found in two {
        match left.iter().position(|known| known == found) {
            Some(at) => drop(left.remove(at)),
            None => more.push(found.clone()),
        }
    }
    (left, more)
}

/// Which file a sample is of, and all of it that does not depend on where that lies.
fn found(sample: &Sample) -> Found {
    let key = sample.key();
    let number = number_in(&key.origin).unwrap_or_else(|| panic!("{key}: names no file"));
    let what = format!("{} {}", key.name, key.index);
    // Where the file lies goes on with what is in it.
    let mut sample = sample.clone();
    sample.take("path");
    (number, format!("{what} {}", digest(&sample)))
}

/// The number that the name of a file is, in a key.
fn number_in(key: &str) -> Option<usize> {
    let (_, name) = key.rsplit_once("/whole/").or_else(|| key.rsplit_once("/damaged/"))?;
    name.get(..4)?.parse().ok()
}
