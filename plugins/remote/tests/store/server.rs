//! A server of files in memory: HTTP/1.1 with ranges and etags, and as much of S3 as lists a bucket.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// What a server does for each request, besides answering it.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// It waits so long before it answers.
    pub(crate) delay: Duration,
    pub(crate) ranges: bool,
    pub(crate) etags: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { delay: Duration::ZERO, ranges: true, etags: true }
    }
}

/// One request that came: its path with the query, who asked, and the bytes that were sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) sent: u64,
}

/// A file, with the lines of the head that tell it from what it may become.
#[derive(Clone)]
struct File {
    bytes: Arc<Vec<u8>>,
    tag: String,
}

type Files = BTreeMap<String, File>;

#[derive(Default)]
struct State {
    files: Mutex<Files>,
    requests: Mutex<Vec<Request>>,
    closed: AtomicBool,
}

/// A server on loopback, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    pub(crate) fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.closed.load(Ordering::Relaxed) {
                    break;
                }
                let state = shared.clone();
                thread::spawn(move || serve(stream, &state, manner));
            }
        });
        Self { address, state }
    }

    /// Puts a file there, in place of one that has this path.
    pub(crate) fn put(&self, path: &str, bytes: impl Into<Arc<Vec<u8>>>) {
        let bytes = bytes.into();
        let start = bytes.len() as u64;
        let sum = bytes.iter().step_by(97).fold(start, |sum, &byte| sum.wrapping_mul(31) + u64::from(byte));
        let tag = format!("\r\nETag: \"{sum:x}\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT");
        self.state.files.lock().unwrap().insert(path.to_owned(), File { bytes, tag });
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// The requests that came since this was asked last.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Relaxed);
        // So that it stops to wait for somebody.
        drop(TcpStream::connect(self.address));
    }
}

/// The lines of a request or an answer up to the empty one; none at the end of the stream.
pub(crate) fn head(stream: &mut impl BufRead) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => return Some(lines),
            line => lines.push(line.to_owned()),
        }
    }
}

/// The value of a header.
pub(crate) fn header<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    let mut named = head.iter().skip(1).filter_map(|line| line.split_once(':'));
    named.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn serve(stream: TcpStream, state: &State, manner: Manner) {
    stream.set_nodelay(true).unwrap();
    let mut input = BufReader::new(stream.try_clone().unwrap());
    let mut output = stream;
    while let Some(head) = head(&mut input) {
        thread::sleep(manner.delay);
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let plain = percent_decoded(path.split('?').next().unwrap().trim_start_matches('/'));
        let file = state.files.lock().unwrap().get(&plain).cloned();
        let range = header(&head, "range").filter(|_| manner.ranges).and_then(|text| {
            let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        let (lines, body) = match file {
            Some(file) => answer(file, range, manner),
            None if path.contains("list-type=2") => {
                let page = listing(&state.files.lock().unwrap(), path);
                (
                    format!("200 OK\r\nContent-Type: application/xml\r\nContent-Length: {}", page.len()),
                    page.into(),
                )
            }
            None => ("404 Not Found\r\nContent-Length: 0".to_owned(), Part::default()),
        };
        let body = if method == "HEAD" { &[][..] } else { body.bytes() };
        let authorization = header(&head, "authorization").map(str::to_owned);
        let request = Request { path: path.to_owned(), authorization, sent: body.len() as u64 };
        state.requests.lock().unwrap().push(request);
        let head = format!("HTTP/1.1 {lines}\r\n\r\n");
        if output.write_all(head.as_bytes()).and_then(|()| output.write_all(body)).is_err() {
            break;
        }
    }
}

/// Some bytes of a file.
#[derive(Default)]
struct Part(Arc<Vec<u8>>, usize, usize);

impl Part {
    fn bytes(&self) -> &[u8] {
        &self.0[self.1..self.2]
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        let len = text.len();
        Self(Arc::new(text.into_bytes()), 0, len)
    }
}

fn answer(file: File, range: Option<(usize, usize)>, manner: Manner) -> (String, Part) {
    let len = file.bytes.len();
    let tag = if manner.etags { file.tag } else { String::new() };
    match range {
        Some((first, _)) if first >= len => {
            (format!("416 Range Not Satisfiable\r\nContent-Length: 0{tag}"), Part::default())
        }
        Some((first, last)) => {
            let end = len.min(last + 1);
            let range =
                format!("Content-Range: bytes {first}-{}/{len}\r\nContent-Length: {}", end - 1, end - first);
            (format!("206 Partial Content\r\n{range}{tag}"), Part(file.bytes, first, end))
        }
        None => (format!("200 OK\r\nContent-Length: {len}{tag}"), Part(file.bytes, 0, len)),
    }
}

/// ListObjectsV2 of `/bucket?list-type=2&delimiter=/&prefix=…`, in one page.
fn listing(files: &Files, path: &str) -> String {
    let (bucket, query) = path.trim_start_matches('/').split_once('?').unwrap();
    let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix=")).unwrap_or_default();
    let (bucket, prefix) = (bucket.trim_end_matches('/'), percent_decoded(prefix));
    let keys = files.keys().filter_map(|name| name.strip_prefix(bucket)?.strip_prefix('/'));
    let (mut entries, mut folders) = (String::new(), BTreeSet::new());
    for key in keys.filter(|key| key.starts_with(&prefix)) {
        match key[prefix.len()..].split_once('/') {
            Some((folder, _)) => drop(folders.insert(format!("{prefix}{folder}/"))),
            None => {
                entries += &format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"1\"</ETag><Size>1</Size></Contents>"
                )
            }
        }
    }
    let folders: String = folders
        .iter()
        .map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>{entries}{folders}</ListBucketResult>"
    )
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}
