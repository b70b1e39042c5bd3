//! What a diff comes to: lines in order, with what each of them does to sessions.

use std::{collections::BTreeSet, fmt};

use api::value::IfName;

use crate::{config::Peer, secret::Password};

/// The least lines that turn one configuration into another.
///
/// # How to apply it
/// Give FRR one of [`Change::batches`] after the other, and stop at the first that it refuses. Commands go to **one** `vtysh -N
/// <instance>` as repeated `-c`: vtysh takes them in order and stops with a return code other than 0 at the first line that FRR
/// refuses. `vtysh -f` is for a fresh boot only: it hands the file to all daemons at once, so lines of different daemons have
/// no order, and it goes on after an error. Lines of a `vtysh -c` are visible in the process list, so a line with a password is
/// a batch of its own, for bgpd's socket. What FRR prints about a refused line repeats the line with its password: it belongs
/// in no log.
///
/// vtysh looks for a line that its block does not know in the blocks around it and goes on from there, without a word.
/// So every supported version must accept a line in its block; all lines of this crate were tested on all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The lines, each with the blocks it stands in.
    pub steps: Vec<Step>,
    /// Lines that FRR takes only after the kernel's devices are gone.
    pub after_devices: Vec<Step>,
    /// Commands (not configuration) that make sessions look at changed filters at once; to be run afterwards.
    pub clears: Vec<String>,
    /// Sessions that the lines close.
    pub resets: BTreeSet<Session>,
    /// What becomes of the BGP instance of the default VRF, and of all others with it.
    pub router: RouterChange,
}

/// What a change does to the BGP instance of the default VRF. When it is removed, all others are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouterChange {
    /// It stays as it is, or others run without it.
    #[default]
    None,
    /// It is added, as the first of all.
    Begins,
    /// It is removed.
    Ends,
    /// It is made anew, because its AS changes.
    Replaced,
}

impl RouterChange {
    /// Whether FRR is to be started anew before the lines are given to it. `is_fresh`: it was started a moment ago and had no router yet.
    ///
    /// The lines are right, but bgpd 10.7.1 hides an instance that exchanged routes with VRFs instead of deleting it. It crashes when an
    /// instance of any AS is added later and meets what was left. No session survives such a change anyway.
    pub fn needs_fresh_frr(self, is_fresh: bool) -> bool {
        match self {
            Self::None => false,
            Self::Begins => !is_fresh,
            Self::Ends | Self::Replaced => true,
        }
    }
}

/// Lines inside one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The lines that lead into the block, outermost first; none for lines outside of blocks.
    pub path: Vec<String>,
    /// The lines inside.
    pub lines: Vec<Line>,
}

impl Step {
    pub(crate) fn root(text: String) -> Self {
        let line = Line {
            text,
            secret: None,
            disruption: Disruption::None,
        };
        Self {
            path: Vec::new(),
            lines: vec![line],
        }
    }
}

/// One line to be typed. `Display` and `Debug` leave its secret out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub(super) text: String,
    pub(super) secret: Option<Password>,
    pub(super) disruption: Disruption,
}

/// What a line does to traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disruption {
    /// Sessions stay; routes may change.
    #[default]
    None,
    /// Something new appears; nothing that was there is touched.
    Additive,
    /// A session is closed.
    SessionReset,
}

/// A session that a change closes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    /// The VRF of its BGP instance; `None` is the default VRF.
    pub vrf: Option<IfName>,
    /// The peer; `None` means all of the instance.
    pub peer: Option<Peer>,
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.peer {
            Some(peer) => write!(f, "{peer}")?,
            None => f.write_str("all peers")?,
        }
        match &self.vrf {
            Some(vrf) => write!(f, " in VRF {vrf}"),
            None => Ok(()),
        }
    }
}

impl Line {
    /// What the line does to sessions.
    pub fn disruption(&self) -> Disruption {
        self.disruption
    }

    /// Whether a password stands in the line.
    pub fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// The line with its password: for FRR, not for a log.
    pub fn reveal(&self) -> String {
        match &self.secret {
            None => self.text.clone(),
            Some(secret) => format!("{} {}", self.text, secret.reveal()),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.secret.is_some() {
            f.write_str(" <hidden>")?;
        }
        Ok(())
    }
}

impl Change {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.after_devices.is_empty() && self.clears.is_empty()
    }

    /// The worst that any line does.
    pub fn disruption(&self) -> Disruption {
        self.lines().map(Line::disruption).max().unwrap_or_default()
    }

    /// How many lines there are, besides those that only lead into blocks.
    pub fn n_lines(&self) -> usize {
        self.lines().count()
    }

