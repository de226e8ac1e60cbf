//! An index that was built, of whatever kind: saved, and told of.

use std::path::Path;

use lookalike::{
    Signatures,
    index::{Graph, Issl, Method, Tables},
};
use serde_json::{Value, json};

use crate::{index::Choice, output::counted, size};

/// The same graph each time.
pub(crate) const SEED: u64 = 1;

pub(super) enum Built<'a> {
    Tables(Tables<'a>),
    Graph(Graph),
    Issl(Box<Issl<'a>>),
}

impl<'a> Built<'a> {
    /// Builds what was chosen, if it can be kept in a file.
    pub(super) fn new(choice: Choice, rows: &'a Signatures) -> lookalike::Result<Option<Self>> {
        Ok(Some(match choice {
            Choice::Tables(method, build) => Built::Tables(Tables::build(rows, method, build)?),
            Choice::Graph(shape) => Built::Graph(Graph::build(rows, shape, SEED)?),
            Choice::Issl(width) => Built::Issl(Box::new(Issl::build(rows, width)?)),
            Choice::Scan | Choice::Permuted(_) => return Ok(None),
        }))
    }

    /// Saves it, as one over the signatures of a file.
    pub(super) fn save(
        &self,
        path: &Path,
        rows: &Signatures,
        of: Option<&Path>,
    ) -> lookalike::Result<()> {
        match self {
            Built::Tables(tables) => tables.save(path, of),
            Built::Graph(graph) => graph.save(path, rows, of),
            Built::Issl(issl) => issl.save(path, of),
        }
    }

    fn name(&self) -> String {
        match self {
            Built::Tables(tables) => tables.composition().method().to_string(),
            Built::Graph(graph) => graph.shape().to_string(),
            Built::Issl(issl) => format!("issl-{}", issl.width()),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Built::Tables(tables) => tables.bytes() + tables.row_bytes(),
            Built::Graph(graph) => graph.bytes() + graph.signature_bytes(),
            Built::Issl(issl) => issl.bytes(),
        }
    }

    /// What was built over these rows, in words.
    pub(super) fn line(&self, rows: &Signatures) -> String {
        let (name, bits, bytes) = (self.name(), rows.bits(), size::display(self.bytes()));
        let rows = counted(rows.len() as u64, "signature");
        let what = match self {
            Built::Tables(tables) => {
                let count = counted(tables.composition().layouts().len() as u64, "table");
                let exact = exact_within(tables.composition().method(), tables.guarantee());
                format!("{count} in {bytes}, {exact}")
            }
            Built::Graph(graph) => format!("{bytes}, {}", found_by(graph)),
            Built::Issl(issl) => format!(
                "{} in {bytes}, exact for every radius; for the nearest, `--recall` allows it",
                counted(issl.slices() as u64, "slice")
            ),
        };
        format!("{name} over {rows} of {bits} bits, {what}")
    }

    /// The same as JSON.
    pub(super) fn summary(&self, rows: &Signatures) -> Value {
        let mut summary = json!({ "index": self.name(), "rows": rows.len() });
        let rest = match self {
            Built::Tables(tables) => json!({
                "distinct": tables.distinct(),
                "bits": rows.bits(),
                "tables": tables.composition().layouts().len(),
                "key_bits": tables.composition().key_width(),
                "stored": tables.stored(),
                "bytes": self.bytes(),
                "exact_within": tables.guarantee(),
            }),
            Built::Graph(graph) => json!({
                "distinct": graph.distinct(),
                "bits": rows.bits(),
                "bytes": self.bytes(),
                "exact": false,
            }),
            Built::Issl(issl) => json!({
                "distinct": issl.distinct(),
                "bits": rows.bits(),
                "slices": issl.slices(),
                "bytes": self.bytes(),
                "exact_within": rows.bits(),
            }),
        };
        if let (Some(summary), Value::Object(rest)) = (summary.as_object_mut(), rest) {
            summary.extend(rest);
        }
        summary
    }
}

/// How much a graph finds if it looks as hard as was measured.
fn found_by(graph: &Graph) -> String {
    let hardest = graph.curve().points().last();
    match hardest.and_then(|point| graph.curve().at(point.level, 10)) {
        Some(reached) => {
            // Rounded down: what is said here may be asked for.
            let most = (reached.recall * 100.0).floor() / 100.0;
            format!("finds up to {most:.2} of the 10 nearest; `--recall` says how much is enough")
        }
        None => "all compared, as there are so few".to_owned(),
    }
}

/// Up to which radius answers are exact, in words.
fn exact_within(method: Method, guarantee: u32) -> String {
    match method {
        Method::Multi { .. } => "exact for every radius".to_owned(),
        Method::Psm { .. } if guarantee == 0 => "exact for copies only".to_owned(),
        _ => format!("exact up to a radius of {guarantee}"),
    }
}
