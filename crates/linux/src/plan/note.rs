//! What a plan could not do.

use std::fmt;

use crate::{
    desired::Unsupported,
    object::{Kind, LinkId},
    sysctl::SysctlId,
};

/// Something that is wished for and cannot be had, and holds up nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// The kernel does not know a setting.
    SysctlMissing(SysctlId),
    /// A NIC is in neither namespace.
    NicMissing(String),
    /// The host lacks the device that should carry a VLAN.
    ParentMissing {
        /// The VLAN's device, which is not made.
        link: LinkId,
        /// What is missing.
        parent: String,
    },
    /// The device that carries a VLAN is down, so that the VLAN cannot be up.
    ParentDown {
        /// The VLAN's device.
        link: LinkId,
        /// What is down.
        parent: String,
    },
    /// The device that carries a VLAN takes smaller packets than the VLAN should.
    ParentMtu {
        /// The VLAN's device, which gets the MTU of the one below.
        link: LinkId,
        /// The device below.
        parent: String,
        /// Its MTU.
        mtu: u32,
    },
    /// The host lacks the bridge that a segment is to be attached to.
    MasterMissing {
        /// The port, which is left alone until the bridge is there.
        link: LinkId,
        /// What the port belongs to, for people.
        of: String,
        /// The bridge.
        master: String,
    },
    /// The host's link that a segment is to be attached to is no bridge of the kernel.
    MasterUnfit {
        /// The port, which is left alone.
        link: LinkId,
        /// What the port belongs to, for people.
        of: String,
        /// The link.
        master: String,
        /// What it is.
        kind: Kind,
    },
    /// A segment is to be attached in a way that cannot be done.
    Unattached(Unsupported),
    /// A mirror is asked for in a way that cannot be done.
    Unmirrored(Unsupported),
    /// A link that we did not make has the name of a tunnel.
    TunnelTaken {
        /// The foreign link.
        link: LinkId,
        /// What it is.
        kind: Kind,
    },
}

impl Note {
    /// Whether it concerns a mirror.
    pub fn is_of_mirror(&self) -> bool {
        matches!(self, Self::Unmirrored(_) | Self::TunnelTaken { .. })
    }

    /// The port that is not attached, and its bridge.
    pub fn unattached(&self) -> Option<(&str, &str)> {
        match self {
            Self::MasterMissing { link, master, .. } | Self::MasterUnfit { link, master, .. } => {
                Some((&link.name, master))
            }
            Self::SysctlMissing(_)
            | Self::NicMissing(_)
            | Self::ParentMissing { .. }
            | Self::ParentDown { .. }
            | Self::ParentMtu { .. }
            | Self::Unattached(_)
            | Self::Unmirrored(_)
            | Self::TunnelTaken { .. } => None,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SysctlMissing(id) => write!(f, "this kernel has no {id}"),
            Self::NicMissing(name) => write!(f, "there is no NIC {name}"),
            Self::ParentMissing { link, parent } => {
                write!(f, "{link} is not made: there is no {parent} to carry it")
            }
            Self::ParentDown { link, parent } => {
                write!(f, "{link} stays down as long as {parent} below it is")
            }
            Self::ParentMtu { link, parent, mtu } => {
                write!(f, "{link} gets the MTU of {parent} below it, {mtu}")
            }
            Self::MasterMissing { link, of, master } => {
                write!(
                    f,
                    "{link} ({of}) is not attached: there is no bridge {master}"
                )
            }
            Self::MasterUnfit {
                link,
                of,
                master,
                kind,
            } => write!(
                f,
                "{link} ({of}) is not attached: {master} is no bridge of the kernel but a link of kind {kind}"
            ),
            Self::Unmirrored(what) | Self::Unattached(what) => what.fmt(f),
            Self::TunnelTaken { link, kind } => write!(
                f,
                "{link} is a {kind} that Selvedge did not make, and no tunnel; rename or remove it"
            ),
        }
    }
}
