//! What a user asks about: a prefix, a VRF, a number, a device, an object; and the elements of a node that match it.

use std::{fmt, net::IpAddr};

use compiler::{
    Compilation,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};
use ipnet::IpNet;
use serde_json::Value;
use strum::IntoEnumIterator;

use crate::element::{Element, Elements};

/// What a user asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// A network, or a single address.
    Prefix(IpNet),
    /// A VRF, by its name on nodes.
    Vrf(String),
    /// A VNI, of a segment or of a VRF.
    Vni(u32),
    /// A VLAN.
    Vlan(u16),
    /// A route table of the kernel.
    Table(u32),
    /// A route target.
    RouteTarget(String),
    /// A device on the node.
    Interface(String),
    /// An object.
    Object(ObjectRef),
    /// A number of any kind.
    Number(u32),
    /// The name of anything.
    Name(String),
}

/// A query that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A kind with a value that it cannot have.
    #[error("invalid {word} {value:?}; write, for example, \"{example}\"")]
    InvalidValue {
        /// The kind, such as `vlan`.
        word: &'static str,
        /// What was given.
        value: String,
        /// A valid query of this kind.
        example: &'static str,
    },
    /// A kind without a value.
    #[error("{word} needs a value: write, for example, \"{example}\"")]
    MissingValue {
        /// The kind, such as `vlan`.
        word: &'static str,
        /// A valid query of this kind.
        example: &'static str,
    },
    /// Text in no known form.
    #[error(
        "cannot parse {0:?}; expected a prefix, an address, a name, \"vrf NAME\", \"vni NUMBER\", \"vlan NUMBER\", \"interface NAME\", \"table NUMBER\", \"route-target N:N\" or Kind/name; explain also takes a line of frr.conf, and why-not \"from A to B\""
    )]
    Unknown(String),
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(net) if net.prefix_len() == net.max_prefix_len() => net.addr().fmt(f),
            Self::Prefix(net) => net.fmt(f),
            Self::Vrf(name) => write!(f, "VRF {name}"),
            Self::Vni(number) => write!(f, "VNI {number}"),
            Self::Vlan(number) => write!(f, "VLAN {number}"),
            Self::Table(number) => write!(f, "route table {number}"),
            Self::RouteTarget(target) => write!(f, "route target {target}"),
            Self::Interface(name) => write!(f, "interface {name}"),
            Self::Object(object) => object.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Query {
    /// Reads a question.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [word] => {
                let mut kinds = KINDS.iter();
                if let Some((word, example)) =
                    kinds.find(|(kind, _)| kind.eq_ignore_ascii_case(word))
                {
                    return Err(QueryError::MissingValue { word, example });
                }
                Self::of_word(word).ok_or_else(|| QueryError::Unknown(text.to_owned()))
            }
            [kind, value] => Self::of_kind(kind, value)
                .unwrap_or_else(|| Err(QueryError::Unknown(text.to_owned()))),
            _ => Err(QueryError::Unknown(text.to_owned())),
        }
    }

    /// The same question about the object that is meant: the intent that a generated object comes from; the kind of that name that
    /// has the object; and where one object alone has the name, its namespace may be left out.
    pub fn resolved(self, snapshot: &Snapshot, compilation: &Compilation) -> Self {
        let Self::Object(asked) = &self else {
            return self;
        };
        let generated = compilation.objects.any(asked.kind, &asked.key.name);
        if let Some(object) = generated.filter(|object| object.is_generated()) {
            return Self::Object(object.source().clone());
        }
        let unread = snapshot.unread.keys().cloned();
        let all = snapshot.subjects().chain(unread);
        let same_kind = |one: &ObjectRef| <&str>::from(one.kind) == <&str>::from(asked.kind);
        let named: Vec<ObjectRef> = all
            .filter(|one| same_kind(one) && one.key.name == asked.key.name)
            .collect();
        let exact = named.iter().find(|one| one.key == asked.key);
        let is_default = asked
            .key
            .namespace
            .as_deref()
            .is_none_or(|one| one == "default");
        match (exact, named.as_slice()) {
            (_, _) if named.contains(asked) => self,
            (Some(exact), _) => Self::Object(exact.clone()),
            (None, [only]) if is_default => Self::Object(only.clone()),
            (None, _) => self,
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        if let Some(net) = network(word) {
            return Some(Self::Prefix(net));
        }
        if let Some((kind, name)) = word.split_once('/') {
            return object(kind, name).map(Self::Object);
        }
        if let Ok(number) = word.parse() {
            return Some(Self::Number(number));
        }
        if is_route_target(word) {
            return Some(Self::RouteTarget(word.to_owned()));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_name = !word.is_empty() && word.chars().all(is_name);
        is_name.then(|| Self::Name(word.to_owned()))
    }

    /// Two words: what it is, and which.
    fn of_kind(kind: &str, value: &str) -> Option<Result<Self, QueryError>> {
        let not_one = |word, example| QueryError::InvalidValue {
            word,
            value: value.to_owned(),
            example,
        };
        let name = value.to_owned();
        Some(match kind {
            "prefix" | "route" | "address" | "peer" => network(value)
                .map(Self::Prefix)
                .ok_or_else(|| not_one("prefix", "prefix 10.0.0.0/8")),
            "vrf" | "VRF" => Ok(Self::Vrf(name)),
            "vni" | "VNI" => {
                let number = value.parse().ok();
                number
                    .map(Self::Vni)
                    .ok_or_else(|| not_one("vni", "vni 10100"))
            }
            "vlan" | "VLAN" => {
                let number = value.parse().ok();
                number
                    .map(Self::Vlan)
                    .ok_or_else(|| not_one("vlan", "vlan 234"))
            }
            "table" => {
                let number = value.parse().ok();
                number
                    .map(Self::Table)
                    .ok_or_else(|| not_one("table", "table 10001"))
            }
            "route-target" => is_route_target(value)
                .then_some(Self::RouteTarget(name))
                .ok_or_else(|| not_one("route-target", "route-target 64500:100")),
            "interface" | "device" => Ok(Self::Interface(name)),
            kind => return object(kind, value).map(|object| Ok(Self::Object(object))),
        })
    }

    /// Whether an element is about exactly this; else one may be about a network around it.
    pub fn is_named_by(&self, elements: &Elements) -> bool {
        let mut all = elements.iter();
        !matches!(self, Self::Prefix(_)) || all.any(|(element, value)| self.is_in(element, value))
    }

    /// The elements that match it. Of a prefix that none names, those with the longest prefixes that cover it.
    pub fn elements(&self, elements: &Elements) -> Vec<Element> {
        let exact = |(element, value): &(&Element, &Value)| self.is_in(element, value);
        let found: Vec<Element> = elements
            .iter()
            .filter(exact)
            .map(|(element, _)| element.clone())
            .collect();
        match self {
            Self::Prefix(net) if found.is_empty() => covering(net, elements),
            _ => found,
        }
    }

    fn is_in(&self, element: &Element, value: &Value) -> bool {
        match self {
            Self::Prefix(net) => networks(element, value)
                .iter()
                .any(|own| own.trunc() == net.trunc() || IpNet::from(own.addr()) == *net),
            Self::Vrf(name) => vrfs(element, value).contains(&name.as_str()),
            Self::Vni(number) => value["vni"] == *number,
            Self::Vlan(number) => vlan(element, value) == Some(*number),
            Self::Table(number) => matches!(element, Element::Table { .. }) && *value == *number,
            Self::RouteTarget(target) => {
                matches!(element, Element::RouteTarget { target: own, .. } if own == target)
            }
            Self::Interface(name) => devices(element, value).contains(&name.as_str()),
            Self::Object(_) => false,
            Self::Number(number) => {
                let is_vlan =
                    u16::try_from(*number).is_ok_and(|vlan| Self::Vlan(vlan).is_in(element, value));
                let is_asn = value["asn"] == *number || value["remoteAsn"] == *number;
                is_vlan
                    || is_asn
                    || Self::Vni(*number).is_in(element, value)
                    || Self::Table(*number).is_in(element, value)
            }
            Self::Name(name) => {
                Self::Vrf(name.clone()).is_in(element, value)
                    || Self::Interface(name.clone()).is_in(element, value)
            }
        }
    }
}

/// A network or an address; an address is a network of its own.
fn network(text: &str) -> Option<IpNet> {
    let net = text.parse::<IpNet>().ok();
    net.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// The short names of kinds, as their definitions have them for `kubectl`.
const SHORT: [(&str, Kind); 22] = [
    ("l2a", Kind::Layer2Attachment),
    ("net", Kind::Network),
    ("dst", Kind::Destination),
    ("ib", Kind::Inbound),
    ("ob", Kind::Outbound),
    ("bgpn", Kind::BgpNeighbor),
    ("pnet", Kind::PodNetwork),
    ("col", Kind::Collector),
    ("tmir", Kind::TrafficMirror),
    ("layer2", Kind::Layer2NetworkConfiguration),
    ("vrc", Kind::VrfRouteConfiguration),
    ("bgpp", Kind::BgpPeering),
    ("mtarget", Kind::MirrorTarget),
    ("mselector", Kind::MirrorSelector),
    ("nnc", Kind::NodeNetworkConfig),
    ("nns", Kind::NodeNetworkStatus),
    ("ncr", Kind::NetworkConfigRevision),
    ("ul", Kind::Underlay),
    ("l3v", Kind::L3Vni),
    ("l2v", Kind::L2Vni),
    ("l3pt", Kind::L3Passthrough),
    ("frrconf", Kind::FrrConfiguration),
];

/// What stands before a value, each with an example.
const KINDS: [(&str, &str); 11] = [
    ("prefix", "prefix 10.0.0.0/8"),
    ("route", "route 10.0.0.0/8"),
    ("address", "address 10.0.0.1"),
    ("peer", "peer 192.168.1.1"),
    ("vrf", "vrf NAME"),
    ("vni", "vni 10100"),
    ("vlan", "vlan 234"),
    ("table", "table 10001"),
    ("route-target", "route-target 64500:100"),
    ("interface", "interface eth1"),
    ("device", "device eth1"),
];

/// The words that a query can begin with: what stands before a value, and kinds of objects with their short names.
pub fn kinds() -> Vec<&'static str> {
    let words = KINDS.iter().map(|(word, _)| *word);
    let short = SHORT.iter().map(|(short, _)| *short);
    let objects = Kind::iter().map(<&'static str>::from);
    words.chain(short).chain(objects).collect()
}

/// An object by kind and name; the kind in any case, or by its short name or plural.
fn object(kind: &str, name: &str) -> Option<ObjectRef> {
    let plural = |known: &Kind| format!("{}s", <&str>::from(known)).eq_ignore_ascii_case(kind);
    let same = |known: &Kind| <&str>::from(known).eq_ignore_ascii_case(kind) || plural(known);
    let short = SHORT
        .iter()
        .find(|(short, _)| short.eq_ignore_ascii_case(kind));
    let short = short.map(|(_, known)| *known);
    let kind = Kind::iter().find(same).or(short)?;
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (kind.default_namespace(), name),
    };
    (!name.is_empty()).then_some(ObjectRef {
        kind,
        key: Key {
            namespace: namespace.map(Into::into),
            name: name.into(),
        },
    })
}

fn is_route_target(text: &str) -> bool {
    let parts = text.split_once(':');
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    parts.is_some_and(|(one, other)| is_number(one) && is_number(other))
}

/// The elements whose networks are the smallest around this one.
fn covering(net: &IpNet, elements: &Elements) -> Vec<Element> {
    let longest = longest(net, elements);
    let is_longest = |one: &(&Element, &Value)| longest.is_some() && length(net, *one) == longest;
    let found = elements.iter().filter(is_longest);
    found.map(|(element, _)| element.clone()).collect()
}

/// The length of the smallest network around this one, or equal to it, that an element is about.
pub(crate) fn longest(net: &IpNet, elements: &Elements) -> Option<u8> {
    elements.iter().filter_map(|one| length(net, one)).max()
}

fn length(net: &IpNet, (element, value): (&Element, &Value)) -> Option<u8> {
    let networks = networks(element, value);
    let around = networks.iter().filter(|own| own.trunc().contains(net));
    around.map(IpNet::prefix_len).max()
}

/// The networks and addresses that an element is about.
fn networks(element: &Element, value: &Value) -> Vec<IpNet> {
    let strings: Vec<&str> = match element {
        Element::Import { prefix, .. }
        | Element::DeniedImport { prefix, .. }
        | Element::Export { prefix, .. }
        | Element::DeniedExport { prefix, .. }
        | Element::Route { prefix, .. }
        | Element::Aggregate { prefix, .. }
        | Element::HostRoute { prefix, .. }
        | Element::HostNetwork { prefix, .. } => vec![prefix],
        Element::Steering {
            source,
            destination,
            ..
        } => vec![source, destination],
        Element::Session { peer, .. } | Element::Peer { peer } | Element::HostPeer { peer, .. } => {
            vec![peer]
        }
        Element::HostAddress { address, .. } => vec![address],
        Element::Gateway { .. } | Element::VniGateway { .. } => strings(&value["ipAddresses"]),
        Element::HostSession { .. } | Element::Passthrough { .. } => {
            let own = [&value["hostAddresses"], &value["routerAddresses"]];
            own.map(strings).concat()
        }
        Element::HostLoopback { .. } | Element::Loopback { .. } | Element::Tunnel { .. } => {
            strings(value)
        }
        Element::Underlay => {
            let own = [&value["vtep"], &value["routerId"]].map(strings).concat();
            let trunk = &value["trunk"];
            let trunk = [&trunk["hostAddresses"], &trunk["routerAddresses"]].map(strings);
            [own, trunk.concat()].concat()
        }
        _ => Vec::new(),
    };
    let first = |text: &&str| text.split(' ').next().and_then(network);
    strings.iter().filter_map(first).collect()
}

/// The strings of a value and of all that is in it.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The VRFs that an element is in, or leads to.
fn vrfs<'a>(element: &'a Element, value: &'a Value) -> Vec<&'a str> {
    match element {
        Element::Vrf { vrf }
        | Element::Table { vrf }
        | Element::RouteTarget { vrf, .. }
        | Element::Export { vrf, .. }
        | Element::DeniedExport { vrf, .. }
        | Element::Route { vrf, .. }
        | Element::Session { vrf, .. }
        | Element::HostSession { vrf }
        | Element::Aggregate { vrf, .. }
        | Element::Loopback { vrf, .. }
        | Element::Tunnel { vrf, .. }
        | Element::HostRouter { vrf }
        | Element::HostPeer { vrf, .. }
        | Element::HostNetwork { vrf, .. }
        | Element::HostVni { vrf, .. }
        | Element::Steering { vrf, .. } => vec![vrf],
        Element::Import { vrf, from, .. } | Element::DeniedImport { vrf, from, .. } => {
            vec![vrf, from]
        }
        Element::Gateway { .. } | Element::VniGateway { .. } => strings(&value["vrf"]),
        _ => Vec::new(),
    }
}

fn vlan(element: &Element, value: &Value) -> Option<u16> {
    match element {
        Element::Segment { vlan }
        | Element::Gateway { vlan }
        | Element::HostInterface { vlan, .. }
        | Element::HostVlan { vlan, .. } => Some(*vlan),
        _ => value["vlan"]
            .as_u64()
            .and_then(|vlan| u16::try_from(vlan).ok()),
    }
}

/// The devices that an element is, or is on.
fn devices<'a>(element: &'a Element, value: &'a Value) -> Vec<&'a str> {
    match element {
        Element::Vrf { .. }
        | Element::Segment { .. }
        | Element::HostSession { .. }
        | Element::Passthrough { .. } => strings(&value["devices"]),
        Element::VniSegment { .. } => {
            let mut devices = strings(&value["devices"]);
            let port = value.get("hostPort");
            let names = ["/device", "/master/name"].into_iter();
            let names = names.filter_map(|name| port?.pointer(name));
            devices.extend(names.flat_map(strings));
            devices
        }
        Element::HostInterface { name, .. }
        | Element::HostLoopback { name }
        | Element::Loopback { name, .. }
        | Element::Tunnel { name, .. } => vec![name],
        Element::Mirror { tunnel, .. } => vec![tunnel],
        Element::HostVlan { name, .. } => {
            let mut devices = strings(&value["parent"]);
            devices.push(name);
            devices
        }
        Element::HostAddress { device, .. } | Element::HostRoute { device, .. } => vec![device],
        Element::Underlay => {
            let trunk = &value["trunk"];
            [&value["nics"], &trunk["host"], &trunk["router"]]
                .map(strings)
                .concat()
        }
        Element::Peer { .. } | Element::HostPeer { .. } => strings(&value["interface"]),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_by_what_it_looks_like() {
        let read = |text: &str| Query::parse(text).map(|query| query.to_string());
        assert_eq!(read("10.0.0.0/8").as_deref(), Ok("10.0.0.0/8"));
        assert_eq!(read("2001:db8::1").as_deref(), Ok("2001:db8::1"));
        assert_eq!(read("vlan 234").as_deref(), Ok("VLAN 234"));
        assert_eq!(read("vrf m2m_enc").as_deref(), Ok("VRF m2m_enc"));
        assert_eq!(read("64500:1").as_deref(), Ok("route target 64500:1"));
        assert_eq!(
            read("layer2attachment/web").as_deref(),
            Ok("Layer2Attachment web")
        );
        assert_eq!(
            read("Underlay fabric/rack").as_deref(),
            Ok("Underlay fabric/rack")
        );
        assert_eq!(read("l2.web").as_deref(), Ok("l2.web"));
        assert_eq!(read("l2a/web").as_deref(), Ok("Layer2Attachment web"));
        assert_eq!(read("networks/web").as_deref(), Ok("Network web"));
    }

    #[test]
    fn a_question_that_means_nothing_says_what_can_be_asked() {
        for text in [
            "",
            "what is it",
            "vlan many",
            "10.0.0.0/99",
            "Query/web",
            "a!",
            "vrf",
            "VLAN",
        ] {
            assert!(Query::parse(text).is_err(), "{text:?}");
        }
    }
}
