//! What is measured of the host's router, under the names that dashboards of `FRRConfiguration` users have.

use endpoint::Exposition;

use super::{
    machine::Status,
    sessions::{
        BFD_COUNTERS, BFD_PEERS, BfdSession, Counted, Messages, NEIGHBORS, read_bfd, read_sessions,
    },
};
use crate::{daemons::Instance, vtysh};

/// A counter of a BGP session: its name, what it means, and its value.
type Counter = (&'static str, &'static str, fn(&Messages) -> u64);

const COUNTERS: [Counter; 10] = [
    ("opens_sent", "OPEN messages sent.", |it| it.opens_sent),
    ("opens_received", "OPEN messages received.", |it| {
        it.opens_recv
    }),
    ("notifications_sent", "NOTIFICATION messages sent.", |it| {
        it.notifications_sent
    }),
    ("updates_total", "UPDATE messages sent.", |it| {
        it.updates_sent
    }),
    (
        "updates_total_received",
        "UPDATE messages received.",
        |it| it.updates_recv,
    ),
    ("keepalives_sent", "KEEPALIVE messages sent.", |it| {
        it.keepalives_sent
    }),
    (
        "keepalives_received",
        "KEEPALIVE messages received.",
        |it| it.keepalives_recv,
    ),
    ("route_refresh_sent", "ROUTE-REFRESH messages sent.", |it| {
        it.route_refresh_sent
    }),
    ("total_sent", "Messages sent.", |it| it.total_sent),
    ("total_received", "Messages received.", |it| it.total_recv),
];

/// A counter of a BFD session.
type BfdCounter = (&'static str, &'static str, fn(&BfdSession) -> u64);

const BFD: [BfdCounter; 7] = [
    ("control_packet_input", "Control packets received.", |it| {
        it.control_packet_input
    }),
    ("control_packet_output", "Control packets sent.", |it| {
        it.control_packet_output
    }),
    ("echo_packet_input", "Echo packets received.", |it| {
        it.echo_packet_input
    }),
    ("echo_packet_output", "Echo packets sent.", |it| {
        it.echo_packet_output
    }),
    ("session_up_events", "Times the session came up.", |it| {
        it.session_up
    }),
    (
        "session_down_events",
        "Times the session went down.",
        |it| it.session_down,
    ),
    ("zebra_notifications", "Notifications of zebra.", |it| {
        it.zebra_notifications
    }),
];

/// All metrics of the host's router as text. The daemons are asked over their sockets; what does not answer is left out.
pub(crate) async fn text(instance: &Instance, status: &Status) -> String {
    let mut text = Exposition::new("frrk8s_");
    client(&mut text, status);
    let ask = async |daemon: &str, question: &str| {
        let answer = vtysh::ask_daemon(instance, daemon, question).await;
        answer.ok().flatten().unwrap_or_default()
    };
    if let Ok(sessions) = read_sessions(&ask("bgpd", NEIGHBORS).await) {
        bgp(&mut text, &sessions);
    }
    let (peers, counters) = (
        ask("bfdd", BFD_PEERS).await,
        ask("bfdd", BFD_COUNTERS).await,
    );
    if let Ok(sessions) = read_bfd(&peers, &counters) {
        bfd(&mut text, &sessions);
    }
    if let Ok(vnis) = frr::show::evpn_vnis(&ask("zebra", "show evpn vni json").await) {
        evpn(&mut text, &vnis);
    }
    text.into_text()
}

fn client(text: &mut Exposition, status: &Status) {
    let counters = status.counters;
    text.value(
        "k8s_client_updates_total",
        "counter",
        "Configs of the host's router that were applied.",
        counters.applied,
    );
    text.value(
        "k8s_client_update_errors_total",
        "counter",
        "Applies of the host's router that failed.",
        counters.failed,
    );
    let is_loaded = status
        .running
        .as_ref()
        .is_some_and(|it| it.router.is_some());
    text.value(
        "k8s_client_config_loaded_bool",
        "gauge",
        "1 if FRR runs a config of the host's router.",
        u8::from(is_loaded),
    );
    let is_stale = status.assigned.is_some() && status.running != status.assigned;
    text.value(
        "k8s_client_config_stale_bool",
        "gauge",
        "1 if FRR runs another config than the latest.",
        u8::from(is_stale),
    );
}

