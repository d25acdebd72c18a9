//! S3: objects and listings, by the endpoint that its own variables name.

use forebay_core::Store;
use forebay_remote::{RemoteStore, Settings};

use crate::{
    reads::{bytes, settings},
    server::{Manner, Server},
};

/// A bucket with some objects, and a store that has it for S3.
fn bucket(signed: bool) -> (Server, RemoteStore) {
    let server = Server::new(Manner::default());
    for name in ["train/a.tar", "train/b c.tar", "train/deep/d.tar", "val.tar"] {
        server.put(&format!("bucket/{name}"), bytes(300_000 + name.len()));
    }
    let mut variables = vec![
        ("AWS_ENDPOINT_URL", server.url("").trim_end_matches('/').to_owned()),
        ("AWS_REGION", "eu-west-1".into()),
    ];
    if signed {
        variables.push(("AWS_ACCESS_KEY_ID", "me".into()));
        variables.push(("AWS_SECRET_ACCESS_KEY", "geheim".into()));
    } else {
        variables.push(("AWS_SKIP_SIGNATURE", "true".into()));
    }
    let variables =
        variables.into_iter().map(|(name, value): (&str, String)| (name.to_owned(), value)).collect();
    (server, RemoteStore::with(Settings { variables, ..settings() }).unwrap())
}

#[test]
fn objects_are_read_and_listed() {
    for signed in [true, false] {
        let (server, store) = bucket(signed);
        let name = "s3://bucket/train/b c.tar";
        assert_eq!(store.size(name).unwrap(), 300_013);
        assert!(store.read_range(name, 290_000, 1 << 20).unwrap()[..] == bytes(300_013)[290_000..]);
        let requests = server.requests();
        assert_eq!(requests[0].path, "/bucket/train/b%20c.tar");
        let signature = requests[0].authorization.as_deref().unwrap_or_default();
        assert_eq!(signature.starts_with("AWS4-HMAC-SHA256 Credential=me/"), signed, "{signature}");
        let entries = |names: &[(&str, bool)]| -> Vec<_> {
            names.iter().map(|&(name, folder)| (format!("s3://bucket/{name}"), folder)).collect()
        };
        assert_eq!(store.list("s3://bucket").unwrap(), entries(&[("train", true), ("val.tar", false)]));
        let train = [("train/a.tar", false), ("train/b c.tar", false), ("train/deep", true)];
        assert_eq!(store.list("s3://bucket/train/").unwrap(), entries(&train));
        assert_eq!(store.list("s3://bucket/none").unwrap(), []);
    }
}

#[test]
fn errors_name_the_object_and_no_secret() {
    let (_server, store) = bucket(true);
    let error = store.size("s3://bucket/train/none.tar").unwrap_err();
    assert_eq!(error.get("url"), Some("s3://bucket/train/none.tar"));
    assert!(error.message().contains("404") && !error.to_string().contains("geheim"), "{error}");
    assert!(store.size("s3://bucket/train//a.tar").is_err());
}
