//! From intents to low-level objects: what people want, written in the terms that nodes are configured in.
//!
//! Each generated object belongs to one intent and one scope (a VRF or a VLAN). An intent with a problem contributes what
//! it contributed last: the generated objects that are stored.

pub(crate) mod addresses;
pub(crate) mod bgp_neighbor;
mod collector;
mod filter_lines;
mod host_attachment;
pub(crate) mod inbound;
pub(crate) mod intent;
pub(crate) mod layer2_attachment;
pub(crate) mod low_level;
pub(crate) mod merge;
pub(crate) mod mtu;
pub(crate) mod network;
pub(crate) mod notes;
mod outbound;
mod pod_network;
pub(crate) mod reach;
mod revoked;
mod routing;
pub(crate) mod scope;
mod service;
pub(crate) mod timers;
mod traffic_mirror;
pub(crate) mod values;
pub(crate) mod vrf;

use std::sync::Arc;

use api::tcaas::Layer2AttachmentSpec;

pub(crate) use self::{addresses::networks, traffic_mirror::check as check_traffic};
pub use self::{
    addresses::{NodeAddresses, plain},
    intent::{Attachment, LoweredIntent, SriovDevices, Terms, all_in as all_intents, terms},
    low_level::{LowLevel, LowLevelObject, LowLevelObjects, LowLevelSpec, is_low_level},
    merge::MergedIntent,
    service::Service,
    vrf::{ResolvedVrf, ResolvedVrfs},
};
use crate::{snapshot::ObjectRef, view::View};

/// Whether an attachment makes a segment over the fabric: neither on a device of the node, nor for SR-IOV devices alone.
pub fn is_over_the_fabric(spec: &Layer2AttachmentSpec) -> bool {
    let sriov = spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled);
    spec.interface_ref.is_none() && (spec.interface_name.is_some() || !sriov)
}

/// A low-level object that is in effect, by kind and name.
pub(crate) fn object<S: LowLevelSpec>(view: &View<'_>, name: &str) -> Option<Arc<LowLevel<S>>> {
    let subject = ObjectRef::named(S::KIND, name);
    let written = merge::in_effect(view, &subject);
    let found = written.or_else(|| merge::generated(view, S::KIND, name));
    found.as_ref().and_then(S::of).cloned()
}
