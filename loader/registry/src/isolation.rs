//! Isolation of plugins: a policy beside the graph that changes where work is done, and no sample.

use std::{env, fmt, str::FromStr};

use forebay_core::{Error, Result};
use forebay_graph::{Node, On};
use serde::Serialize;

use super::{FoundPlugin, Registry};

/// The variable that says it.
const VARIABLE: &str = "FOREBAY_PLUGIN_ISOLATION";

/// How strictly a plugin is isolated, from least to most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IsolationLevel {
    /// The plugin runs where the executor and the graph place it.
    #[default]
    InProcess,
    /// As `InProcess`, until the plugin crashes for the first time. Then its nodes go on in worker processes.
    OnCrash,
    /// In worker processes only; the program never loads the plugin.
    Process,
    /// As `Process`, without network, other programs or writes. The plugin reads only files that the graph names,
    /// and its memory and time are limited.
    Sandboxed,
}

impl IsolationLevel {
    const ALL: [Self; 4] = [Self::InProcess, Self::OnCrash, Self::Process, Self::Sandboxed];

    /// Where it must run; none where the program itself may load it.
    pub fn place(self) -> Option<On> {
        match self {
            Self::Sandboxed => Some(On::Sandboxed),
            Self::Process => Some(On::Process),
            Self::OnCrash | Self::InProcess => None,
        }
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InProcess => "in-process",
            Self::OnCrash => "on-crash",
            Self::Process => "process",
            Self::Sandboxed => "sandboxed",
        })
    }
}

impl FromStr for IsolationLevel {
    type Err = Error;

    /// # Errors
    /// `Invalid` for any other name.
    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|level| level.to_string() == text);
        found.ok_or_else(|| {
            Error::invalid(format!(
                "plugins are isolated as `{text}`, expected in-process, on-crash, process or sandboxed"
            ))
        })
    }
}

/// How each plugin is isolated. As text: one level for all plugins, and `NAME=LEVEL` for single plugins, as in
/// `on-crash,image=sandboxed`.
///
/// A node runs at its plugin's level; a node that decodes, at the strictest level of any plugin with
/// decoders. Samples are the same at every level.
///
/// # Examples
/// ```
/// use forebay_registry::{Isolation, Registry, Search};
///
/// let isolation: Isolation = "on-crash".parse()?;
/// let registry = Registry::new(Search::nowhere().first("/opt/forebay/plugins").isolation(isolation))?;
/// # let _ = registry;
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Of all that are not named.
    others: IsolationLevel,
    named: Vec<(String, IsolationLevel)>,
}

impl FromStr for Isolation {
    type Err = Error;

    /// # Errors
    /// `Invalid` if a level is unknown, or given twice.
    fn from_str(text: &str) -> Result<Self> {
        let (mut others, mut named) = (None, Vec::new());
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let twice = match item.split_once('=') {
                Some((name, level)) => {
                    let (name, level) = (name.trim().to_owned(), level.trim().parse()?);
                    let twice = named.iter().any(|(known, _)| *known == name);
                    named.push((name, level));
                    twice
                }
                None => others.replace(item.parse()?).is_some(),
            };
            if twice {
                return Err(Error::invalid(format!(
                    "found `{item}` after another level for the same, expected one level for each"
                )));
            }
        }
        Ok(Self { others: others.unwrap_or_default(), named })
    }
}

/// As [`from_str`](FromStr::from_str) reads it.
impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.others)?;
        self.named.iter().try_for_each(|(name, level)| write!(f, ",{name}={level}"))
    }
}

impl Isolation {
    /// What the environment says.
    ///
    /// # Errors
    /// As [`from_str`](FromStr::from_str).
    pub(super) fn from_env() -> Result<Self> {
        let Some(value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(Self::default());
        };
        let text = value.to_str().ok_or_else(|| Error::invalid("its value is not UTF-8"));
        text.and_then(str::parse).map_err(|error| error.context("variable", VARIABLE))
    }

    /// Only these, in a sandbox.
    pub fn sandboxing(names: &[String]) -> Self {
        let named = names.iter().map(|name| (name.clone(), IsolationLevel::Sandboxed)).collect();
        Self { others: IsolationLevel::InProcess, named }
    }

    /// That of a plugin; of several that were said of it by short and by long name the farthest.
    pub(super) fn of(&self, record: &FoundPlugin) -> IsolationLevel {
        let named = self.named.iter().filter(|(name, _)| record.is_called(name));
        named.map(|(_, level)| *level).max().unwrap_or(self.others)
    }

    /// Refuses a name that no plugin has, for nobody would be kept away, and one that is the program's own.
    ///
    /// # Errors
    /// `Invalid`, with the name.
    pub(super) fn check(&self, plugins: &[FoundPlugin]) -> Result<()> {
        let isolated = |record: &&FoundPlugin| {
            record.is_own()
                && self
                    .named
                    .iter()
                    .any(|(name, level)| record.is_called(name) && *level > IsolationLevel::InProcess)
        };
        if let Some(own) = plugins.iter().find(isolated) {
            return Err(Error::invalid(format!(
                "cannot isolate {}: it is linked into this program; build it as a plugin file",
                own.label()
            )));
        }
        let unknown = |name: &&str| !plugins.iter().any(|record| record.is_called(name));
        match self.named.iter().map(|(name, _)| name.as_str()).find(unknown) {
            None => Ok(()),
            Some(name) => Err(Error::invalid(format!("cannot isolate `{name}`: found no such plugin"))),
        }
    }
}

impl Registry {
    /// How plugins are isolated.
    #[must_use]
    pub fn isolation(&self) -> &Isolation {
        &self.0.isolation
    }

    /// The plugins that only workers in a sandbox may load.
    pub fn sandboxed(&self) -> Vec<String> {
        let sandboxed = self.0.plugins.iter().filter(|record| record.level == IsolationLevel::Sandboxed);
        sandboxed.map(|record| record.manifest.name.clone()).collect()
    }

    /// Whether any plugin is isolated.
    #[must_use]
    pub fn isolates(&self) -> bool {
        self.0.plugins.iter().any(|record| record.level != IsolationLevel::InProcess)
    }

    /// How far a node is kept away.
    pub fn level_of(&self, node: &Node) -> IsolationLevel {
        let Some((plugin, pipe)) = self.locate(&node.pipe) else { return IsolationLevel::InProcess };
        let record = &self.0.plugins[plugin];
        if !record.manifest.pipes[pipe].placement.decodes {
            return record.level;
        }
        let others = self.0.plugins.iter().filter(|record| !record.manifest.decoders.is_empty());
        others.map(|record| record.level).fold(record.level, Ord::max)
    }
}

impl FoundPlugin {
    /// How strictly the plugin is isolated.
    #[must_use]
    pub fn level(&self) -> IsolationLevel {
        self.level
    }

    /// Whether only worker processes can load it.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.level.place().is_some()
    }

    /// The error of who would load it all the same.
    pub(super) fn withheld(&self) -> Error {
        Error::unsupported(format!(
            "it is isolated ({}), so only worker processes can call it, and it was called outside of them: \
             give the pipe that calls it on=process, or set the plugin to in-process",
            self.level
        ))
    }
}
