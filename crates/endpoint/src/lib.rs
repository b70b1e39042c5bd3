//! Metrics and health of a daemon over HTTP: GET alone, one request for each connection.
//!
//! Not based on an HTTP library, because it needs few of its features: it answers with text, and never blocks the daemon. A request
//! that is too long or too slow is dropped.

mod exposition;

use std::{
    future::Future,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time,
};

pub use exposition::Exposition;

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the answer may take, with the client's reading it.
const LONGEST_ANSWER: Duration = Duration::from_mins(1);
/// How many bytes a request may have.
const MOST_BYTES: usize = 8192;
/// How many clients are served at a time.
const MOST_CLIENTS: usize = 16;
/// Before another attempt to listen.
const PAUSE: Duration = Duration::from_secs(10);

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The path, without a query.
    pub path: String,
    /// The token that the client shows.
    pub bearer: Option<String>,
}

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The text that it asked for.
    Text(String),
    /// It must show a token.
    Unauthorized,
    /// It may not have this.
    Forbidden(String),
    /// There is no such path; these are.
    NotFound(&'static str),
    /// What it asked about is not as it should be.
    Unavailable(String),
}

impl Answer {
    /// The answer to a question about health.
    pub fn verdict(outcome: Result<(), String>) -> Self {
        match outcome {
            Ok(()) => Self::Text("ok\n".to_owned()),
            Err(why) => Self::Unavailable(why),
        }
    }

    fn parts(self) -> (&'static str, String) {
        match self {
            Self::Text(text) => ("200 OK", text),
            Self::Unauthorized => (
                "401 Unauthorized",
                "a bearer token of the cluster is needed\n".to_owned(),
            ),
            Self::Forbidden(why) => ("403 Forbidden", format!("{why}\n")),
            Self::NotFound(paths) => ("404 Not Found", format!("try {paths}\n")),
            Self::Unavailable(why) => ("503 Service Unavailable", format!("{why}\n")),
        }
    }
}

/// What a daemon shows.
pub trait Pages: Clone + Send + Sync + 'static {
    /// Answers a question.
    fn answer(&self, question: Question) -> impl Future<Output = Answer> + Send;
}

/// Serves for as long as the daemon lives. An address that cannot be had is no reason to end.
pub async fn serve(address: SocketAddr, pages: impl Pages) {
    let listener = loop {
        match bind(address).await {
            Ok(listener) => break listener,
            Err(error) => {
                tracing::warn!(%error, %address, "metrics and health are not served");
                time::sleep(PAUSE).await;
            }
        }
    };
    tracing::info!(%address, "serving metrics and health");
    accept(listener, pages).await;
}

async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let first = TcpListener::bind(address).await;
    match (first, without_ipv6(address)) {
        (Err(_), Some(address)) => TcpListener::bind(address).await,
        (first, _) => first,
    }
}

/// The address that stands for all addresses of a machine without IPv6, where the given one stands for all of one with it.
fn without_ipv6(address: SocketAddr) -> Option<SocketAddr> {
    let is_all = address.ip() == Ipv6Addr::UNSPECIFIED;
    is_all.then(|| (Ipv4Addr::UNSPECIFIED, address.port()).into())
}

async fn accept(listener: TcpListener, pages: impl Pages) {
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = pages.clone();
                tokio::spawn(async move {
                    // A client that disconnects or takes too long gets no answer.
                    let _outcome = time::timeout(LONGEST_ANSWER, answer(stream, &pages)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a client of the metrics");
                time::sleep(PAUSE).await;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, pages: &impl Pages) -> std::io::Result<()> {
    let Ok(head) = time::timeout(PATIENCE, head(&mut stream)).await else {
        return Ok(());
    };
    let Some(head) = head? else {
        return Ok(());
    };
    let (status, body) = match question(&head) {
        Some(question) => pages.answer(question).await.parts(),
        None => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The head of a request; `None` if it is missing or too long.
async fn head(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > MOST_BYTES || stream.read_buf(&mut request).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8_lossy(&request).into_owned()))
}

/// The method and path in the head of a request; `None` if they cannot be parsed.
fn question(head: &str) -> Option<Question> {
    let mut lines = head.lines();
    let target = lines.next()?.strip_prefix("GET ")?.split(' ').next()?;
    let path = target.split('?').next()?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let mut tokens = headers.filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let token = tokens.next().and_then(|(_, value)| {
        let (scheme, token) = value.trim().split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        is_bearer.then(|| token.trim().to_owned())
    });
    Some(Question {
        path,
        bearer: token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Shown;

    impl Pages for Shown {
        async fn answer(&self, question: Question) -> Answer {
            match (question.path.as_str(), question.bearer.as_deref()) {
                ("/metrics", Some("secret")) => Answer::Text("a 1\n".to_owned()),
                ("/metrics", Some(_)) => Answer::Forbidden("not you".to_owned()),
                ("/metrics", None) => Answer::Unauthorized,
                ("/healthz", _) => Answer::verdict(Ok(())),
                ("/readyz", _) => Answer::verdict(Err("not yet".to_owned())),
                _ => Answer::NotFound("/metrics"),
            }
        }
    }

    async fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[test]
    fn only_all_addresses_have_another_meaning_without_ipv6() {
        let of = |address: &str| without_ipv6(address.parse().unwrap());
        assert_eq!(of("[::]:9719"), Some("0.0.0.0:9719".parse().unwrap()));
        assert_eq!(of("[::1]:9719"), None);
        assert_eq!(of("127.0.0.1:9719"), None);
    }

    #[tokio::test]
    async fn questions_are_answered_and_all_else_is_refused() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(accept(listener, Shown));
        for (request, expected, body) in [
            (
                "GET /metrics HTTP/1.1\r\nauthorization: bearer secret",
                "200",
                "a 1",
            ),
            (
                "GET /metrics HTTP/1.1\r\nAuthorization: Bearer other",
                "403",
                "not you",
            ),
            (
                "GET /metrics HTTP/1.1\r\nAuthorization: Basic secret",
                "401",
                "token",
            ),
            ("GET /metrics HTTP/1.1", "401", "token"),
            ("GET /healthz HTTP/1.0", "200", "ok"),
            ("GET /readyz HTTP/1.1", "503", "not yet"),
            ("GET /vtysh?c=reload HTTP/1.1", "404", "try"),
            ("POST /metrics HTTP/1.1", "405", "only GET"),
        ] {
            let answer = get(address, &format!("{request}\r\nHost: x\r\n\r\n")).await;
            let expected = format!("HTTP/1.1 {expected}");
            assert!(answer.starts_with(&expected), "{request}: {answer}");
            assert!(answer.contains(body), "{request}: {answer}");
        }
        // One that sends more than a request is dropped, and the next one is served.
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(MOST_BYTES + 1));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(long.as_bytes()).await.unwrap();
        let next = get(address, "GET /healthz HTTP/1.0\r\n\r\n").await;
        assert!(next.contains("ok"));
    }
}
