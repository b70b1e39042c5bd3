//! Sessions inside VRFs, and what all sessions share: BFD and passwords.

use std::{fmt, net::IpAddr, ops::RangeInclusive};

use api::{
    meta::SecretReference,
    tcaas::node_network_config::{self as nnc, AddressFamily, BgpPeer},
    value::{IfName, Prefix, Seconds},
};

use super::{Build, filter::Purpose};
use crate::{
    config::{
        BfdProfile, Bgp, Description, IpFamily, MaximumPrefix, Name, Neighbor, NeighborBfd,
        NeighborFamily, Peer, RemoteAs, UpdateSource,
    },
    names::{self, Direction},
    secret::Password,
};

/// Milliseconds that every supported version of FRR takes for a BFD interval.
const BFD_INTERVAL: RangeInclusive<u32> = 10..=60_000;

/// How many workloads may open sessions with one VRF: a session of each family for each of the 110 pods that a kubelet runs by
/// default, and some to spare.
const LISTEN_LIMIT: u16 = 256;
/// Minutes after which a session that announced too much is tried again.
pub(super) const RESTART_MINUTES: u16 = 5;

impl Build<'_> {
    pub(super) fn bgp_peer(&mut self, path: &str, vrf: &IfName, peer: &BgpPeer, bgp: &mut Bgp) {
        let BgpPeer {
            address,
            interface,
            listen_range,
            remote_asn,
            local_as,
            ipv4,
            ipv6,
            bfd_profile,
            multihop,
            hold_time,
            keepalive_time,
            password_secret,
            update_source,
            source_address,
        } = peer;
        let Some((peer, label)) =
            self.peer(path, address.as_ref(), interface.as_ref(), *listen_range)
        else {
            return;
        };
        if let (Peer::Group(group), Some(range)) = (&peer, listen_range) {
            bgp.listen_ranges.insert(*range, group.clone());
            bgp.listen_limit = Some(LISTEN_LIMIT);
        }
        let remote_as = RemoteAs::Number(*remote_asn);
        let mut session = Neighbor::new(remote_as);
        session.local_as = self.local_as(path, *local_as, remote_as, bgp.asn);
        session.description = Some(match &peer {
            Peer::Group(_) => Description::of(format_args!("workloads of {label} in VRF {vrf}")),
            Peer::Address(_) | Peer::Interface(_) => {
                Description::of(format_args!("workload in VRF {vrf}"))
            }
        });
        let external = remote_as.is_external(bgp.asn);
        // One hop is what an external session has anyway, and an internal one may have any number.
        session.ebgp_multihop = multihop.filter(|hops| external && *hops > 1);
        if *multihop == Some(0) {
            self.refuse(
                &format_args!("{path}.multihop"),
                "a peer is at least one hop away",
            );
        }
        let keepalive = self.seconds(&format_args!("{path}.keepaliveTime"), *keepalive_time);
        let hold = self.seconds(&format_args!("{path}.holdTime"), *hold_time);
        session.timers = self.timers(&path, keepalive, hold);
        session.bfd = bfd_profile.map(|nnc::BfdProfile { min_interval }| {
            let profile = self.interval_profile(&format!("{path}.bfdProfile"), min_interval);
            NeighborBfd {
                profile: Some(profile),
                check_control_plane: false,
            }
        });
        session.password = self.password(path, password_secret.as_ref());
        let over_ipv6 = match (address, listen_range) {
            (Some(address), _) => address.is_ipv6(),
            (None, range) => range.is_some_and(|range| !range.is_ipv4()),
        };
        session.update_source = source_address
            .map(UpdateSource::Address)
            .or_else(|| update_source.clone().map(UpdateSource::Device));
        if update_source.is_some() && source_address.is_some() {
            self.refuse(&path, "needs at most one of updateSource and sourceAddress");
        }
        self.refuse_start(path, &peer, over_ipv6, &session);
        session.extended_nexthop = over_ipv6 && ipv4.is_some();
        if ipv4.is_none() && ipv6.is_none() {
            self.refuse(&path, "needs at least one address family");
        }
        for (family, settings) in [(IpFamily::V4, ipv4), (IpFamily::V6, ipv6)] {
            let Some(settings) = settings else { continue };
            let path = format!("{path}.{}", family.afi());
            let name = |direction| names::session_filter(vrf, &label, family, direction);
            let settings = self.family(&path, family, name, settings);
            bgp.unicast_mut(family)
                .neighbors
                .insert(peer.clone(), settings);
        }
        if bgp.neighbors.insert(peer.clone(), session).is_some() {
            self.refuse(&path, format!("{label} is already a peer of this VRF"));
        }
    }

    /// Who a session is with, and the word for it in names.
    fn peer(
        &mut self,
        path: &str,
        address: Option<&IpAddr>,
        interface: Option<&IfName>,
        listen_range: Option<Prefix>,
    ) -> Option<(Peer, String)> {
        match (address, interface, listen_range) {
            (Some(address), None, None) => Some((Peer::Address(*address), address.to_string())),
            (None, Some(device), None) => {
                Some((Peer::Interface(device.clone()), device.to_string()))
            }
            (None, None, Some(range)) => {
                Some((Peer::Group(names::listen_group(range)), range.to_string()))
            }
            _ => {
                let why = "needs exactly one of address, interface and listenRange";
                self.refuse(&path, why);
                None
            }
        }
    }

    /// A session cannot start from an address of the other family, and over a device it starts from that device.
    fn refuse_start(&mut self, path: &str, peer: &Peer, over_ipv6: bool, session: &Neighbor) {
        match (peer, &session.update_source) {
            (Peer::Interface(_), source) => {
                if source.is_some() || session.ebgp_multihop.is_some() {
                    let why = "a session over a device is one hop long and starts from the device; name the peer's address \
                               instead";
                    self.refuse(&format_args!("{path}.interface"), why);
                }
            }
            (Peer::Address(_) | Peer::Group(_), Some(UpdateSource::Address(source)))
                if source.is_ipv6() != over_ipv6 =>
            {
                let why = "is of another family than the peer's address";
                self.refuse(&format_args!("{path}.sourceAddress"), why);
            }
            (Peer::Address(_) | Peer::Group(_), _) => {}
        }
    }

    /// A direction without a filter lets nothing through, on internal sessions too.
    fn family(
        &mut self,
        path: &str,
        family: IpFamily,
        name: impl Fn(Direction) -> Name,
        settings: &AddressFamily,
    ) -> NeighborFamily {
        let AddressFamily {
            export_filter,
            import_filter,
            max_prefixes,
        } = settings;
        if *max_prefixes == Some(0) {
            self.refuse(&format_args!("{path}.maxPrefixes"), "must be at least 1");
        }
        let mut map = |filter: &Option<nnc::Filter>, direction| {
            let Some(filter) = filter else {
                return self.nothing();
            };
            let (field, purpose) = match direction {
                Direction::In => ("importFilter", Purpose::WorkloadImport),
                Direction::Out => ("exportFilter", Purpose::WorkloadExport(family)),
            };
            self.filter(&format!("{path}.{field}"), name(direction), filter, purpose)
        };
        NeighborFamily {
            activate: true,
            maximum_prefix: max_prefixes.map(|limit| MaximumPrefix {
                limit,
                restart: Some(RESTART_MINUTES),
            }),
            route_map_in: Some(map(import_filter, Direction::In)),
            route_map_out: Some(map(export_filter, Direction::Out)),
            ..NeighborFamily::default()
        }
    }

    fn seconds(&mut self, path: &dyn fmt::Display, span: Option<Seconds>) -> Option<u16> {
        let seconds = span?;
        let fits = u16::try_from(seconds.get()).ok();
        if fits.is_none() {
            self.refuse(path, "must be at most 65535 seconds");
        }
        fits
    }

    /// The password of a Secret. A session must not come up without the password it should have.
    pub(super) fn password(
        &mut self,
        path: &str,
        reference: Option<&SecretReference>,
    ) -> Option<Password> {
        let reference = reference?;
        let password = self.secrets.get(reference).cloned();
        if password.is_none() {
            let why = format!(
                "the Secret {reference} has not been read, or its key password is no BGP password"
            );
            self.refuse(&format_args!("{path}.passwordSecret"), why);
        }
        password
    }

    /// A profile with one interval in both directions, shared by all that want the same.
    pub(super) fn interval_profile(&mut self, path: &str, interval: u32) -> Name {
        self.interval(&format_args!("{path}.minInterval"), interval);
        let name = Name::of(format_args!("{interval}ms"));
        let profile = BfdProfile {
            receive_interval: interval,
            transmit_interval: interval,
            ..BfdProfile::default()
        };
        self.config.bfd_profiles.insert(name.clone(), profile);
        name
    }

    fn interval(&mut self, path: &dyn fmt::Display, milliseconds: u32) {
        if !BFD_INTERVAL.contains(&milliseconds) {
            self.refuse(path, "must be 10–60000 milliseconds");
        }
    }

    /// BFD of a fabric session: a profile named by its content, or none where all is default. A leaf that restarts gracefully
    /// keeps its routes although BFD goes down with its control plane.
    pub(super) fn bfd(&mut self, path: &str, bfd: &nnc::Bfd) -> NeighborBfd {
        let nnc::Bfd {
            receive_interval,
            transmit_interval,
            detect_multiplier,
            echo_interval,
            echo_mode,
            passive_mode,
            minimum_ttl,
        } = *bfd;
        for (field, value) in [
            ("receiveInterval", receive_interval),
            ("transmitInterval", transmit_interval),
            ("echoInterval", echo_interval),
        ] {
            if let Some(value) = value {
                self.interval(&format_args!("{path}.{field}"), value);
            }
        }
        if detect_multiplier.is_some_and(|count| count < 2) {
            self.refuse(
                &format_args!("{path}.detectMultiplier"),
                "must be at least 2",
            );
        }
        if matches!(minimum_ttl, Some(0 | u8::MAX)) {
            self.refuse(&format_args!("{path}.minimumTtl"), "must be 1–254");
        }
        let default = BfdProfile::default();
        let profile = BfdProfile {
            detect_multiplier: detect_multiplier.unwrap_or(default.detect_multiplier),
            receive_interval: receive_interval.unwrap_or(default.receive_interval),
            transmit_interval: transmit_interval.unwrap_or(default.transmit_interval),
            echo_receive_interval: echo_interval.unwrap_or(default.echo_receive_interval),
            echo_transmit_interval: echo_interval.unwrap_or(default.echo_transmit_interval),
            echo_mode,
            passive_mode,
            minimum_ttl: minimum_ttl.unwrap_or(default.minimum_ttl),
        };
        if profile == default {
            return NeighborBfd {
                profile: None,
                check_control_plane: true,
            };
        }
        let name = profile_name(&profile);
        self.config.bfd_profiles.insert(name.clone(), profile);
        NeighborBfd {
            profile: Some(name),
            check_control_plane: true,
        }
    }
}

fn profile_name(profile: &BfdProfile) -> Name {
    let flag = |set: bool, word: &'static str| if set { word } else { "" };
    Name::of(format_args!(
        "rx{}-tx{}-x{}-echo{}{}{}-ttl{}",
        profile.receive_interval,
        profile.transmit_interval,
        profile.detect_multiplier,
        profile.echo_transmit_interval,
        flag(profile.echo_mode, "-echoes"),
        flag(profile.passive_mode, "-passive"),
        profile.minimum_ttl,
    ))
}
