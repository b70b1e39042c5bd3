//! `selvedge ipam`: the pools of addresses, what is used of them and by which objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use compiler::{Compilation, Kind, ObjectRef, allocate::Pool as AddressPool, compile};
use ipnet::IpNet;
use serde::Serialize;

use super::problems;
use crate::{
    args::{Format, Ipam},
    input::World,
    names,
    output::{self, Column, Verdict, counted},
    suggest::nearest,
};

pub(super) fn run(args: &Ipam) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let verdict = problems::beside(&world, &compilation);
    let mut pools = pools(&world, &compilation);
    if let Some(name) = &args.name {
        let names = pools.iter().flat_map(Pool::names).collect::<BTreeSet<_>>();
        pools.retain(|pool| pool.is_called(name));
        if pools.is_empty() {
            let near = nearest(name, names.iter().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            anyhow::bail!("no pool is called {name:?} or contains it{hint}");
        }
    }
    if args.output != Format::Table {
        output::stream(args.output, pools.iter())?;
        return Ok(verdict);
    }
    // The pools of which the least is left come first.
    pools.sort_by(|one, other| other.used_share().total_cmp(&one.used_share()));
    let rows: Vec<Vec<String>> = if output::is_all() || args.name.is_some() {
        let pools = pools.iter();
        pools.map(|pool| pool.row(args.name.is_some())).collect()
    } else {
        folded(&pools)
    };
    let head = [
        ("POOL", Column::Wrapped),
        ("PREFIX", Column::Whole),
        ("SIZE", Column::Whole),
        ("USED", Column::Whole),
        ("FREE", Column::Whole),
        ("USED BY", Column::Wrapped),
    ];
    let shown = if output::is_all() || args.name.is_some() {
        rows.len()
    } else {
        // A row may take a second line.
        let fits = |number: &usize| {
            let rows = rows.get(..*number).unwrap_or_default();
            output::table_of(&head, rows).lines().count() + END < output::ROWS
        };
        (0..=rows.len()).rev().find(fits).unwrap_or_default()
    };
    output::text(&output::table_of(
        &head,
        rows.get(..shown).unwrap_or_default(),
    ));
    let total = counted(pools.len(), "pool");
    let end = match rows.len() - shown {
        0 => total,
        more => format!(
            "{total}; the {more} with the smallest share in use are not shown: --all shows them, and ipam NAME shows one"
        ),
    };
    output::text(&format!("\n{}\n", output::wrapped(&end, 2)));
    Ok(verdict)
}

/// The rows of pools. Those of Underlays with the same numbers are one: a rack often has pools of its own.
fn folded(pools: &[Pool]) -> Vec<Vec<String>> {
    let mut rows: Vec<(Vec<&Pool>, Vec<String>)> = Vec::new();
    for pool in pools {
        let row = pool.row(false);
        let numbers = row.get(2..).map(<[String]>::to_vec);
        let is_like = |(known, row): &&mut (Vec<&Pool>, Vec<String>)| {
            let is_of_underlay = |pool: &Pool| pool.object.kind == Kind::Underlay;
            is_of_underlay(pool)
                && known.iter().all(|one| is_of_underlay(one))
                && row.get(2..).map(<[String]>::to_vec) == numbers
        };
        match rows.iter_mut().find(is_like) {
            Some((known, _)) => known.push(pool),
            None => rows.push((vec![pool], row)),
        }
    }
    let rows = rows.into_iter().map(|(pools, mut row)| {
        if pools.len() > 1 {
            let names: Vec<String> = pools.iter().flat_map(|pool| pool.names()).collect();
            let prefixes: Vec<String> = pools.iter().map(|pool| pool.prefix.to_string()).collect();
            let heads = [
                format!("{} {}", Kind::Underlay, names::brief(&names, NAMES)),
                names::brief(&prefixes, NAMES),
            ];
            row.splice(..heads.len(), heads);
            if let Some(users) = row.last_mut() {
                users.push_str(" each");
            }
        }
        row
    });
    rows.collect()
}

/// The columns that the names or prefixes of several pools take.
const NAMES: usize = 24;

/// The lines behind the table.
const END: usize = 3;

/// How many objects with addresses are named of one pool.
const USERS: usize = 2;

/// A prefix that addresses are taken from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pool {
    /// The object that defines it.
    #[serde(rename = "pool")]
    object: ObjectRef,
    /// Other objects that define the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<ObjectRef>,
    prefix: IpNet,
    /// How many addresses it has for hosts.
    size: u128,
    used: usize,
    free: u128,
    /// How many each object has.
    used_by: BTreeMap<String, usize>,
}

