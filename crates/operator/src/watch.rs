//! Watches: one task for each kind, which reads objects and queues what changed.

use std::time::Duration;

use compiler::{Insertion, Kind, ObjectRef, Prepared, snapshot::Key};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Event},
};
use serde_json::Value;
use tokio::{
    sync::mpsc::UnboundedSender,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::resource;

/// Delay before a failed watch is started again; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Objects per page of a list. A page is held as JSON until all its objects are read.
const PAGE_SIZE: u32 = 100;

/// What a watch reports about its kind.
#[derive(Debug)]
pub(crate) enum Change {
    /// A list begins. The API server has not answered yet.
    ListStarted,
    /// An object of the list.
    Listed(Box<Prepared>),
    /// All objects of the list have been reported.
    ListCompleted,
    /// An object was created or changed.
    Applied(Box<Prepared>),
    /// An object was deleted.
    Deleted(ObjectRef),
    /// The watch failed, with the reason. A list follows once it works again.
    Failed(String),
    /// The API server does not serve the kind, with what it answers.
    NotServed(String),
}

/// Where watches queue what changed.
pub(crate) type Queue = UnboundedSender<(Kind, Change)>;

/// Starts a watch for each of these kinds.
pub(crate) fn start(
    client: &Client,
    kinds: impl Iterator<Item = Kind>,
    queue: &Queue,
    tasks: &mut JoinSet<()>,
) {
    for kind in kinds {
        let (client, queue) = (client.clone(), queue.clone());
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        // Only the metadata of a Node is read, and the rest is large.
        if kind == Kind::Node {
            tasks.spawn(follow(kind, queue, move || {
                let api = Api::<PartialObjectMeta<Node>>::all(client.clone());
                watcher::watcher(api, config.clone()).map(|event| event.map(without_spec))
            }));
        } else {
            tasks.spawn(follow(kind, queue, move || {
                watcher::watcher(resource::all(&client, kind), config.clone())
            }));
        }
    }
}

/// Follows a kind until the queue is closed.
///
/// A watch that failed is replaced by a new one, which begins with a list: a watch that is only resumed reports nothing before the
/// next change, so that a kind without changes would count as failing for ever.
async fn follow<S>(kind: Kind, queue: Queue, watch: impl Fn() -> S)
where
    S: Stream<Item = watcher::Result<Event<DynamicObject>>>,
{
    let mut delay = FIRST_RETRY;
    loop {
        let started = Instant::now();
        let change = match until_failure(kind, &queue, watch()).await {
            Ended::Closed => return,
            Ended::Failed(error) => failure(kind, &error),
        };
        if started.elapsed() > LAST_RETRY {
            delay = FIRST_RETRY;
        }
        if queue.send((kind, change)).is_err() {
            return;
        }
        sleep(delay).await;
        delay = (delay * 2).min(LAST_RETRY);
    }
}

/// Why a watch ended.
enum Ended {
    Failed(watcher::Error),
    /// The queue is closed, or the watch ended without an error.
    Closed,
}

async fn until_failure(
    kind: Kind,
    queue: &Queue,
    events: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
) -> Ended {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let change = match event {
            Ok(event) => read(kind, event),
            Err(error) => return Ended::Failed(error),
        };
        if let Some(change) = change
            && queue.send((kind, change)).is_err()
        {
            return Ended::Closed;
        }
    }
    Ended::Closed
}

/// The change that an event means; nothing if its object cannot be attributed to the kind.
fn read(kind: Kind, event: Event<DynamicObject>) -> Option<Change> {
    Some(match event {
        Event::Init => Change::ListStarted,
        Event::InitApply(object) => Change::Listed(prepare(kind, object)?),
        Event::InitDone => Change::ListCompleted,
        Event::Apply(object) => Change::Applied(prepare(kind, object)?),
        Event::Delete(object) => {
            let key = Key {
                namespace: object.namespace().map(Into::into),
                name: object.name_any().into(),
            };
            Change::Deleted(ObjectRef { kind, key })
        }
    })
}

fn failure(kind: Kind, error: &watcher::Error) -> Change {
    if kind.is_optional() && is_not_served(error) {
        return Change::NotServed(error.to_string());
    }
    tracing::warn!(%kind, %error, "watch failed");
    Change::Failed(error.to_string())
}

