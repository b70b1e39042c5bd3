//! All objects of a cluster, for commands that read a cluster in place of files.

use compiler::Kind;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use serde_json::Value;

use crate::{resource, watch};

/// Objects per page of a list.
const PAGE_SIZE: u32 = 500;

/// The objects of a kind cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("failed to list {kind}")]
pub struct NotListed {
    kind: Kind,
    source: kube::Error,
}

/// All objects of these kinds, as documents. A kind that the cluster may do without has none where it is not served.
pub async fn objects(
    client: &Client,
    kinds: impl Iterator<Item = Kind>,
) -> Result<Vec<Value>, NotListed> {
    let mut objects = Vec::new();
    for kind in kinds {
        match of_kind(client, kind).await {
            Ok(listed) => objects.extend(listed),
            Err(error) if kind.is_optional() && is_not_served(&error) => {}
            Err(source) => return Err(NotListed { kind, source }),
        }
    }
    Ok(objects)
}

fn is_not_served(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// All objects of a kind, in the first of its versions that is served.
async fn of_kind(client: &Client, kind: Kind) -> kube::Result<Vec<Value>> {
    let mut versions = resource::versions(kind).peekable();
    loop {
        let version = versions.next().unwrap_or_default();
        match in_version(client, kind, version).await {
            Err(error) if is_not_served(&error) && versions.peek().is_some() => {}
            listed => return listed,
        }
    }
}

async fn in_version(client: &Client, kind: Kind, version: &str) -> kube::Result<Vec<Value>> {
    let api: Api<DynamicObject> = resource::all(client, kind, version);
    let mut params = ListParams::default().limit(PAGE_SIZE);
    let mut objects = Vec::new();
    loop {
        // Only the metadata of a Node is read, and the rest is large.
        let (items, next) = if kind == Kind::Node {
            let page = api.list_metadata(&params).await?;
            let items = page.items.into_iter();
            let items = items.map(|node| watch::metadata_only(node.metadata));
            (items.collect::<Vec<_>>(), page.metadata.continue_)
        } else {
            let page = api.list(&params).await?;
            (page.items, page.metadata.continue_)
        };
        objects.extend(items.into_iter().map(|one| watch::document(kind, one)));
        match next.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(objects),
        }
    }
}
