//! Ring 2: what a mistake may cost in a running cluster: nothing.

use api::{
    tcaas::{BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec},
    value::{Prefix, VrfName},
};
use worlds::{edit, edited, varied};

use super::{changes::Cluster, *};
use crate::{last_good::is_stored, snapshot::Key};

/// The cluster of these objects, in which everything is published and nothing is left to write.
pub(super) fn running(world: &[Value]) -> Cluster {
    let mut cluster = Cluster::default();
    for document in world {
        cluster.put(document);
    }
    for _ in 0..3 {
        cluster.publish();
    }
    cluster.store();
    cluster.answer(true);
    cluster
}

proptest! {
    #![proptest_config(laws(192))]

    /// A resource stays with its holder: an edit that ends in an error of the edited object changes the config of no node.
    #[test]
    fn an_edit_that_ends_in_an_error_changes_no_node(world in varied(), other in varied(), edit in edit()) {
        let mut cluster = running(&world);
        let before = cluster.compiler.compile().1.nodes.clone();
        let written: Vec<Value> = world.iter().filter_map(|one| cluster.document_like(one)).collect();
        let Some(new) = edited(&edit, &written, &other) else { return Ok(()) };
        let Insertion::Object(subject) = Snapshot::default().insert(&new) else { return Ok(()) };
        let had = cluster.mistakes(&subject);
        // The API server stores no intent that cannot be read.
        let is_unread = !snapshot(std::slice::from_ref(&new)).unread.is_empty();
        if is_unread && subject.kind.intent().is_some() {
            return Ok(());
        }
        let new_spec = new["spec"].to_string();
        cluster.put(&new);
        let mistakes = cluster.mistakes(&subject);
        if mistakes.is_empty() || !had.is_empty() {
            return Ok(());
        }
        for (node, config) in &cluster.compiler.compile().1.nodes {
            let text = |config: &Arc<NodeConfig>| serde_json::to_string_pretty(&config.content()).expect("a config is JSON");
            let (now, then) = (text(config), before.get(node).map(text).unwrap_or_default());
            let differs = then.lines().zip(now.lines()).position(|(then, now)| then != now).unwrap_or_default();
            let around = |text: &str| text.lines().skip(differs.saturating_sub(8)).take(20).map(str::to_owned).collect::<Vec<_>>();
            let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            prop_assert!(now == then, "{} changed {}: {:#?} became {:#?}, though {:?}; it is {}", subject, node, around(&then), around(&now), mistakes, new_spec);
        }
    }

    /// What runs goes on: whatever an object that was well is edited into, no other object that was well is stopped by it. Nothing is said
    /// of Destinations that are no longer selected, which are withdrawn on purpose.
    #[test]
    fn an_edit_stops_no_object_of_another_author(world in varied(), other in varied(), edit in edit()) {
        let mut cluster = running(&world);
        let written: Vec<Value> = world.iter().filter_map(|one| cluster.document_like(one)).collect();
        let Some(new) = edited(&edit, &written, &other) else { return Ok(()) };
        let Insertion::Object(subject) = Snapshot::default().insert(&new) else { return Ok(()) };
        let before = stopped(&mut cluster);
        let is_there = cluster.compiler.snapshot().meta(&subject).is_some();
        let is_unread = !snapshot(std::slice::from_ref(&new)).unread.is_empty();
        if !is_there || is_unread || before.contains_key(&subject) {
            return Ok(());
        }
        let new_spec = new["spec"].to_string();
        cluster.put(&new);
        for (victim, problem) in stopped(&mut cluster) {
            let is_harmed = victim != subject && !before.contains_key(&victim);
            prop_assert!(!is_harmed, "{} stopped {}; it is {}", subject, problem, new_spec);
        }
    }

    /// Revocation is no mistake: what came from a Destination that is deleted, or that nothing selects any more, is in nothing that an intent
    /// becomes or became last: neither in its routing, nor in its segment, nor in its sessions.
    #[test]
    fn a_destination_that_is_taken_away_is_withdrawn(world in varied(), which in any::<prop::sample::Index>(), is_deleted in any::<bool>()) {
        let mut cluster = running(&world);
        let written = world.iter().filter_map(|one| cluster.document_like(one));
        let destinations: Vec<Value> = written.filter(|one| one["kind"] == "Destination").collect();
        if destinations.is_empty() {
            return Ok(());
        }
        let mut destination = which.get(&destinations).clone();
        if is_deleted {
            let name = destination["metadata"]["name"].as_str().expect("a name");
            cluster.remove(&ObjectRef::named(Kind::Destination, name));
        } else {
            destination["metadata"]["labels"] = json!({"zone": "none-selects-it"});
            cluster.put(&destination);
        }
        let (snapshot, compilation) = cluster.compiler.compile();
        for (_, routing) in compilation.objects.of::<VrfRouteConfigurationSpec>() {
            let Some(left) = Left::of(snapshot, &routing.source) else { continue };
            let vrf = &routing.spec.vrf;
            // Where nothing is left, a segment stays in its VRF, without imports.
            let stays = left.vrfs.is_empty() && !routing.source.kind.is_service();
            prop_assert!(left.vrfs.contains_key(vrf) || stays, "{} is still in {}", routing.source, vrf);
            for item in &routing.spec.import {
                let is_behind = left.vrfs.get(vrf).is_some_and(|behind| behind.contains(&item.cidr));
                let is_left = is_behind || left.own.contains(&item.cidr);
                prop_assert!(is_left, "{} still imports {}", routing.source, item.cidr);
            }
        }
        for (_, segment) in compilation.objects.of::<Layer2NetworkConfigurationSpec>() {
            let Some(left) = Left::of(snapshot, &segment.source) else { continue };
            if let Some(vrf) = segment.spec.vrf.as_ref().filter(|_| left.vrfs.len() == 1) {
                prop_assert!(left.vrfs.contains_key(vrf), "{} is still in {}", segment.source, vrf);
            }
            for route in &segment.spec.static_routes {
                prop_assert!(left.leads_to(&route.prefix), "{} still has a route to {}", segment.source, route.prefix);
            }
        }
        for (_, sessions) in compilation.objects.of::<BgpPeeringSpec>() {
            let Some(left) = Left::of(snapshot, &sessions.source) else { continue };
            for item in &sessions.spec.export {
                prop_assert!(left.leads_to(&item.cidr), "{} still exports {}", sessions.source, item.cidr);
            }
        }
    }
}

