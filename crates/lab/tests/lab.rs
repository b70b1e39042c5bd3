//! The lab's own tests: real servers, real kernels, real routing daemons. A part that is missing fails the test.
#![expect(clippy::print_stderr, reason = "tests print their start-up times")]

#[path = "lab/control_plane.rs"]
mod control_plane;
#[path = "lab/fabric.rs"]
mod fabric;
#[path = "lab/frr.rs"]
mod frr;
#[path = "lab/guest.rs"]
mod guest;
#[path = "lab/local.rs"]
mod local;

/// Progress of the parts, shown with `--nocapture` and with failures.
fn progress(line: &str) {
    eprintln!("{line}");
}
