//! What this kernel can do, found out by doing it in a namespace that vanishes afterwards.

use std::{
    error::Error as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{Connection, Error, Kernel, RequestError, filter, link, namespace::Namespace, read};
use crate::{
    Domain, Filter, Hook, LinkId,
    desired::DesiredLink,
    object::{Family, Gre, Kind, Payload},
};

/// Something that configs may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name, as `ip link` and `tc` have it.
    pub name: &'static str,
    /// Why the kernel cannot do it; absent if it can.
    pub missing: Option<String>,
}

impl Capability {
    fn new(name: &'static str, outcome: Result<(), RequestError>) -> Self {
        let missing = outcome.err().map(|error| match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        });
        Self { name, missing }
    }
}

/// A small number that is free in an empty namespace, for tables, VNIs and VLANs.
const ANY: u16 = 42;
/// The VXLAN port of the data plane.
const VXLAN_PORT: u16 = 4789;
/// The link that others are made on.
const CARRIER: &str = "try-bridge";

fn kinds() -> [(&'static str, Kind); 10] {
    let gre = |payload, local: IpAddr, remote: IpAddr| {
        Kind::Gre(Gre {
            payload,
            local,
            remote,
            key: None,
            device: None,
        })
    };
    let (v4, v4_far) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let v6_far = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
    let vxlan = Kind::Vxlan {
        vni: ANY.into(),
        port: VXLAN_PORT,
        local: Some(v4.into()),
        learning: false,
    };
    let vlan = Kind::Vlan {
        parent: Some(CARRIER.to_owned()),
        id: ANY,
    };
    let veth = Kind::Veth {
        peer: Some(LinkId::router("try-peer")),
    };
    [
        ("bridge", Kind::Bridge),
        ("vrf", Kind::Vrf { table: ANY.into() }),
        ("vxlan", vxlan),
        ("vlan", vlan),
        ("veth", veth),
        ("dummy", Kind::Dummy),
        ("gre", gre(Payload::Packets, v4.into(), v4_far.into())),
        ("gretap", gre(Payload::Frames, v4.into(), v4_far.into())),
        ("ip6gre", gre(Payload::Packets, v6.into(), v6_far.into())),
        ("ip6gretap", gre(Payload::Frames, v6.into(), v6_far.into())),
    ]
}

impl Kernel {
    /// What this kernel can do of that which configs may ask for. Nothing of the node is changed.
    pub async fn capabilities(&self) -> Result<Vec<Capability>, Error> {
        let failed = |source| Error::MakeNamespace {
            name: "for tests".to_owned(),
            source,
        };
        let namespace = Namespace::unnamed().await.map_err(failed)?;
        let connection = namespace.connect(Domain::Router).await.map_err(failed)?;
        let mut capabilities = Vec::new();
        for (name, kind) in kinds() {
            let outcome = make(&connection, name, kind).await;
            capabilities.push(Capability::new(name, outcome));
        }
        let outcome = mirror(&connection).await;
        capabilities.push(Capability::new("flower", outcome));
        Ok(capabilities)
    }
}

async fn make(connection: &Connection, name: &str, kind: Kind) -> Result<(), RequestError> {
    let parent = match &kind {
        Kind::Vlan { .. } => read::link(connection, CARRIER).await?.map(|it| it.index),
        _ => None,
    };
    let desired = DesiredLink::probe(kind);
    // The kernel itself makes links such as gre0.
    let name = format!("try-{name}");
    link::create(connection, &name, &desired, link::Below { parent }, None).await
}

/// Copies what one link receives into another.
async fn mirror(connection: &Connection) -> Result<(), RequestError> {
    let index = async |name| Ok(read::link(connection, name).await?.map_or(0, |it| it.index));
    let (from, to) = (index("try-veth").await?, index(CARRIER).await?);
    filter::add_hook(connection, from).await?;
    let copy = Filter {
        link: LinkId::router("try-veth"),
        hook: Hook::Ingress,
        family: Family::V4,
        src: None,
        dst: None,
        protocol: None,
        src_port: None,
        dst_port: None,
        to: CARRIER.to_owned(),
    };
    filter::add(connection, from, to, ANY, &copy).await
}
