//! Requests that change something: sent only while this operator leads.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::{Duration, Instant},
};

use compiler::{Kind, snapshot::Key};
use kube::{
    Client, Resource as _,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    client::Body,
    core::{Request, Status},
};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::sleep,
};

use crate::{
    FIELD_MANAGER, clock::Moment, election::Leadership, errors::chain, kinds::Version, platform,
    resource,
};

/// The longest Retry-After of the API server that is followed.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How many requests are under way at the same time, of all writers together.
pub(crate) const CONCURRENCY: usize = 16;

/// How long one request may take. A webhook may take 10 seconds by default; the request waits for it.
const PATIENCE: Duration = Duration::from_secs(12);

/// What is changed at an object.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// The object is applied as this document.
    Apply(Value),
    /// Its status is applied as this document.
    ApplyStatus(Value),
    /// It is deleted, if it is still this one.
    Delete(Preconditions),
}

impl Operation {
    /// Bases the operation on another version: one that this operator has stored since.
    pub(crate) fn replace_version(&mut self, version: &Version) {
        match self {
            Self::Apply(document) | Self::ApplyStatus(document) => {
                if let Some(old) = document.pointer_mut("/metadata/resourceVersion") {
                    *old = version.to_string().into();
                }
            }
            Self::Delete(preconditions) => {
                preconditions.resource_version = Some(version.to_string());
            }
        }
    }
}

/// Why an object is not as it was wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// Nothing was sent, because this operator does not lead.
    #[error("this operator does not lead")]
    NotLeading,
    /// Nothing was sent, because this operator ends.
    #[error("this operator shuts down")]
    Ending,
    /// Nothing was sent, because the API server wants no request for a while.
    #[error("the API server asks to wait")]
    Paused,
    /// The object is not the one that the write was computed from.
    #[error("the object has changed: {0}")]
    Conflict(String),
    /// There is no such object.
    #[error("there is no such object")]
    NotFound,
    /// The definition of the kind in the cluster lacks fields that this operator writes.
    #[error(
        "the definition of this kind in the cluster lacks {}: install the definitions of this version",
        .0.join(", ")
    )]
    UnknownFields(Vec<String>),
    /// The API server refuses it.
    #[error("{message} ({code})")]
    Refused {
        code: u16,
        message: String,
        retry_after: Option<Duration>,
    },
    /// The API server did not answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

impl Failure {
    /// Whether nothing more can be written in this pass.
    pub(crate) fn ends_pass(&self) -> bool {
        matches!(self, Self::NotLeading | Self::Ending | Self::Paused)
    }

    /// How long the API server asks to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::NotLeading
            | Self::Ending
            | Self::Paused
            | Self::Conflict(_)
            | Self::NotFound
            | Self::UnknownFields(_)
            | Self::NoAnswer(_) => None,
        }
    }
}

/// Sends requests. Clones share what the API server asked of this process.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    leadership: Leadership,
    ending: watch::Receiver<bool>,
    limits: Arc<Limits>,
    during_pause: DuringPause,
}

/// What all writers of the process share.
struct Limits {
    /// Until when the API server wants no request.
    pause: Mutex<Option<Instant>>,
    /// Each request under way has one of these.
    places: Semaphore,
}

/// What becomes of a request while the API server wants none.
#[derive(Clone, Copy)]
enum DuringPause {
    /// It is not sent: the loop that watches the cluster must go on.
    Fail,
    /// It waits.
    Wait,
}

impl Sender {
    pub(crate) fn new(
        client: Client,
        leadership: Leadership,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let limits = Limits {
            pause: Mutex::new(None),
            places: Semaphore::new(CONCURRENCY),
        };
        Self {
            client,
            leadership,
            ending,
            limits: Arc::new(limits),
            during_pause: DuringPause::Fail,
        }
    }

    /// The same for a task of its own, whose requests wait while the API server wants none.
    pub(crate) fn waiting(&self) -> Self {
        Self {
            during_pause: DuringPause::Wait,
            ..self.clone()
        }
    }

    /// Whether this operator may write.
    pub(crate) fn is_leading(&self) -> bool {
        self.leadership.remaining().is_some() && !*self.ending.borrow()
    }

