//! Connections: taken, limited, and ended in good order.

use std::{future::Future, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use crate::{app::App, error::Problem};

/// The head of a request, be it the first or the next, comes in this time, or the connection is closed.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// A connection over which nothing comes for so long, while a request is worked on, is closed.
const IDLE_TIME: Duration = Duration::from_secs(75);
/// Requests that are being worked on when the server ends have so long.
const LAST_TIME: Duration = Duration::from_secs(30);
/// So many connections beyond the limit are told so at a time; others are just closed.
const MOST_REFUSED: usize = 64;

/// Serves connections until `stop`, and then those that there are until they are done.
pub(crate) async fn listen(
    listener: TcpListener,
    router: Router,
    app: Arc<App>,
    stop: impl Future<Output = ()>,
) {
    let connections = Arc::new(Semaphore::new(app.limits.connections));
    let refusals = Arc::new(Semaphore::new(MOST_REFUSED));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // Too many open files: some will be closed.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = connections.clone().try_acquire_owned() else {
            if let Ok(refusal) = refusals.clone().try_acquire_owned() {
                let most = app.limits.connections;
                tokio::spawn(async move {
                    let _ = timeout(Duration::from_secs(1), refuse(stream, most)).await;
                    drop(refusal);
                });
            }
            continue;
        };
        let connection = graceful.watch(connection(stream, router.clone(), &app));
        let app = app.clone();
        tokio::spawn(async move {
            app.metrics.connections.inc();
            // A connection that breaks is the other side's business.
            let _ = connection.await;
            app.metrics.connections.dec();
            drop(place);
        });
    }
    drop(listener);
    app.end();
    tracing::info!(in_flight = app.in_flight(), "ending");
    if timeout(LAST_TIME, graceful.shutdown()).await.is_err() {
        tracing::warn!(in_flight = app.in_flight(), "requests were cut off");
    }
}

type Connection = http1::Connection<
    TokioIo<std::pin::Pin<Box<TimeoutStream<TcpStream>>>>,
    TowerToHyperService<Router>,
>;

fn connection(stream: TcpStream, router: Router, app: &App) -> Connection {
    // Answers are small, and whoever waits for one waits for all of it.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_read_timeout(Some(IDLE_TIME.max(2 * app.limits.time)));
    stream.set_write_timeout(Some(app.limits.time));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router))
}

/// Tells that there are too many connections.
async fn refuse(mut stream: TcpStream, most: usize) -> std::io::Result<()> {
    let problem = Problem::unavailable(format!("there are {most} connections already")).soon_over();
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await?;
    // What was sent is read, or the answer might not be heard.
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
