//! Links as reported by the kernel.

use std::{collections::BTreeMap, net::IpAddr};

use api::value::MacAddress;
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{
        AfSpecInet, AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoBridgePort, InfoData, InfoGre,
        InfoGre6, InfoKind, InfoPortData, InfoVlan, InfoVrf, InfoVxlan, LinkAttribute,
        LinkExtentMask, LinkFlags, LinkInfo, LinkLayerType, LinkMessage, State, VlanProtocol,
    },
};

use super::{Connection, RequestError};
use crate::{
    object::{AddrGen, BridgePort, Gre, Kind, Payload},
    owned::Owner,
};

/// What the kernel answers when it has no link of that name.
const NO_SUCH_DEVICE: i32 = 19;

/// A link by its numbers: names are put in when both namespaces are read.
#[derive(Clone, Debug)]
pub(super) struct RawLink {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) owner: Owner,
    pub(super) kind: RawKind,
    pub(super) alias: Option<String>,
    pub(super) mtu: u32,
    pub(super) mac: Option<MacAddress>,
    pub(super) up: bool,
    pub(super) state: State,
    pub(super) master: Option<u32>,
    /// The link below or at the other end, by its index.
    pub(super) link: Option<u32>,
    /// Whether that link is in another namespace.
    pub(super) link_elsewhere: bool,
    pub(super) addr_gen: Option<AddrGen>,
    pub(super) port: Option<BridgePort>,
    pub(super) settings: Settings,
}

/// The settings of a link that its message carries, so that no file need be read for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    arp_accept: Option<i32>,
    accept_dad: Option<i32>,
    accept_untracked_na: Option<i32>,
}

impl Settings {
    /// The value of a setting by the last part of its path, if it is certain: a kernel that does not have
    /// `accept_untracked_na` cannot be distinguished from one where it is 0.
    pub(super) fn get(self, path: &str) -> Option<i32> {
        match path.rsplit('/').next()? {
            "arp_accept" => self.arp_accept,
            "accept_dad" => self.accept_dad,
            "accept_untracked_na" => self.accept_untracked_na.filter(|value| *value != 0),
            _ => None,
        }
    }
}

/// What a link is, with what can only be resolved later left open.
#[derive(Clone, Debug)]
pub(super) enum RawKind {
    /// Complete.
    Known(Kind),
    /// The parent is `RawLink::link`.
    Vlan(u16),
    /// The peer is `RawLink::link`, in another namespace or this one.
    Veth,
    /// The link its outer packets follow, by index.
    Gre(Gre, Option<u32>),
}

/// All links of a namespace, in the order of their indices.
pub(super) async fn links(connection: &Connection) -> Result<Vec<RawLink>, RequestError> {
    let mut request = LinkMessage::default();
    let mask = LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]);
    request.attributes.push(mask);
    let objects = connection
        .dump(RouteNetlinkMessage::GetLink(request))
        .await?;
    Ok(objects.into_iter().filter_map(read).collect())
}

/// The link with this name, if there is one.
pub(super) async fn link(
    connection: &Connection,
    name: &str,
) -> Result<Option<RawLink>, RequestError> {
    let mut request = LinkMessage::default();
    request.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]),
    ];
    match connection.get(RouteNetlinkMessage::GetLink(request)).await {
        Ok(object) => Ok(read(object)),
        Err(error) if error.errno() == Some(NO_SUCH_DEVICE) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names by index.
pub(super) fn names(links: &[RawLink]) -> BTreeMap<u32, String> {
    links
        .iter()
        .map(|link| (link.index, link.name.clone()))
        .collect()
}

fn read(object: RouteNetlinkMessage) -> Option<RawLink> {
    let RouteNetlinkMessage::NewLink(message) = object else {
        return None;
    };
    let mut link = RawLink {
        index: message.header.index,
        name: String::new(),
        owner: Owner::Foreign,
        kind: RawKind::Known(match message.header.link_layer_type {
            LinkLayerType::Loopback => Kind::Loopback,
            other => Kind::Other(format!("{other:?}").to_lowercase()),
        }),
        alias: None,
        mtu: 0,
        mac: None,
        up: message.header.flags.contains(LinkFlags::Up),
        state: State::Unknown,
        master: None,
        link: None,
        link_elsewhere: false,
        addr_gen: None,
        port: None,
        settings: Settings::default(),
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Group(group) => link.owner = Owner::of_group(group),
            LinkAttribute::IfAlias(alias) => link.alias = Some(alias),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::OperState(state) => link.state = state,
            LinkAttribute::Controller(index) => link.master = Some(index).filter(|it| *it > 0),
            LinkAttribute::Link(index) => link.link = Some(index).filter(|it| *it > 0),
            LinkAttribute::LinkNetNsId(_) => link.link_elsewhere = true,
            LinkAttribute::Address(bytes) => {
                link.mac = <[u8; 6]>::try_from(bytes).ok().map(MacAddress::new);
            }
            LinkAttribute::AfSpecUnspec(specs) => families(&mut link, &specs),
            LinkAttribute::LinkInfo(infos) => infos_of(&mut link, infos),
            _ => {}
        }
    }
    Some(link)
}