fn bgp(text: &mut Exposition, sessions: &[Counted]) {
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Counted) -> u64| {
        text.head(name, kind, help);
        for counted in sessions {
            let session = &counted.session;
            let labels = [
                ("peer", session.peer.as_str()),
                ("vrf", session.vrf.as_str()),
            ];
            text.labelled(name, &labels, value(counted));
        }
    };
    let is_up = |it: &Counted| u64::from(it.session.state == "Established");
    each(
        "bgp_session_up",
        "gauge",
        "1 if the BGP session is established.",
        &is_up,
    );
    let help = "Prefixes that the peer was sent.";
    each("bgp_announced_prefixes_total", "gauge", help, &|it| {
        it.announced
    });
    let help = "Prefixes that were accepted from the peer.";
    each("bgp_received_prefixes_total", "gauge", help, &|it| {
        it.received
    });
    let help = "EVPN routes that the peer was sent.";
    each("bgp_evpn_announced_routes_total", "gauge", help, &|it| {
        it.evpn_announced
    });
    let help = "EVPN routes that were accepted from the peer.";
    each("bgp_evpn_received_routes_total", "gauge", help, &|it| {
        it.evpn_received
    });
    for (name, help, value) in COUNTERS {
        let name = format!("bgp_{name}");
        each(&name, "counter", help, &|it| value(&it.messages));
    }
}

fn bfd(text: &mut Exposition, sessions: &[BfdSession]) {
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&BfdSession) -> u64| {
        text.head(name, kind, help);
        for session in sessions {
            let labels = [
                ("peer", session.peer.as_str()),
                ("vrf", session.vrf.as_str()),
            ];
            text.labelled(name, &labels, value(session));
        }
    };
    let is_up = |it: &BfdSession| u64::from(it.status == "up");
    each(
        "bfd_session_up",
        "gauge",
        "1 if the BFD session is up.",
        &is_up,
    );
    for (name, help, value) in BFD {
        each(&format!("bfd_{name}"), "counter", help, &value);
    }
}

fn evpn(text: &mut Exposition, vnis: &[frr::show::EvpnVni]) {
    text.head("evpn_vnis", "gauge", "VNIs that FRR knows on the host.");
    for (kind, name) in [
        (frr::show::VniKind::L2, "L2"),
        (frr::show::VniKind::L3, "L3"),
    ] {
        let count = vnis.iter().filter(|vni| vni.kind == kind).count();
        text.labelled("evpn_vnis", &[("type", name)], count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Session;

    #[test]
    fn metrics_have_the_names_and_labels_that_dashboards_know() {
        let session = Counted {
            session: Session {
                vrf: "default".to_owned(),
                peer: "192.0.2.1".to_owned(),
                state: "Established".to_owned(),
                bfd: None,
            },
            announced: 4,
            ..Counted::default()
        };
        let peer = BfdSession {
            vrf: "red".to_owned(),
            peer: "192.0.2.1".to_owned(),
            status: "up".to_owned(),
            ..BfdSession::default()
        };
        let mut text = Exposition::new("frrk8s_");
        client(&mut text, &Status::default());
        bgp(&mut text, &[session]);
        bfd(&mut text, &[peer]);
        let text = text.into_text();
        let labels = "{peer=\"192.0.2.1\",vrf=\"default\"}";
        for (name, value) in [
            ("bgp_session_up", 1),
            ("bgp_announced_prefixes_total", 4),
            ("bgp_received_prefixes_total", 0),
            ("bgp_opens_sent", 0),
            ("bgp_opens_received", 0),
            ("bgp_notifications_sent", 0),
            ("bgp_updates_total", 0),
            ("bgp_updates_total_received", 0),
            ("bgp_keepalives_sent", 0),
            ("bgp_keepalives_received", 0),
            ("bgp_route_refresh_sent", 0),
            ("bgp_total_sent", 0),
            ("bgp_total_received", 0),
        ] {
            let line = format!("\nfrrk8s_{name}{labels} {value}\n");
            assert!(text.contains(&line), "{line}: {text}");
        }
        for name in [
            "session_up",
            "control_packet_input",
            "control_packet_output",
            "echo_packet_input",
            "echo_packet_output",
            "session_up_events",
            "session_down_events",
            "zebra_notifications",
        ] {
            let line = format!("\nfrrk8s_bfd_{name}{{peer=\"192.0.2.1\",vrf=\"red\"}} ");
            assert!(text.contains(&line), "{line}: {text}");
        }
        for name in [
            "updates_total",
            "update_errors_total",
            "config_loaded_bool",
            "config_stale_bool",
        ] {
            let line = format!("\nfrrk8s_k8s_client_{name} 0\n");
            assert!(text.contains(&line), "{line}: {text}");
        }
    }
}
