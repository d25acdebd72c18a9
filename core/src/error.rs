//! The one error type: what went wrong, where, why, and what to do.

use std::{
    borrow::Cow,
    error, fmt, io,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

use forebay_abi::{Fault, Key, abi_stable::std_types::Tuple2};

use crate::without_secrets;

/// The kind of an [`Error`]: what you can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ErrorKind {
    /// The system could not read or write. Trying again can help.
    Io = 1,
    /// The bytes break the rules of their format. Repair the file, or leave it out.
    Corrupt = 2,
    /// The bytes are right, but this feature of the format is not handled.
    Unsupported = 3,
    /// The graph, an option or an argument is wrong.
    Invalid = 4,
    /// A limit was reached before memory was taken. Raise it if you trust the input.
    Limit = 5,
    /// The plugin does not fit this host; rebuild it.
    Abi = 6,
    /// The plugin's code panicked. Its state is lost, so a pipe with state takes no more calls.
    Panic = 7,
    /// A worker died.
    Worker = 8,
    /// The run was stopped from outside.
    Cancelled = 9,
    /// Forebay broke one of its own promises; please report it.
    Bug = 10,
}

impl ErrorKind {
    /// The kind with this number, or [`ErrorKind::Bug`] for a number of a newer release.
    #[must_use]
    pub fn from_code(code: u32) -> Self {
        use ErrorKind::*;
        [Io, Corrupt, Unsupported, Invalid, Limit, Abi, Panic, Worker, Cancelled, Bug]
            .into_iter()
            .find(|kind| *kind as u32 == code)
            .unwrap_or(Bug)
    }

    /// The kind's name, as printed in messages and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Invalid => "invalid",
            Self::Limit => "limit",
            Self::Abi => "abi",
            Self::Panic => "panic",
            Self::Worker => "worker",
            Self::Cancelled => "cancelled",
            Self::Bug => "bug",
        }
    }
}

/// The result of anything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: a [kind](ErrorKind), a message, and the places it happened, innermost first.
///
/// The message is a lower-case fragment that says what was found and what was expected.
/// Every layer that knows more (file, member, pipe, plugin) adds one [`context`](Error::context).
///
/// | name | what it is | method |
/// |---|---|---|
/// | `file` | the file, or its URL | [`file`](Error::file) |
/// | `member` | the part of the file that a sample is: a member of a tar, a row | [`member`](Error::member) |
/// | `sample` | the sample's key | [`key`](Error::key) |
/// | `field` | the field of the sample | |
/// | `byte`, `line`, `row`, `record` | the place in the file or in the field | |
/// | `pipe` | the pipe that failed; `node` is its name in the graph | [`pipe`](Error::pipe) |
/// | `option` | the option of the pipe | |
/// | `decoder` | the decoder that failed | |
/// | `plugin` | the plugin of the pipe or decoder, with its version | [`plugin`](Error::plugin) |
/// | `next` | what to do | |
///
/// Plugins may add others. [`contexts`](Error::contexts) has all of them, [`get`](Error::get) one by its name.
///
/// ```
/// use forebay_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Corrupt, "header checksum is 12, expected 4711")
///     .context("byte", 512)
///     .context("file", "shard-0001.tar");
/// assert_eq!(
///     error.to_string(),
///     "header checksum is 12, expected 4711 (corrupt; byte 512, file shard-0001.tar)",
/// );
/// assert_eq!(error.file(), Some("shard-0001.tar"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(String, String)>,
    /// What the error of another world is found by.
    cookie: Option<u64>,
    source: Source,
}

/// The error that one was made of. It says nothing that the message does not say, so errors are equal without it.
#[derive(Clone, Default)]
struct Source(Option<Arc<dyn error::Error + Send + Sync>>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}

// Nobody changes an error once it is made, so a panic leaves none half changed.
impl UnwindSafe for Source {}
impl RefUnwindSafe for Source {}

/// The name under which a cookie goes from library to library, which no place has.
const COOKIE: &str = "\0cookie";

