//! All device and object names. Later stages do not derive names.

use std::net::IpAddr;

use api::{
    selvedge::{AGENT_ACCOUNT, SettingsSpec},
    tcaas::GreProtocol,
    value::{IfName, PeVrfName, VlanId, Vni},
};
use sha2::{Digest, Sha256};
use strum::IntoEnumIterator as _;

use crate::snapshot::{Kind, ObjectRef};

/// How long a name of a Kubernetes object may be.
const MAX_OBJECT_NAME: usize = 253;

/// How long a label may be.
const MAX_LABEL: usize = 63;

/// Name of the network namespace that holds the router domain.
pub const ROUTER_NAMESPACE: &str = "selvedge";

/// Namespace that Selvedge itself runs in.
pub const OWN_NAMESPACE: &str = "selvedge-system";

/// FRR's own name for "no VRF", which no VRF can have.
const FRR_DEFAULT: &str = "default";

/// Names that the kernel gives no device: the sysctls of all devices, and of those to come, are in directories of these names.
const SYSCTLS: [&str; 2] = ["all", "default"];

/// What a name is that no device can have.
pub fn of_no_device(name: &IfName) -> Option<&'static str> {
    let is_of_sysctls = SYSCTLS.contains(&name.as_str());
    is_of_sysctls.then_some("a name that the kernel gives no device")
}

/// What a name is that no device can have which users name.
pub fn reserved_device(name: &IfName) -> Option<&'static str> {
    let is_reserved =
        || is_reserved_device(name).then_some("reserved for other devices of the nodes");
    of_no_device(name).or_else(is_reserved)
}

/// Why no VRF can have this name, whatever the settings.
pub fn of_no_vrf(name: &str) -> Option<&'static str> {
    match name {
        FRR_DEFAULT => Some("FRR uses this name for the node's main table"),
        "lo" => Some("it is the name of the loopback"),
        name if SYSCTLS.contains(&name) => Some("the kernel gives no device this name"),
        _ => None,
    }
}

/// Why users cannot give a VRF this name, if it is reserved.
pub fn reserved_vrf(settings: &SettingsSpec, name: &str) -> Option<&'static str> {
    if let Some(why) = of_no_vrf(name) {
        return Some(why);
    }
    if name == settings.trunk.name.as_str() {
        return Some("the trunk has a device of that name");
    }
    let management = settings.management_vrf.as_ref();
    if management.is_some_and(|vrf| vrf.name.as_str() == name) {
        return Some("it is the name of the management VRF");
    }
    (name == settings.cluster_vrf.name.as_str()).then_some("it is the name of the cluster VRF")
}

/// The VNIs of VRFs that the settings make.
pub fn settings_vnis(settings: &SettingsSpec) -> impl Iterator<Item = Vni> {
    let management = settings.management_vrf.as_ref().and_then(|vrf| vrf.vni);
    settings.cluster_vrf.vni.into_iter().chain(management)
}

/// The VRF of a segment that names none: named like its object, or with a hash of the name where a VRF cannot have it.
pub fn vrf_of_object(settings: &SettingsSpec, name: &str) -> String {
    let is_free = |name: &str| {
        let vrf = name.parse::<PeVrfName>().ok();
        let device = vrf.map(IfName::from);
        reserved_vrf(settings, name).is_none()
            && device.is_some_and(|device| !is_reserved_device(&device))
    };
    if is_free(name) {
        return name.to_owned();
    }
    let head = name.chars().skip_while(|c| !c.is_ascii_alphabetic());
    let head: String = head.filter(char::is_ascii_alphanumeric).take(6).collect();
    let wanted = format!("{head}-{}", short_hash(name));
    if is_free(&wanted) {
        return wanted;
    }
    // What is in front of the dash is reserved.
    let head: String = head.chars().take(3).collect();
    format!("vrf{head}-{}", short_hash(name))
}

/// Name of the Secret in which a node's agent finds a password that stands in clear text in an Underlay, as the session with one of its
/// neighbors has it. It does not depend on the password: a hash of that could be guessed.
pub fn moved_password(node: &str, underlay: &ObjectRef, peer: &str) -> String {
    let hash = short_hash(&format!("{underlay} {peer}"));
    object_name(&format!("{}{hash}", moved_passwords_of(node)))
}

