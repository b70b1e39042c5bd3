//! Objects of other programs: written where their kinds are served and they differ, removed when no intent needs them any more.
//!
//! Ours carry a label. One without it is never changed: another has made it.

pub(crate) mod watch;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use compiler::{
    Compilation, ObjectRef,
    platform::{
        Identity, PlatformKind, PlatformObject,
        state::{Absent, Why},
    },
};
use kube::api::{DynamicObject, Preconditions};
use serde_json::{Value, json};

use crate::request::Failure;

/// The label of our objects.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const OURS: &str = "selvedge";

/// The annotation that names the intent an object was made from.
const GENERATED_FROM: &str = "selvedge.dev/generated-from";

/// Delay before a write is repeated that was refused; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(5);

/// What a watch reports about its kind.
#[derive(Debug)]
pub(crate) enum Change {
    /// A list begins.
    ListStarted,
    /// An object of the list, or one that was created or changed.
    Applied(Box<DynamicObject>),
    /// All objects of the list have been reported.
    ListCompleted,
    /// An object was deleted.
    Deleted(Box<DynamicObject>),
    /// The API server does not serve the kind.
    NotServed,
}

/// Namespace and name.
type Name = (Option<String>, String);

/// What is known about one kind.
#[derive(Debug)]
enum Known {
    NotServed,
    /// Our objects of it.
    Objects(BTreeMap<Name, Box<DynamicObject>>),
}

/// A write that was refused.
#[derive(Debug)]
struct Refused {
    /// What was wanted: another wish is tried at once.
    manifest: Option<Value>,
    why: Why,
    delay: Duration,
    again_at: Instant,
}

/// One object that is written or deleted.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) identity: Identity,
    pub(crate) kind: PlatformKind,
    pub(crate) operation: Operation,
}

/// What is done about an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// It is made; if one of this name is there, that is another's.
    Create(Value),
    /// It is made what it must be.
    Apply(Value),
    /// It is deleted, if it is still this one.
    Delete(Preconditions),
}

/// The objects of other programs that are ours.
#[derive(Debug, Default)]
pub(crate) struct Platform {
    /// The kinds that something has been heard of.
    kinds: BTreeMap<PlatformKind, Known>,
    /// Objects of a list that has begun.
    listing: BTreeMap<PlatformKind, BTreeMap<Name, Box<DynamicObject>>>,
    refused: BTreeMap<Identity, Refused>,
    /// What was found to be there as it must be: the wanted object, and the version that is stored.
    settled: BTreeMap<Identity, (Arc<PlatformObject>, Option<String>)>,
    /// When the last step was computed: what was due then is dealt with.
    stepped_at: Option<Instant>,
}

/// What is to be done, and what is missing until then.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) writes: Vec<Write>,
    pub(crate) absent: BTreeMap<ObjectRef, Arc<Vec<Absent>>>,
}

