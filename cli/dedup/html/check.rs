//! Was it right? What the sample says, and the settings that decided.

use lookalike::verify::Verify;
use serde_json::Value;

use super::words::{escape, grouped, many, percent, put, share};
use crate::dedup::report::Report;

/// With fewer pairs in the sample, one that is missed weighs too much.
const FEW_PAIRS: usize = 100;

pub(super) fn check(report: &Report) -> String {
    let mut html = format!("{}<dl class=words>\n", sample(report));
    for (name, words) in dial(report) {
        put(&mut html, format_args!("<dt>{name}</dt><dd>{words}</dd>"));
    }
    html + "</dl>\n" + &notes(report)
}

/// What the documents say that were compared with all others.
fn sample(report: &Report) -> String {
    let checked = &report.checked;
    let compared = compared(checked.documents as u64);
    let Some(recall) = checked.recall else {
        return match checked.documents {
            0 => {
                "<p>No documents were compared with all others, so there is no check.</p>\n".into()
            }
            _ => format!(
                "<p>{compared} None has a near-duplicate that is no exact copy, \
                 so there was nothing to miss.</p>\n{}",
                left_behind(report)
            ),
        };
    };
    let promised = report.dial.recall;
    let (kind, verdict) = match recall >= promised {
        true => ("good", "✓ at least as many as promised"),
        false => ("poor", "⚠ fewer than promised"),
    };
    let few = match checked.pairs < FEW_PAIRS {
        true => " These are few pairs, so it is a rough number.",
        false => "",
    };
    format!(
        "<p class={kind}><strong>{} of the near-duplicates in the sample were found</strong> <span>{verdict} ({})</span></p>\n\
         <p>{compared} {} of them have near-duplicates that are no exact copies: \
         {}, of which {} were found; the mean over documents is {}.{few}</p>\n{}",
        percent(recall),
        percent(promised),
        grouped(checked.with_pairs as u64),
        many(checked.pairs as u64, "pair"),
        checked.recall_of_pairs.map_or("an unknown share".into(), percent),
        percent(recall),
        left_behind(report),
    )
}

fn compared(documents: u64) -> String {
    let were = if documents == 1 { "was" } else { "were" };
    format!("{} {were} compared with all others.", many(documents, "document"))
}

fn left_behind(report: &Report) -> String {
    let (left, kept) = (report.checked.left_behind as u64, report.checked.kept as u64);
    match (left, kept) {
        (_, 0) => String::new(),
        (0, _) => format!(
            "<p>No document that is kept ({} of the sample) is left with a near-duplicate that is kept, too.</p>\n",
            grouped(kept)
        ),
        _ => format!(
            "<p>{} of {} kept documents of the sample ({}) are left with a near-duplicate that is kept, too.</p>\n",
            grouped(left),
            grouped(kept),
            share(left, kept),
        ),
    }
}

/// The settings that decide, in words.
fn dial(report: &Report) -> Vec<(&'static str, String)> {
    let dial = &report.dial;
    let mut words = vec![
        (
            "Similarity",
            format!("Near-duplicates are at least {} alike, as asked for.", dial.similarity),
        ),
        (
            "Bands",
            format!(
                "Each document has {} keys, of {} minima each. Documents with a key in common are candidates.",
                dial.bands.count, dial.bands.rows
            ),
        ),
        (
            "Radius",
            format!(
                "Candidates whose signatures are at most {} bits apart are looked at.",
                dial.radius
            ),
        ),
        ("Verification", verification(dial.verify)),
    ];
    for (key, name) in [("linkage", "Clusters"), ("keep", "Keeper")] {
        if let Some(value) = report.settings.get(key).and_then(Value::as_str) {
            words.push((name, rule(value)));
        }
    }
    words
}

fn verification(verify: Verify) -> String {
    match verify {
        Verify::None => "None: the distance of the signatures decides.".into(),
        Verify::Jaccard(least) => format!(
            "The features themselves are compared: those that both have are at least {least} of those that either has (Jaccard)."
        ),
        Verify::Containment(least) => format!(
            "The features themselves are compared: those that both have are at least {least} of those of the smaller document (containment)."
        ),
        Verify::Cosine(least) => {
            format!(
                "The weighted features themselves are compared: their cosine is at least {least}."
            )
        }
    }
}

/// Rules of linkage and of keeping in words; those with a field speak for themselves.
fn rule(value: &str) -> String {
    match value {
        "star" => "All documents of a cluster are alike its keeper.".into(),
        "complete" => "All documents of a cluster are alike each other.".into(),
        "components" => {
            "The documents of a cluster are connected by alike pairs; its ends need not be alike."
                .into()
        }
        "first" => "The first document of a cluster is kept.".into(),
        "longest" => "The longest document of a cluster is kept.".into(),
        other => format!("<code>{}</code>", escape(other)),
    }
}

/// What was not looked at.
fn notes(report: &Report) -> String {
    let huge = &report.counts.huge;
    let all: u64 = huge.iter().map(|&size| size as u64).sum();
    let notes = [
        (report.unsigned, "without words: kept without a look."),
        (report.skipped, "could not be read: neither kept nor removed."),
        (
            all,
            "in groups with a key in common that are too large to be compared; other keys may have led to them.",
        ),
    ];
    let mut html = String::new();
    for (documents, words) in notes.iter().filter(|note| note.0 > 0) {
        let documents = many(*documents, "document");
        put(&mut html, format_args!("<li><strong>{documents}</strong> {words}</li>"));
    }
    if html.is_empty() { html } else { format!("<ul class=notes>\n{html}</ul>\n") }
}