impl Pool {
    /// The names of the objects that define it.
    fn names(&self) -> Vec<String> {
        let keys = std::iter::once(&self.object).chain(&self.also);
        keys.map(|object| object.key.name.to_string()).collect()
    }

    /// Whether it is meant by a name, or by a prefix or an address in it.
    fn is_called(&self, name: &str) -> bool {
        let is_inside = match (name.parse::<IpNet>(), name.parse::<IpAddr>()) {
            (Ok(net), _) => self.prefix.contains(&net),
            (_, Ok(address)) => self.prefix.contains(&address),
            _ => false,
        };
        let (_, short) = name.split_once('/').unwrap_or(("", name));
        is_inside || self.names().iter().any(|own| own == name || own == short)
    }

    /// How much of it is used, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share that only sorts pools")]
    fn used_share(&self) -> f64 {
        self.used as f64 / (self.size.max(1) as f64)
    }

    fn row(&self, is_whole: bool) -> Vec<String> {
        vec![
            self.name(),
            self.prefix.to_string(),
            amount(self.size),
            self.used.to_string(),
            amount(self.free),
            self.users(is_whole),
        ]
    }

    /// The objects that have addresses of it, with how many: in a few words, or all.
    fn users(&self, is_whole: bool) -> String {
        let by = self.used_by.iter();
        // An attachment or a service is often called as its Network is.
        let of_same = |by: &str| {
            let (what, name) = by.rsplit_once(' ')?;
            let before = what.strip_suffix(" of");
            let what = before.or_else(|| what.strip_suffix(" on")).unwrap_or(what);
            (*name == *self.object.key.name).then(|| what.to_owned())
        };
        let by = by.map(|(by, number)| (of_same(by).unwrap_or_else(|| by.clone()), number));
        let by = by.map(|(by, number)| match number {
            1 => by,
            number => format!("{by} ({number})"),
        });
        let by: Vec<String> = by.collect();
        let most = if is_whole || output::is_all() {
            usize::MAX
        } else {
            USERS
        };
        let more = match by.len().saturating_sub(most) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown: Vec<String> = by.into_iter().take(most).collect();
        format!("{}{more}", shown.join(", "))
    }

    /// The objects that define it, in a few words.
    fn name(&self) -> String {
        let keys = std::iter::once(&self.object).chain(&self.also);
        let keys: Vec<String> = keys.map(|object| object.key.name.to_string()).collect();
        format!("{} {}", self.object.kind, names::folded(&keys))
    }

    /// Takes in the same pool of another object.
    fn merge(&mut self, other: Self) {
        self.also.push(other.object);
        for (by, number) in other.used_by {
            *self.used_by.entry(by).or_default() += number;
        }
        self.used += other.used;
        self.free = self.size.saturating_sub(self.used as u128);
    }

    fn new(object: ObjectRef, prefix: IpNet, taken: &BTreeMap<IpAddr, String>) -> Self {
        // The address of a network and its broadcast address are never given.
        let size = prefix
            .to_string()
            .parse()
            .map_or(0, |prefix| AddressPool::new(prefix).free());
        let mut used_by: BTreeMap<String, usize> = BTreeMap::new();
        let own = taken
            .iter()
            .filter(|(address, _)| prefix.contains(*address));
        for (_, by) in own {
            *used_by.entry(by.clone()).or_default() += 1;
        }
        let used: usize = used_by.values().sum();
        Self {
            object,
            also: Vec::new(),
            prefix,
            size,
            used,
            free: size.saturating_sub(used as u128),
            used_by,
        }
    }
}

