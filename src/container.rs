//! The frame of our files: named sections with checksums, a JSON header that lists them, all or nothing on disk.
//!
//! `docs/format.md` draws it byte by byte. The prelude of 64 bytes is written last, the file takes its name after that:
//! a file that has its name is whole, and one that was damaged later is detected when it is opened.

use std::{
    fs,
    io::{BufReader, BufWriter, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytemuck::Pod;
use memmap2::Mmap;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tempfile::SpooledTempFile;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::{
    Error, Result,
    mapped::{Cells, map_file},
    partial::{Partial, folder_of},
};

const MAGIC: &[u8; 8] = b"LOOKALIK";
const NOT_OURS: &str = "is not a file that lookalike wrote";
const VERSION: u32 = 1;
const PRELUDE: usize = 64;
/// Sections start at multiples of this, so that rows are aligned for every kernel.
const ALIGNMENT: u64 = 128;

/// One section, as the header lists it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Section {
    name: String,
    offset: u64,
    length: u64,
    /// XXH3-64 of its bytes, in hexadecimal.
    xxh3: String,
}

/// The JSON header: what kind of file it is, what it says about itself, where its sections are.
#[derive(Debug, Serialize, Deserialize)]
struct Header<M> {
    kind: String,
    about: M,
    sections: Vec<Section>,
}

/// Writes a file section by section, in any order, in memory that does not grow with it.
pub(crate) struct ContainerWriter {
    kind: &'static str,
    path: PathBuf,
    file: BufWriter<Partial>,
    written: u64,
    sections: Vec<SectionWriter>,
}

/// A section goes straight into the file if nothing else is written before it is complete, otherwise it waits in a spool
/// file.
struct SectionWriter {
    name: &'static str,
    hash: Xxh3Default,
    length: u64,
    place: Place,
}

enum Place {
    /// In the file, from here on.
    File {
        offset: u64,
    },
    Spool(BufWriter<SpooledTempFile>),
}

impl ContainerWriter {
    /// Begins a file at `path` with these sections. What is there now stays until [`finish`](Self::finish).
    pub(crate) fn create(path: &Path, kind: &'static str, names: &[&'static str]) -> Result<Self> {
        let mut writer = ContainerWriter::in_order(path, kind)?;
        let (first, others) = names.split_first().expect("a file has sections");
        writer.begin(first)?;
        for &name in others {
            // Small ones stay in memory.
            let spool = tempfile::spooled_tempfile_in(1 << 20, folder_of(path));
            let place = Place::Spool(BufWriter::with_capacity(1 << 16, spool));
            writer.sections.push(SectionWriter::new(name, place));
        }
        Ok(writer)
    }

    /// Begins a file at `path` whose sections are written one after the other: none of them has to wait.
    pub(crate) fn in_order(path: &Path, kind: &'static str) -> Result<Self> {
        let io = |error| Error::io(path, error);
        let mut file = BufWriter::with_capacity(1 << 20, Partial::create(path).map_err(io)?);
        file.write_all(&[0; ALIGNMENT as usize]).map_err(io)?;
        let path = path.to_owned();
        Ok(ContainerWriter { kind, path, file, written: ALIGNMENT, sections: Vec::new() })
    }

    /// Begins the next section of a file that is written in order; gives its number.
    pub(crate) fn begin(&mut self, name: &'static str) -> Result<usize> {
        self.pad().map_err(|error| Error::io(&self.path, error))?;
        let place = Place::File { offset: self.written };
        self.sections.push(SectionWriter::new(name, place));
        Ok(self.sections.len() - 1)
    }

    /// Appends to a section: the `section`th at [`create`](Self::create), or the one begun last.
    pub(crate) fn write(&mut self, section: usize, bytes: &[u8]) -> Result<()> {
        let section = &mut self.sections[section];
        section.hash.update(bytes);
        section.length += bytes.len() as u64;
        let result = match &mut section.place {
            Place::Spool(spool) => spool.write_all(bytes),
            Place::File { .. } => {
                self.written += bytes.len() as u64;
                self.file.write_all(bytes)
            }
        };
        result.map_err(|error| Error::io(&self.path, error))
    }

    /// Completes the file, makes it durable and gives it its name.
    pub(crate) fn finish(self, about: impl Serialize) -> Result<()> {
        let path = self.path.clone();
        self.finish_file(about).map_err(|error| Error::io(&path, error))
    }

    fn finish_file(mut self, about: impl Serialize) -> std::io::Result<()> {
        let mut listed = Vec::new();
        for section in std::mem::take(&mut self.sections) {
            self.pad()?;
            let offset = match section.place {
                Place::File { offset } => offset,
                Place::Spool(spool) => self.append(spool)?,
            };
            listed.push(Section {
                name: section.name.to_owned(),
                offset,
                length: section.length,
                xxh3: format!("{:016x}", section.hash.digest()),
            });
        }
        self.pad()?;
        let header = Header { kind: self.kind.to_owned(), about, sections: listed };
        let header = serde_json::to_vec(&header)?;
        self.file.write_all(&header)?;
        let mut file = self.file.into_inner()?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&prelude(self.written, &header))?;
        file.complete()
    }

    /// Moves what waited to the end of the file; gives where it begins.
    fn append(&mut self, spool: BufWriter<SpooledTempFile>) -> std::io::Result<u64> {
        let offset = self.written;
        let mut spool = spool.into_inner().map_err(|error| error.into_error())?;
        spool.seek(SeekFrom::Start(0))?;
        let mut spool = BufReader::with_capacity(1 << 20, spool);
        self.written += std::io::copy(&mut spool, &mut self.file)?;
        Ok(offset)
    }

    fn pad(&mut self) -> std::io::Result<()> {
        let padding = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.written += padding;
        self.file.write_all(&[0; ALIGNMENT as usize][..padding as usize])
    }
}

