//! The whole configuration as the text of a fresh boot, in the form of FRR's own running configuration.

use crate::{
    config::{FrrConfig, IpFamily},
    lower,
    text::{Block, Statement},
    version::{Features, FrrVersion},
};

/// A part of the configuration that is in one place; which place depends on the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// The log.
    Log,
    /// `ip nht`.
    NextHopTracking,
    /// Prefix lists of both families.
    PrefixLists,
    /// Community lists of both sizes.
    CommunityLists,
    /// Route maps.
    RouteMaps,
    /// VRFs outside of BGP.
    Vrfs,
    /// BGP instances.
    Bgp,
    /// BFD profiles.
    Bfd,
}

/// The text of `frr.conf`.
///
/// The first line names the revision; a revision is written by a machine, and whatever is no letter, digit, `-`, `_`
/// or `.` in it is left out, so that it stays a comment. The second fixes the defaults that the typed configuration
/// takes for granted, whatever the package was built with.
pub fn print(config: &FrrConfig, version: FrrVersion, revision: &str) -> String {
    let features = version.features();
    let revision: String = revision
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .collect();
    let mut out = format!("! selvedge revision {revision}\nfrr defaults traditional\n!\n");
    for section in features.sections {
        print_section(&mut out, config, *section, features);
    }
    out.push_str("end\n");
    out
}

fn print_section(out: &mut String, config: &FrrConfig, section: Section, features: Features) {
    match section {
        Section::Log => lines(out, &lower::log(&config.log)),
        Section::NextHopTracking => lines(out, &lower::next_hop_tracking(config, features)),
        Section::PrefixLists => {
            for family in IpFamily::BOTH {
                lists(out, lower::prefix_lists(config, family));
            }
        }
        Section::CommunityLists => lists(out, lower::community_lists(config)),
        Section::RouteMaps => {
            for (name, map) in &config.route_maps {
                blocks(out, &lower::route_map_entries(name, map));
            }
        }
        Section::Vrfs => {
            for (name, vrf) in &config.vrfs {
                blocks(out, &[lower::vrf(name, vrf, features)]);
            }
        }
        Section::Bgp => {
            for (vrf, bgp) in lower::declared_first(config) {
                let enter = lower::enter_instance(vrf.as_ref(), bgp);
                blocks(out, &[Block::new(enter, "exit")]);
            }
            for (vrf, bgp) in &config.bgp {
                blocks(out, &[lower::instance(vrf.as_ref(), bgp, features)]);
            }
        }
        Section::Bfd => blocks(out, lower::bfd(&config.bfd_profiles).as_slice()),
    }
}

fn lists(out: &mut String, lists: Vec<lower::List>) {
    let entries: Vec<Statement> = lists.into_iter().flat_map(|list| list.entries).collect();
    lines(out, &entries);
}

fn lines(out: &mut String, statements: &[Statement]) {
    for statement in statements {
        line(out, 0, statement);
    }
    if !statements.is_empty() {
        out.push_str("!\n");
    }
}

fn blocks(out: &mut String, blocks: &[Block]) {
    for one in blocks {
        block(out, 0, one);
        out.push_str("!\n");
    }
}

fn block(out: &mut String, depth: usize, block: &Block) {
    push(out, depth, &block.enter);
    for statement in &block.statements {
        line(out, depth + 1, statement);
    }
    for inner in &block.blocks {
        if inner.exit == "exit-address-family" {
            push(out, depth + 1, "!");
        }
        self::block(out, depth + 1, inner);
        if block.enter == "bfd" {
            push(out, depth + 1, "!");
        }
    }
    push(out, depth, block.exit);
}

fn line(out: &mut String, depth: usize, statement: &Statement) {
    match &statement.secret {
        None => push(out, depth, &statement.line),
        Some(secret) => push(
            out,
            depth,
            &format!("{} {}", statement.line, secret.reveal()),
        ),
    }
}

fn push(out: &mut String, depth: usize, text: &str) {
    out.extend(std::iter::repeat_n(' ', depth));
    out.push_str(text);
    out.push('\n');
}
