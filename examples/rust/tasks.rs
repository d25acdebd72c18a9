//! A loader in an async program: each sample is awaited, and nothing blocks. The runtime here is a few lines; any other will do.
//!
//! ```sh
//! cargo run --release -p forebay-loader --features bundled --example tasks
//! ```

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use forebay_loader::{Executor, Graph, Loader, Registry, Result, SampleExt as _};
use futures_util::StreamExt as _;

/// The sum of all numbers of an epoch.
async fn sum(loader: &mut Loader, epoch: u64) -> Result<i64> {
    loader.begin(epoch);
    let mut sum = 0;
    while let Some(batch) = loader.next().await {
        sum += batch?.tensor::<i64>("value")?.iter().sum::<i64>();
    }
    Ok(sum)
}

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> Result<()> {
    let graph = Graph::from_line("range 100000 | shuffle 1000 | batch 64")?;
    // Run inline, the pipes would run within a poll.
    let mut loader = Loader::builder(graph).executor(Executor::Threads(2)).build(&Registry::from_env()?)?;
    for epoch in 0..2 {
        println!("epoch {epoch}: {}", wait(sum(&mut loader, epoch))?);
    }
    loader.finish()
}

/// Wakes the thread that waits for a task.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a task to its end.
fn wait<T>(task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
