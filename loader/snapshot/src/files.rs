//! The files that a place lies in: their state when they were read, and whether it changed.

use std::{fs, io::ErrorKind};

use forebay_core::{local_path, scheme_of, shown};
use forebay_registry::Registry;
use serde::{Deserialize, Serialize};

/// A file that the place of a node lies in, as it was when the node got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FileMark {
    /// Its path or URL.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The time of its last change, in nanoseconds since 1970; `None` for objects in a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<i64>,
}

impl FileMark {
    /// A local file; none for a pipe or a folder, for one without bytes, and for one that is not there.
    pub(crate) fn local(path: &str) -> Option<Self> {
        let near = (!is_far(path)).then(|| Self::stat(path).ok()).flatten();
        near.filter(|file| file.size > 0)
    }

    /// As [`local`](Self::local), or what a store has, by its size. A URL with a secret is none: a snapshot must not hold it.
    pub(crate) fn look(path: &str, registry: &Registry) -> Option<Self> {
        if !is_far(path) {
            return Self::local(path);
        }
        if shown(path) != path {
            return None;
        }
        let size = registry.store(scheme_of(path)).and_then(|store| store.size(path)).ok()?;
        Some(Self { path: path.to_owned(), size, changed: None })
    }

    fn stat(path: &str) -> std::io::Result<Self> {
        let data = fs::metadata(local_path(path))?;
        if !data.is_file() {
            return Err(ErrorKind::Unsupported.into());
        }
        let changed = data.modified()?;
        let nanos = |time: std::time::Duration| i64::try_from(time.as_nanos()).ok();
        let changed = match changed.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => nanos(since),
            Err(before) => nanos(before.duration()).map(|nanos| -nanos),
        };
        Ok(Self { path: path.to_owned(), size: data.len(), changed })
    }

    /// How the file differs from what it was; none where it does not, or where nobody can tell.
    pub(super) fn difference(&self, registry: &Registry) -> Option<String> {
        let Self { path, size, changed } = self;
        let name = shown(path);
        if is_far(path) {
            let now = registry.store(scheme_of(path)).and_then(|store| store.size(path)).ok()?;
            return (now != *size).then(|| format!("file {name}: was {size} bytes, is {now}"));
        }
        match Self::stat(path) {
            Ok(now) if now.size != *size => {
                Some(format!("file {name}: was {size} bytes, is {} bytes", now.size))
            }
            Ok(now) if now.changed != *changed => {
                let [was, is] = [*changed, now.changed].map(|time| time.map_or("?".to_owned(), date));
                Some(format!("file {name}: was last changed {was}, is last changed {is}"))
            }
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(format!("file {name}: was {size} bytes, is gone"))
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Some(format!("file {name}: was {size} bytes, is not a regular file"))
            }
            Err(error) => Some(format!("file {name}: was {size} bytes, cannot be read: {error}")),
        }
    }
}

/// Whether a path is a URL of some store, and not one of a plain path.
fn is_far(path: &str) -> bool {
    scheme_of(path) != scheme_of("")
}

/// A time in nanoseconds since 1970, as people write it.
fn date(nanos: i64) -> String {
    let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March here, so that the day of a leap year is the last; an era has 400 of them.
    let (era, day) = ((days + 719_468).div_euclid(146_097), (days + 719_468).rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:03} UTC", rest / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        for (nanos, wanted) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_827_696_123_000_000, "2000-02-29 12:34:56.123 UTC"),
            (1_704_067_199_999_000_000, "2023-12-31 23:59:59.999 UTC"),
            (-1_000_000, "1969-12-31 23:59:59.999 UTC"),
        ] {
            assert_eq!(date(nanos), wanted);
        }
    }

    #[test]
    fn only_regular_files_with_bytes_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("full"), "abc").unwrap();
        fs::write(path("empty"), "").unwrap();
        assert_eq!(FileMark::local(&path("full")).unwrap().size, 3);
        assert_eq!(FileMark::local(&format!("file://{}", path("full"))).unwrap().size, 3);
        for other in [path("empty"), path("none"), path(""), "http://host/a".to_owned()] {
            assert_eq!(FileMark::local(&other), None, "{other}");
        }
    }
}
