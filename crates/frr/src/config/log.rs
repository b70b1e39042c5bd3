//! What FRR writes into its log.

use std::collections::BTreeSet;

/// The log on standard output, and what is told there besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Messages of this level and above go to standard output; absent means none.
    pub stdout: Option<LogLevel>,
    /// What is told step by step.
    pub debug: BTreeSet<Debug>,
}

words! {
    /// Severity of a message.
    LogLevel {
        /// The system cannot be used.
        Emergencies = "emergencies",
        /// Somebody must act at once.
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
    /// What is told step by step.
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
