//! One neighbor of a router entry.

use std::{collections::BTreeSet, net::IpAddr};

use api::{
    frrk8s::{self, AddressFamily, BfdProfile, UpdateSource},
    meta::SecretReference,
    openperouter::Contradiction,
    value::{Asn, IfName, Peer, PeerType, Prefix, RemoteAs, Seconds},
};

use super::{Reader, UnicastField};
use crate::{
    host_router::part::{At, Given, Neighbor, PasswordSource, Session},
    names, problem,
};

/// What a neighbor needs of its router entry.
pub(super) struct Of<'a> {
    pub(super) vrf: &'a IfName,
    pub(super) asn: Asn,
    /// The prefixes of the entry, and of the VRFs that it imports.
    pub(super) prefixes: &'a BTreeSet<Prefix>,
    pub(super) profiles: &'a [BfdProfile],
}

/// A neighbor that can be named.
pub(super) struct Named<'a> {
    pub(super) peer: Peer,
    pub(super) at: At,
    pub(super) of: &'a Of<'a>,
    pub(super) has_ipv4: bool,
    pub(super) has_ipv6: bool,
}

/// Whether a neighbor is in the AS of its router.
fn is_internal(remote_as: RemoteAs, asn: Asn) -> bool {
    match remote_as {
        RemoteAs::Number(remote) => remote == asn,
        RemoteAs::Type(kind) => kind == PeerType::Internal,
    }
}

