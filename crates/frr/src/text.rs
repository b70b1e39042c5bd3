//! Statements and blocks: what stands between typed configuration and lines.
//!
//! Print and diff both work on these, so that what is written at boot and what is typed into a running FRR cannot
//! drift apart.

use std::fmt::{Display, Write as _};

use crate::{config::Peer, secret::Password};

/// One line of configuration, and how it is rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a line, each set by a verb of its own"
)]
pub(crate) struct Statement {
    slot: Slot,
    /// The line, without its secret.
    pub(crate) line: String,
    /// The secret that ends the line.
    pub(crate) secret: Option<Password>,
    undo: Undo,
    /// The session it belongs to; it goes when the session is removed.
    pub(crate) peer: Option<Peer>,
    /// Whether it is what makes the session, so that taking it back removes the session.
    pub(crate) declares: bool,
    /// Set after everything else of its block and taken back before.
    pub(crate) late: bool,
    /// Whether FRR must forget the old value before it takes a new one.
    pub(crate) undo_first: bool,
    /// Whether setting or taking it back closes sessions.
    pub(crate) resets: bool,
}

/// What a line sets. Nearly always it is the beginning of the line; there are tens of thousands of lines on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    /// So many bytes of the line.
    Beginning(usize),
    /// Another text.
    Text(String),
}

/// The line that takes another one back.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Undo {
    /// `no` and the whole line.
    Line,
    /// `no` and what the line sets.
    Slot,
    /// Another text.
    Text(String),
}

impl Statement {
    /// A statement that is a slot of its own and is rolled back with `no`.
    pub(crate) fn new(line: String) -> Self {
        Self {
            slot: Slot::Beginning(line.len()),
            line,
            secret: None,
            undo: Undo::Line,
            peer: None,
            declares: false,
            late: false,
            undo_first: false,
            resets: false,
        }
    }

    /// `<slot> <value>`, taken back with `no <slot>`.
    pub(crate) fn value(slot: String, value: impl Display) -> Self {
        let length = slot.len();
        let mut line = slot;
        line.push(' ');
        // A String takes whatever is written.
        let _ = write!(line, "{value}");
        Self {
            slot: Slot::Beginning(length),
            undo: Undo::Slot,
            ..Self::new(line)
        }
    }

    pub(crate) fn slot(mut self, slot: String) -> Self {
        self.slot = if self.line.starts_with(&slot) {
            Slot::Beginning(slot.len())
        } else {
            Slot::Text(slot)
        };
        self
    }

    pub(crate) fn undo(mut self, undo: String) -> Self {
        self.undo = Undo::Text(undo);
        self
    }

    /// What the line sets: of two statements with the same key the later replaces the earlier.
    pub(crate) fn key(&self) -> &str {
        match &self.slot {
            Slot::Beginning(length) => self.line.get(..*length).unwrap_or(&self.line),
            Slot::Text(slot) => slot,
        }
    }

    /// The line that takes it back.
    pub(crate) fn undone(&self) -> String {
        match &self.undo {
            Undo::Line => format!("no {}", self.line),
            Undo::Slot => format!("no {}", self.key()),
            Undo::Text(undo) => undo.clone(),
        }
    }

    pub(crate) fn secret(mut self, secret: Password) -> Self {
        self.secret = Some(secret);
        self
    }

    pub(crate) fn of(mut self, peer: &Peer) -> Self {
        self.peer = Some(peer.clone());
        self
    }

    pub(crate) fn declares(mut self) -> Self {
        self.declares = true;
        self
    }

    pub(crate) fn late(mut self) -> Self {
        self.late = true;
        self
    }

    pub(crate) fn undo_first(mut self) -> Self {
        self.undo_first = true;
        self
    }

    pub(crate) fn resets(mut self) -> Self {
        self.resets = true;
        self
    }
}

/// A node of FRR's configuration with the lines inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// What the block is, whatever its attributes.
    pub(crate) key: String,
    /// The line that opens it.
    pub(crate) enter: String,
    /// The line that closes it.
    pub(crate) exit: &'static str,
    /// The line that removes it as a whole, where FRR has one.
    pub(crate) remove: Option<String>,
    /// Its own lines.
    pub(crate) statements: Vec<Statement>,
    /// The blocks inside it, which follow its own lines.
    pub(crate) blocks: Vec<Self>,
}

impl Block {
    pub(crate) fn new(enter: String, exit: &'static str) -> Self {
        Self {
            key: enter.clone(),
            enter,
            exit,
            remove: None,
            statements: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Whether there is nothing inside.
    pub(crate) fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.blocks.is_empty()
    }

    /// The same block before anything was said inside it.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            statements: Vec::new(),
            blocks: Vec::new(),
            ..self.clone()
        }
    }
}
