//! Clusters that were worked out, kept for a while.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use lookalike::collection::{ClusterSettings, Clustered};
use rayon::{ThreadPool, ThreadPoolBuilder};
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
    pool: OnceLock<ThreadPool>,
}

/// How fresh clusters have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Those of a short while ago will do.
    Recent,
    /// Of the collection as it is now.
    Now,
}

/// The last change of the collection, and whether it matters.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    position: u64,
    fresh: Fresh,
}

#[derive(Debug, Clone)]
struct Kept {
    clustered: Arc<Clustered>,
    at: Instant,
    took: Duration,
}

impl Kept {
    fn will_do(&self, wanted: Wanted) -> bool {
        let old = (self.took * TIMES).min(LONGEST);
        let is_recent = self.at.elapsed() < old && wanted.fresh == Fresh::Recent;
        self.clustered.position == wanted.position || is_recent
    }
}

impl Clusters {
    fn find(&self, radius: u32, wanted: Wanted) -> Option<Arc<Clustered>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|kept| kept.clustered.radius == radius)?;
        found.will_do(wanted).then(|| found.clustered.clone())
    }

    /// Threads of their own: those that others share are not to be busy for long.
    fn pool(&self) -> Result<&ThreadPool, Problem> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let pool = ThreadPoolBuilder::new().num_threads(cores.div_ceil(2)).build();
        let pool = pool.map_err(|_| Problem::unavailable("no threads").soon_over())?;
        Ok(self.pool.get_or_init(|| pool))
    }

    fn keep(&self, clustered: Arc<Clustered>, took: Duration) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.clustered.radius != clustered.radius);
        kept.insert(0, Kept { clustered, at: Instant::now(), took });
        kept.truncate(KEPT);
    }
}

impl App {
    fn position_of(&self, fresh: Fresh) -> Wanted {
        Wanted { position: self.collection.snapshot().position(), fresh }
    }

    /// The clusters within a radius. Worked out once, even if whoever asked for them does not wait for the end.
    pub(crate) async fn clustered(
        self: &Arc<Self>,
        permit: &Permit,
        radius: u32,
        fresh: Fresh,
    ) -> Result<Arc<Clustered>, Problem> {
        self.check_radius(radius)?;
        if let Some(found) = self.clusters.find(radius, self.position_of(fresh)) {
            return Ok(found);
        }
        let turn =
            self.in_time(async { Ok(self.clusters.turn.clone().lock_owned().await) }).await?;
        self.work(permit, move |app| {
            // For whoever waits, somebody else may have done it.
            if let Some(found) = app.clusters.find(radius, app.position_of(fresh)) {
                return Ok(found);
            }
            let started = Instant::now();
            let settings =
                ClusterSettings { most_pairs: MOST_PAIRS, ..ClusterSettings::new(radius) };
            let clustered = Arc::new(
                app.clusters.pool()?.install(|| app.collection.snapshot().clusters(&settings))?,
            );
            app.clusters.keep(clustered.clone(), started.elapsed());
            drop(turn);
            Ok(clustered)
        })
        .await
    }
}
