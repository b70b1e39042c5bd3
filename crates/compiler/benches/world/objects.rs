//! The clusters that benchmarks compile.
#![expect(
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a benchmark writes documents and reads how much memory it uses"
)]

pub(crate) mod running;

use std::fs;

pub(crate) use worlds::benchmark::*;

pub(crate) use self::running::Running;

/// A line of `/proc/self/status` in mebibytes, such as `VmRSS` or `VmHWM`.
pub(crate) fn memory(line: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let found = lines.find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kibibytes = found.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) / 1024.0
}
