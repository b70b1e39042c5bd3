//! What is written and has no effect: said, not passed over.

use std::collections::BTreeSet;

use api::{
    selvedge::{
        BgpSettings, Calico, Canary, ClusterVrf, FrrConfigurations, HostSessions, Namespaced,
        Platform, Rollout, RouteTables, SettingsSpec, SriovPlatform, Trunk,
    },
    tcaas::{DestinationSpec, ExtraRoute, Layer2AttachmentSpec, NetworkSpec},
    value::{Prefix, VrfName},
};

use super::{layer2_attachment::has_bgp, reach::Reach};
use crate::{
    platform::sriov,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef},
    view::{View, reference},
};

/// Fields of `Settings` that are accepted and not implemented. A field that has its default asks for nothing: the API server writes
/// defaults into every object.
///
/// Every field of `Settings` is listed here, as implemented (`_`) or not, so that a new field does not compile before that is decided.
pub(crate) fn of_settings(settings: &SettingsSpec) -> Vec<Problem> {
    let SettingsSpec {
        cluster_vrf:
            ClusterVrf {
                name: _,
                vni,
                route_target: _,
            },
        management_vrf: _,
        cluster_neighbors: _,
        export_cidrs,
        vrfs: _,
        trunk: Trunk {
            name: _,
            addresses: _,
        },
        l2_vni_range: _,
        route_tables: RouteTables { first: _, last: _ },
        anycast_mac: _,
        bgp: BgpSettings {
            workload_as: _,
            workload_cidrs: _,
        },
        host_sessions: HostSessions { cidrs: _ },
        import_match: _,
        hbn_flavour: _,
        frr_configurations:
            FrrConfigurations {
                namespaces: _,
                allow_raw: _,
                always_block: _,
                log_level: _,
            },
        rollout:
            Rollout {
                max_unavailable: _,
                canary:
                    Canary {
                        size: _,
                        node_selector: _,
                    },
                failure_domain_label: _,
                order: _,
                soak_time: _,
                pause: _,
                progress_deadline: _,
                on_failure: _,
                history_limit: _,
                max_removal: _,
            },
        // Nodes get it as it is.
        health: _,
        platform:
            Platform {
                metallb: Namespaced { namespace: _ },
                coil: Namespaced { namespace: _ },
                calico:
                    Calico {
                        namespace: _,
                        api_version: _,
                    },
                sriov:
                    SriovPlatform {
                        kind: _,
                        namespace: _,
                        network_namespace: _,
                        resource_name: _,
                        resource_prefix: _,
                        resources: _,
                    },
            },
        ipam_namespace: _,
    } = settings;
    let mut notes = Vec::new();
    if vni.is_none() && !export_cidrs.is_empty() {
        let what = "the cluster VRF is not in the fabric, so nothing goes out of it: set spec.clusterVRF.vni".to_owned();
        let subject = ObjectRef::named(Kind::Settings, "default");
        let kind = problem::Kind::NoEffect { what };
        notes.push(Problem::new(subject, "spec.exportCIDRs", kind));
    }
    notes
}

/// Fields of a Network of which nothing is made by this version.
pub(crate) fn of_network(key: &Key, spec: &NetworkSpec) -> Vec<Problem> {
    let mut notes = Vec::new();
    let mut note = |field: &str, what: &str| {
        let what = what.to_owned();
        let kind = problem::Kind::NoEffect { what };
        notes.push(Problem::new(reference(Kind::Network, key), field, kind));
    };
    if spec.allocation_pool.is_some() {
        let what = "allocationPool has no effect in this version: ipv4, ipv6, vlan and vni define the network";
        note("spec.allocationPool", what);
    }
    let families = [
        (&spec.ipv4, "spec.ipv4.prefixLength"),
        (&spec.ipv6, "spec.ipv6.prefixLength"),
    ];
    for (family, field) in families {
        let family = family.as_ref();
        if family.is_some_and(|family| family.prefix_length.is_some()) {
            let what = "prefixLength has no effect in this version: all objects that use the network share all of its addresses";
            note(field, what);
        }
    }
    notes
}

/// Prefixes of a Destination that are said twice, and a Destination without any.
pub(crate) fn of_destination(key: &Key, spec: &DestinationSpec) -> Vec<Problem> {
    let subject = reference(Kind::Destination, key);
    let mut notes = twice(&subject, "spec.prefixes", &spec.prefixes);
    if spec.prefixes.is_empty() {
        let what = match spec.vrf_ref {
            Some(_) => "it has no prefixes, so nothing is imported from the VRF",
            None => "it has no prefixes, so no route leads to the next hop",
        };
        let kind = problem::Kind::NoEffect {
            what: what.to_owned(),
        };
        notes.push(Problem::new(subject, "spec.prefixes", kind));
    }
    notes
}

