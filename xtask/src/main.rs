//! What developers run besides cargo itself: `cargo xtask <step>`; CI runs the same.

mod output;
mod prepare;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <step>

  prepare   fetch or build everything that the tests run: Kubernetes, guest kernels, FRR
";

fn main() -> ExitCode {
    let step = std::env::args().nth(1);
    let outcome = match step.as_deref() {
        Some("prepare") => prepare::run(),
        _ => {
            output::line(USAGE);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