fn families(link: &mut RawLink, specs: &[AfSpecUnspec]) {
    for spec in specs {
        match spec {
            AfSpecUnspec::Inet(attributes) => {
                for attribute in attributes {
                    if let AfSpecInet::DevConf(conf) = attribute {
                        link.settings.arp_accept = Some(conf.arp_accept);
                    }
                }
            }
            AfSpecUnspec::Inet6(attributes) => {
                for attribute in attributes {
                    match attribute {
                        AfSpecInet6::AddrGenMode(In6AddrGenMode::None) => {
                            link.addr_gen = Some(AddrGen::None);
                        }
                        AfSpecInet6::AddrGenMode(_) => link.addr_gen = Some(AddrGen::Kernel),
                        AfSpecInet6::DevConf(conf) => {
                            link.settings.accept_dad = Some(conf.accept_dad);
                            link.settings.accept_untracked_na = Some(conf.accept_untracked_na);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn infos_of(link: &mut RawLink, infos: Vec<LinkInfo>) {
    for info in infos {
        match info {
            LinkInfo::Kind(kind) => {
                link.kind = match kind {
                    InfoKind::Bridge => RawKind::Known(Kind::Bridge),
                    InfoKind::Dummy => RawKind::Known(Kind::Dummy),
                    InfoKind::Veth => RawKind::Veth,
                    other => RawKind::Known(Kind::Other(other.to_string())),
                }
            }
            LinkInfo::Data(data) => {
                if let Some(kind) = kind(data) {
                    link.kind = kind;
                }
            }
            LinkInfo::PortData(InfoPortData::BridgePort(attributes)) => {
                link.port = Some(port(&attributes));
            }
            _ => {}
        }
    }
}

fn port(attributes: &[InfoBridgePort]) -> BridgePort {
    let mut port = BridgePort::DEFAULT;
    for attribute in attributes {
        match attribute {
            InfoBridgePort::NeighSupress(on) => port.neigh_suppress = *on,
            InfoBridgePort::Learning(on) => port.learning = *on,
            InfoBridgePort::HairpinMode(on) => port.hairpin = *on,
            _ => {}
        }
    }
    port
}

fn kind(data: InfoData) -> Option<RawKind> {
    match data {
        InfoData::Vrf(attributes) => attributes.iter().find_map(|attribute| match attribute {
            InfoVrf::TableId(table) => Some(RawKind::Known(Kind::Vrf { table: *table })),
            _ => None,
        }),
        InfoData::Vlan(attributes) => vlan(&attributes),
        InfoData::Vxlan(attributes) => Some(RawKind::Known(vxlan(&attributes))),
        InfoData::GreTap(attributes) => gre4(Payload::Frames, &attributes),
        InfoData::GreTun(attributes) => gre4(Payload::Packets, &attributes),
        InfoData::GreTap6(attributes) => gre6(Payload::Frames, &attributes),
        InfoData::GreTun6(attributes) => gre6(Payload::Packets, &attributes),
        _ => None,
    }
}

fn vlan(attributes: &[InfoVlan]) -> Option<RawKind> {
    let plain = attributes.iter().all(|attribute| match attribute {
        InfoVlan::Protocol(protocol) => *protocol == VlanProtocol::Ieee8021Q,
        _ => true,
    });
    attributes.iter().find_map(|attribute| match attribute {
        InfoVlan::Id(id) if plain => Some(RawKind::Vlan(*id)),
        _ => None,
    })
}

fn vxlan(attributes: &[InfoVxlan]) -> Kind {
    let (mut vni, mut port, mut local, mut learning) = (0, 0, None, false);
    for attribute in attributes {
        match attribute {
            InfoVxlan::Id(id) => vni = *id,
            InfoVxlan::Port(number) => port = *number,
            InfoVxlan::Local(address) => local = Some(IpAddr::V4(*address)),
            InfoVxlan::Local6(address) => local = Some(IpAddr::V6(*address)),
            InfoVxlan::Learning(on) => learning = *on,
            _ => {}
        }
    }
    Kind::Vxlan {
        vni,
        port,
        local,
        learning,
    }
}

macro_rules! gre {
    ($function:ident, $type:ident, $family:ident) => {
        fn $function(payload: Payload, attributes: &[$type]) -> Option<RawKind> {
            let (mut local, mut remote, mut key, mut flagged, mut link) =
                (None, None, None, false, None);
            for attribute in attributes {
                match attribute {
                    $type::Local(address) => local = Some(IpAddr::$family(*address)),
                    $type::Remote(address) => remote = Some(IpAddr::$family(*address)),
                    $type::IKey(number) => key = Some(*number),
                    $type::IFlags(flags) => {
                        flagged = flags.contains(netlink_packet_route::link::GreIOFlags::Key);
                    }
                    $type::Link(index) => link = Some(*index).filter(|it| *it > 0),
                    _ => {}
                }
            }
            let gre = Gre {
                payload,
                local: local?,
                remote: remote?,
                key: key.filter(|_| flagged),
                device: None,
            };
            Some(RawKind::Gre(gre, link))
        }
    };
}
gre!(gre4, InfoGre, V4);
gre!(gre6, InfoGre6, V6);
