//! Watches a server through the control API of `wsbench serve`.

use super::Observer;
use crate::control::{MARK_HEADER, PhaseEnd, Problem, Status};
use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::http::StatusCode;
use ureq::{Agent, Body, http};
use wsbench_schema::{Edge, Phase, Sample};

/// An answer takes milliseconds; beyond this the host is gone.
const ANSWER_MOST: Duration = Duration::from_secs(15);
/// A supervisor that does not even take a request is ended otherwise.
const STOP_MOST: Duration = Duration::from_secs(3);
const CONNECT_MOST: Duration = Duration::from_secs(5);
/// A sample is about 80 bytes: a day at one a second is below this.
const BODY_MOST_BYTES: u64 = 16 << 20;

/// Asks `wsbench serve` on the server's host.
#[derive(Debug)]
pub struct RemoteObserver {
    api: Api,
    status: Status,
}

impl RemoteObserver {
    /// Asks who is served at this host and control port.
    ///
    /// # Errors
    /// If nobody answers, the token is wrong, or the answer is of another version.
    pub fn connect(host: &str, port: u16, token: Option<&str>) -> anyhow::Result<Self> {
        let api = Api::new(host, port, token, ANSWER_MOST);
        let status = api.get("status")?;
        Ok(Self { api, status })
    }

    /// Who is served, and where.
    pub fn status(&self) -> &Status {
        &self.status
    }
}

impl Observer for RemoteObserver {
    fn begin(&mut self, phase: Phase) -> anyhow::Result<Edge> {
        self.api.post(&format!("phases/{phase}/begin"))
    }

    fn end(&mut self, phase: Phase) -> anyhow::Result<(Edge, Vec<Sample>)> {
        let end: PhaseEnd = self.api.post(&format!("phases/{phase}/end"))?;
        Ok((end.edge, end.samples))
    }

    fn server_cpus(&self) -> &[u32] {
        &self.status.cpus
    }
}

/// Asks `wsbench serve` to stop a server. Returns before the server is gone.
///
/// # Errors
/// If nobody answers or the token is wrong.
pub fn request_stop(host: &str, port: u16, token: Option<&str>) -> anyhow::Result<()> {
    let stopping: bool = Api::new(host, port, token, STOP_MOST).post("stop")?;
    if !stopping {
        bail!("it will not stop");
    }
    Ok(())
}

#[derive(Debug)]
struct Api {
    agent: Agent,
    /// `HOST:PORT`, with brackets around an IPv6 address.
    address: String,
    authorization: Option<String>,
}

impl Api {
    fn new(host: &str, port: u16, token: Option<&str>, patience: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(patience))
            .timeout_connect(Some(CONNECT_MOST))
            .http_status_as_error(false)
            .max_redirects(0)
            // A token must not go to a proxy, and loopback is not behind one.
            .proxy(None)
            .build();
        let address = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        Self {
            agent: config.new_agent(),
            address,
            authorization: token.map(|token| format!("Bearer {token}")),
        }
    }

    fn get<T: DeserializeOwned>(&self, what: &str) -> anyhow::Result<T> {
        let mut request = self.agent.get(self.url(what)).header(MARK_HEADER, "1");
        if let Some(value) = &self.authorization {
            request = request.header("authorization", value);
        }
        self.read(request.call())
    }

    fn post<T: DeserializeOwned>(&self, what: &str) -> anyhow::Result<T> {
        let mut request = self.agent.post(self.url(what)).header(MARK_HEADER, "1");
        if let Some(value) = &self.authorization {
            request = request.header("authorization", value);
        }
        self.read(request.send_empty())
    }

    fn url(&self, what: &str) -> String {
        format!("http://{}/v1/{what}", self.address)
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<http::Response<Body>, ureq::Error>,
    ) -> anyhow::Result<T> {
        let at = &self.address;
        let mut answer = answer.with_context(|| {
            format!("cannot reach `wsbench serve` at {at} (does it run there, and may this host connect?)")
        })?;
        let status = answer.status();
        let text = answer
            .body_mut()
            .with_config()
            .limit(BODY_MOST_BYTES)
            .read_to_string()
            .with_context(|| format!("`wsbench serve` at {at} broke off its answer"))?;
        if status == StatusCode::OK {
            return serde_json::from_str(&text).with_context(|| {
                format!("`wsbench serve` at {at} is of another version (use the same revision on both hosts)")
            });
        }
        match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => bail!("`wsbench serve` at {at}: {}", problem.error),
            Err(_) => bail!("{at} is not `wsbench serve`: it answered {status}"),
        }
    }
}
