//! Candidate pairs, in parts by their later member; what does not fit into memory waits on disk.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use rayon::prelude::*;

use crate::{Error, Result};

/// Into how many parts pairs are sorted: each is small enough to be sorted in memory, and all of them are filled at once.
const PARTS: usize = 256;

/// Two entries by their ranks: the later one in the upper half, so that numbers sort as pairs do.
pub(crate) fn pair(a: u32, b: u32) -> u64 {
    u64::from(a.max(b)) << 32 | u64::from(a.min(b))
}

/// The later and the earlier member.
pub(crate) fn members(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// What a lock guards. A thread that panicked with it ends the run anyway.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The same when no other thread can have it.
pub(crate) fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Where all threads put candidate pairs.
pub(crate) struct Pairs {
    parts: Vec<Mutex<Part>>,
    /// How many ranks belong to a part.
    width: u32,
    /// How many pairs a part keeps in memory.
    room: usize,
    folder: PathBuf,
}

#[derive(Default)]
struct Part {
    pairs: Vec<u64>,
    spilled: Option<File>,
    on_disk: usize,
}

impl Pairs {
    /// Room for pairs of entries; beyond `memory` bytes they wait in `folder`.
    pub(crate) fn new(entries: usize, memory: usize, folder: &Path) -> Self {
        let width = entries.div_ceil(PARTS).max(1) as u32;
        let parts = (0..PARTS).map(|_| Mutex::default()).collect();
        Pairs { parts, width, room: (memory / 8 / PARTS).max(1 << 10), folder: folder.to_owned() }
    }

    /// Takes pairs, which are sorted into their parts.
    pub(crate) fn add(&self, pairs: &mut Vec<u64>) -> Result<()> {
        let part_of = |pair: u64| members(pair).0 / self.width;
        pairs.sort_unstable_by_key(|&pair| part_of(pair));
        for some in pairs.chunk_by(|&a, &b| part_of(a) == part_of(b)) {
            let part = &self.parts[part_of(some[0]) as usize];
            let mut part = locked(part);
            part.pairs.extend_from_slice(some);
            if part.pairs.len() > self.room {
                part.spill(&self.folder).map_err(|error| Error::io(&self.folder, error))?;
            }
        }
        pairs.clear();
        Ok(())
    }

    /// How many pairs there are.
    pub(crate) fn len(&self) -> usize {
        let len = |part: &Mutex<Part>| {
            let part = locked(part);
            part.pairs.len() + part.on_disk
        };
        self.parts.iter().map(len).sum()
    }

    /// Gives all pairs to `each`, in order, a part at a time.
    pub(crate) fn drain(self, mut each: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        let folder = self.folder;
        let at_once = rayon::current_num_threads().max(1);
        let mut parts = self.parts.into_iter();
        loop {
            let some: Vec<Mutex<Part>> = parts.by_ref().take(at_once).collect();
            if some.is_empty() {
                return Ok(());
            }
            let load = |part: Mutex<Part>| {
                unlocked(part).load().map_err(|error| Error::io(&folder, error))
            };
            let sorted: Result<Vec<Vec<u64>>> = some.into_par_iter().map(load).collect();
            sorted?.iter().try_for_each(|pairs| each(pairs))?;
        }
    }
}

impl Part {
    fn spill(&mut self, folder: &Path) -> std::io::Result<()> {
        let file = match &mut self.spilled {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all(bytemuck::cast_slice(&self.pairs))?;
        self.on_disk += self.pairs.len();
        self.pairs.clear();
        Ok(())
    }

    /// All pairs, sorted.
    fn load(mut self) -> std::io::Result<Vec<u64>> {
        if let Some(mut file) = self.spilled {
            let start = self.pairs.len();
            self.pairs.resize(start + self.on_disk, 0);
            file.seek(SeekFrom::Start(0))?;
            file.read_exact(bytemuck::cast_slice_mut(&mut self.pairs[start..]))?;
        }
        self.pairs.sort_unstable();
        Ok(self.pairs)
    }
}
