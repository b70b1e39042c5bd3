use proptest::prelude::*;

use super::*;
use crate::health::Check;

mod law;
mod restored;
mod withheld;

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn config(content: u32) -> Arc<Config> {
    let mut config = Config::empty();
    config.spec.revision = format!("r{content}");
    config.generation = content.into();
    // Something that changes the content, besides the name of the revision.
    config.uid = "uid".to_owned();
    config.spec.health.retries = content;
    Arc::new(config)
}

pub(super) fn assigned(content: u32) -> Event {
    Event::Assigned(Assigned::new(config(content)))
}

pub(super) fn health(good: bool) -> Health {
    let outcome = good.then_some(()).ok_or_else(|| "no answer".to_owned());
    [(Check::ApiServer, outcome)].into_iter().collect()
}

fn fault(permanent: bool, frr: FrrFault) -> Event {
    Event::Applied(Err(Fault {
        message: "vtysh: refused".to_owned(),
        permanent,
        frr,
    }))
}

fn applied() -> Event {
    repaired(&["link l2.100 is missing"])
}

fn repaired_nothing() -> Event {
    repaired(&[])
}

/// An apply that removed these differences.
fn repaired(differences: &[&str]) -> Event {
    Event::Applied(Ok(Outcome {
        changes: differences.iter().map(ToString::to_string).collect(),
        ..Outcome::default()
    }))
}

/// By which means the config with this content is applied.
#[track_caller]
fn means(action: &Action, content: u32) -> Means {
    match action {
        Action::Apply { config, means, .. } if *config == self::config(content) => *means,
        other => panic!("config {content} is not applied: {other:?}"),
    }
}

fn journal(confirmed: u32) -> Journal {
    Journal {
        confirmed: Some(config(confirmed)),
        ..Journal::default()
    }
}

fn started() -> Event {
    Event::Started {
        has_objects: false,
        rebooted: false,
    }
}

/// A machine that runs config 1, confirmed.
fn settled() -> Machine {
    let mut machine = Machine::new(journal(1));
    let action = machine.step(started(), Time::ZERO);
    assert!(matches!(action, Action::Apply { config, .. } if config == self::config(1)));
    machine.step(applied(), Time::ZERO);
    machine.step(Event::Saved(Ok(())), Time::ZERO);
    machine.step(Event::Measured(health(true)), Time::ZERO);
    assert!(machine.is_at_rest());
    machine
}

/// Brings a settled machine to where config 2 is applied.
fn trying() -> Machine {
    let mut machine = settled();
    let action = machine.step(assigned(2), SECOND);
    assert!(matches!(action, Action::Measure { .. }));
    let action = machine.step(Event::Measured(health(true)), SECOND);
    assert!(matches!(action, Action::Save(journal) if journal.trying == Some(config(2))));
    let action = machine.step(Event::Saved(Ok(())), SECOND);
    assert!(matches!(action, Action::Apply { config, .. } if config == self::config(2)));
    machine
}

#[test]
fn a_healthy_config_is_confirmed_after_it_has_settled() {
    let mut machine = trying();
    machine.step(applied(), SECOND);
    let action = machine.step(Event::Measured(health(true)), SECOND);
    assert!(matches!(action, Action::Wait(_)), "not at once: {action:?}");
    machine.step(Event::Woken, 2 * SECOND);
    machine.step(Event::Measured(health(true)), 2 * SECOND);
    machine.step(Event::Woken, 3 * SECOND);
    let action = machine.step(Event::Measured(health(true)), 3 * SECOND);
    assert!(matches!(action, Action::Save(journal) if journal.confirmed == Some(config(2))));
    assert_eq!(machine.status().state, State::Trying);
    machine.step(Event::Saved(Ok(())), 3 * SECOND);
    let status = machine.status();
    assert_eq!(status.state, State::Confirmed);
    assert_eq!(status.running, Some(config(2)));
}

