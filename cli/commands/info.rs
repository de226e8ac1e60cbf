//! `lookalike info`.

mod collection;

use std::{collections::HashSet, path::PathBuf};

use clap::Args;
use lookalike::{
    Recipe, SignatureFile,
    collection::Collection,
    features::terms::TermStatistics,
    index::{GraphFile, IndexFile, IsslFile},
};
use serde_json::{Map, Value, json};

use super::{Global, Outcome};
use crate::{
    collection::open_reader,
    opened::OpenedIndex,
    output::{open_signatures, print},
};

/// Tell what is in a collection or in a file of signatures or term statistics, or what an index is
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike info news\n  lookalike info news.sig\n  lookalike info codes.npy --format json"
)]
pub(crate) struct Info {
    /// A collection, a .sig, .npy, .hex or .parquet file of signatures, an index (.idx), or a file from `lookalike terms`
    file: PathBuf,
}

impl Info {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let facts = if Collection::is_in(&self.file) {
            collection::about(&open_reader(&self.file, global)?)?
        } else if TermStatistics::is_in(&self.file) {
            about_terms(&TermStatistics::open(&self.file)?)
        } else if let Some(index) = OpenedIndex::new(&self.file)? {
            about_index(&index)
        } else {
            about_signatures(&open_signatures(&self.file)?)
        };
        if global.json() {
            print(Value::Object(facts))?;
            return Ok(Outcome::Done);
        }
        let lines = facts.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Object(recipe) => recipe_line(recipe),
                Value::Array(names) if names.is_empty() => "none".to_owned(),
                Value::Array(parts) if name == "parts" => collection::part_lines(parts),
                Value::Array(points) if points[0].is_object() => curve_lines(points),
                Value::Array(names) => {
                    names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
                }
                other => other.to_string(),
            };
            format!("{name:<12} {value}")
        });
        print(lines.collect::<Vec<_>>().join("\n"))?;
        Ok(Outcome::Done)
    }
}

fn about_terms(terms: &TermStatistics) -> Map<String, Value> {
    let totals = terms.totals();
    facts(json!({
        "kind": "terms",
        "documents": totals.documents,
        "occurrences": totals.occurrences,
        "distinct": totals.distinct,
        "fingerprint": terms.fingerprint(),
    }))
}

fn about_index(index: &OpenedIndex) -> Map<String, Value> {
    match index {
        OpenedIndex::Tables(file) => about_tables(file),
        OpenedIndex::Graph(file) => about_graph(file, index),
        OpenedIndex::Issl(file) => about_issl(file, index),
    }
}

/// Bytes for each row, to a tenth.
fn each(bytes: u64, rows: u64) -> f64 {
    (10.0 * bytes as f64 / rows.max(1) as f64).round() / 10.0
}

fn about_graph(file: &GraphFile, index: &OpenedIndex) -> Map<String, Value> {
    let curve = file.curve();
    let points = curve.points().iter().map(|point| {
        let [one, ten, hundred] = point.recalls;
        json!({ "level": point.level, "recall_1": one, "recall_10": ten, "recall_100": hundred })
    });
    facts(json!({
        "kind": "graph",
        "method": index.kind().to_string(),
        "rows": file.rows(),
        "distinct": file.distinct(),
        "bits": file.bits(),
        "exact": false,
        "bytes": file.bytes(),
        "bytes_a_row": each(file.bytes(), file.rows()),
        "signatures": file.signatures_name(),
        "measured_on": curve.queries(),
        "curve": points.collect::<Vec<_>>(),
    }))
}

fn about_issl(file: &IsslFile, index: &OpenedIndex) -> Map<String, Value> {
    facts(json!({
        "kind": "issl",
        "method": index.kind().to_string(),
        "rows": file.rows(),
        "distinct": file.distinct(),
        "bits": file.bits(),
        "exact": "within a radius",
        "bytes": file.bytes(),
        "bytes_a_row": each(file.bytes(), file.rows()),
        "signatures": file.signatures_name(),
    }))
}

fn about_tables(index: &IndexFile) -> Map<String, Value> {
    let composition = index.composition();
    facts(json!({
        "kind": "index",
        "method": composition.method(),
        "rows": index.rows(),
        "distinct": index.distinct(),
        "bits": index.bits(),
        "tables": composition.layouts().len(),
        "key_bits": composition.key_width(),
        "stored": index.stored(),
        "exact_within": composition.guarantee(),
        "bytes": index.bytes(),
        "bytes_a_row": each(index.bytes(), index.rows()),
        "signatures": index.signatures_name(),
    }))
}

fn about_signatures(file: &SignatureFile) -> Map<String, Value> {
    let signatures = file.signatures();
    let columns = file.columns();
    let columns = [
        ("ids", columns.ids),
        ("margins", columns.margins),
        ("passages", columns.passages),
        ("payloads", columns.payloads),
    ];
    let columns: Vec<&str> =
        columns.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let distinct: HashSet<&[u64]> = signatures.rows().collect();
    facts(json!({
        "kind": "signatures",
        "rows": signatures.len(),
        "distinct": distinct.len(),
        "bits": signatures.bits(),
        "unsigned": file.recipe().map(|_| file.unsigned()),
        "columns": columns,
        "recipe_hash": file.recipe().map(Recipe::hash),
        "recipe": file.recipe().map(|recipe| serde_json::to_value(recipe).unwrap_or_default()),
    }))
}

fn facts(facts: Value) -> Map<String, Value> {
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

/// What a graph finds, a line for each effort.
fn curve_lines(points: &[Value]) -> String {
    let share = |point: &Value, name: &str| point[name].as_f64().unwrap_or_default();
    let line = |point: &Value| {
        format!(
            "level {:>4}: finds {:.3} of the nearest, {:.3} of 10, {:.3} of 100",
            point["level"].as_u64().unwrap_or_default(),
            share(point, "recall_1"),
            share(point, "recall_10"),
            share(point, "recall_100")
        )
    };
    points.iter().map(line).collect::<Vec<_>>().join(&format!("\n{:<12} ", ""))
}

/// A recipe's name for people; the whole of it is in the JSON.
fn recipe_line(recipe: &Map<String, Value>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&recipe["signature"]["kind"]);
    let shingle = &recipe["features"]["shingle"];
    let (length, unit) = (&shingle["length"], text(&shingle["unit"]));
    format!(
        "{}: {kind}, runs of {length} {unit}, weight {}",
        text(&recipe["name"]),
        text(&recipe["weight"])
    )
}
