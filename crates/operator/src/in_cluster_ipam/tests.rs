//! Claims and addresses at an API server that does what a real one does with versions, finalizers and names.

use std::collections::{BTreeMap, BTreeSet};

use compiler::platform::{
    PlatformKind,
    in_cluster::{ADDRESSES, CLAIMS, POOLS},
};
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::plan::plan;
use crate::{
    platform::{Change, Operation, Write, store::Store},
    request::Failure,
};

const POOL: &str = "loopbacks";

#[derive(Default)]
struct Server {
    objects: BTreeMap<(&'static str, String), Value>,
    version: u64,
}

impl Server {
    fn put(&mut self, kind: PlatformKind, name: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!("ns");
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        }
        let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        let finalizers = object["metadata"]["finalizers"].as_array();
        let key = (kind.kind, name.to_owned());
        if is_deleted && finalizers.is_none_or(Vec::is_empty) {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, object);
        }
    }

    /// A pool of three addresses, 192.0.2.2 to .4.
    fn with_pool() -> Self {
        let mut server = Self::default();
        let spec =
            json!({"addresses": ["192.0.2.1-192.0.2.4"], "prefix": 24, "gateway": "192.0.2.1"});
        server.put(POOLS, POOL, json!({"spec": spec}));
        server
    }

    fn claim(&mut self, name: &str) {
        let pool =
            json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": POOL});
        if !self.objects.contains_key(&(CLAIMS.kind, name.to_owned())) {
            self.put(CLAIMS, name, json!({"spec": {"poolRef": pool}}));
        }
    }

    fn delete(&mut self, kind: PlatformKind, name: &str, time: &str) {
        if let Some(mut object) = self.objects.get(&(kind.kind, name.to_owned())).cloned() {
            object["metadata"]["deletionTimestamp"] = json!(time);
            self.put(kind, name, object);
        }
    }

    fn send(&mut self, write: &Write) -> Result<(), Failure> {
        let (_, _, _, name) = &write.identity;
        let stored = self.objects.get(&(write.kind.kind, name.clone())).cloned();
        let conflict = || Failure::Conflict("it has changed".to_owned());
        let check = |stored: &Value, version: &Value| {
            let is_same = stored["metadata"]["resourceVersion"] == *version;
            is_same.then_some(()).ok_or_else(conflict)
        };
        match &write.operation {
            Operation::Create(object) | Operation::Apply(object) => {
                if stored.is_some() {
                    return Err(conflict());
                }
                self.put(write.kind, name, object.clone());
            }
            Operation::Merge(change) | Operation::MergeStatus(change) => {
                let mut stored = stored.ok_or(Failure::NotFound)?;
                check(&stored, &change["metadata"]["resourceVersion"])?;
                merge(&mut stored, change);
                self.put(write.kind, name, stored);
            }
            Operation::Delete(preconditions) => {
                let stored = stored.ok_or(Failure::NotFound)?;
                check(&stored, &json!(preconditions.resource_version))?;
                self.delete(write.kind, name, "2026-01-01T00:00:00Z");
            }
        }
        Ok(())
    }

    /// Everything as an operator sees it that looks now.
    fn seen(&self) -> Store {
        let mut store = Store::default();
        for kind in [POOLS, CLAIMS, ADDRESSES] {
            store.apply(kind, Change::ListStarted(kind.api_version));
            for (_, object) in self
                .objects
                .iter()
                .filter(|((one, _), _)| *one == kind.kind)
            {
                let object = serde_json::from_value(object.clone()).expect("an object");
                store.apply(kind, Change::Applied(Box::new(object)));
            }
            store.apply(kind, Change::ListCompleted);
        }
        store
    }

    /// Does all that there is to do.
    fn settle(&mut self, now: Timestamp) -> BTreeMap<String, String> {
        for _ in 0..20 {
            let plan = plan(&self.seen(), now);
            if plan.writes.is_empty() {
                return plan.problems;
            }
            for write in plan.writes {
                self.send(&write)
                    .expect("what was planned on the newest state");
            }
        }
        panic!("it does not end");
    }

    /// Address and claim of each object that gives one.
    fn given(&self) -> Vec<(String, String)> {
        let addresses = self
            .objects
            .iter()
            .filter(|((kind, _), _)| *kind == ADDRESSES.kind);
        let part = |object: &Value, pointer| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let mut given: Vec<_> = addresses
            .map(|(_, object)| {
                (
                    part(object, "/spec/address"),
                    part(object, "/spec/claimRef/name"),
                )
            })
            .collect();
        given.sort();
        given
    }
}

fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(object), Value::Object(change)) => {
            for (name, change) in change {
                merge(object.entry(name).or_insert(Value::Null), change);
            }
        }
        (object, change) => *object = change.clone(),
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().expect("a time")
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs
        .iter()
        .map(|(address, claim)| ((*address).to_owned(), (*claim).to_owned()));
    pairs.collect()
}

