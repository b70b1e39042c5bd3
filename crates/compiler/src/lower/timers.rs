//! The timers that BGP can have.

use api::{tcaas::BgpPeeringSpec, value::Seconds};

use super::intent;
use crate::snapshot::Kind;

/// The shortest time that BGP can hold a session.
const LEAST_HOLD: u64 = 3;
/// The longest time that BGP can write down.
const MOST_SECONDS: u64 = 65_535;

/// The field of a kind that says how long sessions are held.
pub(crate) fn field(kind: Kind) -> &'static str {
    kind.intent()
        .map_or("spec.holdTime", intent::hold_time_field)
}

/// Whether sessions can have these timers.
pub(crate) fn fit(spec: &BgpPeeringSpec) -> bool {
    can_be(spec.keepalive_time, spec.hold_time)
}

/// Whether BGP can have these timers.
pub(crate) fn can_be(keepalive: Option<Seconds>, hold: Option<Seconds>) -> bool {
    let seconds = |span: Option<Seconds>| span.map(|span| u64::from(span.get()));
    let (keepalive, hold) = (seconds(keepalive), seconds(hold));
    let short = |span: Option<u64>| span.is_none_or(|span| span <= MOST_SECONDS);
    let holds = hold.is_none_or(|hold| hold == 0 || hold >= LEAST_HOLD);
    let in_order = match (keepalive, hold) {
        (Some(keepalive), Some(hold)) => keepalive <= hold,
        _ => true,
    };
    short(keepalive) && short(hold) && holds && in_order
}
