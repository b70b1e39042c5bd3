//! Steps, done one by one.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ApplyError, Connection, Error, Kernel, RequestError, address, filter, link,
    namespace::{self, Namespace},
    read, route, rule, sysctl,
};
use crate::{
    Domain, Filter, FilterId, HostRoute, LinkId, Step,
    desired::DesiredLink,
    object::{Family, Kind, Route},
    owned::{GROUP_MOVED, NAMESPACE_ALIAS, Owner},
    plan::LinkChange,
    sysctl::SysctlId,
};

pub(super) async fn apply(kernel: &Kernel, steps: &[Step]) -> Result<(), ApplyError> {
    let failed = |step: &Step, done, source| ApplyError {
        step: Box::new(step.clone()),
        done,
        source,
    };
    let Some(first) = steps.first() else {
        return Ok(());
    };
    let router = kernel.router().await;
    let mut executor = Executor {
        kernel,
        router: router.map_err(|source| failed(first, 0, source))?,
        indices: BTreeMap::new(),
    };
    for (done, step) in steps.iter().enumerate() {
        let result = executor.step(step).await;
        result.map_err(|source| failed(step, done, source))?;
    }
    Ok(())
}

pub(super) async fn attempt(kernel: &Kernel, steps: &[Step]) -> Vec<ApplyError> {
    let mut failures = Vec::new();
    let mut failed = |step: &Step, done, source| {
        failures.push(ApplyError {
            step: Box::new(step.clone()),
            done,
            source,
        });
    };
    let Some(first) = steps.first() else {
        return failures;
    };
    let router = match kernel.router().await {
        Ok(router) => router,
        Err(source) => {
            failed(first, 0, source);
            return failures;
        }
    };
    let mut executor = Executor {
        kernel,
        router,
        indices: BTreeMap::new(),
    };
    let mut broken: BTreeSet<LinkId> = BTreeSet::new();
    let mut done = 0;
    for step in steps {
        if needs(step).iter().any(|link| broken.contains(link)) {
            continue;
        }
        match executor.step(step).await {
            Ok(()) => done += 1,
            Err(source) => {
                if let Step::CreateLink { id: link, .. } | Step::AddHook { link } = step {
                    broken.insert(link.clone());
                }
                failed(step, done, source);
            }
        }
    }
    failures
}

/// The links that a step of a mirror needs to be there.
fn needs(step: &Step) -> Vec<LinkId> {
    match step {
        Step::SetLink { id, .. } => vec![id.clone()],
        Step::AddFilter { filter, .. } => {
            vec![filter.link.clone(), filter.link.sibling(&filter.to)]
        }
        _ => Vec::new(),
    }
}

/// The state of one apply: sockets, and the indices of links met so far.
struct Executor<'a> {
    kernel: &'a Kernel,
    router: Option<(Namespace, Connection)>,
    indices: BTreeMap<LinkId, u32>,
}

