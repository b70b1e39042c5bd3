//! Statements and blocks: what stands between typed configuration and lines.
//!
//! Print and diff both work on these, so that what is written at boot and what is typed into a running FRR cannot
//! drift apart.

use std::fmt::Display;

use crate::{config::Peer, secret::Password};

/// One line of configuration, and how it is rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a line, each set by a verb of its own"
)]
pub(crate) struct Statement {
    /// What the line sets: of two statements with the same slot the later replaces the earlier.
    pub(crate) slot: String,
    /// The line, without its secret.
    pub(crate) line: String,
    /// The secret that ends the line.
    pub(crate) secret: Option<Password>,
    /// The line that takes it back.
    pub(crate) undo: String,
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

impl Statement {
    /// A statement that is a slot of its own and is rolled back with `no`.
    pub(crate) fn new(line: String) -> Self {
        let undo = format!("no {line}");
        Self {
            slot: line.clone(),
            line,
            secret: None,
            undo,
            peer: None,
            declares: false,
            late: false,
            undo_first: false,
            resets: false,
        }
    }

    /// `<slot> <value>`, taken back with `no <slot>`.
    pub(crate) fn value(slot: String, value: impl Display) -> Self {
        let line = format!("{slot} {value}");
        Self {
            undo: format!("no {slot}"),
            slot,
            ..Self::new(line)
        }
    }

    pub(crate) fn slot(mut self, slot: String) -> Self {
        self.slot = slot;
        self
    }

    pub(crate) fn undo(mut self, undo: String) -> Self {
        self.undo = undo;
        self
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
