//! What all requests share: the collection, what signs for it, what writes to it, and what is counted.

use std::{
    future::Future,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use lookalike::{
    Recipe, Signer,
    collection::{Collection, Record},
    plan::Costs,
    recipe::Scratch,
    verify,
};
use rayon::prelude::*;
use tokio::{
    sync::{self, OnceCell, OwnedSemaphorePermit, Semaphore, watch},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    clusters::Clusters,
    error::Problem,
    metrics::Metrics,
    options::{Limits, Options, Tokens, usual_radius},
    room::{Room, room_of},
    writer::Writer,
};

/// The right to be worked on. Whatever works on a request keeps it until it is done, however long the caller waits.
pub(crate) type Permit = Arc<OwnedSemaphorePermit>;

/// A core comes free in this time, unless something is wrong.
pub(crate) const SOON: Duration = Duration::from_secs(2);
/// All bodies together may be as large as so many of the largest.
const BODIES: usize = 16;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    /// None if documents are only read. Before the collection, so that it ends before it.
    pub(crate) writer: Option<Writer>,
    pub(crate) collection: Arc<Collection>,
    pub(crate) signer: Option<Signer>,
    pub(crate) tokens: Tokens,
    /// Whether it is meant for this machine alone.
    pub(crate) only_here: bool,
    pub(crate) limits: Limits,
    /// How far lookalikes are apart where a request does not say.
    pub(crate) radius: u32,
    pub(crate) metrics: Metrics,
    pub(crate) clusters: Clusters,
    costs: fn() -> lookalike::Result<Costs>,
    known_costs: OnceCell<Costs>,
    pub(crate) started: Instant,
    in_flight: Arc<Semaphore>,
    /// Bytes of bodies that may be held at a time.
    room: Arc<Semaphore>,
    /// Who may use a core. More at a time would only slow each other down.
    cores: Arc<Semaphore>,
    ending: watch::Sender<bool>,
    /// Who looks whether all is well: one at a time.
    pub(crate) watching: Arc<sync::Mutex<()>>,
    /// Whether the log of the store could be followed last time.
    pub(crate) follows: AtomicBool,
}

impl App {
    pub(crate) fn new(collection: Arc<Collection>, options: &Options) -> lookalike::Result<Self> {
        let about = collection.about();
        let signer = match about.recipe {
            // Whoever asks with a text brings its margins.
            Some(_) => Some(collection.signer()?.with_margins()),
            None => None,
        };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(App {
            writer: match options.read_only {
                true => None,
                false => Some(Writer::start(collection.clone())?),
            },
            signer,
            tokens: options.tokens.clone(),
            only_here: options.is_only_here(),
            limits: options.limits.clone(),
            radius: options.radius.unwrap_or_else(|| usual_radius(about.bits)),
            metrics: Metrics::new(),
            clusters: Clusters::default(),
            costs: options.costs,
            known_costs: OnceCell::new(),
            started: Instant::now(),
            in_flight: Arc::new(Semaphore::new(options.limits.in_flight)),
            room: room_of(BODIES, &options.limits),
            cores: Arc::new(Semaphore::new(2 * cores)),
            ending: watch::Sender::new(false),
            watching: Arc::default(),
            follows: AtomicBool::new(true),
            collection,
        })
    }

    /// The right to be worked on, unless too many have it already.
    pub(crate) fn admit(&self) -> Result<Permit, Problem> {
        let permit = self.in_flight.clone().try_acquire_owned();
        permit.map(Arc::new).map_err(|_| {
            let most = self.limits.in_flight;
            Problem::too_many(format!("{most} requests are being worked on already")).soon_over()
        })
    }

    /// How many requests are being worked on.
    pub(crate) fn in_flight(&self) -> usize {
        self.limits.in_flight - self.in_flight.available_permits()
    }

