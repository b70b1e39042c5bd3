//! What FRR writes into its log.

use std::collections::BTreeSet;

/// The log on standard output, and its level of detail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Messages of this level and above go to standard output; absent means none.
    pub stdout: Option<LogLevel>,
    /// The topics with debug messages.
    pub debug: BTreeSet<Debug>,
}

words! {
    /// Severity of a message.
    LogLevel {
        /// The system cannot be used.
        Emergencies = "emergencies",
        /// Action is needed at once.
        Alerts = "alerts",
        /// Critical conditions.
        Critical = "critical",
        /// Errors.
        Errors = "errors",
        /// Warnings.
        Warnings = "warnings",
        /// What is normal and of note.
        Notifications = "notifications",
        /// What happens.
        Informational = "informational",
        /// What helps to find a fault.
        Debugging = "debugging",
    }
}

words! {
    /// The topics with debug messages.
    Debug {
        /// Events of zebra.
        ZebraEvents = "zebra events",
        /// Next hops that zebra tracks.
        ZebraNht = "zebra nht",
        /// Messages to and from the kernel.
        ZebraKernel = "zebra kernel",
        /// Routes of zebra.
        ZebraRib = "zebra rib",
        /// Next hops of zebra.
        ZebraNexthop = "zebra nexthop",
        /// State of BGP sessions.
        BgpNeighborEvents = "bgp neighbor-events",
        /// Updates that come in.
        BgpUpdatesIn = "bgp updates in",
        /// Updates that go out.
        BgpUpdatesOut = "bgp updates out",
        /// Keepalives of BGP sessions.
        BgpKeepalives = "bgp keepalives",
        /// Next hops of BGP routes.
        BgpNht = "bgp nht",
        /// What bgpd and zebra tell each other.
        BgpZebra = "bgp zebra",
        /// State of BFD sessions.
        BfdPeer = "bfd peer",
        /// What bfdd and zebra tell each other.
        BfdZebra = "bfd zebra",
        /// Packets of BFD sessions.
        BfdNetwork = "bfd network",
    }
}
