//! What a user can do about a problem.

use std::borrow::Cow;

use super::Kind;

impl Kind {
    /// What the author of the object can do about it; `None` where the message itself contains it.
    #[expect(
        clippy::too_many_lines,
        reason = "a table with one entry for each kind; in parts it would need a catch-all, which a new kind falls into"
    )]
    pub fn remedy(&self) -> Option<String> {
        let text: Cow<'static, str> = match self {
            // The message itself contains the remedy, or there is none.
            Self::Unreadable { .. }
            | Self::RuleBroken { .. }
            | Self::NotCompiledYet { .. }
            | Self::NoEffect { .. } => return None,
            Self::UnknownField => "remove it, or check its spelling and place".into(),
            Self::Duplicate => "keep one of them".into(),
            Self::MissingReference { target } => {
                format!("create {target}, or correct the name").into()
            }
            Self::UnreadableReference { target } | Self::ReferenceNotInEffect { target } => {
                format!("correct {target}").into()
            }
            Self::BreaksAnother { victim, .. } => {
                format!("revert the edit, or change {victim} first").into()
            }
            Self::SettingsDeleted => {
                "create it again; with \"spec: {}\" it has the defaults".into()
            }
            Self::InvalidSelector(_) => "correct the requirement".into(),
            Self::LineTwice { other } => {
                format!("remove this line or {other}, or change cidr, ge or le of one").into()
            }
            Self::SeqTwice { .. } => "give one of them another seq".into(),
            Self::NoDestination {
                left_out: Some(left_out),
            } => format!("correct {left_out}, or the selector").into(),
            Self::NoDestination { left_out: None } => {
                "label a Destination so that the selector matches it, or correct the selector".into()
            }
            Self::DestinationLeftOut { destination, .. } => {
                format!("correct {destination}, or change the selector so that it does not match it").into()
            }
            Self::DestinationKept { destination } => format!("correct {destination}").into(),
            Self::DestinationsRequired => {
                "add spec.destinations, spec.disableAnycast for a segment without a gateway, or spec.interfaceRef for a VLAN on a device of the node"
                    .into()
            }
            Self::NetworkLacks { network, what } => format!("add spec.{what} to {network}").into(),
            Self::VrfIncomplete { vrf, what } => {
                format!("add spec.{what}, or an entry for {vrf:?} to Settings.spec.vrfs").into()
            }
            Self::VrfDisagrees { what, other, .. } => {
                format!("set the same {what} as in {other}").into()
            }
            Self::RouteTargetShared { other, .. } => {
                format!("choose another, or keep it if this VRF and {other} should exchange routes").into()
            }
            Self::PartOfASegment { .. } => {
                "use a Network outside of the segment's, or set spec.disableAggregation".into()
            }
            Self::VrfNameTaken { .. }
            | Self::DeviceNameTaken { .. }
            | Self::DeviceNameReserved { .. } => "choose another name".into(),
            Self::NeedsDaemon { .. } => "remove it, and use BGP neighbors instead".into(),
            Self::VrfTaken { .. } => {
                "choose another VRF, or change one nodeSelector so that no node matches both".into()
            }
            Self::VtepFamilyMissing { .. } => {
                "add a pool of that family to the Underlay of the node, or leave spec.underlayAddressFamily out".into()
            }
            Self::FrrTooOld { needed, .. } => {
                format!("install FRR {needed} on the node, or use an IPv4 pool").into()
            }
            Self::VrfShared { .. } => {
                "set spec.vrf of the segment: to this VRF if both belong together, else to another".into()
            }
            Self::BridgeShared { .. } => {
                "use a bridge for each VNI, unless VLANs of the bridge keep them apart".into()
            }
            Self::LeftOutByFrr {
                older: Some(older),
                instead,
                ..
            } => format!("install FRR {} on the node, or {instead}", older.needed).into(),
            Self::LeftOutByFrr { instead, .. } => (*instead).into(),
            Self::NoVtepOnDevice { .. } => {
                "give the device an address on the node, or correct the name".into()
            }
            Self::VtepDeviceOutside { device, .. } => {
                format!("add {device:?} to spec.nics, or name a device of the router's namespace").into()
            }
            Self::UnderlaysMayMeet { .. } => {
                "change one nodeSelector so that no node matches both".into()
            }
            Self::VrfNotOnNode { vrf, .. } => {
                format!("change spec.nodeSelector of a VRFRouteConfiguration of VRF {vrf:?} so that it selects the node too").into()
            }
            Self::VlanTaken { .. } => {
                "choose another VLAN, or change one nodeSelector so that no node matches both".into()
            }
            Self::NetworksOverlap { vrf: Some(_), .. } => {
                "choose another network or VRF, or change one nodeSelector so that no node matches both".into()
            }
            Self::NetworksOverlap { vrf: None, .. } => {
                "choose another network, or give nodes no addresses in one of the two"
                    .into()
            }
            Self::VniTaken { .. } => "choose another VNI".into(),
            Self::NameTooLong { .. } => "choose a shorter name".into(),
            Self::SecondUnderlay { .. } => "change one nodeSelector so that no node matches both".into(),
            Self::NeighborInVtepPool { .. } => {
                "choose a VTEP pool without addresses of neighbors".into()
            }
            Self::VtepPoolsOverlap { .. } => {
                "use the same pool in both, or pools that do not overlap".into()
            }
            Self::NoUnderlay { needs, .. } => {
                format!("create {} for these nodes, or select others", needs.replace("a VTEP", "spec.evpn")).into()
            }
            Self::PoolExhausted { .. } => "use a larger pool".into(),
            Self::AddressTaken { .. } => "choose another address, or another Network".into(),
            Self::NoHostAddress { .. } => {
                "choose an address of the Network, neither its first nor its last".into()
            }
            Self::TooFewAddresses { .. } => "request fewer addresses, or use a larger Network".into(),
            Self::NetworkTaken { .. } => "use another Network for this object".into(),
            Self::DevicesAreOneResource { .. } => {
                "give each device its own resource in Settings.platform.sriov.resources".into()
            }
            Self::PoolTaken { .. } => "choose another spec.poolName".into(),
            Self::NeedsLegacyFlavour { what } => {
                format!("remove {what}, or change the flavour if the cluster has it").into()
            }
            Self::NoVniRange => {
                "set spec.vni, or l2VniRange in the spec of Settings default".into()
            }
            Self::NoVniLeft => "set spec.vni, or widen Settings.spec.l2VniRange".into(),
            Self::MtuTooLarge { most, .. } => {
                format!("set spec.mtu to {most} or less, or give the device a larger MTU").into()
            }
            Self::MtuTooSmall { least, .. } => format!("set spec.mtu to {least} or more").into(),
            Self::NoGateway { .. } => "use a larger network, or set spec.disableAnycast".into(),
            Self::DeletedKept { by, .. } => {
                format!("create it again, or change or delete {by} as well").into()
            }
            Self::NameGenerated { by } => {
                format!("rename or delete this object; {by} then creates its own").into()
            }
            Self::NameTaken { .. } => "choose another name for this object".into(),
            Self::VrfWithoutFabric { destination } => format!(
                "change the selector so that it does not match {destination}, \
 or remove spec.interfaceRef to reach it over the fabric"
            )
            .into(),
            Self::LowLevelConflict { .. } => {
                "configure something else here, or change one nodeSelector so that no node matches both".into()
            }
            Self::InboundHasPool { inbound } => {
                format!("set spec.disableLoadBalancer in {inbound}").into()
            }
            Self::SourceAmbiguous { .. } => {
                "use one VRF for this traffic, or different sources".into()
            }
            Self::PrefixInTwoVrfs { .. } => {
                "select one of the two, or change the prefixes of one".into()
            }
            Self::SourcesTooDeep { .. } => "use fewer nested sources".into(),
            Self::NetworkHasVni { .. } => {
                "use a Network without spec.vni, or remove spec.interfaceRef".into()
            }
            Self::PrefixByTwoNextHops { .. } => "change the selector so that it matches one of them".into(),
            Self::NextHopOutside { .. } => {
                "use a next hop in the network, or a network that contains it".into()
            }
            Self::NodeIpsRequired => "set spec.nodeIPs.enabled".into(),
            Self::HostRouteTaken { .. } => {
                "use different prefixes, or change one nodeSelector so that no node matches both".into()
            }
            Self::InterfaceNotFound { .. } => {
                "create the interface on the node, or correct the name or the node selector".into()
            }
            Self::InterfaceInUse { .. } => "choose another interface".into(),
            Self::SriovSeveralVrfs { .. } => {
                "change spec.destinations so that it selects one VRF, or create an attachment for each VRF".into()
            }
            Self::PeerTaken { .. } => {
                "keep one of the two, or change one nodeSelector so that no node matches both".into()
            }
            Self::PeeringWithoutGateway { .. } => {
                "give the segment spec.anycastGateways and spec.vrf, or choose another".into()
            }
            Self::PeeringNowhere { .. } => "change one nodeSelector so that a node matches both".into(),
            Self::NoWayToPeer { .. } => {
                "add an address of that family to Settings.spec.trunk.addresses".into()
            }
            Self::TimersDoNotFit => "choose other timers, such as 90s and 30s".into(),
            Self::WorkloadAsRequired => "set it, or Settings.spec.bgp.workloadAS".into(),
            Self::InboundsApart { .. } => {
                "give them the same nodeSelector, or create a BGPNeighbor for each".into()
            }
            Self::TrunkRequired => "set Settings.spec.trunk.addresses".into(),
            Self::GatewayRequired => {
                "remove spec.disableAnycast or spec.bgp, or give the Network addresses".into()
            }
            Self::MirrorVrfLoopbacks { vrf, .. } => {
                format!("give {vrf} exactly one entry in spec.loopbacks").into()
            }
            Self::MirrorVrfMissing { vrf } => {
                format!("create a VRFRouteConfiguration with spec.vrf {vrf:?}, or correct the name")
                    .into()
            }
            Self::LoopbackMissing { loopback, .. } => {
                format!("add {loopback:?} to spec.loopbacks of one, or correct the name").into()
            }
            Self::LoopbackNotOnNode { .. } => {
                "change spec.nodeSelector of the VRFRouteConfiguration with the loopback so that it selects the node too".into()
            }
            Self::LoopbackDisagrees { .. } => "use the same poolRef, or another loopback".into(),
            Self::LoopbackNameReserved { .. } => "choose another name, such as \"lo.mir\"".into(),
            Self::NoPool { .. } => {
                "add the apiGroup of the pool, such as ipam.cluster.x-k8s.io".into()
            }
            Self::WrongReference { .. } => "correct kind and apiGroup".into(),
            Self::NothingToMirror { .. } => {
                "choose a source that reaches a VRF over the fabric".into()
            }
            Self::MirrorOfItself { .. } => {
                "choose another source, or another mirror VRF".into()
            }
            Self::MatchesNothing { .. } => "correct spec.trafficMatch, or remove it".into(),
            Self::AddressGivenTwice { .. } => {
                "delete one of the two claims, so that its node gets another address".into()
            }
            Self::AddressKept { .. } => {
                "correct the pool, or check why its provider allocates no address for the claim".into()
            }
            Self::SpecialAddress { range, .. } => {
                format!("choose unicast addresses outside of {range}").into()
            }
            Self::SpecialMac { .. } => {
                "choose a unicast address, such as one that begins with 02".into()
            }
            Self::NeverAnnounced { field, .. } => {
                format!("choose another network, or change {field}").into()
            }
            Self::NoEvpnNeighbor => {
                "add evpn to spec.neighbors[].addressFamilies of a neighbor, or remove the tunnel endpoint".into()
            }
            Self::VniMeansTwo { .. } => "give one of them another VNI".into(),
            Self::ConfigurationsDisagree(disagreement) => format!(
                "leave the field out, or give it the value of {}",
                disagreement.other
            )
            .into(),
            Self::FilterNameTaken { .. } => {
                "choose another name for the VRF, or for the interface of one of the neighbors".into()
            }
            Self::EvpnNeighborRequired { .. } => {
                "add evpn to addressFamilies of a neighbor of this router, or move the field to the router that has one"
                    .into()
            }
            Self::L3VniWithNeighbors { .. } => {
                "move the neighbors to the default VRF's router, or leave l3vni out".into()
            }
            Self::RawNotAllowed => {
                "set Settings.spec.frrConfigurations.allowRaw, or leave spec.raw out".into()
            }
            Self::NamespaceNotUsed { namespace } => format!(
                "add {namespace:?} to Settings.spec.frrConfigurations.namespaces, or move the object to the namespace of the operator"
            )
            .into(),
            Self::InlinePassword => {
                "move it into a Secret, and reference the Secret in passwordSecret".into()
            }
            Self::HostBits { network, .. } => format!("write {network}").into(),
            Self::NotCompiledKept { .. } => "revert the edit".into(),
            Self::TrunkNotOfTwo { .. } => {
                "use a network of two, such as 169.254.100.0/31 or fd00:100::/127".into()
            }
            Self::VtepFamilies { .. } => {
                "use VTEP pools of one address family, or use different VNIs on these nodes".into()
            }
            Self::TunnelTaken { .. } => "use that one, or another key".into(),
            Self::TunnelToItself { .. } => "correct the address of the collector".into(),
            Self::TunnelFamilies { .. } => "use a pool of the destination's family".into(),
        };
        Some(text.into_owned())
    }
}
