//! Ring 1, the examples of the source documents: existing manifests work unchanged.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;

use crate::{
    data::{self, Example, text},
    support::{repository, selvedge},
};

#[test]
fn every_example_of_the_source_documents_is_valid() -> anyhow::Result<()> {
    let examples = data::examples()?;
    let referred: BTreeMap<String, Value> = data::referred()?
        .into_iter()
        .map(|object| (data::name(&object), object))
        .collect();
    let folder = tempfile::tempdir()?;
    let check = |number: usize, example: &Example| -> anyhow::Result<Option<String>> {
        let beside = folder.path().join(format!("{number}.yaml"));
        let wanted = example.refers.iter().map(|name| &referred[name.as_str()]);
        let wanted: Result<Vec<String>, _> = wanted.map(serde_json::to_string).collect();
        fs::write(&beside, wanted?.join("\n---\n"))?;
        let path = |path: &Path| path.display().to_string();
        let (own, beside) = (path(&example.path()), path(&beside));
        let mut arguments = vec!["validate", "-f", &own];
        if !example.refers.is_empty() {
            arguments.extend(["-f", &beside]);
        }
        let output = selvedge(&arguments, "")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_fine = output.status.success() && !said.contains("error:");
        Ok((!is_fine).then(|| format!("{}: {}\n{said}", example.file, output.status)))
    };
    let failures = in_parallel(&examples, check)?;
    assert!(
        failures.is_empty(),
        "{} of {} examples:\n{}",
        failures.len(),
        examples.len(),
        failures.join("\n")
    );
    Ok(())
}

#[test]
fn every_translation_example_of_the_intents_is_a_story() -> anyhow::Result<()> {
    let mut told = String::new();
    for story in data::listed(&repository("tests/cases"))? {
        told.push_str(&fs::read_to_string(story.join("README.md"))?);
    }
    for example in 1..=6 {
        assert!(told.contains(&format!("§6.{example}")), "§6.{example}");
    }
    Ok(())
}

/// Does something with every item on all processors, and collects what it found.
fn in_parallel<T: Sync>(
    items: &[T],
    check: impl Fn(usize, &T) -> anyhow::Result<Option<String>> + Sync,
) -> anyhow::Result<Vec<String>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else {
                return anyhow::Ok(());
            };
            if let Some(failure) = check(number, item)? {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.insert(number, failure);
            }
        }
    };
    let workers = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(found.into_values().collect())
}

#[test]
fn the_index_of_the_examples_is_complete_and_true() -> anyhow::Result<()> {
    let examples = data::examples()?;
    let mut present = BTreeSet::new();
    for folder in data::listed(&data::seeds())? {
        if folder.is_dir() {
            present.extend(data::listed(&folder)?);
        }
    }
    let told: BTreeSet<PathBuf> = examples.iter().map(Example::path).collect();
    assert_eq!(
        present, told,
        "the files, and those that the index tells of"
    );
    for example in &examples {
        let kinds: Vec<String> = example
            .objects()?
            .iter()
            .map(|object| format!("{}/{}", text(object, "/apiVersion"), text(object, "/kind")))
            .collect();
        let told: BTreeSet<_> = example.kinds.iter().collect();
        assert_eq!(
            kinds.iter().collect::<BTreeSet<_>>(),
            told,
            "{}",
            example.file
        );
    }
    Ok(())
}

#[test]
fn what_examples_refer_to_is_there_and_nothing_else_is() -> anyhow::Result<()> {
    let wanted: BTreeSet<String> = data::examples()?
        .into_iter()
        .flat_map(|example| example.refers)
        .collect();
    let referred = data::referred()?;
    let present: BTreeSet<String> = referred.iter().map(data::name).collect();
    assert_eq!(present, wanted);
    assert_eq!(present.len(), referred.len(), "each is there once");
    Ok(())
}

