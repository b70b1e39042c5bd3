//! The law: whatever crashes and answers come, the node ends at the old or at a new config, and no unhealthy config is
//! ever confirmed. The disk, the node and the API server are a small model; the machine is the real one.

use super::*;

/// What happens next in the world.
#[derive(Clone, Debug)]
enum Luck {
    /// The action succeeds.
    Good,
    /// The action fails; an apply stops half way.
    Bad,
    /// An apply fails for good, or a measurement is unhealthy.
    Worse,
    /// The agent is killed before the action.
    KilledBefore,
    /// The agent is killed after the action, before it hears of the outcome.
    KilledAfter,
    /// The machine loses its power in the middle of the action.
    PowerLost,
    /// The agent is killed, and the journal and its copies are lost.
    JournalLost,
    /// The action succeeds, and a user wants no more of what is being tried.
    Interrupted,
    /// A config is assigned, then the action succeeds.
    Assigned(u32, bool),
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        6 => Just(Luck::Good),
        2 => Just(Luck::Bad),
        2 => Just(Luck::Worse),
        1 => Just(Luck::KilledBefore),
        1 => Just(Luck::KilledAfter),
        1 => Just(Luck::PowerLost),
        1 => Just(Luck::JournalLost),
        1 => Just(Luck::Interrupted),
        3 => (2..6_u32, any::<bool>()).prop_map(|(content, retry)| Luck::Assigned(content, retry)),
    ]
}

/// What kernel and FRR hold.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Bare,
    Between,
    At(Arc<Config>),
}

struct World {
    machine: Machine,
    disk: Journal,
    /// What the agent knows to be on disk: after a failed save it cannot know whether the new journal is there.
    known: Journal,
    node: Node,
    now: Time,
    /// What the API server says.
    published: Assigned,
    /// Configs that were measured as healthy after they had been applied.
    healthy: Vec<Arc<Config>>,
    /// The last measurement before the current trial.
    baseline: bool,
}

impl World {
    /// A node that runs config 1, or one on which Selvedge has never been.
    fn new(is_first: bool) -> Self {
        let (disk, node) = if is_first {
            (Journal::default(), Node::Bare)
        } else {
            (journal(1), Node::At(config(1)))
        };
        Self {
            machine: Machine::new(disk.clone()),
            known: disk.clone(),
            disk,
            node,
            now: Time::ZERO,
            published: Assigned::new(config(1)),
            healthy: vec![config(1)],
            baseline: true,
        }
    }

    fn is_bare(&self) -> bool {
        self.node == Node::Bare || self.node == Node::At(Arc::new(Config::empty()))
    }

    fn restart(&mut self, rebooted: bool) -> Action {
        if rebooted {
            self.node = Node::Bare;
        }
        self.machine = Machine::new(self.disk.clone());
        self.known = self.disk.clone();
        let started = Event::Started {
            has_objects: !self.is_bare(),
            rebooted,
        };
        self.machine.step(started, self.now)
    }

    /// Does an action and returns its event; checks what must hold at every instant.
    fn act(&mut self, action: &Action, luck: &Luck) -> Event {
        match action {
            Action::Wait(until) => {
                self.now = self.now.max(*until);
                if matches!(luck, Luck::Worse) && self.machine.checkup().is_some() {
                    return Event::Measured(health(false));
                }
                // The watch tells again what is published.
                Event::Assigned(self.published.clone())
            }
            Action::Save(journal) => match luck {
                // The rename may have happened before the error.
                Luck::Bad | Luck::Worse => {
                    if matches!(luck, Luck::Worse) {
                        self.disk = journal.clone();
                    }
                    Event::Saved(Err("no space left".to_owned()))
                }
                _ => {
                    self.disk = journal.clone();
                    self.known = journal.clone();
                    Event::Saved(Ok(()))
                }
            },
            Action::Measure { router, probes, .. } => {
                let good = !matches!(luck, Luck::Bad | Luck::Worse);
                let is_trial = self.node == Node::At(Arc::clone(probes))
                    && self.disk.confirmed.as_ref() != Some(probes);
                if is_trial {
                    if good || !self.baseline {
                        self.healthy.push(Arc::clone(probes));
                    } else {
                        self.healthy.retain(|it| it != probes);
                    }
                } else if router.as_ref() != Some(probes) {
                    self.baseline = good;
                }
                Event::Measured(health(good))
            }
            Action::Apply {
                config,
                purpose: Purpose::Adopt,
                ..
            } if self.node != Node::At(Arc::clone(config)) => fault(true, FrrFault::None),
            Action::Apply { config, .. } => self.apply(config, luck),
        }
    }

