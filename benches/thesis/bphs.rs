//! Block-permuted Hamming search (Manku, Jain and Das Sarma, 2007), as chapter VI of the thesis describes it.
//!
//! A signature is cut into `z` blocks. For every choice of `x` of them there is a table: all signatures, permuted so
//! that the chosen blocks lead, and sorted. Two signatures that differ in at most z - x bits agree in some `x` blocks,
//! so one of the tables has them side by side. A query is permuted as the table is, binary search finds the first row
//! with its leading bits, and a linear scan checks all that have them.

use rayon::prelude::*;

/// C(z, x) sorted tables of permuted signatures.
#[derive(Debug)]
pub struct Bphs {
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    permutation: Permutation,
    /// How many bits lead.
    leading: u32,
    /// The leading bits where they are in a signature.
    lead: u64,
    rows: Vec<u64>,
}

impl Bphs {
    /// Builds the tables for `blocks` blocks of which `lead` lead: 4 and 1 make 4 tables, 5 and 2 make 10.
    ///
    /// # Panics
    /// Unless 1 <= lead <= blocks <= 64.
    pub fn build(stored: &[u64], blocks: u32, lead: u32) -> Self {
        assert!(1 <= lead && lead <= blocks && blocks <= 64, "{lead} of {blocks} blocks");
        let blocks = cut(blocks);
        let choices = choices(blocks.len(), lead as usize);
        let tables = choices.iter().map(|chosen| Table::build(stored, &blocks, chosen)).collect();
        Bphs { tables }
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Bytes a stored signature.
    pub fn bytes(&self) -> f64 {
        (size_of::<u64>() * self.tables.len()) as f64
    }

    /// Every stored signature within the radius, in place of what was in `found`. One that is stored twice is found
    /// twice; one that several tables have is found once. Complete for a radius of at most z - x.
    pub fn all(&self, query: u64, radius: u32, found: &mut Vec<u64>) {
        found.clear();
        for (number, table) in self.tables.iter().enumerate() {
            let earlier = &self.tables[..number];
            let seen = |row: u64| earlier.iter().any(|table| (query ^ row) & table.lead == 0);
            found.extend(table.near(query, radius).filter(|&row| !seen(row)));
        }
    }

    /// Some stored signature within the radius: the first that is met.
    pub fn first(&self, query: u64, radius: u32) -> Option<u64> {
        self.tables.iter().find_map(|table| table.near(query, radius).next())
    }
}

impl Table {
    fn build(stored: &[u64], blocks: &[u64], chosen: &[usize]) -> Self {
        let lead = chosen.iter().fold(0, |lead, &block| lead | blocks[block]);
        let (front, back): (Vec<u64>, Vec<u64>) =
            blocks.iter().partition(|&&block| block & lead != 0);
        let permutation = Permutation::in_order(front.iter().chain(&back));
        let mut rows: Vec<u64> = stored.par_iter().map(|&row| permutation.apply(row)).collect();
        rows.par_sort_unstable();
        Table { permutation, leading: lead.count_ones(), lead, rows }
    }

    /// The rows that have the query's leading bits and are within the radius, permuted back.
    fn near(&self, query: u64, radius: u32) -> impl Iterator<Item = u64> {
        let query = self.permutation.apply(query);
        let after = 64 - self.leading;
        let key = move |row: u64| row >> after;
        let start = self.rows.partition_point(|&row| key(row) < key(query));
        let run = self.rows[start..].iter().take_while(move |&&row| key(row) == key(query));
        run.filter(move |&&row| (row ^ query).count_ones() <= radius)
            .map(|&row| self.permutation.undo(row))
    }
}

/// A permutation of whole blocks.
#[derive(Debug)]
struct Permutation {
    /// Each block as a mask, and how far to the left it rotates.
    moves: Vec<(u64, u32)>,
}

impl Permutation {
    /// Puts the blocks in this order, the first of them leading.
    fn in_order<'a>(blocks: impl Iterator<Item = &'a u64>) -> Self {
        let mut place = 0;
        let to_place = |&block: &u64| {
            let turn = (block.leading_zeros() + 64 - place) % 64;
            place += block.count_ones();
            (block, turn)
        };
        Permutation { moves: blocks.map(to_place).collect() }
    }

