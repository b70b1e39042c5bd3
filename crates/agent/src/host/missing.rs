//! What a config of the host's router refers to and the host does not have. Pure.

use api::tcaas::node_network_config::{MissingDevice, MissingKind};
use linux::{Domain, Kind, netlink::Interface};

/// Those of the needs that the host lacks.
pub(super) fn missing(needs: &[MissingDevice], interfaces: &[Interface]) -> Vec<MissingDevice> {
    let of_host: Vec<&Interface> = interfaces
        .iter()
        .filter(|interface| interface.id.domain == Domain::Host)
        .collect();
    let lacks = |need: &&MissingDevice| !has(&of_host, need);
    needs.iter().filter(lacks).cloned().collect()
}

fn has(interfaces: &[&Interface], need: &MissingDevice) -> bool {
    let named = |name: &str| interfaces.iter().find(|it| it.id.name == name);
    let is_vrf = |name: &str| named(name).is_some_and(|it| matches!(it.kind, Kind::Vrf { .. }));
    // One device for all VNIs has number 0; which VNIs it carries, FRR finds out.
    let carries = |it: &&&Interface| match it.kind {
        Kind::Vxlan { vni, .. } => vni == 0 || vni.to_string() == need.name,
        _ => false,
    };
    let bridge_of = |vxlan: &Interface| {
        let bridge = vxlan.master.as_deref().and_then(named);
        bridge.filter(|it| it.kind == Kind::Bridge)
    };
    let mut bridges = interfaces
        .iter()
        .filter(carries)
        .filter_map(|it| bridge_of(it));
    match need.kind {
        MissingKind::Vrf => is_vrf(&need.name),
        MissingKind::Interface => named(&need.name).is_some(),
        MissingKind::L2vni => bridges.next().is_some(),
        MissingKind::L3vni => bridges.any(|bridge| {
            let vrf = need.vrf.as_str();
            let in_vrf = |it: &Interface| it.master.as_deref() == Some(vrf);
            // With one bridge for all VNIs, the interface of its VLAN is in the VRF.
            let of_vlan = |it: &&&Interface| match &it.kind {
                Kind::Vlan { parent, .. } => parent.as_deref() == Some(&bridge.id.name),
                _ => false,
            };
            in_vrf(bridge) || interfaces.iter().filter(of_vlan).any(|it| in_vrf(it))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linux::{LinkId, netlink::InterfaceState, owned::Owner};

    use super::*;

    fn link(name: &str, kind: Kind, master: Option<&str>) -> Interface {
        Interface {
            id: LinkId::host(name),
            owner: Owner::Foreign,
            kind,
            mac: None,
            mtu: 1500,
            state: InterfaceState::Up,
            master: master.map(str::to_owned),
            members: BTreeSet::new(),
            addresses: BTreeSet::new(),
        }
    }

    fn vxlan(vni: u32) -> Kind {
        Kind::Vxlan {
            vni,
            port: 4789,
            local: None,
            learning: false,
        }
    }

    fn need(vrf: &str, kind: MissingKind, name: &str) -> MissingDevice {
        MissingDevice {
            vrf: vrf.parse().unwrap(),
            kind,
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_vni_is_there_when_its_device_is_a_port_of_a_bridge_and_that_is_in_the_vrf() {
        let needs = [
            need("red", MissingKind::Vrf, "red"),
            need("default", MissingKind::Interface, "eth1"),
            need("default", MissingKind::L2vni, "100"),
            need("red", MissingKind::L3vni, "200"),
        ];
        assert_eq!(missing(&needs, &[]), needs);
        let mut links = vec![
            link("red", Kind::Vrf { table: 10 }, None),
            link("eth1", Kind::Dummy, None),
            link("br100", Kind::Bridge, None),
            link("vx100", vxlan(100), None),
            link("br200", Kind::Bridge, None),
            link("vx200", vxlan(200), Some("br200")),
        ];
        // The VXLAN device of the segment is in no bridge, the bridge of the VRF in no VRF.
        assert_eq!(missing(&needs, &links), needs[2..]);
        links[3].master = Some("br100".to_owned());
        links[4].master = Some("red".to_owned());
        assert_eq!(missing(&needs, &links), []);
        // A router of the node has devices of its own, which count for nothing here.
        for link in &mut links {
            link.id = LinkId::router(&link.id.name);
        }
        assert_eq!(missing(&needs, &links), needs);
    }

    #[test]
    fn one_device_for_all_vnis_counts_and_its_vlan_leads_into_the_vrf() {
        let vlan = Kind::Vlan {
            parent: Some("br0".to_owned()),
            id: 20,
        };
        let links = [
            link("br0", Kind::Bridge, None),
            link("vx0", vxlan(0), Some("br0")),
            link("br0.20", vlan, Some("red")),
        ];
        let needs = [
            need("default", MissingKind::L2vni, "100"),
            need("red", MissingKind::L3vni, "200"),
        ];
        assert_eq!(missing(&needs, &links), []);
    }
}
