//! A server of files in memory: HTTP/1.1 with ranges and etags, and room for a service that answers some requests otherwise.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
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
    /// What it is besides a server of files.
    pub(crate) service: Option<Service>,
}

impl Default for Manner {
    fn default() -> Self {
        Self { delay: Duration::ZERO, ranges: true, etags: true, service: None }
    }
}

/// Answers a request in place of the file that it names: a status and a page. It knows all files' paths. Headers may stand behind the
/// status; with `Connection: close` the connection ends.
pub(crate) type Service = fn(&Request, &[String]) -> Option<(&'static str, String)>;

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path as it came, with the query.
    pub(crate) target: String,
    /// The request's first line, and its headers.
    pub(crate) head: Vec<String>,
    /// How many bytes were sent of a file or a page.
    pub(crate) sent: u64,
}

impl Request {
    pub(crate) fn new(head: Vec<String>) -> Option<Self> {
        let mut words = head.first()?.split(' ').map(str::to_owned);
        Some(Self { method: words.next()?, target: words.next()?, head, sent: 0 })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The path as it came, without the slash before it.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap().trim_start_matches('/')
    }

    /// The query's names and values, decoded.
    pub(crate) fn query(&self) -> BTreeMap<String, String> {
        let (_, query) = self.target.split_once('?').unwrap_or_default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let decoded = |text: &str| percent_decoded(&text.replace('+', " "));
        pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(k, v)| (decoded(k), decoded(v)))
            .collect()
    }
}

/// A file, with the lines of the head that tell it from what it may become.
#[derive(Clone)]
struct File {
    bytes: Arc<Vec<u8>>,
    tag: String,
}

#[derive(Default)]
struct State {
    files: Mutex<BTreeMap<String, File>>,
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
        Self::over(manner, |stream| stream)
    }

    /// One whose connections are something over the system's own.
    pub(crate) fn over<S: Read + Write>(
        manner: Manner,
        over: impl Fn(TcpStream) -> S + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.closed.load(Ordering::Relaxed) {
                    break;
                }
                stream.set_nodelay(true).unwrap();
                let (state, over) = (shared.clone(), over.clone());
                // The other end may go away at any time.
                thread::spawn(move || serve(over(stream), &state, manner));
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

fn serve(stream: impl Read + Write, state: &State, manner: Manner) -> Option<()> {
    let mut stream = BufReader::new(stream);
    while let Some(head) = head(&mut stream) {
        thread::sleep(manner.delay);
        let mut request = Request::new(head)?;
        let (head, body) = answer(&request, state, manner);
        let body = if request.method == "HEAD" { &[][..] } else { body.bytes() };
        request.sent = body.len() as u64;
        state.requests.lock().unwrap().push(request);
        let stream = stream.get_mut();
        stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes()).ok()?;
        stream.write_all(body).ok()?;
        stream.flush().ok()?;
        if head.contains("Connection: close") {
            break;
        }
    }
    None
}

/// Some bytes of a file.
#[derive(Default)]
struct Part(Arc<Vec<u8>>, usize, usize);

impl Part {
    fn bytes(&self) -> &[u8] {
        &self.0[self.1..self.2]
    }
}

fn answer(request: &Request, state: &State, manner: Manner) -> (String, Part) {
    let paths = || state.files.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    if let Some((status, page)) = manner.service.and_then(|service| service(request, &paths())) {
        let len = page.len();
        let known = ["Content-Length", "Transfer-Encoding"].iter().any(|name| status.contains(name));
        let length = if known { String::new() } else { format!("\r\nContent-Length: {len}") };
        let head = format!("{status}\r\nContent-Type: application/xml{length}");
        return (head, Part(Arc::new(page.into_bytes()), 0, len));
    }
    let file = state.files.lock().unwrap().get(&percent_decoded(request.path())).cloned();
    let Some(file) = file else { return ("404 Not Found\r\nContent-Length: 0".to_owned(), Part::default()) };
    let range = request.header("range").filter(|_| manner.ranges).and_then(|text| {
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    });
    part(file, range, manner)
}

fn part(file: File, range: Option<(usize, usize)>, manner: Manner) -> (String, Part) {
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

pub(crate) fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}
