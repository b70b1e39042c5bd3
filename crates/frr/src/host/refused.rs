//! What a line comes from that FRR does not take: the smallest part of the router that can be left out, so that the rest is applied.
//!
//! A line is never left out alone: a session without its filter would announce everything, and one without its password would run
//! without. What goes is the session, the VNI, the network or the line of raw configuration that the line is of.

use api::{
    tcaas::node_network_config::{
        HostBgp, HostNeighbor, HostRouter, RawLines, RefusedLine, UnsupportedField,
    },
    value::{IfName, Vni},
};

use super::{default_vrf, desired, names::DEFAULT_VRF, raw};
use crate::{config::FrrConfig, diff, secret::Secrets, version::FrrVersion};

/// A line that FRR does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The lines that lead into its block, outermost first.
    pub path: Vec<String>,
    /// The line, without its password; empty if FRR refuses to enter the block.
    pub line: String,
    /// What FRR says.
    pub why: String,
}

impl Refusal {
    /// The line itself, or the one that opens the block.
    fn shown(&self) -> &str {
        let last = self.path.last().map_or("", String::as_str);
        if self.line.is_empty() {
            last
        } else {
            &self.line
        }
    }

    fn message(&self) -> String {
        let why = self.why.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("FRR refuses {:?}: {why}", self.shown())
    }

    fn is_of(&self, config: &FrrConfig) -> bool {
        let change = diff(&FrrConfig::default(), config);
        change.steps.iter().any(|step| {
            let is_there = |line: &crate::Line| line.to_string() == self.line;
            let is_block = self.line.is_empty() && step.path.starts_with(&self.path);
            is_block || (step.path == self.path && step.lines.iter().any(is_there))
        })
    }
}

/// What was left out of a router, as the node reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Parts of objects.
    pub fields: Vec<UnsupportedField>,
    /// Lines of raw configuration.
    pub raw: Vec<RefusedLine>,
}

/// Takes out of the router what a refused line is of. `false`: that is not known, and nothing is changed.
pub fn leave_out(
    router: &mut HostRouter,
    refusal: &Refusal,
    secrets: &Secrets,
    version: FrrVersion,
    left_out: &mut LeftOut,
) -> bool {
    if let Some(line) = written(router, refusal) {
        left_out.raw.push(line);
        return true;
    }
    if let Some(fields) = generated(router, refusal) {
        left_out.fields.extend(fields);
        return true;
    }
    let line = unwritten(router, refusal, secrets, version);
    let is_known = line.is_some();
    left_out.raw.extend(line);
    is_known
}

/// The line of raw configuration that says the refused one in its words. All that the object has is left out with a line that opens a
/// block: the lines after it would be of another.
fn written(router: &mut HostRouter, refusal: &Refusal) -> Option<RefusedLine> {
    let wanted: Vec<&str> = refusal.shown().split_whitespace().collect();
    for RawLines { source, lines } in &mut router.raw {
        let is_it = |line: &str| line.split_whitespace().eq(wanted.iter().copied());
        let Some(place) = lines.lines().position(is_it) else {
            continue;
        };
        let refused = RefusedLine {
            source: source.clone(),
            line: u32::try_from(place + 1).unwrap_or(u32::MAX),
            message: refusal.message(),
        };
        *lines = if raw::opens_any_block(&wanted) {
            String::new()
        } else {
            let kept = lines.lines().enumerate();
            let kept = kept.map(|(number, line)| if number == place { "" } else { line });
            kept.collect::<Vec<_>>().join("\n")
        };
        return Some(refused);
    }
    None
}

/// The object whose raw configuration says the refused line in other words.
fn unwritten(
    router: &mut HostRouter,
    refusal: &Refusal,
    secrets: &Secrets,
    version: FrrVersion,
) -> Option<RefusedLine> {
    let is_of = |router: &HostRouter| refusal.is_of(&desired(router, secrets, version).config);
    if router.raw.is_empty() || !is_of(router) {
        return None;
    }
    for place in 0..router.raw.len() {
        let mut without = router.clone();
        let RawLines { source, .. } = without.raw.remove(place);
        if !is_of(&without) {
            *router = without;
            return Some(RefusedLine {
                source,
                line: 1,
                message: refusal.message(),
            });
        }
    }
    None
}

