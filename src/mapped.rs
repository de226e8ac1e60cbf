//! Files mapped into memory, seen as words. The one place outside `hamming/` that needs `unsafe`: mapping a file does.
#![allow(unsafe_code)]

use std::{fs::File, ops::Range, path::Path, sync::Arc};

use memmap2::{Mmap, MmapMut};

use crate::{Error, Result};

/// Maps a whole file for reading.
///
/// Our files are never written in place: a new version is written beside the old one and renamed over it, so a mapping
/// keeps showing the file that was opened. Somebody who truncates the file with another tool while it is mapped gets a
/// bus error, as with every program that maps files.
pub(crate) fn map_file(path: &Path) -> Result<Arc<Mmap>> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    // SAFETY: read-only mapping of a file that this program never changes in place (see above).
    let map = unsafe { Mmap::map(&file) }.map_err(|error| Error::io(path, error))?;
    Ok(Arc::new(map))
}

/// Words of a mapped file: 64-bit, little-endian, aligned.
#[derive(Debug, Clone)]
pub(crate) struct MappedWords {
    map: Arc<Mmap>,
    bytes: Range<usize>,
}

impl MappedWords {
    /// The words in `bytes` of a mapped file, or nothing if the range is out of the file, cut or not aligned.
    pub(crate) fn new(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, u64>(map.get(bytes.clone())?).ok()?;
        Some(MappedWords { map, bytes })
    }

    /// A copy of `words` in memory of its own, in huge pages if the system has them, or nothing if it refuses.
    pub(crate) fn copy_in_huge_pages(words: &[u64]) -> Option<Self> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let mut map = MmapMut::map_anon(bytes.len()).ok()?;
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::HugePage).ok()?;
        map.copy_from_slice(bytes);
        MappedWords::new(Arc::new(map.make_read_only().ok()?), 0..bytes.len())
    }

    pub(crate) fn as_slice(&self) -> &[u64] {
        bytemuck::cast_slice(&self.map[self.bytes.clone()])
    }
}

/// Bytes of a mapped file.
#[derive(Debug, Clone)]
pub(crate) struct MappedBytes {
    map: Arc<Mmap>,
    bytes: Range<usize>,
}

impl MappedBytes {
    /// The bytes in `bytes` of a mapped file, or nothing if the range is out of the file.
    pub(crate) fn new(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        map.get(bytes.clone())?;
        Some(MappedBytes { map, bytes })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.map[self.bytes.clone()]
    }
}
