//! How a command ends: its exit code, and what is told when it did not go well.

use std::io::{self, Write};

use forebay_loader::{Error, ErrorKind, Loader, nearest};
use serde_json::json;

use crate::print;

/// The most lines that an error takes.
const LINES: usize = 10;

/// Why a command ended before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What was asked for makes no sense: exit code 2.
    Usage(Error),
    /// It was tried and failed: exit code 1.
    Failed(Error),
    /// The answer is no, and was told already: exit code 1.
    No,
    /// It was told on standard output, and is an error all the same: exit code 1.
    Told(Error),
    /// Ctrl-C: exit code 130.
    Interrupted,
    /// Nobody reads the output any more, which is nobody's fault.
    Closed,
}

/// What a command gives.
pub(crate) type Result<T = (), E = Stop> = std::result::Result<T, E>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(error.into()),
        }
    }
}

impl Stop {
    /// For errors found before anything ran: a wrong graph or argument is a matter of usage.
    pub(crate) fn early(error: Error) -> Self {
        if error.kind() == ErrorKind::Invalid { Self::Usage(error) } else { Self::Failed(error) }
    }
}

/// Tells how it ended, on standard error and for `json` on standard output too, and gives the exit code.
pub(crate) fn tell(result: Result, json: bool) -> u8 {
    let mut json = json;
    let (code, error) = match result {
        Ok(()) | Err(Stop::Closed) => return 0,
        Err(Stop::No) => return 1,
        Err(Stop::Usage(error)) => (2, error),
        Err(Stop::Failed(error)) => (1, error),
        Err(Stop::Told(error)) => {
            json = false; // There is one object already.
            (1, error)
        }
        Err(Stop::Interrupted) => (130, Error::new(ErrorKind::Cancelled, "interrupted")),
    };
    // When standard error or output is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "{}", lines(&error).join("\n"));
    if json {
        let _ = print::json(&json!({ "error": object(&error) }));
    }
    code
}

/// An error as JSON has it.
pub(crate) fn object(error: &Error) -> serde_json::Value {
    let context: serde_json::Map<_, _> =
        error.contexts().iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    json!({ "kind": error.kind().name(), "message": error.message(), "context": context })
}

/// Whether an error is the one that comes when everything else was delivered: see [`Loader::failure`].
pub(crate) fn is_at_end(error: &Error, loader: &Loader) -> bool {
    error.get("failed").is_some() && loader.failure().is_some()
}

/// Ends a loader; what failed in its samples is told by [`Loader::failure`] already.
pub(crate) fn finish(loader: Loader) -> Result {
    let failed = loader.failure().is_some();
    match loader.finish() {
        Err(error) if !(failed && error.get("failed").is_some()) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The message, then each place it happened on a line of its own; what is too long is cut in the middle.
fn lines(error: &Error) -> Vec<String> {
    let beside = missing(error).map(|hint| format!(": {hint}")).unwrap_or_default();
    let mut message: Vec<String> =
        format!("error: {}{beside}", error.message()).lines().map(str::to_owned).collect();
    let mut places = Vec::new();
    for (name, value) in error.contexts() {
        let mut value = value.lines();
        places.push(format!("  {name}: {}", value.next().unwrap_or_default()));
        places.extend(value.map(|more| format!("  {more}")));
    }
    cut(&mut places, LINES - 2);
    cut(&mut message, LINES - places.len());
    message.append(&mut places);
    message
}

/// What may have been meant by the file that an error is about, where that is not there and nobody said it yet.
fn missing(error: &Error) -> Option<String> {
    let file = ["file", "lock", "plugin", "path"].iter().find_map(|name| error.get(name))?;
    let is_gone = error.message().contains("No such file") && !error.message().contains(": no `");
    if is_gone { nearest::beside(file.as_ref()) } else { None }
}

fn cut(lines: &mut Vec<String>, most: usize) {
    if lines.len() > most {
        let more = lines.len() + 1 - most;
        lines.truncate(most - 1);
        lines.push(format!("  … and {more} more lines"));
    }
}

#[cfg(test)]
mod tests {
    use forebay_loader::Error;

    use super::lines;

    #[test]
    fn each_place_has_its_line() {
        let error = Error::corrupt("found 1, expected 2").context("file", "a.tar").context("pipe", "untar");
        assert_eq!(lines(&error), ["error: found 1, expected 2", "  file: a.tar", "  pipe: untar"]);
    }

    #[test]
    fn no_error_takes_more_than_ten_lines() {
        let error =
            Error::invalid("a\n".repeat(30)).context("plugins", "b\n".repeat(30)).context("pipe", "c");
        let lines = lines(&error);
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[0], "error: a");
        assert_eq!(lines[1], "  … and 29 more lines");
        let error = Error::invalid("a\n".repeat(30)).context("pipe", "c");
        assert_eq!(super::lines(&error)[8..], ["  … and 22 more lines", "  pipe: c"]);
    }
}
