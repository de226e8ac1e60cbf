//! The one who writes: a thread of its own. What waits while it writes is written together next time, in one transaction,
//! so that many small requests cost about as much as a few large ones.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use lookalike::{
    Error, Result,
    collection::{Collection, Entry, IfExists, Put, Seen},
};
use tokio::sync::oneshot;

use crate::{
    app::{Permit, ending},
    error::Problem,
};

/// What is being written at the very end has so long.
const LAST_TIME: Duration = Duration::from_secs(10);
/// So many entries are written together at most: whoever comes next should not wait for long.
const MOST_TOGETHER: usize = 10_000;

/// Writes what it is given, in the order in which it comes.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Something to be written, and who waits for it.
struct Job {
    change: Change,
    /// Held until it is written.
    _permit: Permit,
    reply: oneshot::Sender<Result<Written>>,
}

/// What is to be written.
enum Change {
    Put(Vec<Entry>, IfExists),
    UnlessSeen(Vec<Entry>, u32),
    Remove(Vec<String>),
}

/// What became of it, for each entry or id.
enum Written {
    Put(Vec<Put>),
    Seen(Vec<Seen>),
    Removed(Vec<bool>),
}

impl Writer {
    pub(crate) fn start(collection: Arc<Collection>) -> Result<Self> {
        let (jobs, coming) = mpsc::channel();
        let path = collection.folder().to_owned();
        let thread = thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || write_all(&collection, &coming));
        let thread = thread.map_err(|source| Error::Io { path, source })?;
        Ok(Writer { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Whether it writes still.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    pub(crate) async fn put(
        &self,
        entries: Vec<Entry>,
        if_exists: IfExists,
        permit: &Permit,
    ) -> Result<Vec<Put>, Problem> {
        match self.write(Change::Put(entries, if_exists), permit).await? {
            Written::Put(put) => Ok(put),
            _ => Err(mixed_up()),
        }
    }

    pub(crate) async fn seen_or_add(
        &self,
        entries: Vec<Entry>,
        radius: u32,
        permit: &Permit,
    ) -> Result<Vec<Seen>, Problem> {
        match self.write(Change::UnlessSeen(entries, radius), permit).await? {
            Written::Seen(seen) => Ok(seen),
            _ => Err(mixed_up()),
        }
    }

    pub(crate) async fn remove(&self, id: String, permit: &Permit) -> Result<bool, Problem> {
        match self.write(Change::Remove(vec![id]), permit).await? {
            Written::Removed(removed) => Ok(removed.contains(&true)),
            _ => Err(mixed_up()),
        }
    }

    /// Waits until it is durable.
    async fn write(&self, change: Change, permit: &Permit) -> Result<Written, Problem> {
        let (reply, written) = oneshot::channel();
        let job = Job { change, _permit: permit.clone(), reply };
        let jobs = self.jobs.as_ref().ok_or_else(ending)?;
        jobs.send(job).map_err(|_| ending())?;
        Ok(written.await.map_err(|_| lost())??)
    }
}

/// Nobody knows whether it was written.
fn lost() -> Problem {
    Problem::failed("this may or may not have been written; the log of the server says more")
}

/// The engine answers what it was asked.
fn mixed_up() -> Problem {
    Problem::failed("the answer is of another kind than the question")
}

impl Drop for Writer {
    /// Everything that waits is written before it ends, unless the store hangs.
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            join_in_time(thread);
        }
    }
}

/// Waits for a thread, but not for one that hangs.
pub(crate) fn join_in_time(thread: JoinHandle<()>) {
    let until = Instant::now() + LAST_TIME;
    while !thread.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    if thread.is_finished() {
        let _ = thread.join();
    }
}

