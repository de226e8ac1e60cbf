//! What there is to tell about a collection.

use lookalike::{
    Recipe, Result,
    collection::{Collection, PartAbout, guarantee, rfc3339},
};
use serde_json::{Map, Value, json};

use super::facts;
use crate::{output::counted, size};

/// More signatures than this are not sorted to count the distinct ones.
const MOST_COUNTED: usize = 1_000_000;

pub(super) fn about(collection: &Collection) -> Result<Map<String, Value>> {
    let (about, snapshot) = (collection.about(), collection.snapshot());
    let (counts, slices, store_bytes) =
        collection.with_reader(|store| Ok((store.counts()?, store.slices()?, store.bytes()?)))?;
    let parts: Vec<PartAbout> = snapshot.parts().collect();
    let distinct = match snapshot.len() <= MOST_COUNTED {
        true => Some(collection.count_distinct()?),
        false => distinct_of(&parts),
    };
    let recipe = about.recipe.as_ref();
    let keeps = [("margins", about.keeps.margins), ("texts", about.keeps.texts)];
    let keeps: Vec<&str> =
        keeps.iter().filter(|(_, keeps)| *keeps).map(|(name, _)| *name).collect();
    Ok(facts(json!({
        "kind": "collection",
        "rows": snapshot.len(),
        "distinct": distinct,
        "bits": about.bits,
        "created": rfc3339(about.created),
        "store": collection.stored_in().address(),
        "store_bytes": store_bytes,
        "index_bytes": collection.segment_bytes(),
        "removed": counts.removed,
        "position": snapshot.position(),
        "keeps": keeps,
        "index": about.index.to_string(),
        "sql_slices": slices,
        "sql_within": slices.map(guarantee),
        "parts": parts.iter().map(about_part).collect::<Vec<_>>(),
        "recipe_hash": recipe.map(Recipe::hash),
        "recipe": recipe.map(|recipe| serde_json::to_value(recipe).unwrap_or_default()),
    })))
}

/// How many signatures are distinct in each part, together. Those that several parts have count in each.
fn distinct_of(parts: &[PartAbout]) -> Option<usize> {
    parts.iter().map(|part| part.distinct).sum()
}

fn about_part(part: &PartAbout) -> Value {
    json!({
        "index": part.index,
        "rows": part.rows,
        "removed": part.removed,
        "distinct": part.distinct,
        "bytes": part.bytes,
        "saved": part.saved,
        "exact_within": part.exact_within,
    })
}

/// The parts for people, a line each.
pub(super) fn part_lines(parts: &[Value]) -> String {
    let number = |part: &Value, name: &str| part[name].as_u64().unwrap_or_default();
    let line = |part: &Value| {
        let exact = match part["exact_within"].as_u64() {
            Some(radius) => format!("exact within {radius}"),
            None => "approximate".to_owned(),
        };
        let removed = match number(part, "removed") {
            0 => String::new(),
            removed => format!(", {removed} removed"),
        };
        let saved = if part["saved"] == true { "" } else { ", not saved" };
        format!(
            "{}: {}{removed}, {}, {exact}{saved}",
            part["index"].as_str().unwrap_or_default(),
            counted(number(part, "rows"), "row"),
            size::display(number(part, "bytes")),
        )
    };
    parts.iter().map(line).collect::<Vec<_>>().join(&format!("\n{:<12} ", ""))
}
