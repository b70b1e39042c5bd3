//! Machines on this machine's own kernel, as far as every kernel goes: no VRFs here, but everything else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use selvedge_lab::fabric::Fabric;
use selvedge_lab::host::{Host, LocalHost};
use selvedge_lab::namespace::Namespace;
use selvedge_lab::parts::{self, Tree};
use selvedge_lab::space::Space;

use crate::progress;

#[test]
fn machines_on_this_kernel_are_apart_and_end_with_their_owner() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    let tree = Tree::for_guests(&progress)?;
    let folder = tempfile::tempdir()?;
    let namespace = Arc::new(Namespace::new(folder.path())?);
    let host: Arc<dyn Host> =
        Arc::new(LocalHost::new(namespace, tree.root(), tempfile::tempdir()?));
    let (one, two) = (Space::new(&host, "one")?, Space::new(&host, "two")?);
    let wire = format!(
        "link add name a netns {} type veth peer name b netns {}\n",
        one.pid(),
        two.pid()
    );
    host.run(&["ip", "-batch", "-"], &wire)?.ok()?;
    one.up("a", &["192.0.2.1/24".parse()?])?;
    two.up("b", &["192.0.2.2/24".parse()?])?;
    assert!(one.ping("192.0.2.2", 2)?.whole());

    assert_eq!(one.run(&["hostname"])?, "one\n");
    one.write("/etc/frr/seen", "by one")?;
    assert!(
        two.read("/etc/frr/seen").is_err(),
        "each has files of its own"
    );
    one.run(&["ip", "netns", "add", "selvedge"])?;
    assert!(
        one.netns("selvedge")
            .run(&["ip", "link", "set", "lo", "up"])
            .is_ok()
    );
    assert!(two.netns("selvedge").run(&["true"]).is_err());

    one.start_frr("hostname one\nrouter bgp 64512\nexit\n")?;
    assert_eq!(
        one.frr_json("show bgp summary json")?,
        serde_json::json!({})
    );
    let processes = one.run(&["pgrep", "-c", "zebra|bgpd|mgmtd|bfdd|staticd"])?;
    assert_eq!(processes, "5\n");
    assert!(
        two.run(&["pgrep", "bgpd"]).is_err(),
        "each has processes of its own"
    );

    let pid = one.pid();
    one.kill();
    let gone = Fabric::eventually(Duration::from_secs(5), || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    assert!(gone.is_some() && one.run(&["true"]).is_err());
    // The kernel takes the network down a moment after the last process.
    let silent = Fabric::eventually(Duration::from_secs(5), || {
        two.ping("192.0.2.1", 1)
            .is_ok_and(|ping| ping.received == 0)
            .then_some(())
    });
    assert!(silent.is_some());
    Ok(())
}
