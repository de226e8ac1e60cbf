//! What happened, in pictures.

use super::{
    chart::{self, Histogram, Row},
    seconds,
    words::{count_cell, grouped, many, name_cell, number_cell, percent, table, time},
};
use crate::{
    dedup::report::{Report, SourceReport},
    size,
};

/// Sources that have a bar; the others are in the table.
const BARS: usize = 20;

pub(super) fn pictures(report: &Report) -> String {
    let pictures = [distances(report), similarities(report), sizes(report)];
    let mut html = pictures.concat();
    html += &sources(report);
    html += &stages(report);
    format!("<div class=pictures>\n{html}</div>\n")
}

/// A picture with its heading, what to know of it, and its numbers as a table.
fn figure(title: &str, note: &str, picture: &str, numbers: &str) -> String {
    format!(
        "<figure>\n<figcaption><h3>{title}</h3><p>{note}</p></figcaption>\n{picture}\n{numbers}</figure>\n"
    )
}

fn numbers(head: &[&str], lines: &[Vec<String>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let table = table("numbers", head, lines);
    format!("<details><summary>The numbers</summary>\n{table}</details>\n")
}

fn histogram(histogram: &Histogram<'_>, note: &str, what: &str) -> String {
    if histogram.counts.iter().all(|&count| count == 0) {
        let none = format!("<p class=none>No {what}.</p>");
        return figure(histogram.title, note, &none, "");
    }
    let counts = (histogram.first..).zip(histogram.counts).filter(|count| *count.1 > 0);
    let lines: Vec<Vec<String>> = counts
        .map(|(number, &count)| {
            vec![number_cell(&(histogram.name)(number), number as f64), count_cell(count)]
        })
        .collect();
    let numbers = numbers(&[histogram.axis, what], &lines);
    figure(histogram.title, note, &histogram.svg(), &numbers)
}

/// Copies would hide all others.
fn without_copies(report: &Report) -> String {
    match report.copies {
        0 => "Removed documents and their keepers.".into(),
        1 => "Removed documents and their keepers, without the exact copy.".into(),
        copies => format!(
            "Removed documents and their keepers, without {} exact copies.",
            grouped(copies)
        ),
    }
}

fn distances(report: &Report) -> String {
    let mut counts = report.distances.clone();
    if let Some(copies) = counts.first_mut() {
        *copies = copies.saturating_sub(report.copies);
    }
    // Members of a chain may be farther from its keeper than any pair.
    let has_chains = report.settings.get("linkage").is_some_and(|linkage| linkage == "components");
    let last = counts.len().saturating_sub(1);
    let name = |bits: usize| match has_chains && bits == last {
        true => format!("{bits} or more"),
        false => bits.to_string(),
    };
    let every = (counts.len() / 8).max(1).next_multiple_of(if counts.len() > 16 { 5 } else { 1 });
    let picture = Histogram {
        title: "Distances",
        axis: "bits apart",
        first: 0,
        counts: &counts,
        name: &name,
        every,
        log: false,
    };
    histogram(&picture, &without_copies(report), "near-duplicates")
}

fn similarities(report: &Report) -> String {
    let mut counts = report.similarities.clone();
    if let Some(copies) = counts.last_mut() {
        *copies = copies.saturating_sub(report.copies);
    }
    let asked = (report.dial.similarity * 100.0).floor() as usize;
    let lowest = counts.iter().position(|&count| count > 0).unwrap_or(asked);
    let first = lowest.min(asked).min(counts.len());
    let picture = Histogram {
        title: "Similarities",
        axis: "similarity",
        first,
        counts: &counts[first..],
        name: &|hundredths| format!("{:.2}", hundredths as f64 / 100.0),
        every: if counts.len() - first > 40 { 10 } else { 5 },
        log: false,
    };
    histogram(&picture, &without_copies(report), "near-duplicates")
}

fn sizes(report: &Report) -> String {
    let power = |size: usize| size.next_power_of_two().trailing_zeros() as usize;
    let most = report.sizes.iter().map(|&(size, _)| power(size)).max().unwrap_or(1);
    let mut counts = vec![0; most];
    for &(size, clusters) in &report.sizes {
        counts[power(size).max(1) - 1] += clusters as u64;
    }
    let name = |power: usize| match 1_u64 << power {
        2 => "2".to_owned(),
        // Larger ones are rounded: 513 to 1024 is about a thousand.
        high @ ..=64 => format!("{}–{high}", high / 2 + 1),
        high if high < 1024 => format!("–{high}"),
        high if high < 1 << 20 => format!("–{}K", high >> 10),
        high => format!("–{}M", high >> 20),
    };
    let picture = Histogram {
        title: "Cluster sizes",
        axis: "documents in a cluster",
        first: 1,
        counts: &counts,
        name: &name,
        every: counts.len().div_ceil(9).max(1),
        log: true,
    };
    let note = format!("{}; both scales are logarithmic.", many(report.clusters as u64, "cluster"));
    histogram(&picture, &note, "clusters")
}

fn sources(report: &Report) -> String {
    let limit = report.max_loss;
    let rows: Vec<Row> =
        report.sources.iter().take(BARS).map(|source| source_row(source, limit)).collect();
    let note = match report.sources.len() {
        0 => "There are none.".to_owned(),
        all if all > BARS => format!("The {BARS} that lose most documents; below, the others."),
        _ => "Those that lose most documents are first.".to_owned(),
    };
    let note = format!(
        "{note} <span class=key><svg viewBox=\"0 0 12 12\" aria-hidden=true><rect class=removed width=12 height=12 /></svg> removed, \
         <svg viewBox=\"0 0 12 12\" aria-hidden=true><rect class=kept width=12 height=12 /></svg> kept</span>"
    );
    let words = format!("limit {}", percent(limit));
    let picture = match rows.is_empty() {
        true => String::new(),
        false => chart::rows("Loss of each source", &rows, Some((limit, &words))),
    };
    let lines: Vec<Vec<String>> = report.sources.iter().map(source_line).collect();
    let numbers = numbers(&["source", "documents", "removed", "loss"], &lines);
    figure("Loss of each source", &note, &picture, &numbers)
}

fn source_row(source: &SourceReport, limit: f64) -> Row {
    let loss = source.audit.loss();
    let (removed, documents) = (source.audit.removed, source.audit.documents);
    let over = if loss > limit { ", over the limit" } else { "" };
    Row {
        name: source.source.clone(),
        value: format!("{} of {} ({}){over}", grouped(removed), grouped(documents), percent(loss)),
        parts: vec![(loss, "removed"), (1.0 - loss, "kept")],
    }
}

fn source_line(source: &SourceReport) -> Vec<String> {
    let loss = source.audit.loss();
    vec![
        name_cell(&source.source),
        count_cell(source.audit.documents),
        count_cell(source.audit.removed),
        number_cell(&percent(loss), loss),
    ]
}

fn stages(report: &Report) -> String {
    let stages = &report.stages;
    let longest = stages.iter().map(|stage| stage.seconds).fold(f64::MIN_POSITIVE, f64::max);
    let most = stages.iter().filter_map(|stage| stage.peak_memory).max().unwrap_or(1).max(1) as f64;
    let row =
        |name: &str, value, share| Row { name: name.into(), value, parts: vec![(share, "bar")] };
    let times = stages.iter().map(|stage| {
        let earlier = if stage.resumed { ", done by an earlier run" } else { "" };
        row(stage.name, format!("{}{earlier}", time(stage.seconds)), stage.seconds / longest)
    });
    let memory = stages.iter().filter_map(|stage| {
        let bytes = stage.peak_memory?;
        Some(row(stage.name, size::display(bytes), bytes as f64 / most))
    });
    let (times, memory): (Vec<Row>, Vec<Row>) = (times.collect(), memory.collect());
    let all = format!("{} in all.", time(seconds(report)));
    let most = match report.peak_memory.map(size::display) {
        Some(peak) => {
            format!("The most that was in use up to the end of each stage; {peak} in all.")
        }
        None => "It is not known on this system.".into(),
    };
    figure("Time", &all, &chart::rows("Time of each stage", &times, None), "")
        + &figure("Memory", &most, &chart::rows("Memory of each stage", &memory, None), "")
}
