//! One look at both namespaces.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Connection, Error, Kernel, RequestError, address, filter,
    read::{self, RawKind, RawLink},
    route, rule,
};
use crate::{
    Domain, LinkId, Observed, ObservedLink,
    filter::Hook,
    object::{AddrGen, Kind},
    observed::ObservedNamespace,
    owned::{NAMESPACE_ALIAS, Owner},
    sysctl,
};

pub(super) async fn observe(kernel: &Kernel) -> Result<Observed, Error> {
    let mut observed = Observed::default();
    let router = kernel.router().await?;
    let host_links = links(&kernel.host).await?;
    let router_links = match &router {
        Some((_, connection)) => links(connection).await?,
        None => Vec::new(),
    };
    for (connection, own, others) in [
        (Some(&kernel.host), &host_links, &router_links),
        (
            router.as_ref().map(|(_, it)| it),
            &router_links,
            &host_links,
        ),
    ] {
        if let Some(connection) = connection {
            domain(&mut observed, connection, own, others).await?;
        }
    }
    if let Some((namespace, connection)) = &router {
        // A kernel without support for filters has none of ours; creating one then fails with an error.
        if filters(&mut observed, connection, &router_links)
            .await
            .is_err()
        {
            observed.filters.clear();
        }
        let marked = router_links
            .iter()
            .any(|link| link.name == "lo" && link.alias.as_deref() == Some(NAMESPACE_ALIAS));
        observed.namespace = Some(ObservedNamespace {
            name: kernel.name.clone(),
            owner: if marked { Owner::Ours } else { Owner::Foreign },
        });
        let mut unread: Vec<_> = sysctl::router().map(|(id, _)| id).collect();
        let bridges = router_links.iter().filter(|link| {
            link.owner == Owner::Ours && matches!(link.kind, RawKind::Known(Kind::Bridge))
        });
        // A bridge without automatic link-local addresses is no gateway, and its settings are not needed.
        for link in bridges.filter(|link| link.addr_gen != Some(AddrGen::None)) {
            for (id, _) in sysctl::gateway(&link.name) {
                match link.settings.get(&id.path) {
                    Some(value) => {
                        observed.sysctls.insert(id, Some(value.to_string()));
                    }
                    None => unread.push(id),
                }
            }
        }
        let failed = |source| Error::Sysctl {
            domain: Domain::Router,
            source,
        };
        let read = super::sysctl::read(namespace, unread).await;
        observed.sysctls.extend(read.map_err(failed)?);
    }
    Ok(observed)
}

async fn filters(
    observed: &mut Observed,
    connection: &Connection,
    links: &[RawLink],
) -> Result<(), RequestError> {
    let names = read::names(links);
    for index in filter::hooks(connection).await? {
        let Some(name) = names.get(&index) else {
            continue;
        };
        let link = LinkId::router(name);
        for hook in Hook::BOTH {
            let filters = filter::dump(connection, index, &link, hook, &names).await?;
            observed.filters.extend(filters);
        }
        observed.hooks.insert(link);
    }
    Ok(())
}

async fn links(connection: &Connection) -> Result<Vec<RawLink>, Error> {
    let links = read::links(connection).await;
    links.map_err(|source| Error::Read {
        what: "links",
        domain: connection.domain,
        source,
    })
}

async fn domain(
    observed: &mut Observed,
    connection: &Connection,
    own: &[RawLink],
    others: &[RawLink],
) -> Result<(), Error> {
    let domain = connection.domain;
    let failed = |what| {
        move |source| Error::Read {
            what,
            domain,
            source,
        }
    };
    let names = read::names(own);
    let addresses = address::dump(connection)
        .await
        .map_err(failed("addresses"))?;
    let mut by_link: BTreeMap<u32, BTreeSet<_>> = BTreeMap::new();
    for (index, address) in addresses {
        by_link.entry(index).or_default().insert(address);
    }
    for raw in own {
        let id = LinkId {
            domain,
            name: raw.name.clone(),
        };
        let link = ObservedLink {
            owner: raw.owner,
            kind: kind(domain, raw, &names, own, others),
            alias: raw.alias.clone(),
            mtu: raw.mtu,
            mac: raw.mac,
            up: raw.up,
            master: raw.master.and_then(|index| names.get(&index).cloned()),
            // A link without IPv6 has no mode; it makes no address either.
            addr_gen: raw.addr_gen.unwrap_or(AddrGen::None),
            port: raw.port,
            addresses: by_link.remove(&raw.index).unwrap_or_default(),
        };
        observed.links.insert(id, link);
    }
    let routes = route::dump(connection, &names)
        .await
        .map_err(failed("routes"))?;
    observed.routes.extend(routes);
    let rules = rule::dump(connection).await.map_err(failed("rules"))?;
    observed.rules.extend(rules);
    Ok(())
}

/// The kind of a link, with names for the numbers in it.
pub(super) fn kind(
    domain: Domain,
    raw: &RawLink,
    names: &BTreeMap<u32, String>,
    own: &[RawLink],
    others: &[RawLink],
) -> Kind {
    match &raw.kind {
        RawKind::Known(kind) => kind.clone(),
        RawKind::Vlan(id) => Kind::Vlan {
            parent: raw
                .link
                .filter(|_| !raw.link_elsewhere)
                .and_then(|index| names.get(&index).cloned()),
            id: *id,
        },
        RawKind::Gre(gre, link) => {
            let mut gre = gre.clone();
            gre.device = link.and_then(|index| names.get(&index).cloned());
            Kind::Gre(gre)
        }
        RawKind::Veth => Kind::Veth {
            peer: peer(domain, raw, own, others),
        },
    }
}

/// The other end of a veth, found by the indices that both ends report of each other. Indices repeat between namespaces, so
/// across them only ends of ours are paired.
fn peer(domain: Domain, raw: &RawLink, own: &[RawLink], others: &[RawLink]) -> Option<LinkId> {
    let (domain, candidates) = match (raw.link_elsewhere, domain) {
        (false, domain) => (domain, own),
        (true, Domain::Host) => (Domain::Router, others),
        (true, Domain::Router) => (Domain::Host, others),
    };
    candidates
        .iter()
        .find(|other| {
            Some(other.index) == raw.link
                && other.link == Some(raw.index)
                && matches!(other.kind, RawKind::Veth)
                && other.owner == raw.owner
                && other.link_elsewhere == raw.link_elsewhere
                && (!raw.link_elsewhere || raw.owner == Owner::Ours)
        })
        .map(|other| LinkId {
            domain,
            name: other.name.clone(),
        })
}
