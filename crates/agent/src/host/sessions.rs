//! The sessions of the host's router as bgpd and bfdd tell them: `show … json` → small values. Pure.

use std::{collections::BTreeMap, net::IpAddr};

use serde::Deserialize;
use serde_json::Value;

/// A BGP session.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Session {
    /// VRF of the session; `default` is the default VRF.
    pub(crate) vrf: String,
    /// Address or device of the peer.
    pub(crate) peer: String,
    /// State of the session as FRR spells it.
    pub(crate) state: String,
    /// State of its BFD session as FRR spells it; absent without BFD.
    pub(crate) bfd: Option<String>,
}

impl Session {
    /// The peer as names and labels of objects have it: an IPv6 address in full length, with `-` instead of `:`.
    pub(crate) fn label(&self) -> String {
        match self.peer.parse() {
            Ok(IpAddr::V6(address)) => {
                let parts = address.segments().map(|part| format!("{part:04x}"));
                parts.join("-")
            }
            Ok(IpAddr::V4(_)) | Err(_) => self.peer.clone(),
        }
    }
}

/// A session with its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The session.
    pub(crate) session: Session,
    /// Messages by kind.
    pub(crate) messages: Messages,
    /// Prefixes that the peer was sent and that were accepted from it, over all families.
    pub(crate) announced: u64,
    /// The same for those that were accepted.
    pub(crate) received: u64,
    /// EVPN routes that the peer was sent.
    pub(crate) evpn_announced: u64,
    /// EVPN routes that were accepted from it.
    pub(crate) evpn_received: u64,
}

/// Messages of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Messages {
    pub(crate) opens_sent: u64,
    pub(crate) opens_recv: u64,
    pub(crate) notifications_sent: u64,
    pub(crate) updates_sent: u64,
    pub(crate) updates_recv: u64,
    pub(crate) keepalives_sent: u64,
    pub(crate) keepalives_recv: u64,
    pub(crate) route_refresh_sent: u64,
    pub(crate) total_sent: u64,
    pub(crate) total_recv: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Neighbor {
    bgp_state: String,
    #[serde(default)]
    message_stats: Messages,
    #[serde(default)]
    address_family_info: BTreeMap<String, Family>,
    #[serde(default)]
    peer_bfd_info: Option<Bfd>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Family {
    sent_prefix_counter: u64,
    accepted_prefix_counter: u64,
}

#[derive(Deserialize)]
struct Bfd {
    #[serde(default)]
    status: String,
}

/// What is asked of bgpd.
pub(super) const NEIGHBORS: &str = "show bgp vrf all neighbors json";

/// The sessions of all VRFs, in order of VRF and peer.
///
/// # Errors
/// The text is not JSON of that shape.
pub(crate) fn read_sessions(json: &str) -> Result<Vec<Counted>, serde_json::Error> {
    let mut sessions = Vec::new();
    // Some versions print one document for each VRF.
    for document in serde_json::Deserializer::from_str(json).into_iter::<Value>() {
        let Value::Object(vrfs) = document? else {
            continue;
        };
        for (vrf, neighbors) in vrfs {
            let Value::Object(neighbors) = neighbors else {
                continue;
            };
            for (peer, value) in neighbors {
                if value.get("bgpState").is_some() {
                    let neighbor: Neighbor = serde_json::from_value(value)?;
                    sessions.push(counted(vrf.clone(), peer, neighbor));
                }
            }
        }
    }
    sessions.sort_by(|one, other| one.session.cmp(&other.session));
    Ok(sessions)
}

fn counted(vrf: String, peer: String, neighbor: Neighbor) -> Counted {
    let families = neighbor.address_family_info;
    let evpn = families.get("l2VpnEvpn");
    let (evpn_announced, evpn_received) = evpn.map_or((0, 0), |family| {
        (family.sent_prefix_counter, family.accepted_prefix_counter)
    });
    Counted {
        session: Session {
            vrf,
            peer,
            state: neighbor.bgp_state,
            bfd: neighbor
                .peer_bfd_info
                .map(|bfd| bfd.status)
                .filter(|status| !status.is_empty()),
        },
        messages: neighbor.message_stats,
        announced: families.values().map(|it| it.sent_prefix_counter).sum(),
        received: families.values().map(|it| it.accepted_prefix_counter).sum(),
        evpn_announced,
        evpn_received,
    }
}

/// What is asked of bfdd.
pub(super) const BFD_PEERS: &str = "show bfd peers json";
/// What is asked of bfdd for the counters.
pub(super) const BFD_COUNTERS: &str = "show bfd peers counters json";

/// A BFD session.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct BfdSession {
    pub(crate) vrf: String,
    pub(crate) peer: String,
    pub(crate) interface: String,
    pub(crate) status: String,
    pub(crate) control_packet_input: u64,
    pub(crate) control_packet_output: u64,
    pub(crate) echo_packet_input: u64,
    pub(crate) echo_packet_output: u64,
    pub(crate) session_up: u64,
    pub(crate) session_down: u64,
    pub(crate) zebra_notifications: u64,
}

