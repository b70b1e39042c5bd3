//! Metrics and health over HTTP: three paths, GET alone, one request for each connection.
//!
//! Written by hand, because it needs nothing of what an HTTP server is: it listens on the loopback, answers short texts, and
//! is never in the way of the node. A request that is too long or too slow is dropped.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time,
};

use crate::{metrics::Metrics, watchdog::Watchdog};

/// How long a client may take for its request and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many bytes a request may have.
const MOST_BYTES: usize = 8192;
/// How many clients are served at a time.
const MOST_CLIENTS: usize = 16;
/// Before another attempt to listen.
const PAUSE: Duration = Duration::from_secs(10);

/// Serves for as long as the agent lives. An address that cannot be had is no reason to end.
pub(crate) async fn serve(address: SocketAddr, metrics: Metrics, watchdog: Watchdog) {
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(error) => {
                tracing::warn!(%error, %address, "metrics and health are not served");
                time::sleep(PAUSE).await;
            }
        }
    };
    tracing::info!(%address, "serving /metrics, /healthz and /readyz");
    accept(listener, metrics, watchdog).await;
}

async fn accept(listener: TcpListener, metrics: Metrics, watchdog: Watchdog) {
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (metrics, watchdog) = (metrics.clone(), watchdog.clone());
                tokio::spawn(async move {
                    // A client that goes away or takes too long gets no answer.
                    let _outcome = time::timeout(PATIENCE, answer(stream, metrics, watchdog)).await;
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

async fn answer(
    mut stream: TcpStream,
    metrics: Metrics,
    watchdog: Watchdog,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > MOST_BYTES || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let line = request.split(|byte| *byte == b'\r').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
    let (status, body) = respond(&line, &metrics, &watchdog);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Status and body for the first line of a request.
fn respond(line: &str, metrics: &Metrics, watchdog: &Watchdog) -> (&'static str, String) {
    let mut words = line.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    if method != Some("GET") {
        return ("405 Method Not Allowed", "only GET\n".to_owned());
    }
    let verdict = |outcome: Result<(), String>| match outcome {
        Ok(()) => ("200 OK", "ok\n".to_owned()),
        Err(why) => ("503 Service Unavailable", format!("{why}\n")),
    };
    match target.split('?').next() {
        Some("/metrics") => ("200 OK", metrics.text()),
        Some("/healthz") => verdict(watchdog.liveness()),
        Some("/readyz") => verdict(metrics.readiness()),
        _ => (
            "404 Not Found",
            "try /metrics, /healthz or /readyz\n".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn metrics_and_health_are_answered_and_all_else_is_refused() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = Metrics::default();
        let journal = crate::journal::Journal::default();
        metrics.show(crate::machine::Machine::new(journal).status(), None);
        let watchdog = Watchdog::start().unwrap();
        tokio::spawn(accept(listener, metrics, watchdog));
        for (request, expected, body) in [
            (
                "GET /metrics HTTP/1.1",
                "HTTP/1.1 200",
                "selvedge_agent_state",
            ),
            ("GET /healthz HTTP/1.0", "HTTP/1.1 200", "ok"),
            ("GET /readyz HTTP/1.1", "HTTP/1.1 503", "unconfigured"),
            ("GET /vtysh?c=reload HTTP/1.1", "HTTP/1.1 404", "try"),
            ("POST /metrics HTTP/1.1", "HTTP/1.1 405", "only GET"),
        ] {
            let answer = get(address, &format!("{request}\r\nHost: x\r\n\r\n")).await;
            assert!(answer.starts_with(expected), "{request}: {answer}");
            assert!(answer.contains(body), "{request}: {answer}");
        }
        // One that sends more than a request is dropped, and the next one is served.
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(MOST_BYTES + 1));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(long.as_bytes()).await.unwrap();
        assert!(
            get(address, "GET /healthz HTTP/1.0\r\n\r\n")
                .await
                .contains("ok")
        );
    }
}
