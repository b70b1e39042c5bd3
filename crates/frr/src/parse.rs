//! Running configuration → typed configuration. An interpreter of lines, not a pattern on text.
//!
//! It parses every line that this crate can print, its `no` form, and skips lines that FRR adds by itself. Everything else is
//! returned as unknown, so that an unmanaged line is reported and not silently kept.

mod bgp;
mod filter;
mod log;
mod vrf;
mod words;

use std::fmt;

use api::value::{IfName, Vni};

pub(crate) use self::words::WELL_KNOWN;

use crate::{
    config::{FrrConfig, IpFamily, Name},
    diff::Step,
    version::FrrVersion,
};

/// What a running configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The part that this crate understands.
    pub config: FrrConfig,
    /// The rest.
    pub unknown: Vec<UnknownLine>,
}

/// A line that this crate neither writes nor expects FRR to add.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownLine {
    /// The lines that opened the blocks around it, outermost first.
    pub context: Vec<String>,
    /// The line itself. It may contain a secret in an unknown form, so neither `Debug` nor `Display` print all of it.
    pub line: String,
    /// Whether a block around it is unknown as well.
    pub in_unknown_block: bool,
}

impl UnknownLine {
    /// The step that takes the line back; `None` inside a block that is rolled back as a whole.
    pub fn removal(&self) -> Option<Step> {
        if self.in_unknown_block {
            return None;
        }
        // A secret is not needed to take its line back, and would be seen in an argument list.
        let words: Vec<&str> = self.line.split_whitespace().collect();
        let shown = match self.secret_word() {
            Some(at) => words.get(..=at).unwrap_or_default().join(" "),
            None => self.line.clone(),
        };
        let text = match shown.strip_prefix("no ") {
            Some(text) => text.to_owned(),
            // FRR takes it back without its times only.
            None if words.first() == Some(&"exec-timeout") => "no exec-timeout".to_owned(),
            None => format!("no {shown}"),
        };
        Some(Step {
            path: self.context.clone(),
            ..Step::root(text)
        })
    }

    /// The position of the word after which a secret stands.
    fn secret_word(&self) -> Option<usize> {
        let is_secret = |word: &str| matches!(word, "password" | "key" | "key-string" | "secret");
        // The name of a chain of keys is no secret.
        let words = (!self.line.starts_with("key chain ")).then(|| self.line.split_whitespace());
        words.and_then(|mut words| words.position(is_secret))
    }
}

impl fmt::Display for UnknownLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for context in &self.context {
            write!(f, "{context} / ")?;
        }
        match self.secret_word() {
            None => f.write_str(&self.line),
            Some(at) => {
                let shown: Vec<&str> = self.line.split_whitespace().take(at + 1).collect();
                write!(f, "{} …", shown.join(" "))
            }
        }
    }
}

impl fmt::Debug for UnknownLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnknownLine({self})")
    }
}

/// Lines that FRR, its packaging or its start script write without being asked, by their first words.
///
/// `frr defaults` is ignored only in the one form whose defaults this crate takes for granted. Forwarding is a sysctl of the kernel, which
/// the node keeps as it must be, whatever zebra prints of it.
const AMBIENT: [&str; 16] = [
    "Building configuration...",
    "Current configuration:",
    "frr version ",
    "frr defaults traditional",
    "hostname ",
    "domainname ",
    "log ",
    "no log ",
    "service integrated-vtysh-config",
    "no service integrated-vtysh-config",
    "service advanced-vty",
    "agentx",
    "ip forwarding",
    "no ip forwarding",
    "ipv6 forwarding",
    "no ipv6 forwarding",
];

/// Reads what `vtysh -c 'show running-config'` prints, what the daemons print one after the other, or a file that [`crate::print`] wrote.
///
/// The version matters only for what FRR does when nothing is said.
pub fn parse(text: &str, version: FrrVersion) -> Parsed {
    let config = FrrConfig {
        resolve_via_default: version.features().resolves_via_default,
        ..FrrConfig::default()
    };
    let mut reader = Reader::new(config);
    for line in text.lines() {
        reader.line(line);
    }
    reader.finish()
}

/// Where in the configuration a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Context {
    Vrf(IfName),
    RouteMap(Name, u16),
    Bgp(Option<IfName>),
    Unicast(Option<IfName>, IpFamily),
    Evpn(Option<IfName>),
    Vni(Option<IfName>, Vni),
    Bfd,
    BfdProfile(Name),
    /// A block that cannot be taken back as a whole, such as an interface that the kernel has: each line inside is unknown.
    Fixed,
    /// A block of an unknown kind: all that is inside is unknown too.
    Unknown,
}

/// A configuration that takes one line after the other, as FRR does.
pub(crate) struct Reader {
    config: FrrConfig,
    /// The open blocks with the lines that opened them.
    open: Vec<(Context, String)>,
    unknown: Vec<UnknownLine>,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// It says nothing, or leaves a block.
    Silent,
    /// It is not handled by this crate.
    Foreign,
    /// It was understood.
    Known,
    /// It was not.
    Unknown,
}

/// What became of a line at one place.
enum Outcome {
    /// It was understood.
    Done,
    /// It was understood and opens a block.
    Open(Context),
    /// It means nothing here; an outer block may know it.
    Foreign,
}

