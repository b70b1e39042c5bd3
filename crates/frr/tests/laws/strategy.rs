//! Configurations out of a small world, so that two of them have much in common.

mod filter;

use std::{collections::BTreeMap, fmt::Debug, str::FromStr};

use api::value::{Asn, IfName, Vni};
use proptest::{
    collection::{btree_map, btree_set},
    option,
    prelude::*,
    sample::select,
};
use selvedge_frr::{
    FrrConfig, Password,
    config::{
        Advertise, BfdProfile, Bgp, Debug as DebugTopic, Evpn, FamilySwitch, GracefulRestart,
        IpFamily, Log, LogLevel, MaximumPrefix, Name, Neighbor, NeighborBfd, NeighborFamily, Peer,
        RedistributeSource, RemoteAs, SessionSwitch, StaticRoute, Timers, Unicast, Via, VniTargets,
        Vrf, derived_target,
    },
};

use self::filter::{community_list, prefix_list, route_map};

/// One of these texts, as a value.
fn one<T: FromStr<Err: Debug> + Clone + Debug + 'static>(
    texts: &'static [&'static str],
) -> impl Strategy<Value = T> + Clone {
    let values: Vec<T> = texts.iter().map(|text| text.parse().unwrap()).collect();
    select(values)
}

fn name() -> impl Strategy<Value = Name> + Clone {
    one(&["a", "b:1", "c/2"])
}

fn vrf_name() -> impl Strategy<Value = IfName> + Clone {
    one(&["red", "blue", "s-red"])
}

fn vni() -> impl Strategy<Value = Vni> + Clone {
    (1_i64..4).prop_map(|number| Vni::try_from(number).unwrap())
}

fn asn() -> impl Strategy<Value = Asn> + Clone {
    (64_512_i64..64_514).prop_map(|number| Asn::try_from(number).unwrap())
}

fn vrf() -> impl Strategy<Value = Vrf> {
    let via = prop_oneof![
        Just(Via::Blackhole),
        vrf_name().prop_map(Via::Vrf),
        (one(&["192.0.2.1", "192.0.2.2"]), option::of(vrf_name()))
            .prop_map(|(address, vrf)| Via::Address(address, vrf)),
    ];
    let route = (one(&["10.0.0.0/8", "11.0.0.0/8"]), via, option::of(name()));
    let routes = proptest::collection::vec(route, 0..4).prop_map(|routes| {
        let mut kept: BTreeMap<StaticRoute, Option<Name>> = BTreeMap::new();
        for (prefix, via, bfd) in routes {
            // FRR drops or routes a prefix, not both, and watches only addresses.
            let bfd = bfd.filter(|_| matches!(via, Via::Address(..)));
            let drops = |via: &Via| *via == Via::Blackhole;
            let fits =
                |other: &StaticRoute| other.prefix != prefix || drops(&other.via) == drops(&via);
            if kept.keys().all(fits) {
                kept.insert(StaticRoute { prefix, via }, bfd);
            }
        }
        kept
    });
    (option::of(vni()), routes).prop_map(|(vni, static_routes)| Vrf { vni, static_routes })
}

