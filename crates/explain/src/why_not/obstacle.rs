//! The obstacles, and what is said of them.

use std::fmt;

use api::meta::Labels;
use compiler::{
    Problem,
    snapshot::{Kind, ObjectRef},
};
use serde::Serialize;

use super::referrers;

/// Why something is not on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "obstacle", rename_all = "camelCase")]
pub enum Obstacle {
    /// No object defines it.
    NotDefined {
        /// What the user asks about.
        query: String,
        /// Objects that cannot be read: one of them may.
        unreadable: Vec<ObjectRef>,
        /// Similar names.
        near: Vec<String>,
    },
    /// The object cannot be read, or something is wrong with it or with what it refers to.
    Problem {
        /// The object that would configure it.
        object: ObjectRef,
        /// The problem, on the object whose author can solve it.
        problem: Problem,
    },
    /// Nothing refers to the object.
    Unused {
        /// The object.
        object: ObjectRef,
        /// What would refer to it, and how.
        by: String,
    },
    /// The Network is not managed by Selvedge.
    Unmanaged {
        /// The object that asks.
        object: ObjectRef,
        /// The network.
        network: ObjectRef,
    },
    /// The object configures nothing on nodes.
    NoEffect {
        /// The object.
        object: ObjectRef,
        /// What it lacks.
        lacks: &'static str,
    },
    /// The node is not selected.
    NotSelected {
        /// The object.
        object: ObjectRef,
        /// Its selector.
        selector: String,
        /// The node's labels.
        labels: Labels,
    },
    /// The node takes no part in the overlay.
    NoOverlay {
        /// The object that needs it.
        object: ObjectRef,
        /// Why not.
        why: String,
    },
    /// The object's selector does not match the Destination that it should reach.
    DestinationNotSelected {
        /// The object.
        object: ObjectRef,
        /// Its selector.
        selector: String,
        /// The Destination.
        destination: ObjectRef,
        /// Its labels.
        labels: Labels,
    },
    /// The object configures nothing on this node, and never does or not by itself.
    Idle {
        /// The object.
        object: ObjectRef,
        /// Why, as the rest of a sentence that begins with the object.
        why: String,
        /// What can be done.
        #[serde(skip)]
        remedy: Option<String>,
    },
    /// A tunnel has no source address yet.
    ClaimOpen {
        /// The object that needs the tunnel.
        object: ObjectRef,
        /// The claim of the address.
        claim: String,
        /// The pool of the address.
        pool: String,
    },
    /// No table routes from one object to another.
    Apart {
        /// The object whose workloads send.
        object: ObjectRef,
        /// The VRFs that route what they send.
        vrfs: Vec<String>,
        /// The object that they do not reach.
        other: ObjectRef,
        /// The VRFs that it is in.
        other_vrfs: Vec<String>,
        /// Its networks.
        networks: Vec<String>,
        /// Where packets to it go instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        leaving: Option<Leaving>,
        /// Whether the first object selects Destinations.
        #[serde(skip)]
        has_destinations: bool,
    },
    /// The prefix is inside of one that is imported, and only the route to that one is.
    LongerThanImported {
        /// The object that imports.
        object: ObjectRef,
        /// The prefix that it imports.
        imported: String,
        /// The VRF that it is imported from.
        vrf: String,
        /// The prefix that the user asks about.
        query: String,
    },
    /// The tables of the node do not lead to a Destination that the object selects.
    NoRoute {
        /// The object.
        object: ObjectRef,
        /// The Destination.
        destination: ObjectRef,
        /// Its VRF; absent where it has a next hop, or where there is no such VRF.
        vrf: Option<String>,
    },
    /// A rule denies the routes.
    Denied {
        /// The object with the rule.
        object: ObjectRef,
        /// What the rule does, in words.
        denied: String,
    },
    /// The object is in effect, and this is not what comes of it.
    Elsewhere {
        /// The object.
        object: ObjectRef,
    },
}

/// The route by which packets leave, though it does not lead to the object that they are meant for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// The network that the packets are for.
    pub net: String,
    /// The prefix around it that has a route.
    pub prefix: String,
    /// The Destination of the prefix.
    pub destination: ObjectRef,
    /// The VRF of the Destination; absent where it has a next hop.
    pub vrf: Option<String>,
}

