//! Google Cloud Storage: by a service account's file, a token, or nothing, of a server that checks who asks.

use std::fs;

use forebay_core::Store;

use crate::{
    bucket::{check, fill, store},
    listing,
    server::{Manner, Request, Server},
};

/// Google as far as it is read: it takes one token, and whoever has none.
fn service(request: &Request, paths: &[String]) -> Option<(&'static str, String)> {
    match request.header("authorization") {
        None | Some("Bearer geheim") => Some(("200 OK", listing::objects(request, paths)?)),
        Some(_) => {
            let page = "<Error><Code>AuthenticationRequired</Code><Message>who are you?</Message></Error>";
            Some(("401 Unauthorized", page.to_owned()))
        }
    }
}

fn google() -> Server {
    let server = Server::new(Manner { service: Some(service), ..Manner::default() });
    fill(&server, "bucket");
    server
}

#[test]
fn objects_are_read_and_listed() {
    let (server, folder) = (google(), tempfile::tempdir().unwrap());
    let url = server.url("");
    let (url, file) = (url.trim_end_matches('/'), folder.path().join("account.json"));
    let account = format!(
        r#"{{"gcs_base_url": "{url}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#
    );
    fs::write(&file, account).unwrap();
    for (variables, asked) in [
        (&[("GOOGLE_SERVICE_ACCOUNT", file.to_str().unwrap())][..], None),
        (&[("GOOGLE_BASE_URL", url), ("GOOGLE_SKIP_SIGNATURE", "true")], None),
        (&[("GOOGLE_BASE_URL", url), ("GOOGLE_BEARER_TOKEN", "geheim")], Some("Bearer geheim")),
    ] {
        check("gs://bucket", &store(variables));
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.header("authorization") == asked), "{requests:?}");
        assert!(requests.iter().any(|request| request.target == "/bucket/train%2Fb%20c%2B%25%2Etar"));
    }
}

#[test]
fn who_is_refused_learns_why_and_no_secret_is_told() {
    let server = google();
    let url = server.url("");
    let who = [("GOOGLE_BASE_URL", url.trim_end_matches('/')), ("GOOGLE_BEARER_TOKEN", "geheimer")];
    let error = store(&who).size("gs://bucket/val.tar").unwrap_err();
    assert_eq!(
        error.message(),
        "the server answered 401: that it wants to know who asks; AuthenticationRequired: who are you?"
    );
    assert!(!error.to_string().contains("geheim"), "{error}");
    assert_eq!(server.requests().len(), 1);
}
