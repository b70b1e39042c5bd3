//! Measures health: every check side by side, each with its own deadline.

mod gateways;
mod icmp;

use std::{io, net::IpAddr, time::Duration};

use api::{selvedge::Health as Checks, value::Seconds};
use futures::future::{BoxFuture, FutureExt as _, join_all};
use linux::{
    Domain,
    netlink::{Interface, InterfaceState, Kernel},
};
use tokio::{net::TcpStream, time};

use crate::{
    config::Config,
    daemons::Instance,
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
        Vec::new()
    };
    for (address, interface) in gateways {
        let check = Check::Gateway(address.to_string());
        outcomes.push(again(check, attempts, patience, move || {
            icmp::echo(address, interface.clone(), patience).boxed()
        }));
    }
    if let Some(api) = api.filter(|_| checks.api_server) {
        outcomes.push(again(Check::ApiServer, attempts, patience, || api.reach()));
    }
    let (mut health, links, sessions) = futures::join!(
        join_all(outcomes).map(|outcomes| outcomes.into_iter().collect::<Health>()),
        links(kernel, router, checks, limit),
        sessions(frr, router.filter(|_| checks.sessions), limit),
    );
    for (check, outcome) in links.into_iter().chain(sessions) {
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

/// Uplinks of the router, and interfaces that the settings name.
async fn links(
    kernel: &Kernel,
    router: Option<&Config>,
    checks: &Checks,
    limit: Duration,
) -> Vec<(Check, Result<(), String>)> {
    let underlay = router.and_then(|config| config.spec.underlay.as_ref());
    let nics: Vec<String> = underlay
        .into_iter()
        .flat_map(|underlay| &underlay.nics)
        .map(ToString::to_string)
        .collect();
    let named: Vec<String> = checks.interfaces.iter().map(ToString::to_string).collect();
    if nics.is_empty() && named.is_empty() {
        return Vec::new();
    }
    let seen = match time::timeout(KERNEL_PATIENCE.min(limit), kernel.interfaces()).await {
        Ok(Ok(seen)) => Ok(seen),
        Ok(Err(error)) => Err(report::chain(&error)),
        Err(_elapsed) => Err("the kernel does not answer".to_owned()),
    };
    let uplinks = nics.into_iter().map(|name| {
        let outcome = is_up(&seen, Domain::Router, &name);
        (Check::Uplink(name), outcome)
    });
    let named = named.into_iter().map(|name| {
        let host = is_up(&seen, Domain::Host, &name);
        let outcome =
            host.or_else(|why| is_up(&seen, Domain::Router, &name).map_err(|_elsewhere| why));
        (Check::Interface(name), outcome)
    });
    uplinks.chain(named).collect()
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

/// The uplink sessions of the router. One with several address families is one session.
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
    let mut outcomes = Vec::new();
    for neighbor in neighbors {
        let own = seen.as_ref().map_err(Clone::clone).and_then(|sessions| {
            let own = sessions
                .iter()
                .filter(|it| it.vrf == "default" && it.neighbor == neighbor);
            let own: Vec<_> = own.collect();
            (!own.is_empty())
                .then_some(own)
                .ok_or_else(|| "not known to FRR".to_owned())
        });
        let state = own.clone().and_then(|own| {
            let is_up = own.iter().any(|session| session.established);
            let state = own.first().map_or("", |session| session.state.as_str());
            is_up.then_some(()).ok_or_else(|| state.to_owned())
        });
        let prefixes = own.and_then(|own| {
            let any = own.iter().any(|session| session.prefixes_received > 0);
            any.then_some(()).ok_or_else(|| "none received".to_owned())
        });
        outcomes.push((Check::Session(neighbor.clone()), state));
        outcomes.push((Check::Prefixes(neighbor), prefixes));
    }
    outcomes
}

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn a_name_that_does_not_exist_is_named() {
        let why = tcp("no-such-host.invalid".to_owned(), 1).await.unwrap_err();
        assert!(why.contains("no-such-host.invalid"), "{why}");
    }
}
