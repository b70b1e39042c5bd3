//! Watches: one stream for each kind into one store.
//!
//! A store that is not complete says so. Absence of knowledge never means "no objects".

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use compiler::{Kind, ObjectRef, snapshot::Key};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use serde::Serialize;
use serde_json::Value;
use tokio::{sync::Notify, task::JoinSet};

use crate::resource;

/// All objects that the API server has of the watched kinds.
#[derive(Default)]
pub(crate) struct Stores {
    kinds: Mutex<BTreeMap<Kind, Store>>,
    changed: Notify,
}

/// The objects of one kind.
#[derive(Default)]
pub(crate) struct Store {
    /// The last complete set, kept up to date; absent until the first list is complete.
    objects: Option<BTreeMap<Key, Arc<Value>>>,
    /// A list that is still coming in.
    incoming: Option<BTreeMap<Key, Arc<Value>>>,
    /// Why the watch does not work at the moment.
    failing: Option<String>,
    /// The API server has no such kind, and never had while we looked.
    is_absent: bool,
}

/// Why no snapshot can be taken now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Incomplete {
    /// A kind has not been listed yet.
    #[error("{kind} has not been listed yet")]
    NotListed {
        /// The kind.
        kind: Kind,
    },
    /// A kind cannot be watched at the moment.
    #[error("{kind} cannot be watched: {reason}")]
    Failing {
        /// The kind.
        kind: Kind,
        /// What the watch says.
        reason: String,
    },
}

impl Stores {
    /// Starts a watch for each of these kinds.
    pub(crate) fn watch(
        client: &Client,
        kinds: impl Iterator<Item = Kind>,
        tasks: &mut JoinSet<()>,
    ) -> Arc<Self> {
        let stores = Arc::new(Self::default());
        for kind in kinds {
            stores.with(kind, |_| ());
            let stores = Arc::clone(&stores);
            let config = watcher::Config::default();
            // A Node is large and reports often; its name and labels are all we read.
            if kind == Kind::Node {
                let api = Api::<PartialObjectMeta<Node>>::all(client.clone());
                let events = watcher::watcher(api, config).default_backoff();
                tasks.spawn(async move { stores.follow(kind, events).await });
            } else {
                let events =
                    watcher::watcher(resource::all(client, kind), config).default_backoff();
                tasks.spawn(async move { stores.follow(kind, events).await });
            }
        }
        stores
    }

    /// Waits until something has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Lets the next wait return at once: what it would have waited for has been seen, but not dealt with.
    pub(crate) fn mark_changed(&self) {
        self.changed.notify_one();
    }

    /// Every object, or why some kind is not known completely.
    pub(crate) fn complete(&self) -> Result<BTreeMap<ObjectRef, Arc<Value>>, Incomplete> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = BTreeMap::new();
        for (kind, store) in kinds.iter() {
            if let Some(reason) = store.failing.clone() {
                return Err(Incomplete::Failing {
                    kind: *kind,
                    reason,
                });
            }
            let Some(objects) = &store.objects else {
                return Err(Incomplete::NotListed { kind: *kind });
            };
            all.extend(objects.iter().map(|(key, object)| {
                let (kind, key) = (*kind, key.clone());
                (ObjectRef { kind, key }, Arc::clone(object))
            }));
        }
        Ok(all)
    }

    async fn follow<K: ResourceExt + Serialize>(
        &self,
        kind: Kind,
        events: impl Stream<Item = watcher::Result<Event<K>>>,
    ) {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.with(kind, |store| store.take(kind, event)),
                Err(error) if kind.is_optional() && is_unknown(&error) => {
                    self.with(kind, |store| store.lack(kind, &error));
                }
                Err(error) => {
                    tracing::warn!(%kind, %error, "watch failed");
                    self.with(kind, |store| store.failing = Some(error.to_string()));
                }
            }
            self.changed.notify_one();
        }
    }

    fn with(&self, kind: Kind, change: impl FnOnce(&mut Store)) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        change(kinds.entry(kind).or_default());
    }
}

impl Store {
    /// Notes that the API server does not know the kind: that is no objects, unless there have been some.
    fn lack(&mut self, kind: Kind, error: &watcher::Error) {
        if self.objects.is_some() && !self.is_absent {
            tracing::warn!(%kind, %error, "the kind has vanished");
            self.failing = Some(error.to_string());
            return;
        }
        if !self.is_absent {
            tracing::info!(%kind, "the cluster does without this kind");
        }
        self.is_absent = true;
        self.failing = None;
        self.objects = Some(BTreeMap::new());
    }

