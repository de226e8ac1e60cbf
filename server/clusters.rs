//! Clusters that were worked out, kept for a while.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use lookalike::collection::{ClusterSettings, Clustered};
use tokio::sync;

use crate::{
    app::{App, Permit},
    error::Problem,
};

/// So many are kept, each for another radius.
const KEPT: usize = 4;
/// What took some time is kept for so many times as long although the collection has changed, but not longer than this.
const TIMES: u32 = 20;
const LONGEST: Duration = Duration::from_secs(300);
/// More pairs of signatures than this are not listed.
const MOST_PAIRS: u64 = 20_000_000;

/// The clusters of the last radii that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    kept: Mutex<Vec<Kept>>,
    /// One at a time works: they take all cores.
    turn: Arc<sync::Mutex<()>>,
}

#[derive(Debug, Clone)]
struct Kept {
    clustered: Arc<Clustered>,
    at: Instant,
    took: Duration,
}

impl Kept {
    fn is_fresh(&self, position: u64) -> bool {
        let old = (self.took * TIMES).min(LONGEST);
        self.clustered.position == position || self.at.elapsed() < old
    }
}

impl Clusters {
    fn find(&self, radius: u32, position: u64) -> Option<Arc<Clustered>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|kept| kept.clustered.radius == radius)?;
        found.is_fresh(position).then(|| found.clustered.clone())
    }

    fn keep(&self, clustered: Arc<Clustered>, took: Duration) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.clustered.radius != clustered.radius);
        kept.insert(0, Kept { clustered, at: Instant::now(), took });
        kept.truncate(KEPT);
    }
}

impl App {
    /// The clusters within a radius. Worked out once, even if whoever asked for them does not wait for the end.
    pub(crate) async fn clustered(
        self: &Arc<Self>,
        permit: &Permit,
        radius: u32,
    ) -> Result<Arc<Clustered>, Problem> {
        self.check_radius(radius)?;
        let position = self.collection.snapshot().position();
        if let Some(found) = self.clusters.find(radius, position) {
            return Ok(found);
        }
        let turn =
            self.in_time(async { Ok(self.clusters.turn.clone().lock_owned().await) }).await?;
        self.work(permit, move |app| {
            // For whoever waits, somebody else may have done it.
            let snapshot = app.collection.snapshot();
            if let Some(found) = app.clusters.find(radius, snapshot.position()) {
                return Ok(found);
            }
            let started = Instant::now();
            let settings =
                ClusterSettings { most_pairs: MOST_PAIRS, ..ClusterSettings::new(radius) };
            let clustered = Arc::new(snapshot.clusters(&settings)?);
            app.clusters.keep(clustered.clone(), started.elapsed());
            drop(turn);
            Ok(clustered)
        })
        .await
    }
}
