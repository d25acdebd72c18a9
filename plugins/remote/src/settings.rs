//! What can be set, and the environment variables that set it.

use std::{fmt, path::PathBuf, time::Duration};

use forebay_core::{Error, Result, parse_bytes};

/// How much is kept, fetched ahead and tried again, and what the services' own variables say.
///
/// ```
/// let settings = forebay_remote::Settings { attempts: 3, ..Default::default() };
/// let store = forebay_remote::RemoteStore::with(settings)?;
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Settings {
    /// Bytes of objects kept in memory; three quarters of them at most are ahead of their readers, half by [`Prefetch`](crate::Prefetch).
    pub memory: u64,
    /// Bytes that are asked for ahead of a reader that goes forwards; 0 for none.
    pub ahead: u64,
    /// How often one request is tried in all.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles with each, up to 20 seconds.
    pub pause: Duration,
    /// How long a server may send nothing.
    pub timeout: Duration,
    /// How many bytes a second a server must send at least, on average over the time that it may send nothing; 0 for none.
    pub rate: u64,
    /// The folder of the cache on disk, if there is to be one.
    pub cache: Option<PathBuf>,
    /// About how many bytes that folder may hold.
    pub cache_bytes: u64,
    /// The services' variables: `AWS_…`, `GOOGLE_…`, `AZURE_…`, each with its value.
    pub variables: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory: 192 << 20,
            ahead: 16 << 20,
            attempts: 8,
            pause: Duration::from_millis(100),
            timeout: Duration::from_secs(30),
            rate: 1000,
            cache: None,
            cache_bytes: 16 << 30,
            variables: Vec::new(),
        }
    }
}

/// The services' variables by name alone: some hold secrets.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, ahead, attempts, pause, timeout, rate, cache, cache_bytes, variables } = self;
        let names: Vec<_> = variables.iter().map(|(name, _)| name).collect();
        f.debug_struct("Settings")
            .field("memory", memory)
            .field("ahead", ahead)
            .field("attempts", attempts)
            .field("pause", pause)
            .field("timeout", timeout)
            .field("rate", rate)
            .field("cache", cache)
            .field("cache_bytes", cache_bytes)
            .field("variables", &names)
            .finish()
    }
}

/// What the services' variables begin with.
const SERVICES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

impl Settings {
    /// What the environment of this process says.
    ///
    /// # Errors
    /// `Invalid`, naming the variable that holds no number.
    pub fn from_env() -> Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::read(std::env::vars_os().filter_map(text))
    }

    fn read(variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let mut this = Self::default();
        for (name, value) in variables {
            let number = || {
                value.parse::<u64>().map_err(|_| {
                    let message = format!("found {value:?}, expected a whole number");
                    Error::invalid(message).context("variable", &name)
                })
            };
            let size = || parse_bytes(&value).map_err(|error| error.context("variable", &name));
            match name.as_str() {
                "FOREBAY_CACHE" if !value.is_empty() => this.cache = Some(value.into()),
                "FOREBAY_CACHE_BYTES" => this.cache_bytes = size()?,
                "FOREBAY_REMOTE_MEMORY" => this.memory = size()?,
                "FOREBAY_REMOTE_AHEAD" => this.ahead = size()?,
                "FOREBAY_REMOTE_ATTEMPTS" => {
                    this.attempts = u32::try_from(number()?).unwrap_or(u32::MAX).max(1);
                }
                "FOREBAY_REMOTE_RATE" => this.rate = number()?,
                "FOREBAY_REMOTE_TIMEOUT" => this.timeout = Duration::from_secs(number()?.max(1)),
                _ if SERVICES.iter().any(|service| name.starts_with(service)) => {
                    this.variables.push((name, value));
                }
                _ => {}
            }
        }
        // So that later ones of two names for one thing win alike everywhere.
        this.variables.sort();
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings> {
        Settings::read(variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn variables_are_read_and_others_passed_over() {
        let settings = read(&[
            ("FOREBAY_CACHE", "/tmp/cache"),
            ("FOREBAY_CACHE_BYTES", "1000"),
            ("FOREBAY_REMOTE_MEMORY", "64M"),
            ("FOREBAY_REMOTE_ATTEMPTS", "0"),
            ("FOREBAY_REMOTE_TIMEOUT", "7"),
            ("HOME", "/root"),
            ("AWS_REGION", "eu-west-1"),
        ])
        .unwrap();
        assert_eq!((settings.cache_bytes, settings.attempts, settings.timeout.as_secs()), (1000, 1, 7));
        assert_eq!(settings.memory, 64_000_000);
        assert_eq!(settings.cache, Some("/tmp/cache".into()));
        assert_eq!(settings.variables, [("AWS_REGION".to_owned(), "eu-west-1".to_owned())]);
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = read(&[("AWS_SECRET_ACCESS_KEY", "geheim")]).unwrap();
        let shown = format!("{settings:?}");
        assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && !shown.contains("geheim"), "{shown}");
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        let error = read(&[("FOREBAY_REMOTE_MEMORY", "many")]).unwrap_err();
        assert_eq!(error.get("variable"), Some("FOREBAY_REMOTE_MEMORY"));
    }
}
