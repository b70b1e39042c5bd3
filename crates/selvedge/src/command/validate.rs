//! `selvedge validate`

use compiler::{Severity, compile};

use super::problems;
use crate::{
    args::{Format, Validate},
    output::{self, Style, Verdict, counted, styled},
};

pub(super) fn run(args: &Validate) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let has_errors = problems::show(args.output, &world, &compilation)?;
    if args.output == Format::Table {
        if let Some(line) = world.passed_over() {
            output::note(&line);
        }
        let errors = compilation
            .problems
            .iter()
            .filter(|problem| problem.severity() == Severity::Error)
            .count();
        let errors = errors + world.unknown.len();
        let objects = world.origins.len();
        let verdict = match (has_errors, objects) {
            (true, _) => styled(
                Style::Red,
                &format!(
                    "{} in {}",
                    counted(errors, "error"),
                    counted(objects, "object")
                ),
            ),
            (false, 0) => "no objects of Selvedge's kinds".to_owned(),
            (false, _) => styled(
                Style::Green,
                &format!("{} valid", counted(objects, "object")),
            ),
        };
        output::text(&format!("{verdict}\n"));
    }
    Ok(if has_errors {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}
