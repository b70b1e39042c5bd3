use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const SECOND: Time = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(30);

/// A config that differs from those of other numbers; 0 is a node without such a router.
fn config(number: u16) -> Arc<HostConfig> {
    let text = serde_json::json!({"problems": [number.to_string()]});
    let router = serde_json::from_value(text).expect("a router");
    Arc::new(HostConfig {
        router: (number > 0).then(|| Arc::new(router)),
        secrets: Vec::new(),
    })
}

fn assigned(number: u16) -> Event {
    Event::Assigned(Assigned {
        config: config(number),
        retry: None,
        refusal: None,
        unread: Vec::new(),
        deadline: Some(DEADLINE),
    })
}

fn started(stored: Stored, rebooted: bool, runs: bool) -> Event {
    Event::Started {
        stored,
        rebooted,
        runs,
    }
}

fn applies(action: &Action) -> Option<Arc<HostConfig>> {
    match action {
        Action::Apply { config, .. } => Some(Arc::clone(config)),
        Action::Wait(_) | Action::Probe | Action::Save(_) => None,
    }
}

fn fault(cause: Cause) -> Event {
    let message = "line 3 is refused".to_owned();
    Event::Applied(Err(Fault { message, cause }))
}

/// Writes what is to be written, and returns the next action and what is on disk.
fn saved(machine: &mut Machine, action: Action, now: Time) -> (Action, Option<Stored>) {
    match action {
        Action::Save(stored) => (machine.step(Event::Saved(Ok(())), now), Some(stored)),
        other => (other, None),
    }
}

/// A machine that runs config 1 as the good one, at ten minutes.
fn settled() -> (Machine, Time) {
    let mut machine = Machine::new(true);
    let good = Stored {
        good: config(1),
        ..Stored::default()
    };
    let action = machine.step(started(good, true, false), Time::ZERO);
    assert_eq!(applies(&action), Some(config(1)));
    machine.step(Event::Applied(Ok(true)), SECOND);
    machine.step(assigned(1), SECOND);
    let now = Duration::from_mins(10);
    let began = now;
    let probed = Event::Probed {
        began,
        reached: true,
    };
    let compare = machine.step(probed, now);
    assert_eq!(
        applies(&compare),
        Some(config(1)),
        "a look without a reason"
    );
    machine.step(Event::Applied(Ok(false)), now);
    (machine, now)
}

#[test]
fn a_new_config_is_applied_at_once_and_good_when_the_api_server_was_reached_for_a_while() {
    let (mut machine, now) = settled();
    let action = machine.step(assigned(2), now);
    assert_eq!(applies(&action), Some(config(2)), "no trial, no wait");
    let action = machine.step(Event::Applied(Ok(true)), now);
    let (_, stored) = saved(&mut machine, action, now);
    let stored = stored.expect("it is written");
    assert_eq!((stored.good, stored.watched), (config(1), Some(config(2))));
    assert!(machine.probe_due().is_some());
    let early = now + SECOND;
    machine.step(
        Event::Probed {
            began: early,
            reached: true,
        },
        early,
    );
    let late = now + SETTLE;
    let action = machine.step(
        Event::Probed {
            began: late,
            reached: true,
        },
        late,
    );
    let (_, stored) = saved(&mut machine, action, late);
    let stored = stored.expect("it is written");
    assert_eq!((stored.good, stored.watched), (config(2), None));
    assert_eq!(machine.probe_due(), None, "a node at rest asks nobody");
}

#[test]
fn what_frr_refuses_is_taken_back_and_not_tried_again_until_it_changes() {
    let (mut machine, now) = settled();
    machine.step(assigned(2), now);
    let action = machine.step(fault(Cause::Config), now);
    assert_eq!(applies(&action), Some(config(1)));
    let action = machine.step(Event::Applied(Ok(true)), now);
    let (action, _) = saved(&mut machine, action, now);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let status = machine.status();
    assert_eq!(status.running, Some(config(1)));
    assert!(status.error.unwrap().contains("line 3 is refused"));
    let action = machine.step(assigned(2), now + SECOND);
    assert_eq!(applies(&action), None);
    let action = machine.step(assigned(3), now + SECOND);
    assert_eq!(applies(&action), Some(config(3)));
}

