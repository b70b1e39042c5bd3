//! Values that some versions of FRR do not support, as `frr::version` knows them. A node leaves them out, and the rest of the object works.

use std::sync::Arc;

use api::value::{ImportRouteTarget, RemoteAs};

use super::{
    part::{At, Part, VniValues},
    validate::{Member, Merged, contributions},
};
use crate::{
    node::is_older_frr,
    problem::{self, OlderFrr, Problem},
};

/// The first version whose VRFs import `*:number`.
const WILDCARDS: &str = "10.3";

/// The first version whose sessions can have the AS number of the peer as their own.
const LOCAL_AS_OF_PEER: &str = "10.3";

/// What an author writes in the place of a wildcard.
const NO_WILDCARD: &str = "name the administrator of the route target";

/// A value that only some versions support.
struct Demanding {
    field: String,
    what: String,
    needed: &'static str,
    instead: &'static str,
}

/// What objects in effect have that is left out on nodes whose oldest FRR is this one.
pub(super) fn left_out(
    members: &[Member],
    merged: &Merged,
    oldest: impl FnOnce() -> Option<(Arc<str>, Arc<str>)>,
) -> Vec<Problem> {
    let members = contributions(members, &merged.in_effect);
    let found = members.flat_map(|(_, member, contribution)| {
        let found = demanding(&contribution.part).into_iter();
        found.map(move |one| (member.subject.clone(), one))
    });
    let found: Vec<_> = found.collect();
    // Few objects have such a value, and versions of nodes are only read for them.
    if found.is_empty() {
        return Vec::new();
    }
    let Some((node, version)) = oldest() else {
        return Vec::new();
    };
    let problems = found.into_iter().filter_map(|(subject, one)| {
        let Demanding {
            field,
            what,
            needed,
            instead,
        } = one;
        let older = OlderFrr {
            node: node.to_string(),
            version: version.to_string(),
            needed,
        };
        let kind = problem::Kind::LeftOutByFrr {
            what,
            older: Some(Box::new(older)),
            instead,
        };
        is_older_frr(&version, needed).then(|| Problem::new(subject, field, kind))
    });
    problems.collect()
}

fn demanding(part: &Part) -> Vec<Demanding> {
    let mut found = Vec::new();
    for router in part.routers.values() {
        if let Some((_, values)) = &router.evpn.l3vni {
            found.extend(wildcards(values).map(|target| Demanding {
                field: values.given.at.field("importRTs"),
                what: format!("route target {target}"),
                needed: WILDCARDS,
                instead: NO_WILDCARD,
            }));
        }
        for neighbor in router.neighbors.values() {
            let session = &neighbor.session;
            let Some(local) = &session.local_as else {
                continue;
            };
            let remote_as = session.remote_as.as_ref().map(|one| one.value);
            if remote_as == Some(RemoteAs::Number(local.value)) {
                found.push(Demanding {
                    field: local.at.field("localASN"),
                    what: format!(
                        "localASN {}, which is the asn of the neighbor,",
                        local.value
                    ),
                    needed: LOCAL_AS_OF_PEER,
                    instead: "give another localASN",
                });
            }
        }
    }
    found
}

fn wildcards(values: &VniValues) -> impl Iterator<Item = &ImportRouteTarget> {
    let targets = values.imports.iter();
    targets.filter(|target| matches!(target, ImportRouteTarget::AnyAdministrator(_)))
}

/// What is wrong with the wildcards of a layer 2 VNI, which no version of FRR imports.
pub(super) fn wildcards_of_l2vni(at: At, values: &VniValues) -> Vec<(String, problem::Kind)> {
    let of_target = |target: &ImportRouteTarget| {
        let kind = problem::Kind::LeftOutByFrr {
            what: format!("route target {target} of a layer 2 VNI"),
            older: None,
            instead: NO_WILDCARD,
        };
        (at.field("importRTs"), kind)
    };
    wildcards(values).map(of_target).collect()
}
