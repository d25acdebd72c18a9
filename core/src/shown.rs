//! Paths, URLs and whole texts without the secrets that URLs may hold.

use std::borrow::Cow;

/// What begins a URL, behind its scheme.
const MARK: &str = "://";
/// What may stand behind a URL in a text and is no part of it.
const CLOSING: [char; 8] = [')', ']', '}', ',', ';', '.', ':', '\''];
/// Names in a query of a store that is not http, which say that it is signed; no name of a file goes on so.
const SIGNED: [&str; 4] = ["sig=", "signature=", "token=", "credential="];

/// A path or URL as errors, logs and snapshots can show it.
///
/// An http URL loses its user, its password and its query, because the query can hold a signature. A URL of
/// another store loses a user with a password, and a signed query. If a password contains `/`, `?` or `#`, its end
/// is unknown, so only the scheme is shown.
///
/// ```
/// use forebay_core::shown;
///
/// assert_eq!(shown("https://me:word@host/a@b.tar?sig=secret&x=/y"), "https://host/a@b.tar?…");
/// assert_eq!(shown("http://me:wo/rd@host/a.tar"), "http://…");
/// // Of other stores a `?` belongs to the name, and what stands before an `@` is a container.
/// assert_eq!(shown("az://box@account/a?b.tar"), "az://box@account/a?b.tar");
/// ```
#[must_use]
pub fn shown(path: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = path.split_once(MARK) else { return path.into() };
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let (authority, place) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
    let server = match authority.rsplit_once('@') {
        Some((user, server)) if is_web || user.contains(':') => server,
        _ => authority,
    };
    // Behind the colons of an address of IPv6 too.
    let port = server.rsplit_once(']').map_or(server, |(_, port)| port).rsplit_once(':');
    let is_port = port.is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_port && (is_web || place.contains('@')) {
        return format!("{scheme}://…").into();
    }
    let hidden = place.split_once('?').filter(|(_, query)| {
        let query = query.to_ascii_lowercase();
        is_web && !["", "…"].contains(&&*query) || SIGNED.iter().any(|name| query.contains(name))
    });
    match hidden {
        Some((place, _)) => format!("{scheme}://{server}{place}?…").into(),
        None if server.len() == authority.len() => path.into(),
        None => format!("{scheme}://{server}{place}").into(),
    }
}

/// A path without the query of a web URL, so that its end shows the kind of file.
///
/// ```
/// use forebay_core::without_query;
///
/// assert_eq!(without_query("https://host/a.jpg?sig=b.c#d"), "https://host/a.jpg");
/// assert_eq!(without_query("data/a?b.jpg"), "data/a?b.jpg");
/// ```
#[must_use]
pub fn without_query(path: &str) -> &str {
    let is_web = path
        .split_once(MARK)
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)));
    if is_web { path.split(['?', '#']).next().unwrap_or(path) } else { path }
}

/// A text in which each URL is as [`shown`] shows it. Every error is made like this, so code that quotes a
/// line or an option need not look for URLs.
///
/// ```
/// use forebay_core::without_secrets;
///
/// let text = without_secrets("found `files 'http://me:word@host/a.tar?sig=x' | untar`, expected one input");
/// assert_eq!(text, "found `files 'http://host/a.tar?…' | untar`, expected one input");
/// ```
#[must_use]
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return text.into();
    }
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(mark) = rest.find(MARK) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let start = rest[..mark].trim_end_matches(plain).len();
        let before = rest[..start].chars().next_back();
        let end = mark + MARK.len() + length(&rest[mark + MARK.len()..], before);
        clean.push_str(&rest[..start]);
        clean.push_str(&shown(&rest[start..end]));
        rest = &rest[end..];
    }
    clean.push_str(rest);
    if clean == text { text.into() } else { clean.into() }
}

/// How long the URL is whose scheme was just before `rest`, with `before` in front of it.
fn length(rest: &str, before: Option<char>) -> usize {
    let is_end = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '`' | '<' | '>')
            || (c == '\'' && before == Some('\''))
            // What was hidden already, and what a key has behind it.
            || c == '…'
    };
    let end = rest.find(is_end).unwrap_or(rest.len());
    // A password with a space in it: all of it goes, up to the name of the server.
    let authority = &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(end).min(end)];
    if let Some((_, port)) = authority.rsplit_once(':')
        && !authority.contains(['@', ']'])
        && !port.bytes().all(|byte| byte.is_ascii_digit())
    {
        let line = &rest[..rest.find(['\n', '…']).unwrap_or(rest.len())];
        let line = &line[..line.find(MARK).unwrap_or(line.len())];
        if let Some(at) = line.rfind('@') {
            return at + line[at..].find(is_end).unwrap_or(line.len() - at);
        }
    }
    rest[..end].trim_end_matches(CLOSING).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (url, wanted) in [
            ("https://me:secret@host/a@b.tar?X-Amz-Signature=secret&x=/y", "https://host/a@b.tar?…"),
            ("HTTP://me:secret@host:80/a", "HTTP://host:80/a"),
            ("az://box/a?sv=2024&sig=secret", "az://box/a?…"),
            ("https://secret@host", "https://host"),
            ("https://host?secret", "https://host?…"),
            ("http://me:s3cr/et@host/a.json", "http://…"),
            ("http://me:s3cr?et@host/a.json", "http://…"),
            ("http://me:s3cr#et@host/a.json", "http://…"),
            ("http://me:s3cr\\et@host/a.json", "http://…"),
            ("http://me:secret@[::1]:80/a?b", "http://[::1]:80/a?…"),
            ("http://[::1]/a", "http://[::1]/a"),
            ("s3://me:secret@bucket/a", "s3://bucket/a"),
            ("s3://me:sec/ret@bucket/a", "s3://…"),
            ("s3://bucket/a?X-Amz-Signature=secret", "s3://bucket/a?…"),
            ("ftp://me:secret@host/a", "ftp://host/a"),
        ] {
            assert_eq!(shown(url), wanted, "{url}");
            assert_eq!(without_secrets(url), wanted, "{url}");
            assert_eq!(without_secrets(wanted), wanted, "again");
            let (quoted, clean) =
                (format!("`{url}`, or ('{url}') "), format!("`{wanted}`, or ('{wanted}') "));
            assert_eq!(without_secrets(&quoted), clean, "{url}");
        }
        let account = "abfss://box@account.dfs.core.windows.net/a";
        for plain in ["a?b", "a/b", "s3://bucket/a?b.tar", "az://box@account/a", "git://.@main/a", account] {
            assert_eq!(shown(plain), plain);
            assert_eq!(without_secrets(plain), plain);
        }
    }

    #[test]
    fn what_stands_around_a_url_stays() {
        for (text, wanted) in [
            ("GET http://me:pw@host/a?b: 404, x", "GET http://host/a?…: 404, x"),
            ("(https://host/a?b).", "(https://host/a?…)."),
            ("http://host/a.tar?…!/0001.jpg", "http://host/a.tar?…!/0001.jpg"),
            ("http://me:a b@host/c?d e", "http://host/c?… e"),
            ("found http://host:abc/x, expected", "found http://…, expected"),
            ("{\"url\":\"http://u:p@h/a?b\"} :// x://", "{\"url\":\"http://h/a?…\"} :// x://"),
        ] {
            assert_eq!(without_secrets(text), wanted);
        }
    }
}
