//! Laws of every value: what parses prints and parses again to the same; what is out of range is refused by name.

use std::{fmt::Debug, str::FromStr};

use proptest::prelude::*;

use super::*;

fn round_trips<T>(text: &str)
where
    T: FromStr + ToString + PartialEq + Debug,
    T::Err: Debug,
{
    let value: T = text.parse().expect(text);
    assert_eq!(value.to_string().parse::<T>().expect(text), value, "{text}");
}

fn refused<T: FromStr<Err = InvalidValue> + Debug>(texts: &[&str]) {
    for text in texts {
        let error = text.parse::<T>().expect_err(text).to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn numbers_keep_their_ranges() {
    for (good, bad) in [(1, 0), (16_777_215, 16_777_216)] {
        assert!(Vni::try_from(good).is_ok());
        assert!(Vni::try_from(bad).is_err());
    }
    assert!(
        VlanId::try_from(4094).is_ok()
            && VlanId::try_from(4095).is_err()
            && VlanId::try_from(-1).is_err()
    );
    assert!(Asn::try_from(4_294_967_295).is_ok() && Asn::try_from(4_294_967_296).is_err());
    let error = serde_json::from_value::<Vni>(0.into())
        .expect_err("zero is no VNI")
        .to_string();
    assert_eq!(
        error,
        r#""0" is not a VXLAN network identifier (1–16777215)"#
    );
}

#[test]
fn route_targets_come_in_three_forms() {
    for text in [
        "64500:10100",
        "65535:4294967295",
        "4200000000:65535",
        "192.0.2.1:65535",
        "0:0",
    ] {
        round_trips::<RouteTarget>(text);
        round_trips::<RouteDistinguisher>(text);
        round_trips::<ImportRouteTarget>(text);
    }
    refused::<RouteTarget>(&[
        "",
        "64500",
        "*:1",
        "1:2:3",
        "4200000000:65536",
        "192.0.2.1:65536",
        "a:1",
        "+1:2",
        "1:-2",
    ]);
}

#[test]
fn only_an_imported_route_target_may_have_a_wildcard() {
    round_trips::<ImportRouteTarget>("*:10100");
    refused::<ImportRouteTarget>(&["*:4294967296", "*", "1:*", "*:*"]);
    refused::<RouteDistinguisher>(&["*:10100"]);
}

#[test]
fn communities_are_standard_or_large() {
    round_trips::<Community>("64500:999");
    round_trips::<Community>("4200000000:1:2");
    refused::<Community>(&[
        "65536:1",
        "1",
        "1:2:3:4",
        "no-export",
        "1:2:4294967296",
        " 1:2",
    ]);
}

#[test]
fn names_fit_into_a_device_name() {
    round_trips::<VrfName>("m2m_enc");
    round_trips::<IfName>("fifteen-letters");
    round_trips::<PeVrfName>("fifteen-letters");
    refused::<VrfName>(&["thirteen-long", "", "a b", "a/b", "-a", "..", "ü", "a\nb"]);
    refused::<IfName>(&["sixteen-letters-", ".a", "a:b"]);
    refused::<PeVrfName>(&["1red", "_red"]);
}

#[test]
fn a_network_with_host_bits_is_refused() {
    round_trips::<Prefix>("198.51.100.0/27");
    round_trips::<Prefix>("0.0.0.0/0");
    assert_eq!(
        "2001:db8:100::0/64"
            .parse::<Prefix>()
            .expect("valid")
            .to_string(),
        "2001:db8:100::/64"
    );
    refused::<Prefix>(&[
        "198.51.100.1/27",
        "2001:db8::1/64",
        "198.51.100.0",
        "198.51.100.0/33",
        "x/8",
    ]);
    round_trips::<HostCidr>("198.51.100.129/25");
    refused::<HostCidr>(&["198.51.100.129"]);
}

#[test]
fn a_network_of_one_family_is_of_no_other() {
    round_trips::<Ipv4Prefix>("198.51.100.0/27");
    round_trips::<Ipv6Prefix>("2001:db8::/64");
    refused::<Ipv4Prefix>(&["2001:db8::/64", "198.51.100.1/27", "198.51.100.0", ""]);
    refused::<Ipv6Prefix>(&["198.51.100.0/27", "2001:db8::1/64", "2001:db8::"]);
}

#[test]
fn a_network_as_people_write_it_may_have_host_bits() {
    let written: WrittenPrefix = "100.65.1.7/24".parse().expect("valid");
    assert_eq!(written.prefix().to_string(), "100.65.1.0/24");
    assert_eq!(
        written.with_ignored_bits().map(|bits| bits.to_string()),
        Some("100.65.1.7/24".to_owned())
    );
    round_trips::<WrittenPrefix>("100.65.1.7/24");
    let exact: WrittenIpv4Prefix = "100.65.1.0/24".parse().expect("valid");
    assert_eq!(exact.with_ignored_bits(), None);
    refused::<WrittenPrefix>(&["100.65.1.0", "010.0.0.0/8", "::ffff:10.0.0.0/100", "x/8"]);
    refused::<WrittenIpv4Prefix>(&["2001:db8::/64", "100.65.1.0/33"]);
    refused::<WrittenIpv6Prefix>(&["100.65.1.0/24", "2001:db8::/129"]);
}

#[test]
fn a_number_with_a_leading_zero_is_no_part_of_a_network() {
    // Some read 010 as eight. The API server refuses it, and so do we.
    for text in ["010.0.0.0/8", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/"] {
        refused::<Prefix>(&[text]);
        refused::<HostCidr>(&[text]);
        refused::<Ipv4Prefix>(&[text]);
    }
    for text in ["2001:db8::/032", "::ffff:10.0.0.0/104", "fe80::%eth0/64"] {
        refused::<Prefix>(&[text]);
        refused::<HostCidr>(&[text]);
        refused::<Ipv6Prefix>(&[text]);
    }
    round_trips::<Prefix>("::/0");
    round_trips::<Ipv6Prefix>("::/0");
    round_trips::<Ipv4Prefix>("0.0.0.0/0");
}

#[test]
fn an_entity_title_has_six_groups() {
    round_trips::<NetworkEntityTitle>("49.0001.0000.0000.00ff.00");
    refused::<NetworkEntityTitle>(&[
        "49.0001.0000.0000.0001",
        "49.0001.0000.0000.0001.0G",
        "49.0001.0000.0000.000A.00",
        "",
    ]);
}

#[test]
fn a_password_is_one_line_and_stays_hidden() {
    let password: Password = "correct-horse".parse().expect("a password");
    assert_eq!(
        (password.reveal(), format!("{password:?}").as_str()),
        ("correct-horse", "(hidden)")
    );
    let written = serde_json::to_string(&password).expect("JSON");
    let read: Password = serde_json::from_str(&written).expect("a password");
    assert_eq!((&*written, read.is_hidden()), ("\"(hidden)\"", true));
    for text in ["", " a", "a ", "a\nb", "ü", &"x".repeat(81)] {
        let error = text.parse::<Password>().expect_err(text).to_string();
        assert!(text.trim().len() < 2 || !error.contains(text), "{error}");
    }
}

#[test]
fn numbers_of_sessions_keep_their_ranges() {
    assert!(BfdInterval::try_from(10).is_ok() && BfdInterval::try_from(9).is_err());
    assert!(BfdMultiplier::try_from(255).is_ok() && BfdMultiplier::try_from(1).is_err());
    assert!(BfdTtl::try_from(254).is_ok() && BfdTtl::try_from(255).is_err());
    assert!(RestartTime::try_from(4095).is_ok() && RestartTime::try_from(4096).is_err());
    assert!(UdpPort::try_from(1).is_ok() && UdpPort::try_from(0).is_err());
    assert_eq!(Port::try_from(0).map(Port::explicit), Ok(None));
    assert_eq!(Port::try_from(1790).map(Port::explicit), Ok(Some(1790)));
}

#[test]
fn mac_addresses_are_six_pairs() {
    round_trips::<MacAddress>("aa:bb:cc:dd:ee:ff");
    refused::<MacAddress>(&[
        "aa:bb:cc:dd:ee",
        "aa:bb:cc:dd:ee:ff:00",
        "a:b:c:d:e:f",
        "aabbccddeeff",
        "+a:bb:cc:dd:ee:ff",
    ]);
}

#[test]
fn spans_are_whole_seconds() {
    for (text, seconds) in [
        ("90s", 90),
        ("1m30s", 90),
        ("2h", 7200),
        ("0", 0),
        ("0s", 0),
    ] {
        assert_eq!(text.parse::<Seconds>().expect(text).get(), seconds);
        round_trips::<Seconds>(text);
    }
    refused::<Seconds>(&[
        "",
        "90",
        "1.5s",
        "100ms",
        "s",
        "1s1m",
        "1m1m",
        "99999999999s",
        "-1s",
    ]);
}

proptest! {
    #[test]
    fn any_text_is_a_value_or_refused_but_never_a_panic(text in "\\PC{0,40}") {
        let parsed = (
            text.parse::<RouteTarget>(), text.parse::<ImportRouteTarget>(), text.parse::<Community>(),
            text.parse::<IfName>(), text.parse::<Prefix>(), text.parse::<MacAddress>(), text.parse::<Seconds>(),
        );
        if let Ok(name) = parsed.3 {
            prop_assert!(!name.as_str().contains(char::is_whitespace));
        }
    }

    #[test]
    fn every_route_target_prints_as_it_was_written(asn in any::<u32>(), number in any::<u16>()) {
        let text = format!("{asn}:{number}");
        prop_assert_eq!(text.parse::<RouteTarget>().expect("fits").to_string(), text);
    }

    #[test]
    fn every_span_prints_as_it_can_be_read(seconds in any::<u32>()) {
        prop_assert_eq!(Seconds::new(seconds).to_string().parse::<Seconds>().expect("prints well"), Seconds::new(seconds));
    }
}
