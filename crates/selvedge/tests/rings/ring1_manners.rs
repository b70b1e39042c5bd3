//! Ring 1, manners: exit codes, versions, completions, and what happens where the output cannot be written.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

use crate::support::{SELVEDGE, repository, selvedge};

fn example() -> String {
    repository("examples/two-tenants.yaml")
        .display()
        .to_string()
}

#[test]
fn output_that_cannot_be_written_ends_with_2() -> anyhow::Result<()> {
    for command in ["crds", "demo"] {
        let status = Command::new(SELVEDGE)
            .arg(command)
            .stdout(File::options().write(true).open("/dev/full")?)
            .stderr(Stdio::piped())
            .output()?;
        assert_eq!(status.status.code(), Some(2), "{command}");
        let said = String::from_utf8(status.stderr)?;
        assert!(said.contains("failed to write the output"), "{said}");
        assert!(!said.contains("os error"), "{said}");
    }
    let mut child = Command::new(SELVEDGE)
        .arg("crds")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // The reader goes away.
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stderr)?, "");
    Ok(())
}

#[test]
fn an_unknown_version_of_frr_is_refused_with_those_that_are_known() -> anyhow::Result<()> {
    let arguments = [
        "render",
        "-f",
        &example(),
        "--node",
        "worker-1",
        "--frr-version",
        "3.0",
    ];
    let output = selvedge(&arguments, "")?;
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr)?;
    assert!(said.contains("supported versions"), "{said}");
    assert!(output.stdout.is_empty());
    Ok(())
}

#[test]
fn empty_input_ends_with_2() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().display().to_string();
    let empty = selvedge(&["validate", "-f", &path], "")?;
    assert_eq!(empty.status.code(), Some(2));
    let said = String::from_utf8(empty.stderr)?;
    assert!(said.contains("no object in"), "{said}");
    let empty = selvedge(&["compile", "-f", "-"], "# nothing\n")?;
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8(empty.stderr)?.contains("standard input is empty"));
    let empty = selvedge(&["plan", "-f", &path, "--to", &example()], "")?;
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8(empty.stderr)?.contains("no object in"));
    Ok(())
}

#[test]
fn answers_from_input_with_errors_name_them_and_end_with_1() -> anyhow::Result<()> {
    let broken = fs::read_to_string(example())?.replace("vlan: 234", "vlan: 5000");
    let answers: [&[&str]; 5] = [
        &["where", "vlan", "235"],
        &["ipam"],
        &["reach"],
        &["compile", "--what", "nodes", "-o", "json"],
        &["compile", "-o", "yaml"],
    ];
    for arguments in answers {
        let output = selvedge(&[arguments, &["-f", "-"]].concat(), &broken)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = String::from_utf8(output.stderr)?;
        assert!(said.contains("is not a VLAN ID"), "{arguments:?}: {said}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
    Ok(())
}

#[test]
fn strict_validation_takes_warnings_for_errors_and_counts_them() -> anyhow::Result<()> {
    let foreign = "apiVersion: example.com/v1\nkind: VRF\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    let output = selvedge(&["validate", "-f", "-"], foreign)?;
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(output.stdout)?,
        "1 object valid; 1 warning\n"
    );
    let output = selvedge(&["validate", "--strict", "-f", "-"], foreign)?;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stdout)?,
        "1 warning in 1 object (--strict)\n"
    );
    Ok(())
}

#[test]
fn versions_completions_and_man_pages_are_there() -> anyhow::Result<()> {
    let version = selvedge(&["--version"], "")?;
    assert!(version.status.success());
    assert!(String::from_utf8(version.stdout)?.starts_with("selvedge "));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = selvedge(&["completions", shell], "")?;
        assert!(script.status.success(), "{shell}");
        assert!(
            String::from_utf8(script.stdout)?.contains("why-not"),
            "{shell}"
        );
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().display().to_string();
    assert!(selvedge(&["man", "-d", &path], "")?.status.success());
    let pages = fs::read_dir(directory.path())?.count();
    assert!(pages > 20, "{pages} pages");
    Ok(())
}

#[test]
fn a_plan_says_by_its_exit_code_whether_something_changes_and_can_be_saved() -> anyhow::Result<()> {
    let example = example();
    let text = fs::read_to_string(&example)?;
    let same = [
        "plan",
        "-f",
        &example,
        "--to",
        &example,
        "--detailed-exitcode",
    ];
    assert_eq!(selvedge(&same, "")?.status.code(), Some(0));
    let directory = tempfile::tempdir()?;
    let saved = directory.path().join("plan.json").display().to_string();
    let changed = text.replace("mtu: 9000", "mtu: 8000");
    let arguments = [
        "plan",
        "-f",
        &example,
        "--to",
        "-",
        "--detailed-exitcode",
        "--save",
        &saved,
    ];
    assert_eq!(selvedge(&arguments, &changed)?.status.code(), Some(2));
    let plan: serde_json::Value = serde_json::from_slice(&fs::read(&saved)?)?;
    assert_eq!(plan["version"], 1);
    assert!(plan["revision"].is_string());
    let broken = text.replace("mtu: 9000", "mtu: many");
    assert_eq!(selvedge(&arguments, &broken)?.status.code(), Some(1));
    Ok(())
}

#[test]
fn all_nodes_are_rendered_into_a_directory_as_one_by_one() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().display().to_string();
    let output = selvedge(&["render", "-f", &example(), "--all", "-d", &path], "")?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8(output.stderr)?
    );
    let one = selvedge(&["render", "-f", &example(), "--node", "worker-2"], "")?;
    let of_all = fs::read(directory.path().join("worker-2/frr.conf"))?;
    assert_eq!(of_all, one.stdout);
    assert!(directory.path().join("worker-2/linux-host.txt").exists());
    Ok(())
}

#[test]
fn nodes_are_streamed_as_one_list() -> anyhow::Result<()> {
    let arguments = ["compile", "-f", &example(), "--what", "nodes", "-o", "json"];
    let nodes: serde_json::Value = serde_json::from_slice(&selvedge(&arguments, "")?.stdout)?;
    assert_eq!(nodes.as_array().map(Vec::len), Some(3));
    let none = ["validate", "-f", &example(), "-o", "json"];
    assert_eq!(String::from_utf8(selvedge(&none, "")?.stdout)?, "[]\n");
    Ok(())
}
