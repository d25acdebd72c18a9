//! The command `forebay`.

use std::{env, process::ExitCode};

use forebay_cli::Home;

fn main() -> ExitCode {
    forebay_loader::serve_if_worker();
    ExitCode::from(forebay_cli::run(env::args_os(), Home::default()))
}