impl SectionWriter {
    fn new(name: &'static str, place: Place) -> Self {
        SectionWriter { name, hash: Xxh3Default::new(), length: 0, place }
    }
}

fn prelude(header_offset: u64, header: &[u8]) -> [u8; PRELUDE] {
    let mut prelude = [0; PRELUDE];
    prelude[..8].copy_from_slice(MAGIC);
    prelude[8..12].copy_from_slice(&VERSION.to_le_bytes());
    prelude[16..24].copy_from_slice(&header_offset.to_le_bytes());
    prelude[24..32].copy_from_slice(&(header.len() as u64).to_le_bytes());
    prelude[32..40].copy_from_slice(&xxh3_64(header).to_le_bytes());
    let check = xxh3_64(&prelude[..56]);
    prelude[56..].copy_from_slice(&check.to_le_bytes());
    prelude
}

/// An open file whose checksums were right.
#[derive(Debug, Clone)]
pub(crate) struct Container<M> {
    /// What the file says about itself.
    pub(crate) about: M,
    path: PathBuf,
    map: Arc<Mmap>,
    sections: Vec<Section>,
}

/// What kind of file of ours this is, if it is one.
pub(crate) fn kind_of(path: &Path) -> Option<String> {
    let map = map_file(path).ok().filter(|map| map.len() >= PRELUDE && &map[..8] == MAGIC)?;
    let header: Header<serde::de::IgnoredAny> =
        parse_header(&map[check_prelude(&map).ok()?]).ok()?;
    Some(header.kind)
}