/// The same for a password in clear text in an `FRRConfiguration`; the session is that of the host in a VRF with a peer.
pub fn moved_host_password(node: &str, session: &str) -> String {
    let hash = short_hash(&format!("FRRConfiguration {session}"));
    object_name(&format!("{}{hash}", moved_passwords_of(node)))
}

/// How the names of such Secrets of a node begin.
pub fn moved_passwords_of(node: &str) -> String {
    format!("{AGENT_ACCOUNT}-{node}-password-")
}

/// Bridge of an `L2VNI` in the router's namespace.
pub fn vni_bridge(vni: Vni) -> IfName {
    device("br-pe-", &vni.to_string())
}

/// The router's end of the pair of devices between a VNI and the host.
pub fn router_port(vni: Vni) -> IfName {
    device("pe-", &vni.to_string())
}

/// The host's end of the pair of devices between a VNI and the host.
pub fn host_port(vni: Vni) -> IfName {
    device("host-", &vni.to_string())
}

/// The bridge on the host that is made for an `L2VNI`.
pub fn host_bridge(vni: Vni) -> IfName {
    device("br-hs-", &vni.to_string())
}

/// Whether a device on the host is one that is made for a VNI.
pub fn is_own_bridge(name: &IfName) -> bool {
    let name = name.as_str();
    name.starts_with("br-hs-") || name.starts_with("host-") || name.starts_with("pt-host-")
}

/// The pair of devices of an `L3Passthrough`: the host's end and the router's. It always has a hash, so that a second one
/// never renames the first.
pub fn passthrough_devices(object: &str) -> (IfName, IfName) {
    let hash = Sha256::digest(object);
    let letters = hash.iter().take(7).map(|byte| {
        let letters = b"abcdefghijklmnopqrstuvwxyz234567";
        char::from(*letters.get(usize::from(byte % 32)).unwrap_or(&b'a'))
    });
    let tag: String = letters.collect();
    (device("pt-host-", &tag), device("pt-ns-", &tag))
}

/// Bridge of a segment in the router's namespace.
pub fn l2_bridge(vlan: VlanId) -> IfName {
    device("l2.", &vlan.to_string())
}

/// VXLAN of a segment.
pub fn l2_vxlan(vni: Vni) -> IfName {
    device("vx.", &vni.to_string())
}

/// VLAN of a segment on the router's end of the trunk.
pub fn access_port(vlan: VlanId) -> IfName {
    device("vlan.", &vlan.to_string())
}

/// Interface of a segment in the host's namespace, made of the suffix that its author chose.
///
/// `None` when it does not fit: a name that people and programs look for is not shortened behind their back.
pub fn host_interface(suffix: &str) -> Option<IfName> {
    format!("l2.{suffix}").parse().ok()
}

/// Device of a segment in the host's namespace: the one its author named, or `vlan.<id>`.
///
/// On a device of the host's own the name is taken as it is, over the fabric it is a suffix.
pub fn host_device(vlan: VlanId, is_on_device: bool, name: Option<&IfName>) -> Option<IfName> {
    match name {
        Some(name) if is_on_device => Some(name.clone()),
        Some(suffix) => host_interface(suffix.as_str()),
        None => Some(access_port(vlan)),
    }
}

/// Bridge of a VRF's L3 VNI.
pub fn vrf_bridge(vrf: &str) -> IfName {
    device("br.", vrf)
}

/// VXLAN of a VRF's L3 VNI.
pub fn vrf_vxlan(vrf: &str) -> IfName {
    device("vx.", vrf)
}

/// VRF of a node alone that routes by source what goes to a VRF.
pub fn local_vrf(vrf: &str) -> IfName {
    device("s-", vrf)
}

/// Loopback of the host that carries the addresses of a peering.
pub fn peer_loopback(peering: &str) -> IfName {
    device("bgp.", &short_hash(peering))
}

