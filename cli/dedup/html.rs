//! `report.html`: a report for people, one file that needs nothing else.

mod chart;
mod check;
mod clusters;
mod differences;
mod pictures;
mod words;

use std::{io::Write, path::Path};

use anyhow::Context;
use lookalike::partial::Partial;
use serde_json::Value;

use self::{
    check::check,
    clusters::{examples, largest, loosest},
    pictures::pictures,
    words::{escape, grouped, many, name_cell, percent, put, share, table, time},
};
use super::report::Report;
use crate::size;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// The browser is told as well that nothing comes from elsewhere.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// Alarms and input files that are listed; all are in `report.json`.
const LISTED: usize = 20;

/// Writes the page, whole or not at all.
pub(crate) fn write(report: &Report, path: &Path) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    let mut file = Partial::create(path).with_context(name)?;
    file.write_all(page(report).as_bytes()).with_context(name)?;
    file.complete().with_context(name)
}

/// A name for links, a heading, and the content.
type Section = (&'static str, &'static str, fn(&Report) -> String);

const SECTIONS: [Section; 6] = [
    ("check", "Was it right?", check),
    ("pictures", "In pictures", pictures),
    ("largest", "Largest clusters", largest),
    ("loosest", "Loosest clusters", loosest),
    ("examples", "Examples", examples),
    ("settings", "Settings", settings),
];

fn page(report: &Report) -> String {
    let title = format!(
        "lookalike: {} of {} removed",
        grouped(report.removed),
        many(report.documents, "document")
    );
    let mut links = String::new();
    let mut sections = String::new();
    for (id, heading, content) in SECTIONS {
        put(&mut links, format_args!("<a href=\"#{id}\">{heading}</a>"));
        let content = content(report);
        put(
            &mut sections,
            format_args!(
                "<section id={id} aria-labelledby={id}-heading>\n<h2 id={id}-heading>{heading}</h2>\n{content}</section>"
            ),
        );
    }
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{POLICY}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n<link rel=icon href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n{}<nav aria-label=Sections>\n{links}</nav>\n</header>\n<main>\n{sections}</main>\n\
         <footer>{}</footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&title),
        saved(report),
        escape(&report.program),
    )
}

/// What the run was worth, in a sentence and in large numbers; alarms come before all numbers.
fn saved(report: &Report) -> String {
    let mut html = format!("<h1>{}</h1>\n{}", sentence(report), alarms(report));
    let near = report.removed - report.copies;
    let seconds = seconds(report);
    let speed = report.documents as f64 / seconds.max(1e-9);
    let removed_text = size::display(report.removed_bytes);
    let numbers = [
        ("documents", grouped(report.documents), format!("{} kept", grouped(report.kept))),
        ("removed", grouped(report.removed), share(report.removed, report.documents)),
        ("exact copies", grouped(report.copies), share(report.copies, report.documents)),
        ("near-duplicates", grouped(near), share(near, report.documents)),
        ("text removed", removed_text, share(report.removed_bytes, report.text_bytes)),
        ("time", time(seconds), if resumed(report) { "this run; resumed" } else { "" }.into()),
        ("documents a second", grouped(speed.round() as u64), String::new()),
    ];
    html += "<dl class=numbers>\n";
    // Without work done here, its time and speed say nothing.
    let told = if seconds > 0.0 { numbers.len() } else { numbers.len() - 2 };
    for (name, number, note) in &numbers[..told] {
        put(
            &mut html,
            format_args!(
                "<div><dt>{name}</dt><dd><strong>{number}</strong><small>{note}</small></dd></div>"
            ),
        );
    }
    html + "</dl>\n"
}

fn sentence(report: &Report) -> String {
    let documents = many(report.documents, "document");
    match (report.documents, report.removed) {
        (0, _) => "There were no documents.".into(),
        (1, 0) => "Nothing was removed: there is one document only.".into(),
        (_, 0) => format!("Nothing was removed: none of {documents} is like another."),
        (_, removed) => format!(
            "{} of {documents} ({}) {} removed, {} of text.",
            grouped(removed),
            share(removed, report.documents),
            if removed == 1 { "was" } else { "were" },
            size::display(report.removed_bytes),
        ),
    }
}

/// How long this run took.
fn seconds(report: &Report) -> f64 {
    report.stages.iter().map(|stage| stage.seconds).sum()
}

fn resumed(report: &Report) -> bool {
    report.stages.iter().any(|stage| stage.resumed)
}

fn alarms(report: &Report) -> String {
    if report.alarms.is_empty() {
        return String::new();
    }
    let number = many(report.alarms.len() as u64, "alarm");
    let mut html = format!(
        "<section class=alarm role=alert aria-label=Alarms>\n\
         <p><strong>⚠ {number}.</strong> The result was written all the same, as <code>--force</code> asks for.</p>\n<ul>\n"
    );
    for alarm in report.alarms.iter().take(LISTED) {
        put(&mut html, format_args!("<li>{}</li>", escape(alarm)));
    }
    if let Some(more @ 1..) = report.alarms.len().checked_sub(LISTED) {
        put(&mut html, format_args!("<li>and {more} more, in report.json</li>"));
    }
    html + "</ul>\n</section>\n"
}

fn settings(report: &Report) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    if let Some(settings) = report.settings.as_object() {
        for (name, value) in settings {
            match (name.as_str(), value) {
                ("input", Value::Array(files)) => lines.push(("input".into(), input(files))),
                _ => flatten(name, value, &mut lines),
            }
        }
    }
    lines.push(("max-loss".into(), percent(report.max_loss)));
    let counts = &report.counts;
    for (name, count) in [
        ("documents with different features", counts.entries as u64),
        ("pairs of signatures compared", counts.compared),
        ("pairs with a key in common and near signatures", counts.candidates),
        ("pairs of which the features were compared", counts.verified),
        ("pairs expected in all, by the sample", report.checked.pairs_expected),
    ] {
        lines.push((name.into(), grouped(count)));
    }
    let cells = |(name, value): &(String, String)| {
        vec![name_cell(name), format!("<td>{}</td>", escape(value))]
    };
    let lines: Vec<Vec<String>> = lines.iter().map(cells).collect();
    format!(
        "<p>All of this page is in <code>report.json</code>, too.</p>\n{}",
        table("Settings", &["setting", "value"], &lines)
    )
}

/// The names of input files; each comes with its size and time.
fn input(files: &[Value]) -> String {
    let name = |file: &Value| file.get(0).and_then(Value::as_str).unwrap_or("?").to_owned();
    let mut names: Vec<String> = files.iter().take(LISTED).map(name).collect();
    if let Some(more @ 1..) = files.len().checked_sub(LISTED) {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// A value, or those inside it under names with dots; what is not set is left out.
fn flatten(name: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(inner) => {
            inner.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, lines));
        }
        Value::String(text) => lines.push((name.to_owned(), text.clone())),
        other => lines.push((name.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests;