impl Error {
    /// Makes an error of `kind` with this `message`. URLs in it lose their secrets, as in every
    /// [`context`](Error::context): see [`without_secrets`].
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = clean(message.into());
        Self(Box::new(Inner { kind, message, context: Vec::new(), cookie: None, source: Source::default() }))
    }

    /// Makes an error of any other error, so that a closure or pipe can return errors of other libraries, by `?`
    /// and `map_err(Error::other)`.
    ///
    /// The message joins the texts of the error and its [sources](std::error::Error::source), with `: ` between
    /// them. The kind is [`ErrorKind::Io`] for an error of [`std::io`], and [`ErrorKind::Invalid`] for others. An
    /// [`Error`] stays as it is.
    ///
    /// [`source`](std::error::Error::source) returns the original error, in the library that made it. The host and
    /// other processes get only the text. If you need more, use [`with_cookie`](Error::with_cookie).
    ///
    /// ```
    /// use std::error::Error as _;
    /// use forebay_core::{Error, ErrorKind};
    ///
    /// let parse = |text: &str| text.parse::<u32>().map_err(Error::other);
    /// let error = parse("heron").unwrap_err().context("field", "label");
    /// assert_eq!(error.to_string(), "invalid digit found in string (invalid; field label)");
    /// assert!(error.source().is_some_and(|source| source.is::<std::num::ParseIntError>()));
    ///
    /// let error = Error::other("the scale is 0, expected more");
    /// assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, "the scale is 0, expected more"));
    /// ```
    pub fn other(error: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        let error = match error.into().downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let kind = if error.is::<io::Error>() { ErrorKind::Io } else { ErrorKind::Invalid };
        let mut message = error.to_string();
        let mut next = error.source();
        while let Some(source) = next {
            let text = source.to_string();
            // Some say what their source says.
            if !message.ends_with(&text) {
                message = format!("{message}: {text}");
            }
            next = source.source();
        }
        let mut made = Self::new(kind, message);
        made.0.source = Source(Some(error.into()));
        made
    }

    /// An [`ErrorKind::Corrupt`] error.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// An [`ErrorKind::Unsupported`] error.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// An [`ErrorKind::Invalid`] error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// An [`ErrorKind::Limit`] error.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// An [`ErrorKind::Bug`] error.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message)
    }

    /// Adds where it happened: a `name` such as `file`, `member` or `pipe`, and its `value`.
    ///
    /// If the name exists, the old value is kept, because the inner layer knew better.
    #[must_use]
    pub fn context(mut self, name: &str, value: impl fmt::Display) -> Self {
        if self.get(name).is_none() {
            self.0.context.push((name.to_owned(), clean(value.to_string())));
        }
        self
    }

    /// Adds the key of the sample. If the sample is a member of a file, it adds `file` and `member` too.
    #[must_use]
    pub fn of_sample(self, key: &Key) -> Self {
        let error = self.context("sample", key);
        match key.origin.is_empty() || key.name.is_empty() {
            true => error,
            false => error.context("file", &key.origin).context("member", &key.name),
        }
    }

    /// Adds a number by which the code that made the error finds its cause, such as a Python exception. The number
    /// passes through every [`context`](Error::context), plugin and worker process, and is not printed.
    ///
    /// ```
    /// use forebay_core::Error;
    ///
    /// let error = Error::invalid("the function raised ValueError").with_cookie(7).context("pipe", "map");
    /// assert_eq!(error.cookie(), Some(7));
    /// ```
    #[must_use]
    pub fn with_cookie(mut self, cookie: u64) -> Self {
        self.0.cookie = Some(cookie);
        self
    }

    /// The number that [`with_cookie`](Error::with_cookie) gave it.
    #[must_use]
    pub fn cookie(&self) -> Option<u64> {
        self.0.cookie
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, without the places.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The places, innermost first.
    #[must_use]
    pub fn contexts(&self) -> &[(String, String)] {
        &self.0.context
    }

    /// The place of this name, if some layer gave one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.context.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The file, or its URL, if one is known: the place called `file`.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.get("file")
    }

    /// The part of the file that the sample is, such as a member of a tar: the place called `member`.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        self.get("member")
    }

    /// The key of the sample, as text, if it happened to one: the place called `sample`.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.get("sample")
    }

    /// The pipe that failed, if one did: the place called `pipe`.
    #[must_use]
    pub fn pipe(&self) -> Option<&str> {
        self.get("pipe")
    }

    /// The plugin whose code failed, if one did: the place called `plugin`. The first one, if several may have.
    #[must_use]
    pub fn plugin(&self) -> Option<FailedPlugin<'_>> {
        let place = self.get("plugin")?;
        let (label, file) = place.split_once(" in ").unwrap_or((place, ""));
        let (name, version) = label.split_once(' ').unwrap_or((label, ""));
        let file = file.split(", ").next().unwrap_or_default();
        Some(FailedPlugin { name, version, file })
    }
}

