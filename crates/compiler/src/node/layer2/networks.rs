//! Two segments cannot have networks that overlap where one table routes both: what is sent there would go to either of them.

use api::{tcaas::Layer2NetworkConfigurationSpec, value::Prefix};

use super::Segment;
use crate::{
    lower,
    problem::{self, Problem},
    snapshot::ObjectRef,
};

/// Whose table routes a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table<'a> {
    Host,
    Vrf(&'a str),
}

/// The networks that segments have so far.
#[derive(Default)]
pub(super) struct Networks<'a>(Vec<(Table<'a>, Prefix, &'a Segment)>);

fn of(spec: &Layer2NetworkConfigurationSpec) -> Vec<(Table<'_>, Prefix)> {
    let on_host = lower::networks(spec).into_iter();
    let mut networks: Vec<_> = on_host.map(|prefix| (Table::Host, prefix)).collect();
    if let (Some(vrf), None) = (&spec.vrf, &spec.interface_ref) {
        let gateways = spec.anycast_gateways.iter();
        let table = Table::Vrf(vrf.as_str());
        networks.extend(gateways.map(|gateway| (table, gateway.prefix())));
    }
    networks
}

impl<'a> Networks<'a> {
    /// What is wrong with a segment that has a network of an older one which it meets.
    pub(super) fn taken(
        &self,
        object: &Segment,
        node: Option<&String>,
        meet: impl Fn(&Segment, &Segment) -> bool,
    ) -> Option<Problem> {
        let (table, network, other, by) = of(&object.spec).into_iter().find_map(|wanted| {
            let mut held = self.0.iter();
            let (_, other, by) = held.find(|(table, prefix, by)| {
                let (one, other) = (wanted.1.net(), prefix.net());
                let overlap = || one.contains(&other) || other.contains(&one);
                *table == wanted.0 && overlap() && meet(by, object)
            })?;
            Some((wanted.0, wanted.1, *other, &by.source))
        })?;
        let field = match table {
            _ if object.is_generated() => "spec.networkRef",
            Table::Host => "spec.nodeIPs",
            Table::Vrf(_) => "spec.anycastGateways",
        };
        let kind = problem::Kind::NetworksOverlap {
            network,
            other,
            by: Box::new(ObjectRef::clone(by)),
            vrf: match table {
                Table::Host => None,
                Table::Vrf(vrf) => Some(vrf.to_owned()),
            },
            node: node.cloned(),
        };
        Some(Problem::new(object.source.clone(), field, kind))
    }

    /// Notes what a segment has.
    pub(super) fn insert(&mut self, object: &'a Segment) {
        let own = of(&object.spec).into_iter();
        self.0
            .extend(own.map(|(table, prefix)| (table, prefix, object)));
    }
}