/// Whether the API server does not serve the kind.
pub(crate) fn is_not_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(source)
    | watcher::Error::WatchStartFailed(source)
    | watcher::Error::WatchFailed(source)) = error
    else {
        return false;
    };
    matches!(source, kube::Error::Api(status) if status.code == 404)
}

/// Reads an object that the API server sent. Its JSON is dropped.
pub(crate) fn prepare(kind: Kind, object: DynamicObject) -> Option<Box<Prepared>> {
    match Prepared::read(&document(kind, object)) {
        Ok(prepared) => Some(Box::new(prepared)),
        Err(Insertion::Object(subject)) => unreachable!("{subject} is an object"),
        Err(
            Insertion::Unknown(message)
            | Insertion::Foreign(message)
            | Insertion::Misplaced { message, .. },
        ) => {
            tracing::warn!(%kind, message, "cannot decode object from the API server");
            None
        }
    }
}

/// The JSON of an object. An object of a list does not name its kind; the list does.
fn document(kind: Kind, object: DynamicObject) -> Value {
    let DynamicObject { metadata, data, .. } = object;
    let mut document = match data {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    let metadata = serde_json::to_value(metadata).unwrap_or_default();
    document.insert("metadata".to_owned(), metadata);
    document.insert("apiVersion".to_owned(), kind.api_version().into());
    document.insert("kind".to_owned(), kind.to_string().into());
    Value::Object(document)
}

/// The same event with metadata only.
fn without_spec(event: Event<PartialObjectMeta<Node>>) -> Event<DynamicObject> {
    let object = |object: PartialObjectMeta<Node>| DynamicObject {
        types: None,
        metadata: object.metadata,
        data: Value::Null,
    };
    match event {
        Event::Init => Event::Init,
        Event::InitApply(node) => Event::InitApply(object(node)),
        Event::InitDone => Event::InitDone,
        Event::Apply(node) => Event::Apply(object(node)),
        Event::Delete(node) => Event::Delete(object(node)),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, collections::VecDeque};

    use futures::stream;
    use kube::core::Status;
    use serde_json::json;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn not_found() -> watcher::Error {
        let status = Status::failure("not found", "NotFound").with_code(404);
        watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
    }

    fn vrf(name: &str) -> DynamicObject {
        let object = json!({"metadata": {"name": name}, "spec": {"vrf": "v", "vni": 7}});
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn an_object_of_a_list_is_read_as_one_of_the_kind() {
        let change = read(Kind::Vrf, Event::InitApply(vrf("a")));
        let Some(Change::Listed(prepared)) = change else {
            panic!("{change:?}")
        };
        assert_eq!(*prepared.subject(), ObjectRef::named(Kind::Vrf, "a"));
    }

    #[test]
    fn only_an_optional_kind_may_be_missing() {
        let of = |kind| failure(kind, &not_found());
        assert!(matches!(of(Kind::IpAddress), Change::NotServed(_)));
        assert!(matches!(of(Kind::Vrf), Change::Failed(_)));
        let other = watcher::Error::NoResourceVersion;
        assert!(matches!(
            failure(Kind::IpAddress, &other),
            Change::Failed(_)
        ));
    }

    #[tokio::test]
    async fn a_watch_that_failed_is_listed_again() {
        let (queue, mut changes) = unbounded_channel();
        let watches: [VecDeque<_>; 2] = [
            [Ok(Event::Init), Err(watcher::Error::NoResourceVersion)].into(),
            [Ok(Event::Init), Ok(Event::InitDone)].into(),
        ];
        let watches = Cell::new(watches.into_iter());
        follow(Kind::Vrf, queue, || {
            let mut left = watches.take();
            let events = left.next().unwrap_or_default();
            watches.set(left);
            stream::iter(events)
        })
        .await;
        let mut seen = Vec::new();
        while let Ok((_, change)) = changes.try_recv() {
            seen.push(change);
        }
        assert!(
            matches!(
                seen.as_slice(),
                [
                    Change::ListStarted,
                    Change::Failed(_),
                    Change::ListStarted,
                    Change::ListCompleted
                ]
            ),
            "{seen:?}"
        );
    }
}