    /// Changes an object; what the API server stored, except where it was deleted.
    pub(crate) async fn send(
        &self,
        kind: Kind,
        key: &Key,
        operation: &Operation,
    ) -> Result<Option<DynamicObject>, Failure> {
        let api = resource::at(&self.client, kind, key);
        let request = Request::new(api.resource_url());
        let is_deletion = matches!(operation, Operation::Delete(_));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let request = match operation {
            Operation::Apply(document) => {
                request.patch(&key.name, &params, &Patch::Apply(document))
            }
            Operation::ApplyStatus(document) => {
                request.patch_subresource("status", &key.name, &params, &Patch::Apply(document))
            }
            Operation::Delete(preconditions) => {
                let params = DeleteParams {
                    preconditions: Some(preconditions.clone()),
                    ..DeleteParams::default()
                };
                request.delete(&key.name, &params)
            }
        };
        let request = request.map_err(|error| Failure::NoAnswer(chain(&error)))?;
        self.exchange(request, is_deletion).await
    }

    /// Changes an object of another program; what the API server stored, except where it was deleted.
    pub(crate) async fn send_platform(
        &self,
        write: &platform::Write,
    ) -> Result<Option<DynamicObject>, Failure> {
        let (_, _, namespace, name) = &write.identity;
        let resource = platform::watch::resource(write.kind, write.served);
        let request = Request::new(DynamicObject::url_path(&resource, namespace.as_deref()));
        let is_deletion = matches!(write.operation, platform::Operation::Delete(_));
        let request = match &write.operation {
            platform::Operation::Create(manifest) | platform::Operation::Apply(manifest) => {
                let params = PatchParams::apply(FIELD_MANAGER).force();
                request.patch(name, &params, &Patch::Apply(manifest))
            }
            platform::Operation::Merge(change) => {
                request.patch(name, &merging(), &Patch::Merge(change))
            }
            platform::Operation::MergeStatus(change) => {
                request.patch_subresource("status", name, &merging(), &Patch::Merge(change))
            }
            platform::Operation::Delete(preconditions) => {
                let params = DeleteParams {
                    preconditions: Some(preconditions.clone()),
                    ..DeleteParams::default()
                };
                request.delete(name, &params)
            }
        };
        let request = request.map_err(|error| Failure::NoAnswer(chain(&error)))?;
        self.exchange(request, is_deletion).await
    }

    async fn exchange(
        &self,
        request: http::Request<Vec<u8>>,
        is_deletion: bool,
    ) -> Result<Option<DynamicObject>, Failure> {
        let place = self.place().await?;
        if *self.ending.borrow() {
            return Err(Failure::Ending);
        }
        let exchange = async {
            let answer = self.client.send(request.map(Body::from)).await?;
            let (parts, body) = answer.into_parts();
            let retry_after = parts.headers.get("retry-after");
            let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
            let body = body.collect_bytes().await?;
            Ok::<_, kube::Error>((parts.status.as_u16(), retry_after, body))
        };
        let answer = self.while_leading(exchange, PATIENCE).await?;
        drop(place);
        let (code, retry_after, body) = answer.map_err(|error| Failure::NoAnswer(chain(&error)))?;
        let retry_after = retry_after.map(Duration::from_secs);
        if !(200..300).contains(&code) {
            let failure = failure(code, retry_after, &body);
            self.note_pause(&failure);
            return Err(failure);
        }
        if is_deletion {
            return Ok(None);
        }
        let stored = serde_json::from_slice(&body);
        stored.map(Some).map_err(|error| {
            Failure::NoAnswer(format!("the answer cannot be read: {}", chain(&error)))
        })
    }

