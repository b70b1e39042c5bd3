//! Statements and blocks → steps.

use std::collections::{BTreeMap, BTreeSet};

use api::value::IfName;

use super::{
    change::{Change, Disruption, Line, Session, Step},
    features,
};
use crate::{
    config::{Bgp, Peer, Vrf},
    lower,
    text::{Block, Statement},
};

/// Collects steps and the sessions they close.
#[derive(Default)]
pub(super) struct Writer {
    change: Change,
    /// The BGP instance that is being written.
    vrf: Option<IfName>,
    /// New sessions of that instance: changing them interrupts no traffic.
    new_peers: BTreeSet<Peer>,
    /// Whether the block that is being written is new as a whole.
    all_new: bool,
}

impl Writer {
    pub(super) fn finish(self) -> Change {
        self.change
    }

    /// A line outside of all blocks.
    pub(super) fn root(&mut self, text: String) {
        self.change.steps.push(Step::root(text));
    }

    pub(super) fn vrf(&mut self, name: &IfName, old: &Vrf, new: &Vrf) {
        let (old, new) = (
            lower::vrf(name, old, features()),
            lower::vrf(name, new, features()),
        );
        self.block(&[], Some(&old), &new);
    }

    pub(super) fn new_vrf(&mut self, name: &IfName, vrf: &Vrf) {
        self.block(&[], None, &lower::vrf(name, vrf, features()));
    }

    /// A block that is there from now on, and empty.
    pub(super) fn declare(&mut self, enter: String) {
        self.push(&[enter], Vec::new());
    }

    /// An instance that stays or is new. What belongs to a session that goes need not be taken back line by line.
    pub(super) fn instance(&mut self, vrf: Option<&IfName>, old: Option<&Bgp>, new: &Bgp) {
        self.vrf = vrf.cloned();
        self.new_peers = new.neighbors.keys().cloned().collect();
        let block = lower::instance(vrf, new, features());
        let old = old.map(|old| {
            self.new_peers
                .retain(|peer| !old.neighbors.contains_key(peer));
            let gone = |peer: &Peer| !new.neighbors.contains_key(peer);
            without(lower::instance(vrf, old, features()), &gone)
        });
        self.block(&[], old.as_ref(), &block);
        self.vrf = None;
        self.new_peers.clear();
    }

    /// An instance that goes as a whole, and its sessions with it. One that comes back is announced even without sessions: its routes
    /// are gone meanwhile.
    pub(super) fn instance_removed(&mut self, vrf: Option<&IfName>, bgp: &Bgp, comes_back: bool) {
        let block = lower::instance(vrf, bgp, features());
        let disruption = if bgp.neighbors.is_empty() && !comes_back {
            Disruption::None
        } else {
            self.change.resets.insert(Session {
                vrf: vrf.cloned(),
                peer: None,
            });
            Disruption::SessionReset
        };
        let lines = block.remove.into_iter().map(|text| Line {
            text,
            secret: None,
            disruption,
        });
        self.push(&[], lines.collect());
    }

    /// Blocks of one kind: entries of a route map. Those that stay or come are written first, so that no moment is
    /// without a decision, then those that go are removed.
    pub(super) fn blocks(&mut self, path: &[String], old: &[Block], new: &[Block]) {
        let by_key: BTreeMap<&str, &Block> = old.iter().map(|b| (b.key.as_str(), b)).collect();
        for block in new {
            self.block(path, by_key.get(block.key.as_str()).copied(), block);
        }
        self.blocks_removed(path, old, new);
    }

    fn blocks_removed(&mut self, path: &[String], old: &[Block], new: &[Block]) {
        let kept: BTreeSet<&str> = new.iter().map(|block| block.key.as_str()).collect();
        for block in old
            .iter()
            .filter(|block| !kept.contains(block.key.as_str()))
        {
            match &block.remove {
                Some(text) => {
                    let line = Line {
                        text: text.clone(),
                        secret: None,
                        disruption: Disruption::None,
                    };
                    self.push(path, vec![line]);
                }
                // A block that FRR cannot remove is gone when nothing is left in it.
                None => self.block(path, Some(block), &block.emptied()),
            }
        }
    }

    pub(super) fn inner_blocks_set(&mut self, old: &Block, new: &Block) {
        let path = [new.enter.clone()];
        let by_key: BTreeMap<&str, &Block> =
            old.blocks.iter().map(|b| (b.key.as_str(), b)).collect();
        for block in &new.blocks {
            self.block(&path, by_key.get(block.key.as_str()).copied(), block);
        }
    }

    pub(super) fn inner_blocks_removed(&mut self, old: &Block, new: &Block) {
        self.blocks_removed(std::slice::from_ref(&old.enter), &old.blocks, &new.blocks);
    }

