//! Watches: one task for each kind, which reads objects and queues what changed.

use std::{future, time::Duration};

use compiler::{Insertion, Kind, ObjectRef, Prepared, snapshot::Key};
use futures::{Stream, StreamExt};
use k8s_openapi::{
    api::core::v1::Node,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ObjectMeta, PartialObjectMeta},
    runtime::watcher::{self, Event},
};
use serde_json::Value;
use tokio::{
    sync::{mpsc::UnboundedSender, watch as latest},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    errors::chain,
    kinds::{Seen, Version},
    resource,
};

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
    Listed(Seen),
    /// All objects of the list have been reported.
    ListCompleted,
    /// An object was created or changed.
    Applied(Seen),
    /// An object was deleted.
    Deleted(ObjectRef, Version),
    /// The watch failed, with the reason. A list follows once it works again.
    Failed(String),
    /// The definition of the kind is being deleted, with all objects of the kind, or is gone.
    Vanished(String),
    /// The API server does not serve the kind, with what it answers.
    NotServed(String),
    /// The same of a kind that every cluster should have: its definition was never made, or is gone.
    NotDefined(String),
    /// The API server returns older versions: the known objects of the kind are outdated. A list follows.
    Outdated,
}

/// Where watches queue what changed.
pub(crate) type Queue = UnboundedSender<(Kind, Change)>;

/// How long deletions wait for more of them, before it is looked up once why there are any.
const DELETIONS: Duration = Duration::from_millis(100);

/// Starts a watch for each of these kinds. When `restored` changes, all of them are listed again.
pub(crate) fn start(
    client: &Client,
    kinds: impl Iterator<Item = Kind>,
    queue: &Queue,
    restored: &latest::Receiver<u64>,
    tasks: &mut JoinSet<()>,
) {
    for kind in kinds {
        let follower = Follower {
            kind,
            queue: queue.clone(),
            definition: Definition::of(client, kind),
            restored: restored.clone(),
        };
        let client = client.clone();
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        // Only the metadata of a Node is read, and the rest is large.
        if kind == Kind::Node {
            tasks.spawn(follower.follow(move |_| {
                let api = Api::<PartialObjectMeta<Node>>::all(client.clone());
                watcher::watcher(api, config.clone()).map(|event| event.map(without_spec))
            }));
        } else {
            tasks.spawn(follower.follow(move |version| {
                let api = resource::all(&client, kind, version);
                watcher::watcher(api, config.clone())
            }));
        }
    }
}

/// Follows one kind.
struct Follower {
    kind: Kind,
    queue: Queue,
    definition: Definition,
    restored: latest::Receiver<u64>,
}

/// Why a watch ended.
enum Ended {
    Failed(watcher::Error),
    /// The definition of the kind is being deleted, or is gone.
    Vanished(String),
    /// The definition of the kind cannot be read.
    Unknown(String),
    /// The API server's store has gone back.
    Restored,
    /// The queue is closed, or the watch ended without an error.
    Closed,
}

