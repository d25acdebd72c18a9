//! `rogue_map`: fails at one value, or takes its time.

use std::{
    env,
    hint::black_box,
    io::{self, Write as _},
    process,
};

use forebay_core::{Context, DataPipe, Error, Map, PipeInfo, Result, Sample, Value, options};

use crate::{crash, gate};

options! {
    /// Options of `rogue_map`.
    pub struct RogueMapOptions {
        /// What goes wrong.
        fault: String = "none", one_of ["none", "panic", "error", "panic_in_new", "panic_in_drop", "signal", "exit", "abort", "overflow", "loop", "print", "chdir", "close"];
        /// The value at which it does, or at which the map waits at its gate.
        at: i64 = 0;
        /// The signal that `signal` sends to its own process, or what `exit` ends it with.
        signal: u64 = 11;
        /// Goes wrong in the loader's own process only.
        here: bool = false;
        /// Fails on samples whose uid is a multiple of this; 0 for none.
        refuse: u64 = 0;
        /// Spins up to so many rounds, by the sample's uid, so that samples come back out of order.
        spin: u64 = 0, in 0..=1000000000;
        /// The gate; see the module `gate`.
        gate: String = "";
        /// Adds the fields `worker` and `workers`, except in the loader's own process.
        identity: bool = false;
    }
}

/// Fails at one value, or takes its time.
#[derive(Debug)]
pub struct RogueMap {
    options: RogueMapOptions,
}

impl DataPipe for RogueMap {
    const INFO: PipeInfo =
        PipeInfo { name: "rogue_map", summary: "Fails or waits as told", ..PipeInfo::DEFAULT };
    type Options = RogueMapOptions;

    fn new(options: RogueMapOptions) -> Result<Self> {
        assert!(options.fault != "panic_in_new", "rogue in new");
        Ok(Self { options })
    }
}

impl Map for RogueMap {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        let options = &self.options;
        if options.spin > 0 {
            let rounds = cx.rng(sample.uid()).below(options.spin);
            (0..rounds).for_each(|round| {
                black_box(round);
            });
        }
        if let Some((worker, workers)) = cx.worker().filter(|_| options.identity) {
            sample.set("worker", i64::from(worker));
            sample.set("workers", i64::from(workers));
        }
        if options.refuse > 0 && sample.uid().is_multiple_of(options.refuse) {
            return Err(Error::corrupt("rogue refuses the sample"));
        }
        if sample.get("value").and_then(Value::as_i64) != Some(options.at) {
            return Ok(());
        }
        gate::pass(&options.gate)?;
        if options.here && cx.worker().is_some() {
            return Ok(());
        }
        match options.fault.as_str() {
            "panic" => panic!("rogue in map"),
            "signal" => crash::by_signal(options.signal),
            "loop" => loop {
                black_box(());
            },
            "abort" => process::abort(),
            "print" => Ok(io::stdout().write_all(b"rogue prints a line\n")?),
            "chdir" => Ok(env::set_current_dir("/")?),
            "close" => {
                crash::close_others();
                Ok(())
            }
            "overflow" => Err(Error::corrupt(crash::by_depth(0).to_string())),
            "exit" => process::exit(i32::try_from(options.signal).unwrap_or(1)),
            "error" => Err(Error::corrupt("rogue refuses the sample")),
            _ => Ok(()),
        }
    }
}

impl Drop for RogueMap {
    fn drop(&mut self) {
        assert!(self.options.fault != "panic_in_drop", "rogue in drop");
    }
}
