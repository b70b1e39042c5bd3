//! Measures health: every check side by side, each with its own deadline.

mod gateways;
mod icmp;

use std::{collections::BTreeSet, io, net::IpAddr, time::Duration};

use api::{
    selvedge::Health as Checks, tcaas::node_network_config::AddressFamilyName, value::Seconds,
};
use frr::show::BgpSession;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use linux::{
    Domain,
    netlink::{Interface, InterfaceState, Kernel},
};
use tokio::{net::TcpStream, time};

use crate::{
    config::Config,
    daemons::{self, Instance},
    health::{Check, Health, uplink_neighbors},
    report, vtysh,
};

/// A fresh request to the API server.
pub(crate) trait ApiServer: std::fmt::Debug + Send + Sync {
    /// Asks for something that no cache on the way can answer.
    fn reach(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// How long the kernel may take to tell of its interfaces.
const KERNEL_PATIENCE: Duration = Duration::from_secs(5);

/// Measures the uplinks and sessions of one config, and runs the probes of another. A check that fails is tried again as
/// often as `attempts` says. No attempt takes longer than the limit. FRR is asked over its sockets.
pub(crate) async fn measure(
    kernel: &Kernel,
    frr: &Instance,
    api: Option<&dyn ApiServer>,
    router: Option<&Config>,
    probes: &Config,
    attempts: u32,
    limit: Duration,
) -> Health {
    let checks = &probes.spec.health;
    let patience = |own| patience(own, checks).min(limit);
    let mut outcomes: Vec<BoxFuture<'_, (Check, Result<(), String>)>> = Vec::new();
    for target in &checks.reachability {
        let patience = patience(target.timeout);
        let (host, port) = (target.host.clone(), target.port);
        let check = Check::Tcp(host.clone(), port);
        outcomes.push(again(check, attempts, patience, move || {
            tcp(host.clone(), port).boxed()
        }));
    }
    for target in &checks.icmp {
        let patience = patience(target.timeout);
        let host = target.host.clone();
        outcomes.push(again(
            Check::Icmp(host.clone()),
            attempts,
            patience,
            move || ping(host.clone(), patience).boxed(),
        ));
    }
    let patience = patience(None);
    let gateways = if checks.gateways {
        gateways::of_host()
    } else {
        BTreeSet::new()
    };
    for (address, interface) in gateways {
        let check = Check::Gateway(address, interface.clone());
        outcomes.push(again(check, attempts, patience, move || {
            icmp::echo(address, Some(interface.clone()), patience).boxed()
        }));
    }
    if let Some(api) = api.filter(|_| checks.api_server) {
        outcomes.push(again(Check::ApiServer, attempts, patience, || api.reach()));
    }
    let (mut health, links, sessions) = futures::join!(
        join_all(outcomes).map(|outcomes| outcomes.into_iter().collect::<Health>()),
        links(kernel, router, probes, limit),
        sessions(frr, router.filter(|_| checks.sessions), limit),
    );
    let router = router.filter(|router| router.spec.underlay.is_some());
    let daemons = router.map(|_| daemons::states(frr)).unwrap_or_default();
    let daemons = daemons.into_iter().map(|(name, runs)| {
        let outcome = runs
            .then_some(())
            .ok_or_else(|| "it does not run".to_owned());
        (Check::Daemon(name.to_owned()), outcome)
    });
    for (check, outcome) in links.into_iter().chain(sessions).chain(daemons) {
        health.insert(check, outcome);
    }
    health
}

fn patience(own: Option<Seconds>, checks: &Checks) -> Duration {
    let seconds = own.unwrap_or(checks.timeout).get().max(1);
    Duration::from_secs(seconds.into())
}

/// A check with its deadline, tried again when it fails.
fn again<'a>(
    check: Check,
    attempts: u32,
    patience: Duration,
    attempt: impl Fn() -> BoxFuture<'a, Result<(), String>> + Send + 'a,
) -> BoxFuture<'a, (Check, Result<(), String>)> {
    async move {
        let mut outcome = Ok(());
        for _ in 0..attempts.max(1) {
            outcome = time::timeout(patience, attempt())
                .await
                .unwrap_or_else(|_elapsed| Err(format!("no answer within {patience:?}")));
            if outcome.is_ok() {
                break;
            }
        }
        (check, outcome)
    }
    .boxed()
}

async fn resolve(host: &str) -> Result<IpAddr, String> {
    let failed = |error: io::Error| format!("cannot resolve {host}: {error}");
    let mut found = tokio::net::lookup_host((host, 0)).await.map_err(failed)?;
    found
        .next()
        .map(|address| address.ip())
        .ok_or_else(|| format!("{host} has no address"))
}

async fn ping(host: String, patience: Duration) -> Result<(), String> {
    let address = resolve(&host).await?;
    icmp::echo(address, None, patience).await
}

