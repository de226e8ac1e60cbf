//! What there is to tell about the collection and the service.

use std::sync::Arc;

use axum::{Extension, extract::State};
use lookalike::collection::{PartAbout, guarantee, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::{App, Permit},
    error::Problem,
    json::{Written, to_json},
    openapi::Problems,
    options::Limits,
};

/// More signatures than this are not read to count the distinct ones.
const MOST_COUNTED: usize = 100_000;

/// What there is to tell.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// The name of its folder.
    name: String,
    /// The version of the program.
    version: &'static str,
    /// When the collection was created.
    #[schema(format = DateTime)]
    created: String,
    /// How many documents there are.
    records: usize,
    /// How many signatures are distinct; null if they are too many to be counted each time.
    distinct: Option<usize>,
    /// Removed and not yet forgotten.
    removed: u64,
    /// The last change of the collection.
    position: u64,
    /// The width of the signatures.
    bits: u32,
    /// How far lookalikes are apart where a request does not say.
    radius: u32,
    /// What a similarity is: `cosine`, `jaccard` or `equal bits`.
    measure: &'static str,
    /// What makes signatures of texts; null for signatures from elsewhere.
    #[schema(value_type = Option<Object>)]
    recipe: Option<lookalike::Recipe>,
    recipe_name: Option<String>,
    keeps: KeepsStats,
    /// Where the records are.
    store: String,
    store_bytes: u64,
    /// The index that is kept.
    index: String,
    /// Bytes of the segments: signatures and indexes.
    index_bytes: u64,
    /// The radius within which the database finds all by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql_within: Option<u32>,
    parts: Vec<PartStats>,
    /// Whether documents are only read.
    read_only: bool,
    /// Seconds since the service started.
    uptime_s: f64,
    writes: WriteStats,
    searches: SearchStats,
    limits: Limits,
}

/// What is kept of documents beside signature and payload.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeepsStats {
    texts: bool,
    margins: bool,
}

/// A part of the collection, with an index of its own.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PartStats {
    index: String,
    rows: usize,
    removed: usize,
    bytes: u64,
    /// Whether it is saved in a segment.
    saved: bool,
    /// The radius within which its index finds all; null if it may miss some.
    exact_within: Option<u32>,
}

impl From<PartAbout> for PartStats {
    fn from(part: PartAbout) -> Self {
        let PartAbout { index, rows, removed, bytes, saved, exact_within, .. } = part;
        PartStats { index, rows, removed, bytes, saved, exact_within }
    }
}

/// Documents since the service started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WriteStats {
    documents: u64,
    /// Of the last ten seconds.
    per_second: f64,
}

/// Queries since the service started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchStats {
    queries: u64,
    /// Of the last ten seconds.
    per_second: f64,
}

/// Show the collection and the service in numbers
#[utoipa::path(
    get, path = "/v1/stats", tag = "service",
    responses((status = 200, description = "Counts, sizes, rates, limits", body = Stats), Problems),
)]
pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
) -> Result<Written, Problem> {
    app.work(&permit, |app| to_json(&stats_of(app)?)).await
}

fn stats_of(app: &App) -> Result<Stats, Problem> {
    let collection = &app.collection;
    let (about, snapshot) = (collection.about(), collection.snapshot());
    let (counts, slices, store_bytes) =
        collection.with_reader(|store| Ok((store.counts()?, store.slices()?, store.bytes()?)))?;
    let few = snapshot.len() <= MOST_COUNTED;
    let (documents, queries) = app.metrics.rates();
    Ok(Stats {
        name: collection.folder().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION"),
        created: rfc3339(about.created),
        records: snapshot.len(),
        distinct: few.then(|| collection.count_distinct()).transpose()?,
        removed: counts.removed,
        position: snapshot.position(),
        bits: about.bits,
        radius: app.radius,
        measure: app.measure(),
        recipe: about.recipe.clone(),
        recipe_name: about.recipe.as_ref().map(|recipe| recipe.name.clone()),
        keeps: KeepsStats { texts: about.keeps.texts, margins: about.keeps.margins },
        store: collection.stored_in().address(),
        store_bytes,
        index: about.index.to_string(),
        index_bytes: collection.segment_bytes(),
        sql_within: slices.map(guarantee),
        parts: snapshot.parts().map(PartStats::from).collect(),
        read_only: app.writer.is_none(),
        uptime_s: app.started.elapsed().as_secs_f64(),
        writes: WriteStats { documents: app.metrics.documents.get(), per_second: documents },
        searches: SearchStats { queries: app.metrics.queries.get(), per_second: queries },
        limits: app.limits.clone(),
    })
}
