//! Schemas for lists without a limit: a rule in CEL would be too expensive there, a format or a pattern costs nothing.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::openperouter::schema::rules;

/// A number of 16 bits, whatever zeros stand before it.
const U16: &str =
    "0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
/// A number of 32 bits, whatever zeros stand before it.
const U32: &str = "0*([0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}\
    |42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])";
const OCTET: &str = "([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])";

/// The three forms of route targets and route distinguishers.
fn pair() -> String {
    format!(r"({OCTET}(\.{OCTET}){{3}}:{U16}|{U16}:{U32}|{U32}:{U16})")
}

/// A route distinguisher, or nothing.
pub(super) fn route_distinguisher(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 21, "pattern": format!("^({})?$", pair())})
}

/// Route targets that routes are given.
pub(super) fn export_route_targets(_: &mut SchemaGenerator) -> Schema {
    let item =
        json_schema!({"type": "string", "maxLength": 21, "pattern": format!("^{}$", pair())});
    json_schema!({"type": "array", "maxItems": 100, "items": item})
}

/// Route targets that routes are looked for by.
pub(super) fn import_route_targets(_: &mut SchemaGenerator) -> Schema {
    let item = json_schema!({"type": "string", "maxLength": 21, "pattern": format!(r"^({}|\*:{U32})$", pair())});
    json_schema!({"type": "array", "maxItems": 100, "items": item})
}

/// A community.
pub(super) fn community(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": format!("^({U16}:{U16}|large:{U32}:{U32}:{U32})$")})
}

/// A network; host bits are allowed and ignored.
pub(super) fn prefix(_: &mut SchemaGenerator) -> Schema {
    let pattern = format!(
        r"^({OCTET}(\.{OCTET}){{3}}|([0-9a-fA-F]{{0,4}}:){{2,8}}[0-9a-fA-F]{{0,4}})/(0|[1-9][0-9]{{0,2}})$"
    );
    json_schema!({"type": "string", "maxLength": 43, "format": "cidr", "pattern": pattern})
}

/// Networks; host bits are allowed and ignored.
pub(super) fn prefixes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": prefix(generator)})
}

/// At least one network.
pub(super) fn some_prefixes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "minItems": 1, "items": prefix(generator)})
}

/// An address of either family, or nothing.
pub(super) fn address(_: &mut SchemaGenerator) -> Schema {
    text(
        39,
        "self == '' || isIP(self)",
        "must be an IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1",
    )
}

/// An IPv4 address, or nothing.
pub(super) fn optional_ipv4(_: &mut SchemaGenerator) -> Schema {
    text(
        15,
        "self == '' || (isIP(self) && ip(self).family() == 4)",
        "must be an IPv4 address, such as 192.0.2.1",
    )
}

/// An IPv4 address.
pub(super) fn ipv4(_: &mut SchemaGenerator) -> Schema {
    text(
        15,
        "isIP(self) && ip(self).family() == 4",
        "must be an IPv4 address, such as 192.0.2.1",
    )
}

/// An IPv6 address.
pub(super) fn ipv6(_: &mut SchemaGenerator) -> Schema {
    text(
        39,
        "isIP(self) && ip(self).family() == 6",
        "must be an IPv6 address, such as 2001:db8::1",
    )
}

fn text(max_length: u32, rule: &str, message: &str) -> Schema {
    json_schema!({"type": "string", "maxLength": max_length, "x-kubernetes-validations": rules([(rule, message)])})
}

/// Name of a device, or nothing.
pub(super) fn device(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 15, "pattern": "^([a-zA-Z0-9_][a-zA-Z0-9_.-]*)?$"})
}

/// An address or the name of a device, or nothing.
pub(super) fn update_source(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 39,
        "pattern": "^([a-zA-Z0-9_:][a-zA-Z0-9_:.-]*)?$",
        "x-kubernetes-validations": rules([(
            "isIP(self) || (size(self) <= 15 && !self.contains(':'))",
            "must be an address of the node, or the name of a device of at most 15 characters",
        )]),
    })
}

/// A password, or nothing.
pub(super) fn password(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 80, "pattern": "^([!-~]([ -~]*[!-~])?)?$"})
}

/// An AS number, or 0 for none.
pub(super) fn optional_asn(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX})
}