#[test]
fn what_frr_refuses_takes_back_no_earlier_change() {
    let (mut machine, now) = settled();
    machine.step(assigned(2), now);
    let action = machine.step(Event::Applied(Ok(true)), now);
    saved(&mut machine, action, now);
    machine.step(assigned(3), now + SECOND);
    let action = machine.step(fault(Cause::Config), now + SECOND);
    assert_eq!(
        applies(&action),
        Some(config(2)),
        "2 is not good yet, and runs"
    );
}

#[test]
fn a_change_that_cuts_off_the_api_server_is_taken_back_within_the_deadline() {
    let (mut machine, now) = settled();
    machine.step(assigned(2), now);
    let action = machine.step(Event::Applied(Ok(true)), now);
    saved(&mut machine, action, now);
    let mut at = now;
    let back = loop {
        at += SECOND;
        assert!(at < now + DEADLINE, "not taken back");
        let action = machine.step(
            Event::Probed {
                began: at,
                reached: false,
            },
            at,
        );
        let (action, _) = saved(&mut machine, action, at);
        if let Some(config) = applies(&action) {
            break config;
        }
    };
    assert_eq!(back, config(1));
    assert!(at + RETURN >= now + DEADLINE, "it had its time");
    let action = machine.step(Event::Applied(Ok(true)), at);
    saved(&mut machine, action, at);
    at += SECOND;
    machine.step(
        Event::Probed {
            began: at,
            reached: true,
        },
        at,
    );
    let error = machine.status().error.unwrap();
    assert!(
        error.contains("API server is not reached since the change"),
        "{error}"
    );
    assert_eq!(applies(&machine.step(Event::Woken, at)), None);
}

#[test]
fn a_change_that_was_not_the_cause_is_tried_again() {
    let (mut machine, now) = settled();
    machine.step(assigned(2), now);
    let action = machine.step(Event::Applied(Ok(true)), now);
    saved(&mut machine, action, now);
    let mut at = now;
    let mut applied = Vec::new();
    // The API server itself is away for two minutes.
    while at < now + Duration::from_mins(2) {
        at += SECOND;
        let mut action = machine.step(
            Event::Probed {
                began: at,
                reached: false,
            },
            at,
        );
        loop {
            action = match action {
                Action::Apply { config, .. } => {
                    applied.push(config);
                    machine.step(Event::Applied(Ok(true)), at)
                }
                Action::Save(_) => machine.step(Event::Saved(Ok(())), at),
                Action::Probe => machine.step(
                    Event::Probed {
                        began: at,
                        reached: false,
                    },
                    at,
                ),
                Action::Wait(_) => break,
            };
        }
    }
    assert_eq!(applied.first(), Some(&config(1)));
    assert_eq!(machine.status().running, Some(config(2)), "{applied:?}");
    assert_eq!(machine.status().error, None);
}

#[test]
fn a_daemon_that_is_silent_is_started_anew_and_the_config_is_kept() {
    let (mut machine, now) = settled();
    machine.step(assigned(2), now);
    let mut at = now;
    let mut fresh = false;
    for _ in 0..SILENCES {
        let Action::Wait(until) = machine.step(fault(Cause::Silence), at) else {
            panic!("a pause");
        };
        at = until;
        let action = machine.step(Event::Woken, at);
        assert_eq!(applies(&action), Some(config(2)));
        fresh = matches!(action, Action::Apply { fresh: true, .. });
    }
    assert!(fresh, "FRR is started anew");
}

