//! `prefetch`: files are asked for before they are read.
//!
//! ```toml
//! [prefetch]
//! page = "files"
//! examples = ['''forebay explain "files 's3://bucket/photos/*.jpg' | prefetch 64 | decode | batch 64"''']
//! ```

use std::collections::VecDeque;

use forebay_core::{
    Context, DataPipe, Io, Length, PipeInfo, Result, Sample, State, StateExt, Step, Stream, Value, options,
};

options! {
    /// Options of `prefetch`.
    pub struct PrefetchOptions {
        /// How many samples wait while their files are fetched.
        ahead: usize = 32, in 1..=10_000;
        /// How many bytes to fetch of each file, from its start; the store has bounds of its own.
        bytes: u64 = 16777216;
        /// The field with the file's URL.
        field: String = "path";
    }
}

/// Holds so many samples that the files whose URLs they have are being fetched when their turn comes. Changes none.
///
/// It stands before the pipe that reads them, behind what puts them in their order. Local paths go through as they are.
#[derive(Debug)]
pub struct Prefetch {
    ahead: usize,
    bytes: u64,
    field: String,
    held: VecDeque<Sample>,
}

/// The version of a saved position, which holds nothing: what was held comes again.
const VERSION: u32 = 1;

impl DataPipe for Prefetch {
    const INFO: PipeInfo = PipeInfo {
        name: "prefetch",
        summary: "Asks for remote files before they are read",
        ..PipeInfo::DEFAULT
    };
    type Options = PrefetchOptions;

    fn new(options: PrefetchOptions) -> Result<Self> {
        let PrefetchOptions { ahead, bytes, field } = options;
        Ok(Self { ahead, bytes, field, held: VecDeque::new() })
    }
}

impl Stream for Prefetch {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        loop {
            while self.held.len() <= self.ahead
                && let Some(sample) = io.pop(0)
            {
                self.ask_for(&sample, cx);
                self.held.push_back(sample);
            }
            if self.held.len() <= self.ahead && !io.ended(0) {
                return Ok(Step::NeedInput(0));
            }
            if io.room() == 0 {
                return Ok(Step::Ready);
            }
            match self.held.pop_front() {
                Some(mut sample) => io.push(&mut sample),
                None => return Ok(Step::End),
            }
        }
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        inputs[0]
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(VERSION, &())?.again(0, self.held.len() as u64))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        state.parse(VERSION)
    }
}

impl Prefetch {
    /// Whoever reads the file is told what is wrong with it.
    fn ask_for(&self, sample: &Sample, cx: &Context) {
        let Some(url) = sample.get(&self.field).and_then(Value::as_str) else { return };
        if let Some((scheme, _)) = url.split_once("://").filter(|(scheme, _)| *scheme != "file")
            && let Ok(store) = cx.store(scheme)
        {
            let _ = store.read(url, self.bytes, 0);
        }
    }
}
