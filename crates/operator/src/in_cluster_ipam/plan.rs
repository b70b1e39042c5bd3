//! What is to be done about claims and addresses. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use compiler::{
    names,
    platform::{
        PlatformKind,
        in_cluster::{ADDRESSES, Addresses, CLAIMS, POOLS, PoolSpec},
    },
};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, ObjectMeta, Preconditions};
use serde_json::{Value, json};

use crate::platform::{
    MANAGED_BY, OURS, Operation, Write, based_on,
    store::{Known, Listed, Store},
};

/// Keeps a claim until its address is released.
const RELEASE: &str = "selvedge.dev/release-address";

/// Keeps an address until its claim is deleted.
const PROTECT: &str = "selvedge.dev/protect-address";

/// Marks of the in-cluster provider: it runs, and gives the addresses itself.
const PROVIDERS: [&str; 2] = [
    "ipam.cluster.x-k8s.io/ProtectPool",
    "ipam.cluster.x-k8s.io/ReleaseAddress",
];

/// Pauses everything about a pool.
const PAUSED: &str = "cluster.x-k8s.io/paused";

const GROUP: &str = "ipam.cluster.x-k8s.io";

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    /// Why claims get no address, by claim.
    pub(super) problems: BTreeMap<String, String>,
    /// When there is more to do.
    pub(super) due: Option<Timestamp>,
}

/// All that is known. Nothing is done before all of it is.
struct World<'a> {
    pools: &'a Listed,
    claims: &'a Listed,
    addresses: &'a Listed,
    now: Timestamp,
}

/// The next step of every claim and address.
pub(super) fn plan(store: &Store, now: Timestamp) -> Plan {
    let known = |kind| match store.get(kind) {
        Some(Known::Listed(listed)) if listed.failing.is_none() => Some(listed),
        Some(Known::Listed(_) | Known::NotListed(_) | Known::NotServed) | None => None,
    };
    let all = known(POOLS).zip(known(CLAIMS)).zip(known(ADDRESSES));
    let Some(((pools, claims), addresses)) = all else {
        return Plan::default();
    };
    let world = World {
        pools,
        claims,
        addresses,
        now,
    };
    let mut plan = Plan::default();
    world.orphans(&mut plan);
    let mut in_use = world.in_use();
    let mut claims: Vec<&DynamicObject> = world.claims.objects.values().map(|one| &**one).collect();
    // The older claim is served first.
    claims.sort_by_key(|claim| {
        let metadata = &claim.metadata;
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, metadata.namespace.clone(), metadata.name.clone())
    });
    for claim in claims {
        if has_mark(&claim.metadata, &PROVIDERS) || text(claim, "/spec/poolRef/kind") != POOLS.kind
        {
            continue;
        }
        let group = text(claim, "/spec/poolRef/apiGroup");
        if !group.is_empty() && group != GROUP {
            continue;
        }
        if let Err(problem) = world.claim(claim, &mut in_use, &mut plan) {
            let claim = format!("{}/{}", namespace(claim), name(claim));
            plan.problems.insert(claim, problem);
        }
    }
    plan
}

/// Namespace and name of a pool, with the addresses of it that no other claim may get.
type InUse = BTreeMap<(String, String), BTreeSet<IpAddr>>;

