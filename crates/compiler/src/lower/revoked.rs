//! What an intent became last, without what came from Destinations that were taken away since: also an intent that something is wrong with
//! loses those.

use api::{
    tcaas::{BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec},
    value::{Prefix, VrfName},
};

use super::{
    intent,
    low_level::{self, LowLevel, LowLevelObject, LowLevelSpec},
};
use crate::{
    snapshot::{Key, Meta, ObjectRef, kinds},
    view::View,
};

/// What is left of the Destinations that an intent used, where some were taken away.
pub(super) struct Left {
    /// Those that are left, each with its VRF.
    used: Vec<(Key, Option<VrfName>)>,
    /// What is behind the intent's own workloads.
    routes: Vec<Prefix>,
}

impl Left {
    /// Nothing where none was taken away.
    pub(super) fn of(view: &View<'_>, subject: &ObjectRef) -> Option<Self> {
        let used = intent::still_matched(view, subject);
        if used.len() == intent::matched(view, subject).len() {
            return None;
        }
        let (_, routes) = intent::last_selection(view, subject)?;
        let used = used.into_iter().map(|one| (Key::named(&one.name), one.vrf));
        let used = used.collect();
        Some(Self { used, routes })
    }

    /// Whether a prefix is behind a Destination that is left. What one that cannot be read leads to is not known.
    fn leads_to(&self, view: &View<'_>, prefix: Prefix, vrf: Option<&VrfName>) -> bool {
        let mut used = self
            .used
            .iter()
            .filter(|(_, of)| vrf.is_none() || of.as_ref() == vrf);
        used.any(|(key, _)| {
            let spec = view.spec::<kinds::Destination>(key);
            spec.is_none_or(|spec| spec.prefixes.contains(&prefix))
        })
    }

    /// What is left of an object; nothing where all of it came from what was taken away.
    pub(super) fn of_object(
        &self,
        view: &View<'_>,
        meta: &Meta,
        object: LowLevelObject,
    ) -> Option<LowLevelObject> {
        match object {
            LowLevelObject::Vrf(routing) => self.routing(view, meta, &routing),
            LowLevelObject::Layer2(segment) => Some(self.segment(view, meta, &segment)),
            LowLevelObject::Bgp(sessions) => Some(self.sessions(view, meta, &sessions)),
            LowLevelObject::MirrorTarget(_) | LowLevelObject::MirrorSelector(_) => Some(object),
        }
    }

    fn routing(
        &self,
        view: &View<'_>,
        meta: &Meta,
        routing: &LowLevel<VrfRouteConfigurationSpec>,
    ) -> Option<LowLevelObject> {
        let mut spec = routing.spec.clone();
        let vrf = spec.vrf.clone();
        let is_left = |(_, of): &(Key, Option<VrfName>)| of.as_ref() == Some(&vrf);
        // Where nothing is left, a segment stays in its VRF, without imports.
        let stays = !routing.source.kind.is_service() && !self.has_vrf();
        (self.used.iter().any(is_left) || stays).then_some(())?;
        spec.import.retain(|item| {
            self.routes.contains(&item.cidr) || self.leads_to(view, item.cidr, Some(&vrf))
        });
        Some(again(meta, routing, spec))
    }

    fn segment(
        &self,
        view: &View<'_>,
        meta: &Meta,
        segment: &LowLevel<Layer2NetworkConfigurationSpec>,
    ) -> LowLevelObject {
        let mut spec = segment.spec.clone();
        let routes = &mut spec.static_routes;
        routes.retain(|route| self.leads_to(view, route.prefix, None));
        again(meta, segment, spec)
    }

    fn sessions(
        &self,
        view: &View<'_>,
        meta: &Meta,
        sessions: &LowLevel<BgpPeeringSpec>,
    ) -> LowLevelObject {
        let mut spec = sessions.spec.clone();
        spec.export
            .retain(|item| self.leads_to(view, item.cidr, None));
        again(meta, sessions, spec)
    }

    fn has_vrf(&self) -> bool {
        self.used.iter().any(|(_, vrf)| vrf.is_some())
    }
}

/// The object with another spec.
fn again<S: LowLevelSpec>(meta: &Meta, object: &LowLevel<S>, spec: S) -> LowLevelObject {
    low_level::generated(&object.source, meta, object.name.clone(), spec)
}
