//! Servers that answer oddly, variables that are wrong, and many who ask at once: an error that says why, or the bytes that are there.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use forebay_core::{ErrorKind, Store};
use forebay_remote::{RemoteStore, Settings};

use crate::{
    bucket::{self, fill},
    listing,
    proxy::{Fault, Proxy},
    reads::{bytes, read_all, settings, store, with_file},
    server::{Manner, Request, Server, Service},
};

const MIB: usize = 1 << 20;

/// What comes of some work, which may take a minute.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(work()));
    told.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("it failed, or hangs"))
}

fn serving(service: Service) -> Server {
    Server::new(Manner { service: Some(service), ..Manner::default() })
}

/// A public bucket of S3 on this server.
fn public(server: &Server, more: &[(&str, &str)]) -> RemoteStore {
    let url = server.url("");
    let known = [("AWS_ENDPOINT_URL", url.trim_end_matches('/')), ("AWS_SKIP_SIGNATURE", "true")];
    bucket::store(&[&known, more].concat())
}

/// A connection that sends a little at a time, once the head of an answer is out.
struct Drip(std::net::TcpStream, usize);

impl std::io::Read for Drip {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1 = 0;
        self.0.read(into)
    }
}

impl std::io::Write for Drip {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let few = if self.1 < 400 { bytes.len().min(400) } else { bytes.len().min(50) };
        if self.1 >= 400 {
            thread::sleep(Duration::from_millis(5)); // It is what such a server does.
        }
        let sent = self.0.write(&bytes[..few])?;
        self.1 += sent;
        Ok(sent)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_server_that_drips_is_left_after_its_attempts() {
    let server = Server::over(Manner::default(), |stream| Drip(stream, 0));
    server.put("a.bin", bytes(200_000));
    // 10 kB a second, where twenty times as much is wanted.
    let slow = Settings { timeout: Duration::from_millis(200), rate: 200_000, attempts: 3, ..settings() };
    let (store, url) = (RemoteStore::with(slow).unwrap(), server.url("a.bin"));
    let error = in_time(move || store.size(&url)).unwrap_err();
    assert!(error.message().starts_with("the server sent "), "{error}");
    assert_eq!((error.kind(), error.get("attempts")), (ErrorKind::Io, Some("3")), "{error}");
    let first = error.message().lines().next().unwrap();
    assert!(first.len() <= 100 && error.message().contains("FOREBAY_REMOTE_RATE"), "{error}");
    // Each attempt went on where the one before ended.
    assert!(server.requests().len() >= 3);
    // A few bytes are no slow answer.
    server.put("b.bin", bytes(1000));
    let patient = Settings { timeout: Duration::from_millis(200), rate: 1000, attempts: 3, ..settings() };
    assert_eq!(RemoteStore::with(patient).unwrap().size(&server.url("b.bin")).unwrap(), 1000);
}

#[test]
fn all_who_ask_for_a_block_that_fails_are_told() {
    let (server, _) = with_file(Manner::default(), 2 * MIB);
    let refusing = |number| if number == 0 { Fault::None } else { Fault::Status(404, None) };
    let proxy = Proxy::new(server.address, refusing);
    let (store, url) = (Arc::new(store()), proxy.url("a.bin"));
    store.size(&url).unwrap();
    in_time(move || {
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let error = store.read_range(&url, MIB as u64, 10).unwrap_err();
                        assert!(error.message().contains("404"), "{error}");
                    }
                });
            }
        });
    });
}

#[test]
fn a_file_that_could_not_be_opened_is_asked_for_by_the_next_read() {
    let (server, file) = with_file(Manner::default(), 1000);
    let late = |number| if number == 0 { Fault::Status(503, None) } else { Fault::None };
    let proxy = Proxy::new(server.address, late);
    let store = RemoteStore::with(Settings { attempts: 1, ..settings() }).unwrap();
    assert!(store.read_range(&proxy.url("a.bin"), 0, 10).unwrap_err().message().contains("503"));
    assert!(store.read_range(&proxy.url("a.bin"), 0, 10).unwrap()[..] == file[..10]);
}

