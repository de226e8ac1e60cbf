//! Where work is done: off the interpreter's lock, on threads that exist, and so that Ctrl-C is heard.

use std::{
    panic::resume_unwind,
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    time::Duration,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// How long Ctrl-C may go unheard, and progress untold.
const PATIENCE: Duration = Duration::from_millis(50);

/// The threads of a process. A child that was forked has a copy of its parent's pool, but none of its threads: work that
/// is given to it would never be done. So each process has a pool of its own; the first has the global one.
struct Home {
    process: u32,
    pool: Option<ThreadPool>,
    /// That of the child which was forked next. A list only grows, so no lock is held while somebody forks.
    next: OnceLock<Box<Home>>,
}

static FIRST: OnceLock<Home> = OnceLock::new();

fn home() -> &'static Home {
    let process = process::id();
    let mut home = FIRST.get_or_init(|| Home { process, pool: None, next: OnceLock::new() });
    while home.process != process {
        if home.next.get().is_none() {
            let pool = ThreadPoolBuilder::new().build().ok();
            let _ = home.next.set(Box::new(Home { process, pool, next: OnceLock::new() }));
        }
        let Some(next) = home.next.get() else { break };
        home = next;
    }
    home
}

/// Runs work on the threads of this process.
pub(crate) fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match &home().pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Runs work that does not take long off the lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| in_pool(work))
}

/// How far work is, and whether it is still wanted.
#[derive(Default)]
pub(crate) struct Watch {
    stopped: AtomicBool,
    done: AtomicUsize,
    all: AtomicUsize,
}

/// What unwinds work that nobody waits for.
struct Stopped;

impl Watch {
    /// What is set when nobody waits any more.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Notes that so many of so many are done. Does not return if nobody waits for the rest.
    pub(crate) fn note(&self, done: usize, all: usize) {
        self.done.store(done, Relaxed);
        self.all.store(all, Relaxed);
        if self.stopped.load(Relaxed) {
            // Not a panic: no message, and the thread ends.
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// Runs work that may take long in a thread of its own, and listens for Ctrl-C meanwhile. What is stopped ends by itself when
/// it looks at the watch next; nobody waits for that.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (send, mut receive) = channel();
    let watching = watch.clone();
    std::thread::Builder::new().name("lookalike".to_owned()).spawn(move || {
        let done = in_pool(|| work(&watching));
        let _ = send.send(done);
    })?;
    loop {
        // A receiver cannot be lent to where the lock is not held, only given.
        let waited;
        (receive, waited) = py.detach(move || {
            let waited = receive.recv_timeout(PATIENCE);
            (receive, waited)
        });
        match waited {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the engine failed; this is a bug in it"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let told = py.check_signals().and_then(|()| {
                    tell(progress, watch.done.load(Relaxed), watch.all.load(Relaxed))
                });
                told.inspect_err(|_| watch.stopped.store(true, Relaxed))?;
            }
        }
    }
}

/// Tells how far something is.
pub(crate) fn tell(progress: Option<&Bound<'_, PyAny>>, done: usize, all: usize) -> PyResult<()> {
    progress.map_or(Ok(()), |progress| progress.call1((done, all)).map(drop))
}
