//! Merging: many small parts become a few large ones, in the background, so that searches stay fast.

use std::{
    cmp::Ordering,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
    time::Duration,
};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{
    kept::INDEXED_FROM,
    part::{LivePart, Part, Rows},
    segment::{self, Name},
    snapshot::Snapshot,
    store::{About, Store},
};
use crate::{Error, Result};

/// So many parts of about a size become one.
const TOGETHER: usize = 4;
/// When there is time: a part is so many times as large as all that come after it, or it is merged with them.
const RATIO: usize = 3;
/// Nothing has come for so long: there is time.
const QUIET: Duration = Duration::from_millis(500);
/// Fewer rows than this are sooner read from the store than from a file.
const SAVED_FROM: usize = 4096;
/// While rows come, parts are saved when this many are not: after a crash they are read from the store.
const UNSAVED: usize = 1 << 19;
/// After so many changes the store moves what it has logged: in the background rather than while somebody waits, and soon,
/// since readers look through what is logged for every page.
const LOGGED: usize = 20_000;
/// How long something in the background that failed waits before it is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// With more parts than this, whoever adds waits for the merge.
const MOST_PARTS: usize = 24;

/// The current snapshot of a collection, and what is done to it in the background.
#[derive(Debug)]
pub(super) struct Current {
    state: Mutex<State>,
    changed: Condvar,
    about: About,
    /// Where segments are; none if this process does not write any.
    folder: Option<PathBuf>,
    /// Builds what is added.
    pool: Option<ThreadPool>,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    /// Merges are to end, for good.
    stop: bool,
    /// Whether there is somebody who merges, and whether he does so now.
    merging: bool,
    working: bool,
    /// Rows that came since the store moved what it has logged.
    logged: usize,
    /// What went wrong in the background. It costs time, not answers.
    problem: Option<Error>,
}

