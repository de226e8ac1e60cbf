//! Queries that stay in memory while stored rows stream past them, as a crawler's batch meets the file of all it has seen.
//!
//! ```
//! use lookalike::{Signatures, join::{JoinSettings, StreamJoin, Wanted}};
//!
//! let queries = Signatures::from_words(64, vec![0b1011, 0xffff_0000])?;
//! let mut join = StreamJoin::new(&queries, Wanted::First, &JoinSettings::new(2))?;
//! let mut pairs = Vec::new();
//! for chunk in [vec![0, 0b1000], vec![0b1011, 0xffff_0000]] {
//!     join.pass(&Signatures::from_words(64, chunk)?, |some| Ok(pairs.extend_from_slice(some)))?;
//! }
//! assert_eq!(pairs.iter().map(|pair| (pair.a, pair.b, pair.distance)).collect::<Vec<_>>(), [(0, 1, 2), (1, 3, 0)]);
//! assert!(join.is_done());
//! # Ok::<(), lookalike::Error>(())
//! ```
//!
//! Stored rows come in chunks of any size, also all at once from a mapped file: they are looked at a window at a time. Of
//! signatures of one word the queries are sorted once, by each key (`lookup`); a window of wider ones, or of rows that have
//! most keys in common, is a join of its own. Pairs come in the order of the stored rows, then of the queries, whatever the
//! chunks, the threads and the memory.

mod lookup;
mod queries;

use rayon::prelude::*;

use self::{
    lookup::{Lookup, Scratch},
    queries::Distinct,
};
use super::{
    JoinSettings, Joined, Pair,
    block::View,
    cross_join,
    plan::{Mask, Plan, Task},
    spread::Spread,
};
use crate::{Error, Result, Signatures};

/// Which of the stored rows near a query are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// The first that comes; a query that has it is no longer asked.
    First,
}

/// Queries that rows stream past. In a [`Pair`], `a` is the query and `b` the stored row, counted over all chunks.
pub struct StreamJoin {
    queries: Distinct,
    wanted: Wanted,
    settings: JoinSettings,
    way: Way,
    scratch: Vec<Scratch>,
    /// Stored rows that have passed.
    passed: usize,
    joined: Joined,
}

/// How a window is joined.
enum Way {
    Lookup(Lookup),
    CrossJoin,
}

/// Rows that a thread looks up together: the more of them, the less often queries come into the cache.
const PIECE: usize = 1 << 20;
/// Fewer rows are not worth a window.
const LEAST_WINDOW: usize = 1 << 12;
/// What a row of a window takes at most while it is looked up: a cell in a vector that has grown, and pairs.
const PIECE_ROW_BYTES: u64 = 64;
/// What it takes as a part of a join of its own, beside its signature.
const JOINED_ROW_BYTES: u64 = 32;
/// Rows of a window that is a join of its own, times those of the queries: sorting these again is then a small part.
const TIMES_QUERIES: usize = 4;
/// Keys as wide as they are for so many rows, however few queries there are: wider ones lead to fewer strangers.
const WIDE_KEYS: usize = 1 << 21;
/// Queries that are left, of those that were sorted, when it is time to sort again.
const FEW_LEFT: f64 = 0.75;
/// Rows that tell how many queries have the same keys.
const SAMPLE: usize = 4096;
/// Pairs that are handed out at a time.
const HANDED_OUT: usize = 1 << 14;

impl StreamJoin {
    /// Takes the queries. The memory of the settings is for the rows and what is found in a window of them; the queries
    /// come on top, with about 20 bytes a key for each.
    pub fn new(queries: &Signatures, wanted: Wanted, settings: &JoinSettings) -> Result<Self> {
        let queries = Distinct::new(queries)?;
        let radius = settings.radius.min(queries.signatures().bits());
        let settings = JoinSettings { radius, ..*settings };
        let copies = queries.copies() as u64;
        Ok(StreamJoin {
            way: Way::of(&queries, &settings)?,
            queries,
            wanted,
            settings,
            scratch: Vec::new(),
            passed: 0,
            joined: Joined { pairs: 0, recall: 1.0, compared: 0, copies, bytes: 0 },
        })
    }

    /// Whether every query has the match that it wanted, so that no more rows need to come.
    pub fn is_done(&self) -> bool {
        self.wanted == Wanted::First && self.queries.left() == 0
    }