fn neighbor() -> impl Strategy<Value = Neighbor> {
    let remote_as = prop_oneof![
        asn().prop_map(RemoteAs::Number),
        Just(RemoteAs::External),
        Just(RemoteAs::Internal),
    ];
    let bfd = (option::of(name()), any::<bool>());
    let bfd = option::of(bfd.prop_map(|(profile, check_control_plane)| NeighborBfd {
        profile,
        check_control_plane,
    }));
    let description = option::of(one(&["fabric", "workloads of red"]));
    let password = option::of("[!-~]{1,8}".prop_map(|text| Password::new(&text).unwrap()));
    let timers = option::of((0_u16..20, 3_u16..60).prop_map(|(k, h)| Timers::new(k, h).unwrap()));
    let numbers = (
        option::of(1_u16..4),
        option::of(select(vec![2, 3, 255_u8])),
        option::of(1_u16..4),
    );
    let source = option::of(one(&["lo", "192.0.2.7"]));
    let local_as = option::of(asn());
    let switches = btree_set(select(SessionSwitch::ALL), 0..2);
    let more = (option::of(2_u8..4), switches);
    (
        (remote_as, local_as),
        bfd,
        password,
        timers,
        numbers,
        source,
        (any::<[bool; 3]>(), description, more),
    )
        .prop_map(
            |((remote_as, local_as), bfd, password, timers, numbers, update_source, last)| {
                Neighbor {
                    local_as,
                    description: last.1,
                    bfd,
                    password,
                    port: numbers.0,
                    ebgp_multihop: numbers.1,
                    update_source,
                    timers,
                    connect_time: numbers.2,
                    extended_nexthop: last.0[0],
                    disable_connected_check: last.0[1],
                    graceful_restart: last.0[2],
                    ttl_security: last.2.0,
                    switches: last.2.1,
                    ..Neighbor::new(remote_as)
                }
            },
        )
}

fn peer() -> impl Strategy<Value = Peer> + Clone {
    select(vec![
        Peer::Group("listen:10.0.0.0/8".parse().unwrap()),
        Peer::Interface("eth1".parse().unwrap()),
        Peer::Address("192.0.2.9".parse().unwrap()),
        Peer::Address("2001:db8::9".parse().unwrap()),
    ])
}

fn families() -> impl Strategy<Value = BTreeMap<Peer, NeighborFamily>> {
    let family = (
        (any::<[bool; 2]>(), option::of(1_u8..4)),
        option::of(
            (1_u32..4, option::of(1_u16..3))
                .prop_map(|(limit, restart)| MaximumPrefix { limit, restart }),
        ),
        (option::of(name()), option::of(name())),
        (option::of(name()), option::of(name())),
        option::of(1_u16..3),
        btree_set(select(FamilySwitch::ALL), 0..3),
    );
    let family = family.prop_map(
        |(
            ([activate, next_hop_self], allowas_in),
            maximum_prefix,
            maps,
            lists,
            weight,
            switches,
        )| NeighborFamily {
            activate,
            next_hop_self,
            allowas_in,
            maximum_prefix,
            route_map_in: maps.0,
            route_map_out: maps.1,
            prefix_list_in: lists.0,
            prefix_list_out: lists.1,
            weight,
            switches,
        },
    );
    btree_map(peer(), family, 0..3)
}

fn unicast(networks: &'static [&'static str]) -> impl Strategy<Value = Unicast> {
    let source = select(vec![
        RedistributeSource::Connected,
        RedistributeSource::Kernel,
        RedistributeSource::Static,
    ]);
    (
        (
            btree_set(one(networks), 0..3),
            btree_set(one(networks), 0..3),
        ),
        btree_map(source, option::of(name()), 0..3),
        families(),
        option::of(name()),
        (btree_set(vrf_name(), 0..3), option::of(2_u16..4)),
    )
        .prop_map(
            |((networks, aggregates), redistribute, neighbors, import_route_map, imports)| {
                Unicast {
                    networks,
                    aggregates,
                    redistribute,
                    neighbors,
                    import_route_map,
                    import_vrfs: imports.0,
                    maximum_paths: imports.1,
                }
            },
        )
}

