//! Clocks, and the rows of a table.

use std::{fmt, time::Instant};

use forebay_loader::Result;

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
