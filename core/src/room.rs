//! Memory that is asked for before it is used. If the system has no more, the sample fails, and the program goes
//! on.

use crate::{Error, Result};

/// Below this nobody asks: the system has so much, or nothing goes on.
const LARGE: u64 = 1 << 20;

/// Asks the system whether it would give `len` bytes now. It is for code that allocates by itself and cannot fail,
/// such as a library.
///
/// Cost: two system calls for 1 MiB and more, none for less.
///
/// # Errors
/// `Limit` if it would not.
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
/// `Limit` if the system does not give them.
pub fn zeroed(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| refused(len as u64))?;
    bytes.resize(len, 0);
    Ok(bytes)
}

fn refused(len: u64) -> Error {
    Error::limit(format!("the system has no {len} bytes left for a sample: add memory, or use fewer threads"))
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
