//! A proxy between an operator and the API server: it notes requests, fails some, holds some, and cuts connections.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use http::Request;
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::server::{Server, eventually};

/// A request that has passed, when it came, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) at: Instant,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) code: u16,
}

#[derive(Debug, Default)]
struct Rules {
    /// Requests for such a path are answered with this code.
    failing: Option<(String, u16)>,
    /// So many writes to such a path are answered with 429, and are to be tried again after this time.
    throttling: Option<(String, usize, Duration)>,
    /// Writes to such a path wait.
    holding: Option<String>,
    /// Of so many writes, one is answered with 503 and one with 429; and how many have come so far.
    faltering: Option<(usize, usize)>,
}

struct Shared {
    rules: Mutex<Rules>,
    passed: Mutex<Vec<Passed>>,
    /// How many writes wait.
    held: watch::Sender<usize>,
    /// Changes when all connections are cut.
    cuts: watch::Sender<u64>,
    /// Changes when what waits may go on.
    releases: watch::Sender<u64>,
}

/// A running proxy; it ends when it is dropped.
pub(super) struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: tempfile::NamedTempFile,
    _end: tokio::sync::oneshot::Sender<()>,
}

impl Proxy {
    pub(super) fn start(server: &Server) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut kubeconfig = tempfile::NamedTempFile::new()?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": url}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "user"}}],
            "users": [{"name": "user", "user": {}}],
        });
        kubeconfig.write_all(config.to_string().as_bytes())?;
        let shared = Arc::new(Shared {
            rules: Mutex::default(),
            passed: Mutex::default(),
            held: watch::channel(0).0,
            cuts: watch::channel(0).0,
            releases: watch::channel(0).0,
        });
        let (end, ended) = tokio::sync::oneshot::channel();
        // Who comes through it may do what the operator may do.
        let (kept, config) = (Arc::clone(&shared), server.operator_config()?);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let client = Client::try_from(config).expect("a client");
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = accept(listener, client, kept) => {}
                    _ = ended => {}
                }
            });
        });
        Ok(Self {
            shared,
            kubeconfig,
            _end: end,
        })
    }

    /// How a client reaches the API server through it.
    pub(super) fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    fn rules(&self, change: impl FnOnce(&mut Rules)) {
        let rules = &self.shared.rules;
        change(&mut rules.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// From now on, requests for such a path are answered with this code; `cut` makes watches notice.
    pub(super) fn fail(&self, path: &str, code: u16) {
        self.rules(|rules| rules.failing = Some((path.to_owned(), code)));
    }

    /// So many writes to such a path are answered with 429, and are to be tried again after this time.
    pub(super) fn throttle(&self, path: &str, count: usize, retry_after: Duration) {
        self.rules(|rules| rules.throttling = Some((path.to_owned(), count, retry_after)));
    }

    /// From now on, of so many writes one is answered with 503 and one with 429.
    pub(super) fn falter(&self, writes: usize) {
        self.rules(|rules| rules.faltering = Some((writes, 0)));
    }

    /// From now on, everything is passed on.
    pub(super) fn heal(&self) {
        self.rules(|rules| *rules = Rules::default());
    }

    /// From now on, writes to such a path wait until they are released.
    pub(super) fn hold(&self, path: &str) {
        self.rules(|rules| rules.holding = Some(path.to_owned()));
    }

    /// Waits until a write is held.
    pub(super) fn until_held(&self) -> anyhow::Result<()> {
        let held = self.shared.held.subscribe();
        eventually("a write is held", || Ok((*held.borrow() > 0).then_some(())))
    }

    /// Passes on the writes that were held.
    pub(super) fn release(&self) {
        self.rules(|rules| rules.holding = None);
        self.shared.releases.send_modify(|count| *count += 1);
    }

    /// Cuts every connection.
    pub(super) fn cut(&self) {
        self.shared.cuts.send_modify(|count| *count += 1);
    }

    /// The writes that have been answered, without those of Leases.
    pub(super) fn writes(&self) -> Vec<Passed> {
        let passed = &self.shared.passed;
        let passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = passed.iter().filter(|one| one.method != "GET");
        let writes = writes.filter(|one| !one.path.contains("/leases"));
        writes.cloned().collect()
    }
}

async fn accept(listener: TcpListener, client: Client, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let mut cuts = shared.cuts.subscribe();
            tokio::select! {
                // A client that goes away is no failure of a test.
                _outcome = serve(stream, client, &shared) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

impl Rules {
    /// The code and the header that a request is answered with, if it is not passed on; whether it waits.
    fn about(&mut self, path: &str, is_write: bool) -> (Option<(u16, String)>, bool) {
        let failing = self.failing.as_ref();
        let failing = failing.filter(|(part, _)| path.contains(part.as_str()));
        let failing = failing.map(|(_, code)| (*code, String::new()));
        let failing = match failing {
            None if is_write => self.throttled(path).or_else(|| self.faltered(path)),
            failing => failing,
        };
        let holding = self.holding.as_ref();
        let is_held = holding.is_some_and(|part| path.contains(part.as_str()));
        (failing, is_held && is_write)
    }

    /// The code and the header that a write to a path is answered with, if it is one too many.
    fn throttled(&mut self, path: &str) -> Option<(u16, String)> {
        let (part, count, retry_after) = self.throttling.as_mut()?;
        if *count == 0 || !path.contains(part.as_str()) {
            return None;
        }
        *count -= 1;
        Some((429, format!("Retry-After: {}\r\n", retry_after.as_secs())))
    }
}

impl Rules {
    /// How a write is answered by an API server that falters. Leases pass: who leads is not what is tried.
    fn faltered(&mut self, path: &str) -> Option<(u16, String)> {
        let (writes, seen) = self.faltering.as_mut()?;
        if path.contains("/leases") {
            return None;
        }
        *seen += 1;
        match *seen % *writes {
            0 => Some((503, String::new())),
            1 => Some((429, "Retry-After: 1\r\n".to_owned())),
            _ => None,
        }
    }
}

/// Serves one request; the connection ends with it.
async fn serve(mut stream: TcpStream, client: Client, shared: &Shared) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
        anyhow::ensure!(stream.read_buf(&mut bytes).await? > 0, "the client is gone");
    };
    let text = String::from_utf8(bytes[..head].to_vec())?;
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let method = words.next().context("a method")?.to_owned();
    let path = words.next().context("a path")?.to_owned();
    let mut request = Request::builder().method(method.as_str()).uri(&path);
    let mut length = 0;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse()?,
            "content-type" | "accept" => request = request.header(name, value),
            _ => {}
        }
    }
    while bytes.len() < head + length {
        anyhow::ensure!(stream.read_buf(&mut bytes).await? > 0, "the client is gone");
    }
    let at = Instant::now();
    let is_write = method != "GET";
    let (failing, is_held) = {
        let mut rules = shared.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.about(&path, is_write)
    };
    let note = |code| {
        let mut passed = shared.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let (method, path) = (method.clone(), path.clone());
        passed.push(Passed {
            at,
            method,
            path,
            code,
        });
    };
    if let Some((code, header)) = failing {
        note(code);
        let answer = format!(
            "HTTP/1.1 {code} Failed\r\n{header}Content-Length: 7\r\nConnection: close\r\n\r\nfailing"
        );
        stream.write_all(answer.as_bytes()).await?;
        return Ok(stream.shutdown().await?);
    }
    if is_held {
        let mut releases = shared.releases.subscribe();
        shared.held.send_modify(|count| *count += 1);
        releases.changed().await?;
    }
    let request = request.body(Body::from(bytes.split_off(head)))?;
    let answer = client.send(request).await?;
    note(answer.status().as_u16());
    let (parts, mut body) = answer.into_parts();
    let mut head = format!(
        "HTTP/1.1 {} Passed\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n",
        parts.status.as_u16()
    );
    for name in ["content-type", "retry-after"] {
        if let Some(value) = parts.headers.get(name) {
            write!(head, "{name}: {}\r\n", value.to_str()?)?;
        }
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data().map(|data| data.to_vec()) {
            let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
            chunk.extend(data);
            chunk.extend(b"\r\n");
            stream.write_all(&chunk).await?;
        }
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(stream.shutdown().await?)
}
