//! A revision that removes much of what the last one configured waits for an approval: a mistake in one place must not empty a cluster.

use std::fmt;

use api::{
    selvedge::CountOrPercent,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, NetworkConfigRevisionSpec,
        VrfRouteConfigurationSpec,
    },
};

use super::waves;
use crate::lower::{LowLevelObjects, LowLevelSpec};

/// Objects of one kind that a revision removes, more than `maxRemoval` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// What they are.
    what: &'static str,
    removed: usize,
    of: usize,
    allowed: usize,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            removed,
            of,
            allowed,
        } = self;
        write!(
            f,
            "it removes {removed} of {of} {what}; rollout.maxRemoval allows {allowed}"
        )
    }
}

/// What a revision with these objects removes too much of, compared with the last one that nodes have.
pub fn too_much(
    max_removal: CountOrPercent,
    before: &NetworkConfigRevisionSpec,
    objects: &LowLevelObjects,
) -> Option<TooMuch> {
    fn of_kind<'a, S: LowLevelSpec>(
        max_removal: CountOrPercent,
        what: &'static str,
        before: impl ExactSizeIterator<Item = &'a str>,
        objects: &LowLevelObjects,
    ) -> Option<TooMuch> {
        let of = before.len();
        let removed = before.filter(|name| objects.get::<S>(name).is_none());
        let removed = removed.count();
        let allowed = match max_removal {
            CountOrPercent::Count(_) => waves::count(max_removal, of),
            // The last of a few can be removed without an approval.
            CountOrPercent::Percent(share) => {
                waves::count(max_removal, of).max(share.min(1).into())
            }
        };
        (removed > allowed).then_some(TooMuch {
            what,
            removed,
            of,
            allowed,
        })
    }
    let layer2 = before.layer2.iter().map(|one| one.name.as_str());
    let vrf = before.vrf.iter().map(|one| one.name.as_str());
    let bgp = before.bgp.iter().map(|one| one.name.as_str());
    let segments = "layer 2 segments";
    of_kind::<Layer2NetworkConfigurationSpec>(max_removal, segments, layer2, objects)
        .or_else(|| {
            let routing = "VRF route configurations";
            of_kind::<VrfRouteConfigurationSpec>(max_removal, routing, vrf, objects)
        })
        .or_else(|| of_kind::<BgpPeeringSpec>(max_removal, "BGP peerings", bgp, objects))
}