impl Platform {
    /// Takes in what a watch reports.
    pub(crate) fn apply(&mut self, kind: PlatformKind, change: Change) {
        match change {
            Change::ListStarted => drop(self.listing.insert(kind, BTreeMap::new())),
            Change::Applied(object) => {
                let name = name(&object);
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.insert(name, object);
                } else if let Some(Known::Objects(objects)) = self.kinds.get_mut(&kind) {
                    objects.insert(name, object);
                }
            }
            Change::ListCompleted => {
                let listed = self.listing.remove(&kind).unwrap_or_default();
                self.kinds.insert(kind, Known::Objects(listed));
            }
            Change::Deleted(object) => {
                if let Some(Known::Objects(objects)) = self.kinds.get_mut(&kind) {
                    objects.remove(&name(&object));
                }
            }
            Change::NotServed => {
                if !matches!(self.kinds.get(&kind), Some(Known::NotServed)) {
                    tracing::info!(
                        kind = kind.kind,
                        group = kind.api_version,
                        "the API server does not serve this kind"
                    );
                }
                self.listing.remove(&kind);
                self.kinds.insert(kind, Known::NotServed);
            }
        }
    }

    /// What is to be done so that everything that intents need is there, and nothing else of ours.
    pub(crate) fn step(&mut self, compilation: &Compilation, now: Instant) -> Step {
        let wanted = &compilation.platform;
        self.stepped_at = Some(now);
        let kinds = &self.kinds;
        self.refused.retain(|identity, refused| {
            let is_deletion = refused.manifest.is_none();
            wanted.contains_key(identity) || (is_deletion && is_stored(kinds, identity))
        });
        self.settled
            .retain(|identity, _| wanted.contains_key(identity));
        let mut writes = Vec::new();
        let mut absent: BTreeMap<ObjectRef, Vec<Absent>> = BTreeMap::new();
        for (identity, object) in wanted {
            if let Some(why) = self.object(identity, object, now, &mut writes) {
                let absent = absent.entry(object.owner.clone()).or_default();
                absent.push(Absent {
                    object: shown(object),
                    why,
                });
            }
        }
        self.stale(compilation, now, &mut writes);
        let absent = absent.into_iter();
        Step {
            writes,
            absent: absent.map(|(owner, all)| (owner, Arc::new(all))).collect(),
        }
    }

    /// Why an object is not there as it must be, and what is done about it.
    fn object(
        &mut self,
        identity: &Identity,
        object: &Arc<PlatformObject>,
        now: Instant,
        writes: &mut Vec<Write>,
    ) -> Option<Why> {
        let kind = object.platform_kind()?;
        let stored = match self.kinds.get(&kind) {
            None => return Some(Why::Pending),
            Some(Known::NotServed) => return Some(Why::NotServed(kind.api_version)),
            Some(Known::Objects(objects)) => {
                objects.get(&(object.namespace.clone(), object.name.clone()))
            }
        };
        let version = stored.and_then(|stored| stored.metadata.resource_version.clone());
        let settled = self.settled.get(identity);
        if settled.is_some_and(|(one, of)| Arc::ptr_eq(one, object) && *of == version) {
            return None;
        }
        let manifest = manifest(object);
        let is_there = stored.is_some_and(|stored| contains(&json!(stored), &manifest));
        if is_there {
            let settled = (Arc::clone(object), version);
            self.settled.insert(identity.clone(), settled);
            self.refused.remove(identity);
            return None;
        }
        let refused = self.refused.get(identity);
        let refused = refused.filter(|refused| refused.manifest.as_ref() == Some(&manifest));
        if let Some(refused) = refused.filter(|refused| now < refused.again_at) {
            return Some(refused.why.clone());
        }
        let why = refused.map(|refused| refused.why.clone());
        let operation = match stored {
            Some(_) => Operation::Apply(manifest),
            None => Operation::Create(manifest),
        };
        writes.push(Write {
            identity: identity.clone(),
            kind,
            operation,
        });
        Some(why.unwrap_or(Why::Pending))
    }

    /// Deletes what no intent needs. What was made for an intent that something is wrong with stays.
    fn stale(&self, compilation: &Compilation, now: Instant, writes: &mut Vec<Write>) {
        for (kind, known) in &self.kinds {
            let Known::Objects(objects) = known else {
                continue;
            };
            for ((namespace, name), stored) in objects {
                let identity = (kind.api_version, kind.kind, namespace.clone(), name.clone());
                let is_wanted = compilation.platform.contains_key(&identity);
                let is_kept = || {
                    let keeps = compilation.platform_keeps.iter();
                    let source = generated_from(stored);
                    keeps.into_iter().any(|one| Some(json!(one)) == source)
                };
                let is_waiting = || {
                    let refused = self.refused.get(&identity);
                    refused.is_some_and(|refused| now < refused.again_at)
                };
                if is_wanted || is_waiting() || is_kept() {
                    continue;
                }
                let metadata = &stored.metadata;
                let preconditions = Preconditions {
                    uid: metadata.uid.clone(),
                    resource_version: metadata.resource_version.clone(),
                };
                writes.push(Write {
                    identity,
                    kind: *kind,
                    operation: Operation::Delete(preconditions),
                });
            }
        }
    }

    /// Takes in the answer of the API server to a write.
    pub(crate) fn answered(
        &mut self,
        write: &Write,
        answer: Result<Option<DynamicObject>, Failure>,
        now: Instant,
    ) {
        let is_new = matches!(write.operation, Operation::Create(_));
        let result = match answer {
            Ok(stored) => Ok(stored),
            // The next leader, or the next start, does it.
            Err(failure) if failure.ends_pass() => return,
            // It is gone already, or will be seen as it is now.
            Err(Failure::NotFound | Failure::Conflict(_)) if !is_new => {
                self.refused.remove(&write.identity);
                return;
            }
            Err(Failure::Conflict(_)) => Err(Why::NameTaken),
            Err(Failure::NotFound) => {
                let (_, _, namespace, _) = &write.identity;
                let namespace = namespace.as_deref().unwrap_or_default();
                let message = format!("there is no namespace {namespace:?}");
                Err(Why::Refused(message))
            }
            Err(failure) => Err(Why::Refused(failure.to_string())),
        };
        self.written(write, result, now);
    }

    /// Takes in what came of a write.
    fn written(&mut self, write: &Write, result: Result<Option<DynamicObject>, Why>, now: Instant) {
        let Write {
            identity,
            kind,
            operation,
        } = write;
        let why = match result {
            Ok(stored) => {
                self.refused.remove(identity);
                let (_, _, namespace, name) = identity;
                if let Some(Known::Objects(objects)) = self.kinds.get_mut(kind) {
                    let name = (namespace.clone(), name.clone());
                    match stored {
                        Some(stored) => drop(objects.insert(name, Box::new(stored))),
                        None => drop(objects.remove(&name)),
                    }
                }
                return;
            }
            Err(why) => why,
        };
        let manifest = match operation {
            Operation::Create(manifest) | Operation::Apply(manifest) => Some(manifest.clone()),
            Operation::Delete(_) => None,
        };
        let before = self.refused.get(identity);
        let delay = before.map_or(FIRST_RETRY, |before| (before.delay * 2).min(LAST_RETRY));
        tracing::warn!(object = ?identity, ?why, retry_in = ?delay, "an object of another program is not written");
        let refused = Refused {
            manifest,
            why,
            delay,
            again_at: now + delay,
        };
        self.refused.insert(identity.clone(), refused);
    }

    /// When something that was refused is tried again.
    pub(crate) fn next(&self) -> Option<Instant> {
        let times = self.refused.values().map(|refused| refused.again_at);
        times.filter(|at| Some(*at) > self.stepped_at).min()
    }
}

