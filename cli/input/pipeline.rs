//! Reading, working and consuming at once: many threads work, results come back in the input's order.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::chunk::Chunk;
use super::source::{Chunks, Sources};

/// How many chunks per thread are read, worked on, or waiting for an earlier one: memory is this many
/// chunks and results.
const WINDOW: usize = 3;

/// More readers than this only wait for the disk.
const MOST_READERS: usize = 8;

/// Has `threads` threads do `work` on all chunks and their numbers, and gives the results to `consume`
/// in the order of the input. Stops early when `consume` breaks or fails. The same input has the same
/// chunks every time.
pub(crate) fn run<T: Send>(
    sources: &Sources,
    threads: usize,
    work: impl Fn(usize, Chunk) -> T + Sync,
    mut consume: impl FnMut(T) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<()> {
    let threads = threads.max(1);
    let mut chunks = sources.chunks(threads.div_ceil(2).min(MOST_READERS));
    let stop = chunks.stopper();
    let (order, results) = bounded(threads * WINDOW);
    let feed = Mutex::new(Feed { chunks, number: 0, order: Some(order) });
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, chunk, result)) = next(&feed) {
                    // Fails only if nobody waits for it any more.
                    let _ = result.send(work(number, chunk));
                }
            });
        }
        let consumed = consume_all(&results, &mut consume);
        // Both wake up threads that wait: for input, or for room.
        drop(stop);
        drop(results);
        consumed
    })
}

/// What the workers draw from.
struct Feed<T> {
    chunks: Chunks,
    /// How many were taken.
    number: usize,
    /// Where results will come out, in order. Gone when the chunks are.
    order: Option<Sender<Receiver<T>>>,
}

/// The next chunk and where to put its result. Order is kept because the lock is.
fn next<T>(feed: &Mutex<Feed<T>>) -> Option<(usize, Chunk, Sender<T>)> {
    let mut feed = feed.lock().ok()?;
    let Some(chunk) = feed.chunks.next() else {
        feed.order = None;
        return None;
    };
    let (result, receiver) = bounded(1);
    feed.order.as_ref()?.send(receiver).ok()?;
    feed.number += 1;
    Some((feed.number - 1, chunk, result))
}

fn consume_all<T>(
    results: &Receiver<Receiver<T>>,
    consume: &mut impl FnMut(T) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<()> {
    for result in results {
        // A worker that panicked leaves no result; the scope passes its panic on.
        let Ok(result) = result.recv() else { break };
        if consume(result)?.is_break() {
            break;
        }
    }
    Ok(())
}
