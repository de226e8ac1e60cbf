//! Tables in a file: saved once, and mapped whenever they are needed. `docs/format.md` draws it.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use bytemuck::{Pod, cast_slice};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Tables, stored_as};
use crate::{
    Error, Result, Signatures,
    container::{Container, ContainerWriter, kind_of},
    hamming::{self, LINE_WORDS, READ_PAST},
    index::{Composition, Method, origin::Origin},
    mapped::Cells,
    signature::check_width,
    table::{Copies, KeyLayout, Lines, Rows, Stored, Table},
};

const KIND: &str = "index";
/// The rows of each table begin at multiples of this, as those in memory do: the lines of the cache are the kernels' lines.
const ALIGNMENT: usize = 64;

/// What an index file says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    method: Method,
    bits: u32,
    rows: u64,
    distinct: u64,
    key_width: u32,
    stored: Stored,
    /// The bits of each table's key. They follow from the rest; a program that would cut keys otherwise notices it here.
    keys: Vec<KeyLayout>,
    /// How many rows of each table lines have no room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more: Vec<u64>,
    signatures: Origin,
}

impl<'a> Tables<'a> {
    /// Saves the index. `of` is the file that its signatures are in: whoever opens the index finds them by that.
    pub fn save(&self, path: &Path, of: Option<&Path>) -> Result<()> {
        if cfg!(target_endian = "big") {
            return Err(Error::format(path, "would be little-endian, and this machine is not"));
        }
        let mut file = ContainerWriter::in_order(path, KIND)?;
        if self.stored != Stored::Lines {
            let offsets = file.begin("offsets")?;
            for table in &self.tables {
                file.write(offsets, cast_slice(table.offsets.as_slice()))?;
            }
        }
        for (column, name) in self.stored.columns().iter().enumerate() {
            let section = file.begin(name)?;
            for table in &self.tables {
                let bytes = table.rows.columns(self.distinct)[column];
                file.write(section, bytes)?;
                file.write(section, &[0; READ_PAST + ALIGNMENT][..padding(bytes.len())])?;
            }
        }
        if self.stored != Stored::Numbers {
            let section = file.begin("firsts")?;
            file.write(section, cast_slice(self.firsts.as_slice()))?;
        }
        if let Some(copies) = &self.copies.0 {
            let section = file.begin("copies")?;
            file.write(section, cast_slice(copies.as_slice()))?;
        }
        file.finish(self.about(path, of))
    }

    /// Opens an index over the signatures that it was built over. It stays in its file, mapped.
    pub fn open(path: &Path, rows: &'a Signatures) -> Result<Self> {
        IndexFile::open(path)?.tables(rows)
    }

    /// The same index, moved into huge pages where the system has them: pages of a file are small ones, and finding them
    /// takes longer. Worth the copy for many queries.
    pub fn in_huge_pages(mut self) -> Self {
        self.tables.iter_mut().for_each(|table| {
            copy(&mut table.offsets);
            match &mut table.rows {
                Rows::Whole(words) => copy(words),
                Rows::Split(low, high) => (copy(low), copy(high)).1,
                Rows::Lines(Lines { words, more }) => (copy(words), copy(more)).1,
                Rows::Numbers(numbers) => copy(numbers),
            }
        });
        copy(&mut self.firsts);
        self.copies.0.iter_mut().for_each(copy);
        self
    }

    fn about(&self, path: &Path, of: Option<&Path>) -> About {
        About {
            method: self.composition.method(),
            bits: self.rows.bits(),
            rows: self.rows.len() as u64,
            distinct: self.distinct as u64,
            key_width: self.composition.key_width(),
            stored: self.stored,
            keys: self.composition.layouts().to_vec(),
            more: self.tables.iter().filter_map(|table| table.rows.more()).collect(),
            signatures: Origin::new(&self.rows, path, of),
        }
    }
}

/// Moves cells into huge pages. Where there is no room for them they stay, which is as right.
fn copy<T: Pod>(cells: &mut Cells<T>) {
    if let Ok(copy) = Cells::copy_of(cells.as_slice()) {
        *cells = copy;
    }
}

/// How many bytes follow the rows of a table: those that a vector may read, and up to where the next table begins.
fn padding(bytes: usize) -> usize {
    (bytes + READ_PAST).next_multiple_of(ALIGNMENT) - bytes
}

impl Stored {
    /// The sections that rows are in.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Stored::Whole => &["words"],
            Stored::Split => &["low", "high"],
            Stored::Lines => &["lines", "more"],
            Stored::Numbers => &["numbers"],
        }
    }
}

impl Rows {
    /// The bytes of so many rows, column by column.
    fn columns(&self, rows: usize) -> Vec<&[u8]> {
        match self {
            Rows::Whole(words) => vec![cast_slice(&words.as_slice()[..rows])],
            Rows::Split(low, high) => {
                vec![cast_slice(&low.as_slice()[..rows]), cast_slice(&high.as_slice()[..rows])]
            }
            Rows::Lines(lines) => {
                let more = &lines.more.as_slice()[..lines.elsewhere()];
                vec![cast_slice(lines.words.as_slice()), cast_slice(more)]
            }
            Rows::Numbers(numbers) => vec![cast_slice(&numbers.as_slice()[..rows])],
        }
    }

