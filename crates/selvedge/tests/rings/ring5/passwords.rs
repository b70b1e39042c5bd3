//! Passwords in clear text in an Underlay, on a real API server, with an operator that may do what is deployed. Nodes are simulated.

use std::net::TcpListener;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::start_operator,
    fabric_objects::{PATIENCE, TCAAS, config, fleet, node, settings, underlay},
    manifests::may,
    operations,
    server::{Server, eventually, with_server, within},
};
use crate::support::{OWN_NAMESPACE, token};

const FIRST: &str = "not-to-be-seen-1";
const SECOND: &str = "not-to-be-seen-2";

/// The reference in the config of a node.
fn reference(server: &Server, node: &str) -> anyhow::Result<Value> {
    let config = config(server, node)?;
    Ok(config["spec"]["underlay"]["neighbors"][0]["passwordSecret"].clone())
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": OWN_NAMESPACE}})
}

/// What stands in a Secret, as the API server has it.
fn password(server: &Server, name: &str) -> anyhow::Result<Option<Value>> {
    let stored = server.get(&secret(name))?;
    Ok(stored.map(|stored| stored["data"]["password"].clone()))
}

#[test]
fn a_password_in_clear_text_goes_into_a_secret_of_each_node_and_nowhere_else() -> anyhow::Result<()>
{
    with_server(|server| {
        let mut fabric = underlay("fabric", &json!({}), "100.65.0.0/24", "192.168.1.254");
        fabric["spec"]["neighbors"][0]["password"] = FIRST.into();
        server.create_all(&[settings(), node("n1", "1"), node("n2", "1")])?;
        let agents = fleet(server, &["n1", "n2"])?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let flags = ["--listen", &address.to_string()];
        let operator = start_operator(server.operator_kubeconfig(), &flags)?;
        server.create_all(std::slice::from_ref(&fabric))?;
        let names = ["n1", "n2"].map(|node| {
            let name = within(PATIENCE, "the config names a Secret", || {
                let reference = reference(server, node).unwrap_or_default();
                Ok(reference["name"].as_str().map(str::to_owned))
            })?;
            assert_eq!(reference(server, node)?["namespace"], OWN_NAMESPACE);
            assert!(
                name.starts_with(&format!("selvedge-agent-{node}-")),
                "{name}"
            );
            eventually("the Secret has the password", || {
                let found = password(server, &name)?;
                Ok((found == Some("bm90LXRvLWJlLXNlZW4tMQ==".into())).then_some(()))
            })
            .with_context(|| operator.log().unwrap_or_default())?;
            anyhow::Ok(name)
        });
        let [first, second] = names;
        let (first, second) = (first?, second?);

        // Its own agent reads it, and no other.
        let agent = eventually("the operator has made accounts", || {
            Ok(token(&server.plane, "selvedge-agent-n1", &[]).ok())
        })?;
        let get = |name: &str| {
            may(
                server,
                &agent,
                &["get", "secret", name, "-n", OWN_NAMESPACE],
            )
        };
        eventually("the agent reads its Secret", || Ok(get(&first).ok()))?;
        let refused = get(&second).expect_err("it is another node's");
        assert!(refused.contains("orbidden"), "{refused}");

        changes(server, &fabric, &first)?;

        // Nowhere else.
        let stored = server.get(&fabric)?.context("the Underlay is there")?;
        let mut everything = operator.log()? + &stored["status"].to_string();
        for kind in ["NodeNetworkConfig", "NetworkConfigRevision"] {
            for object in server.list(TCAAS, kind)? {
                everything += &object.to_string();
            }
        }
        let (status, snapshot) = operations::get(address, "/debug/snapshot", Some("lab-admin"))?;
        assert!(status == 200 && snapshot.contains("\"kind\":\"Underlay\""));
        everything += &snapshot;
        for text in [FIRST, SECOND, "bm90LXRvLWJl"] {
            assert!(!everything.contains(text), "{text} is shown");
        }

        // Without a password there is no Secret.
        let mut neighbor = fabric["spec"]["neighbors"][0].clone();
        let fields = neighbor.as_object_mut().context("a map")?;
        fields.remove("password");
        server.edit(&fabric, &json!({"spec": {"neighbors": [neighbor]}}))?;
        for name in [&first, &second] {
            within(PATIENCE, "the Secret is gone", || {
                Ok(password(server, name)?.is_none().then_some(()))
            })?;
        }
        drop((operator, agents));
        Ok(())
    })
}

/// Another password: a Secret that changes and a note that says so, and no new config.
fn changes(server: &Server, fabric: &Value, first: &str) -> anyhow::Result<()> {
    let before = config(server, "n1")?;
    let mut neighbor = fabric["spec"]["neighbors"][0].clone();
    neighbor["password"] = SECOND.into();
    server.edit(fabric, &json!({"spec": {"neighbors": [neighbor]}}))?;
    within(PATIENCE, "the Secret has the other password", || {
        let found = password(server, first)?;
        Ok((found == Some("bm90LXRvLWJlLXNlZW4tMg==".into())).then_some(()))
    })?;
    let stored = server.get(&secret(first))?.context("the Secret is there")?;
    let version = stored["metadata"]["resourceVersion"].clone();
    let after = within(PATIENCE, "the config has the version of the Secret", || {
        let config = config(server, "n1")?;
        let notes = config["metadata"]["annotations"].as_object();
        let has = notes.is_some_and(|notes| notes.values().any(|note| *note == version));
        Ok(has.then_some(config))
    })?;
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    Ok(())
}
