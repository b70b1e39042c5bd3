//! What is behind the sessions of a `BGPNeighbor`: its own fields, and those of the Inbounds that it allows.

use std::collections::BTreeSet;

use compiler::snapshot::{Key, Kind, ObjectRef};

use super::{
    Field, Trace,
    intent::{self, Aspect, AttachmentAspect},
};

/// The fields behind an aspect; nothing, where there is no such neighbor.
pub(super) fn behind(
    trace: &Trace<'_>,
    subject: &ObjectRef,
    aspect: Aspect<'_>,
) -> Option<BTreeSet<Field>> {
    let neighbor = trace.snapshot.bgp_neighbors.get(&subject.key)?;
    let spec = &neighbor.spec;
    let own = |path: &str| Field::new(subject.clone(), path);
    let if_set = |is_set: bool, path: &str| is_set.then(|| own(path)).into_iter().collect();
    let list = own("spec.allowedInbounds");
    let mut fields: BTreeSet<Field> = match aspect {
        Aspect::WorkloadAs if spec.workload_as.is_some() => [own("spec.workloadAS")].into(),
        Aspect::WorkloadAs => [Trace::setting("spec.bgp.workloadAS")].into(),
        Aspect::Attachment(AttachmentAspect::HoldTime) => {
            return Some(if_set(spec.hold_time.is_some(), "spec.holdTime"));
        }
        Aspect::Attachment(AttachmentAspect::KeepaliveTime) => {
            return Some(if_set(spec.keepalive_time.is_some(), "spec.keepaliveTime"));
        }
        Aspect::Attachment(AttachmentAspect::MaximumPrefixes) => {
            let is_set = spec.maximum_prefixes.is_some();
            return Some(if_set(is_set, "spec.maximumPrefixes"));
        }
        Aspect::Attachment(_) | Aspect::AllOwn | Aspect::AllReached => [list].into(),
        // What is announced of the networks themselves.
        Aspect::Vrf(_) | Aspect::Own(_) => [list, own("spec.advertiseTransferNetwork")].into(),
        _ => BTreeSet::new(),
    };
    for reference in &spec.allowed_inbounds {
        let inbound = ObjectRef::named(Kind::Inbound, &reference.name);
        match aspect {
            Aspect::WorkloadAs | Aspect::Attachment(_) => {}
            Aspect::AllOwn => fields.extend(addresses(trace, inbound)),
            aspect => fields.extend(intent::behind(trace, &inbound, aspect)),
        }
    }
    Some(fields)
}

/// Where the addresses of an Inbound come from.
fn addresses(trace: &Trace<'_>, inbound: ObjectRef) -> Option<Field> {
    let spec = trace
        .snapshot
        .inbounds
        .get(&Key::named(&inbound.key.name))?;
    let is_named = spec.spec.addresses.is_some();
    let path = if is_named {
        "spec.addresses"
    } else {
        "spec.count"
    };
    Some(Field::new(inbound, path))
}