/// A refused connection was answered, too.
async fn tcp(host: String, port: u16) -> Result<(), String> {
    let address = resolve(&host).await?;
    match TcpStream::connect((address, port)).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Uplinks of the router, uplinks that the other config would add, and interfaces that its settings name.
async fn links(
    kernel: &Kernel,
    router: Option<&Config>,
    probes: &Config,
    limit: Duration,
) -> Vec<(Check, Result<(), String>)> {
    let named = &probes.spec.health.interfaces;
    let of_router = router.into_iter().flat_map(Config::nics);
    if of_router.chain(probes.nics()).next().is_none() && named.is_empty() {
        return Vec::new();
    }
    let seen = match time::timeout(KERNEL_PATIENCE.min(limit), kernel.interfaces()).await {
        Ok(Ok(seen)) => Ok(seen),
        Ok(Err(error)) => Err(report::chain(&error)),
        Err(_elapsed) => Err("the kernel does not answer".to_owned()),
    };
    let named = named.iter().map(|name| {
        let outcome = is_up_anywhere(&seen, name.as_ref());
        (Check::Interface(name.to_string()), outcome)
    });
    uplinks(&seen, router, probes).chain(named).collect()
}

/// The uplinks of the router, where they should be, and those that the other config would add, where they are: one that had no carrier
/// before it was moved may have none afterwards.
fn uplinks<'a>(
    seen: &'a Result<Vec<Interface>, String>,
    router: Option<&'a Config>,
    probes: &'a Config,
) -> impl Iterator<Item = (Check, Result<(), String>)> {
    let of_router: Vec<&str> = router.into_iter().flat_map(Config::nics).collect();
    let new = probes.nics().filter({
        let of_router = of_router.clone();
        move |name| !of_router.contains(name)
    });
    let new = new.map(|name| (name, is_up_anywhere(seen, name)));
    let of_router = of_router.into_iter();
    let of_router = of_router.map(|name| (name, is_up(seen, Domain::Router, name)));
    let uplinks = of_router.chain(new);
    uplinks.map(|(name, outcome)| (Check::Uplink(name.to_owned()), outcome))
}

/// Whether an interface is up in the host's namespace, or in the router's.
fn is_up_anywhere(seen: &Result<Vec<Interface>, String>, name: &str) -> Result<(), String> {
    let host = is_up(seen, Domain::Host, name);
    host.or_else(|why| is_up(seen, Domain::Router, name).map_err(|_elsewhere| why))
}

fn is_up(seen: &Result<Vec<Interface>, String>, domain: Domain, name: &str) -> Result<(), String> {
    let seen = seen.as_ref().map_err(Clone::clone)?;
    let found = seen
        .iter()
        .find(|it| it.id.domain == domain && it.id.name == name);
    match found.map(|interface| interface.state) {
        Some(InterfaceState::Up | InterfaceState::Unknown) => Ok(()),
        Some(InterfaceState::Down) => Err("no carrier".to_owned()),
        None => Err(format!("not present in the {domain} namespace")),
    }
}

/// The uplink sessions of the router, for each address family that the config asks for.
async fn sessions(
    frr: &Instance,
    router: Option<&Config>,
    limit: Duration,
) -> Vec<(Check, Result<(), String>)> {
    let neighbors = router.map_or_else(Vec::new, |config| uplink_neighbors(&config.spec));
    if neighbors.is_empty() {
        return Vec::new();
    }
    let summary = vtysh::ask_daemon(frr, "bgpd", "show bgp vrf all summary json");
    let seen = match time::timeout(limit, summary).await {
        Ok(Ok(None)) => Err("bgpd does not report its sessions".to_owned()),
        Ok(Ok(Some(text))) => frr::show::bgp_summary(&text).map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(report::chain(&error)),
        Err(_elapsed) => Err(format!("FRR did not answer within {limit:?}")),
    };
    let outcomes = neighbors
        .into_iter()
        .flat_map(|(neighbor, families)| of_neighbor(seen.as_deref(), &neighbor, families));
    outcomes.collect()
}

fn of_neighbor(
    seen: Result<&[BgpSession], &String>,
    neighbor: &str,
    families: &[AddressFamilyName],
) -> Vec<(Check, Result<(), String>)> {
    // How many EVPN routes there are is up to the workloads of other nodes; without any other family they are all there is.
    let is_evpn = |family| family == AddressFamilyName::L2vpnEvpn;
    let only_evpn = families.iter().all(|family| is_evpn(*family));
    let mut outcomes = Vec::new();
    for family in families.iter().copied() {
        let own = seen.map_err(Clone::clone).and_then(|sessions| {
            let mut all = sessions.iter();
            let own = all.find(|it| {
                it.vrf == "default" && it.neighbor == neighbor && is_of(&it.family, family)
            });
            own.ok_or_else(|| "not known to FRR".to_owned())
        });
        let state = own.clone().and_then(|own| {
            let up = own.established.then_some(());
            up.ok_or_else(|| own.state.clone())
        });
        let prefixes = own.and_then(|own| {
            let any = (own.prefixes_received > 0).then_some(());
            any.ok_or_else(|| "none received".to_owned())
        });
        outcomes.push((Check::Session(neighbor.to_owned(), family), state));
        if only_evpn || !is_evpn(family) {
            outcomes.push((Check::Prefixes(neighbor.to_owned(), family), prefixes));
        }
    }
    outcomes
}