impl Reader<'_> {
    fn sound<T>(&mut self, at: At, found: Result<T, Contradiction>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                self.rule(at.field(""), error.to_string());
                None
            }
        }
    }

    /// Reads a neighbor; nothing if it cannot be named.
    pub(super) fn neighbor(
        &mut self,
        at: At,
        wanted: &frrk8s::Neighbor,
        of: &Of<'_>,
    ) -> Option<(Peer, Neighbor)> {
        let frrk8s::Neighbor {
            // `remote_as`, `peer` and `timers` read them.
            asn: _,
            dynamic_asn: _,
            address: _,
            interface: _,
            hold_time: _,
            keepalive_time: _,
            // `session` reads them.
            source_address: _,
            port: _,
            password: _,
            password_secret: _,
            connect_time: _,
            ebgp_multi_hop: _,
            bfd_profile: _,
            enable_graceful_restart: _,
            local_asn: _,
            to_advertise,
            to_receive,
            disable_mp,
            dual_stack_address_family,
            // `carries` reads them.
            address_families: _,
        } = wanted;
        let peer = self.sound(at, wanted.peer());
        let remote_as = self.sound(at, wanted.remote_as());
        let (peer, remote_as) = peer.zip(remote_as)?;
        self.name(at, &peer);
        if *disable_mp {
            self.no_effect(
                at.field("disableMP"),
                "is deprecated and ignored: leave it out",
            );
        }
        let session = self.session(at, wanted, &peer, remote_as, of);
        let unicast = wanted.carries(AddressFamily::Unicast);
        let is_dual_stack = wanted.is_dual_stack();
        let is_ipv6 = matches!(peer, Peer::Address(IpAddr::V6(_)));
        let named = Named {
            peer: peer.clone(),
            at,
            of,
            has_ipv4: is_dual_stack || !is_ipv6,
            has_ipv6: is_dual_stack || is_ipv6,
        };
        if !to_advertise.with_local_pref.is_empty() && !is_internal(remote_as, of.asn) {
            let what = "local preferences are not sent to external neighbors: leave it out";
            self.no_effect(at.field("toAdvertise.withLocalPref"), what);
        }
        let advertise = self.advertise(&named, to_advertise);
        let receive = self.receive(&named, to_receive);
        if !unicast {
            if *dual_stack_address_family {
                let what = "has no effect without unicast in addressFamilies: leave it out, or add unicast";
                self.no_effect(at.field("dualStackAddressFamily"), what);
            }
            let fields = [
                ("toAdvertise", *to_advertise != frrk8s::Advertise::default()),
                ("toReceive", *to_receive != frrk8s::Receive::default()),
            ];
            for (field, _) in fields.into_iter().filter(|(_, is_given)| *is_given) {
                self.contribution.unicast_fields.push(UnicastField {
                    vrf: of.vrf.clone(),
                    peer: peer.clone(),
                    field: at.field(field),
                });
            }
        }
        let neighbor = Neighbor {
            given: Given::new((), at),
            session,
            is_dual_stack,
            unicast,
            evpn: wanted.carries(AddressFamily::Evpn),
            advertise,
            receive,
        };
        Some((peer, neighbor))
    }

    /// Checks what a neighbor is named by.
    fn name(&mut self, at: At, peer: &Peer) {
        match peer {
            Peer::Address(address) => self.address(at, *address),
            Peer::Interface(name) if name.as_str().parse::<IpAddr>().is_ok() => {
                let message = "FRR takes the name of this device for an address: rename the device";
                self.rule(at.field("interface"), message);
            }
            Peer::Interface(_) => {}
        }
    }

    /// No session can be opened to an address that no single machine has.
    fn address(&mut self, at: At, address: IpAddr) {
        let is_mapped = matches!(address, IpAddr::V6(one) if one.to_ipv4_mapped().is_some());
        let is_broadcast = matches!(address, IpAddr::V4(one) if one.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || is_broadcast || is_mapped {
            let message = format!("{address} is not the address of a peer: give a unicast address");
            self.rule(at.field("address"), message);
        }
    }

    fn session(
        &mut self,
        at: At,
        wanted: &frrk8s::Neighbor,
        peer: &Peer,
        remote_as: RemoteAs,
        of: &Of<'_>,
    ) -> Session {
        let is_interface = matches!(peer, Peer::Interface(_));
        if is_interface && wanted.ebgp_multi_hop == Some(true) {
            let message = "ebgpMultiHop does not go with interface, whose peer is always one hop away: drop it";
            self.rule(at.field("ebgpMultiHop"), message);
        }
        if is_interface && wanted.source_address.is_some() {
            let message = "sourceaddress does not go with interface, whose link-local address is used: drop it";
            self.rule(at.field("sourceaddress"), message);
        }
        if let Some(local) = wanted.local_asn {
            self.local_as(at, local, remote_as, of);
        }
        self.idle_parts(at, wanted, peer, remote_as, of);
        if let Some(profile) = &wanted.bfd_profile
            && !of.profiles.iter().any(|one| one.name == *profile)
        {
            let message = format!(
                "bfd profile {profile:?} is not defined in this object: add it to spec.bgp.bfdProfiles"
            );
            self.rule(at.field("bfdProfile"), message);
        }
        let timers = self.sound(at, wanted.timers()).flatten();
        if let Some(timers) = timers {
            let hold = timers.hold.get();
            if (hold != 0 && hold < 3)
                || hold > u32::from(u16::MAX)
                || timers.keepalive > timers.hold
            {
                self.refuse(at.field("holdTime"), problem::Kind::TimersDoNotFit);
            }
        }
        let connect = wanted.connect_time;
        if connect.is_some_and(|time| !(1..=u32::from(u16::MAX)).contains(&time.get())) {
            let message = "connectTime must be 1s to 65535s";
            self.rule(at.field("connectTime"), message);
        }
        let seconds = |time: Seconds| Given::new(u16::try_from(time.get()).unwrap_or(u16::MAX), at);
        let port = wanted.port.and_then(api::value::Port::explicit);
        Session {
            remote_as: Some(Given::new(remote_as, at)),
            local_as: wanted.local_asn.map(|local| Given::new(local, at)),
            source: wanted.source_address.clone().map(|one| Given::new(one, at)),
            port: port.map(|port| Given::new(port, at)),
            hold_time: timers.map(|timers| seconds(timers.hold)),
            keepalive_time: timers.map(|timers| seconds(timers.keepalive)),
            connect_time: connect.map(seconds),
            ebgp_multi_hop: wanted.ebgp_multi_hop.map(|one| Given::new(one, at)),
            graceful_restart: wanted
                .enable_graceful_restart
                .map(|one| Given::new(one, at)),
            bfd_profile: wanted.bfd_profile.clone().map(|one| Given::new(one, at)),
            password: self.password(at, wanted).map(|one| Given::new(one, at)),
        }
    }

    /// Says which fields of a session have no effect beside the others.
    fn idle_parts(
        &mut self,
        at: At,
        wanted: &frrk8s::Neighbor,
        peer: &Peer,
        remote_as: RemoteAs,
        of: &Of<'_>,
    ) {
        let Peer::Address(address) = peer else {
            return;
        };
        if wanted.ebgp_multi_hop == Some(true) {
            let profile = wanted.bfd_profile.as_ref();
            let mut profiles = of.profiles.iter();
            let has_echo =
                profiles.any(|one| Some(&one.name) == profile && one.echo_mode == Some(true));
            if is_internal(remote_as, of.asn) {
                let what = "an internal session may be any number of hops long: leave it out";
                self.no_effect(at.field("ebgpMultiHop"), what);
            } else if has_echo {
                let what = "echoMode of the profile works over a single hop only: use another profile, or leave ebgpMultiHop out";
                self.no_effect(at.field("bfdProfile"), what);
            }
        }
        if let Some(UpdateSource::Address(source)) = &wanted.source_address
            && source.is_ipv4() != address.is_ipv4()
        {
            let what = format!(
                "a session with {address} cannot start from {source}, which is of the other address family: give an address of the family of the neighbor"
            );
            self.no_effect(at.field("sourceaddress"), what);
        }
    }

    fn local_as(&mut self, at: At, local: Asn, remote_as: RemoteAs, of: &Of<'_>) {
        if is_internal(remote_as, of.asn) {
            let message = "localASN is for external neighbors only: take it from this neighbor";
            self.rule(at.field("localASN"), message);
        } else if local == of.asn {
            let message = "localASN must differ from the router's asn: leave it out";
            self.rule(at.field("localASN"), message);
        }
    }

    fn password(&mut self, at: At, wanted: &frrk8s::Neighbor) -> Option<PasswordSource> {
        let secret = wanted.password_secret.as_ref();
        let secret = secret.filter(|one| one.name.is_some() || one.namespace.is_some());
        match (&wanted.password, secret) {
            (Some(_), Some(_)) => {
                let message = "password and passwordSecret exclude each other: keep passwordSecret";
                self.rule(at.field("password"), message);
                None
            }
            (Some(password), None) => {
                self.note(at.field("password"), problem::Kind::InlinePassword);
                Some(PasswordSource::Clear(password.clone()))
            }
            (None, Some(secret)) => self.secret(at, secret),
            (None, None) => None,
        }
    }

    /// The Secret that is referred to: in the namespace of the object unless the reference names another.
    fn secret(&mut self, at: At, secret: &SecretReference) -> Option<PasswordSource> {
        let Some(name) = secret.name.clone().filter(|name| !name.is_empty()) else {
            let message = "a reference to a Secret needs its name";
            self.rule(at.field("passwordSecret.name"), message);
            return None;
        };
        let given = secret.namespace.as_deref().filter(|one| !one.is_empty());
        let own = self.subject.key.namespace.as_deref();
        let namespace = given.or(own).unwrap_or(names::OWN_NAMESPACE);
        if !self.is_used(Some(namespace)) {
            let message = format!(
                "Secret {namespace}/{name} is in a namespace that is not used: use a Secret in the namespace of this \
                 object, or add {namespace} to Settings.spec.frrConfigurations.namespaces"
            );
            self.rule(at.field("passwordSecret.namespace"), message);
        }
        Some(PasswordSource::Secret(SecretReference {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
        }))
    }
}