/// Whether an object of ours is there.
fn is_stored(kinds: &BTreeMap<PlatformKind, Known>, identity: &Identity) -> bool {
    let (api_version, kind, namespace, name) = identity;
    let mut kinds = kinds.iter();
    kinds.any(|(known, objects)| match objects {
        Known::Objects(objects) => {
            (known.api_version, known.kind) == (*api_version, *kind)
                && objects.contains_key(&(namespace.clone(), name.clone()))
        }
        Known::NotServed => false,
    })
}

/// Selects our objects.
fn selector() -> String {
    format!("{MANAGED_BY}={OURS}")
}

/// The object as it is written: with our label.
fn manifest(object: &PlatformObject) -> Value {
    let mut manifest = object.manifest();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("labels".to_owned(), json!({MANAGED_BY: OURS}));
    }
    manifest
}

/// Whether a value has everything that another has. A field that is not wanted may have any value.
fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            let stored = stored.get(name);
            stored.is_some_and(|stored| contains(stored, wanted))
        }),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored
                    .iter()
                    .zip(wanted)
                    .all(|(stored, wanted)| contains(stored, wanted))
        }
        (stored, wanted) => stored == wanted,
    }
}

fn name(object: &DynamicObject) -> Name {
    let metadata = &object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    (metadata.namespace.clone(), name)
}