/// Further routes of an intent without prefixes, and prefixes that are said twice.
pub(crate) fn of_routes(subject: &ObjectRef, routes: &[ExtraRoute]) -> Vec<Problem> {
    let mut notes = Vec::new();
    for (place, route) in routes.iter().enumerate() {
        let field = format!("spec.routes[{place}].prefixes");
        notes.extend(twice(subject, &field, &route.prefixes));
        if route.prefixes.is_empty() {
            let what = "the entry has no prefixes and no effect".to_owned();
            let kind = problem::Kind::NoEffect { what };
            notes.push(Problem::new(subject.clone(), field, kind));
        }
    }
    notes
}

/// Prefixes of a list that are there more than once.
fn twice(subject: &ObjectRef, field: &str, prefixes: &[Prefix]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let again = prefixes.iter().enumerate();
    let again = again.filter(|(_, prefix)| !seen.insert(**prefix));
    let note = |(place, prefix): (usize, &Prefix)| {
        let what = format!("{prefix} is in the list already");
        let kind = problem::Kind::NoEffect { what };
        Problem::new(subject.clone(), format!("{field}[{place}]"), kind)
    };
    again.map(note).collect()
}

/// Fields that need configuration on nodes, of a Network that another program provides there: reported, not ignored.
pub(super) fn unmanaged(
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) {
    let node_ips = spec.node_ips.as_ref();
    let asked = [
        (spec.destinations.is_some(), "destinations"),
        (node_ips.is_some_and(|wanted| wanted.enabled), "nodeIPs"),
        (has_bgp(spec), "bgp"),
        (!spec.routes.is_empty(), "routes"),
        (!spec.communities.is_empty(), "communities"),
    ];
    let network = &spec.network_ref;
    for (_, field) in asked.into_iter().filter(|(is_asked, _)| *is_asked) {
        let what = format!(
            "nothing is configured on nodes for Network {network}: it has spec.managed: false"
        );
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(subject.clone(), format!("spec.{field}"), kind));
    }
}

/// Routing that is asked for on a segment in no VRF: said, not passed over.
pub(super) fn without_vrf(
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) {
    let asked = [
        (!spec.routes.is_empty(), "routes"),
        (!spec.communities.is_empty(), "communities"),
    ];
    for (_, field) in asked.into_iter().filter(|(is_asked, _)| *is_asked) {
        let what = format!(
            "without spec.destinations the segment is in no VRF, so {field} have no effect"
        );
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(subject.clone(), format!("spec.{field}"), kind));
    }
}

/// Routing that is asked for on a segment whose gateway is disabled: the VRF has no interface on the segment, so that nothing passes between
/// the two and the networks of the segment are not announced. The objects are made as the source documents have them.
pub(super) fn without_gateway(subject: &ObjectRef, reach: &Reach, problems: &mut Vec<Problem>) {
    let vrfs: Vec<&str> = reach.vrfs.keys().map(VrfName::as_str).collect();
    if vrfs.is_empty() {
        return;
    }
    let vrfs = vrfs.join(", ");
    let what = format!(
        "with disableAnycast the segment has no gateway in VRF {vrfs}: destinations have no effect and the Network is not announced; remove one of the two"
    );
    let kind = problem::Kind::NoEffect { what };
    problems.push(Problem::new(subject.clone(), "spec.destinations", kind));
}

/// What has no effect beside SR-IOV, and devices that pods cannot tell apart: said, not passed over.
pub(super) fn beside_sriov(
    view: &View<'_>,
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) {
    if !spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled) {
        return;
    }
    let settings = view.settings();
    let (device, selector) = (spec.interface_ref.as_ref(), spec.node_selector.as_ref());
    let resource = sriov::resource(&settings.platform.sriov, device, selector);
    if let Some(device) = device {
        let other = sriov::other_device(view, resource.name, device);
        problems.extend(other.map(|(other_device, other)| {
            let kind = problem::Kind::DevicesAreOneResource {
                resource: resource.name.to_owned(),
                other_device: other_device.to_string(),
                other,
            };
            Problem::new(subject.clone(), "spec.interfaceRef", kind)
        }));
        return;
    }
    let mut note = |field: &str, what: &str| {
        let what = what.to_owned();
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(subject.clone(), field, kind));
    };
    if spec.bgp.as_ref().is_some_and(|bgp| bgp.enabled) {
        let what =
            "bgp has no effect with sriov: packets of SR-IOV devices bypass the router of the node";
        note("spec.bgp", what);
    }
    if spec.interface_name.is_none() && spec.destinations.is_some() {
        let what = "destinations have no effect without an interface: packets of SR-IOV devices bypass the router of the node";
        note("spec.destinations", what);
    }
    if spec.interface_name.is_none() && selector.is_some() && !resource.is_of_nodes {
        let what = "nodeSelector has no effect without an interface: pods get SR-IOV devices wherever a node offers them";
        note("spec.nodeSelector", what);
    }
}