    /// A place among the requests that are under way. None is held by what waits for the end of a pause.
    async fn place(&self) -> Result<SemaphorePermit<'_>, Failure> {
        loop {
            if let DuringPause::Wait = self.during_pause {
                self.pause_over().await;
            }
            let place = self.limits.places.acquire().await;
            let place = place.map_err(|_closed| Failure::Ending)?;
            match self.during_pause {
                _ if self.pause().is_zero() => return Ok(place),
                DuringPause::Fail => return Err(Failure::Paused),
                DuringPause::Wait => {}
            }
        }
    }

    /// Does something for so long, and only while this operator leads. A request that is never answered must not end the pass: its Lease is
    /// renewed in the meantime.
    async fn while_leading<T>(
        &self,
        work: impl Future<Output = T>,
        patience: Duration,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        let end = Moment::now().after(patience);
        loop {
            let until = self.leadership.until().ok_or(Failure::NotLeading)?;
            if let Some(done) = before(until.min(end), work.as_mut()).await {
                return Ok(done);
            }
            if end.remaining().is_none() {
                return Err(Failure::NoAnswer(format!("within {patience:?}")));
            }
        }
    }

    /// How long the API server wants no request.
    pub(crate) fn pause(&self) -> Duration {
        let pause = &self.limits.pause;
        let until = *pause.lock().unwrap_or_else(PoisonError::into_inner);
        until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    /// Waits until the API server takes requests. Another answer may make that later in the meantime.
    pub(crate) async fn pause_over(&self) {
        loop {
            let pause = self.pause();
            if pause.is_zero() {
                return;
            }
            sleep(pause).await;
        }
    }

    fn note_pause(&self, failure: &Failure) {
        if let Failure::Refused {
            code: 429,
            retry_after,
            ..
        } = failure
        {
            let pause = retry_after.unwrap_or(Duration::from_secs(1));
            let until = Instant::now() + pause.min(LONGEST_PAUSE);
            let pause = &self.limits.pause;
            let mut pause = pause.lock().unwrap_or_else(PoisonError::into_inner);
            *pause = (*pause).max(Some(until));
        }
    }
}

