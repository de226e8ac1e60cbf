//! Is it alive, can it answer, and what has it counted?

use std::sync::{Arc, atomic::Ordering};

use axum::{extract::State, http::header, response::IntoResponse};
use serde::Serialize;
use tokio::{task::spawn_blocking, time::timeout};
use utoipa::ToSchema;

use crate::{
    app::{App, SOON, ending},
    error::Problem,
    json::Json,
    openapi::Problems,
};

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

/// Alive?
#[utoipa::path(
    get, path = "/healthz", operation_id = "healthz", tag = "service",
    responses((status = 200, description = "It is alive", body = Health)),
)]
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Ready?
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "service",
    responses((status = 200, description = "It can answer", body = Health), Problems),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Health>, Problem> {
    if app.is_ending() {
        return Err(ending());
    }
    if !app.follows.load(Ordering::Relaxed) {
        return Err(unreachable());
    }
    if app.writer.as_ref().is_some_and(|writer| !writer.is_alive()) {
        return Err(Problem::unavailable("nothing can be written any more: start it again"));
    }
    if !app.has_a_core().await {
        return Err(Problem::unavailable("all cores are busy with something long").soon_over());
    }
    timeout(SOON, look(app.clone())).await.unwrap_or_else(|_| Err(unreachable()))?;
    Ok(Json(Health { status: "ok" }))
}

fn unreachable() -> Problem {
    Problem::unavailable("the store of the collection cannot be reached").soon_over()
}

/// Asks the store something. One at a time does: a store that hangs is not to take more and more threads.
async fn look(app: Arc<App>) -> Result<(), Problem> {
    let turn = app.watching.clone().lock_owned().await;
    let looked = spawn_blocking(move || {
        let end = app.collection.with_reader(|store| store.end());
        drop(turn);
        end
    });
    looked.await.map_err(|_| unreachable())??;
    Ok(())
}

/// What was counted, for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "service",
    responses((status = 200, description = "Counters, gauges and histograms", body = String,
        content_type = "application/openmetrics-text"), Problems),
)]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let text = app.metrics.text(app.in_flight(), app.collection.snapshot().len());
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}
