//! `lookalike reslice`.

use std::{path::PathBuf, time::Instant};

use clap::Args;
use lookalike::collection::guarantee;
use serde_json::json;

use super::{Global, Outcome};
use crate::{
    collection,
    output::{counted, print, say},
};

/// Make indexes on slices of the signatures in the database, for searches by SQL alone
///
/// Signatures that differ in H bits share one of H + 1 slices, so a B-tree index on each of them leads to all within the
/// radius. Wider radii have shorter slices, which more strangers share.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike reslice news --radius 3
  lookalike reslice news --none")]
pub(crate) struct Reslice {
    /// The collection
    #[arg(value_name = "COLLECTION")]
    collection: PathBuf,

    /// The radius within which the database is to find all by itself
    #[arg(long, short, value_name = "BITS", required_unless_present = "none")]
    radius: Option<u32>,

    /// Drop the indexes
    #[arg(long, conflicts_with = "radius")]
    none: bool,
}

impl Reslice {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let collection = collection::open(&self.collection, global)?;
        let started = Instant::now();
        collection.reslice(self.radius)?;
        let seconds = started.elapsed().as_secs_f64();
        let slices = collection.with_reader(|store| store.slices())?;
        collection.close()?;
        let radius = slices.map(guarantee);
        if global.json() {
            print(json!({ "slices": slices, "exact_within": radius, "seconds": seconds }))?;
        }
        say(global, || {
            let path = self.collection.display();
            let told = match (slices, radius) {
                (Some(slices), Some(radius)) => {
                    let slices = counted(slices.into(), "slice");
                    format!("{slices}, by which SQL finds all within a radius of {radius}")
                }
                _ => "no slices".to_owned(),
            };
            format!("{path}: {told} ({seconds:.1} s)")
        });
        Ok(Outcome::Done)
    }
}