impl Executor<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::CreateNamespace { name } => self.create_namespace(name).await,
            Step::DeleteNamespace { name } => self.delete_namespace(name),
            Step::TakeNic { name, alias } => self.take_nic(name, alias).await,
            Step::ReturnNic { name } => self.return_nic(name).await,
            Step::ReleaseNic { name } => {
                let index = self.index(&LinkId::host(name)).await?;
                changed(Domain::Host, link::release(&self.kernel.host, index).await)
            }
            Step::CreateLink { id, link } => self.create_link(id, link).await,
            Step::SetLink { id, change } => self.set_link(id, change).await,
            Step::DeleteLink { id } => self.delete_link(id).await,
            Step::AddAddress { id, address } => {
                let index = self.index(id).await?;
                let connection = self.connection(id.domain)?;
                changed(id.domain, address::add(connection, index, *address).await)
            }
            Step::DeleteAddress { id, address } => {
                let index = self.index(id).await?;
                let connection = self.connection(id.domain)?;
                changed(
                    id.domain,
                    gone(address::delete(connection, index, *address).await),
                )
            }
            Step::AddRoute { id, route } => {
                let device = self.device(id.domain, route).await?;
                let connection = self.connection(id.domain)?;
                changed(id.domain, route::add(connection, id, route, device).await)
            }
            Step::DeleteRoute { id, route } => {
                let device = match self.device(id.domain, route).await {
                    // It went with its link.
                    Err(Error::NoLink { .. }) => return Ok(()),
                    device => device?,
                };
                let connection = self.connection(id.domain)?;
                changed(
                    id.domain,
                    gone(route::delete(connection, id, route, device).await),
                )
            }
            Step::RestoreAddress { nic, address } => {
                let index = self.index(&LinkId::host(nic)).await?;
                let restored = address::restore(&self.kernel.host, index, address).await;
                changed(Domain::Host, there(restored))
            }
            Step::RestoreRoute(route) => self.restore_route(route).await,
            Step::AddRule(rule) => {
                let connection = self.connection(rule.domain)?;
                changed(rule.domain, rule::add(connection, rule).await)
            }
            Step::DeleteRule(rule) => {
                let connection = self.connection(rule.domain)?;
                changed(rule.domain, gone(rule::delete(connection, rule).await))
            }
            Step::SetSysctl { id, value } => self.set_sysctl(id, value).await,
            Step::AddHook { link } => {
                let index = self.index(link).await?;
                let connection = self.connection(link.domain)?;
                changed(link.domain, filter::add_hook(connection, index).await)
            }
            Step::AddFilter { priority, filter } => self.add_filter(*priority, filter).await,
            Step::DeleteFilter { id, family } => self.delete_filter(id, *family).await,
        }
    }

    async fn take_nic(&mut self, name: &str, alias: &str) -> Result<(), Error> {
        let id = LinkId::host(name);
        let index = self.index(&id).await?;
        let (namespace, _) = self.router()?;
        let connection = &self.kernel.host;
        let moved = link::move_to(connection, index, namespace, GROUP_MOVED, Some(alias)).await;
        self.indices.remove(&id);
        changed(Domain::Host, moved)
    }

    async fn return_nic(&mut self, name: &str) -> Result<(), Error> {
        let id = LinkId::router(name);
        let index = self.index(&id).await?;
        let host = &self.kernel.host_namespace;
        let (_, connection) = self.router()?;
        let moved = link::move_to(connection, index, host, GROUP_MOVED, None).await;
        self.indices.remove(&id);
        changed(Domain::Router, moved)
    }

    async fn restore_route(&mut self, route: &HostRoute) -> Result<(), Error> {
        let mut devices = Vec::new();
        for device in route.devices() {
            devices.push(self.index(&LinkId::host(device)).await?);
        }
        let restored = route::restore(&self.kernel.host, route, &devices).await;
        changed(Domain::Host, there(restored))
    }

    async fn set_sysctl(&self, id: &SysctlId, value: &str) -> Result<(), Error> {
        let domain = id.domain;
        let namespace = match domain {
            Domain::Host => &self.kernel.host_namespace,
            Domain::Router => self.router()?.0,
        };
        let written = sysctl::write(namespace, id, value).await;
        written.map_err(|source| Error::Sysctl { domain, source })
    }

    async fn add_filter(&mut self, priority: u16, filter: &Filter) -> Result<(), Error> {
        let domain = filter.link.domain;
        let index = self.index(&filter.link).await?;
        let to = self.index(&filter.link.sibling(&filter.to)).await?;
        let connection = self.connection(domain)?;
        let added = filter::add(connection, index, to, priority, filter).await;
        changed(domain, added)
    }

    async fn delete_filter(&mut self, id: &FilterId, family: Family) -> Result<(), Error> {
        let index = match self.index(&id.link).await {
            // It went with its link.
            Err(Error::NoLink { .. }) => return Ok(()),
            index => index?,
        };
        let connection = self.connection(id.link.domain)?;
        let deleted = gone(filter::delete(connection, index, id, family).await);
        changed(id.link.domain, deleted)
    }

    /// Makes a namespace, marks it, and only then gives it its name.
    async fn create_namespace(&mut self, name: &str) -> Result<(), Error> {
        let failed = |source| Error::MakeNamespace {
            name: name.to_owned(),
            source,
        };
        let namespace = Namespace::unnamed().await.map_err(failed)?;
        let connection = namespace.connect(Domain::Router).await.map_err(failed)?;
        // The loopback is the first link of every namespace.
        let marked = link::set_alias(&connection, 1, NAMESPACE_ALIAS).await;
        changed(Domain::Router, marked)?;
        namespace.publish(name).map_err(failed)?;
        self.router = Some((namespace, connection));
        Ok(())
    }

    fn delete_namespace(&mut self, name: &str) -> Result<(), Error> {
        // Our own socket would keep it alive.
        self.router = None;
        self.indices.clear();
        namespace::unpublish(name).map_err(|source| Error::RemoveNamespace {
            name: name.to_owned(),
            source,
        })
    }

    async fn create_link(&mut self, id: &LinkId, desired: &DesiredLink) -> Result<(), Error> {
        let parent = match &desired.kind {
            Kind::Vlan { parent, .. } => parent.as_ref(),
            Kind::Gre(gre) => gre.device.as_ref(),
            _ => None,
        };
        let parent = match parent {
            Some(name) => Some(self.index(&id.sibling(name)).await?),
            None => None,
        };
        let master = match &desired.master {
            Some(name) => Some(self.index(&id.sibling(name)).await?),
            None => None,
        };
        let other = match (&desired.kind, id.domain) {
            (Kind::Veth { .. }, Domain::Host) => Some(self.router()?.0),
            (Kind::Veth { .. }, Domain::Router) => Some(&self.kernel.host_namespace),
            _ => None,
        };
        let below = link::Below { parent };
        let connection = self.connection(id.domain)?;
        let made = link::create(connection, &id.name, desired, below, other).await;
        changed(id.domain, made)?;
        let index = self.index(id).await?;
        let connection = self.connection(id.domain)?;
        changed(
            id.domain,
            link::complete(connection, index, desired, master).await,
        )
    }

    async fn set_link(&mut self, id: &LinkId, change: &LinkChange) -> Result<(), Error> {
        let master = match change {
            LinkChange::Master(Some(name)) => Some(self.index(&id.sibling(name)).await?),
            _ => None,
        };
        let index = self.index(id).await?;
        let connection = self.connection(id.domain)?;
        changed(
            id.domain,
            link::set(connection, index, change, master).await,
        )
    }

    /// Deletes a link, after checking its owner again. A link that no longer exists is no error.
    async fn delete_link(&mut self, id: &LinkId) -> Result<(), Error> {
        // The kernel may delete other links with it, so indices are looked up again.
        self.indices.clear();
        let connection = self.connection(id.domain)?;
        let Some(seen) = find(connection, id).await? else {
            return Ok(());
        };
        if seen.owner != Owner::Ours {
            return Err(Error::NotOurs { id: id.clone() });
        }
        changed(id.domain, gone(link::delete(connection, seen.index).await))
    }

    async fn device(&mut self, domain: Domain, route: &Route) -> Result<Option<u32>, Error> {
        match route {
            Route::Via { device, .. } => {
                let name = device.clone();
                self.index(&LinkId { domain, name }).await.map(Some)
            }
            Route::Unreachable | Route::Blackhole => Ok(None),
        }
    }

    async fn index(&mut self, id: &LinkId) -> Result<u32, Error> {
        if let Some(index) = self.indices.get(id) {
            return Ok(*index);
        }
        let connection = self.connection(id.domain)?;
        let Some(seen) = find(connection, id).await? else {
            return Err(Error::NoLink { id: id.clone() });
        };
        self.indices.insert(id.clone(), seen.index);
        Ok(seen.index)
    }

    fn connection(&self, domain: Domain) -> Result<&Connection, Error> {
        match domain {
            Domain::Host => Ok(&self.kernel.host),
            Domain::Router => self.router().map(|(_, connection)| connection),
        }
    }

    fn router(&self) -> Result<(&Namespace, &Connection), Error> {
        match &self.router {
            Some((namespace, connection)) => Ok((namespace, connection)),
            None => Err(Error::NoNamespace {
                name: self.kernel.name.clone(),
            }),
        }
    }
}

/// What the kernel says of an object that is not there: file, process, device, address.
const NOT_THERE: [i32; 4] = [2, 3, 19, 99];

/// The result of a delete: what is gone already needs no deleting. Whether it stays gone is for the next plan to see.
fn gone(result: Result<(), RequestError>) -> Result<(), RequestError> {
    match result {
        Err(error) if error.errno().is_some_and(|it| NOT_THERE.contains(&it)) => Ok(()),
        result => result,
    }
}

/// What the kernel says of a route that is there already.
const EXISTS: i32 = 17;

/// The result of giving something back: what another program has made again meanwhile is there.
fn there(result: Result<(), RequestError>) -> Result<(), RequestError> {
    match result {
        Err(error) if error.errno() == Some(EXISTS) => Ok(()),
        result => result,
    }
}

async fn find(connection: &Connection, id: &LinkId) -> Result<Option<read::RawLink>, Error> {
    let seen = read::link(connection, &id.name).await;
    seen.map_err(|source| Error::Read {
        what: "a link",
        domain: id.domain,
        source,
    })
}

fn changed(domain: Domain, result: Result<(), RequestError>) -> Result<(), Error> {
    result.map_err(|source| Error::Change { domain, source })
}
