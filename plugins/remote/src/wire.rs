//! Requests on their way to a server: what its refusals mean, before object_store makes one error of them all.

use std::{error::Error as StdError, fmt, io, time::Duration};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::StreamExt;
use object_store::{
    ClientOptions, HeaderMap, HeaderValue,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
        ReqwestConnector,
    },
};

/// How much of the page that comes with a refusal is read.
const PAGE: usize = 4096;
/// How long a server may ask to be left alone.
const LONGEST: u64 = 60;

/// Why a request gave nothing.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// What the server answered, if it did.
    pub(crate) status: Option<u16>,
    /// How long it wants to be left alone, if it said so.
    pub(crate) after: Option<Duration>,
    /// Whether the server is not the one that it should be.
    stranger: bool,
    message: String,
}

impl Fault {
    /// Of this error, if it was one of the requests made here.
    pub(crate) fn of<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(fault) = error.downcast_ref() {
                return Some(fault);
            }
            next = error.source();
        }
        None
    }

    /// Whether it may be gone at the next attempt.
    pub(crate) fn may_pass(&self) -> bool {
        self.status.map_or(!self.stranger, passes)
    }

    fn broken(error: &HttpError) -> Self {
        Self { status: None, after: None, stranger: is_of_certificate(error), message: innermost(error) }
    }

    async fn refused(response: HttpResponse) -> Self {
        let status = response.status().as_u16();
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let after = text("retry-after").and_then(|text| text.trim().parse().ok());
        let region = text("x-amz-bucket-region").map(|region| format!("; the bucket is in {region}"));
        let known = match status {
            200 => {
                "all bytes instead of those asked for: it serves no ranges, so only files that end within the first 256 KiB can be read from it"
            }
            301 | 302 | 307 | 308 => "that it is elsewhere",
            401 => "that it wants to know who asks",
            403 => "that this is forbidden",
            404 => "that there is no such file",
            _ => "",
        };
        let known = if known.is_empty() { String::new() } else { format!(": {known}") };
        let said = if status == 200 { String::new() } else { page(response).await };
        let message = format!("the server answered {status}{known}{}{said}", region.unwrap_or_default());
        let after = after.map(|seconds: u64| Duration::from_secs(seconds.min(LONGEST)));
        Self { status: Some(status), after, stranger: false, message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Fault {}

/// Whether a later request may be answered otherwise.
fn passes(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599) && !matches!(status, 501 | 505)
}

/// Whether a server was left because of its certificate.
fn is_of_certificate(error: &(dyn StdError + 'static)) -> bool {
    if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return true;
    }
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        // What such an error holds is no source of it.
        Some(held) => is_of_certificate(held),
        None => error.source().is_some_and(is_of_certificate),
    }
}

/// What an error is at bottom; those above it say where in the client it went through.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The code and the message of the page that S3, Google and Azure send with a refusal.
async fn page(response: HttpResponse) -> String {
    let mut body = response.into_body().bytes_stream();
    let mut page = Vec::new();
    while let Some(Ok(bytes)) = body.next().await {
        page.extend_from_slice(&bytes);
        if page.len() > PAGE {
            break;
        }
    }
    let page = String::from_utf8_lossy(&page);
    let inside = |name: &str| {
        let (_, rest) = page.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0.trim())
    };
    match (inside("Code"), inside("Message")) {
        (Some(code), Some(message)) => format!("; {code}: {message}"),
        (Some(code), None) => format!("; {code}"),
        _ => String::new(),
    }
}

/// Makes clients that answer with a [`Fault`] where a server does not give what it was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Connect;

impl HttpConnector for Connect {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Wire(ReqwestConnector::default().connect(options)?)))
    }
}

/// A client that was made before: one for all URLs of http, so that they share connections.
#[derive(Debug, Clone)]
pub(crate) struct Made(pub(crate) HttpClient);

impl HttpConnector for Made {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(self.0.clone())
    }
}

#[derive(Debug)]
struct Wire(HttpClient);

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // What is not compressed has the length that it says.
        request.headers_mut().insert("accept-encoding", HeaderValue::from_static("identity"));
        authorize(&mut request);
        let asked = request.headers().get("range").and_then(range);
        let found = self.0.execute(request).await;
        let mut response = found.map_err(|error| fault(Fault::broken(&error)))?;
        let status = response.status().as_u16();
        match asked {
            Some(asked) if status == 200 => match whole(response.headers(), asked) {
                // A server without ranges, and a file that lies within what was asked for.
                Some(range) => {
                    response.headers_mut().insert("content-range", range);
                    let (mut parts, body) = response.into_parts();
                    parts.status = 206.try_into().unwrap_or(parts.status);
                    Ok(HttpResponse::from_parts(parts, body))
                }
                None => Err(fault(Fault::refused(response).await)),
            },
            Some(_) if status != 206 => Err(fault(Fault::refused(response).await)),
            None if passes(status) => Err(fault(Fault::refused(response).await)),
            // What else is refused, the services' own clients understand.
            _ => Ok(response),
        }
    }
}

/// The kind keeps object_store from trying again by itself: that is done here, where it is known what has come.
fn fault(fault: Fault) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, fault)
}

/// The first and the last byte that a request asks for.
fn range(value: &HeaderValue) -> Option<(u64, u64)> {
    let (first, last) = value.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// What a server with ranges would have said to an answer that is all of the file.
fn whole(headers: &HeaderMap, (first, last): (u64, u64)) -> Option<HeaderValue> {
    let len = headers.get("content-length")?.to_str().ok()?.parse::<u64>().ok()?;
    let fits = first == 0 && len > 0 && len - 1 <= last;
    fits.then(|| format!("bytes 0-{}/{len}", len - 1).parse().ok()).flatten()
}

/// Turns the `user:password@` of a URL into the header that it stands for.
fn authorize(request: &mut HttpRequest) {
    let uri = request.uri();
    let Some((who, server)) = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@'))
    else {
        return;
    };
    let header = format!("Basic {}", STANDARD.encode(decoded(who)));
    let (scheme, rest) = (uri.scheme_str().unwrap_or("https"), uri.path_and_query());
    let plain = format!("{scheme}://{server}{}", rest.map_or("/", |rest| rest.as_str()));
    if let (Ok(plain), Ok(header)) = (plain.parse(), header.parse()) {
        *request.uri_mut() = plain;
        request.headers_mut().insert("authorization", header);
    }
}

/// The bytes of a text with `%41` in it.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => (bytes.push(byte), rest = tail.get(2..).unwrap_or_default()),
            None => (bytes.push(*first), rest = tail),
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;

    use super::*;

    #[test]
    fn who_asks_moves_from_the_url_to_a_header() {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = "http://me:p%40ss@host:81/a?b=c".parse().unwrap();
        authorize(&mut request);
        assert_eq!(request.uri().to_string(), "http://host:81/a?b=c");
        assert_eq!(request.headers()["authorization"], "Basic bWU6cEBzcw==");
        assert_eq!(decoded("100%"), b"100%");
    }

    #[test]
    fn a_whole_file_counts_where_it_is_not_longer_than_what_was_asked_for() {
        let mut headers = HeaderMap::new();
        assert_eq!(whole(&headers, (0, 99)), None);
        headers.insert("content-length", HeaderValue::from_static("100"));
        assert_eq!(whole(&headers, (0, 99)).unwrap(), "bytes 0-99/100");
        assert_eq!((whole(&headers, (0, 98)), whole(&headers, (1, 200))), (None, None));
    }
}