fn evpn() -> impl Strategy<Value = Evpn> {
    let advertise = || option::of(option::of(name()).prop_map(|route_map| Advertise { route_map }));
    let imports = btree_set(one(&["1:1", "*:2", "192.0.2.1:3"]), 0..3);
    // Among them those that FRR derives for the instances and VNIs of this world.
    let targets = || btree_set(one(&["1:1", "4200000000:2", "64512:1", "64513:2"]), 0..3);
    let rd = || option::of(one(&["192.0.2.1:7", "65000:1"]));
    let wildcards = btree_set(one(&["1:1", "*:2", "64512:1", "64513:2"]), 0..3);
    let vnis = (rd(), wildcards, targets()).prop_map(|(rd, import, export)| VniTargets {
        rd,
        import,
        export,
    });
    let vnis = btree_map(vni(), vnis, 0..3);
    (
        (families(), rd()),
        any::<[bool; 2]>(),
        vnis,
        advertise(),
        advertise(),
        imports,
        targets(),
    )
        .prop_map(
            |((neighbors, rd), advertise, vnis, ipv4, ipv6, import_targets, export_targets)| Evpn {
                neighbors,
                advertise_all_vni: advertise[0],
                advertise_svi_ip: advertise[1],
                rd,
                vnis,
                advertise_ipv4: ipv4,
                advertise_ipv6: ipv6,
                import_targets,
                export_targets,
            },
        )
}

/// Boxed, because a strategy of this size, as often as it stands in a config, does not fit on the stack of a test.
fn bgp() -> BoxedStrategy<Bgp> {
    let restart = (1_u16..4, 1_u16..4, any::<[bool; 2]>());
    let restart = restart.prop_map(|(restart_time, stale_path_time, flags)| GracefulRestart {
        on_all_sessions: flags[0],
        restart_time,
        stale_path_time,
        preserve_fw_state: flags[1],
    });
    let restart = prop_oneof![restart, Just(GracefulRestart::default())];
    let header = (
        option::of(one(&["192.0.2.1", "192.0.2.2"])),
        any::<[bool; 4]>(),
        restart,
    );
    let sessions = (
        btree_map(peer(), neighbor(), 0..4),
        any::<bool>(),
        option::of(select(vec![5_u16, 256])),
    );
    let v4 = unicast(&["10.0.0.0/8", "192.0.2.1/32"]);
    let v6 = unicast(&["2001:db8::/32", "2001:db8::1/128"]);
    let all = (asn(), header, sessions, v4, v6, evpn());
    let made = all.prop_map(|(asn, header, sessions, ipv4, ipv6, evpn)| {
        let (
            router_id,
            [
                ebgp_requires_policy,
                default_ipv4_unicast,
                multipath_relax,
                import_check,
            ],
            restart,
        ) = header;
        let mut bgp = Bgp {
            router_id,
            ebgp_requires_policy,
            default_ipv4_unicast,
            network_import_check: import_check,
            graceful_restart: restart,
            multipath_relax,
            neighbors: sessions.0,
            listen_limit: sessions.2,
            ipv4,
            ipv6,
            evpn,
            ..Bgp::new(asn)
        };
        // FRR does not store the target that it derives by itself where it has no other.
        for (vni, targets) in &mut bgp.evpn.vnis {
            let derived = derived_target(bgp.asn, *vni).unwrap();
            if targets.export == [derived].into() {
                targets.export.clear();
            }
            if targets.import == [derived.into()].into() {
                targets.import.clear();
            }
        }
        // A session that does not exist has no settings, and a group that does not exist has no listen range.
        let known = bgp.neighbors.clone();
        let said = |peer: &Peer, family: &mut NeighborFamily| {
            known.contains_key(peer) && *family != NeighborFamily::default()
        };
        bgp.ipv4.neighbors.retain(said);
        bgp.ipv6.neighbors.retain(said);
        bgp.evpn.neighbors.retain(said);
        let group: Name = "listen:10.0.0.0/8".parse().unwrap();
        if sessions.1 && known.contains_key(&Peer::Group(group.clone())) {
            bgp.listen_ranges
                .insert("10.0.0.0/8".parse().unwrap(), group);
        }
        bgp
    });
    made.boxed()
}

/// Instances, each with its AS; where there is any, there is that of the default VRF.
fn instances() -> impl Strategy<Value = BTreeMap<Option<IfName>, Bgp>> {
    let others = btree_map(vrf_name().prop_map(Some), bgp(), 0..3);
    option::of((bgp(), others)).prop_map(|all| {
        let Some((default, mut others)) = all else {
            return BTreeMap::new();
        };
        others.insert(None, default);
        others
    })
}

