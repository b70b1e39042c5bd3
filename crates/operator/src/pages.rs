//! What the operator shows over HTTP: health to all; metrics and objects to users who may read them.

use endpoint::{Answer, Pages, Question};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::{mpsc, oneshot};

use crate::{errors::chain, metrics::Metrics};

/// Asks the loop for all objects that the compiler has, as documents of YAML.
pub(crate) type SnapshotRequest = oneshot::Sender<String>;

/// What is shown.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) client: Client,
    pub(crate) metrics: Metrics,
    pub(crate) snapshots: mpsc::Sender<SnapshotRequest>,
}

impl Pages for Shown {
    async fn answer(&self, question: Question) -> Answer {
        match question.path.as_str() {
            "/healthz" => return Answer::verdict(self.metrics.liveness()),
            "/readyz" => return Answer::verdict(self.metrics.readiness()),
            "/metrics" | "/debug/snapshot" => {}
            _ => return Answer::NotFound("/metrics, /healthz, /readyz or /debug/snapshot"),
        }
        if let Err(refusal) = self.authorize(&question).await {
            return refusal;
        }
        if question.path == "/metrics" {
            return Answer::Text(self.metrics.text());
        }
        let (request, snapshot) = oneshot::channel();
        let sent = self.snapshots.send(request).await;
        match (sent, snapshot.await) {
            (Ok(()), Ok(snapshot)) => Answer::Text(snapshot),
            (Err(_), _) | (_, Err(_)) => Answer::Unavailable("the operator shuts down".to_owned()),
        }
    }
}

/// The metrics, for an address that others than the node reach.
#[derive(Clone)]
pub(crate) struct MetricsAlone(pub(crate) Shown);

impl Pages for MetricsAlone {
    async fn answer(&self, question: Question) -> Answer {
        match question.path.as_str() {
            "/metrics" => self.0.answer(question).await,
            _ => Answer::NotFound("/metrics"),
        }
    }
}

impl Shown {
    /// Whether the API server knows the token, and lets its owner read the path.
    async fn authorize(&self, question: &Question) -> Result<(), Answer> {
        let token = question.bearer.clone().ok_or(Answer::Unauthorized)?;
        let failed =
            |error: kube::Error| Answer::Unavailable(format!("cannot check: {}", chain(&error)));
        let review = TokenReview {
            spec: TokenReviewSpec {
                token,
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await;
        let status = review.map_err(failed)?.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let user = user.ok_or(Answer::Unauthorized)?;
        let name = user.username.clone().unwrap_or_default();
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = access(user, &question.path);
        let review = reviews.create(&PostParams::default(), &review).await;
        let status = review.map_err(failed)?.status.unwrap_or_default();
        if status.allowed {
            return Ok(());
        }
        let path = &question.path;
        Err(Answer::Forbidden(format!(
            "{name} may not get {path}: bind a ClusterRole with nonResourceURLs [{path}] and verbs [get]"
        )))
    }
}

/// The question whether a user may read a path.
fn access(user: UserInfo, path: &str) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}
