//! Raw FRR configuration → the same typed configuration, or a reason why not.
//!
//! Raw configuration adds lines of BGP, route maps, lists and BFD, and changes settings of sessions. It takes nothing back and changes no
//! entry that is generated. All objects are read in their order, again and again until nothing more is understood, so that a line may
//! refer to what a later line makes.

use std::collections::BTreeSet;

use api::tcaas::node_network_config::{RawLines, RefusedLine};

use super::names::{FIRST_GENERATED_RULE, FIRST_RAW_ENTRY};
use crate::{
    config::{FrrConfig, IpFamily, Name, Peer},
    parse::{Read, Reader, UnknownLine},
    version::{Features, FrrVersion},
};

/// Names of what is generated.
#[derive(Debug, Default)]
pub(super) struct Generated {
    pub(super) maps: BTreeSet<Name>,
    pub(super) lists: BTreeSet<(IpFamily, Name)>,
}

/// The configuration with all lines that are understood, and those that are not.
pub(super) fn merged(
    config: FrrConfig,
    raw: &[RawLines],
    generated: &Generated,
    features: Features,
    version: FrrVersion,
) -> (FrrConfig, Vec<RefusedLine>) {
    if raw.is_empty() {
        return (config, Vec::new());
    }
    let merge = Merge {
        base: config.clone(),
        generated,
        features,
        version,
    };
    let mut reader = Reader::new(config);
    let mut refused = merge.pass(&mut reader, raw);
    loop {
        let again = merge.pass(&mut reader, raw);
        if again.len() >= refused.len() {
            return (reader.finish().config, again);
        }
        refused = again;
    }
}

struct Merge<'a> {
    base: FrrConfig,
    generated: &'a Generated,
    features: Features,
    version: FrrVersion,
}

