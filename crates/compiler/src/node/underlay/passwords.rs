//! Passwords that stand in clear text in an Underlay: each node reads them from Secrets of its own.

use std::sync::Arc;

use api::{
    meta::SecretReference, openperouter::Neighbor as WantedNeighbor,
    tcaas::node_network_config::Neighbor, value::Password,
};

use super::{Fabric, NodeUnderlay};
use crate::{names, snapshot::Snapshot};

/// A password of an Underlay, by the place of its session among the neighbors of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InClearText {
    /// Which neighbor it is.
    pub(super) place: usize,
    /// The password. An Underlay that comes from a revision has none.
    pub(super) password: Password,
}

/// A password of an Underlay, and the Secret of one node that it goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedPassword {
    /// The Secret.
    pub secret: SecretReference,
    /// The password, where it is known.
    pub password: Option<Password>,
    /// Whether the node's config was made from the object that has the password now. Else the Secret may have another one for good
    /// reason, and keeps it.
    pub is_in_effect: bool,
}

impl Fabric {
    /// The neighbors as a node has them: with a Secret of its own for each password in clear text.
    pub(super) fn neighbors_of(&self, node: Option<&Arc<str>>) -> Vec<Neighbor> {
        let mut neighbors = self.neighbors.clone();
        for (one, secret, _) in self.moved(node) {
            if let Some(neighbor) = neighbors.get_mut(one.place) {
                neighbor.password_secret = Some(secret);
            }
        }
        neighbors
    }

    /// The Secrets of a node, each with what it is for and what the neighbor is called.
    fn moved<'a>(
        &'a self,
        node: Option<&'a Arc<str>>,
    ) -> impl Iterator<Item = (&'a InClearText, SecretReference, String)> + 'a {
        self.in_clear_text.iter().filter_map(move |one| {
            let peer = peer(self.neighbors.get(one.place)?);
            let secret = SecretReference {
                name: Some(names::moved_password(node?, &self.source, &peer)),
                namespace: Some(names::OWN_NAMESPACE.to_owned()),
            };
            Some((one, secret, peer))
        })
    }
}

impl NodeUnderlay {
    /// The Secrets that the node reads for its sessions with the fabric.
    pub(in crate::node) fn password_secrets(&self) -> impl Iterator<Item = SecretReference> + '_ {
        let given = self.fabric.neighbors.iter();
        let given = given.filter_map(|neighbor| neighbor.password_secret.clone());
        let moved = self.fabric.moved(self.node.as_ref());
        given.chain(moved.map(|(_, secret, _)| secret))
    }

    /// The passwords in clear text of its Underlay, each with the Secret that it goes into.
    pub(in crate::node) fn moved_passwords(&self, snapshot: &Snapshot) -> Vec<MovedPassword> {
        let written = snapshot.underlays.get(&self.fabric.source.key);
        let written = |peer: &str| {
            let mut neighbors = written?.spec.neighbors.iter();
            let neighbor = neighbors.find(|one| written_peer(one).as_deref() == Some(peer))?;
            neighbor.password.clone()
        };
        let known = |password: &Password| !password.is_hidden();
        let moved = self.fabric.moved(self.node.as_ref());
        let moved = moved.map(|(one, secret, peer)| {
            let compiled = Some(one.password.clone()).filter(known);
            MovedPassword {
                secret,
                is_in_effect: compiled.is_some(),
                password: compiled.or_else(|| written(&peer).filter(known)),
            }
        });
        moved.collect()
    }
}

fn peer(neighbor: &Neighbor) -> String {
    let address = neighbor.address.map(|address| address.to_string());
    let interface = || neighbor.interface.as_ref().map(ToString::to_string);
    address.or_else(interface).unwrap_or_default()
}

fn written_peer(neighbor: &WantedNeighbor) -> Option<String> {
    let address = neighbor.address.map(|address| address.to_string());
    address.or_else(|| neighbor.interface.as_ref().map(ToString::to_string))
}
