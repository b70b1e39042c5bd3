//! Passwords in clear text in an Underlay, on a real API server, with an operator that may do what is deployed. Nodes are simulated.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::start_operator,
    fabric_objects::{PATIENCE, TCAAS, config, fleet, node, settings, underlay},
    manifests::may,
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
        let operator = start_operator(server.operator_kubeconfig(), &[])?;
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

        // Another password: a Secret that changes and a note that says so, and no new config.
        let before = config(server, "n1")?;
        let mut neighbor = fabric["spec"]["neighbors"][0].clone();
        neighbor["password"] = SECOND.into();
        server.edit(&fabric, &json!({"spec": {"neighbors": [neighbor]}}))?;
        let after = within(
            PATIENCE,
            "the config is noted to have another Secret",
            || {
                let config = config(server, "n1")?;
                let note = |config: &Value| config["metadata"]["annotations"].to_string();
                Ok((note(&config) != note(&before)).then_some(config))
            },
        )?;
        assert_eq!(
            password(server, &first)?,
            Some("bm90LXRvLWJlLXNlZW4tMg==".into())
        );
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(
            after["metadata"]["generation"],
            before["metadata"]["generation"]
        );

        // Nowhere else.
        let mut everything = operator.log()?;
        for kind in ["NodeNetworkConfig", "NetworkConfigRevision"] {
            for object in server.list(TCAAS, kind)? {
                everything += &object.to_string();
            }
        }
        let stored = server.get(&fabric)?.context("the Underlay is there")?;
        everything += &stored["status"].to_string();
        assert!(everything.contains("InlinePassword") || stored["status"].is_object());
        for text in [FIRST, SECOND, "bm90LXRvLWJl"] {
            assert!(!everything.contains(text), "{text} is shown");
        }

        // Without a password there is no Secret.
        let mut neighbor = fabric["spec"]["neighbors"][0].clone();
        neighbor
            .as_object_mut()
            .context("a map")?
            .remove("password");
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
