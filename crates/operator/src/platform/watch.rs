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
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::sleep,
};

use super::{Change, selector};
use crate::watch::is_not_served;

/// How soon a kind is noticed that was not served.
const NOT_SERVED: Duration = Duration::from_secs(10);

/// Delay before a watch that failed is started again.
const FAILED: Duration = Duration::from_secs(2);

/// Where watches queue what changed.
type Queue = UnboundedSender<(PlatformKind, Change)>;

/// Starts the watches.
pub(crate) fn start(
    client: &Client,
    tasks: &mut JoinSet<()>,
) -> UnboundedReceiver<(PlatformKind, Change)> {
    let (queue, changes) = unbounded_channel();
    for kind in platform::kinds() {
        tasks.spawn(follow(client.clone(), kind, queue.clone()));
    }
    changes
}

/// The resource of a kind.
pub(crate) fn resource(kind: PlatformKind) -> ApiResource {
    let (group, version) = kind.api_version.split_once('/').unwrap_or_default();
    let gvk = GroupVersionKind::gvk(group, version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

/// Follows a kind until the queue is closed. A watch that failed is replaced by a new one, which begins with a list.
async fn follow(client: Client, kind: PlatformKind, queue: Queue) {
    let api = Api::<DynamicObject>::all_with(client, &resource(kind));
    let config = watcher::Config::default().labels(&selector());
    loop {
        let mut events = std::pin::pin!(watcher::watcher(api.clone(), config.clone()));
        let mut delay = FAILED;
        while let Some(event) = events.next().await {
            let change = match event {
                Ok(Event::Init) => Change::ListStarted,
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    Change::Applied(Box::new(object))
                }
                Ok(Event::InitDone) => Change::ListCompleted,
                Ok(Event::Delete(object)) => Change::Deleted(Box::new(object)),
                Err(error) if is_not_served(&error) => {
                    delay = NOT_SERVED;
                    Change::NotServed
                }
                Err(error) => {
                    tracing::warn!(kind = kind.kind, %error, "watch failed");
                    break;
                }
            };
            let has_ended = matches!(change, Change::NotServed);
            if queue.send((kind, change)).is_err() {
                return;
            }
            if has_ended {
                break;
            }
        }
        sleep(delay).await;
    }
}
