//! URLs: their parts.

use forebay_core::{Error, Result, shown};

/// The parts of a URL: `scheme://host/path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) scheme: &'a str,
    /// The bucket or container, or a server with its port; with what stands before an `@`.
    pub(crate) host: &'a str,
    /// Without the slash before it; of http with the query.
    pub(crate) path: &'a str,
}

impl<'a> Place<'a> {
    pub(crate) fn of(url: &'a str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if scheme.is_empty() || host.is_empty() {
            return Err(Error::invalid("expected a URL, as `scheme://host/path`").context("url", shown(url)));
        }
        Ok(Self { scheme, host, path })
    }

    /// Whether it is of a server without buckets, whose URL goes to it as it is.
    pub(crate) fn is_web(&self) -> bool {
        matches!(self.scheme, "http" | "https")
    }

    /// The URL of the bucket.
    pub(crate) fn root(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_three_parts() {
        let place = Place::of("s3://bucket/a/b c.tar").unwrap();
        assert_eq!(place, Place { scheme: "s3", host: "bucket", path: "a/b c.tar" });
        assert_eq!(Place::of("https://host:80").unwrap().path, "");
        for bad in ["", "a/b", "://a", "s3://", "s3:///a"] {
            assert!(Place::of(bad).is_err(), "{bad}");
        }
    }
}
