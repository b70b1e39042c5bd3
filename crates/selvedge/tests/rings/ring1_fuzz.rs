//! The program itself on files that are no manifests: it says what is wrong and ends with 1. What is inside is tried by
//! `command::fuzz`, without a process for each.

use crate::support::selvedge;

/// Texts that somebody might give it by mistake, or to harm it.
fn texts() -> Vec<String> {
    let network = |spec: &str| {
        format!(
            "apiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Network\nmetadata: {{name: a}}\nspec: {spec}\n"
        )
    };
    vec![
        "\u{0}\u{1}\u{2}".to_owned(),
        "[".repeat(100_000),
        "{\"a\":".repeat(100_000),
        "a: *b".to_owned(),
        "- 1\n- 2\n".to_owned(),
        "kind: Network".to_owned(),
        network("null"),
        network("{vlan: 18446744073709551616}"),
        network("{vlan: -1, ipv4: {cidr: 10.0.0.0/99}}"),
        network("{ipv4: {cidr: \"\\u0000\"}}"),
        network(&format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000))),
        network(&format!("{{vlan: \"{}\"}}", "9".repeat(1_000_000))),
    ]
}

#[test]
fn a_file_that_is_no_manifest_is_refused_by_every_command() {
    for text in texts() {
        for command in ["validate", "compile"] {
            let output = selvedge(&[command, "-f", "-"], &text).expect("the program runs");
            let said = String::from_utf8_lossy(&output.stderr);
            let begin: String = text.chars().take(80).collect();
            assert_eq!(
                output.status.code(),
                Some(1),
                "{command} of {begin:?}: {said}"
            );
            assert!(!said.contains("panicked"), "{command} of {begin:?}: {said}");
        }
    }
}
