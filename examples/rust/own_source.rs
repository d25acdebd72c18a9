//! A source of the program's own, with a position that is saved. It is a plugin in a module, so graphs use it as they use any other.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example own_source
//! ```

use forebay_loader::{Executor, Graph, Loader, Registry, Result, SampleExt as _, Search};

mod own {
    use forebay_core::{
        Context, DataPipe, Key, PipeInfo, Result, Sample, Source, State, StateExt as _, export_plugin,
        options,
    };

    options! {
        /// How far it goes.
        struct Limit {
            /// The greatest number.
            limit: i64 = 100;
        }
    }

    /// The Fibonacci numbers from 1 on.
    struct Fibonacci {
        limit: i64,
        /// How many it gave, the one before, and the next.
        at: (u64, i64, i64),
    }

    impl DataPipe for Fibonacci {
        const INFO: PipeInfo =
            PipeInfo { name: "fibonacci", summary: "Gives the Fibonacci numbers", ..PipeInfo::DEFAULT };
        type Options = Limit;

        fn new(options: Limit) -> Result<Self> {
            Ok(Self { limit: options.limit, at: (0, 0, 1) })
        }
    }

    impl Source for Fibonacci {
        fn reset(&mut self, _: &Context<'_>) -> Result<()> {
            self.at = (0, 0, 1);
            Ok(())
        }

        fn next(&mut self, _: &Context<'_>) -> Result<Option<Sample>> {
            let (count, before, value) = self.at;
            if value > self.limit {
                return Ok(None);
            }
            self.at = (count + 1, value, before + value);
            // Which one it is tells a sample from all others of the source, in every run.
            let mut sample = Sample::new(count, Key::default());
            sample.set("value", value);
            Ok(Some(sample))
        }

        fn state(&self) -> Result<State> {
            State::json(1, &self.at)
        }

        fn restore(&mut self, state: &State, _: &Context<'_>) -> Result<()> {
            self.at = state.parse(1)?;
            Ok(())
        }
    }

    export_plugin! { sources: [Fibonacci] }
}

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    let registry = Registry::with_linked(Search::from_env()?, own::register)?;
    let graph = Graph::from_line("fibonacci 1000 | batch 5")?;
    let build = || Loader::builder(graph.clone()).executor(Executor::Threads(2)).build(&registry);

    let mut loader = build()?;
    let first = loader.epoch(0).next().transpose()?;
    let saved = loader.snapshot()?;
    let rest = build()?.resume(&saved)?.collect::<Result<Vec<_>>>()?;
    for batch in first.iter().chain(&rest) {
        println!("{:?}", &*batch.tensor::<i64>("value")?);
    }
    Ok(())
}
