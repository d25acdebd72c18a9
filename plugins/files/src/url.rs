//! Files in stores of other plugins: what a URL is, and how what it names is listed and read through the host.

use forebay_core::{Blob, Buffer, Context, Result, scheme_of, shown};

/// Whether a path is a URL of a store of another plugin.
pub(crate) fn is_far(path: &str) -> bool {
    scheme_of(path) != "file"
}

/// Whether a URL goes to a server as it is: no wildcards, and a query behind `?`.
pub(crate) fn is_web(path: &str) -> bool {
    matches!(scheme_of(path), "http" | "https")
}

/// The names of what is directly under a folder, and whether each is a folder itself.
pub(crate) fn list(url: &str, cx: &Context<'_>) -> Result<Vec<(String, bool)>> {
    let entries = cx.store(scheme_of(url))?.list(url)?;
    let name = |(path, folder): (String, bool)| {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        (name, folder)
    };
    Ok(entries.into_iter().map(name).collect())
}

/// All bytes of a file in a store, or of a stream, if the host takes so many.
pub(crate) fn read_far(url: &str, cx: &Context<'_>) -> Result<Buffer> {
    let bytes = Blob::open(url, cx)?.whole(cx.limits().bytes);
    bytes.map_err(|error| error.context("file", shown(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_told_by_its_scheme() {
        assert!(is_far("s3://bucket/a") && is_far("git+ssh://x") && is_far("http://host/a?b"));
        for near in ["file:///a", "a/b", "/a:b", "://a", "a b://c", "/tmp/x://y"] {
            assert!(!is_far(near), "{near}");
        }
        assert!(is_web("https://host") && !is_web("s3://bucket"));
    }
}
