//! The one binary of Selvedge: command line and daemons. It holds wiring and output, no decisions.

mod args;
mod command;
mod input;
mod names;
mod output;
mod rules;
mod suggest;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

/// A compile makes and drops many small values; the C library's allocator gets slower the more there are.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return output::usage(&args::explained(error)),
    };
    match command::run(args) {
        Ok(verdict) => output::finish(verdict),
        Err(error) => output::failure(&error),
    }
}
