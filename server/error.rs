//! Problems: what a caller is told when something is not answered, as `application/problem+json`.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use lookalike::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// Something was not answered, and why (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of problem, which programs can rely on.
    #[serde(rename = "type")]
    #[schema(example = "urn:lookalike:field")]
    pub(crate) kind: &'static str,
    /// The kind of problem in words.
    pub(crate) title: &'static str,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What it is this time, and the way out.
    pub(crate) detail: String,
    /// The field or parameter that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The seconds after which it is worth another try.
    #[serde(skip)]
    pub(crate) retry_after: Option<u32>,
}

/// Every kind of problem: its name, its status, its title.
macro_rules! kinds {
    ($($function:ident $status:ident $kind:literal $title:literal;)*) => {
        impl Problem {
            $(pub(crate) fn $function(detail: impl Into<String>) -> Self {
                let status = StatusCode::$status.as_u16();
                let kind = concat!("urn:lookalike:", $kind);
                Problem { kind, title: $title, status, detail: detail.into(), field: None, retry_after: None }
            })*
        }
    };
}

kinds! {
    not_json BAD_REQUEST "not-json" "The body cannot be read";
    no_token UNAUTHORIZED "no-token" "A token is needed";
    not_allowed FORBIDDEN "not-allowed" "Not allowed";
    not_found NOT_FOUND "not-found" "There is no such thing";
    no_method METHOD_NOT_ALLOWED "no-method" "That cannot be done here";
    too_slow REQUEST_TIMEOUT "too-slow" "The body did not come in time";
    exists CONFLICT "exists" "It exists already";
    too_large PAYLOAD_TOO_LARGE "too-large" "That is more than is allowed";
    media UNSUPPORTED_MEDIA_TYPE "media" "A body of another type is needed";
    refused UNPROCESSABLE_ENTITY "field" "That is not as it should be";
    too_many TOO_MANY_REQUESTS "too-many" "Too many requests at a time";
    failed INTERNAL_SERVER_ERROR "failed" "The server failed";
    unavailable SERVICE_UNAVAILABLE "unavailable" "Not now";
}

impl Problem {
    /// A field that is not as it should be.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let (field, detail) = (field.into(), detail.into());
        let is_about_it = detail.starts_with("is ") || detail.starts_with("has ");
        let detail = if is_about_it { format!("`{field}` {detail}") } else { detail };
        Problem::refused(detail).about(field)
    }

    /// The same problem, with a field inside of something.
    pub(crate) fn inside(self, outer: &str) -> Self {
        let field = match &self.field {
            Some(field) if field.starts_with('[') => format!("{outer}{field}"),
            Some(field) => format!("{outer}.{field}"),
            None => outer.to_owned(),
        };
        self.about(field)
    }

    /// The same problem, about a field.
    pub(crate) fn about(self, field: impl Into<String>) -> Self {
        Problem { field: Some(field.into()), ..self }
    }

    /// The same problem, which will be over soon.
    pub(crate) fn soon_over(self) -> Self {
        Problem { retry_after: Some(1), ..self }
    }
}

/// What the engine cannot do: because of what was asked, or because something is wrong here.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match &error {
            Error::WidthMismatch { .. } | Error::Hex { .. } | Error::Width { .. } => {
                Problem::field("signature", detail)
            }
            // Without the filter itself, which may be long.
            Error::Filter { at, problem, .. } => {
                let problem: String = problem.chars().take(200).collect();
                Problem::field("filter", format!("at character {at}, {problem}"))
            }
            Error::OutOfTime => {
                Problem::unavailable("this was not answered in time: ask for less at a time")
                    .soon_over()
            }
            Error::TooManyBytes { .. } => {
                let problem = Problem::too_large(format!("{detail}: ask for fewer of them"));
                problem.about("limit")
            }
            Error::IdExists { .. } => Problem::exists(detail).about("id"),
            Error::Entry { .. } => Problem::field("id", detail),
            Error::NoSlices | Error::BeyondSlices { .. } => Problem::field("index", detail),
            Error::TooManyPairs { .. } => {
                Problem::field("radius", format!("{detail}: a smaller radius has fewer"))
            }
            Error::Setting { name, .. } => Problem::field(name.trim_start_matches("the "), detail),
            Error::Margins { .. } | Error::Words { .. } | Error::RecipeMismatch { .. } => {
                Problem::refused(detail)
            }
            Error::ReadOnly { .. } => Problem::not_allowed("this service only reads"),
            // Where things are is nobody's business outside: the log has all of it.
            _ => {
                tracing::error!(error = error_chain(&error), "the collection failed");
                Problem::unavailable(
                    "the collection cannot answer now; the log of the server says why",
                )
                .soon_over()
            }
        }
    }
}

/// An error with what caused it.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