#[test]
fn a_claim_gets_the_lowest_free_address_and_gives_it_back_when_it_is_deleted() {
    let mut server = Server::with_pool();
    for name in ["a", "b", "c", "d"] {
        server.claim(name);
    }
    let problems = server.settle(now());
    let three = [("192.0.2.2", "a"), ("192.0.2.3", "b"), ("192.0.2.4", "c")];
    assert_eq!(server.given(), pairs(&three), "the gateway is not given");
    assert_eq!(problems["ns/d"], "its pool has no free address");
    let address = &server.objects[&(ADDRESSES.kind, "loopbacks-c0000202".to_owned())];
    let expected = json!({
        "address": "192.0.2.2", "prefix": 24, "gateway": "192.0.2.1", "claimRef": {"name": "a"},
        "poolRef": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": POOL},
    });
    assert_eq!(address["spec"], expected);
    let claim = &server.objects[&(CLAIMS.kind, "a".to_owned())];
    assert_eq!(claim["status"]["addressRef"]["name"], "loopbacks-c0000202");

    // An address of a claim that is there stays, also after a delete by another client.
    server.delete(ADDRESSES, "loopbacks-c0000202", "2026-01-01T00:00:00Z");
    server.settle(now());
    assert_eq!(server.given(), pairs(&three));
    server.delete(CLAIMS, "b", "2026-01-01T00:00:00Z");
    assert!(server.settle(now()).is_empty());
    assert!(!server.objects.contains_key(&(CLAIMS.kind, "b".to_owned())));
    assert_eq!(server.given()[1], ("192.0.2.3".to_owned(), "d".to_owned()));
}

#[test]
fn a_released_address_is_held_for_the_grace_period_of_its_pool() {
    let mut server = Server::with_pool();
    let key = (POOLS.kind, POOL.to_owned());
    let mut pool = server.objects[&key].clone();
    pool["spec"]["addressReuseGracePeriodSeconds"] = json!(120);
    server.put(POOLS, POOL, pool);
    server.claim("a");
    server.settle(now());
    server.delete(CLAIMS, "a", "2026-01-01T00:00:00Z");
    let waiting = plan(&server.seen(), now());
    assert!(waiting.writes.is_empty());
    assert_eq!(waiting.due, "2026-01-01T00:02:00Z".parse().ok());
    server.settle("2026-01-01T00:02:00Z".parse().expect("a time"));
    assert!(server.given().is_empty());
}

#[test]
fn claims_of_others_and_pools_of_the_provider_are_left_alone() {
    let mut server = Server::with_pool();
    let other =
        json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InfobloxIPPool", "name": POOL});
    server.put(CLAIMS, "other", json!({"spec": {"poolRef": other}}));
    assert!(plan(&server.seen(), now()).writes.is_empty());
    server.claim("a");
    let key = (POOLS.kind, POOL.to_owned());
    for (metadata, problem) in [
        (
            json!({"finalizers": ["ipam.cluster.x-k8s.io/ProtectPool"]}),
            "the in-cluster provider serves its pool",
        ),
        (
            json!({"annotations": {"cluster.x-k8s.io/paused": ""}}),
            "its pool is paused",
        ),
    ] {
        let mut pool = server.objects[&key].clone();
        pool["metadata"] = metadata;
        server.put(POOLS, POOL, pool);
        let plan = plan(&server.seen(), now());
        assert!(plan.writes.is_empty());
        assert_eq!(plan.problems["ns/a"], problem);
    }
    server.objects.remove(&key);
    let plan = plan(&server.seen(), now());
    assert_eq!(
        plan.problems["ns/a"],
        "there is no InClusterIPPool \"loopbacks\""
    );
}

#[test]
fn nothing_is_done_before_all_kinds_are_known() {
    let mut server = Server::with_pool();
    server.claim("a");
    for kind in [POOLS, CLAIMS, ADDRESSES] {
        let mut store = server.seen();
        assert!(!plan(&store, now()).writes.is_empty());
        store.apply(kind, Change::Failed("no answer".to_owned()));
        assert!(plan(&store, now()).writes.is_empty(), "{kind:?}");
    }
}

/// What happens: users, and two operators that act on what they saw at some time.
#[derive(Clone, Debug)]
enum Event {
    Claim(u8),
    Delete(u8),
    Look(usize),
    Act(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..5_u8).prop_map(Event::Claim),
        (0..5_u8).prop_map(Event::Delete),
        (0..2_usize).prop_map(Event::Look),
        (0..2_usize).prop_map(Event::Act),
        (0..2_usize).prop_map(Event::Act),
    ]
}

proptest! {
    #[test]
    fn two_operators_never_give_one_address_twice_nor_one_claim_two(
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut server = Server::with_pool();
        let mut seen = [server.seen(), server.seen()];
        for event in events {
            match event {
                Event::Claim(name) => server.claim(&name.to_string()),
                Event::Delete(name) => server.delete(CLAIMS, &name.to_string(), "2026-01-01T00:00:00Z"),
                Event::Look(operator) => seen[operator] = server.seen(),
                Event::Act(operator) => {
                    for write in plan(&seen[operator], now()).writes {
                        // One that was computed from an older state is refused.
                        let _sent = server.send(&write);
                    }
                }
            }
            let given = server.given();
            let addresses: BTreeSet<&String> = given.iter().map(|(address, _)| address).collect();
            prop_assert_eq!(addresses.len(), given.len(), "{:?}", given);
            let owners = server.objects.iter().filter(|((kind, _), _)| *kind == ADDRESSES.kind);
            let owners: Vec<&Value> = owners.map(|(_, object)| &object["metadata"]["ownerReferences"][0]["uid"]).collect();
            let different: BTreeSet<String> = owners.iter().map(ToString::to_string).collect();
            prop_assert_eq!(different.len(), owners.len(), "{:?}", given);
        }
        server.settle(now());
        let claims = server.objects.keys().filter(|(kind, _)| *kind == CLAIMS.kind).count();
        prop_assert_eq!(server.given().len(), claims.min(3));
    }
}
