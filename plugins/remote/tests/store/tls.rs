//! https: read where the server's certificate is known, refused at once where it is not.

use std::{env, fs, process::Command, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use forebay_core::Store;
use rcgen::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};

use crate::{
    reads::{bytes, store},
    server::{Manner, Server},
};

const URL: &str = "FOREBAY_TEST_URL";

/// A certificate for this machine that nobody but itself vouches for, and a server that has it.
fn server() -> (String, Server) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = signing_key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key);
    let config = Arc::new(config.unwrap());
    let server = Server::over(Manner::default(), move |stream| {
        StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
    });
    let text = STANDARD.encode(cert.der());
    (format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"), server)
}

/// A part of the test below, which gives it an environment of its own.
fn reader(url: &str) {
    let found = store().read_range(url, 0, 1 << 20);
    assert!(found.unwrap_or_else(|error| panic!("{error}"))[..] == bytes(600_000));
}

#[test]
fn a_server_is_read_only_where_its_certificate_is_known() {
    if let Ok(url) = env::var(URL) {
        return reader(&url);
    }
    let ((mine, server), (other, _)) = (self::server(), self::server());
    server.put("a.bin", bytes(600_000));
    let (folder, url) = (tempfile::tempdir().unwrap(), server.url("a.bin").replace("http:", "https:"));
    let read = |certificate: Option<&str>| {
        let file = folder.path().join("certificate.pem");
        let mut reader = Command::new(env::current_exe().unwrap());
        reader
            .args(["tls::a_server_is_read_only_where_its_certificate_is_known", "--exact", "--nocapture"])
            .env(URL, &url)
            .env_remove("SSL_CERT_FILE");
        if let Some(certificate) = certificate {
            fs::write(&file, certificate).unwrap();
            reader.env("SSL_CERT_FILE", &file);
        }
        let output = reader.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(text.contains("running 1 test"), "{text}");
        (output.status.success(), text)
    };
    let (known, text) = read(Some(&mine));
    assert!(known, "{text}");
    assert!(!server.requests().is_empty());
    for unknown in [Some(&*other), None] {
        let (known, text) = read(unknown);
        assert!(!known && text.contains("certificate") && text.contains("attempts 1,"), "{text}");
        assert_eq!(server.requests().len(), 0);
    }
}