    /// Whether rows are looked up among sorted queries.
    #[cfg(test)]
    pub(super) fn looks_up(&self) -> bool {
        matches!(self.way, Way::Lookup(_))
    }

    /// What was done so far. Copies are those among the queries.
    pub fn joined(&self) -> Joined {
        self.joined
    }

    /// Lets some rows pass; hands the pairs to `each` some at a time, in order.
    pub fn pass(
        &mut self,
        rows: &Signatures,
        mut each: impl FnMut(&[Pair]) -> Result<()>,
    ) -> Result<()> {
        let (stored, given) = (rows.bits(), self.queries.signatures().bits());
        if stored != given {
            return Err(Error::WidthMismatch { stored, given });
        }
        let all = self.passed + rows.len();
        if u32::try_from(all).is_err() {
            return Err(Error::TooManyRows { rows: all });
        }
        let mut left = rows.words();
        while !left.is_empty() && self.queries.left() > 0 {
            let window = self.window_rows().min(left.len() / rows.stride());
            let (now, later) = left.split_at(window * rows.stride());
            let met = self.meet(now)?;
            self.hand_out(met, &mut each)?;
            self.sort_again()?;
            self.passed += window;
            left = later;
        }
        self.passed = all;
        Ok(())
    }

    /// Sorts the queries again if many have left since.
    fn sort_again(&mut self) -> Result<()> {
        if let Way::Lookup(old) = &self.way
            && (self.queries.left() as f64) < FEW_LEFT * old.len() as f64
        {
            let masks = old.masks();
            self.way = Way::Lookup(Lookup::new(&self.queries, masks, self.settings.radius)?);
        }
        Ok(())
    }

    /// How many rows are looked at together.
    fn window_rows(&self) -> usize {
        let stride = self.queries.signatures().stride();
        let (row_bytes, most) = match &self.way {
            Way::Lookup(lookup) => {
                (PIECE_ROW_BYTES, PIECE.max(lookup.len() / 2) * rayon::current_num_threads())
            }
            _ => {
                let row_bytes = JOINED_ROW_BYTES + 8 * stride as u64;
                (row_bytes, TIMES_QUERIES * PIECE.max(self.queries.left()))
            }
        };
        let fitting = usize::try_from(self.settings.memory / 2 / row_bytes).unwrap_or(most);
        fitting.clamp(LEAST_WINDOW, most)
    }

    /// The distinct queries that the rows of a window meet, in the order of the rows; `b` counts from the window's start.
    fn meet(&mut self, rows: &[u64]) -> Result<Vec<Pair>> {
        let most = self.settings.most_pairs.saturating_sub(self.joined.pairs);
        match &self.way {
            Way::Lookup(lookup) if !lookup.is_crowded(&sample(rows, 1).1) => {
                let piece = rows.len().div_ceil(rayon::current_num_threads());
                self.scratch.resize_with(rows.len().div_ceil(piece), Scratch::default);
                let has_left = |query| self.queries.has_left(query);
                let pieces = rows.par_chunks(piece).zip(&mut self.scratch).enumerate();
                pieces.for_each(|(number, (rows, scratch))| {
                    lookup.meet(rows, number * piece, most, scratch, has_left);
                });
                let bytes = lookup.bytes();
                self.gather(bytes, most)
            }
            _ => self.cross_join(rows, most),
        }
    }

    /// What the threads have found.
    fn gather(&mut self, lookup_bytes: u64, most: u64) -> Result<Vec<Pair>> {
        let (mut met, mut bytes) = (Vec::new(), lookup_bytes + self.queries.bytes());
        for scratch in &self.scratch {
            met.extend_from_slice(&scratch.met);
            bytes += scratch.bytes();
            self.joined.compared += scratch.compared;
        }
        self.joined.bytes = self.joined.bytes.max(bytes);
        match met.len() as u64 {
            found if found > most => {
                let (pairs, most) = (self.joined.pairs + found, self.settings.most_pairs);
                Err(Error::TooManyPairs { pairs, most })
            }
            _ => Ok(met),
        }
    }

