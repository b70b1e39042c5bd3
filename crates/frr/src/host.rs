//! The host's router: what all `FRRConfiguration`s of a node add up to → the configuration of the host's FRR. Pure.
//!
//! What is meant is what users of the `FRRConfiguration` API get today, and the names of route maps and lists are the same ([`names`]).
//! Nothing here fails as a whole: what this version of FRR cannot do is left out and listed, and so is a line of raw configuration that
//! is refused.

mod evpn;
mod filter;
pub mod names;
mod raw;
mod refused;
mod session;

use std::{collections::BTreeSet, fmt};

use api::{
    frrk8s,
    meta::SecretReference,
    selvedge::LogLevel,
    tcaas::node_network_config::{
        HostBgp, HostRouter, MissingDevice, MissingKind, RefusedLine, UnsupportedField,
    },
    value::{BfdInterval, BfdMultiplier, BfdTtl, IfName, Vni},
};

use self::raw::Generated;
pub use self::refused::{LeftOut, Refusal, leave_out};
use crate::{
    config::{self, BfdProfile, Bgp, Debug, FrrConfig, GracefulRestart, IpFamily, Log, Name, Peer},
    secret::Secrets,
    version::{Features, FrrVersion},
};

/// What the host's FRR is to run, and what of the config it cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// The configuration.
    pub config: FrrConfig,
    /// Fields that are left out.
    pub unsupported: Vec<UnsupportedField>,
    /// Sessions that are left out because their password is not known. They are in order of VRF and peer.
    pub held_back: Vec<HeldBack>,
    /// Lines of raw configuration that are left out.
    pub refused_raw: Vec<RefusedLine>,
    /// Devices and VNIs of the host that the configuration refers to, in order. Those that the host lacks are missing.
    pub needs: Vec<MissingDevice>,
}

/// A session without its password: it is not opened, because it must never run without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// VRF device of the router; `default` is the default VRF.
    pub vrf: IfName,
    /// The peer.
    pub peer: Peer,
    /// The Secret that is not resolved, or that holds no password.
    pub secret: SecretReference,
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vrf, peer, secret } = self;
        write!(
            f,
            "the session with {peer} in VRF {vrf} waits for a password in Secret {secret}"
        )
    }
}

/// The configuration of the host's FRR.
///
/// # Guarantees
/// * A session whose password is not in `secrets` is held back.
/// * Adding or removing a prefix adds or removes one rule in each list that holds it. No other number moves.
/// * No line of raw configuration changes a rule or an entry that is generated.
pub fn desired(router: &HostRouter, secrets: &Secrets, version: FrrVersion) -> Desired {
    let HostRouter {
        // What the config was made from.
        configurations: _,
        problems: _,
        log_level,
        always_block,
        routers,
        bfd_profiles,
        raw,
    } = router;
    let config = FrrConfig {
        log: log(*log_level),
        resolve_via_default: true,
        ..FrrConfig::default()
    };
    let mut build = Build {
        config,
        version,
        features: version.features(),
        secrets,
        generated: Generated::default(),
        vrf: None,
        unsupported: Vec::new(),
        held_back: Vec::new(),
        needs: BTreeSet::new(),
    };
    build.bfd_profiles(bfd_profiles);
    for (vrf, bgp) in routers {
        build.vrf = (vrf.as_str() != names::DEFAULT_VRF).then(|| vrf.clone());
        build.router(bgp, always_block);
    }
    build.vrf = None;
    build.finish(raw)
}

/// A configuration in the making.
struct Build<'a> {
    config: FrrConfig,
    version: FrrVersion,
    features: Features,
    secrets: &'a Secrets,
    generated: Generated,
    /// The VRF that is being written; `None` is the default VRF.
    vrf: Option<IfName>,
    unsupported: Vec<UnsupportedField>,
    held_back: Vec<HeldBack>,
    needs: BTreeSet<MissingDevice>,
}

