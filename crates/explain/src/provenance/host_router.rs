//! What `FRRConfiguration`s bring to the router of the host.

use std::collections::BTreeSet;

use api::frrk8s::{self, Bgp, FrrConfigurationSpec, Vrf};
use compiler::snapshot::{Key, Kind, ObjectRef};

use super::{Claim, ClaimBuilder, Field, OnNode, Trace};

/// An object in effect on the node, with its spec.
type InEffect<'a> = (ObjectRef, &'a FrrConfigurationSpec);

impl<'a> OnNode<'a> {
    /// The objects that are in effect on the node.
    fn configurations(&self) -> Vec<InEffect<'a>> {
        let router = self.config.host_router.iter();
        let configurations = router.flat_map(|one| &one.router.configurations);
        let in_effect = configurations.filter_map(|one| {
            let key = Key {
                namespace: Some(one.namespace.as_str().into()),
                name: one.name.as_str().into(),
            };
            let object = self.trace.snapshot.frr_configurations.get(&key)?;
            let kind = Kind::FrrConfiguration;
            Some((ObjectRef { kind, key }, &*object.spec))
        });
        in_effect.collect()
    }

    /// The claims of the objects of which some fields bring an element.
    fn of_configurations(
        &self,
        fields: impl Fn(&FrrConfigurationSpec) -> Vec<String>,
    ) -> Vec<Claim> {
        let claims = self.configurations().into_iter().filter_map(|(by, spec)| {
            let fields = fields(spec);
            let mut draft = ClaimBuilder {
                trace: self.trace,
                claim: Claim {
                    by: by.clone(),
                    sources: BTreeSet::new(),
                },
            };
            let selector = spec
                .node_selector
                .as_ref()
                .map(|_| "spec.nodeSelector".to_owned());
            let is_behind = !fields.is_empty();
            for field in fields.into_iter().chain(selector) {
                draft.own(Field::new(by.clone(), field));
            }
            is_behind.then(|| draft.build())
        });
        claims.collect()
    }

    /// The same, of the routers of one VRF.
    fn of_routers(&self, vrf: &str, fields: impl Fn(&frrk8s::Router) -> Vec<String>) -> Vec<Claim> {
        self.of_configurations(|spec| {
            let routers = routers(spec).filter(|(_, router)| vrf_of(router) == vrf);
            let fields = routers.flat_map(|(place, router)| {
                let fields = fields(router).into_iter();
                fields.map(move |field| format!("spec.bgp.routers[{place}].{field}"))
            });
            fields.collect()
        })
    }

    pub(super) fn host_routing(&self) -> Vec<Claim> {
        let mut claims = self.of_configurations(|_| vec!["spec".to_owned()]);
        let settings = [
            (
                self.trace.sets(|one| &one.frr_configurations.always_block),
                "spec.frrConfigurations.alwaysBlock",
            ),
            (
                self.trace.sets(|one| &one.frr_configurations.log_level),
                "spec.frrConfigurations.logLevel",
            ),
        ];
        for (_, path) in settings.into_iter().filter(|(is_set, _)| *is_set) {
            let field = Trace::setting(path);
            for claim in &mut claims {
                let behind = BTreeSet::new();
                claim.sources.insert(super::Source {
                    field: field.clone(),
                    behind,
                });
            }
        }
        claims
    }

    pub(super) fn host_router(&self, vrf: &str) -> Vec<Claim> {
        self.of_routers(vrf, |router| {
            let evpn = router.evpn.as_ref();
            let set = [
                (true, "asn"),
                (router.vrf.is_some(), "vrf"),
                (router.id.is_some(), "id"),
                (!router.imports.is_empty(), "imports"),
                (
                    evpn.is_some_and(|one| one.advertise_vnis.is_some()),
                    "evpn.advertiseVNIs",
                ),
                (
                    evpn.is_some_and(|one| one.advertise_svi.is_some()),
                    "evpn.advertiseSVI",
                ),
            ];
            let set = set.into_iter().filter(|(is_set, _)| *is_set);
            set.map(|(_, field)| field.to_owned()).collect()
        })
    }

    pub(super) fn host_peer(&self, vrf: &str, peer: &str) -> Vec<Claim> {
        self.of_routers(vrf, |router| {
            let neighbors = router.neighbors.iter().enumerate();
            let here =
                neighbors.filter(|(_, one)| one.peer().is_ok_and(|one| one.to_string() == peer));
            here.map(|(place, _)| format!("neighbors[{place}]"))
                .collect()
        })
    }

    pub(super) fn host_network(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        self.of_routers(vrf, |router| {
            let prefixes = router.prefixes.iter().enumerate();
            let here = prefixes.filter(|(_, one)| one.prefix().to_string() == prefix);
            here.map(|(place, _)| format!("prefixes[{place}]"))
                .collect()
        })
    }

    pub(super) fn host_vni(&self, vrf: &str, vni: u32) -> Vec<Claim> {
        self.of_routers(vrf, |router| {
            let Some(evpn) = &router.evpn else {
                return Vec::new();
            };
            let l2 = evpn.l2vnis.iter().enumerate();
            let l2 = l2.filter(|(_, one)| one.vni.get() == vni);
            let l2 = l2.map(|(place, _)| format!("evpn.l2vnis[{place}]"));
            let l3 = evpn.l3vni.iter().filter(|one| one.vni.get() == vni);
            l2.chain(l3.map(|_| "evpn.l3vni".to_owned())).collect()
        })
    }

    pub(super) fn host_bfd_profile(&self, name: &str) -> Vec<Claim> {
        self.of_configurations(|spec| {
            let profiles = spec
                .bgp
                .iter()
                .flat_map(|bgp| &bgp.bfd_profiles)
                .enumerate();
            let here = profiles.filter(|(_, one)| one.name == name);
            here.map(|(place, _)| format!("spec.bgp.bfdProfiles[{place}]"))
                .collect()
        })
    }

    pub(super) fn host_raw(&self, source: &str) -> Vec<Claim> {
        let mut claims = self.of_configurations(|_| vec!["spec.raw".to_owned()]);
        claims.retain(|claim| claim.by.key.to_string() == source);
        claims
    }
}

fn routers(spec: &FrrConfigurationSpec) -> impl Iterator<Item = (usize, &frrk8s::Router)> {
    let routers = spec.bgp.iter().flat_map(|bgp: &Bgp| &bgp.routers);
    routers.enumerate()
}

fn vrf_of(router: &frrk8s::Router) -> &str {
    match router.vrf() {
        Vrf::Default => "default",
        Vrf::Named(name) => name.as_str(),
    }
}
