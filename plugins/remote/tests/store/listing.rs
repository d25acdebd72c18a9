//! Listings of buckets, a few entries to a page, as S3, Google and Azure give them.

use std::collections::BTreeMap;

use crate::server::Request;

/// So few that a test's listing has several pages.
const PAGE: usize = 2;
/// What the name of the last entry of a page stands behind in the token for the next one: characters that must be escaped.
const TOKEN: &str = "+/=&";

/// One page of what is directly under a prefix: names, and whether each is a folder.
pub(crate) struct Page {
    pub(crate) entries: Vec<(String, bool)>,
    /// What the next page is asked for with, if there is one.
    pub(crate) next: Option<String>,
}

/// The page of a bucket that `token` asks for; without one the first.
pub(crate) fn page(bucket: &str, paths: &[String], prefix: &str, token: Option<&str>) -> Page {
    let after = token.map(|token| token.strip_prefix(TOKEN).unwrap());
    let keys = paths.iter().filter_map(|path| path.strip_prefix(bucket)?.strip_prefix('/'));
    let mut entries: Vec<_> = keys
        .filter_map(|key| {
            let rest = key.strip_prefix(prefix)?;
            Some(match rest.split_once('/') {
                Some((folder, _)) => (format!("{prefix}{folder}/"), true),
                None => (key.to_owned(), false),
            })
        })
        .filter(|(name, _)| after.is_none_or(|after| &**name > after))
        .collect();
    entries.dedup();
    let more = entries.len() > PAGE;
    entries.truncate(PAGE);
    let next = entries.last().filter(|_| more).map(|(name, _)| format!("{TOKEN}{name}"));
    Page { entries, next }
}

/// ListObjectsV2 of `/bucket?list-type=2&…`, which S3 and Google have; none of another request.
pub(crate) fn objects(request: &Request, paths: &[String]) -> Option<String> {
    let query = request.query();
    if query.get("list-type").map(String::as_str) != Some("2") {
        return None;
    }
    assert_eq!(query.get("delimiter").map(String::as_str), Some("/"));
    let bucket = request.path().trim_end_matches('/');
    let Page { entries, next } =
        page(bucket, paths, prefix(&query), query.get("continuation-token").map(String::as_str));
    let entries: String = entries.iter().map(|(name, folder)| match folder {
        true => format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
        false => format!(
            "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"1\"</ETag><Size>1</Size></Contents>"
        ),
    }).collect();
    let more = next.is_some();
    let next = next.map_or_else(String::new, |next| {
        format!("<NextContinuationToken>{}</NextContinuationToken>", next.replace('&', "&amp;"))
    });
    Some(format!(
        "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>{more}</IsTruncated>{next}{entries}</ListBucketResult>"
    ))
}

pub(crate) fn prefix(query: &BTreeMap<String, String>) -> &str {
    query.get("prefix").map_or("", String::as_str)
}