impl Follower {
    /// Follows the kind until the queue is closed.
    ///
    /// A watch that failed is replaced by a new one, which begins with a list: a watch that is only resumed reports nothing before the
    /// next change, so that a kind without changes would count as failing for ever. An older version is watched where a newer one is not
    /// served; each new watch begins with the newest.
    async fn follow<S>(mut self, watch: impl Fn(&'static str) -> S)
    where
        S: Stream<Item = watcher::Result<Event<DynamicObject>>>,
    {
        let mut delay = FIRST_RETRY;
        let versions: Vec<_> = resource::versions(self.kind).collect();
        let mut tried = 0;
        loop {
            let started = Instant::now();
            let mut restored = self.restored.clone();
            let version: &'static str = versions.get(tried).copied().unwrap_or_default();
            let ended = tokio::select! {
                ended = self.until_failure(watch(version)) => ended,
                Ok(()) = restored.changed() => Ended::Restored,
            };
            self.restored = restored;
            tried += 1;
            let is_served = !matches!(&ended, Ended::Failed(error) if is_not_served(error));
            if !is_served && tried < versions.len() {
                continue;
            }
            tried = 0;
            let change = match ended {
                Ended::Closed => return,
                Ended::Restored => Change::Outdated,
                Ended::Vanished(reason) => {
                    tracing::warn!(kind = %self.kind, reason, "the objects of this kind stay in effect");
                    Change::Vanished(reason)
                }
                Ended::Unknown(reason) => {
                    tracing::warn!(kind = %self.kind, reason, "watch failed");
                    Change::Failed(reason)
                }
                Ended::Failed(error) => self.failed(&error).await,
            };
            if started.elapsed() > LAST_RETRY || matches!(change, Change::Outdated) {
                delay = FIRST_RETRY;
            }
            if self.queue.send((self.kind, change)).is_err() {
                return;
            }
            sleep(delay).await;
            delay = (delay * 2).min(LAST_RETRY);
        }
    }

    async fn failed(&self, error: &watcher::Error) -> Change {
        if !self.kind.is_optional()
            && is_not_served(error)
            && let Err(Doubt::Vanishes(reason)) = self.definition.check().await
        {
            return Change::NotDefined(reason);
        }
        failure(self.kind, error)
    }

    async fn until_failure(
        &self,
        events: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
    ) -> Ended {
        let mut events = std::pin::pin!(events);
        // What was reported since an object was missing, and when it is passed on.
        let (mut held, mut due): (Vec<Change>, Option<Instant>) = (Vec::new(), None);
        loop {
            let passed_on = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                event = events.next() => {
                    let change = match event {
                        None => return Ended::Closed,
                        Some(Err(error)) => return Ended::Failed(error),
                        Some(Ok(event)) => read(self.kind, event),
                    };
                    if matches!(change, Some(Change::Deleted(..) | Change::ListCompleted)) {
                        due = due.or_else(|| Some(Instant::now() + DELETIONS));
                    }
                    held.extend(change);
                    if due.is_some() {
                        continue;
                    }
                }
                () = passed_on => {
                    match self.definition.check().await {
                        Ok(()) => {}
                        Err(Doubt::Vanishes(reason)) => return Ended::Vanished(reason),
                        Err(Doubt::Unknown(reason)) => return Ended::Unknown(reason),
                    }
                    due = None;
                }
            }
            for change in held.drain(..) {
                if self.queue.send((self.kind, change)).is_err() {
                    return Ended::Closed;
                }
            }
        }
    }
}

/// Where the definition of a kind is. Nothing for a kind that is always there.
///
/// When a definition is deleted, the API server deletes its objects first. No user asked for those deletions: a kind whose
/// definition goes keeps its objects here.
struct Definition(Option<(Api<PartialObjectMeta<CustomResourceDefinition>>, String)>);

impl Definition {
    fn of(client: &Client, kind: Kind) -> Self {
        let resource = resource::of(kind);
        Self((!resource.group.is_empty()).then(|| {
            let name = format!("{}.{}", resource.plural, resource.group);
            (Api::all(client.clone()), name)
        }))
    }

    /// Whether the kind is here to stay, or why not.
    async fn check(&self) -> Result<(), Doubt> {
        let Some((api, name)) = &self.0 else {
            return Ok(());
        };
        let unknown = |why: String| Err(Doubt::Unknown(format!("failed to read {name}: {why}")));
        match timeout(LAST_RETRY, api.get_metadata_opt(name)).await {
            Ok(Ok(Some(definition))) if definition.metadata.deletion_timestamp.is_none() => Ok(()),
            Ok(Ok(Some(_))) => Err(Doubt::Vanishes(format!(
                "the definition {name} is being deleted"
            ))),
            Ok(Ok(None)) => Err(Doubt::Vanishes(format!("there is no definition {name}"))),
            Ok(Err(error)) => unknown(chain(&error)),
            Err(_elapsed) => unknown("no answer".to_owned()),
        }
    }
}

/// Why it is not sure that a kind is here to stay.
enum Doubt {
    Vanishes(String),
    Unknown(String),
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
            let version = Version::new(object.resource_version().unwrap_or_default());
            Change::Deleted(ObjectRef { kind, key }, version)
        }
    })
}

