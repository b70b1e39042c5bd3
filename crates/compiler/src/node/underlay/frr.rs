//! What the FRR of a node can do, as far as an Underlay needs it. A node whose version is not known yet has the newest.

use std::sync::Arc;

use crate::{
    memo::Query,
    snapshot::{Key, kinds},
    view::View,
};

/// The first version that has IPv6 VTEPs, as `frr::version` knows it.
pub(in crate::node) const IPV6_VTEPS: &str = "10.7";

/// The version of FRR that a node has reported.
pub(crate) struct FrrOf;
impl Query for FrrOf {
    type Key = Key;
    type Value = Option<Arc<str>>;
    fn compute(view: &View<'_>, node: &Key) -> Option<Arc<str>> {
        let status = view.status::<kinds::NodeNetworkConfig>(node);
        let of_config = status.and_then(|status| status.frr_version.clone());
        let report = || view.status::<kinds::NodeNetworkStatus>(node);
        let reported =
            || report().and_then(|report| report.capabilities.as_ref()?.frr_version.clone());
        of_config.or_else(reported).map(Arc::from)
    }
}

/// The version of a node's FRR that has no IPv6 VTEPs.
pub(super) fn without_ipv6_vteps(view: &View<'_>, node: &str) -> Option<Arc<str>> {
    let version = view.get::<FrrOf>(&Key::named(node))?;
    (numbers(&version)? < numbers(IPV6_VTEPS)?).then_some(version)
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("8.4.4") < numbers("10.3"));
        assert!(numbers("10.3") < numbers(IPV6_VTEPS));
        assert!(numbers("10.10-dev") > numbers(IPV6_VTEPS));
        assert_eq!(numbers("of another system"), None);
    }
}
