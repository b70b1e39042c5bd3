//! `selvedge completions` and `selvedge man`

use std::fs;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::{
    args::{Args, Completions, Man},
    output::{self, Verdict},
};

pub(super) fn completions(args: &Completions) -> anyhow::Result<Verdict> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "selvedge", &mut script);
    output::text(&String::from_utf8(script).context("the completions are not text")?);
    Ok(Verdict::Fine)
}

pub(super) fn pages(args: &Man) -> anyhow::Result<Verdict> {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Args::command())
            .render(&mut page)
            .context("failed to make the page")?;
        output::text(&String::from_utf8(page).context("the page is not text")?);
        return Ok(Verdict::Fine);
    };
    let place = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("failed to create {place}"))?;
    clap_mangen::generate_to(Args::command(), directory)
        .with_context(|| format!("failed to write pages to {place}"))?;
    output::note(&format!("wrote the man pages to {place}"));
    Ok(Verdict::Fine)
}
