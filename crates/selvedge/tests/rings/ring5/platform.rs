//! Objects of other programs on a real API server: made when their kinds are there, kept as they must be, removed with their intent.

use serde_json::{Value, json};

use super::{
    cluster::{BILLING, Cluster, TCAAS, for_a_while, object, start_operator, without_operator},
    programs::{Program, Programs},
    proxy::Proxy,
    server::{Mode, eventually},
};

const INBOUND: &str = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: transfer}
spec: {ipv4: {cidr: 203.0.113.0/28}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: web}
spec: {networkRef: transfer, count: 2, advertisement: {type: bgp}}
";

fn metallb(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "metallb.io/v1beta1", "kind": kind,
        "metadata": {"name": name, "namespace": "metallb-system"},
    })
}

/// Waits until an object has exactly this spec, and carries our label and what it was made from.
fn until_spec(cluster: &Cluster<'_>, kind: &str, spec: &Value) -> anyhow::Result<()> {
    let mut last = None;
    let found = eventually(&format!("{kind} web has its spec"), || {
        last = cluster.server.get(&metallb(kind, "web"))?;
        let is_right = last.as_ref().is_some_and(|object| {
            let metadata = &object["metadata"];
            object["spec"] == *spec
                && metadata["labels"]["app.kubernetes.io/managed-by"] == "selvedge"
                && metadata["annotations"]["selvedge.dev/generated-from"] == "Inbound/web"
        });
        Ok(is_right.then_some(()))
    });
    found.map_err(|error| error.context(format!("it is {last:?}")))
}

#[test]
fn an_inbound_waits_for_metallb_gets_its_objects_and_takes_them_with_it() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let programs = Programs::new(cluster.server)?;
        cluster.server.apply(INBOUND)?;
        let _operator = start_operator(cluster.server.operator_kubeconfig(), &[])?;
        let inbound = ("Inbound", "web");
        cluster.until_condition(inbound, ["PlatformReady", "False", "KindNotServed"])?;
        cluster.until_condition(inbound, ["Ready", "False", "KindNotServed"])?;

        // Another's object has a name that we need.
        let mut theirs = metallb("BGPAdvertisement", "web");
        theirs["spec"] = json!({"ipAddressPools": ["theirs"]});
        programs.install(Program::MetalLb)?;
        let created = cluster.server.create(&theirs, Mode::Real)?;
        created.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let pool = json!({
            "addresses": ["203.0.113.1/32", "203.0.113.2/32"],
            "autoAssign": true, "avoidBuggyIPs": false,
        });
        until_spec(cluster, "IPAddressPool", &pool)?;
        cluster.until_condition(inbound, ["Ready", "False", "NameTaken"])?;
        let kept = cluster.server.get(&theirs)?.unwrap_or_default();
        assert_eq!(kept["spec"]["ipAddressPools"], json!(["theirs"]));
        cluster.server.delete(&theirs)?;
        let advertisement = json!({
            "ipAddressPools": ["web"], "aggregationLength": 32, "aggregationLengthV6": 128,
        });
        until_spec(cluster, "BGPAdvertisement", &advertisement)?;
        cluster.until_condition(inbound, ["Ready", "True", ""])?;

        let edit = json!({"spec": {"addresses": ["192.0.2.0/24"]}});
        cluster
            .server
            .edit(&metallb("IPAddressPool", "web"), &edit)?;
        until_spec(cluster, "IPAddressPool", &pool)?;
        cluster.server.delete(&metallb("IPAddressPool", "web"))?;
        until_spec(cluster, "IPAddressPool", &pool)?;

        // What is wrong with an intent costs it nothing that it has.
        let missing = json!({"spec": {"networkRef": "nothing"}});
        cluster.server.edit(&object("Inbound", "web"), &missing)?;
        cluster.until_condition(inbound, ["Resolved", "False", "MissingReference"])?;
        for_a_while("its pool stays", || {
            Ok(cluster
                .server
                .get(&metallb("IPAddressPool", "web"))?
                .is_some())
        })?;
        cluster.server.delete(&object("Inbound", "web"))?;
        eventually("its objects go with it", || {
            let pools = cluster.server.list("metallb.io/v1beta1", "IPAddressPool")?;
            let all = cluster
                .server
                .list("metallb.io/v1beta1", "BGPAdvertisement")?;
            Ok((pools.is_empty() && all.is_empty()).then_some(()))
        })?;
        assert!(cluster.server.list(TCAAS, "Inbound")?.is_empty());
        Ok(())
    })
}

