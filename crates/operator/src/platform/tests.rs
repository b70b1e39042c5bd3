//! Objects of other programs, without an API server.

use compiler::{Compiler, Kind, platform};

use super::*;
use crate::{backoff::FIRST_RETRY, publish::allocations};

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
        platform.apply(kind, Change::ListStarted(kind.api_version));
        platform.apply(kind, Change::ListCompleted);
    }
    platform
}

fn step(platform: &mut Platform, compiler: &mut Compiler, now: Instant) -> Step {
    let (_, compilation) = compiler.compile();
    let step = platform.step(compilation, &BTreeSet::new(), &BTreeSet::new(), now);
    compiler.set_absent(step.absent.clone());
    step
}

/// Does what a step says, as an API server that takes everything.
fn carry_out(platform: &mut Platform, step: &Step, version: u32) {
    for write in &step.writes {
        let stored = match &write.operation {
            Operation::Create(_)
            | Operation::Apply(_)
            | Operation::Merge(_)
            | Operation::MergeStatus(_) => {
                let mut stored = write.content.clone();
                stored["metadata"]["resourceVersion"] = json!(version.to_string());
                stored["metadata"]["uid"] = json!("u");
                stored["spec"]["defaulted"] = json!(true);
                Some(serde_json::from_value(stored).expect("an object"))
            }
            Operation::Delete(_) => None,
        };
        platform.answered(write, Ok(stored), Instant::now());
    }
}