#[test]
fn a_server_that_promises_more_than_there_is_takes_no_memory() {
    for (service, status) in [
        (
            (|_, _| Some(("200 OK\r\nContent-Length: 1099511627776\r\nConnection: close", "<".into())))
                as Service,
            "",
        ),
        (|_, _| Some(("403 No\r\nContent-Length: 1099511627776\r\nConnection: close", "<".into())), "403"),
    ] {
        let server = serving(service);
        let error = public(&server, &[]).list("s3://bucket/a").unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains(status), "{error}");
        assert_eq!(error.get("url"), Some("s3://bucket/a"));
    }
}

#[test]
fn of_a_page_that_refuses_a_listing_only_code_and_message_are_shown() {
    let server = serving(|_, _| {
        let page = format!(
            "<Error><Code>No</Code><Message>not you</Message><AWSAccessKeyId>geheim</AWSAccessKeyId>{}</Error>",
            "x".repeat(2 << 20)
        );
        Some(("403 Forbidden", page))
    });
    let error = public(&server, &[]).list("s3://bucket/a").unwrap_err();
    let wanted = "asking 127.0.0.1: the server answered 403: that this is forbidden; No: not you";
    assert_eq!((error.message(), error.get("attempts")), (wanted, Some("1")));
    assert!(!error.to_string().contains("geheim"), "{error}");
}

#[test]
fn variables_that_no_request_can_hold_are_refused_by_name_and_spaces_taken_off() {
    let server = serving(|request, paths| {
        let credential = request.header("authorization")?.split_once("Credential=")?.1;
        assert!(credential.starts_with("me/"), "{credential}");
        Some(("200 OK", listing::objects(request, paths)?))
    });
    fill(&server, "bucket");
    let url = server.url("");
    let store = |key| {
        let url = ("AWS_ENDPOINT_URL", url.trim_end_matches('/'));
        bucket::store(&[
            url,
            ("AWS_ACCESS_KEY_ID", key),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("AWS_ENDPOINT", ""),
        ])
    };
    assert_eq!(store("me\n").size("s3://bucket/val.tar").unwrap(), 1000);
    let found = store("m\ne");
    for error in [found.size("s3://bucket/val.tar").unwrap_err(), found.list("s3://bucket").unwrap_err()] {
        assert_eq!((error.kind(), error.get("variable")), (ErrorKind::Invalid, Some("AWS_ACCESS_KEY_ID")));
    }
}