fn write_all(collection: &Collection, coming: &Receiver<Job>) {
    let mut next = coming.recv().ok();
    while let Some(first) = next.take() {
        let mut together = vec![first];
        let mut entries = together[0].change.len();
        while let Ok(job) = coming.try_recv() {
            entries += job.change.len();
            if entries > MOST_TOGETHER || !together[0].change.goes_with(&job.change) {
                next = Some(job);
                break;
            }
            together.push(job);
        }
        // A mistake of ours must not keep others from being written; whoever waits for this learns that it is lost.
        let written = catch_unwind(AssertUnwindSafe(|| write_together(collection, together)));
        if written.is_err() {
            tracing::error!("writing failed: this is a mistake of the program");
        }
        next = next.or_else(|| coming.recv().ok());
    }
}

fn write_together(collection: &Collection, mut jobs: Vec<Job>) {
    if jobs.len() == 1 {
        return jobs.into_iter().for_each(|job| answer(job.reply, job.change.write(collection)));
    }
    let sizes: Vec<usize> = jobs.iter().map(|job| job.change.len()).collect();
    let mut all = jobs[0].change.take();
    jobs[1..].iter_mut().for_each(|job| all.append(&mut job.change));
    let one_by_one = jobs.into_iter().zip(sizes);
    match all.write(collection) {
        // From the last to the first: what is left of a list stays where it is.
        Ok(mut written) => one_by_one
            .rev()
            .for_each(|(job, size)| answer(job.reply, Ok(written.split_off_last(size)))),
        // One that cannot be written is not to be in the way of the others. In their order: one may be another try
        // of the one before it.
        Err(_) => one_by_one.for_each(|(job, size)| {
            let behind = all.split_off_last(all.len() - size);
            answer(job.reply, std::mem::replace(&mut all, behind).write(collection));
        }),
    }
}

fn answer(reply: oneshot::Sender<Result<Written>>, written: Result<Written>) {
    // Whoever asked may have gone.
    let _ = reply.send(written);
}

impl Change {
    fn len(&self) -> usize {
        match self {
            Change::Put(entries, _) | Change::UnlessSeen(entries, _) => entries.len(),
            Change::Remove(ids) => ids.len(),
        }
    }

    /// Whether both can be written as one, and each be answered as if it had been alone.
    fn goes_with(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::Put(_, a), Change::Put(_, b)) => a == b,
            (Change::UnlessSeen(_, a), Change::UnlessSeen(_, b)) => a == b,
            (Change::Remove(_), Change::Remove(_)) => true,
            _ => false,
        }
    }

    fn write(&self, collection: &Collection) -> Result<Written> {
        Ok(match self {
            Change::Put(entries, if_exists) => Written::Put(collection.put(entries, *if_exists)?),
            Change::UnlessSeen(entries, radius) => {
                Written::Seen(collection.seen_or_add(entries, *radius)?)
            }
            Change::Remove(ids) => {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                Written::Removed(collection.remove(&ids)?)
            }
        })
    }

    /// All of it; an empty change of its kind stays.
    fn take(&mut self) -> Change {
        let all = self.len();
        self.split_off_last(all)
    }

    fn append(&mut self, other: &mut Change) {
        match (self, other) {
            (Change::Put(all, _), Change::Put(more, _))
            | (Change::UnlessSeen(all, _), Change::UnlessSeen(more, _)) => all.append(more),
            (Change::Remove(all), Change::Remove(more)) => all.append(more),
            _ => {}
        }
    }

    fn split_off_last(&mut self, count: usize) -> Change {
        match self {
            Change::Put(all, if_exists) => Change::Put(last(all, count), *if_exists),
            Change::UnlessSeen(all, radius) => Change::UnlessSeen(last(all, count), *radius),
            Change::Remove(all) => Change::Remove(last(all, count)),
        }
    }
}

impl Written {
    fn split_off_last(&mut self, count: usize) -> Written {
        match self {
            Written::Put(all) => Written::Put(last(all, count)),
            Written::Seen(all) => Written::Seen(last(all, count)),
            Written::Removed(all) => Written::Removed(last(all, count)),
        }
    }
}

/// Takes the last ones out.
fn last<T>(all: &mut Vec<T>, count: usize) -> Vec<T> {
    all.split_off(all.len() - count)
}