fn pools(world: &World, compilation: &Compilation) -> Vec<Pool> {
    let snapshot = &world.snapshot;
    // Who has which address, by the Network that it is of.
    let mut taken: BTreeMap<&str, BTreeMap<IpAddr, String>> = BTreeMap::new();
    for (key, attachment) in &snapshot.layer2_attachments {
        let of_network = taken
            .entry(attachment.spec.network_ref.as_str())
            .or_default();
        let subject = ObjectRef::named(Kind::Layer2Attachment, &key.name);
        let of_nodes = compilation.node_addresses.get(&subject);
        for address in of_nodes
            .into_iter()
            .flat_map(|nodes| nodes.values())
            .flatten()
        {
            of_network.insert(*address, format!("nodes on {}", key.name));
        }
        let anycast = compilation.attachment(&key.name);
        let anycast = anycast.and_then(|attachment| attachment.anycast.as_ref());
        if let Some(anycast) = anycast {
            let gateways = [anycast.gateway, anycast.gatewayv4].into_iter().flatten();
            for gateway in gateways {
                of_network.insert(gateway.addr(), format!("gateway of {}", key.name));
            }
        }
    }
    let inbounds = snapshot.inbounds.iter();
    let inbounds = inbounds.map(|(key, one)| (Kind::Inbound, key, one.spec.network_ref.as_str()));
    let outbounds = snapshot.outbounds.iter();
    let outbounds =
        outbounds.map(|(key, one)| (Kind::Outbound, key, one.spec.network_ref.as_str()));
    for (kind, key, network) in inbounds.chain(outbounds) {
        let subject = ObjectRef::named(kind, &key.name);
        let Some(service) = compilation.service(&subject) else {
            continue;
        };
        let v4 = service.addresses.ipv4.iter().copied().map(IpAddr::from);
        let v6 = service.addresses.ipv6.iter().copied().map(IpAddr::from);
        let of_network = taken.entry(network).or_default();
        of_network.extend(v4.chain(v6).map(|address| (address, subject.to_string())));
    }
    let none = BTreeMap::new();
    let mut pools = Vec::new();
    for (key, network) in &snapshot.networks {
        let own = taken.get(&*key.name).unwrap_or(&none);
        for family in [&network.spec.ipv4, &network.spec.ipv6]
            .into_iter()
            .flatten()
        {
            if let Ok(prefix) = family.cidr.to_string().parse() {
                let object = ObjectRef::named(Kind::Network, &key.name);
                pools.push(Pool::new(object, prefix, own));
            }
        }
    }
    pools.extend(of_underlays(world, compilation));
    pools
}

/// The pools of tunnel endpoints and router IDs.
fn of_underlays(world: &World, compilation: &Compilation) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    // Underlays of several racks often share their pools.
    let mut add = |pool: Pool| {
        let is_same = |known: &&mut Pool| {
            known.prefix == pool.prefix && known.used_by.keys().eq(pool.used_by.keys())
        };
        match pools.iter_mut().find(is_same) {
            Some(known) => known.merge(pool),
            None => pools.push(pool),
        }
    };
    for (key, underlay) in &world.snapshot.underlays {
        let subject = ObjectRef {
            kind: Kind::Underlay,
            key: key.clone(),
        };
        let nodes = compilation.nodes.values();
        let nodes = nodes.filter_map(|config| config.underlay.as_ref());
        let nodes: Vec<_> = nodes.filter(|own| own.fabric.source == subject).collect();
        let evpn = underlay.spec.evpn.as_ref();
        let older = evpn
            .and_then(|evpn| evpn.vtepcidr)
            .map(|prefix| prefix.to_string());
        let newer = underlay.spec.tunnel_endpoint.iter();
        let newer = newer.flat_map(|endpoint| endpoint.cidrs.iter().map(ToString::to_string));
        let prefixes: BTreeSet<String> = older.into_iter().chain(newer).collect();
        let vteps = nodes.iter().flat_map(|own| [own.vtep, own.other_vtep]);
        let vteps = vteps.flatten().map(|vtep| (vtep, "VTEPs".to_owned()));
        let vteps: BTreeMap<IpAddr, String> = vteps.collect();
        let prefixes = prefixes.iter().filter_map(|prefix| prefix.parse().ok());
        for prefix in prefixes {
            add(Pool::new(subject.clone(), prefix, &vteps));
        }
        let ids = nodes.iter().map(|own| own.router_id.into());
        let ids = ids.map(|id: IpAddr| (id, "router IDs".to_owned()));
        if let Ok(prefix) = underlay.spec.routeridcidr.to_string().parse() {
            add(Pool::new(subject, prefix, &ids.collect()));
        }
    }
    pools
}

/// A number of addresses; of more than IPv4 has as the nearest power of two.
fn amount(number: u128) -> String {
    if number <= 1 << 32 {
        return number.to_string();
    }
    let power = number.ilog2();
    if number.is_power_of_two() {
        return format!("2^{power}");
    }
    let above_half = number - (1 << power) > 1 << (power - 1);
    format!("~2^{}", power + u32::from(above_half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_never_shown_as_twice_as_much() {
        assert_eq!(amount(0), "0");
        assert_eq!(amount((1 << 24) - 2), "16777214");
        assert_eq!(amount(1 << 64), "2^64");
        assert_eq!(amount((1 << 64) - 100), "~2^64");
        assert_eq!(amount((1 << 64) + 100), "~2^64");
        assert_eq!(amount(u128::MAX), "~2^128");
    }
}
