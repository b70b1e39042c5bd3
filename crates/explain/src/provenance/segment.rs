//! Segments, what they have in the host, and VLANs on devices of the host, from layer 2 objects.

use api::{tcaas::Layer2NetworkConfigurationSpec, value::Prefix};
use compiler::snapshot::Kind;

use super::{
    Claim, ClaimBuilder, Low, OnNode, Trace,
    intent::{Aspect, AttachmentAspect},
};

type Segment<'a> = Low<'a, Layer2NetworkConfigurationSpec>;

const KIND: Kind = Kind::Layer2NetworkConfiguration;

impl OnNode<'_> {
    /// The segments that are in effect on the node.
    pub(super) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let all = self
            .trace
            .compilation
            .objects
            .of::<Layer2NetworkConfigurationSpec>();
        let here = all.filter(|(name, object)| {
            self.config.shared.segments.contains(*name)
                && self.is_selected(object.spec.node_selector.as_ref())
        });
        here.map(|(name, object)| (KIND, name.as_str(), &**object))
    }

    fn over_the_fabric(&self, vlan: u16) -> Option<Segment<'_>> {
        let mut segments = self.segments();
        segments.find(|(_, _, object)| {
            object.spec.interface_ref.is_none() && object.spec.id.get() == vlan
        })
    }

    /// The segment that a device of the host belongs to.
    fn of_device(&self, device: &str) -> Option<Segment<'_>> {
        let object = self.config.shared.host_devices.get(device)?;
        self.segments().find(|(_, name, _)| *name == object)
    }

    /// Begins the claim of a segment on this node.
    fn is_here(&self, low: Segment<'_>) -> ClaimBuilder<'_> {
        let mut draft = self.draft(low.2);
        if low.2.spec.node_selector.is_some() {
            draft.low_level(low, "spec.nodeSelector", Aspect::Nodes);
        }
        draft
    }

    /// Begins the claim of what has the segment's VLAN.
    fn on_vlan(&self, low: Segment<'_>) -> ClaimBuilder<'_> {
        let mut draft = self.is_here(low);
        draft.low_level(low, "spec.id", Aspect::Attachment(AttachmentAspect::Vlan));
        draft
    }

    pub(super) fn segment(&self, vlan: u16) -> Vec<Claim> {
        let claim = |low: Segment<'_>| {
            let spec = &low.2.spec;
            let mut draft = self.on_vlan(low);
            draft.low_level(low, "spec.vni", Aspect::Attachment(AttachmentAspect::Vni));
            draft.low_level(low, "spec.mtu", Aspect::Attachment(AttachmentAspect::Mtu));
            if spec.neigh_suppression.is_some() {
                let aspect = Aspect::Attachment(AttachmentAspect::NeighborSuppression);
                draft.low_level(low, "spec.neighSuppression", aspect);
            }
            draft.build()
        };
        self.over_the_fabric(vlan).map(claim).into_iter().collect()
    }

    pub(super) fn gateway(&self, vlan: u16) -> Vec<Claim> {
        let claim = |low: Segment<'_>| {
            let mut draft = self.networks_of(low);
            draft.low_level(low, "spec.id", Aspect::Attachment(AttachmentAspect::Vlan));
            match low.2.spec.anycast_mac {
                Some(_) => {
                    let aspect = Aspect::Attachment(AttachmentAspect::GatewayMac);
                    draft.low_level(low, "spec.anycastMac", aspect);
                }
                None if self.trace.sets(|settings| &settings.anycast_mac) => {
                    draft.own(Trace::setting("spec.anycastMAC"));
                }
                None => {}
            }
            draft.build()
        };
        self.over_the_fabric(vlan).map(claim).into_iter().collect()
    }

    /// Begins the claim of what needs a segment's gateway: its networks, in its VRF.
    pub(super) fn networks_of(&self, low: Segment<'_>) -> ClaimBuilder<'_> {
        let spec = &low.2.spec;
        let mut draft = self.is_here(low);
        for (place, gateway) in spec.anycast_gateways.iter().enumerate() {
            let path = format!("spec.anycastGateways[{place}]");
            draft.low_level(low, path, Aspect::Network(gateway.prefix()));
        }
        match &spec.vrf {
            Some(vrf) => draft.low_level(low, "spec.vrf", Aspect::Vrf(vrf)),
            None if self.trace.sets(|settings| &settings.cluster_vrf.name) => {
                draft.own(Trace::setting("spec.clusterVRF.name"));
            }
            None => {}
        }
        draft
    }

    pub(super) fn host_interface(&self, device: &str) -> Vec<Claim> {
        let claim = |low: Segment<'_>| {
            let mut draft = self.on_vlan(low);
            draft.device(low);
            draft.build()
        };
        self.of_device(device).map(claim).into_iter().collect()
    }

    /// Begins the claim of what a segment has on its device of the host.
    fn on_device(&self, low: Segment<'_>) -> ClaimBuilder<'_> {
        // A device without a given name is named after its VLAN.
        let mut draft = match low.2.spec.interface_name {
            Some(_) => self.is_here(low),
            None => self.on_vlan(low),
        };
        draft.device(low);
        draft
    }

    pub(super) fn host_vlan(&self, device: &str) -> Vec<Claim> {
        let claim = |low: Segment<'_>| {
            let mut draft = self.on_vlan(low);
            draft.device(low);
            draft.low_level(low, "spec.mtu", Aspect::Attachment(AttachmentAspect::Mtu));
            draft.build()
        };
        self.of_device(device).map(claim).into_iter().collect()
    }

    pub(super) fn host_address(&self, device: &str, address: &str) -> Vec<Claim> {
        let Ok(address) = address.parse::<api::value::HostCidr>() else {
            return Vec::new();
        };
        let claim = |low: Segment<'_>| {
            let mut draft = self.on_device(low);
            draft.node_addresses(low, address.prefix());
            draft.build()
        };
        self.of_device(device).map(claim).into_iter().collect()
    }

    pub(super) fn host_route(&self, device: &str, prefix: &str) -> Vec<Claim> {
        let claim = |low: Segment<'_>| {
            let mut draft = self.on_device(low);
            let routes = low.2.spec.static_routes.iter().enumerate();
            for (place, route) in routes.filter(|(_, route)| route.prefix.to_string() == prefix) {
                let path = format!("spec.staticRoutes[{place}]");
                draft.low_level(low, path, Aspect::NodeRoute(route.prefix));
            }
            draft.low_level(
                low,
                "spec.nodeIPs",
                Aspect::Attachment(AttachmentAspect::NodeIps),
            );
            draft.build()
        };
        self.of_device(device).map(claim).into_iter().collect()
    }
}

