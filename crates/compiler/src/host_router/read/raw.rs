//! Raw configuration of an object.

use api::frrk8s::RawConfig;

use super::Reader;
use crate::problem;

/// Words before the name of something, which may be any word.
const BEFORE_NAMES: [&str; 13] = [
    "access-list",
    "call",
    "community-list",
    "expanded",
    "filter-list",
    "interface",
    "neighbor",
    "peer-group",
    "prefix-list",
    "profile",
    "route-map",
    "standard",
    "vrf",
];

impl Reader<'_> {
    pub(super) fn raw(&mut self, raw: &RawConfig) {
        let RawConfig {
            priority,
            raw_config,
        } = raw;
        if raw_config.is_empty() {
            return;
        }
        if has_password(raw_config) {
            let what = "has a password, which everybody could read in the configs of nodes: the raw configuration is \
                left out; put the password into a Secret, and name that in passwordSecret of a neighbor";
            self.no_effect("spec.raw.rawConfig", what);
        } else if self.settings.frr_configurations.allow_raw {
            let lines = without_comments(raw_config);
            self.contribution.raw = Some((priority.unwrap_or(0), lines));
        } else {
            self.note("spec.raw", problem::Kind::RawNotAllowed);
        }
    }
}

/// Whether raw configuration has a password. FRR takes the word in a shorter form as well.
pub(in crate::host_router) fn has_password(raw: &str) -> bool {
    raw.lines().filter(|line| !is_comment(line)).any(|line| {
        let line = line.to_ascii_lowercase();
        let words = line.split_whitespace();
        let mut before = "";
        for word in words.take_while(|word| !matches!(*word, "description" | "remark")) {
            let is_name = BEFORE_NAMES.contains(&before);
            if !is_name && word.len() >= 4 && "password".starts_with(word) {
                return true;
            }
            before = word;
        }
        false
    })
}

/// The same lines without the text of comments, which may say anything: nodes do not need it.
fn without_comments(raw: &str) -> String {
    let lines = raw.split('\n');
    let lines = lines.map(|line| if is_comment(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['!', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_in_every_form_and_not_in_names_and_comments() {
        for line in [
            "router bgp 1\n neighbor 192.0.2.1 password hunter2",
            " neighbor 192.0.2.1 passw hunter2",
            "no neighbor 192.0.2.1 PASSWORD hunter2",
            "password 8 hunter2",
            "enable password hunter2",
        ] {
            assert!(has_password(line), "{line}");
        }
        for line in [
            "! pass the password hunter2",
            "  # password hunter2",
            "route-map pass permit 10",
            " neighbor 192.0.2.1 route-map pass in",
            " neighbor pass interface remote-as external",
            " neighbor 192.0.2.1 description pass through",
            " neighbor 192.0.2.1 passive",
        ] {
            assert!(!has_password(line), "{line}");
        }
    }

    #[test]
    fn comments_do_not_reach_nodes_and_lines_keep_their_numbers() {
        let raw = "! password hunter2\nrouter bgp 1\n # more\n neighbor 192.0.2.1 passive\n";
        assert_eq!(
            without_comments(raw),
            "\nrouter bgp 1\n\n neighbor 192.0.2.1 passive\n"
        );
    }
}
