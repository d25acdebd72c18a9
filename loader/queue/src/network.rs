//! The queue between machines, or between programs that share nothing: a TCP or Unix stream socket.
//!
//! ```no_run
//! use forebay_queue::{Bounds, Receiver, network::{self, Listener}};
//!
//! # fn main() -> forebay_core::Result<()> {
//! let listener = Listener::bind("tcp:0.0.0.0:0")?;
//! println!("{} {}", listener.address()?, listener.secret());
//! let mut receiver = network::receiver(listener.accept()?, 1 << 30)?;
//! while let Some(message) = receiver.recv()? {
//!     println!("{} samples", message.chunk.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A frame begins with 40 bytes: its kind, the number of large buffers, the lengths of its control and flat bytes,
//! and its weight in the bound. Then come the lengths of the large buffers, the control bytes, the flat bytes, and
//! the buffers. Each buffer is read straight into its final memory. The receiver answers with how much it has
//! taken so far, in 16 bytes. So the bound covers everything between the two programs, the system's buffers too.
//!
//! Nothing is encrypted. The secret prevents wrong connections by accident, not attacks. In networks that you do
//! not trust, use a tunnel.

mod frame;
mod receiver;
mod sender;
mod stream;

use forebay_core::Result;

pub use self::{
    receiver::NetworkReceiver,
    sender::NetworkSender,
    stream::{Listener, NetworkLink, Secret, connect},
};
use super::Bounds;

/// The sending end of a queue over `link`. The other end receives.
///
/// # Errors
/// If the other end is no receiver, or the connection breaks.
pub fn sender(link: NetworkLink, bounds: Bounds) -> Result<NetworkSender> {
    link.agree(stream::QueueEnd::Sender)?;
    NetworkSender::new(link, bounds)
}

/// The receiving end of a queue over `link`. The other end sends. A message of more than `limit` bytes is refused.
///
/// # Errors
/// If the other end is no sender, or the connection breaks.
pub fn receiver(link: NetworkLink, limit: usize) -> Result<NetworkReceiver> {
    link.agree(stream::QueueEnd::Receiver)?;
    Ok(NetworkReceiver::new(link, limit))
}
