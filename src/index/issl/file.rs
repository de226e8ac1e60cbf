//! ISSL in a file: saved once, and mapped whenever it is needed. `docs/format.md` draws it.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use bytemuck::cast_slice;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Issl, Rates, slices::Slices, updates::Removed, usual_list};
use crate::{
    Error, Result, Signatures,
    container::{Container, ContainerWriter, kind_of},
    hamming,
    index::origin::Origin,
    mapped::Cells,
    signature::check_width,
    table::{Copies, KeyLayout, Rows, Table},
};

const KIND: &str = "issl";

/// What the file says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    bits: u32,
    rows: u64,
    /// Different signatures that are in the lists.
    distinct: u64,
    /// The width that was asked for, if any was.
    asked: Option<u32>,
    /// The bits of each slice. They follow from the width; a program that would cut otherwise notices it here.
    width: u32,
    slices: Vec<KeyLayout>,
    signatures: Origin,
}

impl<'a> Issl<'a> {
    /// Saves the index, which must be [settled](Self::settle). `of` is the file that its signatures are in: whoever opens
    /// the index finds them by that.
    pub fn save(&self, path: &Path, of: Option<&Path>) -> Result<()> {
        if cfg!(target_endian = "big") {
            return Err(Error::format(path, "would be little-endian, and this machine is not"));
        }
        if !self.is_settled() {
            return Err(Error::format(path, "would miss the latest changes: settle them first"));
        }
        let mut file = ContainerWriter::in_order(path, KIND)?;
        let offsets = file.begin("offsets")?;
        for table in &self.tables {
            file.write(offsets, cast_slice(table.offsets.as_slice()))?;
        }
        let numbers = file.begin("numbers")?;
        for table in &self.tables {
            if let Rows::Numbers(rows) = &table.rows {
                file.write(numbers, cast_slice(&rows.as_slice()[..self.distinct]))?;
            }
        }
        let rates = file.begin("rates")?;
        file.write(rates, cast_slice(&self.rates.shares()))?;
        if let Some(copies) = &self.copies.0 {
            let section = file.begin("copies")?;
            file.write(section, cast_slice(copies.as_slice()))?;
        }
        if self.removed.count() > 0 {
            let section = file.begin("removed")?;
            let mut words = self.removed.words().to_vec();
            words.resize(self.rows.len().div_ceil(64), 0);
            file.write(section, cast_slice(&words))?;
        }
        file.finish(About {
            bits: self.rows.bits(),
            rows: self.rows.len() as u64,
            distinct: self.distinct as u64,
            asked: self.width,
            width: self.slices.width(),
            slices: self.slices.layouts.clone(),
            signatures: Origin::new(&self.rows, path, of),
        })
    }

    /// Opens an index over the signatures that it was built over. It stays in its file, mapped.
    pub fn open(path: &Path, rows: &'a Signatures) -> Result<Self> {
        IsslFile::open(path)?.index(rows)
    }
}

/// An ISSL file, open, whose checksums were right.
#[derive(Debug, Clone)]
pub struct IsslFile {
    container: Container<About>,
    slices: Slices,
}

impl IsslFile {
    /// Whether a file says that it holds slice lists.
    pub fn is_in(path: &Path) -> bool {
        kind_of(path).as_deref() == Some(KIND)
    }

    /// Opens a file and checks every byte of it.
    pub fn open(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let About { bits, width, .. } = container.about;
        let damaged = |error: Error| Error::damaged(path, format!("says what cannot be: {error}"));
        check_width(bits as usize).map_err(damaged)?;
        let slices = Slices::new(bits, width).map_err(damaged)?;
        if slices.layouts != container.about.slices {
            return Err(Error::damaged(path, "has other slices than this program has"));
        }
        Ok(IsslFile { container, slices })
    }

    /// The width of the signatures in bits.
    pub fn bits(&self) -> u32 {
        self.container.about.bits
    }

    /// How many signatures there are.
    pub fn rows(&self) -> u64 {
        self.container.about.rows
    }

    /// How many different ones are in the lists.
    pub fn distinct(&self) -> u64 {
        self.container.about.distinct
    }

