//! S3: objects and listings, by the endpoint that its own variables name, of a server that checks who asks.

use forebay_core::Store;
use forebay_remote::RemoteStore;
use ring::{digest, hmac};

use crate::{
    bucket::{check, fill, store},
    listing,
    server::{Manner, Request, Server, percent_decoded},
};

const SECRET: &str = "geheim";
const SESSION: &str = "only for now";

/// S3 as far as it is read: it refuses what is not signed by `me` with [`SECRET`].
fn service(request: &Request, paths: &[String]) -> Option<(&'static str, String)> {
    let refused = |code: &str| {
        let page = format!("<Error><Code>{code}</Code><Message>who are you?</Message></Error>");
        Some(("403 Forbidden", page))
    };
    let Some(authorization) = request.header("authorization") else { return refused("AccessDenied") };
    let (_, parts) = authorization.split_once("AWS4-HMAC-SHA256 ").unwrap();
    let part = |name: &str| parts.split(", ").find_map(|part| part.strip_prefix(name)).unwrap();
    let (key, scope) = part("Credential=").split_once('/').unwrap();
    let signed = part("SignedHeaders=");
    let must_be_signed = |name: &&str| *name == "host" || name.starts_with("x-amz-");
    let names: Vec<_> =
        request.head[1..].iter().map(|line| line.split(':').next().unwrap().to_lowercase()).collect();
    for name in names.iter().map(String::as_str).filter(must_be_signed) {
        assert!(signed.split(';').any(|signed| signed == name), "{name} is not signed: {signed}");
    }
    if request.header("x-amz-security-token").is_some_and(|token| token != SESSION) {
        return refused("InvalidToken");
    }
    match (key, scope.split('/').nth(1)) {
        ("me", Some("eu-west-1")) if part("Signature=") == signature(request, signed, scope, SECRET) => {}
        ("me", Some("eu-west-1")) => return refused("SignatureDoesNotMatch"),
        ("me", _) => return refused("AuthorizationHeaderMalformed"),
        _ => return refused("InvalidAccessKeyId"),
    }
    Some(("200 OK", listing::objects(request, paths)?))
}

/// Signature version 4, of a request without a body: "Authenticating Requests: Using the Authorization Header" of S3's reference.
fn signature(request: &Request, signed: &str, scope: &str, secret: &str) -> String {
    let path = request.path().split('/').map(|part| format!("/{}", encoded(&percent_decoded(part))));
    let query: Vec<_> =
        request.query().iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    let header = |name| request.header(name).unwrap_or_default();
    let headers: String = signed.split(';').map(|name| format!("{name}:{}\n", header(name))).collect();
    let (path, query) = (path.collect::<String>(), query.join("&"));
    let canonical =
        [&request.method, &*path, &query, &headers, signed, header("x-amz-content-sha256")].join("\n");
    let sum = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = ["AWS4-HMAC-SHA256", header("x-amz-date"), scope, &sum].join("\n");
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac(&key, part));
    hex(&hmac(&key, &text))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

fn s3(server: &Server, variables: &[(&str, &str)]) -> RemoteStore {
    let endpoint = server.url("");
    store(
        &[&[("AWS_ENDPOINT_URL", endpoint.trim_end_matches('/')), ("AWS_REGION", "eu-west-1")], variables]
            .concat(),
    )
}

fn signing() -> Server {
    let server = Server::new(Manner { service: Some(service), ..Manner::default() });
    fill(&server, "bucket");
    server
}

#[test]
fn the_server_of_these_tests_signs_as_s3_does() {
    // The example "GET Object" of S3's reference.
    let head = [
        "GET /test.txt HTTP/1.1",
        "Host: examplebucket.s3.amazonaws.com",
        "Range: bytes=0-9",
        "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "x-amz-date: 20130524T000000Z",
    ];
    let request = Request::new(head.map(str::to_owned).to_vec()).unwrap();
    let found = signature(
        &request,
        "host;range;x-amz-content-sha256;x-amz-date",
        "20130524/us-east-1/s3/aws4_request",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    );
    assert_eq!(found, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

#[test]
fn objects_are_read_and_listed() {
    let server = signing();
    let who = [("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    check("s3://bucket", &s3(&server, &who));
    assert!(server.requests().iter().any(|request| request.target == "/bucket/train/b%20c%2B%25.tar"));
    check("s3a://bucket", &s3(&server, &[&who[..], &[("AWS_SESSION_TOKEN", SESSION)]].concat()));
    let session = |request: &Request| request.header("x-amz-security-token") == Some(SESSION);
    assert!(server.requests().iter().all(session));
}

#[test]
fn a_public_bucket_is_read_without_a_signature() {
    fn service(request: &Request, paths: &[String]) -> Option<(&'static str, String)> {
        assert_eq!(request.header("authorization"), None);
        Some(("200 OK", listing::objects(request, paths)?))
    }
    let server = Server::new(Manner { service: Some(service), ..Manner::default() });
    fill(&server, "bucket");
    check("s3://bucket", &s3(&server, &[("AWS_SKIP_SIGNATURE", "true")]));
}

#[test]
fn who_is_refused_learns_why_at_once_and_no_secret_is_told() {
    let server = signing();
    let who = |key, secret| [("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)];
    for (who, code) in [
        (&who("me", "geheimer")[..], "SignatureDoesNotMatch"),
        (&who("you", SECRET), "InvalidAccessKeyId"),
        (&[&who("me", SECRET)[..], &[("AWS_SESSION_TOKEN", "geheim, but old")]].concat(), "InvalidToken"),
        (&[&who("me", SECRET)[..], &[("AWS_REGION", "us-east-1")]].concat(), "AuthorizationHeaderMalformed"),
        (&[("AWS_SKIP_SIGNATURE", "true")], "AccessDenied"),
    ] {
        let store = s3(&server, who);
        let error = store.size("s3://bucket/val.tar").unwrap_err();
        let message = format!("the server answered 403: that this is forbidden; {code}: who are you?");
        assert_eq!((error.message(), error.get("attempts")), (&*message, Some("1")));
        let error = [error, store.list("s3://bucket").unwrap_err()].map(|error| error.to_string()).concat();
        assert!(!error.contains("geheim") && error.contains("s3://bucket/val.tar"), "{error}");
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn an_object_that_is_not_there_is_named() {
    let server = signing();
    let store = s3(&server, &[("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", SECRET)]);
    let error = store.size("s3://bucket/train/none.tar").unwrap_err();
    assert_eq!(error.get("url"), Some("s3://bucket/train/none.tar"));
    assert!(error.message().contains("404") && !error.to_string().contains("geheim"), "{error}");
    assert!(store.size("s3://bucket/train//a.tar").is_err());
}