impl ClaimBuilder<'_> {
    /// Names where the device of a segment comes from.
    fn device(&mut self, low: Segment<'_>) {
        if low.2.spec.interface_name.is_some() {
            let aspect = Aspect::Attachment(AttachmentAspect::InterfaceName);
            self.low_level(low, "spec.interfaceName", aspect);
        }
        if low.2.spec.interface_ref.is_some() {
            let aspect = Aspect::Attachment(AttachmentAspect::InterfaceRef);
            self.low_level(low, "spec.interfaceRef", aspect);
        }
    }

    /// Names where a node's address of a network comes from.
    fn node_addresses(&mut self, low: Segment<'_>, network: Prefix) {
        self.low_level(
            low,
            "spec.nodeIPs.enabled",
            Aspect::Attachment(AttachmentAspect::NodeIps),
        );
        let Some(node_ips) = &low.2.spec.node_ips else {
            return;
        };
        let named = node_ips.networks.iter().position(|own| *own == network);
        if let Some(place) = named {
            let path = format!("spec.nodeIPs.networks[{place}]");
            self.low_level(low, path, Aspect::Network(network));
            return;
        }
        let gateways = low.2.spec.anycast_gateways.iter().enumerate();
        for (place, _) in gateways.filter(|(_, gateway)| gateway.prefix() == network) {
            self.low_level(
                low,
                format!("spec.anycastGateways[{place}]"),
                Aspect::Network(network),
            );
        }
    }
}