    fn apply(&mut self, config: &Arc<Config>, luck: &Luck) -> Event {
        let is_in = |journal: &Journal| {
            journal.confirmed.as_ref() == Some(config)
                || journal.trying.as_ref() == Some(config)
                || (journal.confirmed.is_none() && **config == Config::empty())
        };
        assert!(
            is_in(&self.disk) || is_in(&self.known),
            "{config:?} is not in the journal {:?}",
            self.disk
        );
        match luck {
            Luck::Bad | Luck::Worse => {
                self.node = Node::Between;
                Event::Applied(Err(Fault {
                    message: "refused".to_owned(),
                    permanent: matches!(luck, Luck::Worse),
                    frr: if matches!(luck, Luck::Worse) {
                        FrrFault::Refused
                    } else {
                        FrrFault::Silent
                    },
                }))
            }
            _ => {
                self.node = Node::At(Arc::clone(config));
                applied()
            }
        }
    }

    fn turn(&mut self, action: &Action, luck: &Luck) -> Action {
        let next = match luck {
            Luck::KilledBefore => self.restart(false),
            Luck::KilledAfter => {
                self.act(action, &Luck::Good);
                self.restart(false)
            }
            Luck::JournalLost => {
                self.disk = Journal::default();
                self.restart(false)
            }
            Luck::PowerLost => {
                // A save is atomic: it happened, or it did not.
                if let Action::Save(journal) = action {
                    self.disk = journal.clone();
                }
                self.restart(true)
            }
            Luck::Interrupted if matches!(action, Action::Wait(_)) => {
                self.machine.step(Event::Interrupted, self.now)
            }
            Luck::Assigned(content, retry) => {
                self.published = Assigned {
                    retry: retry.then(|| format!("{:?}", self.now)),
                    ..Assigned::new(config(*content))
                };
                let event = self.act(action, &Luck::Good);
                self.machine.step(event, self.now)
            }
            Luck::Good | Luck::Bad | Luck::Worse | Luck::Interrupted => {
                let event = self.act(action, luck);
                self.machine.step(event, self.now)
            }
        };
        if let Some(confirmed) = &self.disk.confirmed {
            assert!(
                self.healthy.contains(confirmed),
                "{confirmed:?} was confirmed without health"
            );
        }
        self.now += Duration::from_millis(100);
        next
    }
}

proptest! {
    #[test]
    fn a_node_ends_at_the_old_or_a_new_config_and_confirms_nothing_unhealthy(
        is_first in any::<bool>(),
        luck in proptest::collection::vec(luck(), 1..80),
    ) {
        let mut world = World::new(is_first);
        let mut action = world.restart(false);
        for luck in &luck {
            action = world.turn(&action, luck);
        }
        // From here on everything works.
        for _ in 0..200 {
            action = world.turn(&action, &Luck::Good);
        }
        prop_assert_eq!(&world.disk.trying, &None);
        let status = world.machine.status();
        let published = world.published.config.fingerprint();
        let Some(confirmed) = world.disk.confirmed.clone() else {
            // What ran when the journal was lost stays: to take everything away would be worse.
            prop_assert!(
                world.is_bare() || world.disk.adopted,
                "nothing is confirmed, and the node is at {:?}",
                world.node
            );
            prop_assert_eq!(status.state, State::Rejected);
            return Ok(());
        };
        prop_assert_eq!(&world.node, &Node::At(Arc::clone(&confirmed)));
        let at_assigned = confirmed.fingerprint() == published;
        let expected = if at_assigned { State::Confirmed } else { State::Rejected };
        prop_assert_eq!(status.state, expected);
        prop_assert!(status.running.is_none_or(|running| running == confirmed));
    }
}
