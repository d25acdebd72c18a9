//! Azure: objects and listings, by the endpoint that its own variables name, of a server that checks who asks.

use base64::{Engine, engine::general_purpose::STANDARD};
use forebay_core::Store;
use forebay_remote::RemoteStore;
use ring::hmac;

use crate::{
    bucket::{check, fill, store},
    listing::{self, Page},
    server::{Manner, Request, Server},
};

/// The account and the key that Azurite has, and every Azure account's look.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Azure as far as it is read, as Azurite has it: the account is in the path. It refuses what is not signed with [`KEY`].
fn service(request: &Request, paths: &[String]) -> Option<(&'static str, String)> {
    let signature = format!("SharedKey {ACCOUNT}:{}", signature(request));
    if request.header("authorization") != Some(&signature) {
        let page = "<Error><Code>AuthenticationFailed</Code><Message>who are you?</Message></Error>";
        return Some(("403 Forbidden", page.to_owned()));
    }
    let query = request.query();
    if query.get("comp").map(String::as_str) != Some("list") {
        return None;
    }
    assert_eq!((&*query["restype"], &*query["delimiter"]), ("container", "/"));
    let token = query.get("marker").map(String::as_str);
    let Page { entries, next } = listing::page(request.path(), paths, listing::prefix(&query), token);
    let entries: String = entries.iter().map(|(name, folder)| match folder {
        true => format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>"),
        false => format!(
            "<Blob><Name>{name}</Name><Properties><Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>1</Etag><Content-Length>1</Content-Length><Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
        ),
    }).collect();
    let next = next.unwrap_or_default().replace('&', "&amp;");
    Some((
        "200 OK",
        format!(
            "<?xml version=\"1.0\"?><EnumerationResults><Blobs>{entries}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
        ),
    ))
}

/// "Authorize with Shared Key" of Azure Storage's reference, for the blob service since 2015-02-21.
fn signature(request: &Request) -> String {
    let header = |name: &str| request.header(name).unwrap_or_default();
    let mut lines = vec![request.method.clone()];
    for name in
        ["Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date"]
    {
        lines.push(header(name).to_owned());
    }
    if lines[3] == "0" {
        lines[3].clear();
    }
    for name in ["If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"] {
        lines.push(header(name).to_owned());
    }
    let named = request.head[1..].iter().map(|line| line.split_once(':').unwrap());
    let mut own: Vec<_> = named
        .map(|(name, value)| (name.to_lowercase(), value.trim()))
        .filter(|(name, _)| name.starts_with("x-ms-"))
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    own.sort();
    lines.extend(own);
    lines.push(format!("/{ACCOUNT}/{}", request.path()));
    lines.extend(request.query().iter().map(|(name, value)| format!("{}:{value}", name.to_lowercase())));
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(KEY).unwrap());
    STANDARD.encode(hmac::sign(&key, lines.join("\n").as_bytes()))
}

fn azure(variables: &[(&str, &str)]) -> (Server, RemoteStore) {
    let server = Server::new(Manner { service: Some(service), ..Manner::default() });
    fill(&server, &format!("{ACCOUNT}/box"));
    let endpoint = server.url(ACCOUNT);
    let known = [("AZURE_STORAGE_ENDPOINT", &*endpoint), ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)];
    let store = store(&[&known, variables].concat());
    (server, store)
}

#[test]
fn objects_are_read_and_listed() {
    let (server, store) = azure(&[("AZURE_STORAGE_ACCOUNT_KEY", KEY)]);
    for scheme in ["az", "azure", "adl", "abfs", "abfss"] {
        check(&format!("{scheme}://box"), &store);
    }
    let name = format!("/{ACCOUNT}/box/train/b%20c+%25.tar");
    let requests = server.requests();
    assert!(requests.iter().any(|request| request.target == name), "{requests:?}");
}

#[test]
fn who_is_refused_learns_why_at_once_and_no_secret_is_told() {
    let other = STANDARD.encode("geheim");
    for who in [
        ("AZURE_STORAGE_ACCOUNT_KEY", &*other),
        ("AZURE_STORAGE_SAS_KEY", "sig=geheim"),
        ("AZURE_SKIP_SIGNATURE", "true"),
    ] {
        let (server, store) = azure(&[who]);
        let error = store.size("az://box/val.tar").unwrap_err();
        let message = "the server answered 403: that this is forbidden; AuthenticationFailed: who are you?";
        assert_eq!((error.message(), error.get("attempts")), (message, Some("1")));
        let error = [error, store.list("az://box").unwrap_err()].map(|error| error.to_string()).concat();
        assert!(!error.contains("geheim") && !error.contains(&other), "{error}");
        assert_eq!(server.requests().len(), 2);
    }
}
