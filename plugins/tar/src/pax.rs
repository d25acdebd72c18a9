//! pax extended headers: records of the form `LENGTH KEY=VALUE\n`.

use std::borrow::Cow;

use forebay_core::{Error, Result};

use crate::header::part;

/// What pax records say about a member, as far as it changes what is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pax<'a> {
    pub(crate) path: Option<Cow<'a, [u8]>>,
    pub(crate) link: Option<Cow<'a, [u8]>>,
    pub(crate) size: Option<u64>,
    pub(crate) sparse: Option<SparseRecords<'a>>,
}

/// What pax records say about a sparse file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SparseRecords<'a> {
    /// The name that the file had before it was stored under another one.
    pub(crate) name: Option<Cow<'a, [u8]>>,
    pub(crate) size: Option<u64>,
    /// The version's first number: 1 for a map before the contents.
    pub(crate) major: u64,
    /// The map, where it is among the records.
    pub(crate) numbers: Vec<u64>,
}

impl<'a> Pax<'a> {
    /// Takes over the records of `body`; later ones win.
    pub(crate) fn read(&mut self, body: Cow<'a, [u8]>) -> Result<()> {
        let mut at = 0;
        while at < body.len() {
            // Some programs pad with NULs inside the stated size.
            if body.get(at..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0)) {
                break;
            }
            let record = Record::parse(&body, at).map_err(|error| error.context("record at", at))?;
            let value = part(&body, record.value);
            self.set(body.get(record.key).unwrap_or_default(), value)?;
            at = record.end;
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: Cow<'a, [u8]>) -> Result<()> {
        // POSIX: an empty value takes back what a global record said.
        let given = !value.is_empty();
        match key {
            b"path" => self.path = given.then_some(value),
            b"linkpath" => self.link = given.then_some(value),
            b"size" => self.size = if given { Some(decimal(&value)?) } else { None },
            _ => {
                if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
                    self.sparse.get_or_insert_default().set(key, value)?;
                }
            }
        }
        Ok(())
    }

    /// Takes over the records of a global header, which outlive its bytes.
    pub(crate) fn read_global(&mut self, body: &[u8]) -> Result<()> {
        let mut records = Pax::default();
        records.read(Cow::Owned(body.to_vec()))?;
        let Pax { path, link, size, .. } = records;
        let owned = |value: Cow<'_, [u8]>| Cow::Owned(value.into_owned());
        self.path = path.map(owned).or(self.path.take());
        self.link = link.map(owned).or(self.link.take());
        self.size = size.or(self.size);
        Ok(())
    }
}

impl<'a> SparseRecords<'a> {
    fn set(&mut self, key: &[u8], value: Cow<'a, [u8]>) -> Result<()> {
        match key {
            b"name" => self.name = Some(value),
            b"size" | b"realsize" => self.size = Some(decimal(&value)?),
            b"major" => self.major = decimal(&value)?,
            // Version 0.0 has a record for each number, 0.1 one for all.
            b"offset" | b"numbytes" => self.numbers.push(decimal(&value)?),
            b"map" => {
                for number in value.split(|&byte| byte == b',').filter(|text| !text.is_empty()) {
                    self.numbers.push(decimal(number)?);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Where one record's parts lie in the body.
struct Record {
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
    end: usize,
}

impl Record {
    fn parse(body: &[u8], start: usize) -> Result<Self> {
        let rest = body.get(start..).unwrap_or_default();
        let space = rest.iter().take(20).position(|&byte| byte == b' ');
        let Some(space) = space else {
            return Err(Error::corrupt("pax record without a length"));
        };
        let len = decimal(rest.get(..space).unwrap_or_default())?;
        let len = usize::try_from(len).ok().filter(|&len| len <= rest.len() && len > space + 1);
        let Some(len) = len else {
            return Err(Error::corrupt(format!(
                "pax record does not fit its header of {} bytes",
                body.len()
            )));
        };
        let text = rest.get(space + 1..len).unwrap_or_default();
        let equals = text.iter().position(|&byte| byte == b'=');
        let (Some(equals), Some(b'\n')) = (equals, text.last()) else {
            return Err(Error::corrupt("pax record is not `key=value` and a new line"));
        };
        let key = start + space + 1;
        Ok(Self { key: key..key + equals, value: key + equals + 1..start + len - 1, end: start + len })
    }
}

fn decimal(digits: &[u8]) -> Result<u64> {
    let number =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let start = digits.get(..digits.len().min(40)).unwrap_or_default();
        Error::corrupt(format!("pax number is `{}`, expected decimal digits", start.escape_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Pax<'_>> {
        let mut pax = Pax::default();
        pax.read(Cow::Borrowed(body))?;
        Ok(pax)
    }

    #[test]
    fn records_are_read_and_later_ones_win() {
        let pax = read(b"12 path=one\n12 path=two\n13 size=1234\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"two"[..]));
        assert_eq!(pax.size, Some(1234));
        assert!(pax.sparse.is_none());
        assert_eq!(read(b"22 GNU.sparse.major=1\n").unwrap().sparse.unwrap().major, 1);
        let map = read(b"25 GNU.sparse.map=1,2,30\n25 GNU.sparse.numbytes=4\n").unwrap().sparse.unwrap();
        assert_eq!(map.numbers, [1, 2, 30, 4]);
    }

    #[test]
    fn malformed_records_are_refused() {
        for body in
            ["13 path=one\n", "11 path=one\n", "path=one\n", "99999999999999999999 a=b\n", "6 abc\n", "2 \n"]
        {
            assert!(read(body.as_bytes()).is_err(), "{body:?}");
        }
        assert!(read(b"10 size=-7\n").is_err());
    }

    #[test]
    fn a_global_record_outlives_its_header_and_the_last_one_wins() {
        let mut global = Pax::default();
        global.read_global(b"12 path=one\n").unwrap();
        global.read_global(b"9 size=4\n").unwrap();
        assert_eq!((global.path.as_deref(), global.size), (Some(&b"one"[..]), Some(4)));
    }
}