/// A machine that has confirmed config 2, in good health, and rolled back config 3 after that.
fn rolled_back() -> Machine {
    let mut machine = trying();
    machine.step(applied(), SECOND);
    machine.step(Event::Measured(health(true)), SECOND);
    machine.step(Event::Woken, 3 * SECOND);
    machine.step(Event::Measured(health(true)), 3 * SECOND);
    machine.step(Event::Saved(Ok(())), 3 * SECOND);
    machine.step(assigned(3), 4 * SECOND);
    machine.step(Event::Measured(health(true)), 4 * SECOND);
    machine.step(Event::Saved(Ok(())), 4 * SECOND);
    machine.step(fault(true, FrrFault::None), 5 * SECOND);
    machine.step(applied(), 5 * SECOND);
    machine.step(Event::Saved(Ok(())), 5 * SECOND);
    machine.step(Event::Measured(health(false)), 5 * SECOND);
    let status = machine.status();
    assert_eq!(
        (status.state, status.confirmed),
        (State::Rejected, Some(config(2)))
    );
    assert!(machine.is_at_rest());
    machine
}

#[test]
fn a_config_tried_just_after_a_rollback_is_compared_with_what_worked_before() {
    let mut machine = rolled_back();
    machine.step(assigned(4), 6 * SECOND);
    let action = machine.step(Event::Measured(health(false)), 6 * SECOND);
    let Action::Wait(at) = action else {
        panic!("the session is not up again: {action:?}");
    };
    assert!(!machine.is_at_rest());
    let action = machine.step(Event::Woken, at);
    assert!(matches!(action, Action::Measure { probes, .. } if probes == config(4)));
    let action = machine.step(Event::Measured(health(true)), at);
    assert!(matches!(action, Action::Save(journal) if journal.trying == Some(config(4))));
    machine.step(Event::Saved(Ok(())), at);
    machine.step(applied(), at);
    machine.step(Event::Measured(health(false)), at);
    assert_eq!(
        machine.status().error.as_deref(),
        Some("API server: no answer")
    );
}

#[test]
fn what_does_not_work_again_holds_up_a_fix_for_seconds_only() {
    let mut machine = rolled_back();
    let mut action = machine.step(assigned(4), 6 * SECOND);
    let mut now = 6 * SECOND;
    for _ in 0..100 {
        action = match action {
            Action::Measure { .. } => machine.step(Event::Measured(health(false)), now),
            Action::Wait(until) => {
                now = until;
                machine.step(Event::Woken, now)
            }
            _ => break,
        };
    }
    assert!(matches!(action, Action::Save(journal) if journal.trying == Some(config(4))));
    assert_eq!(now, 6 * SECOND + BASELINE_PATIENCE);
}

#[test]
fn a_config_that_is_no_longer_wanted_before_it_is_tried_changes_nothing() {
    let waiting = || {
        let mut machine = rolled_back();
        machine.step(assigned(4), 6 * SECOND);
        machine.step(Event::Measured(health(false)), 6 * SECOND);
        machine
    };
    let mut machine = waiting();
    machine.step(Event::Interrupted, 6 * SECOND);
    assert_eq!(machine.status().state, State::Rejected);
    let mut machine = waiting();
    machine.step(assigned(2), 6 * SECOND);
    assert_eq!(machine.status().state, State::Confirmed);
    let mut machine = waiting();
    let action = machine.step(assigned(5), 10 * SECOND);
    assert!(matches!(action, Action::Measure { probes, .. } if probes == config(5)));
    // The time that is waited is that since the first of them.
    let action = machine.step(
        Event::Measured(health(false)),
        6 * SECOND + BASELINE_PATIENCE,
    );
    assert!(matches!(action, Action::Save(journal) if journal.trying == Some(config(5))));
}

