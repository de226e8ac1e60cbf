//! Clusters: documents that belong together.

use std::{sync::Arc, time::Instant};

use axum::{Extension, extract::State};
use lookalike::{
    collection::{AboutCluster, Cluster, ClusterOrder, Clustered, Record},
    hamming,
    index::Promise,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{App, Permit},
    body::{Id, Params},
    clusters::Fresh,
    error::Problem,
    json::{Written, milliseconds, to_json},
    openapi::{Missing, Problems},
};

/// Clusters of a page, and members of a cluster, if `limit` does not say.
const USUAL_CLUSTERS: usize = 50;
const USUAL_MEMBERS: usize = 200;
/// The most that can be asked for.
const MOST_CLUSTERS: usize = 1000;
const MOST_MEMBERS: usize = 500;

/// Which clusters come first.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// Those with the most documents.
    #[default]
    Largest,
    /// Those with the longest way from the keeper to a member.
    Chain,
    /// Those with members that are the farthest apart.
    Farthest,
}

impl From<Order> for ClusterOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Largest => ClusterOrder::Largest,
            Order::Chain => ClusterOrder::LongestChain,
            Order::Farthest => ClusterOrder::Farthest,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// How far documents of a step are apart; if it is not said, the radius of the service.
    radius: Option<u32>,
    /// Which come first.
    #[serde(default)]
    #[param(inline)]
    order: Order,
    /// How many are left out before the first.
    #[serde(default)]
    offset: usize,
    /// How many are shown.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OneParams {
    /// How far documents of a step are apart; if it is not said, the radius of the service.
    radius: Option<u32>,
    /// How many members are shown.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

/// The clusters of the collection.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterList {
    radius: u32,
    /// Whether every pair of documents within the radius was found.
    exact: bool,
    /// The share of those at the very radius that is expected, if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_recall: Option<f64>,
    /// How many documents there are.
    records: usize,
    /// How many clusters.
    clusters: usize,
    /// How many documents are in one.
    clustered: usize,
    /// The last change of the collection that was taken into account.
    position: u64,
    /// How many pairs of documents are at each distance, from 0 to the radius.
    pairs_by_distance: Vec<u64>,
    list: Vec<ClusterSummary>,
    /// How long it took.
    took_ms: f64,
}

/// A cluster in a line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClusterSummary {
    /// The id of its oldest document: the keeper.
    id: String,
    /// How many documents it has.
    size: usize,
    /// How many of their signatures are distinct.
    distinct: usize,
    /// The steps from the keeper to the member that is the most steps away.
    longest_chain: u32,
    /// The largest distance between two members.
    farthest: u32,
    /// Whether that is for sure: in a very large cluster not all are compared.
    farthest_exact: bool,
    /// What the largest distance stands for.
    min_similarity: f64,
}

/// A cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OneCluster {
    #[serde(flatten)]
    summary: ClusterSummary,
    radius: u32,
    /// Whether every pair of documents within the radius was found.
    exact: bool,
    /// The share of those at the very radius that is expected, if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_recall: Option<f64>,
    /// The last change of the collection that was taken into account.
    position: u64,
    /// The documents, oldest first: the keeper, then the others.
    members: Vec<Member>,
    /// Which members are within the radius of each other.
    edges: Vec<Edge>,
    /// There are more members than are shown.
    more: bool,
}

/// A document of a cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Member {
    id: String,
    /// Hexadecimal digits.
    signature: String,
    /// What it came with.
    #[schema(value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
    /// How many bits differ from the keeper.
    distance: u32,
    /// What that stands for.
    similarity: f64,
    keeper: bool,
}

/// Two members that are near each other, by their places among the members.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Edge {
    a: u32,
    b: u32,
    distance: u32,
}

/// List the clusters
#[utoipa::path(
    get, path = "/v1/clusters", operation_id = "list_clusters", tag = "clusters", params(ListParams),
    responses((status = 200, description = "What belongs together", body = ClusterList), Problems),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Params(params): Params<ListParams>,
) -> Result<Written, Problem> {
    let started = Instant::now();
    let limit = limit(params.limit, USUAL_CLUSTERS, MOST_CLUSTERS)?;
    let clustered =
        app.clustered(&permit, params.radius.unwrap_or(app.radius), Fresh::Recent).await?;
    let ListParams { order, offset, .. } = params;
    app.work(&permit, move |app| {
        let numbers = clustered.ordered(order.into()).iter().skip(offset).take(limit);
        let abouts: Vec<AboutCluster> =
            numbers.map(|&number| clustered.about(number as usize)).collect();
        to_json(&ClusterList {
            radius: clustered.radius,
            exact: clustered.promise == Promise::Exact,
            expected_recall: expected(&clustered),
            records: clustered.records,
            clusters: clustered.len(),
            clustered: clustered.clustered_records(),
            position: clustered.position,
            pairs_by_distance: clustered.pairs_by_distance.clone(),
            list: summaries(app, abouts)?,
            took_ms: milliseconds(started),
        })
    })
    .await
}

fn limit(given: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    match given.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(Problem::field("limit", format!("is from 1 to {most}"))),
    }
}

