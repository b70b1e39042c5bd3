//! The least MTU of a segment with IPv6 addresses: a node refuses a config in which a device has less.

use api::tcaas::Layer2NetworkConfigurationSpec;

use super::networks;
use crate::problem;

/// What every link with IPv6 carries.
const IPV6_LEAST: u16 = 1280;

/// Whether the segment can have its IPv6 addresses, where it has any.
pub(crate) fn check(spec: &Layer2NetworkConfigurationSpec) -> Result<(), problem::Kind> {
    let gateways = spec.anycast_gateways.iter();
    let mut gateways = gateways.map(|gateway| gateway.prefix());
    let has_ipv6 = gateways.any(|prefix| !prefix.is_ipv4())
        || networks(spec).iter().any(|prefix| !prefix.is_ipv4());
    let (mtu, least) = (spec.mtu, IPV6_LEAST);
    if has_ipv6 && mtu.get() < least {
        return Err(problem::Kind::MtuTooSmall { mtu, least });
    }
    Ok(())
}