/// Tunnel of a mirror target. The hash is what the source documents chose; eight digits fit both.
pub fn mirror_tunnel(target: &str, protocol: GreProtocol) -> IfName {
    let prefix = match protocol {
        GreProtocol::L3gre => "gre.",
        GreProtocol::L2gre => "gretap.",
    };
    device(prefix, &short_hash(target))
}

/// Whether a loopback or trunk of this name would meet a device that is named here, or that every namespace has.
pub fn is_reserved_device(name: &IfName) -> bool {
    let prefixes = [
        "l2.", "vx.", "vlan.", "br.", "br-", "s-", "bgp.", "gre.", "gretap.", "host-", "pe-", "pt-",
    ];
    name.as_str() == "lo"
        || prefixes
            .iter()
            .any(|prefix| name.as_str().starts_with(prefix))
}

/// Name of the claim of a node's address on a VRF's loopback.
pub fn claim(vrf: &str, loopback: &str, node: &str) -> String {
    let wanted = format!("{vrf}-{loopback}-{node}");
    // A dash inside the first two parts leaves open where they end.
    if vrf.contains('-') || loopback.contains('-') {
        return hashed(&wanted, &format!("{vrf}/{loopback}/{node}"));
    }
    object_name(&wanted)
}

/// Name of the object for an address that a pool gives. One address of a pool has one name: the API server takes no second one.
pub fn given_address(pool: &str, address: IpAddr) -> String {
    let address = match address {
        IpAddr::V4(address) => format!("{:08x}", u32::from(address)),
        IpAddr::V6(address) => format!("{:032x}", u128::from(address)),
    };
    // Leaves space for the longest address.
    let room = MAX_OBJECT_NAME - 33;
    let pool = if pool.len() > room {
        let head: String = pool.chars().take(room - 9).collect();
        format!("{}-{}", head.trim_end_matches(['-', '.']), short_hash(pool))
    } else {
        pool.to_owned()
    };
    format!("{pool}-{address}")
}

/// The address in such a name.
pub fn address_in(name: &str) -> Option<IpAddr> {
    let (_, digits) = name.rsplit_once('-')?;
    match digits.len() {
        8 => u32::from_str_radix(digits, 16)
            .ok()
            .map(|number| IpAddr::V4(number.into())),
        32 => u128::from_str_radix(digits, 16)
            .ok()
            .map(|number| IpAddr::V6(number.into())),
        _ => None,
    }
}

/// Name of the low-level object that an intent becomes in one scope (a VRF or a VLAN).
pub fn generated(intent_kind: &str, intent: &str, scope: &str) -> String {
    object_name(&format!(
        "{}-{intent}-{scope}",
        intent_kind.to_ascii_lowercase()
    ))
}

/// Whether a low-level object has a name as intents give it.
pub(crate) fn is_generated(name: &str) -> bool {
    let mut kinds = Kind::iter().filter(|kind| kind.intent().is_some());
    kinds.any(|kind| {
        let kind = <&str>::from(kind).to_ascii_lowercase();
        let rest = name.strip_prefix(&*kind);
        rest.is_some_and(|rest| rest.starts_with('-'))
    })
}

/// Whether a low-level object has a name as an intent that is there gives it.
pub(crate) fn is_generated_by(name: &str, is_there: impl Fn(&ObjectRef) -> bool) -> bool {
    let mut kinds = Kind::iter().filter(|kind| kind.intent().is_some());
    kinds.any(|kind| {
        let prefix = <&str>::from(kind).to_ascii_lowercase();
        let rest = name.strip_prefix(&*prefix);
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix('-')) else {
            return false;
        };
        let mut ends = rest.match_indices('-');
        ends.any(|(end, _)| {
            let intent = rest.get(..end).unwrap_or_default();
            is_there(&ObjectRef::named(kind, intent))
        })
    })
}

/// The name itself, or, where Kubernetes does not allow it, what it allows of it with a hash of the name.
fn object_name(wanted: &str) -> String {
    let valid = valid(wanted);
    if valid == wanted && valid.len() <= MAX_OBJECT_NAME {
        return valid;
    }
    hashed(wanted, wanted)
}