#[test]
fn an_agent_that_starts_beside_a_running_frr_waits_for_the_nodes_config() {
    let stored = || Stored {
        good: config(1),
        watched: Some(config(2)),
        ..Stored::default()
    };
    let mut machine = Machine::new(true);
    let action = machine.step(started(stored(), false, true), Time::ZERO);
    assert_eq!(action, Action::Wait(GRACE));
    let action = machine.step(assigned(3), SECOND);
    assert_eq!(
        applies(&action),
        Some(config(3)),
        "nothing older comes between"
    );

    let mut machine = Machine::new(true);
    machine.step(started(stored(), false, true), Time::ZERO);
    let action = machine.step(Event::Woken, GRACE);
    assert_eq!(
        applies(&action),
        Some(config(2)),
        "what runs goes on running"
    );

    let mut machine = Machine::new(true);
    let action = machine.step(started(stored(), true, false), Time::ZERO);
    assert_eq!(
        applies(&action),
        Some(config(1)),
        "after a reboot, what is good"
    );
}

#[test]
fn drift_is_repaired_at_once_and_a_difference_that_keeps_coming_back_is_put_off() {
    let (mut machine, now) = settled();
    let mut at = now;
    for _ in 0..=FREE_REPAIRS {
        let action = machine.step(Event::Drifted, at);
        assert_eq!(applies(&action), Some(config(1)));
        machine.step(Event::Applied(Ok(true)), at);
        at += SECOND;
    }
    let action = machine.step(Event::Drifted, at);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
    let action = machine.step(assigned(2), at);
    assert_eq!(applies(&action), Some(config(2)), "a change does not wait");
}

#[test]
fn a_held_node_gets_nothing_new_and_is_repaired() {
    let (mut machine, now) = settled();
    let Event::Assigned(mut held) = assigned(2) else {
        panic!("assigned");
    };
    held.refusal = Some("the node is held: hardware swap".to_owned());
    assert_eq!(applies(&machine.step(Event::Assigned(held), now)), None);
    let action = machine.step(Event::Drifted, now);
    assert_eq!(applies(&action), Some(config(1)));
    assert!(machine.status().error.unwrap().contains("hardware swap"));
}

#[test]
fn a_node_that_never_had_such_a_router_is_left_alone() {
    let mut machine = Machine::new(true);
    let action = machine.step(started(Stored::default(), false, false), Time::ZERO);
    assert_eq!(action, Action::Wait(RESYNC));
    let action = machine.step(assigned(0), SECOND);
    assert!(matches!(action, Action::Wait(_)), "{action:?}");
}

/// A node with an FRR, a disk and an API server, as far as the machine sees them.
struct World {
    machine: Machine,
    now: Time,
    disk: Stored,
    /// What FRR runs.
    frr: Arc<HostConfig>,
    /// The API server itself is there.
    api: bool,
    /// Daemons do not answer.
    silent: bool,
    assigned: u16,
    /// Configs that were ever saved as good.
    good: Vec<Arc<HostConfig>>,
}

/// FRR refuses these.
fn is_refused(config: &HostConfig) -> bool {
    [4, 5].iter().any(|it| *config == *self::config(*it))
}