    /// Whether a password stands in one of the lines.
    pub fn has_secret(&self) -> bool {
        self.lines().any(Line::has_secret)
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        let all = self.steps.iter().chain(&self.after_devices);
        all.flat_map(|step| &step.lines)
    }

    /// The lines before the devices change.
    ///
    /// # Guarantees
    /// * The password of a new session comes before the lines that let the session come up, so a session whose password is
    ///   refused never runs without it.
    /// * Each batch enters the blocks of its lines by itself.
    pub fn batches(&self) -> Vec<Batch> {
        batches(&self.steps)
    }

    /// The lines after the devices are gone.
    pub fn batches_after_devices(&self) -> Vec<Batch> {
        batches(&self.after_devices)
    }

    /// The commands to be run when all lines are in effect.
    pub fn clear_batches(&self) -> Vec<Batch> {
        let chunks = self.clears.chunks(BATCH_LINES);
        chunks
            .map(|chunk| Batch::Commands(chunk.to_vec()))
            .collect()
    }
}

/// For people and logs: without secrets.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, line) in walk(&self.steps, ToString::to_string) {
            writeln!(f, "{}{line}", " ".repeat(depth))?;
        }
        if !self.after_devices.is_empty() {
            writeln!(f, "! after the devices are gone")?;
        }
        for (depth, line) in walk(&self.after_devices, ToString::to_string) {
            writeln!(f, "{}{line}", " ".repeat(depth))?;
        }
        for clear in &self.clears {
            writeln!(f, "! {clear}")?;
        }
        Ok(())
    }
}

/// A part of a change that FRR is given at once. `Debug` leaves the secret out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Commands for one vtysh. No password is among them.
    Commands(Vec<String>),
    /// A line with a password, for the socket of bgpd.
    Secret {
        /// The lines that lead into its block, outermost first.
        path: Vec<String>,
        /// The line.
        line: Line,
    },
}

impl Batch {
    /// Whether it is given to a vtysh that enters the configuration mode.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Commands(commands) => commands.first().is_some_and(|it| it == CONFIGURE),
            Self::Secret { .. } => false,
        }
    }
}

/// Enters the configuration mode.
const CONFIGURE: &str = "configure terminal";

/// How many lines a batch has at most, besides those that lead into blocks. The kernel limits the length of an argument list.
const BATCH_LINES: usize = 1000;

fn batches(steps: &[Step]) -> Vec<Batch> {
    let mut done = Vec::new();
    let mut open: Vec<Step> = Vec::new();
    let mut size = 0;
    let flush = |open: &mut Vec<Step>, size: &mut usize, done: &mut Vec<Batch>| {
        *size = 0;
        let commands = commands(&std::mem::take(open));
        if !commands.is_empty() {
            done.push(Batch::Commands(commands));
        }
    };
    for Step { path, lines } in steps {
        let path = || path.clone();
        if lines.is_empty() {
            open.push(Step {
                path: path(),
                lines: Vec::new(),
            });
        }
        for line in lines {
            let line = line.clone();
            if line.has_secret() {
                flush(&mut open, &mut size, &mut done);
                done.push(Batch::Secret { path: path(), line });
                continue;
            }
            if size == BATCH_LINES {
                flush(&mut open, &mut size, &mut done);
            }
            size += 1;
            open.push(Step {
                path: path(),
                lines: vec![line],
            });
        }
    }
    flush(&mut open, &mut size, &mut done);
    done
}

fn commands(steps: &[Step]) -> Vec<String> {
    let lines = walk(steps, Line::reveal);
    if lines.is_empty() {
        return Vec::new();
    }
    std::iter::once(CONFIGURE.to_owned())
        .chain(lines.into_iter().map(|(_, line)| line))
        .collect()
}

/// All lines with their depth, entering and leaving no more blocks than needed.
fn walk(steps: &[Step], text: impl Fn(&Line) -> String) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut open: &[String] = &[];
    for Step { path, lines } in steps {
        let common = open.iter().zip(path).take_while(|(a, b)| a == b).count();
        // A step without lines is about its block itself, which must then be entered.
        let common = if lines.is_empty() && common == path.len() {
            common.saturating_sub(1)
        } else {
            common
        };
        for depth in (common..open.len()).rev() {
            out.push((depth, "exit".to_owned()));
        }
        for (depth, enter) in path.iter().enumerate().skip(common) {
            out.push((depth, enter.clone()));
        }
        out.extend(lines.iter().map(|line| (path.len(), text(line))));
        open = path;
    }
    for depth in (0..open.len()).rev() {
        out.push((depth, "exit".to_owned()));
    }
    out
}
