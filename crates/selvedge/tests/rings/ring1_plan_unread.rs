//! Ring 1, plans: a document that cannot be read as the object that it was is a mistake, and never a deletion.

use crate::ring1_plan::{CLUSTER, planned, table};

/// What a document becomes, and what is said of it.
const EDITS: [(&str, &str, &str); 5] = [
    (
        "network.t-caas.telekom.com/v1alpha1\nkind: Layer2Attachment",
        "network.telekom.com/v1alpha1\nkind: Layer2Attachment",
        "Layer2Attachment a apiVersion: Layer2Attachment of \"network.telekom.com/v1alpha1\" is ignored, and the object keeps its last state; \
         write apiVersion: network.t-caas.telekom.com/v1alpha1 and kind: Layer2Attachment",
    ),
    (
        "network.t-caas.telekom.com/v1alpha1\nkind: Layer2Attachment",
        "network.t-caas.telekom.com/v1beta1\nkind: Layer2Attachment",
        "Layer2Attachment of \"network.t-caas.telekom.com/v1beta1\" is ignored, and the object keeps its last state",
    ),
    (
        "network.t-caas.telekom.com/v1alpha1\nkind: Layer2Attachment",
        "network.t-caas.telekom.com/v1alpha1\nkind: layer2attachment",
        "write apiVersion: network.t-caas.telekom.com/v1alpha1 and kind: Layer2Attachment",
    ),
    (
        "openpe.openperouter.github.io/v1alpha1\nkind: Underlay",
        "openpe.openperouter.github.io/v1beta1\nkind: Underlay",
        "Underlay of \"openpe.openperouter.github.io/v1beta1\" is ignored, and the object keeps its last state",
    ),
    // A group in which others have kinds of this name.
    (
        "network.t-caas.telekom.com/v1alpha1\nkind: Network\n",
        "operator.openshift.io/v1\nkind: Network\n",
        "Network a-net apiVersion: Network of \"operator.openshift.io/v1\" is ignored, and the object keeps its last state",
    ),
];

#[test]
fn a_document_of_a_wrong_group_or_version_keeps_its_object_and_is_an_error() -> anyhow::Result<()> {
    for (from, to, said) in EDITS {
        let edited = CLUSTER.replacen(from, to, 1);
        anyhow::ensure!(edited != CLUSTER, "{from} is there");
        let (text, is_fine) = table(CLUSTER, &edited)?;
        assert!(text.contains(said) && !is_fine, "{to}: {text}");
        assert!(text.contains("nothing changes on any node"), "{to}: {text}");
        assert_eq!(text.matches("error: ").count(), 1, "{to}: {text}");
        let plan = planned(CLUSTER, &edited)?;
        let problem = &plan["problems"][0];
        assert_eq!(problem["reason"], "Unreadable", "{to}: {plan:#}");
        assert_eq!(problem["severity"], "error", "{to}: {plan:#}");
    }
    Ok(())
}

#[test]
fn the_same_object_of_another_group_beside_it_is_no_mistake() -> anyhow::Result<()> {
    let beside = format!(
        "{CLUSTER}---\n{{apiVersion: operator.openshift.io/v1, kind: Network, metadata: {{name: a-net}}}}\n"
    );
    let (text, is_fine) = table(CLUSTER, &beside)?;
    assert!(is_fine && text.contains("nothing changes"), "{text}");
    Ok(())
}

#[test]
fn a_list_whose_items_are_no_list_is_an_error_and_makes_no_plan() -> anyhow::Result<()> {
    let documents: Vec<&str> = CLUSTER.split("---\n").collect();
    let (last, others) = documents
        .split_last()
        .ok_or_else(|| anyhow::anyhow!("no document"))?;
    let indented: Vec<String> = last.lines().map(|line| format!("    {line}")).collect();
    let edited = format!(
        "{}---\napiVersion: v1\nkind: List\nitems:\n  one:\n{}\n",
        others.join("---\n"),
        indented.join("\n")
    );
    let (text, is_fine) = table(CLUSTER, &edited)?;
    let said = "items of a List must be a list of objects, not a map";
    assert!(text.contains(said) && !is_fine, "{text}");
    assert!(text.contains("no plan"), "{text}");
    // Nothing is said of other objects: it would follow from what is not known.
    assert_eq!(text.matches("error: ").count(), 1, "{text}");
    let plan = planned(CLUSTER, &edited)?;
    assert_eq!(plan["problems"][0]["message"], said, "{plan:#}");
    assert_eq!(plan.get("groups"), None, "{plan:#}");
    Ok(())
}
