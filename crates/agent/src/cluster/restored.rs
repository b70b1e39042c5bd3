//! A store that has gone back: an etcd that was restored from a backup counts its versions from there.
//!
//! A watch that is resumed above the versions of such a store reports nothing until they have overtaken it, and no error either.

use futures::{Stream, StreamExt as _, stream};
use kube::{
    Api,
    core::Resource,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// The newest version that was seen of an object that this agent writes.
#[derive(Debug, Default)]
pub(super) struct Newest(Option<u64>);

impl Newest {
    /// Whether a version is older than one that was seen before.
    pub(super) fn has_gone_back(&mut self, version: Option<&str>) -> bool {
        // A version that is no number cannot be compared.
        let Some(version) = version.and_then(|version| version.parse().ok()) else {
            return false;
        };
        let newest = self.0.replace(version);
        newest.is_some_and(|newest| version < newest)
    }
}

/// Follows objects; with a new list when `restored` changes.
pub(super) fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    restored: watch::Receiver<u64>,
) -> impl Stream<Item = watcher::Result<Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    begin_anew(restored, move || {
        watcher::watcher(api.clone(), config.clone())
            .default_backoff()
            .boxed()
    })
}

/// The items of a stream, which is replaced by a new one when `restored` changes.
fn begin_anew<S: Stream + Unpin>(
    restored: watch::Receiver<u64>,
    begin: impl Fn() -> S,
) -> impl Stream<Item = S::Item> {
    let state = (begin(), begin, restored);
    stream::unfold(state, |(mut items, begin, mut restored)| async move {
        loop {
            tokio::select! {
                item = items.next() => return item.map(|item| (item, (items, begin, restored))),
                Ok(()) = restored.changed() => items = begin(),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn versions_go_back_when_the_store_is_restored_and_never_else() {
        let mut newest = Newest::default();
        assert!(!newest.has_gone_back(Some("9")));
        assert!(!newest.has_gone_back(Some("10")), "they are numbers");
        assert!(!newest.has_gone_back(Some("10")));
        assert!(!newest.has_gone_back(None));
        assert!(newest.has_gone_back(Some("4")));
        assert!(!newest.has_gone_back(Some("5")), "it goes on from there");
    }

    #[tokio::test]
    async fn a_watch_begins_anew_when_the_store_was_restored() {
        let (restores, restored) = watch::channel(0);
        let begun = Cell::new(0);
        let events = begin_anew(restored, || {
            begun.set(begun.get() + 1);
            stream::iter([begun.get()]).chain(stream::pending()).boxed()
        });
        let mut events = std::pin::pin!(events);
        assert_eq!(events.next().await, Some(1));
        restores.send_replace(1);
        assert_eq!(events.next().await, Some(2));
    }
}
