//! Compositions: every method of the papers is a choice of tables and of what to look at in them.

use std::{fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize, Serializer};

use super::{blocks, multi, pieces, psm};
use crate::{
    Error, Result,
    probe::count_within,
    table::{KeyLayout, Stored, WIDEST_KEY},
};

/// A method with its numbers. Written as in `pieces-4`, `blocks-5-2`, `multi-3`, `multi-2x4`, `psm-1-23`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Slices that are looked up as they are.
    Pieces {
        /// How many slices there are.
        slices: u32,
    },
    /// Every choice of some of the blocks is a key.
    Blocks {
        /// How many blocks there are.
        blocks: u32,
        /// How many of them form a key.
        leading: u32,
    },
    /// Slices that are looked up as they are and with some bits flipped, as many as the radius needs.
    Multi {
        /// How many slices there are.
        slices: u32,
        /// Each slice is cut into so many parts, and in each of its tables one of them is left out: 1 to leave none out.
        parts: u32,
    },
    /// The same with the likeliest flips only, weakest bits first.
    Psm {
        /// How many tables there are, a slice each.
        tables: u32,
        /// How many keys are looked up in each.
        probes: u32,
    },
}

/// Which tables an index has, and what is looked at in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    pub(super) method: Method,
    pub(super) bits: u32,
    pub(super) layouts: Vec<KeyLayout>,
    pub(super) looks: Looks,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Looks {
    /// The query's own key in every table; that finds all within the guarantee.
    Own { guarantee: u32 },
    /// In each group of tables as many keys as the radius needs, but at most so many in each table.
    Around { groups: Vec<Group>, at_most: Option<u32> },
}

/// Tables that share a slice: each leaves out another part of it, if there are several.
pub(super) type Group = Range<usize>;

/// What is looked at in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) table: usize,
    /// Keys with at most so many bits flipped...
    pub(crate) errors: u32,
    /// ...but at most so many of them, the likeliest.
    pub(crate) at_most: Option<u32>,
}

impl Method {
    /// The tables for signatures of `bits` bits with keys of at most `key_width` bits.
    pub fn compose(self, bits: u32, key_width: u32) -> Result<Composition> {
        let refuse = |problem| Err(Error::Method { method: self.to_string(), problem });
        let key_width = key_width.min(WIDEST_KEY);
        let (layouts, looks) = match self {
            Method::Pieces { slices } if (1..=bits).contains(&slices) => {
                pieces::compose(bits, slices)
            }
            Method::Blocks { blocks, leading }
                if (1..=16.min(bits)).contains(&blocks) && (1..=blocks).contains(&leading) =>
            {
                blocks::compose(bits, blocks, leading)
            }
            Method::Multi { slices, parts }
                if slices >= 1 && parts >= 1 && slices.saturating_mul(parts) <= bits =>
            {
                multi::compose(bits, slices, parts)
            }
            Method::Psm { tables, probes } if (1..=bits).contains(&tables) && probes >= 1 => {
                psm::compose(bits, tables, probes)
            }
            _ => return refuse(format!("does not suit signatures of {bits} bits")),
        };
        if layouts.len() > MOST_TABLES {
            return refuse(format!("would need {} tables", layouts.len()));
        }
        let layouts = layouts.iter().map(|layout| layout.truncated(key_width)).collect();
        Ok(Composition { method: self, bits, layouts, looks })
    }
}

impl Method {
    /// Tables that are exact for every radius, from the fastest to the smallest: many tables need few probes.
    pub fn exact(bits: u32, rows: usize) -> Vec<Self> {
        let multi = |slices, parts| Method::Multi { slices, parts };
        if bits <= 64 {
            return vec![multi(2, 4), multi(2, 3), multi(2, 1), multi(1, 1)];
        }
        // Slices of as many bits as tell the rows apart.
        let slice = rows.max(1).ilog2().clamp(8, 28);
        let slices = bits.div_ceil(slice);
        std::iter::successors(Some(slices), |slices| Some(slices / 2).filter(|&half| half > 0))
            .map(|slices| multi(slices, 1))
            .collect()
    }

    /// The fastest of those.
    pub fn usual(bits: u32, rows: usize) -> Self {
        Method::exact(bits, rows)[0]
    }
}

/// More tables than this are never worth their memory.
const MOST_TABLES: usize = 4096;

impl Composition {
    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The key of each table.
    pub fn layouts(&self) -> &[KeyLayout] {
        &self.layouts
    }

    /// How many bits the widest key has.
    pub fn key_width(&self) -> u32 {
        self.layouts.iter().map(KeyLayout::width).max().unwrap_or(0)
    }

    /// How much memory the tables of so many distinct signatures take; in lines, at most.
    pub fn bytes(&self, rows: usize, stored: Stored) -> u64 {
        let keys = self.layouts.iter().map(|layout| stored.key_bytes() << layout.width());
        self.layouts.len() as u64 * rows as u64 * stored.bytes() + keys.sum::<u64>()
    }

    /// The largest radius within which every row is found.
    pub fn guarantee(&self) -> u32 {
        (0..=self.bits).take_while(|&radius| self.is_exact(radius)).last().unwrap_or(0)
    }

