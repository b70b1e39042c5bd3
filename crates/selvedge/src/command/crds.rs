//! `selvedge crds`

use crate::{
    args::Format,
    output::{self, Verdict},
};

pub(super) fn run() -> anyhow::Result<Verdict> {
    output::documents(Format::Yaml, &api::crds::all())?;
    Ok(Verdict::Fine)
}
