//! The control plane by itself.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use selvedge_lab::control_plane::{ControlPlane, Etcd, User};
use selvedge_lab::parts::{self, Kubernetes};

use crate::progress;

fn kubernetes() -> anyhow::Result<Kubernetes> {
    parts::prepare_machine(&progress)?;
    Ok(Kubernetes::prepare(&progress)?)
}

const OWNER: &str = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "default"}}"#;

#[test]
fn a_control_plane_serves_collects_and_refuses_and_leaves_nothing() -> anyhow::Result<()> {
    let plane = ControlPlane::builder(&kubernetes()?)
        .user(User::new("tenant", &["tenants"]))
        .scheduler()
        .start()?;
    eprintln!(
        "control plane ready after {:.1} s",
        plane.ready_after().as_secs_f64()
    );

    let version = plane.kubectl(&["version", "--output=json"], "")?;
    assert!(version.contains("v1.36"), "{version}");
    let apis = plane.kubectl(&["api-versions"], "")?;
    assert!(
        apis.lines().any(|line| line == "resource.k8s.io/v1"),
        "{apis}"
    );

    plane.kubectl(&["create", "-f", "-"], OWNER)?;
    let uid = plane.kubectl(
        &[
            "get",
            "configmap",
            "owner",
            "--output=jsonpath={.metadata.uid}",
        ],
        "",
    )?;
    let owned = format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "owned", "namespace": "default",
            "ownerReferences": [{{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "{uid}"}}]}}}}"#
    );
    plane.kubectl(&["create", "-f", "-"], &owned)?;
    plane.kubectl(&["delete", "configmap", "owner"], "")?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while plane.kubectl(&["get", "configmap", "owned"], "").is_ok() {
        assert!(
            Instant::now() < deadline,
            "the owned object was not collected"
        );
        thread::sleep(Duration::from_millis(200));
    }

    let refusal = plane
        .kubectl_as("tenant", &["get", "secrets"], "")
        .expect_err("the tenant has no rights");
    let refusal = format!("{:#}", anyhow::Error::new(refusal));
    assert!(refusal.contains("Forbidden"), "{refusal}");

    let pids = plane.pids();
    assert_eq!(pids.len(), 4);
    drop(plane);
    for pid in pids {
        assert!(
            !Path::new(&format!("/proc/{pid}")).exists(),
            "process {pid} is still there"
        );
    }
    Ok(())
}

#[test]
fn two_api_servers_share_an_etcd_and_no_objects() -> anyhow::Result<()> {
    let kubernetes = kubernetes()?;
    let etcd = Arc::new(Etcd::start(&kubernetes, None)?);
    let first = ControlPlane::builder(&kubernetes)
        .etcd(&etcd, "/first")
        .start()?;
    let second = ControlPlane::builder(&kubernetes)
        .etcd(&etcd, "/second")
        .start()?;
    first.kubectl(&["create", "-f", "-"], OWNER)?;
    assert!(second.kubectl(&["get", "configmap", "owner"], "").is_err());
    Ok(())
}