#[test]
fn no_node_and_no_program_gets_an_address_before_a_status_holds_it() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let programs = Programs::new(cluster.server)?;
        programs.install(Program::MetalLb)?;
        let proxy = Proxy::start(cluster.server)?;
        proxy.fail("/inbounds/web/status", 503);
        cluster.server.apply(INBOUND)?;
        let web = object("Inbound", "web");
        let reaches = json!({"spec": {"destinations": {"matchLabels": {"zone": "secure"}}}});
        cluster.server.edit(&web, &reaches)?;
        let _operator = start_operator(proxy.kubeconfig(), &[])?;
        // What is generated for others is stored, and after it the configs of nodes would be.
        cluster.until_generated(&BILLING)?;
        for_a_while("nothing has its addresses", || {
            let pools = cluster.server.list("metallb.io/v1beta1", "IPAddressPool")?;
            let configs = cluster.all("NodeNetworkConfig")?;
            let mut configs = configs.iter().map(Value::to_string);
            Ok(pools.is_empty() && !configs.any(|config| config.contains("203.0.113.")))
        })?;
        proxy.heal();
        eventually("n1 announces them", || {
            let config = cluster.server.get(&object("NodeNetworkConfig", "n1"))?;
            let config = config.unwrap_or_default().to_string();
            Ok(config.contains("203.0.113.1/32").then_some(()))
        })?;
        let status = &cluster.get("Inbound", "web")?["status"];
        let addresses = json!(["203.0.113.1", "203.0.113.2"]);
        assert_eq!(status["addresses"]["ipv4"], addresses);
        Ok(())
    })
}

#[test]
fn a_field_that_an_intent_asks_for_no_longer_is_removed_and_those_of_others_stay()
-> anyhow::Result<()> {
    without_operator(|cluster| {
        let programs = Programs::new(cluster.server)?;
        programs.install(Program::MetalLb)?;
        cluster.server.apply(INBOUND)?;
        let _operator = start_operator(cluster.server.operator_kubeconfig(), &[])?;
        let inbound = object("Inbound", "web");
        let plain = json!({
            "ipAddressPools": ["web"], "aggregationLength": 32, "aggregationLengthV6": 128,
        });
        let check = || -> anyhow::Result<()> {
            until_spec(cluster, "BGPAdvertisement", &plain)?;
            let selector = json!({"matchLabels": {"group": "blue"}});
            let edit = json!({"spec": {"nodeSelector": selector}});
            cluster.server.edit(&inbound, &edit)?;
            let mut selecting = plain.clone();
            selecting["nodeSelectors"] = json!([selector]);
            until_spec(cluster, "BGPAdvertisement", &selecting)?;

            let advertisement = metallb("BGPAdvertisement", "web");
            let theirs = json!({"spec": {"communities": ["64500:1"]}});
            cluster.server.edit(&advertisement, &theirs)?;
            let edit = json!({"spec": {"nodeSelector": null}});
            cluster.server.edit(&inbound, &edit)?;
            let mut others = plain.clone();
            others["communities"] = json!(["64500:1"]);
            until_spec(cluster, "BGPAdvertisement", &others)
        };
        check().expect("the advertisement says what the intent says");
        Ok(())
    })
}

#[test]
fn a_kind_of_another_program_that_cannot_be_watched_is_not_written_until_it_can()
-> anyhow::Result<()> {
    without_operator(|cluster| {
        let programs = Programs::new(cluster.server)?;
        programs.install(Program::MetalLb)?;
        let proxy = Proxy::start(cluster.server)?;
        proxy.fail("/ipaddresspools?", 503);
        cluster.server.apply(INBOUND)?;
        let _operator = start_operator(proxy.kubeconfig(), &[])?;
        let check = || -> anyhow::Result<()> {
            let inbound = ("Inbound", "web");
            cluster.until_condition(inbound, ["Ready", "False", "KindNotWatched"])?;
            let pool = metallb("IPAddressPool", "web");
            for_a_while("nothing is written by guess", || {
                Ok(cluster.server.get(&pool)?.is_none())
            })?;
            // The other kind does not suffer.
            let advertisement = metallb("BGPAdvertisement", "web");
            assert!(cluster.server.get(&advertisement)?.is_some());
            proxy.heal();
            cluster.until_condition(inbound, ["Ready", "True", ""])?;

            // What is deleted while it cannot be watched is not deleted by guess either.
            proxy.fail("/ipaddresspools?", 503);
            proxy.cut();
            cluster.server.delete(&object("Inbound", "web"))?;
            eventually("the other object goes", || {
                Ok(cluster.server.get(&advertisement)?.is_none().then_some(()))
            })?;
            for_a_while("the pool stays", || {
                Ok(cluster.server.get(&pool)?.is_some())
            })?;
            proxy.heal();
            eventually("the pool goes", || {
                Ok(cluster.server.get(&pool)?.is_none().then_some(()))
            })
        };
        check().expect("only what can be watched is written");
        Ok(())
    })
}
