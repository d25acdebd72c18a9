//! Memory that is asked for before it is used. If the system has no more, that is an error of the sample and
//! not the end of the program.

use crate::{Error, Result};

/// Below this nobody asks: the system has so much, or nothing goes on.
const LARGE: u64 = 1 << 20;

/// Asks the system whether it would give `len` bytes now, for code that takes them by itself and cannot fail, such as a library's.
///
/// Cost: two calls of the system for a MiB and more, none for less.
///
/// # Errors
/// `Limit`, when it would not.
pub fn room_for(len: u64) -> Result<()> {
    if len < LARGE {
        return Ok(());
    }
    let fits = usize::try_from(len).is_ok_and(|len| Vec::<u8>::new().try_reserve_exact(len).is_ok());
    if fits { Ok(()) } else { Err(refused(len)) }
}

/// This many zeros. Unlike `vec![0; len]`, it does not end the program if the system has no more memory.
///
/// # Errors
/// `Limit`, when the system does not give them.
pub fn zeroed(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| refused(len as u64))?;
    bytes.resize(len, 0);
    Ok(bytes)
}

fn refused(len: u64) -> Error {
    Error::limit(format!("the system has no {len} bytes for a sample: give it more memory, or fewer threads"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_nobody_has_is_an_error() {
        assert_eq!(zeroed(3).unwrap(), [0; 3]);
        assert!(room_for(0).is_ok() && room_for(64 << 20).is_ok());
        for error in
            [room_for(u64::MAX).unwrap_err(), room_for(1 << 62).unwrap_err(), zeroed(1 << 62).unwrap_err()]
        {
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        }
    }
}