fn done(step: &Step) -> Vec<String> {
    let done = |write: &Write| {
        let verb = match write.operation {
            Operation::Create(_) => "create",
            Operation::Apply(_) => "apply",
            Operation::Merge(_) | Operation::MergeStatus(_) => "merge",
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

    // An edit is undone; a field without a desired value is left unchanged.
    let pool = first.writes.last().expect("a pool").clone();
    let Operation::Create(mut edited) = pool.operation.clone() else {
        panic!("it is created");
    };
    edited["metadata"]["resourceVersion"] = json!("2");
    edited["spec"]["avoidBuggyIPs"] = json!(true);
    let as_object = |value: &Value| Box::new(serde_json::from_value(value.clone()).expect("one"));
    platform.apply(pool.kind, Change::Applied(as_object(&edited)));
    assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
    edited["metadata"]["resourceVersion"] = json!("3");
    edited["spec"]["addresses"] = json!(["192.0.2.1/32"]);
    platform.apply(pool.kind, Change::Applied(as_object(&edited)));
    let undo = step(&mut platform, &mut compiler, now);
    assert_eq!(done(&undo), ["apply IPAddressPool web"]);
    let again = step(&mut platform, &mut compiler, now);
    let held = platform.without_losses(again);
    assert!(done(&held).is_empty(), "the stored address would be lost");
    carry_out(&mut platform, &undo, 4);

    compiler.remove(&ObjectRef::named(Kind::Inbound, INBOUND));
    let gone = step(&mut platform, &mut compiler, now);
    let held = platform.without_losses(gone);
    assert!(done(&held).is_empty(), "the revision is not approved yet");
    let gone = step(&mut platform, &mut compiler, now);
    assert_eq!(
        done(&gone),
        ["delete BGPAdvertisement web", "delete IPAddressPool web"]
    );
    carry_out(&mut platform, &gone, 5);
    assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
}

#[test]
fn addresses_are_given_to_no_program_before_a_status_holds_them() {
    let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
    let statuses = compiler.writes().statuses.clone();
    let (snapshot, compilation) = compiler.compile();
    let unstored = allocations::unstored(snapshot, &statuses);
    let subject = ObjectRef::named(Kind::Inbound, INBOUND);
    assert_eq!(unstored, [subject.clone()].into());
    let first = platform.step(compilation, &unstored, &BTreeSet::new(), now);
    assert!(done(&first).is_empty(), "{:?}", done(&first));
    assert!(first.absent.contains_key(&subject), "it is not ready");

    compiler.insert(&json!({
        "apiVersion": Kind::Inbound.api_version(), "kind": "Inbound", "metadata": {"name": INBOUND},
        "spec": inbound(1), "status": statuses[&subject].to_value(),
    }));
    let statuses = compiler.writes().statuses.clone();
    let (snapshot, compilation) = compiler.compile();
    let unstored = allocations::unstored(snapshot, &statuses);
    let second = platform.step(compilation, &unstored, &BTreeSet::new(), now);
    assert_eq!(done(&second).len(), 2);
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

    platform.apply(missing, Change::ListStarted(missing.api_version));
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
            let refused = Failure::Refused {
                code: 403,
                message: "quota exceeded".to_owned(),
                retry_after: None,
            };
            platform.answered(write, Err(refused), now);
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
    assert_eq!(platform.next(), Some(later + FIRST_RETRY * 2));
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

fn kind(name: &str) -> PlatformKind {
    let mut kinds = platform::kinds();
    kinds.find(|kind| kind.kind == name).expect("a kind")
}

#[test]
fn nothing_is_written_or_deleted_of_a_kind_that_cannot_be_watched() {
    let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
    let failed = || Change::Failed("no route to host".to_owned());
    platform.apply(kind("IPAddressPool"), failed());
    let first = step(&mut platform, &mut compiler, now);
    assert_eq!(done(&first), ["create BGPAdvertisement web"]);
    assert_eq!(ready(&mut compiler).1, "KindNotWatched");
    // A list that begins says nothing yet.
    let pools = kind("IPAddressPool");
    platform.apply(pools, Change::ListStarted(pools.api_version));
    assert_eq!(done(&step(&mut platform, &mut compiler, now)), done(&first));
    platform.apply(pools, Change::ListCompleted);
    let first = step(&mut platform, &mut compiler, now);
    carry_out(&mut platform, &first, 1);

    // What was there as it must be counts as there.
    platform.apply(kind("BGPAdvertisement"), failed());
    assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
    assert_eq!(ready(&mut compiler).0, "True");
    compiler.remove(&ObjectRef::named(Kind::Inbound, INBOUND));
    let gone = step(&mut platform, &mut compiler, now);
    assert_eq!(done(&gone), ["delete IPAddressPool web"]);
}

#[test]
fn a_kind_that_was_never_listed_is_named_with_the_reason() {
    let (mut compiler, mut platform, now) = (world(), Platform::default(), Instant::now());
    for kind in platform::kinds() {
        platform.apply(kind, Change::Failed("forbidden".to_owned()));
    }
    let step = step(&mut platform, &mut compiler, now);
    assert!(step.writes.is_empty());
    let absent = step.absent.values().next().expect("what is absent");
    let text = absent.first().expect("one").to_string();
    assert!(text.contains("cannot be watched: forbidden"), "{text}");
}

#[test]
fn nothing_is_written_or_deleted_for_intents_of_a_frozen_kind() {
    let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
    let frozen: BTreeSet<Kind> = [Kind::Inbound].into();
    let (_, compilation) = compiler.compile();
    assert!(
        platform
            .step(compilation, &BTreeSet::new(), &frozen, now)
            .writes
            .is_empty()
    );
    let first = step(&mut platform, &mut compiler, now);
    assert_eq!(first.writes.len(), 2);
    carry_out(&mut platform, &first, 1);
    compiler.remove(&ObjectRef::named(Kind::Inbound, INBOUND));
    let (_, compilation) = compiler.compile();
    assert!(
        platform
            .step(compilation, &BTreeSet::new(), &frozen, now)
            .writes
            .is_empty()
    );
    assert_eq!(
        platform
            .step(compilation, &BTreeSet::new(), &BTreeSet::new(), now)
            .writes
            .len(),
        2
    );
}

#[test]
fn an_object_that_is_being_deleted_is_neither_written_nor_deleted_again() {
    let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
    let first = step(&mut platform, &mut compiler, now);
    carry_out(&mut platform, &first, 1);
    compiler.remove(&ObjectRef::named(Kind::Inbound, INBOUND));
    let gone = step(&mut platform, &mut compiler, now);
    carry_out(&mut platform, &gone, 2);
    // The intent is created again before the finalizers of its objects are removed.
    put(&mut compiler, Kind::Inbound, INBOUND, &inbound(1));
    assert!(step(&mut platform, &mut compiler, now).writes.is_empty());
    assert_eq!(ready(&mut compiler), ("False".into(), "Terminating".into()));
    for write in &gone.writes {
        let (_, _, namespace, name) = &write.identity;
        let object = json!({"metadata": {"name": name, "namespace": namespace}});
        let object = serde_json::from_value(object).expect("an object");
        platform.apply(write.kind, Change::Deleted(Box::new(object)));
    }
    assert_eq!(done(&step(&mut platform, &mut compiler, now)), done(&first));
}

#[test]
fn objects_are_written_in_the_version_that_is_served() {
    let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
    let pools = kind("IPAddressPool");
    platform.apply(pools, Change::ListStarted("metallb.io/v0"));
    platform.apply(pools, Change::ListCompleted);
    let step = step(&mut platform, &mut compiler, now);
    let write = step.writes.iter().find(|write| write.kind == pools);
    let write = write.expect("a pool");
    assert_eq!(write.served, "metallb.io/v0");
    assert_eq!(write.content["apiVersion"], "metallb.io/v0");
}

#[test]
fn what_other_programs_report_about_our_objects_makes_no_step_necessary() {
    let (mut compiler, mut platform, now) = (world(), all_served(), Instant::now());
    let first = step(&mut platform, &mut compiler, now);
    carry_out(&mut platform, &first, 1);
    let pools = kind("IPAddressPool");
    let write = first.writes.iter().find(|write| write.kind == pools);
    let mut stored = write.expect("a pool").content.clone();
    stored["metadata"]["uid"] = json!("u");
    stored["spec"]["defaulted"] = json!(true);
    let mut seen = |version: u32, change: &dyn Fn(&mut Value)| {
        stored["metadata"]["resourceVersion"] = json!(version.to_string());
        change(&mut stored);
        let object = serde_json::from_value(stored.clone()).expect("an object");
        platform.apply(pools, Change::Applied(Box::new(object)))
    };
    assert!(!seen(1, &|_| {}), "the write itself is reported");
    let report = |object: &mut Value| object["status"] = json!({"assignedIPv4": 1});
    assert!(!seen(2, &report));
    let edit = |object: &mut Value| object["spec"]["addresses"] = json!([]);
    assert!(seen(3, &edit));
    // The same list once more is nothing new, and neither is a kind that is still not served.
    platform.apply(pools, Change::ListStarted(pools.api_version));
    let object = serde_json::from_value(stored).expect("an object");
    assert!(!platform.apply(pools, Change::Applied(Box::new(object))));
    assert!(!platform.apply(pools, Change::ListCompleted));
    platform.apply(pools, Change::ListStarted(pools.api_version));
    assert!(platform.apply(pools, Change::ListCompleted), "it is gone");
    assert!(platform.apply(pools, Change::NotServed));
    assert!(!platform.apply(pools, Change::NotServed));
}
