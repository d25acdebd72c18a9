//! Clocks, and the rows of a table.

use std::{fmt, fs, time::Instant};

use forebay_loader::{Loader, Result};

/// Wall and CPU seconds of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// Seconds of CPU that this process used so far, system and user, over all threads.
pub(crate) fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// As [`cpu`], with the worker processes that live.
pub(crate) fn cpu_of_all(loader: &Loader) -> f64 {
    cpu() + loader.worker_processes().into_iter().map(cpu_of).sum::<f64>()
}

/// Seconds of CPU that another process used so far, over all threads that live.
fn cpu_of(process: u32) -> f64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return 0.0 };
    let nanos = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() * 1e-9
}

/// Bytes of memory that a process shares with no other.
pub(crate) fn private_memory(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let private = text.lines().filter(|line| line.starts_with("Private_"));
    private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>() * 1024
}

/// The middle of some numbers, which are put in order.
pub(crate) fn median(numbers: &mut [f64]) -> f64 {
    percentile(numbers, 0.5)
}

/// The number that this share of all numbers does not exceed; they are put in order.
pub(crate) fn percentile(numbers: &mut [f64], share: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let at = (numbers.len() as f64 * share) as usize;
    numbers.get(at.min(numbers.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// A line of a table of what is wanted and what was measured.
pub(crate) fn verdict(name: &str, wanted: &str, got: &str) -> String {
    format!("{name:<44} wanted {wanted:<12} | got {got}")
}

/// What `work` costs, and what it gives.
pub(crate) fn spend<T>(work: impl FnOnce() -> Result<T>) -> Result<(Spent, T)> {
    let (wall, before) = (Instant::now(), cpu());
    let value = work()?;
    Ok((Spent { wall: wall.elapsed().as_secs_f64(), cpu: cpu() - before }, value))
}

/// One line of the table: a name, and the cost of one sample over the rounds.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) samples: u64,
    pub(crate) rounds: Vec<Spent>,
    pub(crate) unit: Unit,
}

/// What costs are printed in.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Nanos,
    Micros,
}

impl Row {
    /// Median and best of one clock, in the unit, for one sample.
    fn figures(&self, clock: impl Fn(&Spent) -> f64) -> (f64, f64) {
        let scale = match self.unit {
            Unit::Nanos => 1e9,
            Unit::Micros => 1e6,
        };
        let mut costs: Vec<f64> =
            self.rounds.iter().map(|spent| clock(spent) * scale / self.samples as f64).collect();
        costs.sort_by(f64::total_cmp);
        let middle = costs.get(costs.len() / 2).copied().unwrap_or(f64::NAN);
        (middle, costs.first().copied().unwrap_or(f64::NAN))
    }

    /// The median wall time of one sample.
    pub(crate) fn wall(&self) -> f64 {
        self.figures(|spent| spent.wall).0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((wall, best_wall), (cpu, best_cpu)) = (self.figures(|s| s.wall), self.figures(|s| s.cpu));
        let unit = match self.unit {
            Unit::Nanos => "ns",
            Unit::Micros => "us",
        };
        write!(
            f,
            "{:<44} wall {wall:>8.1} {unit} (best {best_wall:>8.1})   cpu {cpu:>8.1} {unit} (best {best_cpu:>8.1})",
            self.name
        )
    }
}