impl Obstacle {
    /// An object that configures nothing on the node; `why` is the rest of a sentence that begins with it.
    pub(super) fn idle(object: &ObjectRef, why: &str, remedy: Option<&str>) -> Self {
        Self::Idle {
            object: object.clone(),
            why: why.to_owned(),
            remedy: remedy.map(str::to_owned),
        }
    }

    /// How far the walk from object to node came.
    pub(super) fn step(&self) -> u8 {
        match self {
            Self::NotDefined { .. } => 0,
            Self::Unused { .. } => 1,
            Self::Problem { .. } => 2,
            Self::Unmanaged { .. } | Self::NoEffect { .. } | Self::Idle { .. } => 3,
            Self::NotSelected { .. } => 4,
            Self::NoOverlay { .. } => 5,
            Self::DestinationNotSelected { .. }
            | Self::ClaimOpen { .. }
            | Self::Apart { .. }
            | Self::NoRoute { .. } => 6,
            Self::LongerThanImported { .. } | Self::Denied { .. } => 7,
            Self::Elsewhere { .. } => 8,
        }
    }

    /// What can be done about it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NotDefined { near, .. } => {
                (!near.is_empty()).then(|| format!("did you mean {}?", near.join(", ")))
            }
            Self::Problem { problem, .. } => problem.kind.remedy(),
            Self::Unused { by, .. } => Some(format!("add {by}")),
            Self::Unmanaged { network, .. } => {
                Some(format!("remove spec.managed: false from {network}"))
            }
            Self::NoEffect { lacks, .. } => Some(format!("add {lacks}")),
            Self::Idle { remedy, .. } => remedy.clone(),
            Self::ClaimOpen { pool, .. } => Some(format!(
                "check that {pool} has free addresses and that its provider runs"
            )),
            Self::Apart {
                object,
                networks,
                other_vrfs,
                has_destinations,
                ..
            } => {
                let networks = networks.join(" or ");
                let vrfs = other_vrfs.join(" or ");
                let of_vrf = if vrfs.is_empty() {
                    String::new()
                } else {
                    format!(" of VRF {vrfs}")
                };
                (*has_destinations && !networks.is_empty()).then(|| {
                    format!(
                        "change spec.destinations of {object} so that it selects a Destination{of_vrf} whose prefixes contain {networks}"
                    )
                })
            }
            Self::NotSelected { object, .. } => Some(format!(
                "label the node, or change spec.nodeSelector of {object}"
            )),
            Self::NoOverlay { .. } => {
                Some("create an Underlay with spec.evpn that selects the node".to_owned())
            }
            Self::DestinationNotSelected {
                object,
                destination,
                ..
            } if referrers::selects_destinations(object.kind) => Some(format!(
                "label {destination}, or change spec.destinations of {object}"
            )),
            Self::DestinationNotSelected { .. } => None,
            Self::LongerThanImported { object, query, .. } => {
                Some(if object.kind == Kind::VrfRouteConfiguration {
                    format!("add {query} to spec.import of {object}, or le to its item")
                } else {
                    format!(
                        "add {query} to spec.prefixes of a Destination, or set spec.importMatch of the Settings to OrLonger"
                    )
                })
            }
            Self::NoRoute { vrf, .. } => vrf.as_ref().map(|vrf| {
                format!("look for deny items in spec.import of VRFRouteConfigurations of VRF {vrf}")
            }),
            Self::Denied { object, .. } => Some(format!(
                "remove the deny item of {object}, or permit the prefix in an item before it"
            )),
            Self::Elsewhere { object } => Some(format!(
                "selvedge explain {}/{} shows what it configures",
                object.kind, object.key
            )),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDefined {
                query, unreadable, ..
            } => f.write_str(&not_defined(query, unreadable)),
            Self::Problem { object, problem } if problem.subject == *object => problem.fmt(f),
            Self::Problem { object, problem } => write!(f, "{object} needs {problem}"),
            Self::Unused { object, .. } => {
                write!(f, "{object} exists, but no object refers to it")
            }
            Self::Unmanaged { object, network } => write!(
                f,
                "{object}: {network} has spec.managed: false, so nothing is configured for it on nodes"
            ),
            Self::NoEffect { object, lacks } => {
                write!(f, "{object} configures nothing on nodes: it has no {lacks}")
            }
            Self::NotSelected {
                object,
                selector,
                labels,
            } => write!(
                f,
                "{object} spec.nodeSelector does not select the node\n  selector    {selector}\n  node labels {}",
                labels_text(labels)
            ),
            Self::DestinationNotSelected {
                object,
                selector,
                destination,
                labels,
            } => write!(
                f,
                "{object} spec.destinations does not select {destination}\n  selector           {selector}\n  {} labels {}",
                destination.kind,
                labels_text(labels)
            ),
            Self::Idle { object, why, .. } => write!(f, "{object} {why}"),
            Self::ClaimOpen { object, claim, .. } => write!(
                f,
                "{object} waits for the source address of its tunnel: IPAddressClaim {claim} has no address yet"
            ),
            Self::Apart {
                object,
                vrfs,
                other,
                other_vrfs,
                leaving,
                ..
            } => apart(
                f,
                [(object, vrfs.as_slice()), (other, other_vrfs.as_slice())],
                leaving.as_ref(),
            ),
            Self::NoOverlay { object, why } if object.kind == Kind::Node => {
                write!(f, "{object} takes no part in the fabric: {why}")
            }
            Self::NoOverlay { object, why } => write!(
                f,
                "{object} needs the fabric, and the node takes no part in it: {why}"
            ),
            Self::LongerThanImported {
                object,
                imported,
                vrf,
                query,
            } => write!(
                f,
                "{object} imports exactly {imported} from VRF {vrf}: a route to {query}, which is longer, is not imported"
            ),
            Self::NoRoute {
                object,
                destination,
                vrf,
            } => no_route(f, object, destination, vrf.as_ref()),
            Self::Denied { object, denied } => write!(f, "{object} denies it: {denied}"),
            Self::Elsewhere { object } => write!(
                f,
                "{object} is in effect on the node, but does not configure this"
            ),
        }
    }
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            net,
            prefix,
            destination,
            vrf,
        } = self;
        write!(f, "packets to {net} follow {prefix} of {destination} ")?;
        match vrf {
            Some(vrf) => write!(
                f,
                "into VRF {vrf} of the fabric, where no object of this cluster announces {net}"
            ),
            None => f.write_str("to its next hop"),
        }
    }
}

