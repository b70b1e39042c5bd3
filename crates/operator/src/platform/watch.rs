//! Watches of the kinds of other programs: one task for each, which waits until its kind is served.

use std::time::Duration;

use compiler::platform::{self, PlatformKind};
use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
    runtime::watcher::{self, Event},
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch as latest,
    },
    task::JoinSet,
    time::sleep,
};

use super::{Change, selector};
use crate::{errors::chain, watch::is_not_served};

/// How soon a kind is noticed that was not served.
const NOT_SERVED: Duration = Duration::from_secs(10);

/// Delay before a watch that failed is started again.
const FAILED: Duration = Duration::from_secs(2);

/// Where watches queue what changed.
pub(crate) type Queue = UnboundedSender<(PlatformKind, Change)>;

/// Starts the watches. When `restored` changes, all kinds are listed again.
pub(crate) fn start(
    client: &Client,
    restored: &latest::Receiver<u64>,
    tasks: &mut JoinSet<()>,
) -> UnboundedReceiver<(PlatformKind, Change)> {
    let (queue, changes) = unbounded_channel();
    for kind in platform::kinds() {
        let config = watcher::Config::default().labels(&selector());
        let (client, restored) = (client.clone(), restored.clone());
        tasks.spawn(follow(client, kind, config, restored, queue.clone()));
    }
    changes
}

/// The resource of a kind in a group and version.
pub(crate) fn resource(kind: PlatformKind, api_version: &str) -> ApiResource {
    // The group of the core has no name.
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

/// Follows a kind until the queue is closed. A watch that failed is replaced by a new one, which begins with a list, in the newest version
/// that is served; so is one when `restored` changes, because the API server returns older versions.
pub(crate) async fn follow(
    client: Client,
    kind: PlatformKind,
    config: watcher::Config,
    mut restored: latest::Receiver<u64>,
    queue: Queue,
) {
    let mut untried = Vec::new();
    loop {
        if untried.is_empty() {
            untried = kind.api_versions().collect();
            untried.reverse();
        }
        let api_version = untried.pop().unwrap_or(kind.api_version);
        let ended = tokio::select! {
            ended = until_failure(&client, kind, api_version, &config, &queue) => ended,
            Ok(()) = restored.changed() => {
                Some(Change::Failed("the API server returned an older resource version".to_owned()))
            }
        };
        let (change, delay) = match ended {
            None => return,
            Some(Change::NotServed) if !untried.is_empty() => continue,
            Some(Change::NotServed) => (Change::NotServed, NOT_SERVED),
            Some(change) => {
                untried.clear();
                (change, FAILED)
            }
        };
        if queue.send((kind, change)).is_err() {
            return;
        }
        sleep(delay).await;
    }
}

/// Follows a kind in one version until the watch fails, and says how; nothing if the queue is closed.
async fn until_failure(
    client: &Client,
    kind: PlatformKind,
    api_version: &'static str,
    config: &watcher::Config,
    queue: &Queue,
) -> Option<Change> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource(kind, api_version));
    let mut events = std::pin::pin!(watcher::watcher(api, config.clone()));
    let mut was_served = false;
    while let Some(event) = events.next().await {
        let change = match event {
            Ok(Event::Init) => Change::ListStarted(api_version),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                Change::Applied(Box::new(object))
            }
            Ok(Event::InitDone) => {
                was_served = true;
                Change::ListCompleted
            }
            Ok(Event::Delete(object)) => Change::Deleted(Box::new(object)),
            // What was served until now may be served in another version.
            Err(error) if is_not_served(&error) && !was_served => return Some(Change::NotServed),
            Err(error) => {
                let reason = chain(&error);
                tracing::warn!(kind = kind.kind, reason, "watch failed");
                return Some(Change::Failed(reason));
            }
        };
        queue.send((kind, change)).ok()?;
    }
    Some(Change::Failed("the watch ended".to_owned()))
}
