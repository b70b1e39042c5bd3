//! Objects of all kinds: which objects to look at for one that is asked about, and what to say of those that configure no node.

use api::meta::LabelSelector;
use compiler::{
    platform::ipam,
    snapshot::{Class, Kind, ObjectRef},
};

use super::{Obstacle, Walk, referrers, selector_text};

impl Walk<'_> {
    /// The obstacles of an object, or of every object that uses it.
    pub(super) fn obstacles(&self, object: &ObjectRef) -> Vec<Obstacle> {
        if let Some(problem) = self.unreadable(object) {
            let object = object.clone();
            return vec![Obstacle::Problem { object, problem }];
        }
        match object.kind.class() {
            Class::Referenced => self.of_used(object),
            Class::Intent(_) => vec![self.of_user(object, object)],
            Class::LowLevel => {
                let author = referrers::author(self.trace, object);
                vec![self.of_user(&author, &author)]
            }
            Class::Underlay | Class::Overlay | Class::HostRouter => {
                vec![self.of_fabric_object(object)]
            }
            Class::Node => self.of_node(object).into_iter().collect(),
            Class::Settings => vec![self.of_settings(object)],
            Class::NotCompiled => {
                let why = "is accepted, but this version configures nothing for its kind";
                vec![Obstacle::idle(object, why, None)]
            }
            Class::Result => {
                let why = "is what the operator wrote last; what is on a node follows from the other objects";
                vec![Obstacle::idle(object, why, None)]
            }
            Class::Report => {
                let why = "is a report of a node, and configures nothing";
                vec![Obstacle::idle(object, why, None)]
            }
            Class::Claim => vec![self.of_claim(object)],
            Class::Address => {
                let why = "is the answer to no claim that a mirror on this node needs";
                let remedy = "compare spec.claimRef and spec.poolRef with the IPAddressClaim";
                vec![Obstacle::idle(object, why, Some(remedy))]
            }
        }
    }

    fn of_used(&self, object: &ObjectRef) -> Vec<Obstacle> {
        match referrers::users(self.trace, object) {
            Ok(users) => {
                let users = users.iter();
                users.map(|user| self.of_user(user, object)).collect()
            }
            Err((object, by)) => vec![Obstacle::Unused { object, by }],
        }
    }

    fn of_fabric_object(&self, object: &ObjectRef) -> Obstacle {
        if self.trace.snapshot.meta(object).is_none() {
            return Obstacle::idle(object, "does not exist", None);
        }
        if let Some(selector) = self.selector_of(object)
            && !selector.matches(self.labels)
        {
            return Obstacle::NotSelected {
                object: object.clone(),
                selector: selector_text(selector),
                labels: self.labels.clone(),
            };
        }
        let object = object.clone();
        match self.problem(std::slice::from_ref(&object)) {
            Some(problem) => Obstacle::Problem { object, problem },
            None => Obstacle::Elsewhere { object },
        }
    }

    /// The node selector of an Underlay, or of what runs in the fabric.
    fn selector_of(&self, object: &ObjectRef) -> Option<&LabelSelector> {
        let (snapshot, key) = (self.trace.snapshot, &object.key);
        let selector = match object.kind {
            Kind::Underlay => &snapshot.underlays.get(key)?.spec.node_selector,
            Kind::L3Vni => &snapshot.l3vnis.get(key)?.spec.node_selector,
            Kind::L2Vni => &snapshot.l2vnis.get(key)?.spec.node_selector,
            Kind::L3Passthrough => &snapshot.l3passthroughs.get(key)?.spec.node_selector,
            Kind::FrrConfiguration => &snapshot.frr_configurations.get(key)?.spec.node_selector,
            _ => return None,
        };
        selector.as_ref()
    }

    /// A Node is on itself; what it may lack is the fabric.
    fn of_node(&self, object: &ObjectRef) -> Option<Obstacle> {
        if *object.key.name != *self.node {
            let remedy = format!("ask with --node {}", object.key.name);
            return Some(Obstacle::idle(object, "is another node", Some(&remedy)));
        }
        let why = self.no_overlay()?;
        Some(Obstacle::NoOverlay {
            object: object.clone(),
            why,
        })
    }

    fn of_settings(&self, object: &ObjectRef) -> Obstacle {
        if &*object.key.name != "default" {
            let why = "is not read: Settings has one object, named default";
            return Obstacle::idle(object, why, Some("rename it to default"));
        }
        let object = object.clone();
        if let Some(problem) = self.problem(std::slice::from_ref(&object)) {
            return Obstacle::Problem { object, problem };
        }
        let why = "has no value that something on this node comes from";
        Obstacle::idle(&object, why, None)
    }

    fn of_claim(&self, object: &ObjectRef) -> Obstacle {
        let mut claims = self.config.mirrors.claims.iter();
        let Some(claim) = claims.find(|claim| claim.key == object.key) else {
            let why = "is not needed by a mirror on this node";
            return Obstacle::idle(object, why, None);
        };
        let object = object.clone();
        match ipam::given_in(self.trace.snapshot, claim) {
            None => self.claim_open(object, &claim.key.to_string()),
            Some(_) => Obstacle::Elsewhere { object },
        }
    }
}
