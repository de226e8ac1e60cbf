//! Tables: every composition of tables and probes, built and searched by the same code.

mod engine;
mod file;
mod hits;
mod looks;
mod nearest;
mod recall;
mod rings;
mod view;

pub use file::IndexFile;
pub(crate) use rings::random_radius;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, Mutex, OnceLock},
};

use rayon::prelude::*;

use self::{engine::Engine, looks::Looking, recall::Calibration, rings::Rings};
use super::{Answers, Composition, Index, Method, Promise, Queries, Scan};
use crate::{
    Error, Result, Signatures,
    hamming::{self, Kernel},
    mapped::Cells,
    table::{Copies, Distinct, Stored, Table, key_width, no_memory},
};

/// An index of tables over rows that stay where they are.
#[derive(Debug)]
pub struct Tables<'a> {
    rows: Cow<'a, Signatures>,
    composition: Composition,
    stored: Stored,
    tables: Vec<Table>,
    /// The lowest row of each signature, in the order of the first table. Empty if tables have rows' numbers.
    firsts: Cells<u32>,
    copies: Copies,
    distinct: usize,
    kernel: Kernel,
    /// What is looked up, by radius.
    looking: Mutex<Vec<Arc<Looking>>>,
    /// What is looked up for the nearest.
    rings: OnceLock<Rings>,
    /// What is found beyond the guarantee, by radius.
    calibrations: Mutex<Vec<Calibration>>,
}

/// How tables are built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Build {
    /// The most bits of a key; otherwise what suits the number of rows.
    pub key_width: Option<u32>,
    /// What is stored of each row; otherwise whole signatures, or their numbers if they are wide.
    pub stored: Option<Stored>,
}

/// Queries that one thread answers before it looks for more.
const PART: usize = 1024;

impl<'a> Tables<'a> {
    /// Builds the tables of a method over `rows`, on all cores. Rows that are given away live as long as the tables.
    pub fn build(
        rows: impl Into<Cow<'a, Signatures>>,
        method: Method,
        build: Build,
    ) -> Result<Self> {
        let rows = rows.into();
        if u32::try_from(rows.len()).is_err() {
            return Err(Error::TooManyRows { rows: rows.len() });
        }
        let bits = rows.bits();
        let kernel = hamming::kernel()?;
        let distinct = Distinct::of(&rows)?;
        let len = distinct.firsts.len();
        let width = build.key_width.unwrap_or_else(|| key_width(len));
        let composition = method.compose(bits, width)?;
        let stored = stored_as(&composition, build.stored)?;
        let table = |layout: &_| Table::build(Clone::clone(layout), stored, &rows, &distinct);
        let tables = composition.layouts().iter().map(table).collect::<Result<_>>()?;
        let firsts = match stored {
            Stored::Numbers => &[],
            Stored::Whole | Stored::Split | Stored::Lines => &distinct.firsts[..],
        };
        let firsts = Cells::copy_of(firsts).map_err(no_memory)?;
        let copies = distinct.copies;
        Ok(Tables {
            rows,
            composition,
            stored,
            tables,
            firsts,
            copies,
            distinct: len,
            kernel,
            looking: Mutex::default(),
            rings: OnceLock::new(),
            calibrations: Mutex::default(),
        })
    }

    /// Which tables there are, and what is looked at in them.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// What the tables store of each row.
    pub fn stored(&self) -> Stored {
        self.stored
    }

    /// How many signatures are distinct.
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// How much memory the tables take.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(Table::bytes).sum()
    }

    /// How much memory it takes to lead from signatures to rows.
    pub fn row_bytes(&self) -> u64 {
        size_of_val(self.firsts.as_slice()) as u64 + self.copies.bytes()
    }

    /// The largest radius within which every row is found.
    pub fn guarantee(&self) -> u32 {
        self.composition.guarantee()
    }

    fn ask(
        &self,
        queries: Queries<'_>,
        radius: u32,
        first: bool,
        found: &mut Answers,
    ) -> Result<Promise> {
        if queries.bits() != self.rows.bits() {
            return Err(Error::WidthMismatch { stored: self.rows.bits(), given: queries.bits() });
        }
        // All rows are that near.
        let radius = radius.min(self.rows.bits());
        let looking = self.looking(radius);
        if looking.scan {
            let scan = Scan::with_kernel(&self.rows, self.kernel)?;
            return match first {
                true => scan.first(queries, radius, found),
                false => scan.within(queries, radius, found),
            };
        }
        self.in_parts(queries.len(), found, |part: Range<usize>, found: &mut Answers| {
            Engine::new(self, &looking, queries, first).run(part, found);
        });
        match looking.exact {
            true => Ok(Promise::Exact),
            false => self.expected(queries, &looking, found),
        }
    }

    /// Answers so many queries, on all cores if they are many.
    fn in_parts(
        &self,
        len: usize,
        found: &mut Answers,
        run: impl Fn(Range<usize>, &mut Answers) + Sync,
    ) {
        found.clear();
        let part = len.div_ceil(rayon::current_num_threads()).clamp(SHARED_FROM, PART);
        if len <= part {
            return run(0..len, found);
        }
        let parts: Vec<_> = (0..len).step_by(part).collect();
        let parts = parts.into_par_iter().map(|start| {
            let mut found = Answers::new();
            run(start..(start + part).min(len), &mut found);
            found
        });
        parts.collect::<Vec<_>>().iter().for_each(|part| found.append(part));
    }

    /// What is looked up for a radius, made ready once.
    fn looking(&self, radius: u32) -> Arc<Looking> {
        let mut known = self.looking.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = known.iter().find(|known| known.radius == radius) {
            return known.clone();
        }
        let looking = Arc::new(Looking::new(&self.composition, radius, self.distinct));
        known.push(looking.clone());
        looking
    }
}

/// Fewer queries than this are not worth another thread.
const SHARED_FROM: usize = 64;

/// What tables store: what was asked for, if it suits.
fn stored_as(composition: &Composition, asked: Option<Stored>) -> Result<Stored> {
    let bits = composition.bits;
    let narrowest = composition.layouts().iter().map(|layout| layout.width()).min().unwrap_or(0);
    let stored = asked.unwrap_or(if bits <= 64 { Stored::Whole } else { Stored::Numbers });
    match stored.suits(bits, narrowest) {
        true => Ok(stored),
        false => Err(Error::Method {
            method: composition.method().to_string(),
            problem: format!(
                "cannot store rows of {bits} bits as `{}` with keys of {narrowest} bits",
                stored.name()
            ),
        }),
    }
}

impl Index for Tables<'_> {
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.ask(queries, radius, false, found)
    }

    /// The row that the likeliest key leads to.
    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        self.ask(queries, radius, true, found)
    }

    /// Keys ever farther from the query's own, and where that would cost more, a scan.
    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise> {
        self.find_nearest(queries, k, found)?;
        Ok(Promise::Exact)
    }
}