fn not_defined(query: &str, unreadable: &[ObjectRef]) -> String {
    let names: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => format!("no object defines {query}"),
        names => {
            let names = names.join(", ");
            format!("no readable object defines {query}; cannot be read: {names}")
        }
    }
}

/// The VRFs of two objects between which no table leads, and where packets go instead.
fn apart(
    f: &mut fmt::Formatter<'_>,
    [(object, vrfs), (other, other_vrfs)]: [(&ObjectRef, &[String]); 2],
    leaving: Option<&Leaving>,
) -> fmt::Result {
    let (own, others) = (in_vrfs(vrfs), in_vrfs(other_vrfs));
    write!(f, "{object} is {own}, {other} is {others}, and ")?;
    match leaving {
        Some(leaving) => write!(f, "{leaving}"),
        None => write!(f, "no Destination that {object} selects leads there"),
    }
}

fn no_route(
    f: &mut fmt::Formatter<'_>,
    object: &ObjectRef,
    destination: &ObjectRef,
    vrf: Option<&String>,
) -> fmt::Result {
    let from = vrf.map_or_else(String::new, |vrf| format!(" from VRF {vrf}"));
    write!(
        f,
        "{object} selects {destination}, but no table of the node has a route to its prefixes{from}"
    )
}

fn in_vrfs(vrfs: &[String]) -> String {
    match vrfs {
        [] => "in no VRF".to_owned(),
        [vrf] => format!("in VRF {vrf}"),
        vrfs => format!("in the VRFs {}", vrfs.join(", ")),
    }
}

/// Labels as text.
pub(super) fn labels_text(labels: &Labels) -> String {
    let labels = labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match labels.as_slice() {
        [] => "no labels".to_owned(),
        labels => labels.join(", "),
    }
}
