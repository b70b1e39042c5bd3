//! Ring 4, the ends of a trial: an agent that is killed just before or just after a config is confirmed, or its return is recorded, leaves
//! what its journal says.

use serde_json::Value;

use crate::{
    ring4::Node,
    ring4_safety::{plugged, returns_by_itself, while_trying},
};

const ATTEMPTS: usize = 8;

/// Where the agent is killed: when the new journal is written and does not count yet, or as soon as it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

impl Moment {
    /// Waits for it, and kills. What waits has a real-time priority and is woken by the file system, so that it runs before the system call of
    /// the agent returns on the one processor of the guest.
    fn script(self) -> String {
        let (event, is_there) = match self {
            // Something is created, or renamed to a name in there.
            Self::Before => ("0x100", r#"-e "$state/journal.new""#),
            Self::After => ("0x80", r#"$body !~ /"trying"/"#),
        };
        format!(
            r#"state=/var/lib/selvedge; cp $state/frr.conf /run/frr.conf.old
chrt --fifo 50 perl -e '
    my ($state, $agent) = @ARGV;
    alarm 60;
    my $inotify = syscall 253;
    syscall 254, $inotify, $state, {event};
    open my $events, "<&=", $inotify or die;
    my $body;
    do {{
        sysread $events, $body, 4096;
        open my $journal, "<", "$state/journal" or die;
        $body = join "", <$journal>;
    }} until {is_there};
    kill 9, $agent' $state $agent || true
status=0; wait $agent || status=$?
[ $status != 137 ] || echo was killed
grep -q '"trying"' $state/journal && echo names the trial
[ ! -e $state/journal.new ] || echo was being written
! cmp -s $state/frr.conf /run/frr.conf.old || echo old frr.conf"#
        )
    }

    /// Whether the kill was at that moment. An agent that had ended by itself was not killed.
    fn is_met(self, said: &str) -> bool {
        let (names_the_trial, is_being_written, is_old) = (
            said.contains("names the trial"),
            said.contains("was being written"),
            said.contains("old frr.conf"),
        );
        said.contains("was killed")
            && match self {
                Self::Before => names_the_trial && is_being_written,
                Self::After => !names_the_trial && is_old,
            }
    }
}

/// Tries a config and kills the agent at the moment when its end is written; the node returns to `left`.
fn killed(
    node: &Node,
    (old, new, left): (&Value, &Value, &Value),
    moment: Moment,
) -> anyhow::Result<()> {
    let mut said = String::new();
    for attempt in 1..=ATTEMPTS {
        node.apply(old)?.ok()?;
        said = while_trying(node, new, &moment.script())?;
        if moment.is_met(&said) {
            eprintln!("{moment:?}: met in attempt {attempt}");
            returns_by_itself(node, left)?;
            let confirmed = node.script("cat /var/lib/selvedge/frr.conf")?;
            let revision = left["spec"]["revision"].as_str().expect("a revision");
            assert!(
                confirmed.contains(revision),
                "frr.conf is of another config"
            );
            return Ok(());
        }
    }
    anyhow::bail!("{moment:?}: not met in {ATTEMPTS} attempts: {said}")
}

#[test]
fn an_agent_killed_when_the_end_of_a_trial_is_written_leaves_what_the_journal_says()
-> anyhow::Result<()> {
    let node = Node::start()?;
    let (old, new) = (
        plugged(&node.fabric, &["shop"])?,
        plugged(&node.fabric, &[])?,
    );
    let mut dead = old.clone();
    dead["spec"]["revision"] = "dead".into();
    dead["spec"]["underlay"]["neighbors"][0]["address"] = "192.0.2.99".into();
    dead["spec"]["health"]["confirmDeadline"] = "5s".into();
    // The confirmation, and the record of a return.
    killed(&node, (&old, &new, &old), Moment::Before)?;
    killed(&node, (&old, &new, &new), Moment::After)?;
    killed(&node, (&old, &dead, &old), Moment::Before)?;
    killed(&node, (&old, &dead, &old), Moment::After)
}