impl Build<'_> {
    /// The VRF that is being written, as the API writes it.
    fn vrf_name(&self) -> IfName {
        self.vrf.clone().unwrap_or_else(default_vrf)
    }

    fn unsupported(&mut self, vni: Option<Vni>, message: impl Into<String>) {
        self.unsupported.push(UnsupportedField {
            vrf: self.vrf_name(),
            vni,
            peer: None,
            message: message.into(),
        });
    }

    fn unsupported_of<P: fmt::Display + ?Sized>(&mut self, peer: &P, message: String) {
        self.unsupported.push(UnsupportedField {
            vrf: self.vrf_name(),
            vni: None,
            peer: Some(peer.to_string()),
            message,
        });
    }

    fn needs(&mut self, kind: MissingKind, name: &dyn fmt::Display) {
        self.needs.insert(MissingDevice {
            vrf: self.vrf_name(),
            kind,
            name: name.to_string(),
        });
    }

    fn router(&mut self, router: &HostBgp, always_block: &BTreeSet<api::value::Prefix>) {
        let HostBgp {
            asn,
            router_id,
            neighbors,
            networks,
            imports,
            advertise_all_vnis: _,
            advertise_svi: _,
            l2vnis: _,
            l3vni: _,
        } = router;
        if let Some(vrf) = self.vrf.clone() {
            self.needs(MissingKind::Vrf, &vrf);
        }
        let mut bgp = Bgp {
            router_id: *router_id,
            ebgp_requires_policy: false,
            network_import_check: false,
            default_ipv4_unicast: false,
            graceful_restart: GracefulRestart {
                preserve_fw_state: true,
                ..GracefulRestart::default()
            },
            ..Bgp::new(*asn)
        };
        for prefix in networks {
            let unicast = bgp.unicast_mut(IpFamily::of(*prefix));
            unicast.networks.insert(*prefix);
        }
        let own = self.vrf_name();
        for source in imports {
            if *source == own {
                self.unsupported(None, format!("VRF {source} cannot import from itself"));
                continue;
            }
            for family in IpFamily::BOTH {
                let unicast = bgp.unicast_mut(family);
                unicast.import_vrfs.insert(source.clone());
            }
        }
        for neighbor in neighbors {
            self.neighbor(neighbor, always_block, &mut bgp);
        }
        self.evpn(router, &mut bgp);
        self.config.bgp.insert(self.vrf.clone(), bgp);
    }

    fn bfd_profiles(&mut self, profiles: &[frrk8s::BfdProfile]) {
        for profile in profiles {
            let frrk8s::BfdProfile {
                name,
                receive_interval,
                transmit_interval,
                detect_multiplier,
                echo_interval,
                echo_mode,
                passive_mode,
                minimum_ttl,
            } = profile;
            let Ok(name) = name.parse::<Name>() else {
                let why = format!("FRR has no BFD profile of the name {name:?}");
                self.unsupported(None, why);
                continue;
            };
            let default = BfdProfile::default();
            let interval =
                |given: &Option<BfdInterval>, default| given.map_or(default, |it| it.get().into());
            let profile = BfdProfile {
                detect_multiplier: detect_multiplier
                    .map_or(default.detect_multiplier, BfdMultiplier::get),
                receive_interval: interval(receive_interval, default.receive_interval),
                transmit_interval: interval(transmit_interval, default.transmit_interval),
                echo_receive_interval: interval(echo_interval, default.echo_receive_interval),
                echo_transmit_interval: interval(echo_interval, default.echo_transmit_interval),
                echo_mode: echo_mode.unwrap_or(default.echo_mode),
                passive_mode: passive_mode.unwrap_or(default.passive_mode),
                minimum_ttl: minimum_ttl.map_or(default.minimum_ttl, BfdTtl::get),
            };
            self.config.bfd_profiles.insert(name, profile);
        }
    }

    fn finish(mut self, raw: &[api::tcaas::node_network_config::RawLines]) -> Desired {
        let (config, refused_raw) = raw::merged(
            self.config,
            raw,
            &self.generated,
            self.features,
            self.version,
        );
        self.config = config;
        without_silent_vnis(&mut self.config);
        Desired {
            config: self.config,
            unsupported: self.unsupported,
            held_back: self.held_back,
            refused_raw,
            needs: self.needs.into_iter().collect(),
        }
    }
}

/// What the API calls the default VRF.
fn default_vrf() -> IfName {
    #[expect(clippy::expect_used, reason = "a constant that is a device name")]
    names::DEFAULT_VRF
        .parse()
        .expect("the name of the default VRF is a device name")
}

/// The log as users of the API know it.
fn log(level: LogLevel) -> Log {
    let (stdout, debug) = match level {
        LogLevel::All | LogLevel::Debug => {
            let topics = Debug::ALL.iter().copied().collect();
            (config::LogLevel::Debugging, topics)
        }
        LogLevel::Info => (config::LogLevel::Informational, BTreeSet::new()),
        LogLevel::Warn => (config::LogLevel::Warnings, BTreeSet::new()),
        LogLevel::Error => (config::LogLevel::Errors, BTreeSet::new()),
        LogLevel::None => (config::LogLevel::Emergencies, BTreeSet::new()),
    };
    Log {
        stdout: Some(stdout),
        debug,
    }
}

/// A VNI about which nothing is said has no block, and none has one where the router announces no VNI: FRR would take the block and
/// refuse what stands in it.
fn without_silent_vnis(config: &mut FrrConfig) {
    config.forget_derived_targets();
    let silent = config::VniTargets::default();
    for bgp in config.bgp.values_mut() {
        let announced = bgp.evpn.advertise_all_vni;
        bgp.evpn
            .vnis
            .retain(|_, targets| announced && *targets != silent);
    }
}

#[cfg(test)]
mod tests;
