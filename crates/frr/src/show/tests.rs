use super::*;

#[test]
fn sessions_of_all_instances_are_read() {
    // FRR 10.7.1, shortened.
    let json = r#"{
      "default":{
        "ipv4Unicast":{"routerId":"198.51.100.1","as":64512,"vrfName":"default","peerCount":1,"peers":{
          "eth2":{"remoteAs":64601,"localAs":64512,"version":4,"peerUptime":"00:00:07","peerUptimeMsec":7000,
            "pfxRcd":3,"pfxSnt":1,"state":"Established","peerState":"OK","connectionsEstablished":2,
            "connectionsDropped":1,"idType":"interface"}},"failedPeers":0,"totalPeers":1},
        "l2VpnEvpn":{"routerId":"198.51.100.1","as":64512,"peers":{
          "192.0.2.1":{"remoteAs":0,"peerUptime":"never","peerUptimeMsec":0,"pfxRcd":0,"pfxSnt":0,"state":"Idle"}}}
      },
      "red":{}
    }"#;
    let sessions = bgp_summary(json).unwrap();
    let up: Vec<(&str, &str, &str, bool, u64)> = sessions
        .iter()
        .map(|s| {
            let (vrf, family, neighbor) = (s.vrf.as_str(), s.family.as_str(), s.neighbor.as_str());
            (vrf, family, neighbor, s.established, s.prefixes_received)
        })
        .collect();
    assert_eq!(
        up,
        [
            ("default", "ipv4Unicast", "eth2", true, 3),
            ("default", "l2VpnEvpn", "192.0.2.1", false, 0),
        ]
    );
    assert_eq!(sessions[0].times_dropped, 1);
    assert!(bgp_summary("% No BGP neighbors found").is_err());
}

#[test]
fn vnis_are_read_with_and_without_devices() {
    let json = r#"{"2001":{"vni":2001,"vxlanIf":"None","vlan":0,"bridge":"-","numMacs":0,"numArpNd":0,
        "numRemoteVteps":"n/a","type":"L3","tenantVrf":"Unknown"},
        "100":{"vni":100,"vxlanIf":"vx.100","numMacs":2,"numRemoteVteps":1,"type":"L2","tenantVrf":"red"}}"#;
    let vnis = evpn_vnis(json).unwrap();
    assert_eq!(vnis[0].kind, VniKind::L2);
    assert_eq!(vnis[0].vxlan_if.as_deref(), Some("vx.100"));
    assert_eq!(
        (vnis[1].kind, vnis[1].vxlan_if.as_deref()),
        (VniKind::L3, None)
    );

    let json = r#"{"vrfs":[{"vrf":"blue","vni":2001,"vxlanIntf":"None","sviIntf":"None","state":"Down",
        "routerMac":"None"}]}"#;
    let vrfs = vrf_vnis(json).unwrap();
    assert_eq!(
        (vrfs[0].vni, vrfs[0].is_up(), vrfs[0].router_mac.as_deref()),
        (2001, false, None)
    );
}
