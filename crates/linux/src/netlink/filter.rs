//! Filters: hung on a link, read back, taken down.

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::IpNet;
use netlink_packet_route::{
    RouteNetlinkMessage,
    tc::{
        TcAction, TcActionAttribute, TcActionMirror, TcActionMirrorOption, TcActionOption,
        TcActionType, TcAttribute, TcFilterFlower, TcFilterFlowerOption as Flower, TcHandle,
        TcMessage, TcMirror, TcMirrorActionType, TcOption,
    },
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::{Connection, RequestError};
use crate::{
    filter::{Filter, FilterId, Hook, ObservedFilter},
    object::{Family, LinkId},
    owned::FILTER_HANDLE,
};

/// The kind of the object that filters in both directions hang on. It does nothing else.
const HOOK: &str = "clsact";
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// The links, by index, on which filters can be hung.
pub(super) async fn hooks(connection: &Connection) -> Result<Vec<u32>, RequestError> {
    let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let objects = connection.dump(request).await?;
    let index = |object| match object {
        RouteNetlinkMessage::NewQueueDiscipline(message) if kind(&message) == HOOK => {
            u32::try_from(message.header.index).ok()
        }
        _ => None,
    };
    Ok(objects.into_iter().filter_map(index).collect())
}

/// The filters of one link in one direction.
pub(super) async fn dump(
    connection: &Connection,
    index: u32,
    link: &LinkId,
    hook: Hook,
    names: &BTreeMap<u32, String>,
) -> Result<BTreeMap<FilterId, ObservedFilter>, RequestError> {
    let request = RouteNetlinkMessage::GetTrafficFilter(at(index, parent(hook)));
    let mut filters = BTreeMap::new();
    for object in connection.dump(request).await? {
        let RouteNetlinkMessage::NewTrafficFilter(message) = object else {
            continue;
        };
        let id = FilterId {
            link: link.clone(),
            hook,
            priority: u16::try_from(message.header.info >> 16).unwrap_or_default(),
        };
        match read(&message, &id, names) {
            // Another program may have attached a filter with our priority.
            ObservedFilter::Foreign => {
                filters.entry(id).or_insert(ObservedFilter::Foreign);
            }
            ours @ ObservedFilter::Ours { .. } => {
                filters.insert(id, ours);
            }
        }
    }
    Ok(filters)
}

/// Makes it possible to hang filters on a link.
pub(super) async fn add_hook(connection: &Connection, index: u32) -> Result<(), RequestError> {
    let mut message = at(index, TcHandle::CLSACT);
    message.header.handle = TcHandle {
        major: u16::MAX,
        minor: 0,
    };
    message.attributes = vec![TcAttribute::Kind(HOOK.to_owned())];
    let request = RouteNetlinkMessage::NewQueueDiscipline(message);
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
}

/// Hangs a filter on a link. `to` is the index of its tunnel.
pub(super) async fn add(
    connection: &Connection,
    index: u32,
    to: u32,
    priority: u16,
    filter: &Filter,
) -> Result<(), RequestError> {
    let mut message = placed(index, filter.hook, priority, filter.family);
    let mut options = vec![Flower::EthType(ethertype(filter.family))];
    options.extend(filter.protocol.map(Flower::IpProto));
    options.extend(filter.src.into_iter().flat_map(|net| match net {
        IpNet::V4(net) => [
            Flower::Ipv4Src(net.addr()),
            Flower::Ipv4SrcMask(net.netmask()),
        ],
        IpNet::V6(net) => [
            Flower::Ipv6Src(net.addr()),
            Flower::Ipv6SrcMask(net.netmask()),
        ],
    }));
    options.extend(filter.dst.into_iter().flat_map(|net| match net {
        IpNet::V4(net) => [
            Flower::Ipv4Dst(net.addr()),
            Flower::Ipv4DstMask(net.netmask()),
        ],
        IpNet::V6(net) => [
            Flower::Ipv6Dst(net.addr()),
            Flower::Ipv6DstMask(net.netmask()),
        ],
    }));
    options.extend(filter.src_port.and_then(|port| match filter.protocol? {
        TCP => Some(Flower::TcpSrc(port)),
        UDP => Some(Flower::UdpSrc(port)),
        SCTP => Some(Flower::SctpSrc(port)),
        _ => None,
    }));
    options.extend(filter.dst_port.and_then(|port| match filter.protocol? {
        TCP => Some(Flower::TcpDst(port)),
        UDP => Some(Flower::UdpDst(port)),
        SCTP => Some(Flower::SctpDst(port)),
        _ => None,
    }));
    options.push(Flower::Actions(vec![copy_to(to)]));
    message.attributes = vec![
        TcAttribute::Kind(TcFilterFlower::KIND.to_owned()),
        TcAttribute::Options(options.into_iter().map(TcOption::Flower).collect()),
    ];
    let request = RouteNetlinkMessage::NewTrafficFilter(message);
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
}

/// Removes our filter, and no filter of another program.
pub(super) async fn delete(
    connection: &Connection,
    index: u32,
    id: &FilterId,
    family: Family,
) -> Result<(), RequestError> {
    let mut message = placed(index, id.hook, id.priority, family);
    message.attributes = vec![TcAttribute::Kind(TcFilterFlower::KIND.to_owned())];
    let request = RouteNetlinkMessage::DelTrafficFilter(message);
    connection.change(request, 0).await
}

fn at(index: u32, parent: TcHandle) -> TcMessage {
    let mut message = TcMessage::with_index(index.cast_signed());
    message.header.parent = parent;
    message
}

fn placed(index: u32, hook: Hook, priority: u16, family: Family) -> TcMessage {
    let mut message = at(index, parent(hook));
    message.header.handle = FILTER_HANDLE.into();
    message.header.info = u32::from(priority) << 16 | u32::from(ethertype(family).to_be());
    message
}

fn parent(hook: Hook) -> TcHandle {
    TcHandle {
        major: u16::MAX,
        minor: match hook {
            Hook::Ingress => TcHandle::MIN_INGRESS,
            Hook::Egress => TcHandle::MIN_EGRESS,
        },
    }
}

fn ethertype(family: Family) -> u16 {
    match family {
        Family::V4 => 0x0800,
        Family::V6 => 0x86dd,
    }
}

/// Copies a packet and then goes on to the next filter: with "pipe" the first filter that matches would be the last.
fn copy_to(index: u32) -> TcAction {
    let mut parameters = TcMirror::default();
    parameters.generic.action = TcActionType::Unspec;
    parameters.eaction = TcMirrorActionType::EgressMirror;
    parameters.ifindex = index;
    let options = TcActionOption::Mirror(TcActionMirrorOption::Parms(parameters));
    let mut action = TcAction::default();
    action.attributes = vec![
        TcActionAttribute::Kind(TcActionMirror::KIND.to_owned()),
        TcActionAttribute::Options(vec![options]),
    ];
    action
}

fn kind(message: &TcMessage) -> &str {
    let mut kinds = message
        .attributes
        .iter()
        .filter_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind.as_str()),
            _ => None,
        });
    kinds.next().unwrap_or_default()
}

