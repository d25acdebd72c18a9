//! What plugins that were refused say is theirs: bytes that nobody else takes were not meant to stay bytes.

use std::{fs, path::Path};

use forebay_core::{
    Error,
    manifest::{HEAD, MAGIC},
};
use forebay_graph::{MagicSpec, begins};
use serde::{Deserialize, Serialize};

use super::{Refusal, Registry, Why};

/// The fewest first bytes that say what a value is.
const SURE: usize = 3;

/// What a plugin that was refused decodes or opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    plugin: String,
    file: String,
    /// Why it was refused.
    reason: String,
    extensions: Vec<String>,
    magic: Vec<(usize, Vec<u8>)>,
}

/// As much of a manifest as says what is claimed: it may be one of another host.
#[derive(Deserialize)]
struct ClaimedManifest {
    name: String,
    #[serde(default)]
    decoders: Vec<Format>,
    #[serde(default)]
    pipes: Vec<Pipe>,
}

#[derive(Deserialize)]
struct Pipe {
    opens: Option<Format>,
}

#[derive(Deserialize)]
struct Format {
    #[serde(default)]
    extensions: Vec<String>,
    #[serde(default)]
    magic: Vec<MagicSpec>,
}

impl Registry {
    /// What refused plugins claim. Their files are read when this is first asked for.
    pub fn claims(&self) -> &[Claim] {
        self.0.claims.get_or_init(|| {
            let broken = |refusal: &&Refusal| matches!(refusal.why, Why::Unfit | Why::Distrusted);
            let claims = self.0.refusals.iter().filter(broken).flat_map(claims);
            claims.filter(|claim| !self.0.skip.contains(&claim.plugin)).collect()
        })
    }

    /// With the claims that the loader found, in a worker process.
    pub fn claiming(self, claims: Vec<Claim>) -> Self {
        // It was made just now, and nobody asked.
        let _ = self.0.claims.set(claims);
        self
    }

    /// The error for a value that none takes, and a refused plugin would.
    pub(super) fn claimed(&self, extension: &str, head: &[u8]) -> Option<Error> {
        let claim = self.claims().iter().find(|claim| claim.is_for(extension, head))?;
        let Claim { plugin, file, reason, .. } = claim;
        let error = Error::invalid(format!("the plugin for `{extension}`, {plugin}, was refused"));
        Some(error.context("refused", format!("{file}: {reason}")).context(
            "to do",
            format!(
                "fix or allow the plugin, or skip it and keep such values as bytes: FOREBAY_PLUGIN_SKIP={plugin}"
            ),
        ))
    }
}

impl Claim {
    fn is_for(&self, extension: &str, head: &[u8]) -> bool {
        // Numbers begin with zeros and ones.
        let chance = |bytes: &[u8]| {
            bytes.len() < SURE || [[0, 0], [0xff, 0xff]].iter().any(|few| bytes.starts_with(few))
        };
        self.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
            || self.magic.iter().any(|magic| !chance(&magic.1) && begins(magic, head))
    }
}

/// What a refused file claims; nothing where its manifest cannot be read.
fn claims(refusal: &Refusal) -> Vec<Claim> {
    let Some(ClaimedManifest { name, decoders, pipes }) = words(&refusal.path) else { return Vec::new() };
    let formats = decoders.into_iter().chain(pipes.into_iter().filter_map(|pipe| pipe.opens));
    let claim = |format: Format| Claim {
        plugin: name.clone(),
        file: refusal.path.display().to_string(),
        reason: refusal.reason.message().lines().next().unwrap_or_default().to_owned(),
        extensions: format.extensions,
        magic: format.magic.iter().filter_map(|magic| Some((magic.offset, magic.decode()?))).collect(),
    };
    formats.map(claim).collect()
}

/// The manifest in a file that may be cut off, and then has no list of its sections: the first bytes that are one.
fn words(file: &Path) -> Option<ClaimedManifest> {
    // To read a pipe would wait for its other end.
    let bytes = fs::metadata(file).ok().filter(|data| data.is_file()).and_then(|_| fs::read(file).ok())?;
    let mut rest = &bytes[..];
    loop {
        rest = &rest[rest.iter().position(|&byte| byte == MAGIC[0])?..];
        let len = rest.get(HEAD - 8..HEAD).filter(|_| rest.starts_with(&MAGIC));
        let len = len.and_then(|len| Some(u64::from_ne_bytes(len.try_into().ok()?)));
        let json = len.and_then(|len| rest.get(HEAD..)?.get(..usize::try_from(len).ok()?));
        if let Some(words) = json.and_then(|json| serde_json::from_slice(json).ok()) {
            return Some(words);
        }
        rest = &rest[1..];
    }
}
