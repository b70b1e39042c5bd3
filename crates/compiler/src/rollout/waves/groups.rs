//! How far each wave is, for people who follow a rollout. Nothing is decided by it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    selvedge::Rollout,
    tcaas::{NetworkConfigRevisionStatus, RolloutWave},
};

use super::{Member, Time, Wave, Waves};

/// How many failure domains are named: a label can have as many values as there are nodes.
const MOST_DOMAINS: usize = 16;

/// Waves that are shown as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group<'a> {
    Canary,
    /// A failure domain, by its place in the order and its name.
    Domain(usize, &'a str),
    ControlPlane,
    Silent,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    ready: usize,
    total: usize,
}

/// How far the waves of a rollout are, in their order. A rollout that is complete keeps what was last stored.
pub fn progress_of_waves(
    settings: &Rollout,
    members: &BTreeMap<String, Member>,
    before: &NetworkConfigRevisionStatus,
    now: Time,
) -> Vec<RolloutWave> {
    let is_valid = before.completed_at.is_some();
    if is_valid && !members.values().any(|member| member.is_published) {
        return before.waves.clone();
    }
    let rollout = Waves {
        settings,
        members,
        is_valid,
        now,
    };
    let next = rollout.first(rollout.candidates());
    let next: BTreeSet<&str> = next.iter().map(|(node, _)| node.as_str()).collect();
    let mut counts: BTreeMap<Group<'_>, Count> = BTreeMap::new();
    for (node, member) in members.iter().filter(|(_, member)| Waves::is_in(member)) {
        let is_canary = member.is_published && member.is_canary;
        let group = if is_canary || next.contains(node.as_str()) {
            Group::Canary
        } else {
            rollout.group(member)
        };
        let count = counts.entry(group).or_default();
        count.total += 1;
        count.ready += usize::from(Waves::is_confirmed(member));
    }
    listed(&counts)
}

impl Waves<'_> {
    /// The group of a node that is not among the first. One that has confirmed stays where it is when its agent falls silent.
    fn group<'m>(&self, member: &'m Member) -> Group<'m> {
        if !member.is_alive && !Self::is_confirmed(member) {
            return Group::Silent;
        }
        if member.is_control_plane {
            return Group::ControlPlane;
        }
        Group::Domain(self.place(member), &member.domain)
    }
}

fn listed(counts: &BTreeMap<Group<'_>, Count>) -> Vec<RolloutWave> {
    let is_domain = |group: &Group<'_>| matches!(group, Group::Domain(..));
    let domains = counts.keys().filter(|group| is_domain(group)).count();
    let named = if domains > MOST_DOMAINS {
        MOST_DOMAINS - 1
    } else {
        MOST_DOMAINS
    };
    let mut waves = Vec::new();
    let mut rest = Count::default();
    let mut seen = 0;
    for (group, count) in counts {
        seen += usize::from(is_domain(group));
        if is_domain(group) && seen > named {
            rest.ready += count.ready;
            rest.total += count.total;
            if seen == domains {
                let name = format!("{} more failure domains", domains - named);
                waves.push(wave(name, rest));
            }
        } else {
            waves.push(wave(name(*group), *count));
        }
    }
    waves
}

fn name(group: Group<'_>) -> String {
    match group {
        Group::Canary => Wave::Canary.to_string(),
        Group::Domain(place, name) => {
            let name = name.to_owned();
            Wave::Domain { place, name }.to_string()
        }
        Group::ControlPlane => "control-plane nodes".to_owned(),
        Group::Silent => Wave::Silent.to_string(),
    }
}

fn wave(name: String, Count { ready, total }: Count) -> RolloutWave {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    RolloutWave {
        name,
        ready: number(ready),
        total: number(total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::Progress;

    fn queued(domain: &str) -> Member {
        Member {
            domain: domain.to_owned(),
            ..Member::queued(&BTreeMap::new(), &Rollout::default())
        }
    }

    fn published(domain: &str, progress: Progress) -> Member {
        Member {
            progress,
            is_published: true,
            published_at: Some(5),
            ..queued(domain)
        }
    }

    fn members(all: impl IntoIterator<Item = Member>) -> BTreeMap<String, Member> {
        let named = (0..).zip(all);
        named
            .map(|(number, member)| (format!("n{number:03}"), member))
            .collect()
    }

    fn told(
        members: &BTreeMap<String, Member>,
        before: &NetworkConfigRevisionStatus,
    ) -> Vec<String> {
        let waves = progress_of_waves(&Rollout::default(), members, before, 10);
        let told = waves.iter();
        told.map(|one| format!("{} {}/{}", one.name, one.ready, one.total))
            .collect()
    }

    #[test]
    fn each_wave_is_counted_in_the_order_of_the_rollout() {
        let canary = Member {
            is_canary: true,
            ..published("b", Progress::Ready)
        };
        let silent = Member {
            is_alive: false,
            ..queued("a")
        };
        let control_plane = Member {
            is_control_plane: true,
            ..queued("a")
        };
        let all = [
            canary,
            published("a", Progress::Ready),
            published("a", Progress::Ongoing),
            queued("b"),
            silent,
            control_plane,
        ];
        let waves = told(&members(all), &NetworkConfigRevisionStatus::default());
        let wanted = [
            "canary 1/1",
            "failure domain \"a\" 1/2",
            "failure domain \"b\" 0/1",
            "control-plane nodes 0/1",
            "silent nodes 0/1",
        ];
        assert_eq!(waves, wanted);
    }

    #[test]
    fn before_the_rollout_begins_the_node_that_will_be_first_is_the_canary() {
        let waves = told(
            &members([queued("a"), queued("a")]),
            &NetworkConfigRevisionStatus::default(),
        );
        assert_eq!(waves, ["canary 0/1", "failure domain \"a\" 0/1"]);
    }

    #[test]
    fn nodes_that_do_not_change_are_in_no_wave() {
        let same = Member {
            progress: Progress::Ready,
            ..queued("a")
        };
        let waves = told(&members([same]), &NetworkConfigRevisionStatus::default());
        assert_eq!(waves, [""; 0]);
    }

    #[test]
    fn many_failure_domains_are_counted_together() {
        let all = (0..40).map(|domain| queued(&format!("d{domain:02}")));
        let waves = told(&members(all), &NetworkConfigRevisionStatus::default());
        assert_eq!(waves.len(), MOST_DOMAINS + 1);
        // One of the nodes is the canary.
        assert_eq!(waves.first().map(String::as_str), Some("canary 0/1"));
        let last = waves.last().map(String::as_str);
        assert_eq!(last, Some("24 more failure domains 0/24"));
    }

    #[test]
    fn a_complete_rollout_keeps_its_waves() {
        let waves = vec![RolloutWave {
            name: "canary".to_owned(),
            ready: 1,
            total: 1,
        }];
        let before = NetworkConfigRevisionStatus {
            completed_at: Some("2026-01-01T00:00:00Z".to_owned()),
            waves,
            ..NetworkConfigRevisionStatus::default()
        };
        let same = Member {
            progress: Progress::Ready,
            ..queued("a")
        };
        assert_eq!(told(&members([same]), &before), ["canary 1/1"]);
    }
}
