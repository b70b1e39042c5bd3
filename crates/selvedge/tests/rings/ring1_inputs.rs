//! Ring 1, inputs: files that are given twice, have nothing in them or are no files, and worlds without nodes.

use std::{fs, path::Path, process::Command};

use crate::support::{SELVEDGE, repository};

/// What a run says on both streams, and its exit code.
fn run(arguments: &[&str]) -> anyhow::Result<(String, Option<i32>)> {
    let output = Command::new(SELVEDGE)
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", "/nowhere")
        .output()?;
    let said = [output.stderr, output.stdout].concat();
    Ok((String::from_utf8(said)?, output.status.code()))
}

fn example() -> String {
    repository("examples/two-tenants.yaml")
        .display()
        .to_string()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_path_without_objects_beside_others_is_refused() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let empty = place.path().join("empty.yaml");
    fs::write(&empty, "# later\n")?;
    for path in [text(place.path()), text(&empty)] {
        let (said, code) = run(&["validate", "-f", &example(), "-f", &path])?;
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains(&format!("error: no object in {path}: ")),
            "{said}"
        );
    }
    Ok(())
}

#[test]
fn a_file_that_is_given_twice_is_read_once() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let link = place.path().join("link.yaml");
    std::os::unix::fs::symlink(example(), &link)?;
    let (once, _) = run(&["validate", "-f", &example()])?;
    for path in [example(), text(&link)] {
        let (twice, code) = run(&["validate", "-f", &example(), "-f", &path])?;
        assert_eq!(code, Some(0), "{twice}");
        let line = format!("{path} is given more than once, and read once\n");
        assert_eq!(twice, format!("{line}{once}"));
    }
    Ok(())
}

#[test]
fn a_link_that_leads_back_to_its_directory_is_followed_once() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    fs::copy(example(), place.path().join("all.yaml"))?;
    std::os::unix::fs::symlink(".", place.path().join("self"))?;
    let (said, code) = run(&["validate", "-f", &text(place.path())])?;
    assert_eq!(code, Some(0), "{said}");
    let (once, _) = run(&["validate", "-f", &example()])?;
    assert_eq!(said, once);
    Ok(())
}

#[test]
fn a_url_is_no_file() -> anyhow::Result<()> {
    let (said, code) = run(&["validate", "-f", "https://example.com/a.yaml"])?;
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(
        said,
        "error: https://example.com/a.yaml is not a file; pass what it has to -f - instead, such as with curl\n"
    );
    Ok(())
}

#[test]
fn objects_without_a_node_are_checked_and_the_gap_is_named() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("vrf.yaml");
    let vrf = "apiVersion: network.t-caas.telekom.com/v1alpha1\nkind: VRF\nmetadata: {name: red}\n\
               spec: {vrf: red, vni: 10100, routeTarget: \"64500:10100\"}\n";
    fs::write(&file, vrf)?;
    let line = "no Node in the input: what the objects become on nodes is not checked";
    for command in ["validate", "compile", "reach"] {
        let (said, code) = run(&[command, "-f", &text(&file)])?;
        assert_eq!(said.matches(line).count(), 1, "{command}: {said}");
        assert_eq!(code, Some(0), "{command}: {said}");
        let (said, _) = run(&[command, "-f", &example()])?;
        assert!(!said.contains(line), "{command}: {said}");
    }
    Ok(())
}

#[test]
fn a_version_of_frr_without_goldens_is_refused_with_what_to_use() -> anyhow::Result<()> {
    let supported = "the supported versions are 8.4, 10.3, 10.7";
    let same = |own: &str, other: &str| {
        format!("{supported}; a node with FRR {own} gets the configuration of {other}")
    };
    let no_version = format!(" is not a version such as 10.7; {supported}");
    for (version, said) in [
        ("9.9", format!(": {}", same("9.9", "8.4"))),
        ("10.4", format!(": {}", same("10.4", "10.3"))),
        ("99.9", format!(": {}", same("99.9", "10.7"))),
        ("3.0", format!(": {supported}")),
        ("banana", no_version.clone()),
        ("10", no_version),
    ] {
        let arguments = [
            "render",
            "-f",
            &example(),
            "--node",
            "worker-1",
            "--frr-version",
            version,
        ];
        let (text, code) = run(&arguments)?;
        assert_eq!(code, Some(2), "{text}");
        assert_eq!(text, format!("error: --frr-version {version}{said}\n"));
    }
    Ok(())
}

#[test]
fn a_missing_cluster_is_named_once_and_after_what_was_given() -> anyhow::Result<()> {
    let (said, code) = run(&["status"])?;
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(
        said,
        "error: found no cluster: /nowhere/.kube/config does not exist, and this is not a pod; name one with --kubeconfig\n"
    );
    let (said, code) = run(&["status", "--kubeconfig", "/nowhere/config"])?;
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(
        said,
        "error: failed to read /nowhere/config: No such file or directory\n"
    );
    let (said, code) = run(&["rollout", "approve", "--plan", "/nowhere/plan.json"])?;
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(
        said,
        "error: failed to read /nowhere/plan.json: No such file or directory\n"
    );
    Ok(())
}

#[test]
fn a_file_without_its_flag_is_answered_with_the_flag() -> anyhow::Result<()> {
    for arguments in [
        &["validate", "a.yaml"][..],
        &["validate", "-f", "b.yaml", "a.yaml"],
    ] {
        let (said, code) = run(arguments)?;
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("begin each file with -f: -f a.yaml"),
            "{said}"
        );
    }
    Ok(())
}

#[test]
fn a_plan_shows_no_object_as_removed_that_cannot_be_read() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let before = fs::read_to_string(example())?;
    let after = before.replacen("asn: ", "asn: x", 1);
    anyhow::ensure!(before != after, "the example has an AS number");
    let file = place.path().join("after.yaml");
    fs::write(&file, after)?;
    let (said, code) = run(&["plan", "-f", &example(), "--to", &text(&file)])?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nothing changes on any node"), "{said}");
    assert!(!said.contains("- Underlay"), "{said}");
    Ok(())
}

#[test]
fn a_selector_without_a_node_is_answered_with_a_similar_label() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("settings.yaml");
    let nodes = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {role: worker}}\n---\n";
    for (label, near) in [("role: wroker", "role: worker"), ("rolle: worker", "role")] {
        let settings = format!(
            "{nodes}apiVersion: selvedge.dev/v1alpha1\nkind: Settings\nmetadata: {{name: default}}\n\
             spec: {{rollout: {{canary: {{nodeSelector: {{matchLabels: {{{label}}}}}}}}}}}\n"
        );
        fs::write(&file, settings)?;
        let (said, code) = run(&["validate", "-f", &text(&file)])?;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("matches no node"), "{said}");
        assert!(
            said.contains(&format!("hint: did you mean {near}?")),
            "{said}"
        );
    }
    Ok(())
}