fn valid(wanted: &str) -> String {
    let valid: String = wanted
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-' {
                c
            } else {
                '-'
            }
        })
        .collect();
    valid.trim_start_matches(['-', '.']).to_owned()
}

/// What Kubernetes allows of a name, with a hash of what tells it apart.
fn hashed(wanted: &str, what: &str) -> String {
    let hash = short_hash(what);
    let room = MAX_OBJECT_NAME - hash.len() - 1;
    let head: String = valid(wanted).chars().take(room).collect();
    format!("{}-{hash}", head.trim_end_matches(['-', '.']))
}

/// Name of the pool that an Outbound's gateways get their addresses of one family from.
pub fn egress_pool(outbound: &str, ipv4: bool) -> String {
    suffixed(outbound, if ipv4 { "-pool" } else { "-pool-v6" })
}

/// Name of the pool that the pods of a PodNetwork get their addresses of one family from.
pub fn pod_pool(pod_network: &str, ipv4: bool) -> String {
    suffixed(pod_network, if ipv4 { "-pods" } else { "-pods-v6" })
}

/// An object's name with something behind it; where that does not fit, with a hash of the name.
fn suffixed(name: &str, suffix: &str) -> String {
    if name.len() + suffix.len() <= MAX_OBJECT_NAME {
        return format!("{name}{suffix}");
    }
    let hash = short_hash(name);
    let room = MAX_OBJECT_NAME - suffix.len() - hash.len() - 1;
    let head: String = name.chars().take(room).collect();
    format!("{}-{hash}{suffix}", head.trim_end_matches(['-', '.']))
}

/// An object's name as a label: for objects that others make Services and labels of.
pub fn label(name: &str) -> String {
    let valid: String = name
        .chars()
        .map(|c| if c == '.' { '-' } else { c })
        .collect();
    let starts_well = valid.starts_with(|c: char| c.is_ascii_lowercase());
    if valid == name && starts_well && valid.len() <= MAX_LABEL {
        return valid;
    }
    let hash = short_hash(name);
    let start = if starts_well { "" } else { "x-" };
    let room = MAX_LABEL - start.len() - hash.len() - 1;
    let head: String = valid.chars().take(room).collect();
    format!("{start}{}-{hash}", head.trim_end_matches('-'))
}

/// The first eight hexadecimal digits of a text's SHA-256.
pub fn short_hash(text: &str) -> String {
    hex(&Sha256::digest(text)).chars().take(8).collect()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(digit).collect()
}