fn summaries(app: &App, abouts: Vec<AboutCluster>) -> Result<Vec<ClusterSummary>, Problem> {
    let keepers: Vec<u64> = abouts.iter().map(|about| about.keeper).collect();
    let records = app.collection.with_reader(|store| store.records(&keepers, false))?;
    // A keeper that was removed for good in the meantime has no name any more.
    let both = abouts.into_iter().zip(records);
    Ok(both.filter_map(|(about, record)| Some(summary(app, &about, record?.id))).collect())
}

fn summary(app: &App, about: &AboutCluster, id: String) -> ClusterSummary {
    ClusterSummary {
        id,
        size: about.size,
        distinct: about.distinct,
        longest_chain: about.longest_chain,
        farthest: about.farthest,
        farthest_exact: about.farthest_is_exact,
        min_similarity: app.similarity(about.farthest),
    }
}

/// Show the cluster that a document is in
#[utoipa::path(
    get, path = "/v1/clusters/{id}", operation_id = "show_cluster", tag = "clusters",
    params(("id" = String, Path, description = "The id of one of its documents, percent-encoded"), OneParams),
    responses((status = 200, description = "Its members, and which are near each other", body = OneCluster), Problems, Missing),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Id(id): Id,
    Params(params): Params<OneParams>,
) -> Result<Written, Problem> {
    let limit = limit(params.limit, USUAL_MEMBERS, MOST_MEMBERS)?;
    let radius = params.radius.unwrap_or(app.radius);
    let id = Arc::new(id);
    for fresh in [Fresh::Recent, Fresh::Now] {
        let (clustered, id) = (app.clustered(&permit, radius, fresh).await?, id.clone());
        let answer = app.work(&permit, move |app| cluster(app, &clustered, &id, limit)).await?;
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
    Err(Problem::unavailable("the collection changes faster than its clusters are found")
        .soon_over())
}

/// The cluster that a document is in; none if the clusters are older than what it is about.
fn cluster(
    app: &App,
    clustered: &Clustered,
    id: &str,
    limit: usize,
) -> Result<Option<Written>, Problem> {
    let position = app.record(id, false)?.position;
    if position > clustered.position {
        return Ok(None);
    }
    let Some(number) = clustered.of(position) else {
        return Err(alone(clustered, id));
    };
    let (about, cluster) = (clustered.about(number), clustered.cluster(number));
    let shown = &cluster.members[..limit.min(cluster.members.len())];
    let Some(records) = current(app, shown)? else { return Ok(None) };
    let answer = OneCluster {
        summary: summary(app, &about, records[0].id.clone()),
        radius: clustered.radius,
        exact: clustered.promise == Promise::Exact,
        expected_recall: expected(clustered),
        position: clustered.position,
        edges: edges(&cluster, shown.len() as u32),
        more: shown.len() < cluster.members.len(),
        members: members(app, records)?,
    };
    to_json(&answer).map(Some)
}

/// A document without lookalikes, or without any that were found.
fn alone(clustered: &Clustered, id: &str) -> Problem {
    let radius = clustered.radius;
    let found = match expected(clustered) {
        None => "has no lookalike".to_owned(),
        Some(recall) => format!("has no lookalike among the {recall:.3} of them that are found"),
    };
    Problem::not_found(format!("`{id}` {found} within {radius} bits")).about("id")
}

fn expected(clustered: &Clustered) -> Option<f64> {
    match clustered.promise {
        Promise::Exact => None,
        Promise::Expected { recall } => Some(f64::from(recall)),
    }
}

/// The records at positions, if all of them are there still.
fn current(app: &App, positions: &[u64]) -> Result<Option<Vec<Record>>, Problem> {
    let records = app.collection.with_reader(|store| store.records(positions, false))?;
    let Some(records) = records.into_iter().collect::<Option<Vec<Record>>>() else {
        return Ok(None);
    };
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    let now = app.collection.get(&ids, false)?;
    let same = now
        .iter()
        .zip(&records)
        .all(|(now, record)| now.as_ref().is_some_and(|now| now.position == record.position));
    Ok(same.then_some(records))
}

fn members(app: &App, records: Vec<Record>) -> Result<Vec<Member>, Problem> {
    let kernel = hamming::kernel()?;
    let keeper = records[0].signature.clone();
    let member = |(place, record): (usize, Record)| {
        let distance = kernel.distance(keeper.words(), record.signature.words());
        Member {
            id: record.id,
            signature: record.signature.to_string(),
            payload: record.payload.and_then(|payload| RawValue::from_string(payload).ok()),
            distance,
            similarity: app.similarity(distance),
            keeper: place == 0,
        }
    };
    Ok(records.into_iter().enumerate().map(member).collect())
}

/// Those among the first members, those of copies included.
fn edges(cluster: &Cluster<'_>, members: u32) -> Vec<Edge> {
    let near =
        cluster.edges.iter().map(|pair| Edge { a: pair.a, b: pair.b, distance: pair.distance });
    let copies = cluster.originals.iter().zip(0..).filter(|(original, place)| **original != *place);
    let copies = copies.map(|(&a, b)| Edge { a, b, distance: 0 });
    near.chain(copies).filter(|edge| edge.a < members && edge.b < members).collect()
}