    /// How many bits the widest slice has.
    pub fn width(&self) -> u32 {
        self.slices.width()
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

    /// Refuses signatures that it was not built over.
    pub fn check_rows(&self, rows: &Signatures) -> Result<()> {
        let about = &self.container.about;
        about.signatures.check(self.container.path(), (about.rows, about.bits), rows)
    }

    /// The index, over the signatures that it was built over.
    pub fn index<'a>(&self, rows: &'a Signatures) -> Result<Issl<'a>> {
        self.check_rows(rows)?;
        let About { bits, asked, .. } = self.container.about;
        let distinct = self.check_counts()?;
        let rates = self.container.cells::<f32>("rates", Rates::SHARES)?;
        let rates = Rates::from_shares(rates.as_slice());
        let rates = rates.ok_or_else(|| self.container.damaged("rates", "has what is no share"))?;
        let removed = self.removed(rows.len())?;
        let tables = self.tables(distinct)?;
        Ok(Issl {
            usual_list: usual_list(&tables),
            tables,
            copies: self.copies(rows.len(), distinct + removed.count())?,
            rows: Cow::Borrowed(rows),
            width: asked,
            slices: self.slices.clone(),
            distinct,
            fresh: Signatures::new(bits)?,
            removed,
            unsettled: 0,
            costs: rates.costs(),
            rates,
            kernel: hamming::kernel()?,
            reach: None,
            workspaces: Default::default(),
            known: Default::default(),
        })
    }

    fn check(&self, right: bool, section: &str, problem: &str) -> Result<()> {
        if right { Ok(()) } else { Err(self.container.damaged(section, problem)) }
    }

    /// How many signatures the lists have, if that can be.
    fn check_counts(&self) -> Result<usize> {
        let About { rows, distinct, .. } = self.container.about;
        if u32::try_from(rows).is_err() {
            return Err(Error::TooManyRows { rows: rows as usize });
        }
        self.check(distinct <= rows, "numbers", "has more signatures than there are")?;
        Ok(distinct as usize)
    }

    fn tables(&self, distinct: usize) -> Result<Vec<Table>> {
        let layouts = &self.slices.layouts;
        let cells = |layout: &KeyLayout| (1_usize << layout.width()) + 1;
        let all = self.container.cells::<u32>("offsets", layouts.iter().map(cells).sum())?;
        let numbers = self.container.cells::<u32>("numbers", layouts.len() * distinct)?;
        let rows = self.rows() as usize;
        let below = numbers.as_slice().par_iter().all(|&number| (number as usize) < rows);
        self.check(below, "numbers", "names rows that are not")?;
        let mut start = 0;
        let tables = layouts.iter().enumerate().map(|(slice, layout)| {
            let end = start + cells(layout);
            let part = |cells: &Cells<u32>, range| cells.part(range).expect("the sum was right");
            let offsets = part(&all, start..end);
            start = end;
            self.check(
                leads(&offsets, distinct),
                "offsets",
                "does not lead through the rows in order",
            )?;
            let rows = part(&numbers, slice * distinct..(slice + 1) * distinct);
            Ok(Table::from_cells(layout.clone(), self.bits(), offsets, Rows::Numbers(rows)))
        });
        tables.collect()
    }

    /// From each row to its next copy: they lead upwards, so to an end. Rows that are neither in the lists nor copies
    /// were removed.
    fn copies(&self, rows: usize, accounted: usize) -> Result<Copies> {
        if !self.container.has("copies") {
            self.check(accounted >= rows, "copies", "is missing")?;
            return Ok(Copies(None));
        }
        let copies = Copies(Some(self.container.cells("copies", rows)?));
        let right = copies.links().is_some_and(|links| links > 0 && links + accounted >= rows);
        self.check(right, "copies", "does not lead from copy to copy")?;
        Ok(copies)
    }

    fn removed(&self, rows: usize) -> Result<Removed> {
        if !self.container.has("removed") {
            return Ok(Removed::default());
        }
        let words = self.container.cells::<u64>("removed", rows.div_ceil(64))?;
        let words = words.as_slice().to_vec();
        let past =
            words.last().is_some_and(|last| !rows.is_multiple_of(64) && last >> (rows % 64) > 0);
        self.check(!past, "removed", "names rows that are not")?;
        Ok(Removed::from_words(words))
    }
}

/// Whether offsets lead through so many rows in order.
fn leads(offsets: &Cells<u32>, rows: usize) -> bool {
    let offsets = offsets.as_slice();
    offsets.first() == Some(&0)
        && offsets.last() == Some(&(rows as u32))
        && offsets.par_windows(2).all(|pair| pair[0] <= pair[1])
}