    #[inline]
    fn apply(&self, row: u64) -> u64 {
        self.moves.iter().fold(0, |all, &(block, turn)| all | (row & block).rotate_left(turn))
    }

    #[inline]
    fn undo(&self, row: u64) -> u64 {
        self.moves.iter().fold(0, |all, &(block, turn)| all | (row.rotate_right(turn) & block))
    }
}

/// Cuts 64 bits into blocks whose sizes differ by at most one, larger ones first.
fn cut(blocks: u32) -> Vec<u64> {
    let mut start = 0;
    let block = |number| {
        let size = 64 / blocks + u32::from(number < 64 % blocks);
        let mask = u64::MAX << (64 - size) >> start;
        start += size;
        mask
    };
    (0..blocks).map(block).collect()
}

/// Every choice of `size` of the numbers below `count`, each in ascending order.
fn choices(count: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let ending_in = |last: usize| {
        choices(last, size - 1).into_iter().map(move |mut chosen| {
            chosen.push(last);
            chosen
        })
    };
    (size - 1..count).flat_map(ending_in).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::Workload;

    fn assert_as_scanned(bphs: &Bphs, stored: &[u64], query: u64, radius: u32) {
        let near = |row: &u64| (row ^ query).count_ones() <= radius;
        let mut expected: Vec<u64> = stored.iter().copied().filter(near).collect();
        let mut found = vec![1, 2, 3];
        bphs.all(query, radius, &mut found);
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        let first = bphs.first(query, radius);
        assert_eq!(first.is_some(), !expected.is_empty());
        assert!(first.is_none_or(|row| expected.contains(&row)));
    }

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(
            random in prop::collection::vec(any::<u64>(), 0..40),
            query: u64,
            flips in prop::collection::vec(prop::collection::vec(0..64_u32, 0..6), 0..40),
        ) {
            let near = flips.iter().map(|bits| bits.iter().fold(query, |row, bit| row ^ 1 << bit));
            let stored: Vec<u64> = random.into_iter().chain(near).collect();
            for (blocks, lead) in [(4, 1), (5, 2), (6, 3), (3, 3), (1, 1), (64, 63)] {
                let bphs = Bphs::build(&stored, blocks, lead);
                for radius in 0..=(blocks - lead).min(3) {
                    assert_as_scanned(&bphs, &stored, query, radius);
                }
            }
        }

        #[test]
        fn permutations_are_undone(row: u64, blocks in 1..=64_u32) {
            let blocks = cut(blocks);
            let turned = Permutation::in_order(blocks.iter().rev());
            prop_assert_eq!(turned.undo(turned.apply(row)), row);
            let last = blocks[blocks.len() - 1];
            let leading = 64 - last.count_ones();
            prop_assert_eq!(turned.apply(row) >> leading, row & last);
        }
    }

    #[test]
    fn finds_what_a_scan_finds_in_the_workload() {
        let workload = Workload::new(5_000, 200, 2);
        for (blocks, lead, tables) in [(4, 1, 4), (5, 2, 10)] {
            let bphs = Bphs::build(&workload.stored, blocks, lead);
            assert_eq!((bphs.tables(), bphs.bytes()), (tables, 8.0 * tables as f64));
            for (query, _) in workload.queries() {
                for radius in 0..=3 {
                    assert_as_scanned(&bphs, &workload.stored, query, radius);
                }
            }
        }
    }

    #[test]
    fn blocks_differ_by_at_most_one_bit() {
        assert_eq!(
            cut(5).iter().map(|block| block.count_ones()).collect::<Vec<_>>(),
            [13, 13, 13, 13, 12]
        );
        assert_eq!(cut(4)[1], 0x0000_ffff_0000_0000);
        assert_eq!(choices(3, 2), [[0, 1], [0, 2], [1, 2]]);
    }
}