#[test]
fn foreign_kinds_of_the_examples_are_passed_over_in_one_line() -> anyhow::Result<()> {
    let pools = data::seeds().join("001/01-ip-pools.yaml");
    let claim = data::seeds().join("004/05-resourceclaim-request.yaml");
    let path = |path: &Path| path.display().to_string();
    let output = selvedge(&["validate", "-f", &path(&pools), "-f", &path(&claim)], "")?;
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr)?,
        "skipped 3 objects of other kinds: \
         1 ipam.cluster.x-k8s.io/v1beta1/InClusterIPPool, \
         1 ipam.cluster.x-k8s.io/v1beta1/InfobloxIPPool, \
         1 resource.k8s.io/v1beta1/ResourceClaim\n"
    );
    Ok(())
}

/// `UPDATE_CRDS=1` writes them anew.
#[test]
fn deploy_holds_the_definitions_that_the_program_prints() -> anyhow::Result<()> {
    let folder = repository("deploy/crds");
    let printed = String::from_utf8(selvedge(&["crds"], "")?.stdout)?;
    let mut wanted = BTreeMap::new();
    for document in printed.split("---\n").filter(|text| !text.is_empty()) {
        let definition: Value = serde_saphyr::from_str(document)?;
        let name = text(&definition, "/metadata/name");
        wanted.insert(folder.join(format!("{name}.yaml")), document.to_owned());
    }
    if std::env::var_os("UPDATE_CRDS").is_some() {
        fs::create_dir_all(&folder)?;
        for old in data::listed(&folder)? {
            fs::remove_file(old)?;
        }
        for (path, document) in &wanted {
            fs::write(path, document)?;
        }
    }
    let mut present = BTreeMap::new();
    for path in data::listed(&folder)? {
        let document = fs::read_to_string(&path)?;
        present.insert(path, document);
    }
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&present), names(&wanted));
    for (path, document) in &wanted {
        let path_shown = path.display();
        assert!(
            present[path] == *document,
            "{path_shown} is old: run the tests with UPDATE_CRDS=1"
        );
    }
    Ok(())
}

#[test]
fn every_manifest_of_the_docs_is_valid() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let base = folder.path().join("base.yaml");
    fs::write(
        &base,
        r#"{"apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay", "metadata": {"name": "all", "namespace": "x"},
            "spec": {"asn": 64512, "nics": ["eth1"], "evpn": {"vtepcidr": "100.70.0.0/24"}, "neighbors": [{"asn": 64500, "address": "192.0.2.1"}]}}"#,
    )?;
    let text = fs::read_to_string(repository("docs/openperouter.md"))?;
    let mut seen = 0;
    for block in text.split("```yaml\n").skip(1) {
        let (manifest, _) = block.split_once("```").unwrap_or_default();
        let file = folder.path().join("manifest.yaml");
        fs::write(&file, manifest)?;
        let mut arguments = vec![
            "validate".to_owned(),
            "-f".to_owned(),
            file.display().to_string(),
        ];
        if !manifest.contains("kind: Underlay") {
            arguments.extend(["-f".to_owned(), base.display().to_string()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = selvedge(&arguments, "")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let gap = "no Node in the input: what the objects become on nodes is not checked\n";
        assert!(
            output.status.success() && said.replace(gap, "").is_empty(),
            "{manifest}\n{said}"
        );
        seen += 1;
    }
    assert!(seen >= 8, "{seen} manifests");
    Ok(())
}

#[test]
fn every_example_of_the_fabrics_kinds_is_in_the_docs_as_it_stands() -> anyhow::Result<()> {
    let text = fs::read_to_string(repository("docs/openperouter.md"))?;
    let folder = tempfile::tempdir()?;
    let mut shown = Vec::new();
    for block in text.split("```yaml\n").skip(1) {
        let (manifest, _) = block.split_once("```").unwrap_or_default();
        let file = folder.path().join("manifest.yaml");
        fs::write(&file, manifest)?;
        shown.push(data::objects(&file)?);
    }
    let files = data::listed(&data::seeds().join("002"))?;
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        let objects = data::objects(&file)?;
        assert!(shown.contains(&objects), "{}", file.display());
    }
    Ok(())
}