#[test]
fn a_url_that_no_request_can_have_is_an_error_with_its_name() {
    for url in ["http://a\"b/x", "http://[::1/x", "http://a b/x"] {
        let error = store().size(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{url}: {error}");
        assert!(error.get("url").is_some(), "{error}");
    }
    // What nobody foresaw says where it was.
    let error = bucket::store(&[("AWS_ENDPOINT_URL", "no url"), ("AWS_SKIP_SIGNATURE", "true")])
        .size("s3://bucket/a")
        .unwrap_err();
    assert_ne!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(error.get("url"), Some("s3://bucket/a"), "{error}");
}

#[test]
fn a_server_without_ranges_may_have_empty_files_and_break_off() {
    let server = Server::new(Manner { ranges: false, ..Manner::default() });
    server.put("empty", Vec::new());
    assert_eq!(store().size(&server.url("empty")).unwrap(), 0);
    server.put("a.bin", bytes(200_000));
    let broken = |number| if number == 0 { Fault::Cut(100_000) } else { Fault::None };
    let proxy = Proxy::new(server.address, broken);
    assert!(read_all(&store(), &proxy.url("a.bin"), MIB).unwrap() == bytes(200_000));
    assert_eq!(proxy.requests(), 2);
}

#[test]
fn headers_that_nobody_needs_spoil_nothing() {
    for service in [
        (|_, _| {
            let head = "206 Partial Content\r\nContent-Range: bytes 0-4/5\r\nETag: \"1\"\r\nLast-Modified: lately\r\n\
                        Content-Disposition: attachment; filename=\u{e4}.bin\r\nx-amz-meta-a: \u{e4}";
            Some((head, "12345".to_owned()))
        }) as Service,
        |_, _| {
            let head = "206 Partial Content\r\nContent-Range: bytes 0-4/5\r\nTransfer-Encoding: chunked\r\nETag: \"1\"";
            Some((head, "5\r\n12345\r\n0\r\n\r\n".to_owned()))
        },
    ] {
        let server = serving(service);
        assert_eq!(read_all(&store(), &server.url("a"), MIB).unwrap(), b"12345");
        assert_eq!(read_all(&public(&server, &[]), "s3://bucket/a", MIB).unwrap(), b"12345");
    }
}

#[test]
fn a_size_that_no_file_has_is_an_error() {
    for service in [
        (|_, _| Some(("206 P\r\nContent-Range: bytes 0-4/18446744073709551615", "12345".to_owned())))
            as Service,
        |_, _| {
            Some((
                "206 P\r\nContent-Range: bytes 0-18446744073709551615/18446744073709551615",
                "1".to_owned(),
            ))
        },
    ] {
        let server = serving(service);
        let error = store().size(&server.url("a")).unwrap_err();
        assert_eq!((error.kind(), error.get("attempts")), (ErrorKind::Io, Some("1")), "{error}");
    }
}

#[test]
fn redirects_in_a_circle_are_an_error_at_once() {
    let server = serving(|_, _| Some(("302 Found\r\nLocation: /a", String::new())));
    let error = store().size(&server.url("a")).unwrap_err();
    assert_eq!((error.kind(), error.get("attempts")), (ErrorKind::Io, Some("1")), "{error}");
}

#[test]
fn each_page_of_a_listing_has_attempts_of_its_own() {
    let server = serving(|request: &Request, paths| Some(("200 OK", listing::objects(request, paths)?)));
    (0..12).for_each(|number| server.put(&format!("bucket/{number:02}.tar"), bytes(1)));
    let proxy =
        Proxy::new(
            server.address,
            |number| if number % 2 == 1 { Fault::Status(503, None) } else { Fault::None },
        );
    let variables =
        [("AWS_ENDPOINT_URL", format!("http://{}", proxy.address)), ("AWS_SKIP_SIGNATURE", "true".into())];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let store = RemoteStore::with(Settings { variables, attempts: 2, ..settings() }).unwrap();
    let names: Vec<_> = (0..12).map(|number| (format!("s3://bucket/{number:02}.tar"), false)).collect();
    assert_eq!(store.list("s3://bucket").unwrap(), names);
    assert_eq!(proxy.requests(), 11);
}

#[test]
fn an_error_says_what_was_wrong_and_where() {
    let error =
        bucket::store(&[("GOOGLE_APPLICATION_CREDENTIALS", "/nope.json")]).size("gs://bucket/a").unwrap_err();
    assert!(error.message().contains("/nope.json"), "{error}");
    let error = bucket::store(&[("AWS_SKIP_SIGNATURE", "maybe")]).size("s3://bucket/a").unwrap_err();
    assert!(error.message().contains("maybe") && error.message().contains("boolean"), "{error}");
    // Whoever has no name is asked for by a service on the machine.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let variables = vec![("AWS_METADATA_ENDPOINT".to_owned(), format!("http://{nobody}"))];
    let store = RemoteStore::with(Settings { variables, attempts: 1, ..settings() }).unwrap();
    let error = store.size("s3://bucket/a").unwrap_err();
    assert!(error.message().contains("asking 127.0.0.1"), "{error}");
}

#[test]
fn a_little_of_a_block_keeps_not_all_of_it() {
    let (server, _) = with_file(Manner::default(), 256 << 10);
    let (store, url) = (store(), server.url("a.bin"));
    let at = |len| store.read_range(&url, 0, len).unwrap();
    assert_ne!(at(1000).as_ptr(), at(200_000).as_ptr());
    assert_eq!(at(250_000).as_ptr(), at(200_000).as_ptr());
}

#[test]
fn a_store_may_be_used_and_dropped_within_another_runtime() {
    let server = serving(|request: &Request, paths| Some(("200 OK", listing::objects(request, paths)?)));
    fill(&server, "bucket");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = public(&server, &[]);
        assert_eq!(store.list("s3://bucket").unwrap().len(), 2);
        assert_eq!(store.size("s3://bucket/val.tar").unwrap(), 1000);
    });
}
