//! One pattern without braces: the folder it starts in, and what each part of a path below must look like.

use std::{ffi::OsStr, path::PathBuf};

use forebay_core::{Error, Result};
use globset::{GlobBuilder, GlobMatcher};

/// The parts of a pattern that are still to be met below some folder; several, since `**` may end anywhere.
pub(crate) type Positions = Vec<usize>;

/// A pattern without braces.
pub(crate) struct Pattern {
    /// The parts before the first wildcard.
    pub(crate) base: PathBuf,
    parts: Vec<Part>,
}

enum Part {
    /// `**`: any number of folders.
    Folders,
    Name {
        matcher: GlobMatcher,
        /// Whether it begins with a dot itself; otherwise names that do are passed over, as in a shell.
        dot: bool,
    },
}

/// Whether `part` has a wildcard.
pub(crate) fn is_wild(part: &str) -> bool {
    part.contains(['*', '?', '['])
}

impl Pattern {
    /// Splits `text` after its last part without a wildcard. A text without any becomes its folder's `**`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wild =
            text.split('/').take_while(|part| !is_wild(part)).map(|part| part.len() + 1).sum::<usize>();
        let base = text.get(..wild.saturating_sub(1).min(text.len())).unwrap_or_default();
        let base = if wild == 1 && text.starts_with('/') { "/" } else { base };
        let parts = text.get(wild.min(text.len())..).unwrap_or_default();
        let mut parts: Vec<_> =
            parts.split('/').filter(|part| !part.is_empty()).map(Part::parse).collect::<Result<_>>()?;
        if parts.is_empty() {
            parts.push(Part::Folders);
        }
        Ok(Self { base: PathBuf::from(base), parts })
    }

    /// Where a walk begins.
    pub(crate) fn start(&self) -> Positions {
        let mut positions = Vec::new();
        self.add(&mut positions, 0);
        positions
    }

    /// What is left to be met below a folder called `name`; a link is not followed by `**`.
    pub(crate) fn enter(&self, positions: &Positions, name: &OsStr, link: bool) -> Positions {
        let mut next = Vec::new();
        for &position in positions {
            match self.parts.get(position) {
                Some(Part::Folders) if !link && !hidden(name) => self.add(&mut next, position),
                Some(part) if part.takes(name) => self.add(&mut next, position + 1),
                _ => {}
            }
        }
        next.retain(|&position| position < self.parts.len());
        next
    }

    /// Whether a file called `name` ends the pattern.
    pub(crate) fn ends_with(&self, positions: &Positions, name: &OsStr) -> bool {
        let last = self.parts.len().saturating_sub(1);
        positions.iter().any(|&position| {
            position == last
                && match self.parts.get(position) {
                    Some(Part::Folders) => !hidden(name),
                    Some(part) => part.takes(name),
                    None => false,
                }
        })
    }

    /// Adds a position, and where one can be without another folder.
    fn add(&self, positions: &mut Positions, position: usize) {
        if !positions.contains(&position) {
            positions.push(position);
            if matches!(self.parts.get(position), Some(Part::Folders)) {
                self.add(positions, position + 1);
            }
        }
    }
}

impl Part {
    fn parse(text: &str) -> Result<Self> {
        if text == "**" {
            return Ok(Self::Folders);
        }
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(false).build();
        let glob = glob.map_err(|error| Error::invalid(error.kind().to_string()).context("pattern", text))?;
        Ok(Self::Name { matcher: glob.compile_matcher(), dot: text.starts_with('.') })
    }

    fn takes(&self, name: &OsStr) -> bool {
        match self {
            Self::Folders => false,
            Self::Name { matcher, dot } => (*dot || !hidden(name)) && matcher.is_match(name),
        }
    }
}

fn hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}
