//! What FRR reports about itself: `show … json` → small typed values.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `show bgp vrf all summary json`: the sessions of every BGP instance.
///
/// # Errors
/// The text is not JSON of that shape.
pub fn bgp_summary(json: &str) -> Result<Vec<BgpSession>, serde_json::Error> {
    // Beside the families, an instance may hold totals and warnings of its own; those are passed over.
    let instances: BTreeMap<String, BTreeMap<String, serde_json::Value>> =
        serde_json::from_str(json)?;
    let mut sessions = Vec::new();
    for (vrf, families) in instances {
        for (family, value) in families {
            let Some(peers) = value.get("peers") else {
                continue;
            };
            let peers: BTreeMap<String, SummaryPeer> = serde_json::from_value(peers.clone())?;
            sessions.extend(peers.into_iter().map(|(neighbor, peer)| BgpSession {
                vrf: vrf.clone(),
                family: family.clone(),
                neighbor,
                remote_as: peer.remote_as,
                established: peer.state == "Established",
                state: peer.state,
                uptime_milliseconds: peer.peer_uptime_msec,
                prefixes_received: peer.pfx_rcd,
                prefixes_sent: peer.pfx_snt,
                times_established: peer.connections_established,
                times_dropped: peer.connections_dropped,
            }));
        }
    }
    Ok(sessions)
}

/// One session in one address family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgpSession {
    /// The VRF of the instance; `default` for the default one.
    pub vrf: String,
    /// The family as FRR spells it: `ipv4Unicast`, `ipv6Unicast`, `l2VpnEvpn`.
    pub family: String,
    /// Address or device of the peer.
    pub neighbor: String,
    /// AS of the peer; 0 while it is not known.
    pub remote_as: u32,
    /// Whether the session is up.
    pub established: bool,
    /// State of the session as FRR spells it.
    pub state: String,
    /// How long the session has been in its state.
    pub uptime_milliseconds: u64,
    /// Routes that the peer sent.
    pub prefixes_received: u64,
    /// Routes that the peer was sent.
    pub prefixes_sent: u64,
    /// How often the session came up.
    pub times_established: u64,
    /// How often the session went down.
    pub times_dropped: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryPeer {
    #[serde(default)]
    remote_as: u32,
    #[serde(default)]
    state: String,
    #[serde(default)]
    peer_uptime_msec: u64,
    #[serde(default)]
    pfx_rcd: u64,
    #[serde(default)]
    pfx_snt: u64,
    #[serde(default)]
    connections_established: u64,
    #[serde(default)]
    connections_dropped: u64,
}

/// `show evpn vni json`: the VNIs that zebra knows.
///
/// # Errors
/// The text is not JSON of that shape.
pub fn evpn_vnis(json: &str) -> Result<Vec<EvpnVni>, serde_json::Error> {
    let vnis: BTreeMap<u32, EvpnVni> = serde_json::from_str(json)?;
    Ok(vnis.into_values().collect())
}

/// A VNI that zebra knows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvpnVni {
    /// The VNI.
    pub vni: u32,
    /// Whether it carries a segment or a VRF.
    #[serde(rename = "type")]
    pub kind: VniKind,
    /// The VXLAN device; `None` while it does not exist.
    #[serde(default, deserialize_with = "device")]
    pub vxlan_if: Option<String>,
    /// The VRF it belongs to.
    #[serde(default)]
    pub tenant_vrf: String,
}

/// What a VNI carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum VniKind {
    /// A layer 2 segment.
    L2,
    /// A VRF.
    L3,
}

/// `show vrf vni json`: the VRFs that have a VNI.
///
/// # Errors
/// The text is not JSON of that shape.
pub fn vrf_vnis(json: &str) -> Result<Vec<VrfVni>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Vrfs {
        #[serde(default)]
        vrfs: Vec<VrfVni>,
    }
    serde_json::from_str::<Vrfs>(json).map(|Vrfs { vrfs }| vrfs)
}

/// The VNI of a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VrfVni {
    /// The VRF.
    pub vrf: String,
    /// Its VNI.
    pub vni: u32,
    /// The VXLAN device; `None` while it does not exist.
    #[serde(default, deserialize_with = "device")]
    pub vxlan_intf: Option<String>,
    /// The bridge; `None` while it does not exist.
    #[serde(default, deserialize_with = "device")]
    pub svi_intf: Option<String>,
    /// `Up` when routes of the VRF can go through the fabric.
    pub state: String,
    /// MAC address that the fabric sends the VRF's packets to.
    #[serde(default, deserialize_with = "device")]
    pub router_mac: Option<String>,
}

impl VrfVni {
    /// Whether routes of the VRF can go through the fabric.
    pub fn is_up(&self) -> bool {
        self.state == "Up"
    }
}

/// FRR writes `None` where there is nothing.
fn device<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !matches!(text.as_str(), "None" | "-" | "Unknown" | "")))
}

#[cfg(test)]
mod tests;
