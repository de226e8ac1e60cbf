//! The OpenAPI document, generated from the types.

use utoipa::{
    IntoResponses, Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use crate::error::Problem;

/// What is said of the whole.
#[derive(OpenApi)]
#[openapi(
    info(title = "lookalike", description = "A collection of documents, and those among them that look alike."),
    tags(
        (name = "search", description = "What looks alike?"),
        (name = "documents", description = "What is in the collection"),
        (name = "clusters", description = "What belongs together"),
        (name = "service", description = "How it is"),
    ),
    components(schemas(Problem)),
    modifiers(&Token),
    // Only a service that was started with tokens asks for one.
    security((), ("token" = [])),
)]
pub(crate) struct Api;

struct Token;

impl Modify for Token {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(token));
    }
}

/// Problems that every request may have.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "says in the OpenAPI document what `Problem` becomes")]
pub(crate) enum Problems {
    /// No token, or not one of ours
    #[response(status = 401, content_type = "application/problem+json")]
    NoToken(Problem),
    /// The token does not allow it, the service only reads, or the request is not for this machine
    #[response(status = 403, content_type = "application/problem+json")]
    NotAllowed(Problem),
    /// A field or parameter is not as it should be: `field` names it
    #[response(status = 422, content_type = "application/problem+json")]
    Field(Problem),
    /// More requests in flight than allowed
    #[response(
        status = 429,
        content_type = "application/problem+json",
        headers(("Retry-After" = u32, description = "Seconds after which to come again"))
    )]
    TooMany(Problem),
    /// A mistake of the program
    #[response(status = 500, content_type = "application/problem+json")]
    Failed(Problem),
    /// Not done in time, the store cannot be reached, or the server is about to end
    #[response(
        status = 503,
        content_type = "application/problem+json",
        headers(("Retry-After" = u32, description = "Seconds after which to come again"))
    )]
    Unavailable(Problem),
}

/// Problems of requests with a body.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "says in the OpenAPI document what `Problem` becomes")]
pub(crate) enum BodyProblems {
    /// The body is not JSON, not UTF-8, or nested too deep
    #[response(status = 400, content_type = "application/problem+json")]
    NotJson(Problem),
    /// The body did not come in time
    #[response(status = 408, content_type = "application/problem+json")]
    TooSlow(Problem),
    /// A body, batch, text or answer beyond the limits
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(Problem),
    /// A body of another type is needed
    #[response(status = 415, content_type = "application/problem+json")]
    Media(Problem),
}

/// There is no such document.
#[derive(IntoResponses)]
#[response(status = 404, content_type = "application/problem+json")]
#[allow(dead_code, reason = "says in the OpenAPI document what `Problem` becomes")]
pub(crate) struct Missing(Problem);

/// It exists already, and was not to be replaced.
#[derive(IntoResponses)]
#[response(status = 409, content_type = "application/problem+json")]
#[allow(dead_code, reason = "says in the OpenAPI document what `Problem` becomes")]
pub(crate) struct Exists(Problem);

/// The documents that were found are more than an answer may have.
#[derive(IntoResponses)]
#[response(status = 413, content_type = "application/problem+json")]
#[allow(dead_code, reason = "says in the OpenAPI document what `Problem` becomes")]
pub(crate) struct TooMuch(Problem);
