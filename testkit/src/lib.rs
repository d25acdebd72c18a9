//! Tools for the tests of a plugin: a small [`Host`], [`Damage`] to files, and the limits of its effect
//! ([`Costs`]).
//!
//! This example runs a decoder, as a host does, on a file that is cut off and changed everywhere:
//!
//! ```
//! use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};
//! use forebay_testkit::{Damage, Host};
//!
//! /// A byte that says how many follow, and those.
//! struct Counted;
//!
//! impl Decoder for Counted {
//!     const INFO: DecoderInfo = DecoderInfo { name: "counted", summary: "Counted bytes", ..DecoderInfo::DEFAULT };
//!     type Options = NoOptions;
//!
//!     fn new(_: NoOptions) -> Result<Self> {
//!         Ok(Self)
//!     }
//!
//!     fn probe(&self, _: &[u8], _: &str) -> u8 {
//!         1
//!     }
//!
//!     fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
//!         match bytes.split_first() {
//!             Some((count, rest)) if usize::from(*count) == rest.len() => Ok(bytes.slice(1..bytes.len()).into()),
//!             _ => Err(Error::corrupt("the count is wrong")),
//!         }
//!     }
//! }
//!
//! let host = Host::new();
//! let decode = |bytes: Vec<u8>| Counted.decode(&bytes.into(), &Wanted::default(), &host.context());
//! let whole = vec![3, b'a', b'b', b'c'];
//! assert!(decode(whole.clone()).is_ok());
//!
//! let damage = Damage::new(whole, 4096);
//! for form in 0..damage.forms() {
//!     // Cut off, or with another count, it is refused; what the other bytes are is not its business.
//!     assert_eq!(decode(damage.form(form)).is_ok(), damage.form(form).len() == 4 && damage.form(form)[0] == 3);
//! }
//! ```

mod answers;
#[cfg(feature = "conformance")]
pub mod conformance;
mod costs;
mod damage;
mod host;

pub use answers::answers;
pub use costs::Costs;
pub use damage::Damage;
pub use host::{Choice, Host, decoder, logged};
