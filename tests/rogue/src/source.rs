//! `rogue_source`: integers, until something goes wrong.

use forebay_core::{
    Buffer, Context, DataPipe, Error, Key, On, PipeInfo, PipePlacement, Result, Sample, Source, State,
    StateExt, Str, options,
};

use crate::gate;

options! {
    /// Options of `rogue_source`.
    pub struct RogueSourceOptions {
        /// How many samples there are; null for no end.
        count: Option<u64> = null;
        /// What goes wrong.
        fault: String = "none", one_of ["none", "panic", "error", "panic_in_new", "panic_in_reset", "panic_in_drop"];
        /// The value at which it does, or at which the source waits at its gate.
        at: u64 = 0;
        /// The bytes of a second field, `rogue`, unless empty.
        payload: String = "";
        /// The gate; see the module `gate`.
        gate: String = "";
        /// Whether the position can be saved.
        state: bool = false;
    }
}

/// Integers, until something goes wrong.
#[derive(Debug)]
pub struct RogueSource {
    options: RogueSourceOptions,
    payload: Buffer,
    next: u64,
}

impl DataPipe for RogueSource {
    const INFO: PipeInfo = PipeInfo {
        name: "rogue_source",
        summary: "Integers, until something goes wrong",
        // It may wait at a gate.
        placement: PipePlacement { on: On::OwnThread, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = RogueSourceOptions;

    fn new(options: RogueSourceOptions) -> Result<Self> {
        assert!(options.fault != "panic_in_new", "rogue in new");
        let payload = options.payload.clone().into_bytes().into();
        Ok(Self { options, payload, next: 0 })
    }
}

impl Source for RogueSource {
    fn reset(&mut self, _: &Context) -> Result<()> {
        assert!(self.options.fault != "panic_in_reset", "rogue in reset");
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        let options = &self.options;
        if options.count.is_some_and(|count| self.next >= count) {
            return Ok(None);
        }
        if self.next == options.at {
            gate::pass(&options.gate)?;
            match options.fault.as_str() {
                "panic" => panic!("rogue in next"),
                "error" => {
                    self.next += 1; // Another call goes on after it.
                    let error = Error::corrupt("rogue has no such sample");
                    return Err(error.context("sample", options.at));
                }
                _ => {}
            }
        }
        let key = Key { origin: Str::from_static("rogue"), index: self.next, ..Key::default() };
        let mut sample = Sample::new(self.next, key);
        sample.set("value", self.next.cast_signed());
        if !self.payload.is_empty() {
            sample.set("rogue", self.payload.clone());
        }
        self.next += 1;
        Ok(Some(sample))
    }

    fn state(&self) -> Result<State> {
        match self.options.state {
            true => State::json(1, &self.next),
            false => Err(Error::unsupported("rogue saves nothing")),
        }
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.next = state.parse(1)?;
        Ok(())
    }
}

impl Drop for RogueSource {
    fn drop(&mut self) {
        assert!(self.options.fault != "panic_in_drop", "rogue in drop");
    }
}