    /// Does what takes a core, on a thread of its own: those that serve connections never wait for it.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        permit: &Permit,
        work: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (app, permit) = (self.clone(), permit.clone());
        self.in_time(async {
            let core = self.cores.clone().acquire_owned().await.map_err(|_| ending())?;
            let done = spawn_blocking(move || {
                let done = work(&app);
                drop((app, permit, core));
                done
            });
            done.await.unwrap_or_else(|panic| {
                tracing::error!(%panic, "a request failed");
                Err(Problem::failed("this is a mistake of the program; its log says more"))
            })
        })
        .await
    }

    /// What is done, if it is done in time. If not, it may be done later all the same.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        timeout(self.limits.time, work).await.unwrap_or_else(|_| {
            let seconds = self.limits.time.as_secs_f64();
            let problem =
                format!("this was not done within {seconds} s; it may be done later all the same");
            Err(Problem::unavailable(problem).soon_over())
        })
    }

    /// Refuses a radius that no two signatures are apart.
    pub(crate) fn check_radius(&self, radius: u32) -> Result<(), Problem> {
        let bits = self.bits();
        match radius <= bits {
            true => Ok(()),
            false => Err(Problem::field(
                "radius",
                format!("signatures have {bits} bits, so no two are {radius} apart"),
            )),
        }
    }

    /// Room for a body.
    pub(crate) fn room(&self) -> Room {
        Room::none_of(&self.room)
    }

    /// Whether a core comes free soon; not if all of them work on something that does not end.
    pub(crate) async fn has_a_core(&self) -> bool {
        timeout(SOON, self.cores.acquire()).await.is_ok()
    }

    /// What things cost on this machine, measured once.
    pub(crate) async fn known_costs(&self) -> Result<&Costs, Problem> {
        let costs = self.costs;
        let measure = || async move {
            let measured = spawn_blocking(costs).await.map_err(|_| ending())?;
            Ok::<_, Problem>(measured?)
        };
        self.in_time(self.known_costs.get_or_try_init(measure)).await
    }

    /// The record of an id.
    pub(crate) fn record(&self, id: &str, text: bool) -> Result<Record, Problem> {
        let found = self.collection.get(&[id], text)?.pop().flatten();
        found.ok_or_else(|| no_document(id))
    }

    /// What signs texts.
    pub(crate) fn signer(&self) -> Result<&Signer, Problem> {
        self.signer.as_ref().ok_or_else(|| {
            Problem::field(
                "text",
                "the collection has signatures from elsewhere, and no recipe to sign texts with: give a `signature`",
            )
        })
    }

    /// What writes, if anything does.
    pub(crate) fn writer(&self) -> Result<&Writer, Problem> {
        self.writer.as_ref().ok_or_else(|| Problem::not_allowed("this service only reads"))
    }

    pub(crate) fn bits(&self) -> u32 {
        self.collection.about().bits
    }

    pub(crate) fn recipe(&self) -> Option<&Recipe> {
        self.collection.about().recipe.as_ref()
    }

    /// What a distance stands for.
    pub(crate) fn similarity(&self, distance: u32) -> f64 {
        let similarity = verify::similarity_of_distance(self.recipe(), distance, self.bits());
        (similarity * 1e4).round() / 1e4
    }

    /// From now on it is not ready.
    pub(crate) fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Waits until it is about to end.
    pub(crate) async fn ends(&self) {
        // An error would say that the sender is gone, and it is here.
        let _ = self.ending.subscribe().wait_for(|ending| *ending).await;
    }

    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }
}

/// There is no document of that id.
pub(crate) fn no_document(id: &str) -> Problem {
    let id: String = id.chars().take(200).collect();
    Problem::not_found(format!("there is no document `{id}`")).about("id")
}

/// The server is about to end.
pub(crate) fn ending() -> Problem {
    Problem::unavailable("the server is about to end").soon_over()
}

/// So many are sooner done by one thread than shared.
const FEW: usize = 8;

/// Does something with each, by all threads if there is enough to do: so many are long.
pub(crate) fn map_all<T: Send, R: Send>(
    all: Vec<T>,
    long: usize,
    each: impl Fn(&mut Scratch, T) -> R + Send + Sync,
) -> Vec<R> {
    if long < FEW {
        let mut scratch = Scratch::default();
        return all.into_iter().map(|one| each(&mut scratch, one)).collect();
    }
    all.into_par_iter().map_init(Scratch::default, each).collect()
}
