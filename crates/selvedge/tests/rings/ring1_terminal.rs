//! Ring 1, terminals: what the program does when a person sits before it: pages, colours and the width of the window.

use std::{
    fs::File,
    io::Read as _,
    process::{Command, Stdio},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::support::{SELVEDGE, repository};

/// The lines and columns of the terminal.
const WINDOW: Winsize = Winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// What a command prints on a terminal of 24 lines, whose pager marks each of its lines.
fn on_terminal(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<String> {
    let mut terminal = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?);
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let name = ptsname(&terminal, Vec::new())?;
    let window = File::options()
        .read(true)
        .write(true)
        .open(name.to_str()?)?;
    tcsetwinsize(&window, WINDOW)?;
    let mut command = Command::new(SELVEDGE);
    command
        .args(arguments)
        .current_dir(repository(""))
        .env("PAGER", "sed s/^/paged:/")
        .env("TERM", "xterm")
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(window.try_clone()?)
        .stderr(window);
    let mut child = command.spawn()?;
    // The command holds the other end, which is closed with it.
    drop(command);
    let mut told = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match terminal.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => told.extend_from_slice(buffer.get(..length).unwrap_or_default()),
        }
    }
    child.wait()?;
    Ok(String::from_utf8(told)?.replace("\r\n", "\n"))
}

const LONG: [&str; 6] = [
    "explain",
    "-f",
    "examples/two-tenants.yaml",
    "--all",
    "vrf",
    "m2m_enc",
];
const SHORT: [&str; 3] = ["reach", "-f", "examples/two-tenants.yaml"];

#[test]
fn what_is_longer_than_the_terminal_goes_to_the_pager_and_what_fits_does_not() -> anyhow::Result<()>
{
    let told = on_terminal(&LONG, &[])?;
    assert!(told.lines().count() > 24, "{told}");
    assert!(
        told.lines().all(|line| line.starts_with("paged:")),
        "{told}"
    );
    let told = on_terminal(&SHORT, &[])?;
    assert!(
        told.lines().count() < 24 && told.contains("REACHES"),
        "{told}"
    );
    assert!(!told.contains("paged:"), "{told}");
    Ok(())
}

#[test]
fn no_pager_is_opened_where_none_is_wanted_or_none_can_be_started() -> anyhow::Result<()> {
    let told = on_terminal(&[LONG.as_slice(), &["--no-pager"]].concat(), &[])?;
    assert!(
        told.lines().count() > 24 && !told.contains("paged:"),
        "{told}"
    );
    for environment in [("PAGER", "no-such-pager"), ("TERM", "dumb")] {
        let told = on_terminal(&LONG, &[environment])?;
        assert!(
            told.lines().count() > 24 && !told.contains("paged:"),
            "{told}"
        );
    }
    let render = [
        "render",
        "-f",
        "examples/two-tenants.yaml",
        "--node",
        "worker-1",
    ];
    let told = on_terminal(&render, &[])?;
    assert!(told.contains("paged:router bgp"), "{told}");
    let told = on_terminal(&[render.as_slice(), &["--no-pager"]].concat(), &[])?;
    assert!(!told.contains("paged:"), "{told}");
    let told = on_terminal(&["crds"], &[])?;
    assert!(told.contains("paged:kind:"), "{told}");
    Ok(())
}

#[test]
fn a_terminal_has_colours_unless_no_color_is_set() -> anyhow::Result<()> {
    let told = on_terminal(&SHORT, &[])?;
    assert!(told.contains("\u{1b}["), "{told}");
    // A sequence around nothing is not written.
    for code in [1, 2, 31, 32, 33] {
        let nothing = format!("\u{1b}[{code}m\u{1b}[0m");
        assert!(!told.contains(&nothing), "{told}");
    }
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let told = on_terminal(&SHORT, &[environment])?;
        assert!(!told.contains('\u{1b}'), "{told}");
    }
    Ok(())
}

#[test]
fn no_line_is_wider_than_the_terminal() -> anyhow::Result<()> {
    let told = on_terminal(&LONG, &[("NO_COLOR", "1"), ("PAGER", "cat")])?;
    let mut lines = told.lines();
    assert!(lines.all(|line| line.chars().count() <= 80), "{told}");
    Ok(())
}
