//! A BGP session between the router namespace and the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contradiction, schema::rules};
use crate::value::{Asn, PeerType, RemoteAs, WrittenIpv4Prefix, WrittenIpv6Prefix};

/// A veth pair between router and host, and the BGP session over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(self.hostasn) != has(self.hosttype)",
        "exactly one of hostasn and hosttype is needed: give the AS number of the host's BGP speaker, or external \
         or internal",
    ),
])))]
pub struct HostSession {
    /// AS number of the router on this session, 1–4294967295.
    pub asn: Asn,
    /// AS number of the BGP speaker on the host. Exactly one of `hostasn` and `hosttype` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostasn: Option<Asn>,
    /// `internal` or `external`, instead of the AS number of the BGP speaker on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosttype: Option<PeerType>,
    /// Networks of the session, the same on every node. Default: allocated from `Settings.spec.hostSessions.cidrs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub localcidr: Option<LocalCidr>,
}

/// Networks of a session, one per address family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(self.ipv4) || has(self.ipv6)",
        "at least one of ipv4 and ipv6 is needed",
    ),
])))]
pub struct LocalCidr {
    /// IPv4 network of the session, such as `192.168.10.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<WrittenIpv4Prefix>,
    /// IPv6 network of the session, such as `2001:db8:10::/64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<WrittenIpv6Prefix>,
}

impl HostSession {
    /// The AS that the router expects of the speaker on the host.
    pub fn remote_as(&self) -> Result<RemoteAs, Contradiction> {
        match (self.hostasn, self.hosttype) {
            (Some(asn), None) => Ok(RemoteAs::Number(asn)),
            (None, Some(kind)) => Ok(RemoteAs::Type(kind)),
            (Some(_), Some(_)) => Err(Contradiction::Both(
                "hostsession.hostasn",
                "hostsession.hosttype",
            )),
            (None, None) => Err(Contradiction::Neither(
                "hostsession.hostasn",
                "hostsession.hosttype",
            )),
        }
    }
}
