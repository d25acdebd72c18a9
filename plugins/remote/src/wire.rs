//! Requests on their way to a server: what its refusals mean, before object_store makes one error of them all.

use std::{error::Error as StdError, fmt, io, time::Duration};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::{
    ClientOptions, HeaderMap, HeaderValue,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
        HttpService, ReqwestConnector,
    },
};

use crate::table::BLOCK;

/// How much of the page that comes with a refusal is read.
const PAGE: usize = 4096;
/// How much may come where no range was asked for: a page of a listing, or who somebody is.
const WHOLE: u64 = 64 << 20;
/// How long a server may ask to be left alone.
const LONGEST: u64 = 60;

/// Why a request gave nothing.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// What the server answered, if it did.
    pub(crate) status: Option<u16>,
    /// How long it wants to be left alone, if it said so.
    pub(crate) after: Option<Duration>,
    /// Whether another attempt would end alike.
    lasting: bool,
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
        self.status.map_or(!self.lasting, passes)
    }

    fn broken(error: &HttpError) -> Self {
        let lasting = is_of_certificate(error) || is_of_redirects(error);
        Self { status: None, after: None, lasting, message: innermost(error) }
    }

    /// Of an answer that came, and is not what it should be.
    fn answer(status: u16, message: impl Into<String>) -> Self {
        Self { status: Some(status), after: None, lasting: true, message: message.into() }
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
        Self { after, ..Self::answer(status, message) }
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

/// Whether a server sent the client from one place to the next, again and again.
fn is_of_redirects(error: &(dyn StdError + 'static)) -> bool {
    let here = error.downcast_ref().is_some_and(reqwest::Error::is_redirect);
    here || error.source().is_some_and(is_of_redirects)
}

/// What an error is at bottom; those above it say where in the client it went through.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// What an error says, and all below it, without what has URLs in it, which may hold secrets.
pub(crate) fn plain(error: &(dyn StdError + 'static)) -> String {
    let message = error.to_string();
    match error.source() {
        Some(source) if message.contains("://") => plain(source),
        _ => message,
    }
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
        match asked {
            Some(asked) => self.part(request, asked).await,
            None => {
                let host = request.uri().host().map(str::to_owned).unwrap_or_default();
                let found = self.whole(request).await;
                // Who somebody is may be asked of a server that he never named.
                found.map_err(|fault| Fault { message: format!("asking {host}: {}", fault.message), ..fault })
            }
        }
        .map_err(fault)
    }
}

impl Wire {
    /// A part of a file.
    async fn part(&self, request: HttpRequest, asked: (u64, u64)) -> Result<HttpResponse, Fault> {
        let response = self.0.execute(request).await.map_err(|error| Fault::broken(&error))?;
        let mut response = match response.status().as_u16() {
            206 => response,
            200 => part_of(response, asked).await?,
            _ => return Err(Fault::refused(response).await),
        };
        let headers = needed(response.headers());
        if let Some(range) = headers.get("content-range").filter(|range| length(range).is_none()) {
            return Err(Fault::answer(
                206,
                format!("the server sent bytes of a range that is none: {range:?}"),
            ));
        }
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// All that there is: no file, but what services say of them, and of who asks.
    async fn whole(&self, request: HttpRequest) -> Result<HttpResponse, Fault> {
        let (head, put) = (request.method() == "HEAD", request.method() == "PUT");
        let response = self.0.execute(request).await.map_err(|error| Fault::broken(&error))?;
        let status = response.status();
        // By this refusal object_store knows that Amazon's older service tells who asks.
        let understood = status.is_success() || (put && status == 403);
        if !understood {
            return Err(Fault::refused(response).await);
        }
        let (mut parts, body) = response.into_parts();
        if head {
            parts.headers = needed(&parts.headers);
        }
        // object_store would take as much memory as the server says at once.
        Ok(HttpResponse::from_parts(parts, all(body, status.as_u16(), WHOLE).await?.into()))
    }
}

/// The headers of a file by which it is known; others may be wrong, and nobody asks for them.
fn needed(headers: &HeaderMap) -> HeaderMap {
    let mut needed = HeaderMap::new();
    for name in ["content-length", "content-range", "etag", "last-modified"] {
        if let Some(value) = headers.get(name) {
            needed.insert(name, value.clone());
        }
    }
    if needed.contains_key("etag") {
        // Two of the services' clients want one, which tells nothing more.
        needed.insert("last-modified", HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
    }
    if !needed.contains_key("content-length")
        && let Some(len) = needed.get("content-range").and_then(length)
    {
        needed.insert("content-length", len.into());
    }
    needed
}

/// How many bytes an answer has by its `Content-Range`.
fn length(value: &HeaderValue) -> Option<u64> {
    let (range, _) = value.to_str().ok()?.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
}

/// All of a body, if that is not more than so many bytes.
async fn all(body: HttpResponseBody, status: u16, most: u64) -> Result<Bytes, Fault> {
    let (mut body, mut all) = (body.bytes_stream(), Vec::new());
    while let Some(bytes) = body.next().await {
        all.extend_from_slice(&bytes.map_err(|error| Fault::broken(&error))?);
        if all.len() as u64 > most {
            let message = format!("the server sent more than {most} bytes, where that is the most expected");
            return Err(Fault::answer(status, message));
        }
    }
    Ok(all.into())
}

/// What a server with ranges would have answered, of an answer with all of a file that ends within the part that was asked for.
async fn part_of(response: HttpResponse, (first, last): (u64, u64)) -> Result<HttpResponse, Fault> {
    let len = response.headers().get("content-length").and_then(|len| len.to_str().ok()?.parse::<u64>().ok());
    let len = match len {
        Some(0) => return Err(Fault::answer(416, "the server answered that there are no bytes")),
        Some(len) if first < len && len - 1 <= last && (first == 0 || len <= BLOCK) => len,
        _ => return Err(Fault::refused(response).await),
    };
    let (mut parts, mut body) = response.into_parts();
    if first > 0 {
        let all = all(body, 200, len).await?;
        // One that broke off is shorter.
        body = all.slice((first as usize).min(all.len())..).into();
    }
    parts.status = 206.try_into().unwrap_or(parts.status);
    let range = format!("bytes {first}-{}/{len}", len - 1);
    if let Ok(range) = range.parse() {
        parts.headers.insert("content-range", range);
    }
    parts.headers.insert("content-length", (len - first).into());
    Ok(HttpResponse::from_parts(parts, body))
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

/// Turns the `user:password@` of a URL into the header that it stands for.
fn authorize(request: &mut HttpRequest) {
    let uri = request.uri();
    let Some((who, server)) = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@'))
    else {
        return;
    };
    let mut who = decoded(who);
    // RFC 7617: a colon ends the name, though no word follows.
    if !who.contains(&b':') {
        who.push(b':');
    }
    let header = format!("Basic {}", STANDARD.encode(who));
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
    fn a_name_without_a_word_has_its_colon() {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = "http://token@host/a".parse().unwrap();
        authorize(&mut request);
        assert_eq!(request.headers()["authorization"], "Basic dG9rZW46");
    }

    #[test]
    fn no_more_of_a_body_is_held_than_was_expected() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let held = |most| runtime.block_on(all(vec![7; 10].into(), 200, most));
        assert_eq!(held(10).unwrap().len(), 10);
        let fault = held(9).unwrap_err();
        assert!(!fault.may_pass() && fault.to_string().contains("more than 9 bytes"), "{fault}");
    }

    #[test]
    fn the_length_of_a_part_is_known_by_its_range() {
        let of = |text| length(&HeaderValue::from_static(text));
        assert_eq!((of("bytes 3-5/9"), of("bytes 3-5/*")), (Some(3), Some(3)));
        for bad in ["", "bytes", "bytes */9", "bytes 5-3/9", "bytes 0-18446744073709551615/9", "3-5/9"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