/// Whether FRR's word for an address family means this one.
fn is_of(word: &str, family: AddressFamilyName) -> bool {
    match family {
        AddressFamilyName::Ipv4Unicast => word == "ipv4Unicast",
        AddressFamilyName::Ipv6Unicast => word == "ipv6Unicast",
        AddressFamilyName::L2vpnEvpn => word == "l2VpnEvpn",
    }
}

#[cfg(test)]
mod tests {
    use InterfaceState::{Down, Up};

    use super::*;

    #[tokio::test]
    async fn a_refused_connection_counts_as_reached_and_silence_does_not() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(tcp("127.0.0.1".to_owned(), port).await, Ok(()));
        drop(listener);
        assert_eq!(tcp("127.0.0.1".to_owned(), port).await, Ok(()));
        let (check, outcome) = again(Check::ApiServer, 2, Duration::from_millis(50), || {
            futures::future::pending().boxed()
        })
        .await;
        assert_eq!(check, Check::ApiServer);
        assert_eq!(outcome, Err("no answer within 50ms".to_owned()));
    }

    #[test]
    fn an_uplink_that_was_dead_before_it_was_added_may_stay_dead_and_one_that_worked_may_not() {
        let config = |nics: &[&str]| {
            let underlay = serde_json::json!({
                "namespace": "selvedge", "asn": 64514, "routerId": "192.0.2.1", "nics": nics,
                "routerMac": "02:00:00:00:00:01", "trunk": {"host": "hbn", "router": "hbn", "mtu": 9000},
            });
            let mut config = Config::empty();
            config.spec.underlay = serde_json::from_value(underlay).expect("an underlay");
            config
        };
        let seen = |links: &[(Domain, &str, InterfaceState)]| {
            let interface = |(domain, name, state): &(Domain, &str, InterfaceState)| Interface {
                id: linux::LinkId {
                    domain: *domain,
                    name: (*name).to_owned(),
                },
                owner: linux::owned::Owner::Foreign,
                kind: linux::Kind::Other("ether".to_owned()),
                mac: None,
                mtu: 1500,
                state: *state,
                master: None,
                members: BTreeSet::new(),
                addresses: BTreeSet::new(),
            };
            Ok(links.iter().map(interface).collect())
        };
        let (one, both) = (config(&["eth1"]), config(&["eth1", "eth2"]));
        let before = |state| seen(&[(Domain::Router, "eth1", Up), (Domain::Host, "eth2", state)]);
        let after = seen(&[(Domain::Router, "eth1", Up), (Domain::Router, "eth2", Down)]);
        for (router, state, worse) in [(Some(&one), Down, 0), (Some(&one), Up, 1), (None, Down, 0)]
        {
            let before = before(state);
            let baseline: Health = uplinks(&before, router, &both).collect();
            let now: Health = uplinks(&after, Some(&both), &both).collect();
            let found = crate::health::regressions(&baseline, &now);
            assert_eq!(found.len(), worse, "{state:?}: {found:?}");
        }
        // Afterwards it counts only where it should be.
        let lost = before(Up);
        let now: Health = uplinks(&lost, Some(&both), &both).collect();
        assert_eq!(now.failures().count(), 1);
    }

    #[test]
    fn each_address_family_of_a_session_is_looked_at() {
        use AddressFamilyName::{Ipv4Unicast, L2vpnEvpn};
        let peer = |state: &str| serde_json::json!({"peers": {"192.0.2.1": {"state": state, "pfxRcd": 0}}});
        let summary = serde_json::json!({
            "default": {"ipv4Unicast": peer("Established"), "l2VpnEvpn": peer("NoNeg")},
            "red": {"ipv6Unicast": peer("Established")},
        });
        let seen = frr::show::bgp_summary(&summary.to_string()).unwrap();
        let look = |families: &[AddressFamilyName]| {
            let health = of_neighbor(Ok(&seen), "192.0.2.1", families);
            health
                .into_iter()
                .filter_map(|(check, outcome)| Some(format!("{check}: {}", outcome.err()?)))
                .collect::<Vec<_>>()
        };
        let failures = look(&[Ipv4Unicast, L2vpnEvpn]);
        let expected = [
            "IPv4 prefixes from 192.0.2.1: none received",
            "BGP session with 192.0.2.1 for EVPN: NoNeg",
        ];
        assert_eq!(failures, expected);
        // It is another VRF that has a session of this family.
        let failures = look(&[AddressFamilyName::Ipv6Unicast]);
        assert!(failures.iter().all(|it| it.ends_with("not known to FRR")));
        assert_eq!((failures.len(), look(&[L2vpnEvpn]).len()), (2, 2));
    }

    #[tokio::test]
    async fn a_name_that_does_not_exist_is_named() {
        let why = tcp("no-such-host.invalid".to_owned(), 1).await.unwrap_err();
        assert!(why.contains("no-such-host.invalid"), "{why}");
    }
}
