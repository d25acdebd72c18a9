//! What fails is told, and nothing is lost in silence.

mod faults;
mod losses;
mod messages;
mod secrets;
