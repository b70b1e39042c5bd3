//! Which operator writes: the one that holds the Lease.
//!
//! The holder renews the Lease every `retry_period` and may write until `renew_deadline` after the last renewal *began*. Another operator takes
//! the Lease over when it has *seen* no renewal for the whole lease duration, which is longer. Both measure with a clock of their own that
//! goes on while a process is stopped, so that clocks need not agree and a process that was stopped knows that its time is over.
//!
//! Every change of the Lease names the version that it replaces: of two operators that take it, one gets a conflict.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{clock::Moment, errors::chain, kinds::Version};

/// The name of the operator's Lease.
const LEASE: &str = "selvedge-operator";

/// How operators agree on which of them writes.
#[derive(Clone, Debug)]
pub struct Election {
    /// Names this process; no other one has this name.
    pub identity: String,
    /// An operator takes over when the Lease was not renewed for this long.
    pub lease_duration: Duration,
    /// The holder stops writing when it could not renew the Lease for this long.
    pub renew_deadline: Duration,
    /// Time between two attempts to renew or to get the Lease.
    pub retry_period: Duration,
}

/// Why the times of an election do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidElection {
    /// The holder could still write when another operator takes over.
    #[error("the lease duration must be longer than the renew deadline")]
    Duration,
    /// One failed attempt would end the holder's time.
    #[error("the renew deadline must be at least twice the retry period")]
    Deadline,
    /// The API server counts in seconds.
    #[error("the lease duration must be whole seconds, and the retry period more than zero")]
    Granularity,
}

impl Election {
    /// Whether the times fit together.
    pub fn check(&self) -> Result<(), InvalidElection> {
        if self.lease_duration <= self.renew_deadline {
            return Err(InvalidElection::Duration);
        }
        if self.renew_deadline < self.retry_period * 2 {
            return Err(InvalidElection::Deadline);
        }
        if self.lease_duration.subsec_nanos() != 0 || self.retry_period.is_zero() {
            return Err(InvalidElection::Granularity);
        }
        Ok(())
    }
}

/// Until when this process may write.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    until: watch::Receiver<Option<Moment>>,
    was_leading: bool,
}

impl Leadership {
    /// That of a process that never leads.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            until: watch::channel(None).1,
            was_leading: false,
        }
    }

    /// That of a process that leads for as long as a test takes.
    #[cfg(test)]
    pub(crate) fn always() -> Self {
        let until = Moment::now().after(Duration::from_mins(10));
        Self {
            until: watch::channel(Some(until)).1,
            was_leading: true,
        }
    }

    /// Until when this process may write; nothing if it may not.
    pub(crate) fn until(&self) -> Option<Moment> {
        let until = *self.until.borrow();
        until.filter(|until| until.remaining().is_some())
    }

    /// How long this process may still write; nothing if it may not.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.until()?.remaining()
    }

    /// Waits until this process may write and could not before, or may not and could before. True if it may.
    pub(crate) async fn changed(&mut self) -> bool {
        loop {
            let remaining = self.remaining();
            if remaining.is_some() != self.was_leading {
                self.was_leading = remaining.is_some();
                return self.was_leading;
            }
            let ends = sleep(remaining.unwrap_or(Duration::MAX));
            tokio::select! {
                changed = self.until.changed() => if changed.is_err() {
                    // The candidate has ended, and with it this process's time.
                    sleep(remaining.unwrap_or(Duration::MAX)).await;
                },
                () = ends => {}
            }
        }
    }
}

/// What an operator does about the Lease now.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The Lease does not exist: create it.
    Create,
    /// It is ours: renew it.
    Renew,
    /// Its holder is gone: take it.
    TakeOver,
    /// Another operator holds it.
    Wait,
}

/// A renewal by another operator, and when it was seen first.
#[derive(Debug)]
struct Seen {
    holder: Option<String>,
    renewed: Option<MicroTime>,
    at: Moment,
}

/// What an operator knows about the Lease.
#[derive(Debug)]
struct Observer {
    election: Election,
    seen: Option<Seen>,
    /// The last version of the Lease.
    version: Option<Version>,
}

/// An operator that wants to write.
pub(crate) struct Candidate {
    observer: Observer,
    leases: Api<Lease>,
    until: watch::Sender<Option<Moment>>,
    /// Counts how often versions have gone back.
    restores: watch::Sender<u64>,
    /// The Lease as this process stored it last.
    held: Option<Lease>,
    /// What was logged last about a failure.
    failure: Option<String>,
}

