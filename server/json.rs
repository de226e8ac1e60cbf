//! Answers as JSON.

use std::time::Instant;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::error::Problem;

/// An answer.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match to_json(&self.0) {
            Ok(json) => json.into_response(),
            Err(problem) => problem.into_response(),
        }
    }
}

/// An answer that is written already.
pub(crate) struct Written(Vec<u8>);

impl IntoResponse for Written {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// Writes an answer.
pub(crate) fn to_json(answer: &impl Serialize) -> Result<Written, Problem> {
    let json = serde_json::to_vec(answer);
    json.map(Written).map_err(|error| Problem::failed(format!("the answer is no JSON: {error}")))
}

/// How long something took.
pub(crate) fn milliseconds(started: Instant) -> f64 {
    (started.elapsed().as_secs_f64() * 1e6).round() / 1e3
}
