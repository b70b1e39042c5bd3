//! Profiles of BFD sessions.

/// A profile, with FRR's defaults where nothing else is said: FRR stores no difference between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdProfile {
    /// How many packets may be missed.
    pub detect_multiplier: u8,
    /// Milliseconds between packets we are ready to receive.
    pub receive_interval: u32,
    /// Milliseconds between packets we send.
    pub transmit_interval: u32,
    /// Milliseconds between echo packets we are ready to receive.
    pub echo_receive_interval: u32,
    /// Milliseconds between echo packets we send.
    pub echo_transmit_interval: u32,
    /// Whether the echo function is used.
    pub echo_mode: bool,
    /// Whether the peer must send the first packet (passive mode).
    pub passive_mode: bool,
    /// Least TTL of a packet that counts, over several hops.
    pub minimum_ttl: u8,
}

impl Default for BfdProfile {
    fn default() -> Self {
        Self {
            detect_multiplier: 3,
            receive_interval: 300,
            transmit_interval: 300,
            echo_receive_interval: 50,
            echo_transmit_interval: 50,
            echo_mode: false,
            passive_mode: false,
            minimum_ttl: 254,
        }
    }
}