/// Takes out the part of an object that the line is generated from, and says which.
fn generated(router: &mut HostRouter, refusal: &Refusal) -> Option<Vec<UnsupportedField>> {
    let said = |(vrf, Part { vni, peer }): (IfName, Part)| UnsupportedField {
        vrf,
        vni,
        peer,
        message: refusal.message(),
    };
    let mut blocks = refusal.path.iter().map(String::as_str);
    let outer = blocks.next().unwrap_or(&refusal.line);
    let outer: Vec<&str> = outer.split_whitespace().collect();
    let one = match *outer {
        ["router", "bgp", _, ref rest @ ..] => {
            let vrf = match rest {
                ["vrf", vrf] => vrf.parse().ok()?,
                _ => default_vrf(),
            };
            if refusal.line.is_empty() && refusal.path.len() == 1 {
                router.routers.remove(&vrf)?;
                return Some(vec![said((vrf, Part::default()))]);
            }
            let bgp = router.routers.get_mut(&vrf)?;
            let inner = blocks.find_map(|block| block.strip_prefix("vni "));
            let part = match inner.or_else(|| refusal.line.strip_prefix("vni ")) {
                Some(vni) => without_l2vni(bgp, vni)?,
                None => within(bgp, &refusal.line)?,
            };
            (vrf, part)
        }
        ["vrf", vrf] => {
            let vrf: IfName = vrf.parse().ok()?;
            let l3vni = router.routers.get_mut(&vrf)?.l3vni.take()?;
            (vrf, Part::of_vni(l3vni.vni))
        }
        ["bfd"] => {
            let inner = blocks.next().unwrap_or(&refusal.line);
            let sessions = without_profile(router, inner.strip_prefix("profile ")?)?;
            return Some(sessions.into_iter().map(said).collect());
        }
        ["route-map", name, ..] | ["ip" | "ipv6", "prefix-list", name, ..] => {
            without_filter(router, name)?
        }
        _ => return None,
    };
    Some(vec![said(one)])
}

/// What a part of a router is about.
#[derive(Default)]
struct Part {
    vni: Option<Vni>,
    peer: Option<String>,
}

impl Part {
    fn of_vni(vni: Vni) -> Self {
        let vni = Some(vni);
        Self { vni, peer: None }
    }

    fn of_peer(peer: String) -> Self {
        let peer = Some(peer);
        Self { vni: None, peer }
    }
}

/// Takes out of a router what a line in it is generated from.
fn within(bgp: &mut HostBgp, line: &str) -> Option<Part> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_out = match *words {
        ["neighbor", peer, ..] => {
            let mut neighbors = bgp.neighbors.iter();
            let place = neighbors.position(|one| peer_of(one) == peer)?;
            return Some(Part::of_peer(peer_of(&bgp.neighbors.remove(place))));
        }
        ["rd" | "route-target" | "advertise", ..] => {
            return bgp.l3vni.take().map(|one| Part::of_vni(one.vni));
        }
        ["network", prefix, ..] => bgp.networks.remove(&prefix.parse().ok()?),
        ["import", "vrf", vrf] => bgp.imports.remove(&vrf.parse::<IfName>().ok()?),
        ["advertise-all-vni"] => {
            bgp.l2vnis.clear();
            std::mem::take(&mut bgp.advertise_all_vnis)
        }
        ["advertise-svi-ip"] => std::mem::take(&mut bgp.advertise_svi),
        ["bgp", "router-id", _] => bgp.router_id.take().is_some(),
        _ => false,
    };
    is_out.then(Part::default)
}

fn without_l2vni(bgp: &mut HostBgp, vni: &str) -> Option<Part> {
    let mut l2vnis = bgp.l2vnis.iter();
    let place = l2vnis.position(|one| one.vni.to_string() == vni)?;
    Some(Part::of_vni(bgp.l2vnis.remove(place).vni))
}

/// The sessions that lose the profile. They have BFD all the same, with FRR's defaults.
fn without_profile(router: &mut HostRouter, name: &str) -> Option<Vec<(IfName, Part)>> {
    let mut profiles = router.bfd_profiles.iter();
    let place = profiles.position(|one| one.name == name)?;
    router.bfd_profiles.remove(place);
    let mut sessions = Vec::new();
    for (vrf, bgp) in &router.routers {
        let neighbors = bgp.neighbors.iter();
        let with = neighbors.filter(|one| one.bfd_profile.as_deref() == Some(name));
        sessions.extend(with.map(|one| (vrf.clone(), Part::of_peer(peer_of(one)))));
    }
    if sessions.is_empty() {
        sessions.push((default_vrf(), Part::default()));
    }
    Some(sessions)
}

/// Takes out the session that a route map or a list is of.
fn without_filter(router: &mut HostRouter, name: &str) -> Option<(IfName, Part)> {
    let all = router.routers.iter();
    let all = all.flat_map(|(vrf, bgp)| bgp.neighbors.iter().map(move |one| (vrf, peer_of(one))));
    let of = |(vrf, peer): (&IfName, String)| {
        let id = match vrf.as_str() {
            DEFAULT_VRF => peer.clone(),
            vrf => format!("{peer}-{vrf}"),
        };
        let rest = name.strip_prefix(&*id)?;
        rest.starts_with('-').then(|| (id.len(), vrf.clone(), peer))
    };
    // Of `a` and `a-b`, `a-b-out` is of the longer one.
    let (_, vrf, peer) = all.filter_map(of).max()?;
    let neighbors = &mut router.routers.get_mut(&vrf)?.neighbors;
    neighbors.retain(|one| peer_of(one) != peer);
    Some((vrf, Part::of_peer(peer)))
}

/// The peer in the words of FRR.
fn peer_of(neighbor: &HostNeighbor) -> String {
    let device = neighbor.interface.as_ref().map(ToString::to_string);
    let address = neighbor.address.map(|address| address.to_string());
    address.or(device).unwrap_or_default()
}