/// `prefix` and `rest`, or, where that does not fit, `prefix` with a hash of the rest.
fn device(prefix: &str, rest: &str) -> IfName {
    format!("{prefix}{rest}")
        .parse()
        .or_else(|_| format!("{prefix}{}", short_hash(rest)).parse())
        .unwrap_or_else(|_| {
            unreachable!("a short prefix and eight hexadecimal digits are a device name")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_address_is_in_the_name_of_its_object_whatever_the_pool() {
        for pool in ["p", "mirror-source-ips", "a.b", &"x".repeat(253)] {
            for address in ["10.0.0.5", "255.255.255.255", "2001:db8::", "::1"] {
                let address: IpAddr = address.parse().expect("an address");
                let name = given_address(pool, address);
                assert!(name.len() <= MAX_OBJECT_NAME, "{name}");
                assert_eq!(address_in(&name), Some(address), "{name}");
            }
        }
        assert_eq!(address_in("mirror-lo.mir-node-01"), None);
    }

    #[test]
    fn names_of_the_source_documents_are_kept() {
        let vlan = VlanId::try_from(234).expect("valid");
        let vni = Vni::try_from(10234).expect("valid");
        assert_eq!(l2_bridge(vlan).as_str(), "l2.234");
        assert_eq!(l2_vxlan(vni).as_str(), "vx.10234");
        assert_eq!(access_port(vlan).as_str(), "vlan.234");
        assert_eq!(vrf_bridge("m2m_enc").as_str(), "br.m2m_enc");
        assert_eq!(vrf_vxlan("m2m_enc").as_str(), "vx.m2m_enc");
        assert_eq!(local_vrf("m2m_enc").as_str(), "s-m2m_enc");
        assert_eq!(host_interface("mynet").expect("fits").as_str(), "l2.mynet");
    }

    #[test]
    fn a_vrf_name_of_fifteen_bytes_is_shortened_with_a_hash() {
        let name = vrf_bridge("fifteen-letters");
        assert!(name.as_str().len() <= 15);
        assert_eq!(name, vrf_bridge("fifteen-letters"));
        assert_ne!(name, vrf_bridge("fifteen-letterz"));
    }

    #[test]
    fn a_host_interface_that_does_not_fit_is_refused_not_shortened() {
        assert_eq!(host_interface("thirteen-long"), None);
    }

    #[test]
    fn a_name_that_the_kernel_refuses_is_reserved_for_devices_and_vrfs() {
        let settings = SettingsSpec::default();
        for name in ["all", "default"] {
            let device: IfName = name.parse().expect("a name");
            assert!(of_no_device(&device).is_some(), "{name}");
            assert!(reserved_device(&device).is_some(), "{name}");
            assert!(of_no_vrf(name).is_some(), "{name}");
            assert!(reserved_vrf(&settings, name).is_some(), "{name}");
            let vrf = vrf_of_object(&settings, name);
            assert!(
                vrf.starts_with(&format!("{name}-")) || vrf.starts_with("defaul-"),
                "{vrf}"
            );
        }
        for name in ["all2", "eth1", "Default"] {
            let device: IfName = name.parse().expect("a name");
            assert_eq!(reserved_device(&device), None, "{name}");
            assert_eq!(reserved_vrf(&settings, name), None, "{name}");
        }
    }

    #[test]
    fn a_generated_name_is_valid_in_kubernetes_and_tells_similar_vrfs_apart() {
        assert_eq!(
            generated("Layer2Attachment", "my-vlan", "234"),
            "layer2attachment-my-vlan-234"
        );
        let underscore = generated("Layer2Attachment", "a", "m2m_enc");
        assert!(underscore.starts_with("layer2attachment-a-m2m-enc-"));
        assert_ne!(underscore, generated("Layer2Attachment", "a", "m2m-enc"));
        assert!(generated("Layer2Attachment", &"x".repeat(253), "234").len() <= 253);
    }

    #[test]
    fn a_tunnel_is_named_after_its_target() {
        let (l3, l2) = (GreProtocol::L3gre, GreProtocol::L2gre);
        assert_eq!(mirror_tunnel("collector-prod", l3).as_str(), "gre.b8396f72");
        assert_eq!(mirror_tunnel("col-mirror", l2).as_str(), "gretap.21087798");
    }

    #[test]
    fn a_claim_is_named_after_vrf_loopback_and_node() {
        assert_eq!(
            claim("mirror", "lo.mir", "node-01"),
            "mirror-lo.mir-node-01"
        );
        let underscore = claim("m2m_enc", "lo.mir", "n1");
        assert!(underscore.starts_with("m2m-enc-lo.mir-n1-"));
        assert_ne!(underscore, claim("m2m-enc", "lo.mir", "n1"));
        assert_ne!(claim("a-b", "c", "n"), claim("a", "b-c", "n"));
        assert_ne!(claim("a", "b", "c-n"), claim("a", "b-c", "n"));
        assert!(claim("_x", "lo.mir", &"n".repeat(253)).len() <= 253);
        assert!(claim("_x", "lo.mir", "n").starts_with('x'));
    }

    #[test]
    fn a_label_is_one_and_tells_similar_names_apart() {
        assert_eq!(label("egress-1"), "egress-1");
        assert_ne!(label("a.b"), label("a-b"));
        assert!(label("1st").starts_with("x-1st-"));
        assert_eq!(label(&"x".repeat(253)).len(), 63);
        assert!(suffixed(&"x".repeat(253), "-pool-v6").len() <= 253);
        assert_eq!(egress_pool("egress-1", true), "egress-1-pool");
    }
}
