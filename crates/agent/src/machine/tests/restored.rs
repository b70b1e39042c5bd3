//! What is brought back: it is measured like any other config, and what fails meanwhile is reported.

use super::*;

#[test]
fn a_restored_config_is_measured_and_a_failed_restore_is_reported_as_such() {
    let mut machine = trying();
    machine.step(fault(true, FrrFault::None), SECOND);
    let action = machine.step(fault(false, FrrFault::None), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!((status.state, status.running), (State::Restoring, None));
    let error = status.error.unwrap();
    assert!(error.contains("restore failed: vtysh: refused"), "{error}");

    // The next attempt succeeds, and is not said to be healthy before it was measured.
    let action = machine.step(Event::Woken, 60 * SECOND);
    assert_eq!(means(&action, 1), Means::LeastChange);
    let action = machine.step(applied(), 60 * SECOND);
    assert!(matches!(action, Action::Save(journal) if journal.trying.is_none()));
    let action = machine.step(Event::Saved(Ok(())), 60 * SECOND);
    let Action::Measure { router, probes, .. } = action else {
        panic!("not measured: {action:?}");
    };
    assert_eq!((router, probes), (Some(config(1)), config(1)));
    machine.step(Event::Measured(health(false)), 61 * SECOND);
    let status = machine.status();
    assert_eq!(status.running, Some(config(1)));
    assert_eq!(status.unhealthy, ["API server: no answer"]);
    assert_eq!(status.state, State::Rejected);
    let error = status.error.unwrap();
    assert!(!error.contains("restore failed"), "{error}");
}
