//! Who is let in: the token, the number of requests at a time; and what is noted of each.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{app::App, error::Problem, json::milliseconds, options::Trust, room::hold};

/// Lets a request in, or tells why not; and notes how it went.
pub(crate) async fn admit(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let method = request.method().clone();
    let response = match let_in(&app, route, &mut request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let response = match route.starts_with("/v1/") {
        true => hold(&app, response).await,
        false => response,
    };
    let (status, took) = (response.status(), started.elapsed());
    app.metrics.answered(route, method.as_str(), status, took);
    let ms = milliseconds(started);
    match status.is_server_error() {
        true => tracing::warn!(%method, route, status = status.as_u16(), ms, "answered"),
        false => tracing::debug!(%method, route, status = status.as_u16(), ms, "answered"),
    }
    response
}

fn let_in(app: &App, route: &str, request: &mut Request) -> Result<(), Problem> {
    let Some(needed) = needed(request.method(), route) else { return Ok(()) };
    if app.only_here && !is_here(request.headers()) {
        return Err(Problem::not_allowed(
            "without a token this service answers to localhost and addresses of this machine alone: see `Host`",
        ));
    }
    match (app.tokens.trust(token(request.headers())), needed) {
        (Trust::None, _) => {
            return Err(Problem::no_token(
                "send `Authorization: Bearer TOKEN` with a token of this service",
            ));
        }
        (Trust::Reads, Trust::Writes) => {
            return Err(Problem::not_allowed("this token may read, not write"));
        }
        _ => {}
    }
    // However many requests there are, what they do to the service can be watched.
    if route != "/metrics" {
        request.extensions_mut().insert(app.admit()?);
    }
    Ok(())
}

/// What a request needs; nothing for the page and for those that watch.
fn needed(method: &Method, route: &str) -> Option<Trust> {
    let writes = method == Method::DELETE || matches!(route, "/v1/documents" | "/v1/seen");
    match route {
        "/v1/openapi.json" => None,
        _ if route.starts_with("/v1/") && writes => Some(Trust::Writes),
        _ if route.starts_with("/v1/") || route == "/metrics" => Some(Trust::Reads),
        _ => None,
    }
}

/// Whether a request says that it is for this machine by an address or by `localhost`. A page from elsewhere whose name
/// was made to lead here says its own name.
fn is_here(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return true;
    };
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|digit| digit.is_ascii_digit()) { name } else { host }
    });
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_needs() {
        for (method, route, wanted) in [
            (Method::GET, "/", None),
            (Method::GET, "/healthz", None),
            (Method::GET, "/v1/openapi.json", None),
            (Method::GET, "/metrics", Some(Trust::Reads)),
            (Method::POST, "/v1/search", Some(Trust::Reads)),
            (Method::POST, "/v1/documents", Some(Trust::Writes)),
            (Method::POST, "/v1/seen", Some(Trust::Writes)),
            (Method::GET, "/v1/documents/{id}", Some(Trust::Reads)),
            (Method::DELETE, "/v1/documents/{id}", Some(Trust::Writes)),
        ] {
            assert_eq!(needed(&method, route), wanted, "{method} {route}");
        }
    }

    #[test]
    fn hosts_of_this_machine() {
        for (host, here) in [
            ("localhost:8080", true),
            ("LOCALHOST", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("harbour.example:8080", false),
            ("localhost.harbour.example", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(is_here(&headers), here, "{host}");
        }
        assert!(is_here(&HeaderMap::new()));
    }

    #[test]
    fn tokens_in_headers() {
        let token_of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            token(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(token_of("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(token_of("bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(token_of("Basic abc="), None);
        assert_eq!(token_of("abc"), None);
    }
}