    /// A join of the queries that are left with a window.
    fn cross_join(&mut self, rows: &[u64], most: u64) -> Result<Vec<Pair>> {
        let (asked, numbers) = self.queries.those_left()?;
        let rows = Signatures::from_words(asked.bits(), rows.to_vec())?;
        let settings = JoinSettings { most_pairs: most, ..self.settings };
        let mut met = Vec::new();
        let joined = cross_join(&asked, &rows, &settings, |pairs| {
            met.extend(pairs.iter().map(|pair| Pair { a: numbers[pair.a as usize], ..*pair }));
            Ok(())
        })?;
        met.par_sort_unstable_by_key(by_row);
        self.joined.recall = self.joined.recall.min(joined.recall);
        self.joined.compared += joined.compared;
        let copied = 8 * (asked.words().len() + rows.words().len()) as u64;
        let bytes = joined.bytes + copied + self.queries.bytes();
        self.joined.bytes = self.joined.bytes.max(bytes);
        Ok(met)
    }

    /// From distinct queries to all that were given; of those that want one match, the first is taken and they leave.
    fn hand_out(
        &mut self,
        met: Vec<Pair>,
        each: &mut impl FnMut(&[Pair]) -> Result<()>,
    ) -> Result<()> {
        let mut pairs = Vec::with_capacity(HANDED_OUT);
        for of_row in met.chunk_by(|x, y| x.b == y.b) {
            let start = pairs.len();
            for pair in of_row {
                let wanted = match self.wanted {
                    Wanted::All => true,
                    Wanted::First => self.queries.leave(pair.a),
                };
                if wanted {
                    let b = pair.b + self.passed as u32;
                    let numbers = self.queries.numbers(pair.a).iter();
                    pairs.extend(numbers.map(|&a| Pair { a, b, distance: pair.distance }));
                }
            }
            pairs[start..].sort_unstable_by_key(|pair| pair.a);
            if pairs.len() >= HANDED_OUT {
                self.hand_out_some(&mut pairs, each)?;
            }
        }
        self.hand_out_some(&mut pairs, each)
    }

    fn hand_out_some(
        &mut self,
        pairs: &mut Vec<Pair>,
        each: &mut impl FnMut(&[Pair]) -> Result<()>,
    ) -> Result<()> {
        self.joined.pairs += pairs.len() as u64;
        let (pairs_so_far, most) = (self.joined.pairs, self.settings.most_pairs);
        if pairs_so_far > most {
            return Err(Error::TooManyPairs { pairs: pairs_so_far, most });
        }
        if !pairs.is_empty() {
            each(pairs)?;
        }
        pairs.clear();
        Ok(())
    }
}

impl Way {
    /// What a row costs depends on how many queries have its keys, so their bits alone decide which keys these are.
    fn of(queries: &Distinct, settings: &JoinSettings) -> Result<Self> {
        let signatures = queries.signatures();
        let (len, stride) = (signatures.len(), signatures.stride());
        let (numbers, words) = sample(signatures.words(), stride);
        let view = View { words: &words, numbers: &numbers, stride };
        // How many rows will come is not known yet.
        let rows = len.max(PIECE);
        let plan = Plan::new(&Task {
            rows: (len + rows).max(WIDE_KEYS),
            pairs: len as f64 * rows as f64,
            bits: signatures.bits(),
            radius: settings.radius,
            recall: settings.recall,
            spread: &Spread::of(&[view], signatures.bits()),
            quick: 0.0,
        });
        let masks: Option<Vec<u64>> = plan.masks.iter().map(Mask::word).collect();
        match masks {
            Some(masks) if !plan.is_scan() && plan.recall >= 1.0 => {
                Ok(Way::Lookup(Lookup::new(queries, masks, settings.radius)?))
            }
            _ => Ok(Way::CrossJoin),
        }
    }
}

/// By the stored row, then by the query.
fn by_row(pair: &Pair) -> u64 {
    u64::from(pair.b) << 32 | u64::from(pair.a)
}

/// Some rows, evenly spread, with their numbers.
fn sample(words: &[u64], stride: usize) -> (Vec<u32>, Vec<u64>) {
    let len = words.len() / stride;
    let taken = len.min(SAMPLE);
    let numbers: Vec<u32> = (0..taken).map(|i| (i * len / taken) as u32).collect();
    let row = |&number: &u32| &words[number as usize * stride..][..stride];
    let words = numbers.iter().flat_map(row).copied().collect();
    (numbers, words)
}