impl<M: DeserializeOwned> Container<M> {
    /// Opens a file of this kind and checks every byte of it.
    pub(crate) fn open(path: &Path, kind: &str) -> Result<Self> {
        let damaged = |problem: String| Error::damaged(path, problem);
        if path.is_dir() {
            return Err(Error::format(path, "is a folder, not a file"));
        }
        if cfg!(target_endian = "big") {
            return Err(damaged(
                "is little-endian, and this machine is not: convert it to .npy on one that is"
                    .into(),
            ));
        }
        if fs::metadata(path).map_err(|error| Error::io(path, error))?.len() < PRELUDE as u64 {
            return Err(Error::format(path, NOT_OURS));
        }
        let map = map_file(path)?;
        if &map[..8] != MAGIC {
            return Err(Error::format(path, NOT_OURS));
        }
        let header_range = check_prelude(&map).map_err(damaged)?;
        let about_kind: Header<serde::de::IgnoredAny> =
            parse_header(&map[header_range.clone()]).map_err(damaged)?;
        if about_kind.kind != kind {
            return Err(Error::format(
                path,
                format!("is of kind `{}`, not `{kind}`", about_kind.kind),
            ));
        }
        let header: Header<M> = parse_header(&map[header_range]).map_err(damaged)?;
        let container = Container {
            about: header.about,
            path: path.to_owned(),
            map,
            sections: header.sections,
        };
        container.sections.iter().try_for_each(|section| container.check(section))?;
        Ok(container)
    }

    fn check(&self, section: &Section) -> Result<()> {
        let bytes = self.range(section).and_then(|range| self.map.get(range));
        match bytes {
            None => Err(self.damaged(&section.name, "lies outside of the file: the file is cut")),
            Some(bytes) if format!("{:016x}", xxh3_64(bytes)) != section.xxh3 => {
                Err(self.damaged(&section.name, "does not match its checksum: the file is damaged"))
            }
            Some(_) => Ok(()),
        }
    }

    fn range(&self, section: &Section) -> Option<Range<usize>> {
        let start = usize::try_from(section.offset).ok()?;
        Some(start..start.checked_add(usize::try_from(section.length).ok()?)?)
    }

    fn find(&self, name: &str) -> Option<Range<usize>> {
        self.range(self.sections.iter().find(|section| section.name == name)?)
    }

    /// The bytes of a section, if there is one of that name.
    pub(crate) fn mapped_bytes(&self, name: &str) -> Option<Cells<u8>> {
        Cells::new(self.map.clone(), self.find(name)?)
    }

    /// The checksum of a section, which is right.
    pub(crate) fn checksum(&self, name: &str) -> Option<u64> {
        let section = self.sections.iter().find(|section| section.name == name)?;
        u64::from_str_radix(&section.xxh3, 16).ok()
    }

    /// Whether there is a section of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes the file has.
    pub(crate) fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// A section as cells of a type, which must be `cells` many.
    pub(crate) fn cells<T: Pod>(&self, name: &str, cells: usize) -> Result<Cells<T>> {
        let range = self.find(name).ok_or_else(|| self.damaged(name, "is missing"))?;
        let mapped = Cells::new(self.map.clone(), range);
        let mapped = mapped.ok_or_else(|| self.damaged(name, "is not made of whole cells"))?;
        match mapped.as_slice().len() == cells {
            true => Ok(mapped),
            false => Err(self.damaged(name, "does not have the length that the header says")),
        }
    }

    /// An error about one section.
    pub(crate) fn damaged(&self, section: &str, problem: &str) -> Error {
        Error::damaged(&self.path, format!("section `{section}` {problem}"))
    }
}

fn check_prelude(map: &[u8]) -> Result<Range<usize>, String> {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| map[at + i]));
    if word(56) != xxh3_64(&map[..56]) {
        return Err("has a damaged prelude (bytes 0 to 63)".into());
    }
    let version = word(8) as u32;
    if version != VERSION {
        return Err(format!("has format version {version}; this program reads version {VERSION}"));
    }
    let start = word(16) as usize;
    let header = start.checked_add(word(24) as usize).and_then(|end| map.get(start..end));
    match header {
        None => Err("is cut: its header lies behind its end".into()),
        Some(header) if xxh3_64(header) != word(32) => {
            Err(format!("has a damaged header (at byte {start})"))
        }
        Some(header) => Ok(start..start + header.len()),
    }
}

fn parse_header<M: DeserializeOwned>(bytes: &[u8]) -> Result<Header<M>, String> {
    serde_json::from_slice(bytes)
        .map_err(|error| format!("has a header that cannot be read: {error}"))
}
