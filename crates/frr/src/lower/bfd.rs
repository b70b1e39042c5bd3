//! Profiles of BFD sessions.

use std::collections::BTreeMap;

use crate::{
    config::{BfdProfile, Name},
    text::{Block, Statement},
};

/// The `bfd` block, where there are profiles.
pub(crate) fn bfd(profiles: &BTreeMap<Name, BfdProfile>) -> Option<Block> {
    let blocks: Vec<Block> = profiles
        .iter()
        .map(|(name, profile)| {
            let enter = format!("profile {name}");
            Block {
                remove: Some(format!("no {enter}")),
                statements: statements(profile),
                ..Block::new(enter, "exit")
            }
        })
        .collect();
    (!blocks.is_empty()).then(|| Block {
        blocks,
        ..Block::new("bfd".to_owned(), "exit")
    })
}

/// Only what differs from the defaults: FRR prints no more, and going back is setting the default.
fn statements(profile: &BfdProfile) -> Vec<Statement> {
    let BfdProfile {
        detect_multiplier,
        receive_interval,
        transmit_interval,
        echo_receive_interval,
        echo_transmit_interval,
        echo_mode,
        passive_mode,
        minimum_ttl,
    } = *profile;
    let default = BfdProfile::default();
    let number = |word: &str, value: u32, default: u32| {
        (value != default)
            .then(|| Statement::value(word.to_owned(), value).undo(format!("{word} {default}")))
    };
    let flag = |word: &str, value: bool| value.then(|| Statement::new(word.to_owned()));
    [
        number(
            "detect-multiplier",
            detect_multiplier.into(),
            default.detect_multiplier.into(),
        ),
        number(
            "transmit-interval",
            transmit_interval,
            default.transmit_interval,
        ),
        number(
            "receive-interval",
            receive_interval,
            default.receive_interval,
        ),
        flag("passive-mode", passive_mode),
        flag("echo-mode", echo_mode),
        number(
            "echo transmit-interval",
            echo_transmit_interval,
            default.echo_transmit_interval,
        ),
        number(
            "echo receive-interval",
            echo_receive_interval,
            default.echo_receive_interval,
        ),
        number(
            "minimum-ttl",
            minimum_ttl.into(),
            default.minimum_ttl.into(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