impl Merge<'_> {
    /// Reads all lines once.
    fn pass(&self, reader: &mut Reader, raw: &[RawLines]) -> Vec<RefusedLine> {
        let mut refused = Vec::new();
        for RawLines { source, lines } in raw {
            reader.leave();
            for (line, number) in lines.lines().zip(1_u32..) {
                if let Err(message) = self.line(reader, line) {
                    refused.push(RefusedLine {
                        source: source.clone(),
                        line: number,
                        message,
                    });
                }
            }
        }
        reader.leave();
        refused
    }

    fn line(&self, reader: &mut Reader, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(why) = self.forbidden(&words, reader.in_vni()) {
            if opens_block(&words) {
                reader.enter_unknown(line);
            }
            return Err(format!("{}: {why}", shown(line)));
        }
        let before = changes_session(&words).then(|| reader.config().clone());
        let unknown_block = reader.in_unknown_block();
        let why = match reader.line(line) {
            Read::Known | Read::Silent => match before {
                Some(before) if self.changes_generated_session(reader.config()) => {
                    *reader.config_mut() = before;
                    "the AS and the password of this neighbor are set in an object".to_owned()
                }
                _ => return Ok(()),
            },
            Read::Foreign => {
                "raw configuration is of BGP, route maps, lists and BFD alone".to_owned()
            }
            Read::Unknown if unknown_block => "stands in a block that is refused".to_owned(),
            Read::Unknown => self.why_unknown(reader, &words),
        };
        Err(format!("{}: {why}", shown(line)))
    }

    /// Why a line that FRR may well take is refused here.
    fn forbidden(&self, words: &[&str], in_vni: bool) -> Option<String> {
        let (negated, words) = match words {
            ["no", rest @ ..] => (true, rest),
            all => (false, all),
        };
        match words {
            ["log" | "debug", ..] | ["ip" | "ipv6", "nht" | "route", ..] => {
                return Some(
                    "raw configuration is of BGP, route maps, lists and BFD alone".to_owned(),
                );
            }
            ["neighbor", _, _, ..]
            | [
                "bgp",
                "bestpath" | "default" | "ebgp-requires-policy" | "graceful-restart" | "network",
                ..,
            ] => {}
            _ if negated => {
                return Some("raw configuration adds lines and takes none back".to_owned());
            }
            _ => {}
        }
        match words {
            ["route-map", name, _, seq] if self.is_generated_map(name) => {
                let generated = seq.parse::<u16>().is_ok_and(|seq| seq < FIRST_RAW_ENTRY);
                generated.then(|| {
                    format!("entries of {name} below {FIRST_RAW_ENTRY} are generated: use a higher number")
                })
            }
            [ip @ ("ip" | "ipv6"), "prefix-list", name, rest @ ..] => {
                let family = if *ip == "ip" {
                    IpFamily::V4
                } else {
                    IpFamily::V6
                };
                let key = (family, name.parse::<Name>().ok()?);
                if !self.generated.lists.contains(&key) {
                    return None;
                }
                let number = match rest {
                    ["seq", number, ..] => number.parse::<u32>().ok(),
                    _ => None,
                };
                let allowed = number.is_some_and(|number| number < FIRST_GENERATED_RULE);
                (!allowed).then(|| {
                    format!(
                        "{name} is generated: give the rule a number below {FIRST_GENERATED_RULE}"
                    )
                })
            }
            ["route-target", "import", target] if target.starts_with("*:") => {
                let (known, place) = if in_vni {
                    let known = self.features.wildcard_l2_route_targets;
                    (known, " in a layer 2 VNI")
                } else {
                    (self.features.wildcard_route_targets, "")
                };
                let version = self.version;
                (!known).then(|| {
                    format!("FRR {version} cannot import the route target {target}{place}")
                })
            }
            _ => None,
        }
    }

    fn is_generated_map(&self, name: &str) -> bool {
        let name = name.parse::<Name>();
        name.is_ok_and(|name| self.generated.maps.contains(&name))
    }

    /// Whether a session that is generated has another AS or password than its object says.
    fn changes_generated_session(&self, config: &FrrConfig) -> bool {
        self.base.bgp.iter().any(|(vrf, base)| {
            let now = config.bgp.get(vrf);
            base.neighbors.iter().any(|(peer, base)| {
                let now = now.and_then(|bgp| bgp.neighbors.get(peer));
                now.is_none_or(|now| {
                    now.remote_as != base.remote_as
                        || (base.password.is_some() && now.password != base.password)
                })
            })
        })
    }

    fn why_unknown(&self, reader: &Reader, words: &[&str]) -> String {
        match words {
            ["router", "bgp", _, rest @ ..] => {
                let vrf = match rest {
                    ["vrf", vrf] => vrf.parse().ok(),
                    _ => None,
                };
                match reader.config().bgp.get(&vrf) {
                    Some(bgp) => format!("the router of this VRF has AS {}", bgp.asn),
                    None => "is no router that FRR can have".to_owned(),
                }
            }
            ["neighbor", name, ..] if !is_known_peer(reader.config(), name) => {
                format!("there is no neighbor {name} here")
            }
            _ => format!(
                "the grammar of FRR {} that is supported has no such line here",
                self.version
            ),
        }
    }
}

fn is_known_peer(config: &FrrConfig, word: &str) -> bool {
    let is_it = |peer: &Peer| peer.to_string() == word;
    let mut instances = config.bgp.values();
    instances.any(|bgp| bgp.neighbors.keys().any(is_it))
}

/// Whether a line may give a session another AS or password.
fn changes_session(words: &[&str]) -> bool {
    words.contains(&"neighbor")
        && ["remote-as", "password"]
            .iter()
            .any(|word| words.contains(word))
}

fn opens_block(words: &[&str]) -> bool {
    matches!(words, ["route-map", ..])
}

/// Whether the lines after this one are of another block than those before it.
pub(super) fn opens_any_block(words: &[&str]) -> bool {
    let openers = [
        "address-family",
        "bfd",
        "peer",
        "profile",
        "route-map",
        "router",
        "vni",
        "vrf",
    ];
    words.first().is_some_and(|word| openers.contains(word))
}

/// The line without what may be secret in it, and not longer than a message should be.
fn shown(line: &str) -> String {
    const MAX_LEN: usize = 120;
    let line = UnknownLine {
        context: Vec::new(),
        line: line.trim().to_owned(),
        in_unknown_block: false,
    };
    line.to_string().chars().take(MAX_LEN).collect()
}