impl Candidate {
    /// A candidate, until when it may write, and how often the API server returns older versions.
    pub(crate) fn new(
        client: Client,
        election: Election,
    ) -> (Self, Leadership, watch::Receiver<u64>) {
        let (until, leadership) = watch::channel(None);
        let (restores, restored) = watch::channel(0);
        let candidate = Self {
            leases: Api::namespaced(client, compiler::names::OWN_NAMESPACE),
            observer: Observer::new(election),
            until,
            restores,
            held: None,
            failure: None,
        };
        let leadership = Leadership {
            until: leadership,
            was_leading: false,
        };
        (candidate, leadership, restored)
    }

    /// Renews the Lease, or tries to get it, until `stop` is done; then gives it back.
    pub(crate) async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let patience = self.observer.election.renew_deadline;
            let turn = timeout(patience, self.turn()).await;
            let failure = match turn {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(chain(&error)),
                Err(_elapsed) => Some(format!("no answer in {patience:?}")),
            };
            if let Some(error) = failure.as_ref().filter(|_| self.failure != failure) {
                tracing::warn!(error, "cannot renew or get the Lease of the operator");
            }
            self.failure = failure;
            tokio::select! {
                () = sleep(self.observer.election.retry_period) => {}
                () = &mut stop => break,
            }
        }
        self.release().await;
    }

    /// Does what is to be done about the Lease now.
    async fn turn(&mut self) -> kube::Result<()> {
        // What may be written counts from before the request: no other operator can have seen the renewal earlier.
        let asked = Moment::now();
        let lease = match self.held.take() {
            Some(held) => Some(held),
            None => self.leases.get_opt(LEASE).await?,
        };
        self.observe(lease.as_ref());
        let params = PostParams::default();
        let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let stored = match self.observer.decide(spec, Moment::now()) {
            Turn::Wait => {
                self.lose();
                return Ok(());
            }
            Turn::Create => {
                let lease = self.observer.lease(None);
                self.leases.create(&params, &lease).await
            }
            Turn::Renew | Turn::TakeOver => {
                let lease = self.observer.lease(lease);
                self.leases.replace(LEASE, &params, &lease).await
            }
        };
        let stored = match stored {
            Ok(stored) => stored,
            // Another operator was faster; the next turn reads what it stored.
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
            Err(error) => return Err(error),
        };
        self.observe(Some(&stored));
        self.held = Some(stored);
        self.observer.seen = None;
        let until = asked.after(self.observer.election.renew_deadline);
        let before = self.until.send_replace(Some(until));
        if before.is_none() {
            let identity = &self.observer.election.identity;
            tracing::info!(identity, "this operator leads");
        }
        Ok(())
    }

    fn lose(&self) {
        let was_leading = self.until.send_replace(None).is_some();
        if was_leading {
            tracing::warn!("another operator leads: this one stops writing");
        }
    }

    fn observe(&mut self, lease: Option<&Lease>) {
        let version = lease.and_then(|lease| lease.metadata.resource_version.clone());
        if let Some(version) = version
            && self.observer.has_gone_back(Version::new(version))
        {
            tracing::warn!(
                "the API server returned an older resource version: listing all objects again"
            );
            self.restores.send_modify(|count| *count += 1);
        }
    }

    /// Gives the Lease back, so that another operator need not wait.
    async fn release(mut self) {
        self.until.send_replace(None);
        let Some(mut lease) = self.held.take() else {
            return;
        };
        if let Some(spec) = lease.spec.as_mut() {
            spec.holder_identity = Some(String::new());
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        let params = PostParams::default();
        let replace = self.leases.replace(LEASE, &params, &lease);
        match timeout(self.observer.election.retry_period, replace).await {
            Ok(Ok(_)) => tracing::info!("released the Lease"),
            Ok(Err(error)) => {
                tracing::warn!(error = chain(&error), "failed to release the Lease");
            }
            Err(_elapsed) => tracing::warn!("failed to release the Lease in time"),
        }
    }
}

impl Observer {
    fn new(election: Election) -> Self {
        Self {
            election,
            seen: None,
            version: None,
        }
    }

    fn decide(&mut self, spec: Option<&LeaseSpec>, now: Moment) -> Turn {
        let Some(spec) = spec else {
            return Turn::Create;
        };
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder == self.election.identity {
            return Turn::Renew;
        }
        if holder.is_empty() {
            return Turn::TakeOver;
        }
        let is_known =
            |seen: &Seen| seen.holder == spec.holder_identity && seen.renewed == spec.renew_time;
        let seen = match self.seen.take().filter(is_known) {
            Some(seen) => seen,
            None => Seen {
                holder: spec.holder_identity.clone(),
                renewed: spec.renew_time.clone(),
                at: now,
            },
        };
        // The holder counts with the duration that it stored.
        let duration = spec
            .lease_duration_seconds
            .and_then(|it| it.try_into().ok());
        let duration = duration.map_or(self.election.lease_duration, Duration::from_secs);
        let is_over = seen.at.after(duration) <= now;
        self.seen = Some(seen);
        if is_over { Turn::TakeOver } else { Turn::Wait }
    }

