//! EVPN of the host's router.

use api::{
    tcaas::node_network_config::{HostBgp, HostVni, MissingKind},
    value::ImportRouteTarget,
};

use super::Build;
use crate::config::{Advertise, Bgp, VniTargets, Vrf};

impl Build<'_> {
    pub(super) fn evpn(&mut self, router: &HostBgp, bgp: &mut Bgp) {
        bgp.evpn.advertise_all_vni = router.advertise_all_vnis;
        bgp.evpn.advertise_svi_ip = router.advertise_svi;
        for l2vni in &router.l2vnis {
            self.needs(MissingKind::L2vni, &l2vni.vni);
            let wildcards = self.features.wildcard_l2_route_targets;
            let place = "in a layer 2 VNI: name the administrator";
            let targets = self.targets(l2vni, wildcards, place);
            if !router.advertise_all_vnis && targets != VniTargets::default() {
                let why = "route distinguisher and route targets of a layer 2 VNI have no effect in FRR while the router does not \
                           advertise VNIs: set advertiseVNIs to All";
                self.unsupported(Some(l2vni.vni), why);
                continue;
            }
            bgp.evpn.vnis.insert(l2vni.vni, targets);
        }
        let Some(l3vni) = &router.l3vni else { return };
        let Some(vrf) = self.vrf.clone() else {
            let why = "FRR has no layer 3 VNI in the default VRF: move it to a router with vrf";
            return self.unsupported(Some(l3vni.vni), why);
        };
        self.needs(MissingKind::L3vni, &l3vni.vni);
        let wildcards = self.features.wildcard_route_targets;
        let place = "in a layer 3 VNI: name the administrator, or use a newer FRR";
        let VniTargets { rd, import, export } = self.targets(l3vni, wildcards, place);
        bgp.evpn.advertise_ipv4 = Some(Advertise::default());
        bgp.evpn.advertise_ipv6 = Some(Advertise::default());
        bgp.evpn.rd = rd;
        bgp.evpn.import_targets = import;
        bgp.evpn.export_targets = export;
        let zebra = Vrf {
            vni: Some(l3vni.vni),
            ..Vrf::default()
        };
        self.config.vrfs.insert(vrf, zebra);
    }

    fn targets(&mut self, of: &HostVni, wildcards: bool, place: &str) -> VniTargets {
        let HostVni {
            vni,
            rd,
            import_rts,
            export_rts,
        } = of;
        let is_wildcard =
            |target: &ImportRouteTarget| matches!(target, ImportRouteTarget::AnyAdministrator(_));
        let mut import = import_rts.clone();
        if !wildcards {
            for target in import_rts.iter().filter(|target| is_wildcard(target)) {
                let why = format!(
                    "FRR {} cannot import the route target {target} {place}",
                    self.version
                );
                self.unsupported(Some(*vni), why);
            }
            import.retain(|target| !is_wildcard(target));
        }
        VniTargets {
            rd: *rd,
            import,
            export: export_rts.clone(),
        }
    }
}
