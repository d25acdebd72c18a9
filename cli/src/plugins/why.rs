//! `forebay plugins why`: which decoders take a file.

use std::{
    io::{self, Write},
    path::Path,
};

use forebay_loader::{
    Error, Registry,
    registry::{Candidate, HEAD},
};
use serde_json::json;

use crate::{
    outcome::Result,
    print::{self, Table},
    report::near,
};

/// Ranks the decoders for a file; an error when none takes it.
pub(super) fn why(registry: &Registry, file: &str, json: bool) -> Result {
    let head = registry.store("file")?.read(file, 0, HEAD as u64)?;
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let ranking = registry.rank(extension, &head);
    if json {
        print::json(&json!({ "file": file, "extension": extension, "ranking": ranking }))?;
    } else {
        print::text(|out| write_ranking(&ranking, out))?;
    }
    match ranking.first() {
        Some(best) if best.score > 0 => Ok(()),
        _ => Err(Error::unsupported("no decoder takes this file").context("file", file).into()),
    }
}

/// Those that take it or came near, one a line, and how many did not.
fn write_ranking(ranking: &[Candidate], out: &mut dyn Write) -> io::Result<()> {
    let far = |candidate: &&Candidate| candidate.reason.starts_with("neither");
    let mut table = Table::new(&[">score", ">priority", "decoder", "plugin", "file", "reason"]);
    for candidate in ranking.iter().filter(|candidate| !far(candidate)) {
        table.row([
            if candidate.score > 0 { candidate.score.to_string() } else { "refused".to_owned() },
            candidate.priority.to_string(),
            candidate.decoder.clone(),
            candidate.plugin.clone(),
            near(&candidate.file),
            candidate.reason.clone(),
        ]);
    }
    if ranking.iter().any(|candidate| !far(&candidate)) {
        table.write(out, "")?;
    }
    let far: Vec<_> = ranking.iter().filter(far).map(|candidate| candidate.decoder.as_str()).collect();
    if far.is_empty() {
        return Ok(());
    }
    writeln!(out, "neither magic bytes nor extension match: {}", far.join(", "))
}
