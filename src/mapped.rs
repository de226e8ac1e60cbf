//! Cells of one type in memory that is not the allocator's: a mapped file, or huge pages. The one place outside
//! `hamming/` that needs `unsafe`: mapping a file does.
#![allow(unsafe_code)]

use std::{fs::File, marker::PhantomData, ops::Range, path::Path, sync::Arc};

use bytemuck::Pod;
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

/// Cells that are only read: a part of a mapped file (little-endian, aligned), or of memory of our own.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    map: Arc<Mmap>,
    bytes: Range<usize>,
    of: PhantomData<T>,
}

impl<T> Clone for Cells<T> {
    fn clone(&self) -> Self {
        Cells { map: self.map.clone(), bytes: self.bytes.clone(), of: PhantomData }
    }
}

impl<T: Pod> Cells<T> {
    /// The cells in `bytes` of a mapped file, or nothing if the range is out of the file, cut or not aligned.
    pub(crate) fn new(map: Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(map.get(bytes.clone())?).ok()?;
        Some(Cells { map, bytes, of: PhantomData })
    }

    /// A copy in memory of its own, in huge pages if the system has them.
    pub(crate) fn copy_of(cells: &[T]) -> std::io::Result<Self> {
        let mut copy = CellsMut::zeroed(cells.len())?;
        copy.as_mut_slice().copy_from_slice(cells);
        copy.freeze()
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.bytes.clone()])
    }

    /// Some of the cells, or nothing if they are not there.
    pub(crate) fn part(&self, cells: Range<usize>) -> Option<Self> {
        self.as_slice().get(cells.clone())?;
        let at = |cell: usize| self.bytes.start + cell * size_of::<T>();
        Some(Cells {
            map: self.map.clone(),
            bytes: at(cells.start)..at(cells.end),
            of: PhantomData,
        })
    }
}

/// Cells that are being written, in huge pages if the system has them: random reads then miss the CPU's table of pages
/// less often, which about doubles their rate.
#[derive(Debug)]
pub(crate) struct CellsMut<T> {
    map: MmapMut,
    bytes: Range<usize>,
    of: PhantomData<T>,
}

/// A huge page, of the usual size.
const HUGE: usize = 2 << 20;

impl<T: Pod> CellsMut<T> {
    /// So many cells, all zero.
    pub(crate) fn zeroed(len: usize) -> std::io::Result<Self> {
        let bytes = len * size_of::<T>();
        // A last page that is nearly full is worth to be a huge one, too.
        let pages = bytes.next_multiple_of(HUGE);
        let whole = if pages - bytes <= bytes / 8 { pages } else { bytes };
        // Huge pages begin at multiples of their size, and a map begins anywhere: where a few of them are all, those that
        // do not fit in would be half of it.
        let spare = if whole < HUGE { 0 } else { HUGE };
        // The system does not map nothing.
        let map = MmapMut::map_anon((whole + spare).max(1))?;
        let start = if spare == 0 { 0 } else { map.as_ptr().align_offset(HUGE) };
        // A system without huge pages refuses, and small ones are as right.
        #[cfg(target_os = "linux")]
        let _ = map.advise_range(memmap2::Advice::HugePage, start, whole);
        Ok(CellsMut { map, bytes: start..start + bytes, of: PhantomData })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / size_of::<T>()
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.bytes.clone()])
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.map[self.bytes.clone()])
    }

    /// The cells as they are from now on.
    pub(crate) fn freeze(self) -> std::io::Result<Cells<T>> {
        let map = Arc::new(self.map.make_read_only()?);
        Ok(Cells { map, bytes: self.bytes, of: PhantomData })
    }
}
