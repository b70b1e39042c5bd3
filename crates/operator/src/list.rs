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
        let listed = of_kind(client, kind).await;
        match listed {
            Ok(listed) => objects.extend(listed),
            Err(kube::Error::Api(status)) if kind.is_optional() && status.code == 404 => {}
            Err(source) => return Err(NotListed { kind, source }),
        }
    }
    Ok(objects)
}

async fn of_kind(client: &Client, kind: Kind) -> kube::Result<Vec<Value>> {
    let api: Api<DynamicObject> = resource::all(client, kind);
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