/// The object as people know it.
fn shown(object: &PlatformObject) -> String {
    let PlatformObject { kind, name, .. } = object;
    match &object.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// What an object was made from, as its annotation says.
fn generated_from(object: &DynamicObject) -> Option<Value> {
    let annotations = object.metadata.annotations.as_ref()?;
    let source = annotations.get(GENERATED_FROM)?;
    Some(Value::String(source.clone()))
}

#[cfg(test)]
mod tests {
    use compiler::{Compiler, Kind, platform};

    use super::*;

    fn put(compiler: &mut Compiler, kind: Kind, name: &str, spec: &Value) {
        compiler.insert(&json!({
            "apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name},
            "spec": spec,
        }));
    }

    const INBOUND: &str = "web";

    fn inbound(count: u32) -> Value {
        json!({"networkRef": "net", "count": count, "advertisement": {"type": "bgp"}})
    }

    /// An Inbound that no VRF knows: it needs a pool and an advertisement of MetalLB, and nothing of nodes.
    fn world() -> Compiler {
        let mut compiler = Compiler::default();
        let network = json!({"ipv4": {"cidr": "198.51.100.0/24"}});
        put(&mut compiler, Kind::Network, "net", &network);
        put(&mut compiler, Kind::Inbound, INBOUND, &inbound(1));
        compiler
    }

    /// All kinds are served, and none has objects of ours.
    fn all_served() -> Platform {
        let mut platform = Platform::default();
        for kind in platform::kinds() {
            platform.apply(kind, Change::ListStarted);
            platform.apply(kind, Change::ListCompleted);
        }
        platform
    }

    fn step(platform: &mut Platform, compiler: &mut Compiler, now: Instant) -> Step {
        let (_, compilation) = compiler.compile();
        let step = platform.step(compilation, now);
        compiler.set_absent(step.absent.clone());
        step
    }

    /// Does what a step says, as an API server that takes everything.
    fn carry_out(platform: &mut Platform, step: &Step, version: u32) {
        for write in &step.writes {
            let stored = match &write.operation {
                Operation::Create(manifest) | Operation::Apply(manifest) => {
                    let mut stored = manifest.clone();
                    stored["metadata"]["resourceVersion"] = json!(version.to_string());
                    stored["metadata"]["uid"] = json!("u");
                    stored["spec"]["defaulted"] = json!(true);
                    Some(serde_json::from_value(stored).expect("an object"))
                }
                Operation::Delete(_) => None,
            };
            platform.written(write, Ok(stored), Instant::now());
        }
    }

    fn done(step: &Step) -> Vec<String> {
        let done = |write: &Write| {
            let verb = match write.operation {
                Operation::Create(_) => "create",
                Operation::Apply(_) => "apply",
                Operation::Delete(_) => "delete",
            };
            format!("{verb} {} {}", write.kind.kind, write.identity.3)
        };
        step.writes.iter().map(done).collect()
    }

    /// Status and reason of the condition Ready.
    fn ready(compiler: &mut Compiler) -> (String, String) {
        let subject = ObjectRef::named(Kind::Inbound, INBOUND);
        let status = compiler.statuses().get(&subject).expect("a status");
        let status = status.to_value();
        let conditions = status["conditions"].as_array().expect("conditions");
        let mut conditions = conditions.iter();
        let ready = conditions.find(|one| one["type"] == "Ready");
        let ready = ready.expect("the condition Ready");
        let text = |part: &str| ready[part].as_str().expect("a text").to_owned();
        (text("status"), text("reason"))
    }

    #[test]
    fn what_an_intent_needs_is_made_kept_as_it_must_be_and_removed_with_it() {
        let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
        let first = step(&mut platform, &mut compiler, now);
        let wanted = ["create BGPAdvertisement web", "create IPAddressPool web"];
        assert_eq!(done(&first), wanted);
        assert_eq!(ready(&mut compiler), ("False".into(), "Pending".into()));
        carry_out(&mut platform, &first, 1);
        assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
        assert_eq!(ready(&mut compiler), ("True".into(), "Resolved".into()));

        // An edit is undone; a field that nobody wants otherwise is left alone.
        let pool = first.writes.last().expect("a pool").clone();
        let Operation::Create(mut edited) = pool.operation.clone() else {
            panic!("it is created");
        };
        edited["metadata"]["resourceVersion"] = json!("2");
        edited["spec"]["avoidBuggyIPs"] = json!(true);
        let as_object =
            |value: &Value| Box::new(serde_json::from_value(value.clone()).expect("one"));
        platform.apply(pool.kind, Change::Applied(as_object(&edited)));
        assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
        edited["metadata"]["resourceVersion"] = json!("3");
        edited["spec"]["addresses"] = json!(["192.0.2.1/32"]);
        platform.apply(pool.kind, Change::Applied(as_object(&edited)));
        let undo = step(&mut platform, &mut compiler, now);
        assert_eq!(done(&undo), ["apply IPAddressPool web"]);
        carry_out(&mut platform, &undo, 4);

        compiler.remove(&ObjectRef::named(Kind::Inbound, INBOUND));
        let gone = step(&mut platform, &mut compiler, now);
        assert_eq!(
            done(&gone),
            ["delete BGPAdvertisement web", "delete IPAddressPool web"]
        );
        carry_out(&mut platform, &gone, 5);
        assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
    }

    #[test]
    fn an_intent_is_not_ready_while_a_kind_that_it_needs_is_missing_and_goes_on_when_it_appears() {
        let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
        let missing = platform::kinds().find(|kind| kind.kind == "BGPAdvertisement");
        let missing = missing.expect("a kind of MetalLB");
        platform.apply(missing, Change::NotServed);
        let first = step(&mut platform, &mut compiler, now);
        assert_eq!(done(&first), ["create IPAddressPool web"]);
        carry_out(&mut platform, &first, 1);
        let second = step(&mut platform, &mut compiler, now);
        assert!(second.writes.is_empty());
        assert_eq!(
            ready(&mut compiler),
            ("False".into(), "KindNotServed".into())
        );
        let absent = second.absent.values().next().expect("what is absent");
        let text = absent.first().expect("one").to_string();
        assert!(
            text.contains("BGPAdvertisement metallb-system/web"),
            "{text}"
        );
        assert!(text.contains("metallb.io/v1beta1"), "{text}");

        platform.apply(missing, Change::ListStarted);
        platform.apply(missing, Change::ListCompleted);
        let third = step(&mut platform, &mut compiler, now);
        assert_eq!(done(&third), ["create BGPAdvertisement web"]);
        carry_out(&mut platform, &third, 2);
        step(&mut platform, &mut compiler, now);
        assert_eq!(ready(&mut compiler).0, "True");
    }

    #[test]
    fn what_was_made_for_an_intent_stays_while_something_is_wrong_with_the_intent() {
        let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
        let first = step(&mut platform, &mut compiler, now);
        carry_out(&mut platform, &first, 1);
        compiler.remove(&ObjectRef::named(Kind::Network, "net"));
        assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
    }

    #[test]
    fn a_refused_object_waits_longer_each_time_and_another_wish_is_tried_at_once() {
        let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
        let refuse = |platform: &mut Platform, step: &Step, now: Instant| {
            for write in &step.writes {
                let why = Why::Refused("quota exceeded".to_owned());
                platform.written(write, Err(why), now);
            }
        };
        let first = step(&mut platform, &mut compiler, now);
        refuse(&mut platform, &first, now);
        assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
        assert_eq!(ready(&mut compiler), ("False".into(), "Refused".into()));
        assert_eq!(platform.next(), Some(now + FIRST_RETRY));
        let later = now + FIRST_RETRY;
        let second = step(&mut platform, &mut compiler, later);
        assert_eq!(second.writes.len(), 2);
        refuse(&mut platform, &second, later);
        assert_eq!(platform.next(), Some(later + 2 * FIRST_RETRY));
        put(&mut compiler, Kind::Inbound, INBOUND, &inbound(2));
        let third = step(&mut platform, &mut compiler, later);
        assert_eq!(done(&third), ["create IPAddressPool web"]);
    }

    #[test]
    fn a_refused_deletion_is_tried_again_later_and_what_cannot_be_done_causes_no_pass() {
        let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
        let first = step(&mut platform, &mut compiler, now);
        carry_out(&mut platform, &first, 1);
        compiler.remove(&ObjectRef::named(Kind::Inbound, INBOUND));
        let refuse = |platform: &mut Platform, step: &Step, now: Instant| {
            for write in &step.writes {
                let refused = Failure::NoAnswer("timeout".to_owned());
                platform.answered(write, Err(refused), now);
            }
        };
        let gone = step(&mut platform, &mut compiler, now);
        refuse(&mut platform, &gone, now);
        assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
        let later = now + FIRST_RETRY;
        assert_eq!(platform.next(), Some(later));
        let again = step(&mut platform, &mut compiler, later);
        assert_eq!(done(&again), done(&gone));
        for write in &again.writes {
            platform.answered(write, Err(Failure::NotFound), later);
            let (_, _, namespace, name) = &write.identity;
            let metadata = json!({"name": name, "namespace": namespace});
            let object = json!({"metadata": metadata});
            let object = serde_json::from_value(object).expect("an object");
            platform.apply(write.kind, Change::Deleted(Box::new(object)));
        }
        assert!(step(&mut platform, &mut compiler, later).writes.is_empty());
        assert_eq!(platform.next(), None);

        // A kind vanishes while a write of it waits.
        let (mut compiler, mut platform) = (world(), all_served());
        let first = step(&mut platform, &mut compiler, now);
        refuse(&mut platform, &first, now);
        for kind in platform::kinds() {
            platform.apply(kind, Change::NotServed);
        }
        step(&mut platform, &mut compiler, later);
        assert_eq!(platform.next(), None, "nothing can be tried");
    }

    #[test]
    fn a_missing_namespace_is_named() {
        let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
        let first = step(&mut platform, &mut compiler, now);
        for write in &first.writes {
            platform.answered(write, Err(Failure::NotFound), now);
        }
        let second = step(&mut platform, &mut compiler, now);
        let absent = second.absent.values().next().expect("what is absent");
        let text = absent.first().expect("one").to_string();
        assert!(
            text.contains("there is no namespace \"metallb-system\""),
            "{text}"
        );
    }
}
