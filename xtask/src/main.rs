//! What developers run besides cargo itself: `cargo xtask <step>`; CI runs the same.

mod bench;
mod book;
mod explore;
mod output;
mod prepare;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <step>

  test      prepare everything and run all tests, ring by ring
  bench     measure: bench compile, bench pass, bench overlay, bench cli,
            bench frr, bench node, bench rollout
  explore   try all laws on new random inputs: explore --minutes N
  book      render the documentation as a book and check its links
  prepare   fetch or build everything that the tests run: Kubernetes, guest kernels, FRR, mdbook
";

fn main() -> ExitCode {
    let step = std::env::args().nth(1);
    let outcome = match step.as_deref() {
        Some("prepare") => prepare::run(),
        Some("test") => test::run(),
        Some("explore") => {
            let arguments: Vec<String> = std::env::args().skip(2).collect();
            explore::run(&arguments)
        }
        Some("book") => book::run(),
        Some("bench") => bench::run(std::env::args().skip(2)),
        Some(unknown) => Err(anyhow::anyhow!("no step {unknown}\n\n{USAGE}")),
        None => {
            output::line(USAGE);
            Ok(())
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