impl World<'_> {
    /// Addresses that objects give, and that claims have reserved.
    fn in_use(&self) -> InUse {
        let mut in_use = InUse::new();
        for address in self.addresses.objects.values() {
            let pool = (
                namespace(address),
                text(address, "/spec/poolRef/name").to_owned(),
            );
            let given = text(address, "/spec/address").parse::<IpAddr>().ok();
            in_use.entry(pool).or_default().extend(given);
        }
        for claim in self.claims.objects.values() {
            let pool = text(claim, "/spec/poolRef/name").to_owned();
            let reserved = reserved(claim, &pool);
            in_use
                .entry((namespace(claim), pool))
                .or_default()
                .extend(reserved);
        }
        in_use
    }

    /// The next step of a claim, or why it gets no address.
    fn claim(
        &self,
        claim: &DynamicObject,
        in_use: &mut InUse,
        plan: &mut Plan,
    ) -> Result<(), String> {
        let pool_name = text(claim, "/spec/poolRef/name").to_owned();
        let key = (namespace(claim), pool_name.clone());
        let pool = self
            .pools
            .objects
            .get(&(Some(key.0.clone()), key.1.clone()));
        let spec = pool.and_then(|pool| pool.data.get("spec"));
        let spec = spec.map(|spec| serde_json::from_value::<PoolSpec>(spec.clone()));
        if claim.metadata.deletion_timestamp.is_some() {
            let grace = match &spec {
                Some(Ok(spec)) => spec.address_reuse_grace_period_seconds,
                Some(Err(_)) | None => 0,
            };
            self.release(claim, Duration::from_secs(grace.into()), plan);
            return Ok(());
        }
        let pool = pool.ok_or_else(|| format!("there is no InClusterIPPool {pool_name:?}"))?;
        if has_mark(&pool.metadata, &PROVIDERS) {
            return Err("the in-cluster provider serves its pool".to_owned());
        }
        let annotations = pool.metadata.annotations.as_ref();
        if annotations.is_some_and(|annotations| annotations.contains_key(PAUSED)) {
            return Err("its pool is paused".to_owned());
        }
        if self.of_claim(claim).next().is_some() {
            return Ok(());
        }
        let finalizers = claim.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|one| one == RELEASE) {
            let finalizers = [finalizers, vec![RELEASE.to_owned()]].concat();
            plan.writes
                .push(self.with_finalizers(CLAIMS, claim, &finalizers));
            return Ok(());
        }
        let spec = spec.and_then(Result::ok).ok_or("its pool cannot be read")?;
        let addresses = spec
            .addresses()
            .map_err(|error| format!("its pool is wrong: {error}"))?;
        let in_use = in_use.entry(key).or_default();
        match reserved(claim, &pool_name) {
            Some(address) if self.can_be_given(claim, &pool_name, &addresses, address) => {
                plan.writes
                    .push(self.given(claim, &pool_name, &spec, address));
            }
            Some(_) | None => {
                let free = addresses.lowest_free(in_use);
                let free = free.ok_or("its pool has no free address")?;
                in_use.insert(free);
                let object = names::given_address(&pool_name, free);
                let status = json!({"addressRef": {"name": object}});
                let status = json!({"metadata": {}, "status": status});
                let status = based_on(&claim.metadata, &status);
                plan.writes
                    .push(self.write(CLAIMS, claim, Operation::MergeStatus(status)));
            }
        }
        Ok(())
    }

    /// Whether a reserved address is still one of the pool and no other object has its name.
    fn can_be_given(
        &self,
        claim: &DynamicObject,
        pool: &str,
        addresses: &Addresses,
        address: IpAddr,
    ) -> bool {
        let name = names::given_address(pool, address);
        let object = self.addresses.objects.get(&(Some(namespace(claim)), name));
        addresses.contains(address) && object.is_none()
    }

    /// The addresses that were given for a claim.
    fn of_claim(&self, claim: &DynamicObject) -> impl Iterator<Item = &DynamicObject> {
        let (namespace, name) = (namespace(claim), name(claim));
        let uid = claim.metadata.uid.clone();
        let addresses = self.addresses.objects.values().map(|one| &**one);
        addresses.filter(move |address| {
            let is_of_namespace = address.metadata.namespace.as_ref() == Some(&namespace);
            let is_of_name = text(address, "/spec/claimRef/name") == name;
            is_of_namespace
                && is_of_name
                && owner(address).is_none_or(|owner| Some(owner) == uid.as_deref())
        })
    }

    /// Releases the addresses of a claim that is being deleted, and then the claim.
    fn release(&self, claim: &DynamicObject, grace: Duration, plan: &mut Plan) {
        let finalizers = claim.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|one| one == RELEASE) {
            return;
        }
        let deleted = claim
            .metadata
            .deletion_timestamp
            .as_ref()
            .map(|time| time.0);
        let until = deleted.and_then(|deleted| deleted.checked_add(grace).ok());
        if let Some(until) = until.filter(|until| *until > self.now) {
            plan.due = plan.due.into_iter().chain([until]).min();
            return;
        }
        let mut addresses = self.of_claim(claim).filter(|one| is_ours(one)).peekable();
        if addresses.peek().is_some() {
            return addresses.for_each(|address| self.remove(address, plan));
        }
        let others: Vec<String> = finalizers
            .into_iter()
            .filter(|one| one != RELEASE)
            .collect();
        plan.writes
            .push(self.with_finalizers(CLAIMS, claim, &others));
    }

    /// Removes addresses that were given for claims which are not there any more.
    fn orphans(&self, plan: &mut Plan) {
        let addresses = self.addresses.objects.values();
        for address in addresses.filter(|address| is_ours(address)) {
            let name = text(address, "/spec/claimRef/name").to_owned();
            let claim = self.claims.objects.get(&(Some(namespace(address)), name));
            let uid = claim.and_then(|claim| claim.metadata.uid.as_deref());
            if uid.is_none() || uid != owner(address) {
                self.remove(address, plan);
            }
        }
    }

    /// The next step on the way to delete an address.
    fn remove(&self, address: &DynamicObject, plan: &mut Plan) {
        let metadata = &address.metadata;
        if metadata.deletion_timestamp.is_none() {
            let preconditions = Preconditions {
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
            };
            let delete = Operation::Delete(preconditions);
            plan.writes.push(self.write(ADDRESSES, address, delete));
            return;
        }
        let finalizers = metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|one| one == PROTECT) {
            let others: Vec<String> = finalizers
                .into_iter()
                .filter(|one| one != PROTECT)
                .collect();
            plan.writes
                .push(self.with_finalizers(ADDRESSES, address, &others));
        }
    }

    /// The object that gives an address to a claim.
    fn given(&self, claim: &DynamicObject, pool: &str, spec: &PoolSpec, address: IpAddr) -> Write {
        let object = names::given_address(pool, address);
        let owner = json!({
            "apiVersion": self.claims.served, "kind": CLAIMS.kind, "name": name(claim),
            "uid": claim.metadata.uid, "controller": true,
        });
        let mut given = json!({
            "address": address, "prefix": spec.prefix,
            "claimRef": {"name": name(claim)},
            "poolRef": {"apiGroup": GROUP, "kind": POOLS.kind, "name": pool},
        });
        if let Some(given) = given.as_object_mut().filter(|_| !spec.gateway.is_empty()) {
            given.insert("gateway".to_owned(), json!(spec.gateway));
        }
        let content = json!({
            "apiVersion": self.addresses.served, "kind": ADDRESSES.kind,
            "metadata": {
                "name": object, "namespace": namespace(claim), "labels": {MANAGED_BY: OURS},
                "finalizers": [PROTECT], "ownerReferences": [owner],
            },
            "spec": given,
        });
        // Version 0 is that of an object that does not exist.
        let nothing = ObjectMeta {
            resource_version: Some("0".to_owned()),
            ..ObjectMeta::default()
        };
        let identity = (
            ADDRESSES.api_version,
            ADDRESSES.kind,
            Some(namespace(claim)),
            object,
        );
        Write {
            identity,
            kind: ADDRESSES,
            served: self.addresses.served,
            operation: Operation::Create(based_on(&nothing, &content)),
            content,
        }
    }

    fn with_finalizers(
        &self,
        kind: PlatformKind,
        object: &DynamicObject,
        finalizers: &[String],
    ) -> Write {
        let change = json!({"metadata": {"finalizers": finalizers}});
        let change = based_on(&object.metadata, &change);
        self.write(kind, object, Operation::Merge(change))
    }

    fn write(&self, kind: PlatformKind, object: &DynamicObject, operation: Operation) -> Write {
        let listed = if kind == CLAIMS {
            self.claims
        } else {
            self.addresses
        };
        let content = match &operation {
            Operation::Create(content)
            | Operation::Apply(content)
            | Operation::Merge(content)
            | Operation::MergeStatus(content) => content.clone(),
            Operation::Delete(_) => Value::Null,
        };
        Write {
            identity: (
                kind.api_version,
                kind.kind,
                object.metadata.namespace.clone(),
                name(object),
            ),
            kind,
            served: listed.served,
            content,
            operation,
        }
    }
}

/// The address that a claim has reserved of a pool.
fn reserved(claim: &DynamicObject, pool: &str) -> Option<IpAddr> {
    let object = text(claim, "/status/addressRef/name");
    let address = names::address_in(object)?;
    (names::given_address(pool, address) == object).then_some(address)
}

/// Whether this operator gives the address.
fn is_ours(address: &DynamicObject) -> bool {
    let labels = address.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(MANAGED_BY))
        .map(String::as_str)
        == Some(OURS)
}

/// The claim that an address belongs to, by its uid.
fn owner(address: &DynamicObject) -> Option<&str> {
    let owners = address.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.kind == CLAIMS.kind);
    owners.next().map(|owner| owner.uid.as_str())
}

fn has_mark(metadata: &ObjectMeta, marks: &[&str]) -> bool {
    let mut finalizers = metadata.finalizers.iter().flatten();
    finalizers.any(|one| marks.contains(&one.as_str()))
}

fn namespace(object: &DynamicObject) -> String {
    object.metadata.namespace.clone().unwrap_or_default()
}

fn name(object: &DynamicObject) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    let value = object.data.pointer(pointer);
    value.and_then(Value::as_str).unwrap_or_default()
}
