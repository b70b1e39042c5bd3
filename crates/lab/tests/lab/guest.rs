//! A guest by itself.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use selvedge_lab::guest::{Config, Guest};
use selvedge_lab::host::Host as _;
use selvedge_lab::namespace::Namespace;
use selvedge_lab::parts::{self, Release, Tree};

use crate::progress;

#[test]
fn a_guest_boots_runs_commands_and_dies() -> anyhow::Result<()> {
    lives_and_dies(&Tree::for_guests(&progress)?)
}

#[test]
fn the_fallback_does_the_same() -> anyhow::Result<()> {
    lives_and_dies(&Tree::prepare(Release::Trixie, &progress)?)
}

fn lives_and_dies(tree: &Tree) -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    let folder = tempfile::tempdir()?;
    let namespace = Arc::new(Namespace::new(folder.path())?);
    namespace.bridge("mgmt", Some((Ipv4Addr::new(198, 18, 0, 1).into(), 16)))?;
    let address = Ipv4Addr::new(198, 18, 0, 2);
    let guest = Guest::boot(
        tree,
        &namespace,
        &Config {
            name: "g1",
            address,
            bridges: &[],
            memory: 512,
        },
    )?;
    eprintln!("guest up after {:.1} s", guest.up_after().as_secs_f64());

    let start = Instant::now();
    for _ in 0..10 {
        guest.run(&["true"], "")?.ok()?;
    }
    eprintln!("a command takes {} ms", start.elapsed().as_millis() / 10);

    let output = guest.run(&["sh", "-c", "cat; echo err >&2; exit 3"], "in\n")?;
    assert_eq!(
        (
            output.status,
            output.stdout.as_str(),
            output.stderr.as_str()
        ),
        (3, "in\n", "err\n")
    );
    guest
        .run(
            &[
                "sh",
                "-c",
                "ip link add r type vrf table 7 && echo yes > /share/answer",
            ],
            "",
        )?
        .ok()?;
    let big = "x".repeat(300_000);
    assert_eq!(guest.run(&["cat"], &big)?.ok()?, big);

    let sleeper = guest.start(&["sh", "-c", "echo so far; sleep 1000"], "")?;
    sleeper.wait_for("so far", Duration::from_secs(5))?;
    sleeper.signal(rustix::process::Signal::TERM);
    assert_eq!(sleeper.wait(Duration::from_secs(5))?.status, 128 + 15);

    let sleeper = guest.start(&["sleep", "1000"], "")?;
    guest.kill();
    assert!(
        sleeper.wait(Duration::from_secs(5)).is_err(),
        "the power is off"
    );
    assert!(guest.run(&["true"], "").is_err());
    Ok(())
}