fn bfd_profile() -> impl Strategy<Value = BfdProfile> {
    let numbers = (
        2_u8..5,
        select(vec![100, 300_u32]),
        select(vec![50, 60_u32]),
        253_u8..=254,
    );
    (numbers, any::<(bool, bool)>()).prop_map(|((multiplier, interval, echo, ttl), (a, b))| {
        BfdProfile {
            detect_multiplier: multiplier,
            receive_interval: interval,
            transmit_interval: interval,
            echo_receive_interval: echo,
            echo_transmit_interval: echo,
            echo_mode: a,
            passive_mode: b,
            minimum_ttl: ttl,
        }
    })
}

/// Any configuration in the form that FRR gives back.
pub(crate) fn config() -> impl Strategy<Value = FrrConfig> {
    let lists = |family| {
        btree_map(
            name().prop_map(move |name| (family, name)),
            prefix_list(family),
            0..3,
        )
    };
    let filters = (
        (lists(IpFamily::V4), lists(IpFamily::V6)),
        btree_map(name(), community_list(false), 0..3),
        btree_map(name(), community_list(true), 0..3),
        btree_map(name(), route_map(), 0..3),
    );
    let vrfs = btree_map(vrf_name(), vrf(), 0..3);
    let profiles = btree_map(name(), bfd_profile(), 0..3);
    let log = (
        option::of(select(LogLevel::ALL)),
        btree_set(select(DebugTopic::ALL), 0..3),
    );
    let log = log.prop_map(|(stdout, debug)| Log { stdout, debug });
    let head = (any::<bool>(), log);
    (head, filters, vrfs, instances(), profiles).prop_map(
        |((resolve_via_default, log), filters, mut vrfs, bgp, bfd_profiles)| {
            let ((mut prefix_lists, more), community_lists, large_community_lists, route_maps) =
                filters;
            prefix_lists.extend(more);
            vrfs.retain(|name, vrf| {
                *vrf != Vrf::default() || !bgp.contains_key(&Some(name.clone()))
            });
            FrrConfig {
                log,
                resolve_via_default,
                prefix_lists,
                community_lists,
                large_community_lists,
                route_maps,
                vrfs,
                bgp,
                bfd_profiles,
            }
        },
    )
}

/// A word that means something somewhere.
pub(crate) fn word() -> impl Strategy<Value = String> {
    let words = vec![
        "no ",
        "router ",
        "bgp ",
        "64512 ",
        "vrf ",
        "red ",
        "neighbor ",
        "192.0.2.1 ",
        "remote-as ",
        "activate ",
        "address-family ",
        "ipv4 ",
        "ipv6 ",
        "unicast ",
        "l2vpn ",
        "evpn ",
        "vni ",
        "7 ",
        "route-map ",
        "permit ",
        "ip ",
        "prefix-list ",
        "seq ",
        "5 ",
        "10.0.0.0/8 ",
        "ge ",
        "le ",
        "route ",
        "blackhole ",
        "bfd ",
        "profile ",
        "set ",
        "community ",
        "additive ",
        "none ",
        "match ",
        "call ",
        "exit ",
        "end ",
        "\n",
        "\n ",
        "password ",
        "timers ",
        "import ",
        "route-target ",
        "*:2 ",
        "peer-group ",
        "listen ",
        "aggregate-address ",
        "local-as ",
        "no-prepend replace-as ",
        "next-hop-self force ",
        "range ",
        "exit-vrf\n",
        "set ip next-hop 1.1.1.1\n ",
        "debug bgp updates\n ",
        "log stdout debugging\n ",
        "any ",
        "deny ",
        "local-preference 5 ",
        "advertise-svi-ip ",
        "rd ",
    ];
    select(words).prop_map(str::to_owned)
}
