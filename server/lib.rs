//! A collection as a service: an HTTP API and a web page. Thin: what it answers, the engine answers.
//!
//! ```text
//! POST /v1/documents                   add or replace           GET /v1/clusters           what belongs together
//! GET, DELETE /v1/documents/{id}       show, remove             GET /v1/clusters/{id}      the cluster of a document
//! GET /v1/documents/{id}/lookalikes    what is like it          GET /v1/stats, /v1/plan    how it is, and why
//! POST /v1/search                      what is like this        GET /healthz, /readyz      alive, ready
//! POST /v1/seen                        seen? if not, add it     GET /metrics               for Prometheus
//! POST /v1/compare                     how alike, and why       GET /                      the page
//! ```
//!
//! `docs/http.md` tells what each takes and answers.

mod admit;
mod app;
mod body;
mod clusters;
mod error;
mod json;
mod lines;
mod listen;
mod metrics;
mod openapi;
mod options;
mod page;
mod parse;
mod room;
mod routes;
mod wire;
mod writer;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use axum::{Router, http::Uri, middleware::from_fn_with_state, routing::get};
use lookalike::collection::{Collection, StoredIn};
use tokio::{net::TcpListener, signal};
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use options::{Limits, Options, Refused, Tokens};

use crate::{
    app::App,
    error::{Problem, error_chain},
    json::Json,
    writer::join_in_time,
};

/// How often the log of a collection that others write to is followed.
const FOLLOWING: Duration = Duration::from_millis(250);
/// What is still being worked on at the very end has so long.
const LAST_WORK: Duration = Duration::from_secs(10);

/// Serves a collection until the process is told to end. `listening` is called with the address once it can be reached.
pub fn serve(
    collection: Collection,
    options: &Options,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), Refused> {
    options.check(collection.about().bits)?;
    let refused = |problem| Refused::Listen { address: options.listen, problem };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores)
        .max_blocking_threads(4 * cores + 4)
        .enable_all()
        .build()
        .map_err(refused)?;
    let listener = runtime.block_on(TcpListener::bind(options.listen)).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let collection = Arc::new(collection);
    let app = Arc::new(App::new(collection.clone(), options)?);
    let (ended, end) = mpsc::channel::<()>();
    let keeper = thread::spawn({
        let app = app.clone();
        move || keep(&app, &end)
    });
    listening(address);
    runtime.block_on(listen::listen(listener, router(app.clone()), app.clone(), told_to_end()));
    // Connections to a database are closed here, where nothing else waits for them.
    runtime.shutdown_timeout(LAST_WORK);
    drop(ended);
    join_in_time(keeper);
    drop(app);
    match Arc::into_inner(collection) {
        Some(collection) => collection.close()?,
        None => {
            tracing::warn!("something is still being worked on; what was acknowledged is durable")
        }
    }
    tracing::info!("ended");
    Ok(())
}

/// Every route, with the OpenAPI document of those of the API.
fn router(app: Arc<App>) -> Router {
    use routes::{clusters, compare, documents, health, plan, search, seen, stats};
    let (api, document) = OpenApiRouter::with_openapi(openapi::Api::openapi())
        .routes(routes!(documents::add))
        .routes(routes!(documents::show, documents::remove))
        .routes(routes!(search::lookalikes))
        .routes(routes!(search::search))
        .routes(routes!(seen::seen))
        .routes(routes!(compare::compare))
        .routes(routes!(clusters::list))
        .routes(routes!(clusters::show))
        .routes(routes!(stats::stats))
        .routes(routes!(plan::plan))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .split_for_parts();
    api.route("/v1/openapi.json", get(move || async move { Json(document) }))
        .merge(page::router())
        .fallback(|uri: Uri| async move {
            Problem::not_found(format!("there is nothing at `{}`", uri.path()))
        })
        .method_not_allowed_fallback(|| async {
            Problem::no_method("this path knows other methods: see `Allow`")
        })
        .layer(from_fn_with_state(app.clone(), admit::admit))
        .with_state(app)
}

/// What is done all the time: rates are noted, and what others write is taken up.
fn keep(app: &App, end: &mpsc::Receiver<()>) {
    let follows = app.writer.is_none() || *app.collection.stored_in() != StoredIn::Sqlite;
    let mut ticks = 0_u32;
    while end.recv_timeout(FOLLOWING) == Err(RecvTimeoutError::Timeout) {
        if ticks.is_multiple_of(4) {
            app.metrics.tick();
        }
        ticks = ticks.wrapping_add(1);
        if follows {
            let refreshed = app.collection.refresh();
            let before = app.follows.swap(refreshed.is_ok(), Ordering::Relaxed);
            // Once, however long it lasts.
            match &refreshed {
                Err(error) if before => {
                    tracing::warn!(error = error_chain(error), "the store cannot be followed");
                }
                Ok(_) if !before => tracing::info!("the store can be followed again"),
                _ => {}
            }
        }
    }
}

/// Waits until somebody ends the process. Whoever says so a second time does not want to wait.
async fn told_to_end() {
    signalled().await;
    tokio::spawn(async {
        signalled().await;
        tracing::warn!("ended at once; what was acknowledged is durable");
        std::process::exit(130);
    });
}

async fn signalled() {
    let interrupted = async { _ = signal::ctrl_c().await };
    #[cfg(unix)]
    let terminated = async {
        match signal::unix::signal(signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
