//! A proxy that spoils answers: it delays, refuses, cuts short and resets.

use std::{
    io::{BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::net::sockopt::set_socket_linger;

use crate::server::{head, header};

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// It waits so long with the answer.
    Delay(Duration),
    /// This status, and how many seconds the client should wait.
    Status(u16, Option<u32>),
    /// The connection ends after so many bytes of the body.
    Cut(usize),
    /// It is reset after so many.
    Reset(usize),
    /// It ends without an answer.
    Silence,
    /// The answer says that it is of bytes one further on.
    Shifted,
}

type Script = Box<dyn FnMut(usize) -> Fault + Send>;

/// A proxy on loopback, until it is dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    closed: Arc<AtomicBool>,
    seen: Arc<Mutex<(usize, Script)>>,
}

impl Proxy {
    /// Before `upstream`; `script` says what happens to each request, by its number.
    pub(crate) fn new(upstream: SocketAddr, script: impl FnMut(usize) -> Fault + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let closed = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<(usize, Script)>> = Arc::new(Mutex::new((0, Box::new(script))));
        let (stop, script) = (closed.clone(), seen.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let script = script.clone();
                // Either end may go away at any time.
                thread::spawn(move || pass(stream, upstream, &script));
            }
        });
        Self { address, closed, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().0
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
    }
}

fn pass(client: TcpStream, upstream: SocketAddr, script: &Mutex<(usize, Script)>) -> Option<()> {
    let mut requests = BufReader::new(client.try_clone().ok()?);
    let mut client = client;
    let mut server = TcpStream::connect(upstream).ok()?;
    let mut answers = BufReader::new(server.try_clone().ok()?);
    while let Some(request) = head(&mut requests) {
        let fault = {
            let (number, script) = &mut *script.lock().unwrap();
            *number += 1;
            script(*number - 1)
        };
        match fault {
            Fault::Status(status, after) => {
                let after = after.map_or(String::new(), |seconds| format!("Retry-After: {seconds}\r\n"));
                let page = "<Error><Code>SlowDown</Code><Message>not so fast</Message></Error>";
                let answer =
                    format!("HTTP/1.1 {status} No\r\n{after}Content-Length: {}\r\n\r\n{page}", page.len());
                client.write_all(answer.as_bytes()).ok()?;
                continue;
            }
            Fault::Silence => return None,
            Fault::Delay(time) => thread::sleep(time),
            _ => {}
        }
        server.write_all(format!("{}\r\n\r\n", request.join("\r\n")).as_bytes()).ok()?;
        let mut answer = head(&mut answers)?;
        let len = if request[0].starts_with("HEAD") {
            "0"
        } else {
            header(&answer, "content-length").unwrap_or("0")
        };
        let mut body = vec![0; len.parse().ok()?];
        answers.read_exact(&mut body).ok()?;
        if fault == Fault::Shifted {
            for line in answer.iter_mut().filter(|line| line.starts_with("Content-Range: bytes ")) {
                let (first, rest) = line["Content-Range: bytes ".len()..].split_once('-')?;
                *line = format!("Content-Range: bytes {}-{rest}", first.parse::<u64>().ok()? + 1);
            }
        }
        let kept = match fault {
            Fault::Cut(kept) | Fault::Reset(kept) => kept.min(body.len()),
            _ => body.len(),
        };
        client.write_all(format!("{}\r\n\r\n", answer.join("\r\n")).as_bytes()).ok()?;
        client.write_all(&body[..kept]).ok()?;
        match fault {
            Fault::Cut(_) => return None,
            Fault::Reset(_) => {
                // Closed without a farewell.
                set_socket_linger(&client, Some(Duration::ZERO)).ok()?;
                return None;
            }
            _ => {}
        }
    }
    None
}
