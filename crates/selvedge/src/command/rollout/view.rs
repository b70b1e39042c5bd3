//! How a rollout is shown.

use std::collections::BTreeMap;

use api::tcaas::{NetworkConfigRevisionStatus, RolloutWave};

use super::Shown;
use crate::output::{self, Frame, Style, counted, styled};

/// How many nodes are named where not all are asked for.
const NODES: usize = 10;

/// Width of a progress bar.
const WIDTH: usize = 30;

/// The nodes that do not run their config, by what they do with it.
type Waiting = BTreeMap<String, Vec<String>>;

/// A rollout at one time, for one who follows it.
pub(in crate::command) fn frame(shown: &Shown, nodes: &Waiting, all: bool) -> Frame {
    Frame {
        screen: screen(shown, nodes, all),
        line: line(shown),
    }
}

/// A rollout in one line, without colours.
pub(in crate::command) fn line(Shown { revision, status }: &Shown) -> String {
    let (ready, total) = (status.ready, counted(as_usize(status.total), "node"));
    let mut parts = vec![
        format!("revision {revision}  {}", phase(status)),
        format!("{ready} of {total}"),
    ];
    let wave = status.waves.iter();
    let wave = wave.filter(|one| status.wave.as_ref() == Some(&one.name));
    parts.extend(
        wave.map(|RolloutWave { name, ready, total }| format!("{name}: {ready} of {total}")),
    );
    parts.extend(others(status));
    parts.extend(failure(status));
    parts.extend(status.unapproved_message.clone());
    parts.extend(status.unwritten_message.clone());
    parts.join("; ").replace('\n', " ")
}

/// A rollout in several lines, with bars.
pub(in crate::command) fn screen(shown: &Shown, nodes: &Waiting, all: bool) -> String {
    let Shown { revision, status } = shown;
    let style = match status.phase.as_deref() {
        Some("Complete") => Style::Green,
        Some("Failed") => Style::Red,
        Some("Paused" | "Unapproved") => Style::Yellow,
        _ => Style::Bold,
    };
    let wave = status.wave.as_ref();
    let wave = wave.map(|wave| format!(", wave: {wave}"));
    let (wave, phase_text) = (wave.unwrap_or_default(), styled(style, phase(status)));
    let (ready, total) = (as_usize(status.ready), as_usize(status.total));
    let mut lines = vec![
        format!("revision {revision}  {phase_text}{wave}"),
        format!(
            "{}  {ready} of {}",
            bar(ready, total),
            counted(total, "node")
        ),
    ];
    lines.extend(waves(&status.waves));
    let others = others(status);
    if !others.is_empty() {
        lines.push(others.join(", "));
    }
    for (status, nodes) in nodes {
        let shown = if all { nodes.len() } else { NODES };
        let names: Vec<&str> = nodes.iter().take(shown).map(String::as_str).collect();
        let more = match nodes.len().saturating_sub(shown) {
            0 => String::new(),
            more => format!(" and {more} more (--all names them)"),
        };
        lines.push(format!("  {status}: {}{more}", names.join(", ")));
    }
    if let Some(failure) = failure(status) {
        lines.push(failure);
        lines.push(
            "correct the change or the node; `selvedge rollout retry` tries it again as it is"
                .to_owned(),
        );
    }
    lines.extend(status.unwritten_message.clone());
    if let Some(message) = &status.unapproved_message {
        lines.push(message.clone());
        lines.push(format!("`selvedge rollout approve {revision}` approves it"));
    }
    if status.phase.as_deref() == Some("Paused") {
        lines.push("`selvedge rollout resume` continues it".to_owned());
    }
    lines.join("\n") + "\n"
}

fn phase(status: &NetworkConfigRevisionStatus) -> &str {
    status.phase.as_deref().unwrap_or("Pending")
}

