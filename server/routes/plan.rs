//! The planner's explanation: which index suits a question, and why.

use std::sync::Arc;

use axum::{Extension, extract::State};
use lookalike::{
    collection::{By, Snapshot},
    index::Build,
    plan::{self, Costs, Plan, Task},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::search::{check_recall, why};
use crate::{
    app::{App, Permit},
    body::Params,
    error::Problem,
    json::{Written, to_json},
    openapi::Problems,
};

/// The most queries that are thought of as coming together.
const MOST_TOGETHER: usize = 1_000_000;
/// Alternatives that are told.
const MOST_PLANS: usize = 8;

#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanParams {
    /// All documents within so many bits; if nothing is said, the radius of the service.
    radius: Option<u32>,
    /// The so many nearest documents.
    #[param(minimum = 1)]
    nearest: Option<usize>,
    /// The share of them that is enough.
    #[param(exclusive_minimum = 0.0, maximum = 1.0)]
    recall: Option<f64>,
    /// How many queries come together.
    #[param(minimum = 1, maximum = 1_000_000)]
    batch: Option<u32>,
}

/// What could answer a question, and what does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Plans {
    /// The question in words.
    asked: String,
    /// The index that the collection keeps.
    kept: String,
    /// What answers it now.
    answers_by: String,
    /// Why.
    why: &'static str,
    /// What could, the fastest first.
    plans: Vec<OnePlan>,
}

/// An index that would do, and what it would cost on this machine.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OnePlan {
    index: String,
    /// Whether it finds everything.
    exact: bool,
    expected_recall: f64,
    /// Its memory, besides the signatures.
    bytes: u64,
    build_seconds: f64,
    query_seconds: f64,
    /// What a query does.
    explanation: String,
}

/// Plan: which index suits a question, and why
#[utoipa::path(
    get, path = "/v1/plan", tag = "service", params(PlanParams),
    responses((status = 200, description = "What could answer it, and at what cost", body = Plans), Problems),
)]
pub(crate) async fn plan(
    State(app): State<Arc<App>>,
    Extension(permit): Extension<Permit>,
    Params(params): Params<PlanParams>,
) -> Result<Written, Problem> {
    let task = task(&app, &params)?;
    let costs = app.known_costs().await?.clone();
    app.work(&permit, move |app| to_json(&plans_of(app, &costs, &task)?)).await
}

fn task(app: &App, params: &PlanParams) -> Result<Task, Problem> {
    if params.radius.is_some() && params.nearest.is_some() {
        return Err(Problem::field("nearest", "say either `radius` or `nearest`"));
    }
    let radius = params.radius.unwrap_or(app.radius);
    app.check_radius(radius)?;
    let recall = params.recall.unwrap_or(1.0);
    check_recall(recall)?;
    let batch = params.batch.unwrap_or(1) as usize;
    if !(1..=MOST_TOGETHER).contains(&batch) {
        return Err(Problem::field("batch", format!("is from 1 to {MOST_TOGETHER}")));
    }
    if params.nearest == Some(0) {
        return Err(Problem::field("nearest", "is 1 or more"));
    }
    let nearest = params.nearest.map(|k| k.min(app.limits.hits));
    Ok(Task { radius, nearest, batch, queries: None, memory: None, recall })
}

fn plans_of(app: &App, costs: &Costs, task: &Task) -> Result<Plans, Problem> {
    let snapshot = app.collection.snapshot();
    let rows = snapshot.len();
    let by = if task.recall < 1.0 { By::Share(task.recall) } else { By::Index };
    let together = match task.batch {
        1 => "one query at a time".to_owned(),
        batch => format!("{batch} queries at a time"),
    };
    let plans = match rows {
        0 => Vec::new(),
        _ => plans_with_kept(&snapshot, costs, task)?,
    };
    let one = |plan: &Plan| OnePlan {
        index: plan.index.to_string(),
        exact: plan.exact,
        expected_recall: plan.expected_recall,
        bytes: plan.bytes,
        build_seconds: plan.build_seconds,
        query_seconds: plan.query_seconds,
        explanation: plan.why(task, rows),
    };
    Ok(Plans {
        asked: format!("{}, {together}", task.asked()),
        kept: app.collection.about().index.to_string(),
        answers_by: snapshot.asked_by(by),
        why: why(by, &snapshot),
        plans: plans.iter().map(one).collect(),
    })
}

/// The best plans, and those that the parts of the collection have, whatever they cost.
fn plans_with_kept(snapshot: &Snapshot, costs: &Costs, task: &Task) -> Result<Vec<Plan>, Problem> {
    let sample = snapshot.sample()?;
    let mut plans = plan::plans(costs, &sample, task);
    plans.truncate(MOST_PLANS);
    for part in snapshot.parts() {
        let is_there = plans.iter().any(|plan| plan.index.to_string() == part.index);
        if let (false, Ok(method)) = (is_there, part.index.parse()) {
            plans.extend(plan::price(costs, &sample, task, method, Build::default()));
        }
    }
    plans.sort_by(|a, b| a.query_seconds.total_cmp(&b.query_seconds));
    Ok(plans)
}