    fn take<K: ResourceExt + Serialize>(&mut self, kind: Kind, event: Event<K>) {
        match event {
            Event::Init => self.incoming = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                self.incoming
                    .get_or_insert_default()
                    .insert(key(&object), document(kind, &object));
            }
            Event::InitDone => {
                self.objects = self.incoming.take();
                self.is_absent = false;
                self.failing = None;
            }
            Event::Apply(object) => {
                self.objects
                    .get_or_insert_default()
                    .insert(key(&object), document(kind, &object));
                self.failing = None;
            }
            Event::Delete(object) => {
                self.objects.get_or_insert_default().remove(&key(&object));
                self.failing = None;
            }
        }
    }
}

/// Whether the API server does not know the kind.
fn is_unknown(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(source)
    | watcher::Error::WatchStartFailed(source)
    | watcher::Error::WatchFailed(source)) = error
    else {
        return false;
    };
    matches!(source, kube::Error::Api(status) if status.code == 404)
}

/// The object as the JSON it came as. What comes in a list does not say its kind; the list does.
fn document<K: Serialize>(kind: Kind, object: &K) -> Arc<Value> {
    let mut document = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = document.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.to_string().into());
    }
    Arc::new(document)
}

fn key(object: &impl ResourceExt) -> Key {
    Key {
        namespace: object.namespace(),
        name: object.name_any(),
    }
}

#[cfg(test)]
mod tests {
    use kube::{api::DynamicObject, core::Status};
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": name}})).expect("an object")
    }

    fn take(store: &mut Store, event: Event<DynamicObject>) {
        store.take(Kind::Vrf, event);
    }

    fn names(store: &Store) -> Option<Vec<&str>> {
        store
            .objects
            .as_ref()
            .map(|objects| objects.keys().map(|key| key.name.as_str()).collect())
    }

    #[test]
    fn a_list_that_is_still_coming_in_is_not_seen() {
        let mut store = Store::default();
        take(&mut store, Event::Init);
        take(&mut store, Event::InitApply(object("a")));
        assert_eq!(names(&store), None, "half a list is no list");
        take(&mut store, Event::InitDone);
        assert_eq!(names(&store), Some(vec!["a"]));
    }

    #[test]
    fn a_new_list_replaces_the_old_one_only_when_it_is_complete() {
        let mut store = Store::default();
        take(&mut store, Event::Init);
        take(&mut store, Event::InitApply(object("a")));
        take(&mut store, Event::InitDone);
        take(&mut store, Event::Init);
        assert_eq!(
            names(&store),
            Some(vec!["a"]),
            "the old list holds until the new one is complete"
        );
        take(&mut store, Event::InitApply(object("b")));
        take(&mut store, Event::InitDone);
        assert_eq!(names(&store), Some(vec!["b"]));
    }

    #[test]
    fn a_kind_that_the_cluster_does_without_is_no_objects_and_one_that_vanishes_is_not() {
        let missing = || {
            let status = Status::failure("not found", "NotFound").with_code(404);
            watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
        };
        assert!(is_unknown(&missing()));
        let mut store = Store::default();
        store.lack(Kind::IpAddress, &missing());
        assert_eq!((names(&store), &store.failing), (Some(vec![]), &None));
        take(&mut store, Event::Init);
        take(&mut store, Event::InitApply(object("a")));
        take(&mut store, Event::InitDone);
        store.lack(Kind::IpAddress, &missing());
        assert_eq!(names(&store), Some(vec!["a"]));
        assert!(
            store.failing.is_some(),
            "absence of knowledge is not absence"
        );
    }

    #[test]
    fn nothing_is_handed_out_before_every_kind_is_listed_and_while_one_fails() {
        let stores = Stores::default();
        for kind in [Kind::Node, Kind::Vrf] {
            stores.with(kind, |_| ());
        }
        let listed = |kind| {
            stores.with(kind, |store| {
                take(store, Event::Init);
                take(store, Event::InitDone);
            });
        };
        listed(Kind::Node);
        assert_eq!(
            stores.complete(),
            Err(Incomplete::NotListed { kind: Kind::Vrf })
        );
        listed(Kind::Vrf);
        assert_eq!(stores.complete(), Ok(BTreeMap::new()));
        stores.with(Kind::Node, |store| store.failing = Some("gone".to_owned()));
        assert!(matches!(
            stores.complete(),
            Err(Incomplete::Failing {
                kind: Kind::Node,
                ..
            })
        ));
        listed(Kind::Node);
        assert_eq!(stores.complete(), Ok(BTreeMap::new()));
    }
}
