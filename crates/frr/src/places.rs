//! The lines of the whole configuration, each with the part of the config that it comes from: for questions about a line.

use api::value::IfName;

use crate::{
    config::{FrrConfig, IpFamily, Name},
    lower,
    print::Section,
    text::{Block, Statement},
    version::FrrVersion,
};

/// What a line is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The instance as a whole, its default VRF included.
    Node,
    /// A prefix list.
    PrefixList(Name),
    /// An entry of a route map.
    RouteMap {
        /// The route map.
        map: Name,
        /// The number of the entry.
        entry: u16,
    },
    /// A VRF, in BGP or outside of it.
    Vrf(IfName),
}

/// A line, without the password that may end it, and what it is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedLine {
    /// The line.
    pub line: String,
    /// What it is part of.
    pub part: Part,
}

/// All lines of `frr.conf` that say something, in its order.
pub fn placed_lines(config: &FrrConfig, version: FrrVersion) -> Vec<PlacedLine> {
    let features = version.features();
    let mut lines = Lines::default();
    for section in features.sections {
        match section {
            Section::Log => lines.statements(&lower::log(&config.log), &Part::Node),
            Section::NextHopTracking => {
                let statements = lower::next_hop_tracking(config, features);
                lines.statements(&statements, &Part::Node);
            }
            Section::PrefixLists => {
                for family in IpFamily::BOTH {
                    let names = config.prefix_lists.keys().filter(|(of, _)| *of == family);
                    let names = names.map(|(_, name)| name.clone());
                    for (name, list) in names.zip(lower::prefix_lists(config, family)) {
                        lines.statements(&list.entries, &Part::PrefixList(name));
                    }
                }
            }
            Section::CommunityLists => {
                for list in lower::community_lists(config) {
                    lines.statements(&list.entries, &Part::Node);
                }
            }
            Section::RouteMaps => {
                for (name, map) in &config.route_maps {
                    let blocks = lower::route_map_entries(name, map);
                    for (entry, block) in map.keys().zip(&blocks) {
                        let (map, entry) = (name.clone(), *entry);
                        lines.block(block, &Part::RouteMap { map, entry });
                    }
                }
            }
            Section::Vrfs => {
                for (name, vrf) in &config.vrfs {
                    lines.block(&lower::vrf(name, vrf, features), &Part::Vrf(name.clone()));
                }
            }
            Section::Bgp => {
                for (vrf, bgp) in &config.bgp {
                    let block = lower::instance(vrf.as_ref(), bgp, features);
                    lines.block(&block, &vrf.clone().map_or(Part::Node, Part::Vrf));
                }
            }
            Section::Bfd => {
                for block in lower::bfd(&config.bfd_profiles).as_slice() {
                    lines.block(block, &Part::Node);
                }
            }
        }
    }
    lines.0
}

#[derive(Default)]
struct Lines(Vec<PlacedLine>);

impl Lines {
    fn push(&mut self, line: &str, part: &Part) {
        self.0.push(PlacedLine {
            line: line.to_owned(),
            part: part.clone(),
        });
    }

    fn statements(&mut self, statements: &[Statement], part: &Part) {
        for statement in statements {
            self.push(&statement.line, part);
        }
    }

    fn block(&mut self, block: &Block, part: &Part) {
        self.push(&block.enter, part);
        self.statements(&block.statements, part);
        for inner in &block.blocks {
            self.block(inner, part);
        }
    }
}
