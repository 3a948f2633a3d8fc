//! Who is answered. Somebody without the token is not, and neither is a web
//! page that a browser on this host has open.

use super::MARK_HEADER;
use super::api::Refusal;
use anyhow::anyhow;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::net::IpAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// What a request must show.
#[derive(Clone, Debug)]
pub struct Guard {
    token: Option<Arc<str>>,
}

impl Guard {
    /// With a token, it; without one, that it was meant for this host.
    pub fn new(token: Option<String>) -> Self {
        Self {
            token: token.map(Arc::from),
        }
    }

    fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let forbidden = |why: &str| Err(Refusal(StatusCode::FORBIDDEN, anyhow!(why.to_owned())));
        // Browsers set it on every request that a page makes to another origin.
        if headers.contains_key(header::ORIGIN) {
            return forbidden("requests of web pages are refused");
        }
        if headers.get(MARK_HEADER).is_none_or(|value| value != "1") {
            return forbidden("the header `x-wsbench: 1` is missing");
        }
        match &self.token {
            Some(token) if !shows(headers, token) => Err(Refusal(
                StatusCode::UNAUTHORIZED,
                anyhow!("the token is missing or wrong (it stands where the server was started)"),
            )),
            // A page whose name was made to resolve to this host still sends that name.
            None if !is_for_loopback(headers) => {
                forbidden("without a token only requests to a loopback address are answered")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Runs before every route.
pub async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.admit(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The time it takes does not tell how much of a guess is right.
fn shows(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    shown.is_some_and(|shown| bool::from(shown.ct_eq(token.as_bytes())))
}

fn is_for_loopback(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok());
    let Some(host) = host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|&(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    fn status(token: Option<&str>, pairs: &[(&'static str, &'static str)]) -> u16 {
        match Guard::new(token.map(Into::into)).admit(&headers(pairs)) {
            Ok(()) => 200,
            Err(refusal) => refusal.0.as_u16(),
        }
    }

    #[test]
    fn on_loopback_the_mark_is_enough() {
        let marked = |host| status(None, &[("x-wsbench", "1"), ("host", host)]);
        for host in ["127.0.0.1:9", "127.0.0.9", "localhost:1", "[::1]:9"] {
            assert_eq!(marked(host), 200, "{host}");
        }
        for host in [
            "evil.example:9",
            "10.0.0.1:9",
            "localhost.evil.example",
            "[::2]:9",
            "",
        ] {
            assert_eq!(marked(host), 403, "{host}");
        }
        assert_eq!(status(None, &[("x-wsbench", "1")]), 403);
        assert_eq!(status(None, &[("host", "127.0.0.1:9")]), 403);
    }

    #[test]
    fn a_web_page_is_refused_even_with_everything_right() {
        let page = [
            ("x-wsbench", "1"),
            ("host", "127.0.0.1:9"),
            ("authorization", "Bearer secret"),
            ("origin", "http://127.0.0.1:9"),
        ];
        assert_eq!(status(None, &page), 403);
        assert_eq!(status(Some("secret"), &page), 403);
    }

    #[test]
    fn with_a_token_only_the_right_one_is_let_in() {
        let shown = |value| {
            let pairs = [("x-wsbench", "1"), ("host", "h"), ("authorization", value)];
            status(Some("secret"), &pairs)
        };
        assert_eq!(shown("Bearer secret"), 200);
        for wrong in [
            "Bearer secret1",
            "Bearer secre",
            "Bearer ",
            "secret",
            "Basic secret",
        ] {
            assert_eq!(shown(wrong), 401, "{wrong}");
        }
        let none = [("x-wsbench", "1"), ("host", "127.0.0.1")];
        assert_eq!(status(Some("secret"), &none), 401);
    }
}