fn read(message: &TcMessage, id: &FilterId, names: &BTreeMap<u32, String>) -> ObservedFilter {
    let protocol = u16::try_from(message.header.info & 0xffff).unwrap_or_default();
    let mut families = Family::BOTH.into_iter();
    let family = families.find(|family| ethertype(*family).to_be() == protocol);
    let is_ours = u32::from(message.header.handle) == FILTER_HANDLE;
    let Some(family) = family.filter(|_| is_ours && kind(message) == TcFilterFlower::KIND) else {
        return ObservedFilter::Foreign;
    };
    let options = message
        .attributes
        .iter()
        .filter_map(|attribute| match attribute {
            TcAttribute::Options(options) => Some(options),
            _ => None,
        });
    ObservedFilter::Ours {
        family,
        copies: copies(options.flatten(), id, family, names),
    }
}

fn copies<'a>(
    options: impl Iterator<Item = &'a TcOption>,
    id: &FilterId,
    family: Family,
    names: &BTreeMap<u32, String>,
) -> Option<Filter> {
    let (mut src, mut dst) = (Network::default(), Network::default());
    let mut filter = Filter {
        link: id.link.clone(),
        hook: id.hook,
        family,
        src: None,
        dst: None,
        protocol: None,
        src_port: None,
        dst_port: None,
        to: String::new(),
    };
    for option in options {
        let TcOption::Flower(option) = option else {
            return None;
        };
        match option {
            Flower::IpProto(protocol) => filter.protocol = Some(*protocol),
            Flower::Ipv4Src(address) => src.address = Some(IpAddr::V4(*address)),
            Flower::Ipv6Src(address) => src.address = Some(IpAddr::V6(*address)),
            Flower::Ipv4SrcMask(mask) => src.mask = Some(IpAddr::V4(*mask)),
            Flower::Ipv6SrcMask(mask) => src.mask = Some(IpAddr::V6(*mask)),
            Flower::Ipv4Dst(address) => dst.address = Some(IpAddr::V4(*address)),
            Flower::Ipv6Dst(address) => dst.address = Some(IpAddr::V6(*address)),
            Flower::Ipv4DstMask(mask) => dst.mask = Some(IpAddr::V4(*mask)),
            Flower::Ipv6DstMask(mask) => dst.mask = Some(IpAddr::V6(*mask)),
            Flower::TcpSrc(port) | Flower::UdpSrc(port) | Flower::SctpSrc(port) => {
                filter.src_port = Some(*port);
            }
            Flower::TcpDst(port) | Flower::UdpDst(port) | Flower::SctpDst(port) => {
                filter.dst_port = Some(*port);
            }
            Flower::Actions(actions) => {
                let [action] = actions.as_slice() else {
                    return None;
                };
                names.get(&target(action)?)?.clone_into(&mut filter.to);
            }
            _ => {}
        }
    }
    filter.src = src.net();
    filter.dst = dst.net();
    (!filter.to.is_empty()).then_some(filter)
}

/// The link that an action copies to, if it does that and nothing else.
fn target(action: &TcAction) -> Option<u32> {
    let options = action
        .attributes
        .iter()
        .filter_map(|attribute| match attribute {
            TcActionAttribute::Options(options) => Some(options),
            _ => None,
        });
    let mut parameters = options.flatten().filter_map(|option| match option {
        TcActionOption::Mirror(TcActionMirrorOption::Parms(parameters)) => Some(parameters),
        _ => None,
    });
    let parameters = parameters.next()?;
    let copies = parameters.eaction == TcMirrorActionType::EgressMirror;
    let goes_on = parameters.generic.action == TcActionType::Unspec;
    (copies && goes_on).then_some(parameters.ifindex)
}

#[derive(Default)]
struct Network {
    address: Option<IpAddr>,
    mask: Option<IpAddr>,
}

impl Network {
    fn net(&self) -> Option<IpNet> {
        IpNet::with_netmask(self.address?, self.mask?).ok()
    }
}
