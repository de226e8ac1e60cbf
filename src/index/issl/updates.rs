//! Rows that come and go. New ones wait beside the tables, where every query is compared with them; those removed are
//! marked. When either has grown, the tables are built again. Rows keep their numbers for ever.

use std::borrow::Cow;

use super::{
    Issl, build_tables,
    slices::{Slices, width_for},
    usual_list,
};
use crate::{Error, Result, Signature, Signatures, table::Distinct};

/// Which rows were removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Removed {
    /// A bit for each row as far as any was removed.
    words: Vec<u64>,
    count: usize,
}

impl Removed {
    pub(super) fn from_words(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        Removed { words, count }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn has(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    fn insert(&mut self, row: u32) {
        let word = row as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
        self.count += 1;
    }
}

/// So many new rows always wait: to compare them with a query takes less than a few lists.
const FEW: usize = 1024;
/// New rows may be this part of all: their comparison then takes no longer than the rest of a query.
const FRESH_PART: usize = 32;
/// Removed rows may be this part of all before they are taken out of the tables.
const REMOVED_PART: usize = 4;

impl Issl<'_> {
    /// Adds a row; gives its number. Now and then this builds the tables again.
    pub fn insert(&mut self, signature: &Signature) -> Result<u32> {
        let row = self.len();
        let row = u32::try_from(row).map_err(|_| Error::TooManyRows { rows: row + 1 })?;
        self.fresh.push(signature)?;
        if self.fresh.len() > FEW.max(self.rows.len() / FRESH_PART) {
            self.settle()?;
        }
        Ok(row)
    }

    /// Removes a row; says whether it was there. The numbers of the other rows do not change.
    pub fn remove(&mut self, row: u32) -> Result<bool> {
        if row as usize >= self.len() || self.removed.has(row) {
            return Ok(false);
        }
        self.removed.insert(row);
        self.unsettled += 1;
        if self.unsettled > FEW.max(self.rows.len() / REMOVED_PART) {
            self.settle()?;
        }
        Ok(true)
    }

    /// Whether rows were added or removed since the tables were built.
    pub fn is_settled(&self) -> bool {
        self.fresh.is_empty() && self.unsettled == 0
    }

    /// Builds the tables again, with the new rows and without the removed ones.
    pub fn settle(&mut self) -> Result<()> {
        if self.is_settled() {
            return Ok(());
        }
        if !self.fresh.is_empty() {
            let words = [self.rows.words(), self.fresh.words()].concat();
            self.rows = Cow::Owned(Signatures::from_words(self.rows.bits(), words)?);
            self.fresh = Signatures::new(self.rows.bits())?;
        }
        let mut distinct = Distinct::of(&self.rows)?;
        let copies = distinct.copies.view();
        distinct.firsts.retain(|&first| copies.rows(first).any(|row| !self.removed.has(row)));
        let width = self.width.unwrap_or_else(|| width_for(self.rows.len()));
        self.slices = Slices::new(self.rows.bits(), width)?;
        self.tables = build_tables(&self.slices, &self.rows, &distinct)?;
        self.usual_list = usual_list(&self.tables);
        self.distinct = distinct.firsts.len();
        self.copies = distinct.copies;
        self.unsettled = 0;
        self.forget();
        Ok(())
    }
}
