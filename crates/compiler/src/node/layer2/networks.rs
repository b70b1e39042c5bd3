//! Two segments cannot have networks that overlap where one table routes both: what is sent there would go to either of them.

use api::{
    selvedge::SettingsSpec,
    tcaas::Layer2NetworkConfigurationSpec,
    value::{Prefix, VrfName},
};

use super::{Segment, gateway_vrf};
use crate::{
    lower,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
};

/// Whose table routes a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    Host,
    Vrf(VrfName),
}

/// The networks that segments have so far.
pub(super) struct Networks<'a> {
    settings: &'a SettingsSpec,
    held: Vec<(Table, Prefix, &'a Segment)>,
}

/// The networks that a segment has, each with whose table routes it.
pub(super) fn of(
    settings: &SettingsSpec,
    spec: &Layer2NetworkConfigurationSpec,
) -> Vec<(Table, Prefix)> {
    let on_host = lower::networks(spec).into_iter();
    let mut networks: Vec<_> = on_host.map(|prefix| (Table::Host, prefix)).collect();
    if let (Some(vrf), None) = (gateway_vrf(settings, spec), &spec.interface_ref) {
        let gateways = spec.anycast_gateways.iter();
        let table = || Table::Vrf(vrf.clone());
        networks.extend(gateways.map(|gateway| (table(), gateway.prefix())));
    }
    networks
}

/// Whether two networks have addresses in common.
pub(super) fn overlap(one: Prefix, other: Prefix) -> bool {
    let (one, other) = (one.net(), other.net());
    one.contains(&other) || other.contains(&one)
}

impl<'a> Networks<'a> {
    pub(super) fn new(settings: &'a SettingsSpec) -> Self {
        let held = Vec::new();
        Self { settings, held }
    }

    /// What is wrong with a segment that has a network of an older one which it meets.
    pub(super) fn taken(
        &self,
        object: &Segment,
        node: Option<&String>,
        meet: impl Fn(&Segment, &Segment) -> bool,
    ) -> Option<Problem> {
        let wanted = of(self.settings, &object.spec).into_iter();
        let (table, network, other, by) = wanted.into_iter().find_map(|wanted| {
            let mut held = self.held.iter();
            let (_, other, by) = held.find(|(table, prefix, by)| {
                *table == wanted.0 && overlap(wanted.1, *prefix) && meet(by, object)
            })?;
            Some((wanted.0, wanted.1, *other, &by.source))
        })?;
        Some(overlaps(object, (table, network), other, by, node))
    }

    /// What is wrong with a segment that has addresses of the link between node and router: the host reaches every VRF over that link.
    pub(super) fn is_trunks(
        &self,
        object: &Segment,
        node: Option<&String>,
        has_overlay: bool,
    ) -> Option<Problem> {
        let trunk = &self.settings.trunk.addresses;
        let trunk = trunk.iter().filter(|_| has_overlay);
        let settings = ObjectRef::named(Kind::Settings, "default");
        trunk.into_iter().find_map(|end| {
            let mut own = of(self.settings, &object.spec).into_iter();
            let (_, network) = own.find(|(_, network)| overlap(*network, end.prefix()))?;
            let wanted = (Table::Host, network);
            Some(overlaps(object, wanted, end.prefix(), &settings, node))
        })
    }

    /// Notes what a segment has.
    pub(super) fn insert(&mut self, object: &'a Segment) {
        let own = of(self.settings, &object.spec).into_iter();
        self.held
            .extend(own.map(|(table, prefix)| (table, prefix, object)));
    }
}

fn overlaps(
    object: &Segment,
    (table, network): (Table, Prefix),
    other: Prefix,
    by: &ObjectRef,
    node: Option<&String>,
) -> Problem {
    let field = match table {
        _ if object.is_generated() => "spec.networkRef",
        Table::Host => "spec.nodeIPs",
        Table::Vrf(_) => "spec.anycastGateways",
    };
    let kind = problem::Kind::NetworksOverlap {
        network,
        other,
        by: Box::new(by.clone()),
        vrf: match table {
            Table::Host => None,
            Table::Vrf(vrf) => Some(vrf.to_string()),
        },
        node: node.cloned(),
    };
    Problem::new(object.source.clone(), field, kind)
}