    /// How many rows lines have no room for.
    fn more(&self) -> Option<u64> {
        match self {
            Rows::Lines(lines) => Some(lines.elsewhere() as u64),
            Rows::Whole(_) | Rows::Split(..) | Rows::Numbers(_) => None,
        }
    }
}

/// An index file, open, whose checksums were right.
#[derive(Debug, Clone)]
pub struct IndexFile {
    container: Container<About>,
    composition: Composition,
}

impl IndexFile {
    /// Whether a file says that it holds an index.
    pub fn is_in(path: &Path) -> bool {
        kind_of(path).as_deref() == Some(KIND)
    }

    /// Opens a file and checks every byte of it.
    pub fn open(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let about = &container.about;
        let damaged = |error: Error| Error::damaged(path, format!("says what cannot be: {error}"));
        check_width(about.bits as usize).map_err(damaged)?;
        let composition = about.method.compose(about.bits, about.key_width).map_err(damaged)?;
        stored_as(&composition, Some(about.stored)).map_err(damaged)?;
        if composition.layouts() != about.keys {
            let problem = format!("has other keys than {} of this program has", about.method);
            return Err(Error::damaged(path, problem));
        }
        Ok(IndexFile { container, composition })
    }

    /// Which tables there are, and what is looked at in them.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// The width of the signatures in bits.
    pub fn bits(&self) -> u32 {
        self.container.about.bits
    }

    /// How many signatures there are.
    pub fn rows(&self) -> u64 {
        self.container.about.rows
    }

    /// How many of them are distinct.
    pub fn distinct(&self) -> u64 {
        self.container.about.distinct
    }

    /// What the tables store of each row.
    pub fn stored(&self) -> Stored {
        self.container.about.stored
    }

    /// How many bytes the file has.
    pub fn bytes(&self) -> u64 {
        self.container.bytes()
    }

    /// What the file of the signatures is called, as seen from the folder of the index.
    pub fn signatures_name(&self) -> Option<&str> {
        self.container.about.signatures.file.as_deref()
    }

    /// Where the signatures are, if the index knows: in their place, or beside the index if the two were moved.
    pub fn signatures(&self) -> Option<PathBuf> {
        self.container.about.signatures.path(self.container.path())
    }