/// The BFD sessions, from the list of peers and that of counters.
///
/// # Errors
/// A text is not JSON of that shape.
pub(crate) fn read_bfd(peers: &str, counters: &str) -> Result<Vec<BfdSession>, serde_json::Error> {
    let mut sessions: Vec<BfdSession> = serde_json::from_str(peers)?;
    let counters: Vec<BfdSession> = serde_json::from_str(counters)?;
    for session in &mut sessions {
        let key = |it: &BfdSession| (it.vrf.clone(), it.peer.clone(), it.interface.clone());
        if let Some(counted) = counters.iter().find(|it| key(it) == key(session)) {
            let status = std::mem::take(&mut session.status);
            *session = BfdSession {
                status,
                ..counted.clone()
            };
        }
    }
    sessions.sort();
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_all_vrfs_are_read_with_their_counters() {
        let json = r#"{"default": {"vrfId": 0, "vrfName": "default",
            "192.0.2.1": {"bgpState": "Established", "messageStats": {"updatesSent": 7, "totalRecv": 3},
              "addressFamilyInfo": {"ipv4Unicast": {"sentPrefixCounter": 5, "acceptedPrefixCounter": 2},
                                    "l2VpnEvpn": {"sentPrefixCounter": 4, "acceptedPrefixCounter": 1}},
              "peerBfdInfo": {"status": "Up"}}},
          "red": {"2001:db8::1": {"bgpState": "Active"}}}"#;
        let sessions = read_sessions(json).unwrap();
        let [first, second] = sessions.as_slice() else {
            panic!("{sessions:?}");
        };
        assert_eq!((first.announced, first.received), (9, 3));
        assert_eq!((first.evpn_announced, first.evpn_received), (4, 1));
        assert_eq!(
            (first.messages.updates_sent, first.messages.total_recv),
            (7, 3)
        );
        assert_eq!(first.session.bfd.as_deref(), Some("Up"));
        assert_eq!(
            (second.session.vrf.as_str(), second.session.state.as_str()),
            ("red", "Active")
        );
        assert_eq!(second.session.bfd, None);
    }

    #[test]
    fn a_peer_is_a_value_of_a_label() {
        let label = |peer: &str| {
            let peer = peer.to_owned();
            Session {
                peer,
                ..Session::default()
            }
            .label()
        };
        assert_eq!(label("192.0.2.1"), "192.0.2.1");
        assert_eq!(label("eth1"), "eth1");
        assert_eq!(
            label("2001:db8::1"),
            "2001-0db8-0000-0000-0000-0000-0000-0001"
        );
    }

    #[test]
    fn a_bfd_session_has_its_counters() {
        let peers = r#"[{"peer": "192.0.2.1", "vrf": "default", "status": "up"}]"#;
        let counters = r#"[{"peer": "192.0.2.1", "vrf": "default", "control-packet-input": 9, "session-up": 1}]"#;
        let sessions = read_bfd(peers, counters).unwrap();
        assert_eq!(sessions[0].status, "up");
        assert_eq!(
            (sessions[0].control_packet_input, sessions[0].session_up),
            (9, 1)
        );
    }
}
