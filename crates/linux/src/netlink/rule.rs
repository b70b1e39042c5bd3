//! Policy rules.

use ipnet::IpNet;
use netlink_packet_route::{
    AddressFamily, IpProtocol, RouteNetlinkMessage,
    route::RouteProtocol,
    rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage, RulePortRange},
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::{Connection, RequestError};
use crate::{
    object::{Family, Rule},
    owned::{Owner, PROTOCOL},
};

/// All rules that say no more than [`Rule`] can; others are not ours.
pub(super) async fn dump(connection: &Connection) -> Result<Vec<(Rule, Owner)>, RequestError> {
    let mut rules = Vec::new();
    for family in Family::BOTH {
        let mut request = RuleMessage::default();
        request.header.family = number(family);
        let objects = connection
            .dump(RouteNetlinkMessage::GetRule(request))
            .await?;
        rules.extend(
            objects
                .into_iter()
                .filter_map(|object| read(connection, family, object)),
        );
    }
    Ok(rules)
}

fn read(
    connection: &Connection,
    family: Family,
    object: RouteNetlinkMessage,
) -> Option<(Rule, Owner)> {
    let RouteNetlinkMessage::NewRule(message) = object else {
        return None;
    };
    let inverted = message.header.flags.contains(RuleFlags::Invert);
    if message.header.action != RuleAction::ToTable || inverted {
        return None;
    }
    let table = u32::from(message.header.table);
    let mut rule = Rule::all(connection.domain, family, 0, table);
    let mut owner = Owner::Foreign;
    let mut plain = true;
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Table(table) => rule.table = *table,
            RuleAttribute::Priority(priority) => rule.priority = *priority,
            RuleAttribute::Iifname(name) => rule.iif = Some(name.clone()),
            RuleAttribute::Source(address) => {
                rule.src = IpNet::new(*address, message.header.src_len).ok();
            }
            RuleAttribute::Destination(address) => {
                rule.dst = IpNet::new(*address, message.header.dst_len).ok();
            }
            RuleAttribute::IpProtocol(protocol) => {
                rule.protocol = u8::try_from(i32::from(*protocol)).ok();
            }
            RuleAttribute::SourcePortRange(range) if range.start == range.end => {
                rule.src_port = Some(range.start);
            }
            RuleAttribute::DestinationPortRange(range) if range.start == range.end => {
                rule.dst_port = Some(range.start);
            }
            RuleAttribute::Protocol(protocol) => {
                owner = Owner::of_protocol(u8::from(*protocol));
            }
            // What the kernel says of every rule, and means nothing.
            RuleAttribute::SuppressPrefixLen(u32::MAX) | RuleAttribute::L3MDev(false) => {}
            // What newer kernels add of themselves (a mask to a port) does not make a rule of ours another one.
            _ => plain = false,
        }
    }
    (plain || owner == Owner::Ours).then_some((rule, owner))
}

/// Adds a rule of ours.
pub(super) async fn add(connection: &Connection, rule: &Rule) -> Result<(), RequestError> {
    let request = RouteNetlinkMessage::NewRule(message(rule, RouteProtocol::from(PROTOCOL)));
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
}

/// Removes a rule: one of ours, or the rule for local addresses at priority 0, regardless of its owner.
///
/// The kernel deletes the first rule that matches, and a priority or protocol of 0 matches any. So 0 may be asked for only
/// where such a rule was seen: being the first, it is the one that goes.
pub(super) async fn delete(connection: &Connection, rule: &Rule) -> Result<(), RequestError> {
    let protocol = if rule.priority == 0 {
        RouteProtocol::Unspec
    } else {
        RouteProtocol::from(PROTOCOL)
    };
    let request = RouteNetlinkMessage::DelRule(message(rule, protocol));
    connection.change(request, 0).await
}

fn message(rule: &Rule, protocol: RouteProtocol) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = number(rule.family);
    message.header.action = RuleAction::ToTable;
    message.header.table = u8::try_from(rule.table).unwrap_or_default();
    message.attributes = vec![
        RuleAttribute::Table(rule.table),
        RuleAttribute::Priority(rule.priority),
    ];
    if protocol != RouteProtocol::Unspec {
        message.attributes.push(RuleAttribute::Protocol(protocol));
    }
    if let Some(net) = rule.src {
        message.header.src_len = net.prefix_len();
        message.attributes.push(RuleAttribute::Source(net.addr()));
    }
    if let Some(net) = rule.dst {
        message.header.dst_len = net.prefix_len();
        message
            .attributes
            .push(RuleAttribute::Destination(net.addr()));
    }
    let port = |port| RulePortRange {
        start: port,
        end: port,
    };
    let others = [
        rule.iif.clone().map(RuleAttribute::Iifname),
        rule.protocol
            .map(|protocol| RuleAttribute::IpProtocol(IpProtocol::from(i32::from(protocol)))),
        rule.src_port
            .map(|it| RuleAttribute::SourcePortRange(port(it))),
        rule.dst_port
            .map(|it| RuleAttribute::DestinationPortRange(port(it))),
    ];
    message.attributes.extend(others.into_iter().flatten());
    message
}

fn number(family: Family) -> AddressFamily {
    match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}