/// Of a patch that changes some fields.
fn merging() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Does something as long as a moment has not come. The moment is looked at before every step: a process that was stopped goes on with
/// nothing when its time is over.
async fn before<T>(until: Moment, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut end = pin!(sleep(until.remaining()?));
    poll_fn(|context| {
        if until.remaining().is_none() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        end.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// What an answer means that is no success.
fn failure(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Failure {
    let status: Option<Status> = serde_json::from_slice(body).ok();
    let message = match &status {
        Some(status) => status.message.clone(),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    };
    let fields = unknown_fields(&message);
    if !fields.is_empty() {
        return Failure::UnknownFields(fields);
    }
    let causes = status.iter().filter_map(|status| status.details.as_ref());
    let mut causes = causes.flat_map(|details| &details.causes);
    // Version 0 is that of an object that does not exist yet.
    let is_there_already = causes.any(|cause| cause.field == "metadata.resourceVersion");
    match code {
        404 => Failure::NotFound,
        409 => Failure::Conflict(message),
        422 if is_there_already => Failure::Conflict("it exists already".to_owned()),
        code => Failure::Refused {
            code,
            message,
            retry_after,
        },
    }
}

/// The fields that a message of the API server calls unknown to the definition of their kind.
fn unknown_fields(message: &str) -> Vec<String> {
    const UNKNOWN: &str = ": field not declared in schema";
    let mut fields = Vec::new();
    for (end, _) in message.match_indices(UNKNOWN) {
        let before = message.get(..end).unwrap_or_default();
        let field = before.rsplit(char::is_whitespace).next();
        let field = field.unwrap_or_default().trim_start_matches('.');
        fields.push(field.to_owned());
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
        thread,
    };

    use super::*;

    #[test]
    fn a_definition_that_lacks_fields_is_named_with_all_of_them() {
        let body = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"failed to create typed patch object (/x; network.t-caas.telekom.com/v1alpha1, Kind=VRF): errors:\n  .spec.bla: field not declared in schema\n  .spec.blub: field not declared in schema","code":500}"#;
        let failure = failure(500, None, body);
        let fields = ["spec.bla", "spec.blub"].map(str::to_owned).to_vec();
        assert_eq!(failure, Failure::UnknownFields(fields));
        assert!(failure.to_string().contains("lacks spec.bla, spec.blub"));
    }

    #[test]
    fn an_object_that_exists_already_is_a_conflict_and_a_rule_that_is_broken_is_none() {
        let invalid = |field: &str| {
            format!(
                r#"{{"message":"m","reason":"Invalid","details":{{"causes":[{{"reason":"FieldValueInvalid","message":"m","field":"{field}"}}]}},"code":422}}"#
            )
        };
        let there = failure(422, None, invalid("metadata.resourceVersion").as_bytes());
        assert!(matches!(there, Failure::Conflict(_)), "{there:?}");
        let refused = failure(422, None, invalid("spec.vni").as_bytes());
        assert!(matches!(refused, Failure::Refused { code: 422, .. }));
    }

    /// Answers every request with this, after a while, and notes when it came and how many were under way at most.
    fn server(
        answer: &'static str,
        takes: Duration,
    ) -> (Client, Arc<Mutex<Vec<Instant>>>, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (came, most) = (
            Arc::<Mutex<Vec<Instant>>>::default(),
            Arc::<AtomicUsize>::default(),
        );
        let (times, peak) = (Arc::clone(&came), Arc::clone(&most));
        thread::spawn(move || {
            let now = Arc::<AtomicUsize>::default();
            for stream in listener.incoming() {
                let (now, peak, times) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&times));
                thread::spawn(move || {
                    let mut stream = stream.expect("a connection");
                    let mut head = [0; 4096];
                    if stream.read(&mut head).expect("a request") == 0 {
                        return;
                    }
                    times.lock().expect("not poisoned").push(Instant::now());
                    peak.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                    thread::sleep(takes);
                    now.fetch_sub(1, Relaxed);
                    stream.write_all(answer.as_bytes()).expect("an answer");
                });
            }
        });
        let uri = format!("http://{address}").parse().expect("a URI");
        let mut config = kube::Config::new(uri);
        config.default_retry = false;
        let client = Client::try_from(config).expect("a client");
        (client, came, most)
    }

    fn sender(client: Client) -> Sender {
        Sender::new(client, Leadership::always(), watch::channel(false).1)
    }

    async fn send(sender: &Sender) -> Result<Option<DynamicObject>, Failure> {
        let operation = Operation::Delete(Preconditions::default());
        sender.send(Kind::Node, &Key::named("n1"), &operation).await
    }

    #[tokio::test]
    async fn what_one_writer_is_asked_to_wait_for_holds_for_all_writers_of_the_process() {
        const REFUSAL: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let (client, came, _) = server(REFUSAL, Duration::ZERO);
        let of_passes = sender(client);
        let of_a_task = of_passes.waiting();
        let refused = send(&of_a_task).await;
        assert!(
            matches!(refused, Err(Failure::Refused { code: 429, .. })),
            "{refused:?}"
        );
        let start = Instant::now();
        assert_eq!(send(&of_passes).await.err(), Some(Failure::Paused));
        assert!(
            start.elapsed() < Duration::from_millis(500),
            "a pass does not wait"
        );
        assert!(send(&of_a_task).await.is_err());
        let came = came.lock().expect("not poisoned");
        assert_eq!(came.len(), 2, "the pass has sent nothing");
        assert!(came[1] - came[0] >= Duration::from_secs(1));
    }

    #[tokio::test]
    async fn no_more_requests_are_under_way_than_may_be_of_all_writers_together() {
        const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        let (client, came, most) = server(DONE, Duration::from_millis(50));
        let one = sender(client);
        let other = one.waiting();
        let sent = (0..3 * CONCURRENCY).map(|_| async {
            let (one, other) = futures::join!(send(&one), send(&other));
            one.and(other)
        });
        let answers = futures::future::join_all(sent).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(came.lock().expect("not poisoned").len(), 6 * CONCURRENCY);
        assert_eq!(most.load(Relaxed), CONCURRENCY);
    }

    #[tokio::test]
    async fn nothing_goes_on_after_its_moment_has_come() {
        let soon = Moment::now().after(Duration::from_millis(20));
        assert_eq!(before(soon, async { 7 }).await, Some(7));
        let work = async {
            // The whole process is stopped for longer than it may write.
            thread::sleep(Duration::from_millis(30));
            tokio::task::yield_now().await;
            panic!("it went on");
        };
        assert_eq!(before::<()>(soon, work).await, None);
        assert_eq!(before(soon, async { 7 }).await, None);
    }
}