    /// One block: what goes with the late ones, the blocks that go, what comes, the blocks that stay or come, what goes,
    /// what comes late.
    fn block(&mut self, path: &[String], old: Option<&Block>, new: &Block) {
        let inside: Vec<String> = path.iter().cloned().chain([new.enter.clone()]).collect();
        let outer = self.all_new;
        self.all_new |= old.is_none();
        let empty = new.emptied();
        let before = old.unwrap_or(&empty);
        if old.is_none_or(|old| old.enter != new.enter) && new.is_empty() {
            self.push(&inside, Vec::new());
        } else if before.enter != new.enter && before.statements == new.statements {
            // The line that opens the block is the change itself: a rule turns from permit to deny.
            self.push(&inside, Vec::new());
        }
        self.undo(&inside, &before.statements, &new.statements, true);
        self.blocks_removed(&inside, &before.blocks, &new.blocks);
        self.set(&inside, &before.statements, &new.statements, false);
        let by_key: BTreeMap<&str, &Block> =
            before.blocks.iter().map(|b| (b.key.as_str(), b)).collect();
        for block in &new.blocks {
            let old = by_key.get(block.key.as_str()).copied();
            // An address family is there before anything is said in it.
            let started = block.emptied();
            let old = old.or_else(|| block.remove.is_none().then_some(&started));
            self.block(&inside, old, block);
        }
        self.undo(&inside, &before.statements, &new.statements, false);
        self.set(&inside, &before.statements, &new.statements, true);
        self.all_new = outer;
    }

    /// Statements outside of blocks.
    pub(super) fn statements(&mut self, path: &[String], old: &[Statement], new: &[Statement]) {
        self.set(path, old, new, false);
        self.undo(path, old, new, false);
    }

    /// Only what comes or changes.
    pub(super) fn added(&mut self, path: &[String], old: &[Statement], new: &[Statement]) {
        self.set(path, old, new, false);
    }

    /// Only what goes.
    pub(super) fn removed(&mut self, path: &[String], old: &[Statement], new: &[Statement]) {
        self.undo(path, old, new, false);
    }

    fn set(&mut self, path: &[String], old: &[Statement], new: &[Statement], late: bool) {
        let by_slot: BTreeMap<&str, &Statement> = old
            .iter()
            .map(|statement| (statement.key(), statement))
            .collect();
        let mut lines = Vec::new();
        for statement in new.iter().filter(|statement| statement.late == late) {
            let before = by_slot.get(statement.key()).copied();
            if before.is_some_and(|before| {
                before.line == statement.line && before.secret == statement.secret
            }) {
                continue;
            }
            if let Some(before) = before.filter(|_| statement.undo_first) {
                lines.push(self.line(before, before.undone(), None, false));
            }
            let (text, secret) = (statement.line.clone(), statement.secret.clone());
            lines.push(self.line(statement, text, secret, before.is_none()));
        }
        self.push_some(path, lines);
    }

    /// In the opposite order of setting.
    fn undo(&mut self, path: &[String], old: &[Statement], new: &[Statement], late: bool) {
        let kept: BTreeSet<&str> = new.iter().map(Statement::key).collect();
        let lines: Vec<Line> = old
            .iter()
            .rev()
            .filter(|statement| statement.late == late && !kept.contains(statement.key()))
            .map(|statement| self.line(statement, statement.undone(), None, false))
            .collect();
        self.push_some(path, lines);
    }

    fn line(
        &mut self,
        statement: &Statement,
        text: String,
        secret: Option<crate::Password>,
        added: bool,
    ) -> Line {
        let new = self.all_new
            || statement
                .peer
                .as_ref()
                .is_some_and(|peer| self.new_peers.contains(peer));
        let disruption = if new {
            Disruption::Additive
        } else if statement.resets {
            let (vrf, peer) = (self.vrf.clone(), statement.peer.clone());
            self.change.resets.insert(Session { vrf, peer });
            Disruption::SessionReset
        } else if added {
            Disruption::Additive
        } else {
            Disruption::None
        };
        Line {
            text,
            secret,
            disruption,
        }
    }

    fn push_some(&mut self, path: &[String], lines: Vec<Line>) {
        if !lines.is_empty() {
            self.push(path, lines);
        }
    }

    fn push(&mut self, path: &[String], lines: Vec<Line>) {
        match self.change.steps.last_mut() {
            Some(last) if last.path == path && !last.lines.is_empty() && !lines.is_empty() => {
                last.lines.extend(lines);
            }
            _ => self.change.steps.push(Step {
                path: path.to_vec(),
                lines,
            }),
        }
    }
}

/// The block without what belongs to sessions that go, save the line that makes them: taking that back is enough.
fn without(mut block: Block, gone: &impl Fn(&Peer) -> bool) -> Block {
    block
        .statements
        .retain(|statement| statement.declares || !statement.peer.as_ref().is_some_and(gone));
    block.blocks = block
        .blocks
        .into_iter()
        .map(|inner| without(inner, gone))
        .collect();
    block
}
