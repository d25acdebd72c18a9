//! How far a run is, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use forebay_loader::{Loader, without_secrets};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    print::{count, counted, rate},
    run::{Settings, Tally},
};

/// How often a bar is drawn anew.
const REDRAW: Duration = Duration::from_millis(100);
/// How often a line is written where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// Tells how far a run is.
pub(crate) struct Progress {
    /// `None` where there is no terminal.
    bar: Option<ProgressBar>,
    quiet: bool,
    told: Instant,
}

impl Progress {
    /// Says what begins.
    pub(crate) fn begin(quiet: bool, name: &str, loader: &Loader, settings: &Settings) -> Self {
        let told = Instant::now();
        if quiet {
            return Self { bar: None, quiet, told };
        }
        let pipes: Vec<_> = loader.graph().nodes().iter().map(|node| node.pipe.as_str()).collect();
        let Settings { executor, seed, epochs: (first, end), resume } = settings;
        let epochs = match resume {
            None => counted(*end, "epoch", "epochs"),
            Some(_) if settings.all_over() => {
                let is = counted(*end, "epoch", "epochs");
                format!(
                    "every epoch is over: {is}, earlier ones included; --epochs {} reads one more",
                    end + 1
                )
            }
            Some(at) if at.ended => format!("from epoch {first}, to the end of epoch {}", end - 1),
            Some(at) => {
                format!("from epoch {first}, after {}, to the end of epoch {}", count(at.delivered), end - 1)
            }
        };
        say(&format!("running {name}\n  {}\n  {executor}, seed {seed}, {epochs}", pipes.join(" | ")));
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(REDRAW);
            bar
        });
        Self { bar, quiet, told }
    }

    /// Takes note of one more delivery.
    pub(crate) fn tick(&mut self, loader: &Loader, tally: &Tally) {
        let every = if self.bar.is_some() { REDRAW } else { LINE };
        if self.told.elapsed() < every {
            return;
        }
        self.told = Instant::now();
        self.tell_log(loader);
        if self.quiet {
            return;
        }
        let stats = loader.stats();
        let (seconds, limiting) = (tally.elapsed(), stats.limiting());
        let delivered = tally.unit.counted(tally.delivered);
        let samples = tally.unit.samples(tally.samples, &stats);
        let line = format!("{delivered}, {} samples/s, limited by {limiting}", rate(samples, seconds));
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => say(&format!("{seconds:.0} s: {line}")),
        }
    }

    /// Takes the bar away, and tells the last lines of the log.
    pub(crate) fn end(&mut self, loader: &Loader) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.tell_log(loader);
    }

    /// Writes what plugins logged; only errors and warnings when quiet.
    fn tell_log(&self, loader: &Loader) {
        for (level, line) in loader.take_log() {
            let name = match level {
                1 => "error",
                2 => "warning",
                _ if self.quiet => continue,
                _ => "note",
            };
            match &self.bar {
                Some(bar) => bar.suspend(|| say(&format!("{name}: {line}"))),
                None => say(&format!("{name}: {line}")),
            }
        }
    }
}

/// Says that something may be wrong, on a line of its own.
pub(crate) fn warn(line: &str) {
    say(&format!("warning: {line}"));
}

/// Tells what pipes noted of samples, as fields that stayed bytes.
pub(crate) fn tell_notes(loader: &Loader) {
    for node in loader.stats().nodes {
        for note in node.notes {
            let times = counted(note.times, "sample", "samples");
            say(&format!("note: {}: {} in {times}: {}", node.node, note.what, note.why));
        }
    }
}

fn say(line: &str) {
    // A run goes on when nobody can be told about it.
    let _ = writeln!(io::stderr(), "{}", without_secrets(line));
}
