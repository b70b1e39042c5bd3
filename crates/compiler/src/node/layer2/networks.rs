//! Two segments cannot have networks that overlap where one table routes both: what is sent there would go to either of them.

use api::{selvedge::SettingsSpec, tcaas::Layer2NetworkConfigurationSpec, value::Prefix};

use super::{Segment, gateway_vrf};
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
pub(super) struct Networks<'a> {
    settings: &'a SettingsSpec,
    held: Vec<(Table<'a>, Prefix, &'a Segment)>,
}

fn of<'a>(
    settings: &'a SettingsSpec,
    spec: &'a Layer2NetworkConfigurationSpec,
) -> Vec<(Table<'a>, Prefix)> {
    let on_host = lower::networks(spec).into_iter();
    let mut networks: Vec<_> = on_host.map(|prefix| (Table::Host, prefix)).collect();
    if let (Some(vrf), None) = (gateway_vrf(settings, spec), &spec.interface_ref) {
        let gateways = spec.anycast_gateways.iter();
        let table = Table::Vrf(vrf.as_str());
        networks.extend(gateways.map(|gateway| (table, gateway.prefix())));
    }
    networks
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
        let (table, network, other, by) =
            of(self.settings, &object.spec)
                .into_iter()
                .find_map(|wanted| {
                    let mut held = self.held.iter();
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
        let own = of(self.settings, &object.spec).into_iter();
        self.held
            .extend(own.map(|(table, prefix)| (table, prefix, object)));
    }
}
