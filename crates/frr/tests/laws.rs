//! The laws of this crate over all configurations: print and parse are inverse, and a diff leads from one to the other.

#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "laws/strategy.rs"]
mod strategy;

use proptest::prelude::*;
use selvedge_frr::{
    Batch, Change, FrrConfig, FrrVersion, Parsed, config::Vrf, diff, parse, print, with_numbers_of,
};

/// A running FRR that was booted with `config` and then got the lines of `change`: the parser is an interpreter that
/// refuses what FRR refuses.
fn apply(config: &FrrConfig, change: &Change) -> Parsed {
    let mut text = print(config, FrrVersion::NEWEST, "r");
    for batch in change
        .batches()
        .iter()
        .chain(&change.batches_after_devices())
    {
        let lines = match batch {
            Batch::Commands(lines) => lines.iter().skip(1).cloned().collect(),
            Batch::Secret { path, line } => [path.clone(), vec![line.reveal()]].concat(),
        };
        // Each batch starts outside of all blocks.
        text.extend(["end\n", &lines.join("\n"), "\n"]);
    }
    parse(&text, FrrVersion::NEWEST)
}

/// FRR 10 keeps an empty block of a VRF once something stood in it; it says nothing while the VRF lives in BGP.
fn without_empty_blocks(mut config: FrrConfig) -> FrrConfig {
    let FrrConfig { vrfs, bgp, .. } = &mut config;
    vrfs.retain(|name, vrf| *vrf != Vrf::default() || !bgp.contains_key(&Some(name.clone())));
    config
}

proptest! {
    #![proptest_config(worlds::laws(200))]

    #[test]
    fn what_is_printed_parses_to_itself(config in strategy::config()) {
        for version in FrrVersion::SUPPORTED {
            let text = print(&config, version, "r");
            let parsed = parse(&text, version);
            prop_assert_eq!(parsed.unknown, []);
            prop_assert_eq!(&parsed.config, &config, "{}", text);
        }
    }

    #[test]
    fn nothing_leads_from_a_config_to_itself(config in strategy::config()) {
        let change = diff(&config, &config);
        prop_assert!(change.is_empty(), "{}", change);
        prop_assert_eq!(change.batches(), []);
    }

    #[test]
    fn the_lines_of_a_diff_lead_from_one_config_to_the_other(
        running in strategy::config(),
        desired in strategy::config(),
    ) {
        let change = diff(&running, &desired);
        let Parsed { config, unknown } = apply(&running, &change);
        prop_assert_eq!(unknown, [], "{}", change);
        prop_assert!(diff(&config, &desired).is_empty(), "{}\nleaves\n{}", change, diff(&config, &desired));
        let expected = with_numbers_of(&running, &desired).into_owned();
        prop_assert_eq!(without_empty_blocks(config), expected, "{}", change);
    }

    /// Most changes are small; the lines must be too.
    #[test]
    fn one_network_more_is_one_line(config in strategy::config()) {
        let mut more = config.clone();
        let network = "198.18.7.0/24".parse().unwrap();
        for bgp in more.bgp.values_mut().take(1) {
            bgp.ipv4.networks.insert(network);
        }
        prop_assert_eq!(diff(&config, &more).n_lines(), usize::from(!config.bgp.is_empty()));
    }

    /// Whatever bytes come: an answer, never a panic.
    #[test]
    fn any_text_is_read(text in "(?s).{0,200}") {
        parse(&text, FrrVersion::NEWEST);
    }

    #[test]
    fn any_words_of_the_grammar_are_read(words in proptest::collection::vec(strategy::word(), 0..60)) {
        parse(&words.concat(), FrrVersion::NEWEST);
    }
}
