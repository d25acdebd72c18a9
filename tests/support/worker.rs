//! A worker process for the tests; and, told `load PLUGINS GRAPH`, a loader with two workers that never ends by itself.

use std::{env, path::Path, process::ExitCode};

use forebay_loader::{Executor, Loader, Result};
use forebay_tests::{await_workers, line, linked, registry_in};

fn main() -> ExitCode {
    forebay_loader::serve_if_worker_with(linked::register);
    let arguments: Vec<String> = env::args().collect();
    match &arguments[..] {
        [_, verb, plugins, graph] if verb == "load" => match load(Path::new(plugins), graph) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => ExitCode::FAILURE,
    }
}

/// Reads epoch after epoch, and writes a line with its workers' processes once they work.
#[expect(clippy::print_stdout, reason = "whom the test asks for")]
fn load(plugins: &Path, graph: &str) -> Result<()> {
    let builder = Loader::builder(line(graph)).executor(Executor::Processes(2)).worker_self()?;
    let mut loader = builder.build(&registry_in(plugins))?;
    await_workers(&loader, 2);
    let mut told = false;
    for number in 0.. {
        let mut epoch = loader.epoch(number);
        while let Some(sample) = epoch.next() {
            sample?;
            if !std::mem::replace(&mut told, true) {
                let workers = epoch.worker_processes().into_iter().map(|pid| pid.to_string());
                println!("{}", workers.collect::<Vec<_>>().join(" "));
            }
        }
    }
    Ok(())
}