/// With these, the API server is not reached.
fn cuts_off(config: &HostConfig) -> bool {
    [6, 7].iter().any(|it| *config == *self::config(*it))
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            machine: Machine::new(true),
            now: Time::ZERO,
            disk: Stored::default(),
            frr: config(0),
            api: true,
            silent: false,
            assigned: 0,
            good: Vec::new(),
        };
        world.give(started(Stored::default(), false, false));
        world
    }

    fn reached(&self) -> bool {
        self.api && !cuts_off(&self.frr)
    }

    /// Gives an event, and does what comes of it until there is nothing to do.
    fn give(&mut self, event: Event) {
        let mut action = self.machine.step(event, self.now);
        for _ in 0..50 {
            let event = match action {
                Action::Wait(_) => return,
                Action::Probe => self.probe(),
                Action::Save(stored) => {
                    self.good.push(Arc::clone(&stored.good));
                    self.disk = stored;
                    Event::Saved(Ok(()))
                }
                Action::Apply { config, fresh } => {
                    let (message, cause) = ("no".to_owned(), Cause::Config);
                    if self.silent && !fresh {
                        let cause = Cause::Silence;
                        Event::Applied(Err(Fault { message, cause }))
                    } else if is_refused(&config) {
                        Event::Applied(Err(Fault { message, cause }))
                    } else {
                        self.silent = false;
                        let changed = self.frr != config;
                        self.frr = config;
                        Event::Applied(Ok(changed))
                    }
                }
            };
            action = self.machine.step(event, self.now);
        }
        panic!("the machine finds no rest");
    }

    fn probe(&self) -> Event {
        Event::Probed {
            began: self.now,
            reached: self.reached(),
        }
    }

    fn pass(&mut self, seconds: u32) {
        for _ in 0..seconds * 2 {
            self.now += Duration::from_millis(500);
            if self.machine.probe_due().is_some_and(|due| due <= self.now) {
                let probed = self.probe();
                self.give(probed);
            }
            self.give(Event::Woken);
        }
    }

    fn restart(&mut self, reboot: bool) {
        if reboot {
            self.frr = config(0);
        }
        let runs = self.frr.router.is_some();
        self.machine = Machine::new(true);
        let stored = self.disk.clone();
        // Time goes on from zero for a new agent; what counts are differences.
        self.give(started(stored, reboot, runs));
        if self.api {
            self.give(assigned(self.assigned));
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Assign(u16),
    Pass(u32),
    Drift,
    Restart(bool),
    Api(bool),
    Silence,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => (0_u16..8).prop_map(Deed::Assign),
        4 => (1_u32..20).prop_map(Deed::Pass),
        1 => Just(Deed::Drift),
        1 => any::<bool>().prop_map(Deed::Restart),
        1 => any::<bool>().prop_map(Deed::Api),
        1 => Just(Deed::Silence),
    ];
    prop::collection::vec(deed, 0..25)
}

proptest! {
    /// Whatever happens, the node comes to run what it is assigned, or, if that cannot be, a config with which the API server is reached.
    #[test]
    fn the_node_comes_to_what_it_is_assigned_or_to_a_config_that_works(deeds in deeds()) {
        let mut world = World::new();
        for deed in deeds {
            match deed {
                // The node's config comes from the API server.
                Deed::Assign(number) if world.reached() => {
                    world.assigned = number;
                    world.give(assigned(number));
                }
                Deed::Assign(_) => {}
                Deed::Pass(seconds) => world.pass(seconds),
                Deed::Drift => {
                    world.frr = config(0);
                    world.give(Event::Drifted);
                }
                Deed::Restart(reboot) => world.restart(reboot),
                Deed::Api(api) => world.api = api,
                Deed::Silence => world.silent = true,
            }
            prop_assert!(!is_refused(&world.frr));
            prop_assert!(world.good.iter().all(|good| !is_refused(good)));
        }
        world.api = true;
        world.pass(120);
        // An API server that came back just after a return looks as if the change had been the cause: a user asks for another attempt.
        if world.reached() {
            let Event::Assigned(mut again) = assigned(world.assigned) else {
                unreachable!("it is assigned");
            };
            again.retry = Some("again".to_owned());
            world.give(Event::Assigned(again));
        }
        world.pass(120);
        let wanted = config(world.assigned);
        if is_refused(&wanted) {
            prop_assert!(world.machine.status().error.is_some());
        } else if !cuts_off(&wanted) {
            prop_assert_eq!(&world.frr, &wanted);
            prop_assert_eq!(world.machine.status().running, Some(Arc::clone(&wanted)));
            prop_assert_eq!(&world.disk.good, &wanted);
        }
    }

    /// While the API server itself is there, a config that cuts it off never becomes good and does not stay longer than the deadline.
    #[test]
    fn a_config_that_cuts_off_the_node_does_not_stay(
        before in prop::collection::vec((1_u16..4, 0_u32..15), 0..5),
        bad in 6_u16..8,
        together in any::<bool>(),
    ) {
        let mut world = World::new();
        for (number, seconds) in before {
            world.assigned = number;
            world.give(assigned(number));
            world.pass(seconds);
        }
        if together {
            world.give(assigned(3));
        }
        world.assigned = bad;
        world.give(assigned(bad));
        world.pass(30);
        prop_assert!(world.reached());
        world.pass(120);
        prop_assert!(world.reached());
        prop_assert!(world.good.iter().all(|good| !cuts_off(good)));
        prop_assert!(world.machine.status().error.is_some());
    }
}
