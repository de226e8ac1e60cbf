//! The page: plain files that are part of the program, and the sample documents that it loads.

use std::sync::LazyLock;

use axum::{
    Router,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Map, Value, json};

/// Nothing from elsewhere, whatever a document may say.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

macro_rules! files {
    ($($path:literal $file:literal $media:literal;)*) => {
        /// The files of the page: where they are asked for, what they are, and what is in them.
        const FILES: &[(&str, &str, &str)] =
            &[$(($path, $media, include_str!(concat!("page/", $file)))),*];
    };
}

files! {
    "/" "index.html" "text/html; charset=utf-8";
    "/style.css" "style.css" "text/css; charset=utf-8";
    "/favicon.svg" "favicon.svg" "image/svg+xml";
    "/add.js" "add.js" "text/javascript; charset=utf-8";
    "/api.js" "api.js" "text/javascript; charset=utf-8";
    "/app.js" "app.js" "text/javascript; charset=utf-8";
    "/bits.js" "bits.js" "text/javascript; charset=utf-8";
    "/charts.js" "charts.js" "text/javascript; charset=utf-8";
    "/cluster.js" "cluster.js" "text/javascript; charset=utf-8";
    "/clusters.js" "clusters.js" "text/javascript; charset=utf-8";
    "/collection.js" "collection.js" "text/javascript; charset=utf-8";
    "/compare.js" "compare.js" "text/javascript; charset=utf-8";
    "/diff.js" "diff.js" "text/javascript; charset=utf-8";
    "/dom.js" "dom.js" "text/javascript; charset=utf-8";
    "/empty.js" "empty.js" "text/javascript; charset=utf-8";
    "/format.js" "format.js" "text/javascript; charset=utf-8";
    "/picture.js" "picture.js" "text/javascript; charset=utf-8";
    "/problem.js" "problem.js" "text/javascript; charset=utf-8";
    "/routes.js" "routes.js" "text/javascript; charset=utf-8";
    "/search.js" "search.js" "text/javascript; charset=utf-8";
}

/// Pages of a documentation in several releases: natural near-duplicates.
static SAMPLE: LazyLock<String> = LazyLock::new(|| sample(include_str!("../examples/docs.jsonl")));

/// The routes of the page.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let files = FILES.iter().fold(Router::new(), |router, &(path, media, text)| {
        router.route(path, get(move || async move { file(media, text) }))
    });
    files.route("/sample.jsonl", get(|| async { file("application/x-ndjson", SAMPLE.as_str()) }))
}

fn file(media: &'static str, text: &'static str) -> Response {
    let mut response = text.into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, media),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The next version of the program has another page.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Documents as they are added: id, text, and the other fields as the payload.
fn sample(lines: &str) -> String {
    let document = |line: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        let (id, text) = (fields.remove("id")?, fields.remove("text")?);
        Some(json!({ "id": id, "text": text, "payload": fields }).to_string() + "\n")
    };
    lines.lines().filter_map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_documents() {
        assert_eq!(SAMPLE.lines().count(), 144);
        assert!(SAMPLE.lines().all(|line| line.contains("\"payload\":{\"")));
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let path = if name == "index.html" { "/".to_owned() } else { format!("/{name}") };
            assert!(FILES.iter().any(|(served, ..)| *served == path), "{name}");
        }
    }
}
