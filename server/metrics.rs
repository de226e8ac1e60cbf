//! What is counted, for Prometheus and for the page.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Rates are those of this time.
const RECENT: Duration = Duration::from_secs(10);
/// The bounds of the histogram, in seconds.
const BOUNDS: [f64; 14] =
    [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
    /// Documents that were added, replaced or seen.
    pub(crate) documents: Counter,
    /// Queries that were asked.
    pub(crate) queries: Counter,
    /// Connections that there are.
    pub(crate) connections: Gauge,
    in_flight: Gauge,
    records: Gauge,
    recent: Mutex<VecDeque<Moment>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: String,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

/// What had been counted at a moment.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: Instant,
    documents: u64,
    queries: u64,
}

/// Methods that there are; anybody can make up others.
fn known(method: &str) -> &str {
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => method,
        _ => "other",
    }
}

fn histogram() -> Histogram {
    Histogram::new(BOUNDS)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("lookalike");
        let requests = Family::default();
        let durations = Family::new_with_constructor(histogram as fn() -> Histogram);
        let (documents, queries) = (Counter::default(), Counter::default());
        let (connections, in_flight, records) =
            (Gauge::default(), Gauge::default(), Gauge::default());
        registry.register("requests", "Requests that were answered", requests.clone());
        registry.register_with_unit(
            "request_duration",
            "How long requests took, until the answer began",
            Unit::Seconds,
            durations.clone(),
        );
        registry.register("documents", "Documents that came to be added", documents.clone());
        registry.register("queries", "Queries that were asked", queries.clone());
        registry.register("connections", "Connections", connections.clone());
        registry.register("requests_in_flight", "Requests being worked on", in_flight.clone());
        registry.register("records", "Documents in the collection", records.clone());
        Metrics {
            registry,
            requests,
            durations,
            documents,
            queries,
            connections,
            in_flight,
            records,
            recent: Mutex::default(),
        }
    }

    pub(crate) fn answered(&self, route: &str, method: &str, status: StatusCode, took: Duration) {
        let (name, method) = (route.to_owned(), known(method).to_owned());
        self.requests
            .get_or_create(&Request { route: name.clone(), method, status: status.as_u16() })
            .inc();
        self.durations.get_or_create(&Route { route: name }).observe(took.as_secs_f64());
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, in_flight: usize, records: usize) -> String {
        self.in_flight.set(in_flight as i64);
        self.records.set(records as i64);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Remembers what has been counted so far; called every second.
    pub(crate) fn tick(&self) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(self.now());
        while recent.front().is_some_and(|oldest| oldest.at.elapsed() > RECENT) {
            recent.pop_front();
        }
    }

    /// Documents and queries a second, of late.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        let Some(before) = recent.front() else { return (0.0, 0.0) };
        let seconds = (now.at - before.at).as_secs_f64().max(1.0);
        let rate = |now: u64, before: u64| ((now - before) as f64 / seconds * 10.0).round() / 10.0;
        (rate(now.documents, before.documents), rate(now.queries, before.queries))
    }

    fn now(&self) -> Moment {
        let (documents, queries) = (self.documents.get(), self.queries.get());
        Moment { at: Instant::now(), documents, queries }
    }
}