#[test]
fn without_health_the_confirmed_config_is_back_at_the_deadline_and_the_other_is_remembered() {
    // The trial begins at 1 s and has 30 s; its apply took 3 s, and 8 s are kept for a return that finds that FRR does not answer.
    let mut machine = trying();
    machine.step(applied(), 4 * SECOND);
    let give_up = 23 * SECOND;
    let almost = Duration::from_millis(22_750);
    let action = machine.step(Event::Measured(health(false)), almost);
    assert_eq!(action, Action::Wait(give_up), "not later than that");
    let action = machine.step(Event::Woken, give_up);
    assert!(
        matches!(&action, Action::Apply { config, means: Means::LeastChange, .. } if *config == self::config(1)),
        "{action:?}"
    );
    let action = machine.step(applied(), 30 * SECOND);
    let Action::Save(journal) = action else {
        panic!("{action:?}");
    };
    assert_eq!(journal.trying, None);
    assert_eq!(journal.rejected.len(), 1);
    machine.step(Event::Saved(Ok(())), 32 * SECOND);
    machine.step(Event::Measured(health(true)), 32 * SECOND);
    let status = machine.status();
    assert_eq!(
        (status.state, status.error.as_deref()),
        (State::Rejected, Some("API server: no answer"))
    );

    // Not even after a restart; but when the annotation asks for it.
    let mut again = Machine::new(journal);
    again.step(started(), Time::ZERO);
    again.step(applied(), Time::ZERO);
    again.step(Event::Saved(Ok(())), Time::ZERO);
    again.step(Event::Measured(health(true)), Time::ZERO);
    assert!(matches!(again.step(assigned(2), SECOND), Action::Wait(_)));
    let Event::Assigned(mut retry) = assigned(2) else {
        panic!("assigned");
    };
    retry.retry = Some("once more".to_owned());
    let retry = Event::Assigned(retry);
    let action = again.step(retry.clone(), SECOND);
    assert!(matches!(action, Action::Measure { .. }), "{action:?}");

    // It asks once: an agent that ends in that attempt does not begin another one.
    let Action::Save(announced) = again.step(Event::Measured(health(true)), SECOND) else {
        panic!("the trial is announced");
    };
    assert!(announced.trying.is_some());
    let mut after = Machine::new(announced);
    after.step(started(), Time::ZERO);
    after.step(applied(), Time::ZERO);
    after.step(Event::Saved(Ok(())), Time::ZERO);
    after.step(Event::Measured(health(true)), Time::ZERO);
    let action = after.step(retry, SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    assert_eq!(after.status().state, State::Rejected);
}

#[test]
fn a_config_is_taken_back_when_the_user_interrupts_its_trial() {
    let mut machine = trying();
    machine.step(applied(), SECOND);
    let action = machine.step(Event::Measured(health(true)), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let action = machine.step(Event::Interrupted, SECOND);
    assert_eq!(means(&action, 1), Means::LeastChange);
    // A return that fails is no rest for a command: nobody else would repeat it.
    machine.step(fault(false, FrrFault::None), SECOND);
    assert!(machine.is_at_rest() && machine.is_returning());
    machine.step(Event::Woken, 60 * SECOND);
    machine.step(applied(), 60 * SECOND);
    machine.step(Event::Saved(Ok(())), 60 * SECOND);
    machine.step(Event::Measured(health(true)), 60 * SECOND);
    assert!(machine.is_at_rest() && !machine.is_returning());
    let status = machine.status();
    assert_eq!(status.running, Some(config(1)));
    assert!(status.error.unwrap().contains("interrupted"));
}

#[test]
fn what_was_broken_before_does_not_take_a_config_back() {
    let mut machine = settled();
    machine.step(assigned(2), SECOND);
    machine.step(Event::Measured(health(false)), SECOND);
    machine.step(Event::Saved(Ok(())), SECOND);
    machine.step(applied(), SECOND);
    machine.step(Event::Measured(health(false)), SECOND);
    machine.step(Event::Woken, 3 * SECOND);
    let action = machine.step(Event::Measured(health(false)), 3 * SECOND);
    assert!(matches!(action, Action::Save(journal) if journal.confirmed == Some(config(2))));
}

#[test]
fn a_journal_that_cannot_be_written_stops_the_change() {
    let mut machine = settled();
    machine.step(assigned(2), SECOND);
    machine.step(Event::Measured(health(true)), SECOND);
    let action = machine.step(Event::Saved(Err("read-only".to_owned())), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.running, Some(config(1)));
    assert!(status.error.unwrap().contains("read-only"));
}

#[test]
fn a_restore_that_frr_refuses_starts_frr_anew_once() {
    let mut machine = trying();
    let action = machine.step(fault(true, FrrFault::Refused), SECOND);
    assert_eq!(means(&action, 1), Means::LeastChange);
    let action = machine.step(fault(false, FrrFault::Refused), SECOND);
    assert_eq!(means(&action, 1), Means::FreshFrr);
    let action = machine.step(fault(false, FrrFault::Refused), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    assert_eq!(machine.status().state, State::Restoring);
    let action = machine.step(Event::Woken, 60 * SECOND);
    assert_eq!(means(&action, 1), Means::LeastChange);
    let action = machine.step(fault(false, FrrFault::Refused), 60 * SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
}

#[test]
fn a_config_that_finds_frr_silent_is_tried_with_a_fresh_one_and_taken_back_with_a_fresh_one() {
    let silent = || fault(false, FrrFault::Silent);
    let mut machine = trying();
    machine.step(silent(), 6 * SECOND);
    let action = machine.step(Event::Woken, 7 * SECOND);
    assert_eq!(means(&action, 2), Means::FreshFrr);
    // Silent again: more attempts would use up the time for the way back.
    let action = machine.step(silent(), 12 * SECOND);
    assert_eq!(means(&action, 1), Means::FreshFrr);

    // Without time for another attempt it is rolled back at once, and FRR is started anew at once.
    let mut late = trying();
    let action = late.step(silent(), 16 * SECOND);
    assert_eq!(means(&action, 1), Means::FreshFrr);
}

#[test]
fn a_return_that_finds_frr_silent_starts_it_anew_as_often_as_needed() {
    let mut machine = trying();
    let mut action = machine.step(fault(true, FrrFault::None), SECOND);
    let mut now = SECOND;
    // When a fresh FRR was started. The first one is part of the change that is taken back.
    let mut starts = Vec::new();
    while starts.len() < 5 {
        assert_eq!(means(&action, 1), Means::LeastChange);
        let mut next = machine.step(fault(false, FrrFault::Silent), now);
        if matches!(next, Action::Apply { .. }) {
            assert_eq!(means(&next, 1), Means::FreshFrr);
            starts.push(now);
            next = machine.step(fault(false, FrrFault::Silent), now);
        }
        let Action::Wait(until) = next else {
            panic!("a pause follows a failed return");
        };
        assert!(until <= now + LONGEST_PAUSE, "the node is between configs");
        now = until;
        action = machine.step(Event::Woken, now);
    }
    let pauses: Vec<Duration> = starts
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    assert!(pauses[0] <= 2 * SECOND, "{pauses:?}");
    let grows = pauses[1..].windows(2).all(|pair| pair[0] < pair[1]);
    assert!(pauses[1] >= 30 * SECOND && grows, "{pauses:?}");
}

#[test]
fn frr_that_stays_silent_without_a_change_is_started_anew() {
    let mut machine = settled();
    let mut now = SECOND;
    for attempt in 1..=SILENCES {
        let action = machine.step(Event::Drifted, now);
        assert_eq!(means(&action, 1), Means::LeastChange, "attempt {attempt}");
        let action = machine.step(fault(false, FrrFault::Silent), now);
        match action {
            Action::Wait(until) => {
                assert!(attempt < SILENCES);
                now = until;
            }
            action => {
                assert_eq!(attempt, SILENCES, "it may be busy");
                assert_eq!(means(&action, 1), Means::FreshFrr);
            }
        }
    }
}

#[test]
fn frr_that_is_silent_after_each_fresh_start_is_started_anew_less_and_less_often() {
    let mut machine = settled();
    let (mut now, mut starts) = (SECOND, Vec::new());
    let mut action = machine.step(Event::Drifted, now);
    while starts.len() < 5 {
        now += 10 * SECOND;
        action = match means(&action, 1) {
            // It is up again, and then it is busy.
            Means::FreshFrr => {
                starts.push(now);
                machine.step(applied(), now);
                machine.step(Event::Saved(Ok(())), now);
                machine.step(Event::Measured(health(true)), now)
            }
            Means::LeastChange => machine.step(fault(false, FrrFault::Silent), now),
        };
        while let Action::Wait(until) = action {
            now = now.max(until);
            action = machine.step(Event::Drifted, now);
        }
    }
    let pauses: Vec<Duration> = starts
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .collect();
    for (index, pause) in pauses.iter().enumerate() {
        let least = 30 * SECOND * 2_u32.pow(u32::try_from(index).unwrap());
        assert!(*pause >= least, "{pauses:?}");
    }
    let notes = machine.status().notes;
    assert!(
        notes.iter().any(|note| note.contains("restarted 5 times")),
        "{notes:?}"
    );
    // When all is well for long, it is forgotten.
    machine.step(Event::Woken, now + 3600 * SECOND);
    assert!(machine.status().notes.is_empty());
}

#[test]
fn a_disk_that_cannot_be_written_keeps_the_node_neither_from_comparisons_nor_from_repairs() {
    let full = || Event::Saved(Err("no space left".to_owned()));
    let mut machine = settled();
    // A config that is wanted, and cannot be tried.
    machine.step(assigned(2), SECOND);
    machine.step(Event::Measured(health(true)), SECOND);
    let mut action = machine.step(full(), SECOND);
    let (mut compared, mut repaired, mut now) = (0, 0, SECOND);
    while now < 300 * SECOND {
        action = match action {
            Action::Wait(until) => {
                assert!(until > now, "at {now:?}");
                // Something is repaired in between, at once.
                let drifts = repaired < 3;
                if drifts {
                    now += SECOND / 2;
                    match machine.step(Event::Drifted, now) {
                        Action::Apply { .. } => {
                            repaired += 1;
                            machine.step(applied(), now)
                        }
                        attempt => attempt,
                    }
                } else {
                    now = until;
                    machine.step(Event::Woken, now)
                }
            }
            Action::Apply { .. } => {
                compared += 1;
                machine.step(repaired_nothing(), now)
            }
            Action::Measure { .. } => machine.step(Event::Measured(health(true)), now),
            Action::Save(_) => {
                let error = machine.status().error.unwrap();
                assert!(error.contains("no space left"), "{error}");
                machine.step(full(), now)
            }
        };
    }
    assert_eq!(repaired, 3);
    assert!((9..=11).contains(&compared), "{compared} comparisons");
    // It is tried when there is space again.
    let saved = loop {
        action = match action {
            Action::Wait(until) => {
                now = until;
                machine.step(Event::Woken, now)
            }
            Action::Measure { .. } => machine.step(Event::Measured(health(true)), now),
            Action::Apply { .. } => machine.step(repaired_nothing(), now),
            Action::Save(journal) => break journal,
        };
    };
    assert_eq!(saved.trying, Some(config(2)));
}

#[test]
fn a_failed_restore_does_not_keep_a_better_config_away() {
    let mut machine = trying();
    machine.step(fault(true, FrrFault::None), SECOND);
    machine.step(fault(false, FrrFault::None), SECOND);
    assert_eq!(machine.status().state, State::Restoring);
    let action = machine.step(assigned(3), 2 * SECOND);
    assert!(matches!(action, Action::Measure { .. }), "{action:?}");
}

#[test]
fn a_transient_failure_is_retried_until_the_deadline() {
    let mut machine = trying();
    let mut now = SECOND;
    let mut attempts = 1;
    loop {
        match machine.step(fault(false, FrrFault::None), now) {
            Action::Wait(until) => now = until,
            Action::Apply { config, .. } => {
                assert_eq!(config, self::config(1));
                break;
            }
            other => panic!("{other:?}"),
        }
        let action = machine.step(Event::Woken, now);
        assert!(matches!(action, Action::Apply { config, .. } if config == self::config(2)));
        attempts += 1;
    }
    assert!(now >= 21 * SECOND && now <= 23 * SECOND, "{now:?}");
    assert!(attempts > 15, "{attempts}");
}

#[test]
fn a_measurement_ends_when_the_trial_is_given_up() {
    let mut machine = trying();
    let limit_of = |action: Action| match action {
        Action::Measure { limit, .. } => limit,
        other => panic!("{other:?}"),
    };
    let limit = limit_of(machine.step(applied(), 2 * SECOND));
    assert_eq!(limit, Some(21 * SECOND));
    machine.step(Event::Measured(health(false)), 18 * SECOND);
    let limit = limit_of(machine.step(Event::Woken, 19 * SECOND));
    assert_eq!(limit, Some(4 * SECOND));
}

#[test]
fn a_config_that_became_healthy_in_time_may_settle_and_one_that_did_not_stay_so_is_taken_back() {
    for stays in [true, false] {
        let mut machine = trying();
        machine.step(applied(), SECOND);
        machine.step(Event::Measured(health(true)), 29 * SECOND);
        let action = machine.step(Event::Woken, 31 * SECOND);
        assert!(
            matches!(action, Action::Measure { limit: Some(limit), .. } if limit == LEAST_PROBE),
            "{action:?}"
        );
        let action = machine.step(Event::Measured(health(stays)), 31 * SECOND);
        match action {
            Action::Save(journal) => assert!(stays && journal.confirmed == Some(config(2))),
            Action::Apply { config, .. } => assert!(!stays && config == self::config(1)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_way_back_is_at_most_half_of_the_deadline_and_a_quarter_is_left_to_become_healthy() {
    // Ten seconds of apply leave eleven for the way back and nine for health; twenty leave a quarter of the deadline.
    for (took, last) in [(10, 19), (20, 28)] {
        let mut machine = trying();
        machine.step(applied(), SECOND + took * SECOND);
        let last = last * SECOND;
        let action = machine.step(Event::Measured(health(false)), last);
        assert!(matches!(action, Action::Wait(until) if until > last));
        machine.step(Event::Woken, last + SECOND);
        assert_eq!(machine.status().state, State::Restoring, "after {took} s");
    }
}

#[test]
fn an_apply_that_takes_long_is_one_apply_and_has_time_to_become_healthy() {
    let mut machine = trying();
    // Longer than the whole deadline: no second apply, no rollback unheard.
    let action = machine.step(applied(), 90 * SECOND);
    assert!(matches!(action, Action::Measure { .. }), "{action:?}");
    let action = machine.step(Event::Measured(health(false)), 90 * SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    machine.step(Event::Woken, 91 * SECOND);
    machine.step(Event::Measured(health(true)), 91 * SECOND);
    machine.step(Event::Woken, 93 * SECOND);
    let action = machine.step(Event::Measured(health(true)), 93 * SECOND);
    assert!(matches!(action, Action::Save(journal) if journal.confirmed == Some(config(2))));
}

#[test]
fn a_newer_config_replaces_one_that_is_not_confirmed_and_the_way_back_stays() {
    let mut machine = trying();
    machine.step(applied(), SECOND);
    machine.step(Event::Measured(health(false)), SECOND);
    let action = machine.step(assigned(3), 2 * SECOND);
    let Action::Save(journal) = action else {
        panic!("{action:?}");
    };
    assert_eq!(journal.trying, Some(config(3)));
    assert_eq!(journal.confirmed, Some(config(1)));
    // The baseline is still the one before config 2: the API server was reached then.
    machine.step(Event::Saved(Ok(())), 2 * SECOND);
    machine.step(applied(), 2 * SECOND);
    machine.step(Event::Measured(health(false)), 40 * SECOND);
    assert_eq!(machine.status().state, State::Restoring);
}

#[test]
fn a_crash_while_trying_restores_first_and_says_why() {
    let mut found = journal(1);
    found.trying = Some(config(2));
    let mut machine = Machine::new(found);
    let rebooted = Event::Started {
        has_objects: false,
        rebooted: true,
    };
    let action = machine.step(rebooted, Time::ZERO);
    assert!(matches!(action, Action::Apply { config, .. } if config == self::config(1)));
    machine.step(applied(), Time::ZERO);
    machine.step(Event::Saved(Ok(())), Time::ZERO);
    machine.step(Event::Measured(health(true)), Time::ZERO);
    machine.step(assigned(2), Time::ZERO);
    let status = machine.status();
    assert_eq!(status.state, State::Rejected);
    assert!(status.error.unwrap().contains("rebooted"));
}

#[test]
fn without_a_confirmed_config_the_node_is_given_back_unless_somebody_ran_it_before() {
    for has_objects in [false, true] {
        let mut machine = Machine::new(Journal::default());
        let event = Event::Started {
            has_objects,
            rebooted: false,
        };
        machine.step(event, Time::ZERO);
        machine.step(assigned(1), Time::ZERO);
        machine.step(Event::Measured(health(true)), Time::ZERO);
        machine.step(Event::Saved(Ok(())), Time::ZERO);
        let action = machine.step(fault(true, FrrFault::None), Time::ZERO);
        if has_objects {
            assert!(matches!(action, Action::Save(_)), "{action:?}");
        } else {
            assert!(matches!(action, Action::Apply { config, .. } if *config == Config::empty()));
        }
    }
}

#[test]
fn a_node_whose_journal_is_lost_takes_no_config_but_what_runs_unless_somebody_insists() {
    let mut machine = Machine::new(Journal::default());
    let event = Event::Started {
        has_objects: true,
        rebooted: false,
    };
    machine.step(event, Time::ZERO);
    // Brings config 1 to its apply; what for it is applied.
    let purpose = |machine: &mut Machine, assigned: Assigned| {
        machine.step(Event::Assigned(assigned), Time::ZERO);
        machine.step(Event::Measured(health(true)), Time::ZERO);
        match machine.step(Event::Saved(Ok(())), Time::ZERO) {
            Action::Apply { purpose, .. } => purpose,
            other => panic!("{other:?}"),
        }
    };
    // An annotation that is there already says nothing about the loss.
    let asked = |when: &str| Assigned {
        retry: Some(when.to_owned()),
        ..Assigned::new(config(1))
    };
    assert_eq!(purpose(&mut machine, asked("before")), Purpose::Adopt);
    let mut differs = machine.clone();
    let action = differs.step(fault(true, FrrFault::None), Time::ZERO);
    assert!(
        matches!(action, Action::Save(_)),
        "nothing is changed: {action:?}"
    );
    differs.step(Event::Saved(Ok(())), Time::ZERO);
    assert_eq!(differs.status().state, State::Rejected);
    let tried = purpose(&mut differs, asked("now"));
    assert!(matches!(tried, Purpose::Try { .. }), "{tried:?}");

    // What runs is confirmed like any other config, and then there is a way back.
    let mut now = Time::ZERO;
    machine.step(repaired(&[]), now);
    while machine.status().confirmed.is_none() {
        let action = machine.step(Event::Measured(health(true)), now);
        now += SECOND;
        match action {
            Action::Wait(_) => machine.step(Event::Woken, now),
            _ => machine.step(Event::Saved(Ok(())), now),
        };
    }
    let changed = purpose(&mut machine, Assigned::new(config(2)));
    assert!(matches!(changed, Purpose::Try { .. }), "{changed:?}");
}

#[test]
fn drift_is_repaired_at_once_and_backed_off_when_it_keeps_coming() {
    let mut machine = settled();
    let mut now = SECOND;
    let put_off = |action: Action| match action {
        Action::Apply {
            purpose: Purpose::Repair { put_off },
            ..
        } => put_off,
        other => panic!("{other:?}"),
    };
    let flapping = "link l2.100 is missing";
    for _ in 0..=repairs::FREE {
        let action = machine.step(Event::Drifted, now);
        assert!(put_off(action).is_empty());
        machine.step(repaired(&[flapping]), now);
        now += SECOND / 10;
    }
    let drift = machine.status().drift.unwrap();
    assert_eq!(drift.backed_off.as_deref(), Some(flapping));
    // From now on the node is looked at once a second at most, and this difference alone is left as it is.
    let action = machine.step(Event::Drifted, now);
    let Action::Wait(look) = action else {
        panic!("{action:?}");
    };
    assert!(look > now && look <= now + SECOND);
    let action = machine.step(Event::Woken, look);
    assert_eq!(put_off(action), [flapping.to_owned()].into());
    let action = machine.step(
        Event::Applied(Ok(Outcome {
            put_off: true,
            ..Outcome::default()
        })),
        look,
    );
    // It is repaired all the same, later.
    let Action::Wait(due) = action else {
        panic!("{action:?}");
    };
    assert!(due <= now + 3 * SECOND);
    assert!(put_off(machine.step(Event::Woken, due)).is_empty());
    machine.step(repaired(&[flapping]), due);
    // Another difference waits for nothing but the next look.
    let next = due + 2 * SECOND;
    let action = machine.step(Event::Drifted, next);
    assert_eq!(put_off(action), [flapping.to_owned()].into());
    machine.step(repaired(&["ip rule 1000 is missing"]), next);
    let action = machine.step(Event::Drifted, due + 4 * SECOND);
    assert!(put_off(action).is_empty(), "its time has come");
    let repairs = u64::try_from(repairs::FREE).unwrap() + 3;
    assert_eq!(machine.status().counters.repaired, repairs);
}

#[test]
fn the_health_of_a_node_at_rest_is_measured_and_changes_nothing_else() {
    let mut machine = settled();
    let (config, due) = machine.checkup().unwrap();
    assert_eq!((config, due), (self::config(1), CHECKUP));
    let action = machine.step(Event::Measured(health(false)), due);
    assert!(matches!(action, Action::Apply { .. } | Action::Wait(_)));
    let status = machine.status();
    assert_eq!(status.unhealthy, ["API server: no answer"]);
    assert_eq!(status.confirmed, Some(self::config(1)));
    // While something is under way there is nothing to measure beside it.
    assert_eq!(trying().checkup(), None);
}

#[test]
fn the_same_content_under_a_new_revision_is_confirmed_without_a_trial() {
    let mut machine = settled();
    let mut renamed = Config::clone(&config(1));
    renamed.spec.revision = "r9".to_owned();
    renamed.generation = 9;
    let action = machine.step(
        Event::Assigned(Assigned::new(Arc::new(renamed.clone()))),
        SECOND,
    );
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.state, State::Confirmed);
    assert_eq!(status.confirmed, Some(Arc::new(renamed)));
}

#[test]
fn a_config_that_cannot_be_used_is_answered_and_changes_nothing() {
    let mut machine = settled();
    let Event::Assigned(mut newer) = assigned(2) else {
        panic!("assigned");
    };
    newer.refusal = Some("contract version 9 is newer than 1".to_owned());
    let action = machine.step(Event::Assigned(newer), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.state, State::Rejected);
    assert_eq!(status.running, Some(config(1)));
    assert!(status.error.unwrap().contains("contract"));
}

fn underlay(nics: &[&str]) -> api::tcaas::node_network_config::Underlay {
    serde_json::from_value(serde_json::json!({
        "namespace": "selvedge", "asn": 64514, "routerId": "192.0.2.1", "nics": nics, "routerMac": "02:00:00:00:00:01",
        "trunk": {"host": "hbn", "router": "hbn", "mtu": 9000},
    }))
    .expect("an underlay")
}

#[test]
fn only_uplinks_that_the_confirmed_config_does_not_have_must_be_there() {
    let with_nics = |content, nics: &[&str]| {
        let mut config = Config::clone(&config(content));
        config.spec.underlay = Some(underlay(nics));
        Arc::new(config)
    };
    let confirmed = with_nics(1, &["eth1"]);
    let mut machine = Machine::new(Journal {
        confirmed: Some(Arc::clone(&confirmed)),
        ..Journal::default()
    });
    let needed = |action: Action| match action {
        Action::Apply { purpose, .. } => purpose,
        other => panic!("{other:?}"),
    };
    // After a reboot the node gets back what it can, also without an uplink that is broken.
    let restore = machine.step(started(), SECOND);
    assert_eq!(needed(restore), Purpose::Keep);
    machine.step(applied(), SECOND);
    machine.step(Event::Saved(Ok(())), SECOND);
    machine.step(Event::Measured(health(true)), SECOND);
    let tried = with_nics(2, &["eth1", "eth9"]);
    machine.step(Event::Assigned(Assigned::new(tried)), SECOND);
    machine.step(Event::Measured(health(true)), SECOND);
    let apply = machine.step(Event::Saved(Ok(())), SECOND);
    let new_nics = vec!["eth9".to_owned()];
    assert_eq!(needed(apply), Purpose::Try { new_nics });
}