    /// The tables, over the signatures that they were built over.
    pub fn tables<'a>(&self, rows: impl Into<Cow<'a, Signatures>>) -> Result<Tables<'a>> {
        let rows = rows.into();
        let About { bits, rows: count, ref signatures, .. } = self.container.about;
        signatures.check(self.container.path(), (count, bits), &rows)?;
        let distinct = self.check_counts()?;
        let tables = self.read_tables(distinct)?;
        let firsts = match self.stored() {
            Stored::Numbers => Cells::copy_of(&[]).map_err(crate::table::no_memory)?,
            Stored::Whole | Stored::Split | Stored::Lines => {
                self.container.cells("firsts", distinct)?
            }
        };
        self.check(all_below(firsts.as_slice(), rows.len()), "firsts", "names rows that are not")?;
        let copies = self.copies(rows.len(), distinct)?;
        Ok(Tables {
            rows,
            composition: self.composition.clone(),
            stored: self.stored(),
            tables,
            firsts,
            copies,
            distinct,
            kernel: hamming::kernel()?,
            looking: Default::default(),
            rings: Default::default(),
            calibrations: Default::default(),
        })
    }

    fn check(&self, right: bool, section: &str, problem: &str) -> Result<()> {
        match right {
            true => Ok(()),
            false => Err(self.container.damaged(section, problem)),
        }
    }

    /// How many signatures are distinct, if that can be.
    fn check_counts(&self) -> Result<usize> {
        let About { rows, distinct, .. } = self.container.about;
        if u32::try_from(rows).is_err() {
            return Err(Error::TooManyRows { rows: rows as usize });
        }
        let possible = distinct <= rows && (distinct == 0) == (rows == 0);
        self.check(possible, "offsets", "has a number of signatures that cannot be")?;
        Ok(distinct as usize)
    }

    fn read_tables(&self, distinct: usize) -> Result<Vec<Table>> {
        let rows = self.read_rows(distinct)?;
        let layouts = self.composition.layouts();
        if self.stored() == Stored::Lines {
            let none = Cells::copy_of(&[]).map_err(crate::table::no_memory)?;
            let table = |(layout, rows): (&KeyLayout, Rows)| {
                Table::from_cells(layout.clone(), self.bits(), none.clone(), rows)
            };
            return Ok(layouts.iter().zip(rows).map(table).collect());
        }
        let cells = |layout: &KeyLayout| (1_usize << layout.width()) + 1;
        let all = self.container.cells::<u32>("offsets", layouts.iter().map(cells).sum())?;
        let mut start = 0;
        let tables = layouts.iter().zip(rows).map(|(layout, rows)| {
            let end = start + cells(layout);
            let offsets = all.part(start..end).expect("the sum of all was right");
            start = end;
            let slice = offsets.as_slice();
            let lead = slice.first() == Some(&0)
                && slice.last() == Some(&(distinct as u32))
                && slice.par_windows(2).all(|pair| pair[0] <= pair[1]);
            self.check(lead, "offsets", "does not lead through the rows in order")?;
            Ok(Table::from_cells(layout.clone(), self.bits(), offsets, rows))
        });
        tables.collect()
    }

    fn read_rows(&self, distinct: usize) -> Result<Vec<Rows>> {
        Ok(match self.stored() {
            Stored::Whole => {
                self.column("words", &self.each(distinct))?.into_iter().map(Rows::Whole).collect()
            }
            Stored::Split => {
                let each = self.each(distinct);
                let columns = (self.column("low", &each)?, self.column("high", &each)?);
                let rows = columns.0.into_iter().zip(columns.1);
                rows.map(|(low, high)| Rows::Split(low, high)).collect()
            }
            Stored::Lines => self.read_lines(distinct)?,
            Stored::Numbers => {
                let numbers: Vec<Cells<u32>> = self.column("numbers", &self.each(distinct))?;
                let rows = self.rows() as usize;
                let below = |cells: &Cells<u32>| all_below(&cells.as_slice()[..distinct], rows);
                let right = numbers.iter().all(below);
                self.check(right, "numbers", "names rows that are not")?;
                numbers.into_iter().map(Rows::Numbers).collect()
            }
        })
    }

    fn read_lines(&self, distinct: usize) -> Result<Vec<Rows>> {
        let layouts = self.composition.layouts();
        let more = &self.container.about.more;
        self.check(more.len() == layouts.len(), "more", "does not say what each table has of it")?;
        let more: Vec<usize> = more.iter().map(|&rows| rows as usize).collect();
        let words: Vec<usize> = layouts.iter().map(|layout| LINE_WORDS << layout.width()).collect();
        let columns = (self.column("lines", &words)?, self.column("more", &more)?);
        let counts = words.into_iter().zip(more);
        let lines =
            columns.0.into_iter().zip(columns.1).zip(counts).map(|((words, more), counts)| {
                // Without what only fills the section.
                let (words, more) = (
                    words.part(0..counts.0),
                    more.part(0..counts.1 + READ_PAST / size_of::<u64>()),
                );
                Lines { words: words.expect("so many"), more: more.expect("so many") }
            });
        let lines: Vec<Lines> = lines.collect();
        let right = lines.par_iter().all(|lines| lines.lead_through(distinct));
        self.check(right, "lines", "does not lead through the rows in order")?;
        Ok(lines.into_iter().map(Rows::Lines).collect())
    }

    /// As many cells for each table.
    fn each(&self, cells: usize) -> Vec<usize> {
        vec![cells; self.composition.layouts().len()]
    }

    /// The cells of each table in a section, if there are so many of them.
    fn column<T: Pod>(&self, name: &str, cells: &[usize]) -> Result<Vec<Cells<T>>> {
        let bytes = |cells: usize| {
            let bytes =
                cells.checked_mul(size_of::<T>()).filter(|&bytes| bytes < usize::MAX / 2)?;
            Some(bytes + padding(bytes))
        };
        let ends = cells.iter().try_fold(vec![0_usize], |mut ends, &cells| {
            ends.push(ends.last()?.checked_add(bytes(cells)? / size_of::<T>())?);
            Some(ends)
        });
        let Some(ends) = ends else {
            return Err(self.container.damaged(name, "has more rows than fit into memory"));
        };
        let all = self.container.cells::<T>(name, ends[cells.len()])?;
        let part = |pair: &[usize]| all.part(pair[0]..pair[1]).expect("the sum of all was right");
        Ok(ends.windows(2).map(part).collect())
    }

    /// From each row to its next copy: there are as many as rows are not distinct, and they lead upwards, so to an end.
    fn copies(&self, rows: usize, distinct: usize) -> Result<Copies> {
        let there = self.container.has("copies");
        self.check(there == (distinct < rows), "copies", "does not fit the number of signatures")?;
        if !there {
            return Ok(Copies(None));
        }
        let copies = Copies(Some(self.container.cells("copies", rows)?));
        let right = copies.links() == Some(rows - distinct);
        self.check(right, "copies", "does not lead from copy to copy")?;
        Ok(copies)
    }
}

fn all_below(numbers: &[u32], end: usize) -> bool {
    numbers.par_iter().all(|&number| (number as usize) < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_at_lines_and_have_room_behind_them() {
        for bytes in 0..300 {
            assert!(padding(bytes) >= READ_PAST && padding(bytes) < READ_PAST + ALIGNMENT);
            assert!((bytes + padding(bytes)).is_multiple_of(ALIGNMENT));
        }
    }
}
