//! Route messages with only what we look at.
//!
//! Of filters and queues that are not of our kind nothing is left but their kind: others may write what the decoder does not know.
//!
//! The kernel sends some hundred attributes of each link, and the decoder, for every attribute it meets, spells out all bytes
//! around it for an error message that is never shown: nine tenths of the time of an observation. Unused
//! attributes are removed before decoding.

use netlink_packet_route::RouteNetlinkMessage;
use rtnetlink::packet_core::{
    DecodeError, NetlinkDeserializable, NetlinkHeader, NetlinkPayload, NetlinkSerializable,
};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWQDISC: u16 = 36;
const RTM_NEWTFILTER: u16 = 44;
const LINK_HEADER: usize = 16;
const TC_HEADER: usize = 20;
const ATTRIBUTE_HEADER: usize = 4;
/// The upper two bits of an attribute's type are flags.
const TYPE_MASK: u16 = 0x3fff;

const IFLA_STATS: u16 = 7;
const IFLA_MAP: u16 = 14;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_INFO_XSTATS: u16 = 3;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;

/// What we look at in a VXLAN: id, local, learning, port, local6.
const VXLAN: &[u16] = &[1, 4, 7, 15, 17];
/// In a tunnel: link, flags, key, local, remote.
const GRE: &[u16] = &[1, 2, 4, 6, 7];
/// In a bridge port: mode (hairpin), learning, neigh_suppress.
const BRIDGE_PORT: &[u16] = &[4, 8, 32];

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const FLOWER_ACTIONS: u16 = 3;
/// In a filter: actions, protocol, addresses and masks, ports.
const FLOWER: &[u16] = &[3, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 41, 42];
/// In an action: kind and options.
const ACTION: &[u16] = &[1, 2];

/// A route message whose link attributes are only those we look at.
#[derive(Clone, Debug)]
pub(super) struct Message(pub(super) RouteNetlinkMessage);

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.0.message_type()
    }

    fn buffer_len(&self) -> usize {
        NetlinkSerializable::buffer_len(&self.0)
    }

    fn serialize(&self, buffer: &mut [u8]) {
        self.0.serialize(buffer);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let slim = match header.message_type {
            RTM_NEWLINK => slim_link(payload),
            RTM_NEWQDISC | RTM_NEWTFILTER => slim_filter(payload),
            _ => None,
        };
        let payload = slim.as_deref().unwrap_or(payload);
        RouteNetlinkMessage::deserialize(header, payload).map(Self)
    }
}

impl From<Message> for NetlinkPayload<Message> {
    fn from(message: Message) -> Self {
        Self::InnerMessage(message)
    }
}

/// A link message with only what we look at; `None` if it is not laid out as it should be, which the decoder will say
/// better.
fn slim_link(payload: &[u8]) -> Option<Vec<u8>> {
    let (header, attributes) = payload.split_at_checked(LINK_HEADER)?;
    let mut slim = header.to_vec();
    for attribute in Attributes(attributes) {
        let attribute = attribute?;
        match attribute.kind {
            IFLA_STATS | IFLA_STATS64 | IFLA_MAP => {}
            IFLA_LINKINFO => attribute.nest(&mut slim, &slim_info(attribute.value)?),
            _ => slim.extend_from_slice(attribute.whole),
        }
    }
    Some(slim)
}

fn slim_info(info: &[u8]) -> Option<Vec<u8>> {
    let mut slim = Vec::new();
    let (mut kind, mut port): (&[u8], &[u8]) = (&[], &[]);
    for attribute in Attributes(info) {
        let attribute = attribute?;
        let text = || {
            attribute
                .value
                .strip_suffix(&[0])
                .unwrap_or(attribute.value)
        };
        match attribute.kind {
            IFLA_INFO_XSTATS => continue,
            IFLA_INFO_KIND => kind = text(),
            IFLA_INFO_SLAVE_KIND => port = text(),
            _ => {}
        }
        let wanted = match (attribute.kind, kind, port) {
            (IFLA_INFO_DATA, b"bridge" | b"bond", _) | (IFLA_INFO_SLAVE_DATA, _, b"bond") => {
                Some([].as_slice())
            }
            (IFLA_INFO_DATA, b"vxlan", _) => Some(VXLAN),
            (IFLA_INFO_DATA, b"gre" | b"gretap" | b"ip6gre" | b"ip6gretap", _) => Some(GRE),
            (IFLA_INFO_SLAVE_DATA, _, b"bridge") => Some(BRIDGE_PORT),
            _ => None,
        };
        match wanted {
            Some(wanted) => attribute.nest(&mut slim, &only(wanted, attribute.value)?),
            None => slim.extend_from_slice(attribute.whole),
        }
    }
    Some(slim)
}

