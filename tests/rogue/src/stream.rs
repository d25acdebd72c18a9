//! `rogue_stream`: breaks the rules of a stream, or keeps its caller waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use forebay_core::{Context, DataPipe, Error, Io, PipeInfo, PipeOrder, Result, Step, Stream, Value, options};

use crate::{crash, gate};

options! {
    /// Options of `rogue_stream`.
    pub struct RogueStreamOptions {
        /// What goes wrong: `idle` says that it goes on and does nothing, `stuck` asks for input that has ended,
        /// `rewind` and `input` name inputs that do not exist, `early` rewinds an input that has not ended,
        /// `swallow` takes all and gives nothing, `pending` lets the caller wait for each sample, `signal` ends the process,
        /// `loop` never comes back, `abort` does so in the loader's own process only, and `opaque` adds a field that only this process can read.
        fault: String = "none", one_of [
            "none", "idle", "stuck", "rewind", "early", "input", "swallow", "pending", "panic", "error",
            "signal", "abort", "loop", "opaque", "panic_in_reset", "panic_in_drop"
        ];
        /// The number of the sample, in order, at which a panic, an error or a signal comes, or the gate.
        at: u64 = 0;
        /// The signal that `signal` sends to its own process.
        signal: u64 = 11;
        /// The gate; see the module `gate`.
        gate: String = "";
    }
}

/// Hands samples on, until something goes wrong.
#[derive(Debug)]
pub struct RogueStream {
    options: RogueStreamOptions,
    given: u64,
    wait: Wait,
}

/// Whether the next sample may be given: after a thread said so.
#[derive(Debug, Default)]
struct Wait {
    asked: bool,
    may: Arc<AtomicBool>,
}

impl DataPipe for RogueStream {
    const INFO: PipeInfo = PipeInfo {
        name: "rogue_stream",
        summary: "Hands samples on, or does not",
        order: PipeOrder { rewinds: true, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RogueStreamOptions;

    fn new(options: RogueStreamOptions) -> Result<Self> {
        Ok(Self { options, given: 0, wait: Wait::default() })
    }
}

impl RogueStream {
    /// Starts a thread that allows the next sample and wakes the caller; says whether the sample is allowed.
    fn allowed(&mut self, cx: &Context) -> Result<bool> {
        if self.wait.may.load(Ordering::Acquire) {
            return Ok(true);
        }
        if self.wait.asked {
            return Ok(false); // Woken for another reason.
        }
        self.wait.asked = true;
        let waker = cx.waker().ok_or_else(|| Error::bug("no waker"))?;
        let may = Arc::clone(&self.wait.may);
        let gate = if self.given == self.options.at { self.options.gate.clone() } else { String::new() };
        thread::spawn(move || {
            let _ = gate::pass(&gate); // A gate that was taken down is open.
            may.store(true, Ordering::Release);
            waker.wake();
        });
        Ok(false)
    }

    fn give_opaque(io: &mut Io) -> Step {
        let Some(mut sample) = io.pop(0) else {
            return if io.ended(0) { Step::End } else { Step::NeedInput(0) };
        };
        sample.set("handle", Value::opaque("handle", 17_u32));
        io.push(&mut sample);
        Step::Ready
    }

    fn give(&mut self, io: &mut Io) -> Step {
        if io.room() == 0 {
            return Step::Ready;
        }
        if io.forward(0, 1) == 1 {
            self.given += 1;
            self.wait = Wait::default();
            return Step::Ready;
        }
        if io.ended(0) { Step::End } else { Step::NeedInput(0) }
    }
}

impl Stream for RogueStream {
    fn reset(&mut self, _: &Context) -> Result<()> {
        assert!(self.options.fault != "panic_in_reset", "rogue in reset");
        self.given = 0;
        self.wait = Wait::default();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let here = self.given == self.options.at;
        if self.options.fault == "pending" && !self.allowed(cx)? {
            return Ok(Step::Pending);
        }
        match self.options.fault.as_str() {
            "idle" => Ok(Step::Ready),
            "stuck" => Ok(Step::NeedInput(0)),
            "input" => Ok(Step::NeedInput(9)),
            "rewind" => Ok(Step::Rewind(9)),
            "early" if here && !io.ended(0) => Ok(Step::Rewind(0)),
            "panic" if here => panic!("rogue in poll"),
            "abort" if here && cx.worker().is_none() => std::process::abort(),
            "loop" if here => loop {
                std::hint::black_box(());
            },
            "signal" if here => crash::by_signal(self.options.signal),
            "opaque" if io.room() > 0 => Ok(Self::give_opaque(io)),
            "error" if here => Err(Error::corrupt("rogue gives up")),
            "swallow" => {
                while io.pop(0).is_some() {}
                Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) })
            }
            _ => Ok(self.give(io)),
        }
    }
}

impl Drop for RogueStream {
    fn drop(&mut self) {
        assert!(self.options.fault != "panic_in_drop", "rogue in drop");
    }
}
