//! Probabilistic simhash matching (Sood, 2011), as chapter V of the thesis has it for queries that come one by one.
//!
//! There is one sorted table, and an index of 2^p offsets into it by the leading `p` bits. For a query the likeliest
//! flips of these bits are tried one after the other: the rows that have the flipped bits are compared with the query
//! itself.
//!
//! The thesis lets the heap begin with one flipped bit and does not say whether the query's own value counts among the
//! `k` attempts. It has to be looked at, as a neighbor often differs past the leading bits only; here it is the first
//! of the `k`. And a stored signature that equals the query is found, too: the thesis counts neighbors from distance 1.

use rayon::prelude::*;

use crate::flips::Flips;

/// One sorted table and its offsets.
#[derive(Debug)]
pub struct Psm {
    table: Vec<u64>,
    /// Where the rows with each value of the leading bits begin, and the end.
    offsets: Vec<u32>,
    leading: u32,
}

impl Psm {
    /// Builds the table, with an index on the `leading` bits; log2 of the number of rows is best.
    ///
    /// # Panics
    /// Unless `leading` is from 1 to 32, or if there are more than 2^32 - 1 rows.
    pub fn build(stored: &[u64], leading: u32) -> Self {
        assert!((1..=32).contains(&leading), "an index on {leading} bits");
        assert!(u32::try_from(stored.len()).is_ok(), "offsets have 32 bits");
        let mut table = stored.to_vec();
        table.par_sort_unstable();
        let offsets = offsets(&table, leading);
        Psm { table, offsets, leading }
    }

    /// Bytes a stored signature.
    pub fn bytes(&self) -> f64 {
        let bytes = size_of_val(&self.table[..]) + size_of_val(&self.offsets[..]);
        bytes as f64 / self.table.len().max(1) as f64
    }

    /// How many bits lead.
    pub fn leading(&self) -> u32 {
        self.leading
    }

    /// Searches with at most `probes` values of the leading bits, the query's own among them.
    pub fn searcher(&self, radius: u32, probes: usize) -> Searcher<'_> {
        Searcher { psm: self, radius, probes, flips: Flips::new() }
    }

    /// The rows that have the leading bits of `signature`.
    #[inline]
    fn run(&self, signature: u64) -> &[u64] {
        let value = (signature >> (64 - self.leading)) as usize;
        &self.table[self.offsets[value] as usize..self.offsets[value + 1] as usize]
    }
}

/// Where the rows of a sorted table with each value of the leading bits begin, and the end.
pub(crate) fn offsets(table: &[u64], leading: u32) -> Vec<u32> {
    let all = (1 << leading) + 1;
    let mut offsets = Vec::with_capacity(all);
    for (row, signature) in table.iter().enumerate() {
        let value = (signature >> (64 - leading)) as usize;
        if offsets.len() <= value {
            offsets.resize(value + 1, row as u32);
        }
    }
    offsets.resize(all, table.len() as u32);
    offsets
}

/// Answers queries; keeps the memory of the heap from one to the next.
#[derive(Debug)]
pub struct Searcher<'a> {
    psm: &'a Psm,
    radius: u32,
    probes: usize,
    flips: Flips,
}

impl Searcher<'_> {
    /// The stored signatures within the radius that the probes reach, in place of what was in `found`.
    pub fn all(&mut self, query: u64, margins: &[u8; 64], found: &mut Vec<u64>) {
        found.clear();
        found.extend(self.near(query, margins));
    }

    /// Some stored signature within the radius: the first that the probes reach.
    pub fn first(&mut self, query: u64, margins: &[u8; 64]) -> Option<u64> {
        self.near(query, margins).next()
    }

    fn near(&mut self, query: u64, margins: &[u8; 64]) -> impl Iterator<Item = u64> {
        let Searcher { psm, radius, probes, flips } = self;
        flips.start(margins, psm.leading, 1..=*radius);
        let own = 0;
        let rows = std::iter::once(own).chain(flips).take(*probes);
        let rows = rows.flat_map(move |flipped| psm.run(query ^ flipped));
        rows.copied().filter(move |row| (row ^ query).count_ones() <= *radius)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn scan(stored: &[u64], query: u64, radius: u32) -> Vec<u64> {
        let near = |row: &u64| (row ^ query).count_ones() <= radius;
        let mut rows: Vec<u64> = stored.iter().copied().filter(near).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn all_combinations_find_what_a_scan_finds() {
        let workload = Workload::new(4_000, 120, 5);
        for leading in [1, 2, 8, 12] {
            let psm = Psm::build(&workload.stored, leading);
            for radius in 0..=3 {
                let mut searcher = psm.searcher(radius, usize::MAX);
                let mut found = vec![1, 2, 3];
                for (query, margins) in workload.queries() {
                    searcher.all(query, margins, &mut found);
                    found.sort_unstable();
                    let expected = scan(&workload.stored, query, radius);
                    assert_eq!(found, expected);
                    let first = searcher.first(query, margins);
                    assert_eq!(first.is_some(), !expected.is_empty());
                    assert!(first.is_none_or(|row| expected.contains(&row)));
                }
            }
        }
    }

    /// The statement that PSM rests on: few of the many combinations find nearly all.
    #[test]
    fn a_few_probes_find_nearly_all() {
        let workload = Workload::new(20_000, 2_000, 6);
        let psm = Psm::build(&workload.stored, 14);
        let (mut searcher, mut found) = (psm.searcher(3, 23), Vec::new());
        let (mut reached, mut all) = (0, 0);
        for (query, margins) in workload.queries() {
            searcher.all(query, margins, &mut found);
            reached += found.len();
            all += scan(&workload.stored, query, 3).len();
        }
        let recall = f64::from(reached as u32) / f64::from(all as u32);
        assert!((0.97..=1.0).contains(&recall), "recall {recall}");
    }

    #[test]
    fn own_value_is_the_first_probe() {
        let psm = Psm::build(&[0b01 << 62 | 0b11, 0b11 << 62], 2);
        let mut margins = [200; 64];
        margins[0] = 1;
        let mut found = Vec::new();
        let of = |probes, found: &mut Vec<u64>| {
            psm.searcher(3, probes).all(0b01 << 62, &margins, found);
            found.clone()
        };
        assert_eq!(of(0, &mut found), []);
        assert_eq!(of(1, &mut found), [0b01 << 62 | 0b11]);
        assert_eq!(of(2, &mut found), [0b01 << 62 | 0b11, 0b11 << 62]);
    }

    #[test]
    fn bytes_are_those_of_the_table_and_of_the_offsets() {
        assert_eq!(Psm::build(&[3; 16], 4).bytes(), 8.0 + 4.0 * 17.0 / 16.0);
        let empty = Psm::build(&[], 4);
        assert_eq!(empty.searcher(3, 100).first(0, &[1; 64]), None);
    }
}
