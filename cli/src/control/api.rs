//! The routes: what each request does.

use super::guard::{self, Guard};
use super::{PhaseEnd, Problem, Status};
use crate::observe::{LocalObserver, Observer as _, OutOfOrder};
use anyhow::anyhow;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wsbench_schema::{Edge, Phase};

/// No request has a body.
const BODY_MOST_BYTES: usize = 1024;

/// A server that is under control.
#[derive(Debug)]
pub struct Served {
    status: Status,
    token: Option<String>,
    /// Its name is sent here when it is to be stopped.
    stop: Sender<String>,
    live: Mutex<Live>,
}

#[derive(Debug)]
struct Live {
    observer: LocalObserver,
    /// How the server ended, once it did.
    exit: Option<String>,
}

impl Served {
    /// With a token, only who knows it is answered; without one, only this host.
    pub fn new(
        status: Status,
        observer: LocalObserver,
        token: Option<String>,
        stop: Sender<String>,
    ) -> Self {
        let exit = None;
        Self {
            status,
            token,
            stop,
            live: Mutex::new(Live { observer, exit }),
        }
    }

    /// From now on every request is told so.
    pub fn set_exited(&self, how: String) {
        self.live().exit = Some(how);
    }

    // A panic in a request leaves nothing half done that the next one minds.
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe<T>(
        &self,
        take: impl FnOnce(&mut LocalObserver) -> anyhow::Result<T>,
    ) -> Result<T, Refusal> {
        let mut live = self.live();
        let name = &self.status.name;
        if let Some(exit) = &live.exit {
            return Err(Refusal(StatusCode::GONE, anyhow!("{name} {exit}")));
        }
        take(&mut live.observer).map_err(|error| {
            // It may have died a moment ago: the figures are then lost all the same.
            let status = match error.downcast_ref::<OutOfOrder>() {
                Some(_) => StatusCode::CONFLICT,
                None if crate::process::Identity::of(self.status.pid).is_none() => StatusCode::GONE,
                None => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Refusal(status, error.context(name.clone()))
        })
    }
}

/// Why a request is not answered.
pub struct Refusal(pub StatusCode, pub anyhow::Error);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = format!("{:#}", self.1);
        (self.0, Json(Problem { error })).into_response()
    }
}

/// All routes, behind the guard.
pub fn router(served: Arc<Served>) -> Router {
    let guard = Guard::new(served.token.clone());
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/phases/{phase}/begin", post(begin))
        .route("/v1/phases/{phase}/end", post(end))
        .route("/v1/stop", post(stop))
        .fallback(nothing)
        .method_not_allowed_fallback(nothing)
        .layer(DefaultBodyLimit::max(BODY_MOST_BYTES))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(served)
}

async fn status(State(served): State<Arc<Served>>) -> Json<Status> {
    Json(served.status.clone())
}

async fn begin(
    State(served): State<Arc<Served>>,
    Path(phase): Path<String>,
) -> Result<Json<Edge>, Refusal> {
    let phase = phase_of(&phase)?;
    served.observe(|observer| observer.begin(phase)).map(Json)
}

async fn end(
    State(served): State<Arc<Served>>,
    Path(phase): Path<String>,
) -> Result<Json<PhaseEnd>, Refusal> {
    let phase = phase_of(&phase)?;
    let (edge, samples) = served.observe(|observer| observer.end(phase))?;
    Ok(Json(PhaseEnd { edge, samples }))
}

async fn stop(State(served): State<Arc<Served>>) -> Result<Json<bool>, Refusal> {
    let name = served.status.name.clone();
    match served.stop.send(name) {
        Ok(()) => Ok(Json(true)),
        Err(_) => Err(Refusal(StatusCode::GONE, anyhow!("it is stopping already"))),
    }
}

async fn nothing() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, anyhow!("there is no such request"))
}

fn phase_of(name: &str) -> Result<Phase, Refusal> {
    let all = Phase::ALL.iter();
    all.copied()
        .find(|phase| phase.name() == name)
        .ok_or_else(|| {
            let names = Phase::ALL.map(Phase::name).join(", ");
            Refusal(
                StatusCode::NOT_FOUND,
                anyhow!("`{name}` is no phase: {names}"),
            )
        })
}
