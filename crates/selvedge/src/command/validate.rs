//! `selvedge validate`

use compiler::compile;

use super::{
    problems::{self, Counts},
    raw,
};
use crate::{
    args::{Format, Validate},
    output::{self, Style, Verdict, counted, styled},
};

pub(super) fn run(args: &Validate) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let problems = &raw::with_refused_lines(&world, &compilation);
    let has_errors = compilation.has_errors() || !world.unknown.is_empty();
    let counts = if args.output == Format::Table {
        problems::lines(&world, problems)
    } else {
        output::documents(args.output, &problems::values(&world, problems))?;
        Counts::of(&problems::diagnostics(&world, problems))
    };
    let is_refused = args.strict && counts.warnings > 0;
    if args.output == Format::Table {
        if let Some(line) = world.passed_over() {
            output::note(&line);
        }
        if !has_errors {
            problems::without_nodes(&world);
        }
        let objects = counted(world.origins.len(), "object");
        let hidden = counts.hidden_words();
        let words = counts.words();
        let of_objects = if world.origins.is_empty() {
            String::new()
        } else {
            format!(" in {objects}")
        };
        let verdict = match (has_errors || is_refused, words.is_empty()) {
            (true, _) => {
                let strict = if has_errors { "" } else { " (--strict)" };
                styled(Style::Red, &format!("{words}{of_objects}{strict}{hidden}"))
            }
            (false, _) if world.origins.is_empty() => "no objects of Selvedge's kinds".to_owned(),
            (false, true) => styled(Style::Green, &format!("{objects} valid")),
            (false, false) => styled(Style::Yellow, &format!("{objects} valid; {words}{hidden}")),
        };
        output::text(&format!("{}\n", output::wrapped(&verdict, 2)));
    }
    Ok(if has_errors || is_refused {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}