    /// Whether every row within the radius is found.
    pub fn is_exact(&self, radius: u32) -> bool {
        match &self.looks {
            Looks::Own { guarantee } => radius <= *guarantee,
            Looks::Around { at_most: None, .. } => true,
            Looks::Around { at_most: Some(at_most), .. } => {
                let all = |step: &Step| self.keys_within(step) <= u64::from(*at_most);
                self.steps(radius).iter().all(all)
            }
        }
    }

    /// Whether the margins of queries say what is looked at first.
    pub fn takes_margins(&self) -> bool {
        matches!(self.looks, Looks::Around { at_most: Some(_), .. })
    }

    /// Whether an exact answer would take more keys than there are rows: to look at each row is less, and finds as much.
    pub fn is_scanned(&self, radius: u32, rows: usize) -> bool {
        self.is_exact(radius) && self.probes(radius) > rows as u64
    }

    /// What is looked at for a radius.
    pub(crate) fn steps(&self, radius: u32) -> Vec<Step> {
        match &self.looks {
            Looks::Own { .. } => (0..self.layouts.len())
                .map(|table| Step { table, errors: 0, at_most: None })
                .collect(),
            Looks::Around { groups, at_most } => {
                self.around(groups, radius.min(self.bits), *at_most)
            }
        }
    }

    /// If group i covers all rows with at most `c[i]` errors in its slice, and the `c[i] + 1` sum to the radius + 1, a row
    /// that no group covers has more errors than the radius. A group may cover none. Where it is not even, the groups with
    /// the narrowest keys cover one error more: it takes them the fewest probes.
    fn around(&self, groups: &[Group], radius: u32, at_most: Option<u32>) -> Vec<Step> {
        let count = groups.len() as u32;
        let (share, more) = ((radius + 1) / count, (radius + 1) % count);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&group| self.layouts[groups[group].start].width());
        let mut covered = vec![share; groups.len()];
        order.iter().take(more as usize).for_each(|&group| covered[group] += 1);
        let covered = groups.iter().zip(covered);
        let steps = covered.filter_map(|(group, covered)| Some((group, covered.checked_sub(1)?)));
        steps.flat_map(|(group, covered)| self.cover(group, covered, at_most)).collect()
    }

    /// Finds all rows with at most `errors` errors in a group's slice. Of errors in several parts, the part with the
    /// most of them is left out by some table, and no more than the others can be in its key.
    fn cover(&self, group: &Group, errors: u32, at_most: Option<u32>) -> Vec<Step> {
        let (tables, errors) = match (group.len() as u32, errors) {
            (1, _) | (_, 0) => (group.start..group.start + 1, errors),
            (parts, _) => (group.clone(), errors - errors.div_ceil(parts)),
        };
        let errors = |table: usize| errors.min(self.layouts[table].width());
        tables.map(|table| Step { table, errors: errors(table), at_most }).collect()
    }

    /// How many keys are looked up for a query.
    pub fn probes(&self, radius: u32) -> u64 {
        let steps = self.steps(radius);
        steps.iter().fold(0, |sum: u64, step| sum.saturating_add(self.probes_of(step)))
    }

    /// How many keys a step looks up.
    pub(crate) fn probes_of(&self, step: &Step) -> u64 {
        let all = self.keys_within(step);
        step.at_most.map_or(all, |at_most| all.min(u64::from(at_most)))
    }

    fn keys_within(&self, step: &Step) -> u64 {
        count_within(self.layouts[step.table].width(), step.errors)
    }
}

/// Slice `i` of `slices` of a range of bits; their widths differ by at most one.
pub(crate) fn slice(range: Range<u32>, slices: u32, i: u32) -> Range<u32> {
    let at = |i: u32| {
        range.start + (u64::from(range.end - range.start) * u64::from(i) / u64::from(slices)) as u32
    };
    at(i)..at(i + 1)
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Method::Pieces { slices } => write!(f, "pieces-{slices}"),
            Method::Blocks { blocks, leading } => write!(f, "blocks-{blocks}-{leading}"),
            Method::Multi { slices, parts: 1 } => write!(f, "multi-{slices}"),
            Method::Multi { slices, parts } => write!(f, "multi-{slices}x{parts}"),
            Method::Psm { tables, probes } => write!(f, "psm-{tables}-{probes}"),
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (name, numbers) = text.split_once('-')?;
            let numbers = numbers.split(['-', 'x']).map(|number| number.parse().ok());
            let numbers: Vec<u32> = numbers.collect::<Option<_>>()?;
            let method = match (name, numbers[..].as_ref()) {
                ("pieces", &[slices]) => Method::Pieces { slices },
                ("blocks", &[blocks, leading]) => Method::Blocks { blocks, leading },
                ("multi", &[slices]) => Method::Multi { slices, parts: 1 },
                ("multi", &[slices, parts]) => Method::Multi { slices, parts },
                ("psm", &[tables, probes]) => Method::Psm { tables, probes },
                _ => return None,
            };
            (method.to_string() == text).then_some(method)
        };
        let problem = || "is not a method: they are written as pieces-4, blocks-5-2, multi-3, multi-2x4, psm-1-23";
        parse().ok_or_else(|| Error::Method { method: text.to_owned(), problem: problem().into() })
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
