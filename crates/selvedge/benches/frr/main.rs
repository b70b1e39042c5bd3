//! `cargo xtask bench frr`: what the router of the host costs. Each part is a module; a missed budget of any is an error.
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints a table, and fails where it finds nothing"
)]

mod merge;

use std::process::ExitCode;

/// The allocator of the `selvedge` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let parts = [merge::run()];
    if parts.into_iter().all(|is_kept| is_kept) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