    /// The Lease that this process stores in the place of another, or of none.
    fn lease(&self, before: Option<Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let before = before.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(LEASE.to_owned()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let mut spec = before.spec.unwrap_or_default();
        let identity = Some(self.election.identity.clone());
        if spec.holder_identity != identity {
            spec.holder_identity = identity;
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count + 1));
        }
        let seconds = self.election.lease_duration.as_secs();
        spec.lease_duration_seconds = Some(seconds.try_into().unwrap_or(i32::MAX));
        spec.renew_time = Some(now);
        Lease {
            metadata: before.metadata,
            spec: Some(spec),
        }
    }

    /// Notes a version; true if the store has gone back: versions only ever grow, unless etcd was restored from a backup.
    fn has_gone_back(&mut self, version: Version) -> bool {
        let has_gone_back = (self.version.as_ref()).is_some_and(|before| version.is_before(before));
        self.version = Some(version);
        has_gone_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(duration: u64, deadline: u64, period: u64) -> Election {
        Election {
            identity: "me".to_owned(),
            lease_duration: Duration::from_millis(duration),
            renew_deadline: Duration::from_millis(deadline),
            retry_period: Duration::from_millis(period),
        }
    }

    fn observer() -> Observer {
        Observer::new(election(15_000, 10_000, 2000))
    }

    fn held_by(holder: &str, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_over_when_no_renewal_was_seen_for_its_whole_duration() {
        let mut me = observer();
        let at = |seconds| Moment(Duration::from_secs(seconds));
        assert_eq!(me.decide(None, at(100)), Turn::Create);
        assert_eq!(me.decide(Some(&held_by("me", 1)), at(100)), Turn::Renew);
        assert_eq!(me.decide(Some(&held_by("", 1)), at(100)), Turn::TakeOver);
        // The clock of the other operator does not matter: only that its renewals are new ones.
        let other = |renewed| held_by("other", renewed);
        assert_eq!(me.decide(Some(&other(1)), at(100)), Turn::Wait);
        assert_eq!(me.decide(Some(&other(1)), at(114)), Turn::Wait);
        assert_eq!(me.decide(Some(&other(2)), at(114)), Turn::Wait, "renewed");
        assert_eq!(me.decide(Some(&other(2)), at(128)), Turn::Wait);
        let third = held_by("third", 2);
        assert_eq!(me.decide(Some(&third), at(129)), Turn::Wait, "new holder");
        assert_eq!(me.decide(Some(&third), at(144)), Turn::TakeOver);
    }

    #[test]
    fn a_lease_that_is_taken_over_says_so_and_one_that_is_renewed_keeps_its_beginning() {
        let me = observer();
        let before = Lease {
            spec: Some(held_by("other", 1)),
            ..Lease::default()
        };
        let taken = me.lease(Some(before));
        let spec = taken.spec.clone().unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("me"));
        assert_eq!(spec.lease_transitions, Some(0));
        assert!(spec.acquire_time.is_some() && spec.lease_duration_seconds == Some(15));
        let renewed = me.lease(Some(taken)).spec.unwrap();
        assert_eq!(renewed.acquire_time, spec.acquire_time);
        assert_eq!(renewed.lease_transitions, Some(0));
    }

    #[test]
    fn a_version_that_goes_back_is_a_restored_store() {
        let mut me = observer();
        let mut see = |version: &str| me.has_gone_back(Version::new(version.to_owned()));
        assert!(!see("99") && !see("100") && !see("100"));
        assert!(see("98"));
        assert!(!see("99"), "reported once");
    }

    #[test]
    fn times_that_do_not_fit_together_are_refused() {
        let check = |duration, deadline, period| election(duration, deadline, period).check();
        assert_eq!(check(15_000, 10_000, 2000), Ok(()));
        assert_eq!(check(10_000, 10_000, 2000), Err(InvalidElection::Duration));
        assert_eq!(check(15_000, 3000, 2000), Err(InvalidElection::Deadline));
        assert_eq!(
            check(15_500, 10_000, 2000),
            Err(InvalidElection::Granularity)
        );
        assert_eq!(check(15_000, 10_000, 0), Err(InvalidElection::Granularity));
    }
}
