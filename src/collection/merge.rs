//! Merging: many small parts become a few large ones, in the background, so that searches stay fast.

use std::{
    cmp::Ordering,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
    time::Duration,
};

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
/// After so many changes the store moves what it has logged, in the background rather than while somebody waits.
const LOGGED: usize = 20_000;
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
        Arc::new(Current { state, changed, about: about.clone(), folder })
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

    /// Makes changes that are committed visible. Only one thread does so at a time, and merges leave the last part alone
    /// as long as it grows, so what is built here outside of the lock is still right when it is put in its place.
    pub(super) fn change(&self, added: Rows, removed: &[u64]) -> Result<()> {
        let mut state = self.state();
        while state.snapshot.parts.len() > MOST_PARTS && state.merging && state.problem.is_none() {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(state);
        let grown = self.snapshot().grown(&added)?;
        let mut state = self.state();
        let mut snapshot = Snapshot::clone(&state.snapshot);
        snapshot.change(added.log, grown, removed);
        state.snapshot = Arc::new(snapshot);
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

    /// Waits until there is nothing to merge, or nobody who does.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        while state.merging && (state.working || self.next_task(&state.snapshot, true).is_some()) {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Starts the thread that merges, with a connection of its own.
    pub(super) fn merge_in_background(self: &Arc<Self>, mut store: Box<dyn Store>) -> Merging {
        let current = self.clone();
        {
            let mut state = current.state();
            (state.merging, state.stop) = (true, false);
        }
        let merge = move || {
            // Others want to search meanwhile.
            let threads = (rayon::current_num_threads() / 2).max(1);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            while let Some(task) = current.wait_for_task() {
                let mut work = || current.work(&task, store.as_mut());
                let done = match &pool {
                    Ok(pool) => pool.install(work),
                    Err(_) => work(),
                };
                if let Err(error) = done {
                    current.state().problem = Some(error);
                    break;
                }
            }
            current.state().merging = false;
            current.changed.notify_all();
        };
        let thread = std::thread::Builder::new().name("merge".to_owned()).spawn(merge).ok();
        if thread.is_none() {
            self.state().merging = false;
        }
        Merging { current: self.clone(), thread }
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
            let checkpoint = self.folder.is_some() && state.logged >= LOGGED;
            let task = checkpoint.then_some(Task::Checkpoint);
            if let Some(task) = task.or_else(|| self.next_task(&state.snapshot, quiet)) {
                state.working = true;
                state.logged = if checkpoint { 0 } else { state.logged };
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
        let run = to_merge(&settled).or_else(|| to_tidy(&settled).filter(|_| quiet));
        if let Some(run) = run {
            return Some(Task::Merge(snapshot.parts[run].to_vec()));
        }
        self.folder.as_ref()?;
        let unsaved: Vec<_> = snapshot.unsaved().cloned().collect();
        let rows: usize = unsaved.iter().map(|live| live.part.len()).sum();
        (rows >= UNSAVED.max(snapshot.len() / 4)).then_some(Task::Save(unsaved))
    }

    fn work(&self, task: &Task, store: &mut dyn Store) -> Result<()> {
        match task {
            Task::Merge(parts) => self.merge(parts),
            Task::Save(parts) => parts.iter().try_for_each(|live| self.save(&live.part, store)),
            Task::Checkpoint => store.checkpoint(),
        }
    }

    /// Makes one part of several, and puts it in their place.
    pub(super) fn merge(&self, parts: &[LivePart]) -> Result<()> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        let log = self.snapshot().position;
        let stretch = first.part.stretch.start..last.part.stretch.end;
        let mut rows = Rows::new(stretch, log);
        parts.iter().for_each(|live| rows.append(live));
        let mut merged = LivePart::new(Part::build(rows, self.about.bits, self.about.index)?);
        let mut state = self.state();
        let mut snapshot = Snapshot::clone(&state.snapshot);
        let is_first = |live: &LivePart| Arc::ptr_eq(&live.part, &first.part);
        let Some(start) = snapshot.parts.iter().position(is_first) else { return Ok(()) };
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
    fn save(&self, part: &Part, store: &mut dyn Store) -> Result<()> {
        let (Some(folder), Some(last)) = (&self.folder, part.positions().last()) else {
            return Ok(());
        };
        let Some(last) = store.records(&[*last], false)?.pop().flatten() else { return Ok(()) };
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
        run.map_or(Ok(()), |run| self.merge(&snapshot.parts[run]))
    }

    /// Saves every part that is not yet and is worth it.
    pub(super) fn save_all(&self, store: &mut dyn Store) -> Result<()> {
        let snapshot = self.snapshot();
        snapshot.unsaved().try_for_each(|live| self.save(&live.part, store))
    }
}

/// Something to do in the background.
enum Task {
    Merge(Vec<LivePart>),
    Save(Vec<LivePart>),
    /// Move what the store has logged to where it stays.
    Checkpoint,
}

/// Merges in the background, until this is dropped.
#[derive(Debug)]
pub(super) struct Merging {
    current: Arc<Current>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Merging {
    fn drop(&mut self) {
        self.current.state().stop = true;
        self.current.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Snapshot {
    /// How many rows the parts have that no longer grow.
    fn settled(&self) -> Vec<usize> {
        let settled = |live: &&LivePart| live.part.len() >= INDEXED_FROM;
        self.parts.iter().take_while(settled).map(LivePart::live).collect()
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
