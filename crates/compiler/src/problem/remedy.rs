//! What people can do about what is wrong.

use super::Kind;

impl Kind {
    /// What its author can do about it.
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Unreadable { .. } | Self::RuleBroken { .. } | Self::VrfDisagrees { .. } => {
                return None;
            }
            Self::UnknownField => "remove it, or check its spelling and place".to_owned(),
            Self::Duplicate => "keep one of them".to_owned(),
            Self::MissingReference { target } => format!("create {target}, or correct the name"),
            Self::UnreadableReference { target } | Self::ReferenceNotInEffect { target } => {
                format!("correct {target}")
            }
            Self::InvalidSelector(_) => "correct the requirement".to_owned(),
            Self::NoDestination => {
                "label a Destination so that it is selected, or correct the selector".to_owned()
            }
            Self::DestinationsRequired => {
                "add spec.destinations, or spec.interfaceRef for a VLAN on a device of the node"
                    .to_owned()
            }
            Self::NetworkLacks { network, what } => format!("add spec.{what} to {network}"),
            Self::VrfIncomplete { vrf, what } => {
                format!("add spec.{what}, or an entry for {vrf:?} to Settings.spec.vrfs")
            }
            Self::VrfNameTaken { .. } | Self::DeviceNameTaken { .. } => {
                "choose another name".to_owned()
            }
            Self::VrfNotOnNode { vrf, .. } => {
                format!("let a VRFRouteConfiguration of VRF {vrf:?} select the node too")
            }
            Self::VlanTaken { .. } => {
                "choose another VLAN, or node selectors that do not meet".to_owned()
            }
            Self::NetworksOverlap { vrf: Some(_), .. } => {
                "choose another network or VRF, or node selectors that do not meet".to_owned()
            }
            Self::NetworksOverlap { vrf: None, .. } => {
                "choose another network, or let the nodes have no addresses in one of the two"
                    .to_owned()
            }
            Self::VniTaken { .. } => "choose another VNI".to_owned(),
            Self::NameTooLong { .. } => "choose a shorter name".to_owned(),
            Self::SecondUnderlay { .. } => "let the node selectors of the two not meet".to_owned(),
            Self::NoUnderlay { .. } => {
                "create an Underlay with spec.evpn for these nodes, or select others".to_owned()
            }
            Self::PoolExhausted { .. } => "use a larger pool".to_owned(),
            Self::AddressTaken { .. } => "choose another address, or another Network".to_owned(),
            Self::NoHostAddress { .. } => {
                "choose an address of the Network, neither its first nor its last".to_owned()
            }
            Self::TooFewAddresses { .. } => "ask for fewer, or use a larger Network".to_owned(),
            Self::NetworkTaken { .. } => "use a Network of its own".to_owned(),
            Self::PoolTaken { .. } => "choose another spec.poolName".to_owned(),
            Self::NeedsLegacyFlavour { what } => {
                format!("remove {what}, or change the flavour if the cluster has it")
            }
            Self::NoVniLeft => "set spec.vni, or set or widen Settings.spec.l2VniRange".to_owned(),
            Self::MtuTooLarge { most, .. } => {
                format!("set spec.mtu to {most} or less, or give the device a larger MTU")
            }
            Self::MtuTooSmall { least, .. } => format!("set spec.mtu to {least} or more"),
            Self::NoGateway { .. } => "use a larger network, or set spec.disableAnycast".to_owned(),
            Self::NameTaken { .. } => "rename or delete that object".to_owned(),
            other => return other.remedy_of_attachments(),
        };
        Some(text)
    }

    /// What can be done about problems of routing by source, of devices of the node, and of sessions with workloads.
    fn remedy_of_attachments(&self) -> Option<String> {
        if let Self::VrfWithoutFabric { destination } = self {
            return Some(format!(
                "let the selector leave {destination} out, or remove spec.interfaceRef to reach it over the fabric"
            ));
        }
        if let Self::LowLevelConflict { by, .. } = self {
            return Some(format!("delete {by}, or this object"));
        }
        if let Self::InboundHasPool { inbound } = self {
            return Some(format!("set spec.disableLoadBalancer in {inbound}"));
        }
        let text = match self {
            Self::SourceAmbiguous { .. } => "let one VRF lead there, or use sources that differ",
            Self::PrefixInTwoVrfs { .. } => "select one of the two, or let their prefixes differ",
            Self::SourcesTooDeep { .. } => "use fewer sources inside each other",
            Self::NetworkHasVni { .. } => {
                "use a Network without spec.vni, or remove spec.interfaceRef"
            }
            Self::PrefixByTwoNextHops { .. } => "let the selector choose one of them",
            Self::NextHopOutside { .. } => {
                "use a next hop in the network, or a network that holds it"
            }
            Self::NodeIpsRequired => "set spec.nodeIPs.enabled",
            Self::HostRouteTaken { .. } => {
                "let the prefixes differ, or the node selectors not meet"
            }
            Self::InterfaceNotFound { .. } => {
                "create the interface on the node, or correct the name or the node selector"
            }
            Self::InterfaceInUse { .. } => "choose another interface",
            Self::SriovSeveralVrfs { .. } => {
                "let spec.destinations select one VRF, or make an attachment for each"
            }
            Self::PeerTaken { .. } => "keep one of the two, or let the node selectors not meet",
            Self::PeeringWithoutGateway { .. } => {
                "give the segment spec.anycastGateways and spec.vrf, or choose another"
            }
            Self::PeeringNowhere { .. } => "let the node selectors of the two meet",
            Self::NoWayToPeer { .. } => {
                "add an address of that family to Settings.spec.trunk.addresses"
            }
            Self::TimersDoNotFit => "choose other timers, such as 90s and 30s",
            Self::WorkloadAsRequired => "set it, or Settings.spec.bgp.workloadAS",
            Self::InboundsApart { .. } => {
                "give them one node selector, or make a BGPNeighbor for each"
            }
            Self::TrunkRequired => "set Settings.spec.trunk.addresses",
            Self::GatewayRequired => {
                "remove spec.disableAnycast or spec.bgp, or give the Network addresses"
            }
            other => return other.remedy_of_mirrors(),
        };
        Some(text.to_owned())
    }

    /// What can be done about problems of mirrors.
    fn remedy_of_mirrors(&self) -> Option<String> {
        let text = match self {
            Self::MirrorVrfLoopbacks { vrf, .. } => {
                return Some(format!("give {vrf} exactly one entry in spec.loopbacks"));
            }
            Self::MirrorVrfMissing { vrf } => {
                return Some(format!(
                    "create a VRFRouteConfiguration with spec.vrf {vrf:?}, or correct the name"
                ));
            }
            Self::LoopbackMissing { loopback, .. } => {
                return Some(format!(
                    "add {loopback:?} to spec.loopbacks of one, or correct the name"
                ));
            }
            Self::LoopbackNotOnNode { .. } => {
                "let the VRFRouteConfiguration with the loopback select the node too"
            }
            Self::LoopbackDisagrees { .. } => "use the same poolRef, or another loopback",
            Self::LoopbackNameReserved { .. } => "choose another name, such as \"lo.mir\"",
            Self::NoPool { .. } => "add the apiGroup of the pool, such as ipam.cluster.x-k8s.io",
            Self::WrongReference { .. } => "correct kind and apiGroup",
            Self::NothingToMirror { .. } => "choose a source that reaches a VRF over the fabric",
            Self::MirrorOfItself { .. } => "choose another source, or a mirror VRF of its own",
            Self::MatchesNothing { .. } => "correct spec.trafficMatch, or remove it",
            Self::AddressGivenTwice { .. } => {
                "delete one of the two claims, so that its node gets another address"
            }
            Self::TunnelTaken { .. } => "use that one, or another key",
            Self::TunnelFamilies { .. } => "use a pool of the destination's family",
            _ => return None,
        };
        Some(text.to_owned())
    }
}