impl Current {
    pub(super) fn new(snapshot: Snapshot, about: &About, folder: Option<PathBuf>) -> Arc<Self> {
        let state = State {
            snapshot: Arc::new(snapshot),
            stop: false,
            merging: false,
            working: false,
            logged: 0,
            problem: None,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let pool = half_of_the_cores();
        Arc::new(Current { state, changed, about: about.clone(), folder, pool })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.state().snapshot.clone()
    }

    /// What went wrong in the background since it was last asked.
    pub(super) fn take_problem(&self) -> Option<Error> {
        self.state().problem.take()
    }

    /// Makes changes that are committed visible. Only one thread does so at a time.
    pub(super) fn change(&self, added: Rows, removed: &[u64]) -> Result<()> {
        let mut state = self.state();
        while state.snapshot.parts.len() > MOST_PARTS && self.is_at_work(&state, false) {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(state);
        let mut state = loop {
            // Searches go on while this is built, and so do merges: one may have taken what it grew from.
            let grown = in_pool(self.pool.as_ref(), || self.snapshot().grown(&added))?;
            let mut state = self.state();
            let from = grown.as_ref().and_then(|grown| grown.from.as_ref());
            if from.is_none_or(|from| state.snapshot.ends_with(from)) {
                let mut snapshot = Snapshot::clone(&state.snapshot);
                snapshot.change(added.log, grown, removed);
                state.snapshot = Arc::new(snapshot);
                break state;
            }
        };
        state.logged += added.positions.len() + removed.len();
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Puts another snapshot in the place of this one.
    pub(super) fn replace(&self, snapshot: Snapshot) {
        self.state().snapshot = Arc::new(snapshot);
        self.changed.notify_all();
    }

    /// Whether somebody merges, or is about to.
    fn is_at_work(&self, state: &State, quiet: bool) -> bool {
        let waits = || self.next_task(&state.snapshot, quiet).is_some();
        state.merging && state.problem.is_none() && (state.working || waits())
    }

    /// Waits until there is nothing to merge, or nobody who does.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        while self.is_at_work(&state, true) {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Starts the threads that merge and that have the store move what it has logged, each with a connection of its own.
    /// Whoever only reads saves nothing, and has nothing to move.
    pub(super) fn merge_in_background(
        self: &Arc<Self>,
        connect: impl Fn() -> Result<Box<dyn Store>>,
    ) -> Result<Merging> {
        let connect = || self.folder.as_ref().map(|_| connect()).transpose();
        let (mut merges, moves) = (connect()?, connect()?);
        {
            let mut state = self.state();
            (state.merging, state.stop) = (true, false);
        }
        let merging = self.clone();
        let merge = spawn("merge", move || {
            let pool = half_of_the_cores();
            while let Some(task) = merging.wait_for_task() {
                let work = || merging.work(&task, merges.as_mut());
                merging.note(in_pool(pool.as_ref(), work));
            }
        });
        let moving = self.clone();
        let checkpoint = moves.and_then(|mut moves| {
            spawn("checkpoint", move || {
                while moving.wait_for_log() {
                    moving.note(moves.checkpoint());
                }
            })
        });
        if merge.is_none() {
            self.state().merging = false;
        }
        let threads = [merge, checkpoint].into_iter().flatten().collect();
        Ok(Merging { current: self.clone(), threads })
    }

    /// Takes note of how something in the background ended. What failed is tried again after a while: there may be room
    /// again, or a connection. Until then nobody is to wait for it.
    fn note(&self, done: Result<()>) {
        let mut state = self.state();
        match done {
            Ok(()) => state.problem = None,
            Err(error) => {
                state.problem = Some(error);
                self.changed.notify_all();
                let goes_on = |state: &mut State| !state.stop;
                let waited = self.changed.wait_timeout_while(state, AGAIN, goes_on);
                drop(waited.unwrap_or_else(|poisoned| poisoned.into_inner()));
            }
        }
    }

    /// Waits until the store has logged so much that it is to be moved; not when merges are to end.
    fn wait_for_log(&self) -> bool {
        let mut state = self.state();
        while !state.stop && state.logged < LOGGED {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        state.logged = 0;
        !state.stop
    }

    /// The next thing to do, when there is one; nothing when merges are to end.
    fn wait_for_task(&self) -> Option<Task> {
        let mut state = self.state();
        let mut quiet = false;
        loop {
            if state.stop {
                return None;
            }
            state.working = false;
            if let Some(task) = self.next_task(&state.snapshot, quiet) {
                state.working = true;
                return Some(task);
            }
            self.changed.notify_all();
            let waited = self.changed.wait_timeout(state, QUIET);
            let timeout;
            (state, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            quiet = timeout.timed_out();
        }
    }

    fn next_task(&self, snapshot: &Snapshot, quiet: bool) -> Option<Task> {
        let settled = snapshot.settled();
        // While rows come, the last part may be about to grow.
        let but_last = &settled[..settled.len().min(snapshot.parts.len().saturating_sub(1))];
        let run = match quiet {
            true => to_merge(&settled).or_else(|| to_tidy(&settled)),
            false => to_merge(but_last),
        };
        if let Some(run) = run {
            return Some(Task::Merge(snapshot.parts[run].to_vec(), snapshot.position));
        }
        self.folder.as_ref()?;
        let unsaved: Vec<_> = snapshot.unsaved().cloned().collect();
        let rows: usize = unsaved.iter().map(|live| live.part.len()).sum();
        (rows >= UNSAVED.max(snapshot.len() / 4)).then_some(Task::Save(unsaved))
    }

    fn work(&self, task: &Task, store: Option<&mut Box<dyn Store>>) -> Result<()> {
        match task {
            Task::Merge(parts, position) => self.merge(parts, *position),
            Task::Save(parts) => match store {
                Some(store) => parts.iter().try_for_each(|live| self.save(live, store.as_mut())),
                None => Ok(()),
            },
        }
    }

    /// Makes one part of several, as they were at a position of the log, and puts it in their place.
    pub(super) fn merge(&self, parts: &[LivePart], log: u64) -> Result<()> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        let stretch = first.part.stretch.start..last.part.stretch.end;
        let mut rows = Rows::new(stretch, log);
        parts.iter().for_each(|live| rows.append(live));
        let mut merged = LivePart::new(Part::build(rows, self.about.bits, self.about.index)?);
        let mut state = self.state();
        let mut snapshot = Snapshot::clone(&state.snapshot);
        let same = |(a, b): (&LivePart, &LivePart)| Arc::ptr_eq(&a.part, &b.part);
        let are_there = |there: &[LivePart]| there.iter().zip(parts).all(same);
        // The last of them may have grown meanwhile.
        let Some(start) = snapshot.parts.windows(parts.len()).position(are_there) else {
            return Ok(());
        };
        let place = start..start + parts.len();
        // What was removed while we worked.
        for (now, before) in snapshot.parts[place.clone()].iter().zip(parts) {
            for row in now.removed.since(&before.removed) {
                merged.remove(now.part.positions()[row]);
            }
        }
        snapshot.parts.splice(place, [merged]);
        state.snapshot = Arc::new(snapshot);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Saves a part in a segment, and deletes the segments that it takes the place of.
    fn save(&self, live: &LivePart, store: &mut dyn Store) -> Result<()> {
        let part = &live.part;
        let last = (0..part.len()).rev().find(|&row| !live.removed.contains(row));
        let (Some(folder), Some(last)) = (&self.folder, last) else { return Ok(()) };
        let record = store.records(&[part.positions()[last]], false)?.pop().flatten();
        let Some(last) = record else {
            // Another process has removed and purged it: this part is about to be read anew.
            let _ = part.saved.set(Name::of(folder, part));
            return Ok(());
        };
        let name = segment::save(folder, part, &self.about, &last)?;
        let _ = part.saved.set(name.clone());
        let (chosen, others) = segment::list(folder);
        let replaced = |old: &&Name| {
            **old != name
                && old.stretch.start < name.stretch.end
                && name.stretch.start < old.stretch.end
        };
        chosen.iter().chain(&others).filter(replaced).for_each(Name::delete);
        Ok(())
    }

    /// Merges what is merged when there is time. Nobody else merges meanwhile.
    pub(super) fn tidy(&self) -> Result<()> {
        let snapshot = self.snapshot();
        let run = to_tidy(&snapshot.settled());
        run.map_or(Ok(()), |run| self.merge(&snapshot.parts[run], snapshot.position))
    }

    /// Deletes segments that know less of the log than up to a position, which is purged.
    pub(super) fn delete_before(&self, position: u64) {
        let Some(folder) = &self.folder else { return };
        let (chosen, others) = segment::list(folder);
        let old = |name: &&Name| name.log < position;
        chosen.iter().chain(&others).filter(old).for_each(Name::delete);
    }

    /// Saves every part that is not yet and is worth it.
    pub(super) fn save_all(&self, store: &mut dyn Store) -> Result<()> {
        let snapshot = self.snapshot();
        snapshot.unsaved().try_for_each(|live| self.save(live, store))
    }
}

/// Something to do in the background.
enum Task {
    /// Parts, and the position of the log that they are of.
    Merge(Vec<LivePart>, u64),
    Save(Vec<LivePart>),
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).ok()
}

/// Threads for half of the cores: others want to search meanwhile.
fn half_of_the_cores() -> Option<ThreadPool> {
    let threads = (rayon::current_num_threads() / 2).max(1);
    ThreadPoolBuilder::new().num_threads(threads).build().ok()
}

fn in_pool<T: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Merges in the background, until this is dropped.
#[derive(Debug)]
pub(super) struct Merging {
    current: Arc<Current>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Merging {
    fn drop(&mut self) {
        self.current.state().stop = true;
        self.current.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.current.state().merging = false;
        self.current.changed.notify_all();
    }
}

impl Snapshot {
    /// How many rows the parts have, without the small ones at the end, which grow.
    fn settled(&self) -> Vec<usize> {
        let last = self.parts.iter().rposition(|live| live.part.len() >= INDEXED_FROM);
        let settled = &self.parts[..last.map_or(0, |last| last + 1)];
        settled.iter().map(LivePart::live).collect()
    }

    fn unsaved(&self) -> impl Iterator<Item = &LivePart> {
        let worth =
            |live: &&LivePart| live.part.len() >= SAVED_FROM && live.part.saved.get().is_none();
        self.parts.iter().filter(worth)
    }
}

/// Which parts are merged next while rows come: of so many parts of about a size one is made, so that a row is moved once for
/// each size. The longest run up to the last part.
fn to_merge(rows: &[usize]) -> Option<Range<usize>> {
    let size = |part: usize| (rows[part] / INDEXED_FROM).max(1).ilog(TOGETHER);
    let (mut start, mut largest, mut like) = (None, 0, 0);
    for part in (0..rows.len()).rev() {
        match size(part).cmp(&largest) {
            Ordering::Less => {}
            Ordering::Equal => like += 1,
            Ordering::Greater => (largest, like) = (size(part), 1),
        }
        if like >= TOGETHER {
            start = Some(part);
        }
    }
    start.map(|start| start..rows.len())
}

/// Which parts are merged when there is time: the longest run up to the last part of those that are not much larger than
/// all that come after them.
fn to_tidy(rows: &[usize]) -> Option<Range<usize>> {
    let mut after = *rows.last()?;
    let mut start = rows.len() - 1;
    for part in (0..rows.len() - 1).rev() {
        if rows[part] < RATIO * after {
            start = part;
        }
        after += rows[part];
    }
    (start + 1 < rows.len()).then_some(start..rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_not_much_larger_than_the_rest_are_merged_in_time() {
        assert_eq!(to_tidy(&[]), None);
        assert_eq!(to_tidy(&[5]), None);
        assert_eq!(to_tidy(&[100, 5]), None);
        assert_eq!(to_tidy(&[5, 5]), Some(0..2));
        assert_eq!(to_tidy(&[100, 9, 5]), Some(1..3));
        assert_eq!(to_tidy(&[100, 20, 15]), Some(0..3));
        assert_eq!(to_tidy(&[1000, 100, 20, 5]), None);
    }

    #[test]
    fn parts_of_a_size_are_merged_at_once() {
        assert_eq!(to_merge(&[]), None);
        assert_eq!(to_merge(&[5000; 3]), None);
        assert_eq!(to_merge(&[5000; 4]), Some(0..4));
        assert_eq!(to_merge(&[900_000, 5000, 5000, 2048, 5000, 5000]), Some(1..6));
        assert_eq!(to_merge(&[900_000, 40_000, 40_000, 40_000, 5000]), None);
    }

    /// Whatever comes, there are few parts, and a row is moved few times.
    #[test]
    fn merges_keep_parts_few_and_rows_where_they_are() {
        let (mut parts, mut moved): (Vec<usize>, usize) = (Vec::new(), 0);
        for _ in 0..2000 {
            parts.push(50_000);
            while let Some(run) = to_merge(&parts) {
                let rows: usize = parts[run.clone()].iter().sum();
                moved += rows;
                parts.splice(run, [rows]);
            }
            assert!(parts.len() <= 18, "{parts:?}");
        }
        assert!(moved < 2000 * 50_000 * 6, "{}", moved / (2000 * 50_000));
    }
}