fn failure(kind: Kind, error: &watcher::Error) -> Change {
    if kind.is_optional() && is_not_served(error) {
        return Change::NotServed(error.to_string());
    }
    let error = chain(error);
    tracing::warn!(%kind, error, "watch failed");
    Change::Failed(error)
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
pub(crate) fn prepare(kind: Kind, object: DynamicObject) -> Option<Seen> {
    let version = Version::new(object.resource_version().unwrap_or_default());
    match Prepared::read(&document(kind, object)) {
        Ok(prepared) => Some(Seen {
            prepared: Box::new(prepared),
            version,
        }),
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
pub(crate) fn document(kind: Kind, object: DynamicObject) -> Value {
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

/// An object of which nothing but the metadata is read.
pub(crate) fn metadata_only(metadata: ObjectMeta) -> DynamicObject {
    DynamicObject {
        types: None,
        metadata,
        data: Value::Null,
    }
}

/// The same event with metadata only.
fn without_spec(event: Event<PartialObjectMeta<Node>>) -> Event<DynamicObject> {
    let object = |node: PartialObjectMeta<Node>| metadata_only(node.metadata);
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
        let Some(Change::Listed(seen)) = change else {
            panic!("{change:?}")
        };
        assert_eq!(*seen.prepared.subject(), ObjectRef::named(Kind::Vrf, "a"));
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
    async fn an_older_version_is_watched_where_the_newest_is_not_served() {
        let (queue, mut changes) = unbounded_channel();
        let follower = Follower {
            kind: Kind::IpAddress,
            queue,
            definition: Definition(None),
            restored: latest::channel(0).1,
        };
        let follow = follower.follow(|version| {
            let events = if version == "v1beta1" {
                vec![Ok(Event::Init), Ok(Event::InitDone)]
            } else {
                vec![Ok(Event::Init), Err(not_found())]
            };
            stream::iter(events).chain(stream::pending())
        });
        let mut seen = Vec::new();
        let receive = async {
            while seen.len() < 3 {
                seen.extend(changes.recv().await.map(|(_, change)| change));
            }
        };
        tokio::select! {
            () = follow => panic!("it ended"),
            () = receive => {}
        }
        assert!(
            matches!(
                seen.as_slice(),
                [
                    Change::ListStarted,
                    Change::ListStarted,
                    Change::ListCompleted
                ]
            ),
            "{seen:?}"
        );
    }

    #[tokio::test]
    async fn a_watch_that_failed_is_listed_again() {
        let (queue, mut changes) = unbounded_channel();
        let watches: [VecDeque<_>; 2] = [
            [Ok(Event::Init), Err(watcher::Error::NoResourceVersion)].into(),
            [Ok(Event::Init), Ok(Event::InitDone)].into(),
        ];
        let watches = Cell::new(watches.into_iter());
        let follower = Follower {
            kind: Kind::Vrf,
            queue,
            definition: Definition(None),
            restored: latest::channel(0).1,
        };
        let follow = follower.follow(|_| {
            let mut left = watches.take();
            let events = left.next().unwrap_or_default();
            watches.set(left);
            stream::iter(events).chain(stream::pending())
        });
        let mut seen = Vec::new();
        let receive = async {
            while seen.len() < 4 {
                seen.extend(changes.recv().await.map(|(_, change)| change));
            }
        };
        tokio::select! {
            () = follow => panic!("it ended"),
            () = receive => {}
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