/// A filter or queue with only what we look at.
fn slim_filter(payload: &[u8]) -> Option<Vec<u8>> {
    let (header, attributes) = payload.split_at_checked(TC_HEADER)?;
    let mut slim = header.to_vec();
    let mut is_flower = false;
    for attribute in Attributes(attributes) {
        let attribute = attribute?;
        match attribute.kind {
            TCA_KIND => {
                is_flower = attribute.value.starts_with(b"flower");
                slim.extend_from_slice(attribute.whole);
            }
            TCA_OPTIONS if is_flower => {
                attribute.nest(&mut slim, &slim_flower(attribute.value)?);
            }
            _ => {}
        }
    }
    Some(slim)
}

fn slim_flower(options: &[u8]) -> Option<Vec<u8>> {
    let mut slim = Vec::new();
    for option in Attributes(options) {
        let option = option?;
        if option.kind == FLOWER_ACTIONS {
            let mut actions = Vec::new();
            for action in Attributes(option.value) {
                let action = action?;
                action.nest(&mut actions, &only(ACTION, action.value)?);
            }
            option.nest(&mut slim, &actions);
        } else if FLOWER.contains(&option.kind) {
            slim.extend_from_slice(option.whole);
        }
    }
    Some(slim)
}

fn only(wanted: &[u16], attributes: &[u8]) -> Option<Vec<u8>> {
    let mut slim = Vec::new();
    for attribute in Attributes(attributes) {
        let attribute = attribute?;
        if wanted.contains(&attribute.kind) {
            slim.extend_from_slice(attribute.whole);
        }
    }
    Some(slim)
}

struct Attribute<'a> {
    kind: u16,
    value: &'a [u8],
    /// With header and padding.
    whole: &'a [u8],
}

impl Attribute<'_> {
    /// Writes the attribute with another value; one that grew out of its length is left as it was.
    fn nest(&self, out: &mut Vec<u8>, value: &[u8]) {
        let Ok(length) = u16::try_from(ATTRIBUTE_HEADER + value.len()) else {
            out.extend_from_slice(self.whole);
            return;
        };
        out.extend(length.to_ne_bytes());
        out.extend(self.whole.iter().skip(2).take(2));
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(ATTRIBUTE_HEADER), 0);
    }
}

/// The attributes one after another; `None` for one that does not fit.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Option<Attribute<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.len() < ATTRIBUTE_HEADER {
            return None;
        }
        let attribute = self.split();
        if attribute.is_none() {
            self.0 = &[];
        }
        Some(attribute)
    }
}

impl<'a> Attributes<'a> {
    fn split(&mut self) -> Option<Attribute<'a>> {
        let length = usize::from(u16::from_ne_bytes(*self.0.first_chunk()?));
        let kind = u16::from_ne_bytes(*self.0.get(2..)?.first_chunk()?) & TYPE_MASK;
        let value = self.0.get(ATTRIBUTE_HEADER..length)?;
        let padded = length.next_multiple_of(ATTRIBUTE_HEADER).min(self.0.len());
        let (whole, rest) = self.0.split_at_checked(padded)?;
        self.0 = rest;
        Some(Attribute { kind, value, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(ATTRIBUTE_HEADER), 0);
        bytes
    }

    #[test]
    fn what_we_look_at_is_kept_and_the_rest_is_cut_out() {
        let header = vec![7; LINK_HEADER];
        let name = attribute(3, b"vx.red\0");
        let stats = attribute(IFLA_STATS64, &[9; 200]);
        let (id, ttl) = (attribute(1, &[1, 2, 3, 4]), attribute(5, &[64]));
        let kind = attribute(IFLA_INFO_KIND, b"vxlan\0");
        let info = |data: Vec<u8>| {
            let data = attribute(IFLA_INFO_DATA, &data);
            attribute(IFLA_LINKINFO, &[kind.clone(), data].concat())
        };
        let full = info([id.clone(), ttl].concat());
        let payload = [header.clone(), name.clone(), stats, full].concat();
        let expected = [header, name, info(id)].concat();
        assert_eq!(slim_link(&payload), Some(expected));
    }

    #[test]
    fn a_message_that_is_cut_short_is_left_to_the_decoder() {
        assert_eq!(slim_link(&[1, 2, 3]), None);
        let broken = [vec![0; LINK_HEADER], vec![9, 0, 3, 0, 1]].concat();
        assert_eq!(slim_link(&broken), None);
        let too_small = [vec![0; LINK_HEADER], vec![1, 0, 3, 0]].concat();
        assert_eq!(slim_link(&too_small), None);
    }
}
