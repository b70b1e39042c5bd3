//! What is withheld: sessions without a password, and configs of a held node.

use api::meta::SecretReference;

use super::*;
use crate::config::ResolvedSecret;

/// Config 2 with a password-protected session, and the password if it could be read.
fn with_session(password: Option<&str>) -> Assigned {
    let reference = SecretReference {
        name: Some("leaf".to_owned()),
        namespace: Some("default".to_owned()),
    };
    let mut config = Config::clone(&config(2));
    config.spec.underlay = Some(
        serde_json::from_value(serde_json::json!({
            "namespace": "selvedge", "asn": 64512, "routerId": "192.0.2.1", "routerMac": "02:00:00:00:00:01", "nics": [],
            "trunk": {"host": "hbn", "router": "hbn", "mtu": 1500},
            "neighbors": [
                {"address": "192.0.2.2", "remoteAs": {"external": true}, "addressFamilies": ["ipv4Unicast"],
                 "passwordSecret": {"name": "leaf", "namespace": "default"}},
                {"address": "192.0.2.3", "remoteAs": {"external": true}, "addressFamilies": ["ipv4Unicast"]},
            ],
        }))
        .unwrap(),
    );
    config
        .secrets
        .extend(password.map(|password| ResolvedSecret {
            reference,
            password: password.to_owned(),
        }));
    let mut assigned = Assigned::new(Arc::new(config));
    if password.is_none() {
        let why = "cannot read Secret default/leaf: not found".to_owned();
        let references = assigned.config.references();
        assigned.unread = references.into_iter().map(|it| (it, why.clone())).collect();
    }
    assigned
}

#[test]
fn a_secret_that_cannot_be_read_holds_back_its_session_alone() {
    let assigned = with_session(None);
    let (spec, held_back) = assigned.config.without_held_back();
    let neighbors = &spec.underlay.as_ref().unwrap().neighbors;
    assert_eq!(neighbors.len(), 1);
    assert_eq!(neighbors[0].peer().unwrap(), "192.0.2.3");
    assert_eq!(
        held_back,
        [
            "the BGP session with 192.0.2.2 is not configured: Secret default/leaf has no usable password"
        ]
    );

    // The config is tried, and the status says what it lacks.
    let mut machine = settled();
    let action = machine.step(Event::Assigned(assigned), SECOND);
    assert!(matches!(action, Action::Measure { .. }), "{action:?}");
    let notes = machine.status().notes;
    assert!(
        notes[0].contains("cannot read Secret default/leaf"),
        "{notes:?}"
    );

    // Once it can be read, the session is tried as well.
    let complete = with_session(Some("hunter2"));
    assert!(complete.config.without_held_back().1.is_empty());
    assert_ne!(
        with_session(None).config.fingerprint(),
        complete.config.fingerprint()
    );
}

#[test]
fn a_secret_that_can_no_longer_be_read_closes_no_session() {
    let mut machine = Machine::new(Journal {
        confirmed: Some(with_session(Some("hunter2")).config),
        ..Journal::default()
    });
    machine.step(started(), Time::ZERO);
    machine.step(applied(), Time::ZERO);
    machine.step(Event::Saved(Ok(())), Time::ZERO);
    machine.step(Event::Measured(health(true)), Time::ZERO);
    let action = machine.step(Event::Assigned(with_session(None)), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.state, State::Confirmed);
    assert_eq!(status.assigned, status.confirmed);
    assert!(status.notes[0].contains("the last known password is kept"));
}

#[test]
fn a_held_node_applies_nothing_new_and_says_so() {
    let mut machine = settled();
    let mut held = Assigned::new(config(2));
    held.hold = Some("maintenance".to_owned());
    let action = machine.step(Event::Assigned(held), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.state, State::Held);
    assert_eq!(status.running, Some(config(1)));
    assert_eq!(status.hold.as_deref(), Some("maintenance"));
    // Drift is repaired: that is nothing new.
    let action = machine.step(Event::Drifted, 2 * SECOND);
    assert!(matches!(action, Action::Apply { config, .. } if config == self::config(1)));
    machine.step(applied(), 2 * SECOND);
    // Without the annotation the config is tried.
    let action = machine.step(assigned(2), 3 * SECOND);
    assert!(matches!(action, Action::Measure { .. }), "{action:?}");
}

#[test]
fn a_hold_that_comes_during_a_trial_does_not_interrupt_it() {
    let mut machine = trying();
    machine.step(applied(), SECOND);
    let mut held = Assigned::new(config(3));
    held.hold = Some("maintenance".to_owned());
    machine.step(Event::Assigned(held), SECOND);
    assert_eq!(machine.status().state, State::Trying);
    machine.step(Event::Measured(health(true)), 2 * SECOND);
    machine.step(Event::Woken, 4 * SECOND);
    let action = machine.step(Event::Measured(health(true)), 4 * SECOND);
    assert!(matches!(action, Action::Save(journal) if journal.confirmed == Some(config(2))));
}

#[test]
fn the_status_says_how_long_apply_and_confirmation_took() {
    let mut machine = trying();
    assert_eq!(machine.status().timings, None);
    machine.step(applied(), 3 * SECOND);
    machine.step(Event::Measured(health(true)), 3 * SECOND);
    machine.step(Event::Woken, 5 * SECOND);
    machine.step(Event::Measured(health(true)), 5 * SECOND);
    machine.step(Event::Saved(Ok(())), 6 * SECOND);
    let timings = machine.status().timings.unwrap();
    assert_eq!(timings.apply, 2 * SECOND);
    assert_eq!(timings.confirm, 5 * SECOND);
}
