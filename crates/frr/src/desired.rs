//! The desired step: a node's config → the configuration of its router's FRR. Pure.
//!
//! Every field of the contract about routing is either applied or rejected with its path: ignoring one is a defect.
//! Structures are taken apart without `..`, so that a new field does not compile until its use is decided.

mod filter;
mod guard;
mod host_session;
mod peer;
mod underlay;
mod vrf;

use std::{collections::BTreeMap, fmt, sync::Arc};

use api::{
    tcaas::node_network_config::{CONTRACT_VERSION, NodeNetworkConfigSpec, Vrf},
    value::{Community, IfName},
};

use crate::{
    config::{FrrConfig, Name, PrefixList, PrefixRange, PrefixRule, RouteMapAction, RouteMapEntry},
    names,
    secret::Secrets,
    version::{Features, FrrVersion},
};

/// Something in a config that FRR, or this version of it, cannot do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Unsupported {
    /// Path of the field below `spec`.
    pub path: String,
    /// The reason, and the remedy.
    pub why: String,
}

/// The configuration of the router domain's FRR.
///
/// # Assumptions
/// `secrets` holds the password of every Secret that the config names.
///
/// # Errors
/// All that cannot be done, not only the first.
pub fn desired(
    spec: &NodeNetworkConfigSpec,
    secrets: &Secrets,
    version: FrrVersion,
) -> Result<FrrConfig, Vec<Unsupported>> {
    let NodeNetworkConfigSpec {
        contract_version,
        revision: _,
        underlay,
        layer2s,
        cluster_vrf,
        fabric_vrfs,
        local_vrfs,
        passthroughs,
        // The host's devices are the kernel's.
        host_vlans: _,
        host_loopbacks: _,
        // Another instance of FRR.
        host_router: _,
        // The agent's own.
        health: _,
    } = spec;
    let config = FrrConfig {
        resolve_via_default: true,
        ..FrrConfig::default()
    };
    let mut build = Build {
        config,
        features: version.features(),
        version,
        secrets,
        vrf_names: BTreeMap::new(),
        fabric_mark: underlay.as_ref().map(guard::mark),
        host_mark: None,
        refused: Vec::new(),
    };
    if *contract_version > CONTRACT_VERSION {
        let why = format!("is newer than {CONTRACT_VERSION}, the newest this version reads");
        build.refuse(&"contractVersion", why);
    }
    let vrfs: Vec<(String, Option<&str>, &Vrf)> = cluster_vrf
        .iter()
        .map(|vrf| ("clusterVRF".to_owned(), None, &**vrf))
        .chain(keyed("fabricVRFs", fabric_vrfs))
        .chain(keyed("localVRFs", local_vrfs))
        .collect();
    build.name_vrfs(&vrfs);
    if vrfs.iter().any(|(.., vrf)| vrf.host_session.is_some()) {
        build.host_mark = underlay.as_ref().map(host_session::mark);
    }
    match underlay {
        Some(underlay) => {
            build.underlay(underlay, layer2s, passthroughs);
            for (path, _, vrf) in &vrfs {
                build.vrf(path, vrf, underlay);
            }
        }
        None if vrfs.is_empty() && layer2s.is_empty() && passthroughs.is_empty() => {}
        None => build.refuse(
            &"underlay",
            "is missing, but VRFs, layer 2 segments or passthroughs need a router",
        ),
    }
    if build.refused.is_empty() {
        Ok(build.config)
    } else {
        Err(build.refused)
    }
}

fn keyed<'a>(
    list: &'a str,
    vrfs: &'a BTreeMap<String, Arc<Vrf>>,
) -> impl Iterator<Item = (String, Option<&'a str>, &'a Vrf)> {
    vrfs.iter()
        .map(move |(key, vrf)| (format!("{list}[{key}]"), Some(key.as_str()), &**vrf))
}

/// A configuration in the making.
struct Build<'a> {
    config: FrrConfig,
    features: Features,
    version: FrrVersion,
    secrets: &'a Secrets,
    /// Names that fields refer to VRFs by → the device, which is FRR's name for it.
    vrf_names: BTreeMap<String, IfName>,
    /// The large community of routes that come from the fabric; absent without an underlay.
    fabric_mark: Option<Community>,
    /// The large community of what a host announces in a VRF; absent where no VRF has a session with the host.
    host_mark: Option<Community>,
    refused: Vec<Unsupported>,
}

impl Build<'_> {
    fn refuse(&mut self, path: &dyn fmt::Display, why: impl Into<String>) {
        self.refused.push(Unsupported {
            path: path.to_string(),
            why: why.into(),
        });
    }

    /// A VRF is referred to by its key, and by the name of its device.
    fn name_vrfs(&mut self, vrfs: &[(String, Option<&str>, &Vrf)]) {
        let mut devices: BTreeMap<&IfName, &str> = BTreeMap::new();
        for (path, key, vrf) in vrfs {
            let device = &vrf.devices.vrf;
            if device.as_str() == "default" {
                self.refuse(
                    &format_args!("{path}.devices.vrf"),
                    "FRR keeps the name default for itself",
                );
            }
            if let Some(other) = devices.insert(device, path) {
                let why = format!("{device} is already the device of {other}");
                self.refuse(&format_args!("{path}.devices.vrf"), why);
            }
            self.vrf_names
                .insert(device.as_str().to_owned(), device.clone());
            if let Some(key) = key {
                self.vrf_names.insert((*key).to_owned(), device.clone());
            }
        }
    }

    /// The device of a VRF that a field names.
    fn vrf_device(&mut self, path: &dyn fmt::Display, name: &str) -> Option<IfName> {
        let device = self.vrf_names.get(name).cloned();
        if device.is_none() {
            self.refuse(path, format!("{name:?} is not a VRF of this node"));
        }
        device
    }

    /// A route map that lets nothing through, for a direction without a filter.
    fn nothing(&mut self) -> Name {
        let name = names::nothing();
        let deny = RouteMapEntry::new(RouteMapAction::Deny);
        self.config
            .route_maps
            .insert(name.clone(), BTreeMap::from([(filter::LAST, deny)]));
        name
    }
}

/// A number for a text, the same everywhere and always: FNV-1a.
///
/// It gives list entries numbers that depend on nothing but themselves, so that they stay when others come and go.
fn stable_number(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// A free number in `1..=last` for each text, near its stable number. Texts come sorted; only a text that meets another
/// on its number moves on, and it returns to the number that it runs under ([`crate::with_numbers_of`]). Texts for which no number is left
/// have none.
pub(crate) fn number_by_content<T: Ord + Clone + fmt::Display>(
    values: impl IntoIterator<Item = T>,
    last: u32,
) -> BTreeMap<u32, T> {
    let mut numbered = BTreeMap::new();
    for value in values {
        let wanted = stable_number(&value.to_string()) % last + 1;
        let mut free = (wanted..=last).chain(1..wanted);
        let Some(number) = free.find(|number| !numbered.contains_key(number)) else {
            break;
        };
        numbered.insert(number, value);
    }
    numbered
}

/// A list of these ranges, all permitted, each under a number of its own.
fn permits(ranges: impl IntoIterator<Item = PrefixRange>) -> PrefixList {
    let numbered = number_by_content(ranges, u32::MAX).into_iter();
    numbered
        .map(|(number, range)| (number, PrefixRule::permit(range)))
        .collect()
}

#[cfg(test)]
mod tests;
