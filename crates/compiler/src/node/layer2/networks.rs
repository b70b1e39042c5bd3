//! Two segments cannot have networks that overlap where one table routes both: what is sent there would go to either of them.

use api::{
    selvedge::SettingsSpec,
    tcaas::Layer2NetworkConfigurationSpec,
    value::{Prefix, VrfName},
};
use rustc_hash::FxHashMap;

use super::{Segment, gateway_vrf};
use crate::{
    lower,
    node::claims::Addressed,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
};

/// Whose table routes a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::node) enum Table {
    Host,
    Vrf(VrfName),
}

impl Table {
    /// The VRF, where it is not the host.
    pub(in crate::node) fn vrf(&self) -> Option<&str> {
        match self {
            Self::Host => None,
            Self::Vrf(vrf) => Some(vrf.as_str()),
        }
    }
}

/// The networks that segments of a node have so far.
pub(super) struct Networks<'a> {
    settings: &'a SettingsSpec,
    node: Option<&'a str>,
    held: FxHashMap<Table, Vec<(Prefix, &'a Segment)>>,
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
    pub(super) fn new(settings: &'a SettingsSpec, node: Option<&'a str>) -> Self {
        Self {
            settings,
            node,
            held: FxHashMap::default(),
        }
    }

    /// What is wrong with a segment that has a network of an older one which it meets.
    pub(super) fn taken(
        &self,
        object: &Segment,
        own: &[(Table, Prefix)],
        meet: impl Fn(&Segment, &Segment) -> bool,
    ) -> Option<Problem> {
        own.iter().find_map(|(table, network)| {
            let mut held = self.held.get(table)?.iter();
            let (other, by) =
                held.find(|(prefix, by)| overlap(*network, *prefix) && meet(by, object))?;
            Some(self.overlaps(object, (table, *network), *other, &by.source))
        })
    }

    /// What is wrong with a segment that has addresses of the link between node and router: the host reaches every VRF over that link.
    pub(super) fn is_trunks(
        &self,
        object: &Segment,
        own: &[(Table, Prefix)],
        has_overlay: bool,
    ) -> Option<Problem> {
        let trunk = &self.settings.trunk.addresses;
        let trunk = trunk.iter().filter(|_| has_overlay);
        let settings = ObjectRef::named(Kind::Settings, "default");
        trunk.into_iter().find_map(|end| {
            let mut own = own.iter();
            let (_, network) = own.find(|(_, network)| overlap(*network, end.prefix()))?;
            let wanted = (&Table::Host, *network);
            Some(self.overlaps(object, wanted, end.prefix(), &settings))
        })
    }

    /// What is wrong with a segment that has a network of a host session or of an `L2VNI`.
    pub(super) fn is_overlays(
        &self,
        object: &Segment,
        own: &[(Table, Prefix)],
        of_overlays: &Addressed,
    ) -> Option<Problem> {
        own.iter().find_map(|(table, network)| {
            let (other, by) = of_overlays.overlap(table.vrf(), *network)?;
            Some(self.overlaps(object, (table, *network), other, by))
        })
    }

    /// Notes what a segment has.
    pub(super) fn insert(&mut self, object: &'a Segment, own: Vec<(Table, Prefix)>) {
        for (table, prefix) in own {
            self.held.entry(table).or_default().push((prefix, object));
        }
    }

    fn overlaps(
        &self,
        object: &Segment,
        (table, network): (&Table, Prefix),
        other: Prefix,
        by: &ObjectRef,
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
            vrf: table.vrf().map(str::to_owned),
            node: self.node.map(str::to_owned),
        };
        Problem::new(object.source.clone(), field, kind)
    }
}
