//! The grammar of FRR: typed configuration, print, parse and diff.
//!
//! ```text
//! NodeNetworkConfig ──desired──► FrrConfig ──print──► frr.conf of a fresh boot
//!                                   │  ▲
//!              running-config ──parse  │
//!                                   ▼  │
//!                                  diff(running, desired) ──► Change: the least vtysh lines, in a safe order
//! ```
//!
//! This crate is pure: no process, no file, no clock. Every value that reaches a line is a parsed type, so a value can
//! never become a line of its own.
//!
//! # Guarantees
//! * `parse(print(c, v), v)` is `c` for every configuration [`desired`] makes.
//! * `diff(c, c)` is empty, and the lines of `diff(a, b)`, interpreted on `a`, give `b` with the sequence numbers of `a` where their order is of no account.
//! * A line that closes a BGP session is marked [`Disruption::SessionReset`], and the session is named.
//! * A password appears in no `Debug` and no `Display`.

pub mod config;
mod desired;
mod diff;
pub mod host;
mod lower;
pub mod names;
mod parse;
mod places;
mod print;
mod secret;
pub mod show;
mod text;
mod version;

pub use self::{
    config::FrrConfig,
    desired::{Unsupported, desired},
    diff::{Batch, Change, Disruption, Line, RouterChange, Session, Step, diff, with_numbers_of},
    parse::{Parsed, UnknownLine, parse},
    places::{Part, PlacedLine, placed_lines},
    print::print,
    secret::{InvalidPassword, Password, Secrets, hidden},
    version::{Features, FrrVersion, UnknownVersion},
};
