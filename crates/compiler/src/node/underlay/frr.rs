//! What the FRR of a node can do, as far as an Underlay needs it. A node whose version is not known yet has the newest.

use std::sync::Arc;

use crate::{
    memo::Query,
    snapshot::{Key, frr_version, kinds},
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
        let of_config = view.status::<kinds::NodeNetworkConfig>(node);
        let of_node = view.status::<kinds::NodeNetworkStatus>(node);
        frr_version(of_config.as_deref(), of_node.as_deref()).map(Arc::from)
    }
}

/// The version of a node's FRR that has no IPv6 VTEPs.
pub(super) fn without_ipv6_vteps(view: &View<'_>, node: &str) -> Option<Arc<str>> {
    let version = view.get::<FrrOf>(&Key::named(node))?;
    is_older_frr(&version, IPV6_VTEPS).then_some(version)
}

/// Whether a version is older than another. One without numbers counts as the newest.
pub(crate) fn is_older_frr(version: &str, than: &str) -> bool {
    numbers(version)
        .zip(numbers(than))
        .is_some_and(|(version, than)| version < than)
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
        assert!(is_older_frr("8.4.4", "10.3"));
        assert!(is_older_frr("10.3", IPV6_VTEPS));
        assert!(!is_older_frr("10.7.1", IPV6_VTEPS));
        assert!(!is_older_frr("10.10-dev", IPV6_VTEPS));
        assert!(!is_older_frr("of another system", IPV6_VTEPS));
        assert!(!is_older_frr("8.4.4", "of another system"));
    }
}
