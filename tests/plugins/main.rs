//! Plugins as their authors and users meet them.

mod exports;
mod hello;
mod inside;
mod kit;
mod layouts;
mod new;
mod targets;