impl Reader {
    pub(crate) fn new(config: FrrConfig) -> Self {
        Self {
            config,
            open: Vec::new(),
            unknown: Vec::new(),
        }
    }

    pub(crate) fn finish(mut self) -> Parsed {
        self.config.forget_derived_targets();
        Parsed {
            config: self.config,
            unknown: self.unknown,
        }
    }

    /// The configuration as it is after the lines so far.
    pub(crate) fn config(&self) -> &FrrConfig {
        &self.config
    }

    /// The same, to be changed.
    pub(crate) fn config_mut(&mut self) -> &mut FrrConfig {
        &mut self.config
    }

    /// Leaves all blocks.
    pub(crate) fn leave(&mut self) {
        self.open.clear();
    }

    /// Enters a block of which nothing is understood.
    pub(crate) fn enter_unknown(&mut self, line: &str) {
        self.open = vec![(Context::Unknown, line.trim().to_owned())];
    }

    /// Whether the block that is open is one of which nothing is understood.
    pub(crate) fn in_unknown_block(&self) -> bool {
        let unknown = |(context, _): &(Context, String)| *context == Context::Unknown;
        self.open.iter().any(unknown)
    }

    /// Whether the block that is open is that of a layer 2 VNI.
    pub(crate) fn in_vni(&self) -> bool {
        matches!(self.open.last(), Some((Context::Vni(..), _)))
    }

    pub(crate) fn line(&mut self, line: &str) -> Read {
        let text = line.trim();
        match text {
            "" => return Read::Silent,
            "end" => {
                self.leave();
                return Read::Silent;
            }
            "exit" | "exit-vrf" | "exit-address-family" | "exit-vni" => {
                self.open.pop();
                return Read::Silent;
            }
            comment if comment.starts_with('!') || comment.starts_with('#') => {
                return Read::Silent;
            }
            log if log.starts_with("log stdout") || log.starts_with("no log stdout") => {}
            ambient if AMBIENT.iter().any(|known| ambient.starts_with(known)) => {
                return Read::Foreign;
            }
            _ => {}
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if let ["interface", _, ..] | ["line", "vty"] = words.as_slice() {
            self.open = vec![(Context::Fixed, text.to_owned())];
            return Read::Foreign;
        }
        let (negated, words) = match words.as_slice() {
            ["no", rest @ ..] => (true, rest),
            all => (false, all),
        };
        // A line that the inner block does not know closes it, as it does in FRR.
        for depth in (0..=self.open.len()).rev() {
            let context = depth
                .checked_sub(1)
                .and_then(|at| self.open.get(at))
                .map(|(context, _)| context.clone());
            match self.at(context.as_ref(), negated, words) {
                Outcome::Foreign => {}
                Outcome::Done => {
                    self.open.truncate(depth);
                    return Read::Known;
                }
                Outcome::Open(context) => {
                    self.open.truncate(depth);
                    self.open.push((context, text.to_owned()));
                    return Read::Known;
                }
            }
        }
        let unknown = UnknownLine {
            context: self.open.iter().map(|(_, line)| line.clone()).collect(),
            line: text.to_owned(),
            in_unknown_block: self.in_unknown_block(),
        };
        // What several daemons have, such as filters, each of them tells.
        if !self.unknown.contains(&unknown) {
            self.unknown.push(unknown);
        }
        if let [
            "router" | "nexthop-group" | "pbr-map" | "key" | "segment-routing",
            ..,
        ] = words
        {
            self.enter_unknown(text);
        }
        Read::Unknown
    }

    fn at(&mut self, context: Option<&Context>, negated: bool, words: &[&str]) -> Outcome {
        let config = &mut self.config;
        let understood = match context {
            None => {
                return log::root(config, negated, words)
                    .or_else(|| filter::root(config, negated, words))
                    .or_else(|| vrf::root(config, negated, words))
                    .or_else(|| bgp::root(config, negated, words))
                    .unwrap_or(Outcome::Foreign);
            }
            Some(Context::Bfd) => return vrf::bfd(config, negated, words),
            Some(Context::BfdProfile(name)) => vrf::bfd_profile(config, name, negated, words),
            Some(Context::Vrf(name)) => vrf::vrf(config, name, negated, words),
            Some(Context::RouteMap(name, seq)) => {
                filter::route_map_entry(config, name, *seq, negated, words)
            }
            Some(Context::Fixed | Context::Unknown) => None,
            Some(
                Context::Bgp(vrf)
                | Context::Unicast(vrf, _)
                | Context::Evpn(vrf)
                | Context::Vni(vrf, _),
            ) => {
                let Some(bgp) = config.bgp.get_mut(vrf) else {
                    return Outcome::Foreign;
                };
                match context {
                    Some(Context::Unicast(_, family)) => bgp::unicast(bgp, *family, negated, words),
                    Some(Context::Vni(_, vni)) => bgp::vni(bgp, *vni, negated, words),
                    Some(Context::Evpn(_)) => return bgp::evpn(bgp, vrf.as_ref(), negated, words),
                    _ => return bgp::instance(bgp, vrf.as_ref(), negated, words),
                }
            }
        };
        understood.map_or(Outcome::Foreign, |()| Outcome::Done)
    }
}

#[cfg(test)]
mod tests;
