//! What all intents that become routing share.

use std::{cmp::Reverse, collections::BTreeSet};

use api::{
    meta::LabelSelector,
    selvedge::ImportMatch,
    tcaas::{MergeOrder, NetworkSpec, PrefixAction, PrefixItem, VrfRouteConfigurationSpec},
    value::{Community, Prefix, VrfName},
};

use super::reach::ReachedVrf;
use crate::{names, snapshot::ObjectRef};

/// Position of generated routing among hand-written lines: in the middle, so that users can add lines before and after it.
const GENERATED_SEQ: i64 = 1000;

/// How many lines of each direction a `VRFRouteConfiguration` can have.
pub(super) const MAX_LINES: usize = 4096;

/// What goes out of the cluster into a VRF.
pub(super) struct Exports<'a> {
    pub(super) items: Vec<PrefixItem>,
    pub(super) aggregate: Vec<Prefix>,
    pub(super) communities: &'a [Community],
    pub(super) node_selector: Option<&'a LabelSelector>,
}

/// Routing in one VRF: the destinations' prefixes, and what else is named, come in; `exports` go out, the longest prefix first, so
/// that a wider item never hides a narrower one.
pub(super) fn routing(
    vrf: &VrfName,
    reached: &ReachedVrf,
    import: &[Prefix],
    exports: Exports<'_>,
) -> VrfRouteConfigurationSpec {
    let mut imports = of_destinations(&reached.prefixes, reached.import_match);
    let is_new = |item: &PrefixItem| !reached.prefixes.contains(&item.cidr);
    imports.extend(permit(import).into_iter().filter(is_new));
    let mut items = exports.items;
    items.sort_by_key(|item| (Reverse(item.cidr.net().prefix_len()), item.cidr));
    items.dedup();
    VrfRouteConfigurationSpec {
        vrf: vrf.clone(),
        vni: Some(reached.vni),
        route_target: Some(reached.route_target),
        import: imports,
        export: items,
        aggregate: exports.aggregate,
        sbr_prefixes: Vec::new(),
        seq: generated_seq(),
        community: None,
        communities: exports.communities.to_vec(),
        node_selector: exports.node_selector.cloned(),
        loopbacks: reached.loopbacks.clone(),
    }
}

fn generated_seq() -> MergeOrder {
    MergeOrder::try_from(GENERATED_SEQ).unwrap_or_else(|_| unreachable!("a constant in range"))
}

/// A line for each prefix; the same prefix counts once.
pub(super) fn permit(prefixes: &[Prefix]) -> Vec<PrefixItem> {
    let mut seen = BTreeSet::new();
    let new = prefixes.iter().filter(|prefix| seen.insert(**prefix));
    let line = |cidr: &Prefix| PrefixItem {
        cidr: *cidr,
        seq: None,
        ge: None,
        le: None,
        action: PrefixAction::Permit,
    };
    new.map(line).collect()
}

/// A line for each prefix of Destinations, which matches what the settings say.
pub(super) fn of_destinations(prefixes: &[Prefix], import_match: ImportMatch) -> Vec<PrefixItem> {
    let lines = permit(prefixes);
    match import_match {
        ImportMatch::Exact => lines,
        ImportMatch::OrLonger => lines.into_iter().map(or_longer).collect(),
    }
}

/// The line with all longer prefixes, down to single addresses.
pub(super) fn or_longer(mut item: PrefixItem) -> PrefixItem {
    let net = item.cidr.net();
    let longest = net.max_prefix_len();
    item.le = (net.prefix_len() < longest).then_some(longest);
    item
}

/// Name of the object that an intent becomes in one scope.
pub(super) fn generated_name(subject: &ObjectRef, scope: &str) -> String {
    names::generated(subject.kind.into(), &subject.key.name, scope)
}

/// The subnets of a network, IPv4 first.
pub(super) fn subnets(network: &NetworkSpec) -> Vec<Prefix> {
    [&network.ipv4, &network.ipv6]
        .into_iter()
        .flatten()
        .map(|family| family.cidr)
        .collect()
}
