//! A program that names itself as the worker and does not call `serve_if_worker`: `COUNT PLUGINS GRAPH` as variables. It adds a byte to the file
//! `COUNT` each time it starts.

use std::{env, fs::File, io::Write as _, path::Path, process::ExitCode};

use forebay_loader::{Executor, Loader, Result};
use forebay_tests::{line, registry_in};

#[expect(clippy::print_stderr, reason = "whom the test asks for")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    File::options().append(true).open(variable("COUNT"))?.write_all(b".")?;
    let graph = line(&variable("GRAPH"));
    let builder = Loader::builder(graph).executor(Executor::Processes(4)).worker_self()?;
    let mut loader = builder.build(&registry_in(Path::new(&variable("PLUGINS"))))?;
    loader.epoch(0).try_for_each(|sample| sample.map(drop))?;
    loader.finish()
}