/// The nodes that are not ready, by how far they are.
fn others(status: &NetworkConfigRevisionStatus) -> Vec<String> {
    let others = [
        (status.ongoing, "changing"),
        (status.queued, "waiting"),
        (status.failed, "failed"),
        (status.unapproved, "unapproved"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    others
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
}

/// The node that did not take the revision.
fn failure(status: &NetworkConfigRevisionStatus) -> Option<String> {
    let node = status.failed_node.as_ref().filter(|_| status.is_invalid)?;
    let message = status.failed_message.as_deref();
    let message = message.unwrap_or("no reason reported");
    Some(format!("node {node} did not apply it: {message}"))
}

/// A bar for each wave.
fn waves(waves: &[RolloutWave]) -> Vec<String> {
    let names = waves.iter().map(|wave| wave.name.chars().count());
    let width = names.max().unwrap_or_default();
    let line = |RolloutWave { name, ready, total }: &RolloutWave| {
        let bar = bar(as_usize(*ready), as_usize(*total));
        format!("{bar}  {name:<width$}  {ready} of {total}")
    };
    waves.iter().map(line).collect()
}

fn as_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// How much is done, as a bar.
fn bar(done: usize, of: usize) -> String {
    let filled = (done * WIDTH).checked_div(of).unwrap_or(WIDTH).min(WIDTH);
    let (full, empty) = if output::is_for_people() {
        ("━", "─")
    } else {
        ("#", "-")
    };
    format!("[{}{}]", full.repeat(filled), empty.repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(name: &str, ready: u32, total: u32) -> RolloutWave {
        let name = name.to_owned();
        RolloutWave { name, ready, total }
    }

    fn shown(status: NetworkConfigRevisionStatus) -> Shown {
        Shown {
            revision: "0123456789".to_owned(),
            status,
        }
    }

    fn progressing() -> NetworkConfigRevisionStatus {
        NetworkConfigRevisionStatus {
            phase: Some("Progressing".to_owned()),
            wave: Some("failure domain \"a\"".to_owned()),
            waves: vec![
                wave("canary", 1, 1),
                wave("failure domain \"a\"", 1, 2),
                wave("control-plane nodes", 0, 3),
            ],
            ready: 2,
            ongoing: 1,
            queued: 3,
            total: 6,
            ..NetworkConfigRevisionStatus::default()
        }
    }

    #[test]
    fn every_wave_has_a_bar() {
        let nodes = BTreeMap::from([("not answered".to_owned(), vec!["n3".to_owned()])]);
        // On a terminal there are colours and other characters.
        let [all, canary, domain, control_plane] =
            [(2, 6), (1, 1), (1, 2), (0, 3)].map(|(done, of)| bar(done, of));
        let phase = styled(Style::Bold, "Progressing");
        let expected = format!(
            "revision 0123456789  {phase}, wave: failure domain \"a\"\n\
             {all}  2 of 6 nodes\n\
             {canary}  canary               1 of 1\n\
             {domain}  failure domain \"a\"   1 of 2\n\
             {control_plane}  control-plane nodes  0 of 3\n\
             1 changing, 3 waiting\n  not answered: n3\n"
        );
        assert_eq!(screen(&shown(progressing()), &nodes, false), expected);
    }

    #[test]
    fn a_bar_is_as_full_as_much_is_done() {
        let full = |bar: &str| bar.matches(['#', '━']).count();
        let filled = [(0, 3), (1, 2), (3, 3), (0, 0)].map(|(done, of)| full(&bar(done, of)));
        assert_eq!(filled, [0, WIDTH / 2, WIDTH, WIDTH]);
    }

    #[test]
    fn one_line_says_how_far_the_rollout_and_its_wave_are() {
        assert_eq!(
            line(&shown(progressing())),
            "revision 0123456789  Progressing; 2 of 6 nodes; failure domain \"a\": 1 of 2; 1 changing; 3 waiting"
        );
    }

    #[test]
    fn a_failure_and_what_needs_an_approval_are_in_the_line_and_on_the_screen() {
        let failed = shown(NetworkConfigRevisionStatus {
            phase: Some("Failed".to_owned()),
            is_invalid: true,
            failed: 1,
            failed_node: Some("n1".to_owned()),
            failed_message: Some("bgpd is down:\nno socket".to_owned()),
            total: 2,
            ready: 1,
            ..NetworkConfigRevisionStatus::default()
        });
        assert_eq!(
            line(&failed),
            "revision 0123456789  Failed; 1 of 2 nodes; 1 failed; node n1 did not apply it: bgpd is down: no socket"
        );
        assert!(screen(&failed, &BTreeMap::new(), false).contains("selvedge rollout retry"));
        let held = shown(NetworkConfigRevisionStatus {
            phase: Some("Unapproved".to_owned()),
            unapproved_message: Some("it removes 3 of 4 VRFs".to_owned()),
            ..NetworkConfigRevisionStatus::default()
        });
        let told = line(&held);
        assert!(told.ends_with("; it removes 3 of 4 VRFs"), "{told}");
        let told = screen(&held, &BTreeMap::new(), false);
        assert!(
            told.contains("`selvedge rollout approve 0123456789` approves it"),
            "{told}"
        );
    }
}