/// What is behind the Destinations that an intent selects.
struct Left {
    /// The prefixes behind each VRF.
    vrfs: BTreeMap<VrfName, BTreeSet<Prefix>>,
    /// Those behind next hops.
    routes: BTreeSet<Prefix>,
    /// Those behind its own workloads.
    own: BTreeSet<Prefix>,
}

impl Left {
    /// Nothing for what selects no Destinations by itself.
    fn of(snapshot: &Snapshot, source: &ObjectRef) -> Option<Self> {
        let terms = lower::intent::terms(snapshot, source)?;
        let selector = terms.destinations?;
        let own = terms.routes.iter().flat_map(|route| route.prefixes.clone());
        let mut left = Self {
            vrfs: BTreeMap::new(),
            routes: BTreeSet::new(),
            own: own.collect(),
        };
        let destinations = snapshot.destinations.values();
        for one in destinations.filter(|one| selector.matches(&one.meta.labels)) {
            let vrf = one.spec.vrf_ref.as_ref();
            let vrf = vrf.and_then(|vrf| snapshot.vrfs.get(&Key::named(vrf)));
            let behind = match vrf {
                Some(vrf) => left.vrfs.entry(vrf.spec.vrf.clone()).or_default(),
                None => &mut left.routes,
            };
            behind.extend(one.spec.prefixes.iter().copied());
        }
        Some(left)
    }

    fn leads_to(&self, prefix: &Prefix) -> bool {
        let mut behind = self.vrfs.values().chain([&self.routes]);
        behind.any(|behind| behind.contains(prefix))
    }
}

/// The objects that something keeps from running, each with what it is.
fn stopped(cluster: &mut Cluster) -> BTreeMap<ObjectRef, String> {
    let (_, compilation) = cluster.compiler.compile();
    let problems = compilation.problems.iter();
    let harm = problems.filter(|problem| problem.is_harm() && is_stored(problem.subject.kind));
    let entry = |problem: &Problem| (problem.subject.clone(), problem.to_string());
    harm.map(entry).collect()
}