/// The plugin whose code failed: see [`Error::plugin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedPlugin<'a> {
    /// The crate's name.
    pub name: &'a str,
    /// The crate's version; empty if it is not known.
    pub version: &'a str,
    /// The library's file, or `this program` if the plugin is linked in; empty if it is not known.
    pub file: &'a str,
}

/// The text without the secrets of URLs.
fn clean(text: String) -> String {
    match without_secrets(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.0.message, self.0.kind.name())?;
        for (index, (name, value)) in self.0.context.iter().enumerate() {
            let mark = if index == 0 { "; " } else { ", " };
            write!(f, "{mark}{name} {value}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {
    /// The error that [`other`](Error::other) was called with, in the same library. Its text is in the message.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        let source = self.0.source.0.as_ref()?;
        Some(&**source)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        // A plugin may have been built with a core that left secrets where they were.
        let context = fault.context.into_iter().map(|Tuple2(name, value)| (name.into(), clean(value.into())));
        let (cookies, context): (Vec<(String, String)>, _) =
            context.partition(|(name, _): &(String, String)| name == COOKIE);
        let cookie = cookies.first().and_then(|(_, value)| value.parse().ok());
        let kind = ErrorKind::from_code(fault.kind);
        let message = clean(fault.message.into());
        Self(Box::new(Inner { kind, message, context, cookie, source: Source::default() }))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let cookie = error.0.cookie.map(|cookie| (COOKIE.to_owned(), cookie.to_string()));
        let context = error.0.context.into_iter().chain(cookie);
        let context = context.map(|(name, value)| Tuple2(name.into(), value.into()));
        Self { kind: error.0.kind as u32, message: error.0.message.into(), context: context.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the lookup failed")
        }
    }

    impl error::Error for Outer {
        fn source(&self) -> Option<&(dyn error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_of_another_library_says_all_and_is_found_again() {
        let error = Error::other(Outer(io::Error::other("no http://me:word@host/a?key=1")));
        assert_eq!(error.message(), "the lookup failed: no http://host/a?…", "without secrets");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.clone().context("pipe", "map").source().unwrap().is::<Outer>());
        // What crosses has the text alone.
        let crossed = Error::from(Fault::from(error.clone()));
        assert!(crossed.source().is_none());
        assert_eq!(crossed, error, "the rest is the same");
    }

    #[test]
    fn kinds_are_kept_where_they_are_known() {
        let error = Error::other(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(error.kind(), ErrorKind::Io);
        let own = Error::corrupt("too short").context("byte", 7);
        assert_eq!(Error::other(own.clone()), own);
        assert!(Error::other(own).source().is_none());
    }

    #[test]
    fn places_have_methods() {
        let key = Key { origin: "a.tar".into(), name: "7.jpg".into(), ..Key::default() };
        let error = Error::corrupt("too short")
            .of_sample(&key)
            .context("pipe", "decode")
            .context("plugin", "forebay-image 1.0.0 in /p/libforebay_image.so");
        assert_eq!((error.file(), error.member()), (Some("a.tar"), Some("7.jpg")));
        let plugin = FailedPlugin { name: "forebay-image", version: "1.0.0", file: "/p/libforebay_image.so" };
        assert_eq!((error.pipe(), error.plugin()), (Some("decode"), Some(plugin)));
        assert_eq!(error.key(), Some(key.to_string().as_str()));
        assert_eq!(Error::corrupt("too short").file(), None);
    }

    #[test]
    fn an_error_may_be_caught_with_a_panic() {
        fn check<T: Send + Sync + RefUnwindSafe + UnwindSafe>(_: &T) {}
        check(&Error::other("x"));
    }
}
