//! The walk: from the query's place in every order up and down, longest shared prefix first.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    ops::Range,
};

use super::order::Order;

/// One thread's walks.
pub(super) struct Walker<'a> {
    orders: &'a [Order],
    /// Two for each order.
    sides: Vec<Side<'a>>,
    /// What comes next on each side that has not ended.
    ahead: BinaryHeap<Ahead>,
    seen: Seen,
    budget: usize,
}

/// One way from the query's place: up or down an order.
struct Side<'a> {
    keys: &'a [u64],
    rows: &'a [u32],
    /// The query's key in this order.
    key: u64,
    down: bool,
    /// The places that are left.
    left: Range<usize>,
}

/// What comes next on a side. The longest prefix is the greatest; ties take turns, or one order would use up the budget
/// where many rows are alike.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ahead {
    prefix: u32,
    steps: Reverse<u32>,
    side: Reverse<usize>,
}

/// A row that is looked at.
pub(super) struct Look {
    /// The lowest row that has the signature.
    pub(super) row: u32,
    /// How it differs from the query, as far as an order knows: in all bits, or in a word of them.
    pub(super) differences: u64,
}

impl<'a> Walker<'a> {
    /// Walks of at most `budget` looks.
    pub(super) fn new(orders: &'a [Order], budget: usize) -> Self {
        let seen = Seen::new(budget);
        Walker { orders, sides: Vec::new(), ahead: BinaryHeap::new(), seen, budget }
    }

    /// The rows that a query looks at, each once.
    pub(super) fn walk(&mut self, query: &[u64]) -> impl Iterator<Item = Look> {
        self.start(query);
        let budget = self.budget;
        std::iter::from_fn(|| self.look()).take(budget)
    }

    /// Finds the query's place in every order.
    fn start(&mut self, query: &[u64]) {
        self.seen.clear();
        self.sides.clear();
        self.ahead.clear();
        for order in self.orders {
            let (keys, rows, key) = (order.keys(), order.rows(), order.key(query));
            let place = keys.partition_point(|&other| other < key);
            for (down, left) in [(false, place..keys.len()), (true, 0..place)] {
                let side = Side { keys, rows, key, down, left };
                if let Some(prefix) = side.prefix() {
                    let number = Reverse(self.sides.len());
                    self.ahead.push(Ahead { prefix, steps: Reverse(0), side: number });
                }
                self.sides.push(side);
            }
        }
    }

    /// The next row that was not looked at before.
    fn look(&mut self) -> Option<Look> {
        loop {
            let mut ahead = self.ahead.peek_mut()?;
            let side = &mut self.sides[ahead.side.0];
            let look = side.step()?;
            match side.prefix() {
                Some(prefix) => {
                    ahead.prefix = prefix;
                    ahead.steps.0 += 1;
                    drop(ahead);
                }
                None => drop(PeekMut::pop(ahead)),
            }
            if self.seen.insert(look.row) {
                return Some(look);
            }
        }
    }
}

impl Side<'_> {
    /// How long a prefix the next row shares with the query, if there is one.
    fn prefix(&self) -> Option<u32> {
        let place =
            if self.down { self.left.clone().next_back() } else { self.left.clone().next() };
        Some((self.keys[place?] ^ self.key).leading_zeros())
    }

    fn step(&mut self) -> Option<Look> {
        let place = if self.down { self.left.next_back() } else { self.left.next() }?;
        Some(Look { row: self.rows[place], differences: self.keys[place] ^ self.key })
    }
}

/// The rows that a walk has looked at: a hash table that is cleared by counting up.
struct Seen {
    /// The walk that wrote a cell, and the row it wrote.
    cells: Vec<(u32, u32)>,
    walk: u32,
}

impl Seen {
    /// Room for so many rows.
    fn new(rows: usize) -> Self {
        // At most half full, or rows that collide would be looked for too long.
        Seen { cells: vec![(0, 0); (2 * rows).next_power_of_two().max(2)], walk: 0 }
    }

    fn clear(&mut self) {
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.cells.fill((0, 0));
            self.walk = 1;
        }
    }

    /// Whether the row is new.
    fn insert(&mut self, row: u32) -> bool {
        let spread = u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (spread >> 32) as usize & (self.cells.len() - 1);
        while self.cells[at].0 == self.walk {
            if self.cells[at].1 == row {
                return false;
            }
            at = (at + 1) & (self.cells.len() - 1);
        }
        self.cells[at] = (self.walk, row);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Signatures, index::sample::Random};

    fn orders(rows: &Signatures, count: usize) -> Vec<Order> {
        let firsts: Vec<u32> = (0..rows.len() as u32).collect();
        let mut random = Random(11);
        (0..count).map(|_| Order::build(rows, &firsts, &mut random).unwrap()).collect()
    }

    fn rows(bits: u32, len: usize, random: &mut Random) -> Signatures {
        let stride = bits.div_ceil(64);
        let words = (0..len * stride as usize).map(|_| random.next());
        Signatures::from_words(bits, words.collect()).unwrap()
    }

    /// The longest prefix that a row shares with the query in any order: it is met there first.
    fn longest(orders: &[Order], query: &[u64], row: &[u64]) -> u32 {
        let prefix = |order: &Order| (order.key(row) ^ order.key(query)).leading_zeros();
        orders.iter().map(prefix).max().unwrap()
    }

    #[test]
    fn the_longest_prefix_comes_first_and_every_row_once() {
        for bits in [64, 192] {
            let mut random = Random(5);
            let rows = rows(bits, 500, &mut random);
            let orders = orders(&rows, 5);
            let mut walker = Walker::new(&orders, rows.len());
            let queries = self::rows(bits, 20, &mut random);
            for query in queries.rows().chain(rows.rows().take(3)) {
                let looks: Vec<Look> = walker.walk(query).collect();
                let prefix = |look: &Look| longest(&orders, query, rows.row(look.row as usize));
                assert!(looks.iter().map(prefix).is_sorted_by(|a, b| a >= b));
                let mut met: Vec<u32> = looks.iter().map(|look| look.row).collect();
                met.sort_unstable();
                assert!(met.into_iter().eq(0..rows.len() as u32));
            }
        }
    }

    #[test]
    fn equal_prefixes_take_turns() {
        let rows = Signatures::from_words(128, (1..=100).flat_map(|i| [0, i]).collect()).unwrap();
        let orders = orders(&rows, 4);
        let mut walker = Walker::new(&orders, 8);
        let looks: Vec<Look> = walker.walk(&[0, 0]).collect();
        assert_eq!(looks.len(), 8);
        let sides = walker.sides.iter().map(|side| 100 - side.left.len());
        assert!(sides.filter(|&steps| steps > 0).count() >= 4);
    }

    #[test]
    fn what_was_seen_is_forgotten_with_the_next_walk() {
        let mut seen = Seen::new(4);
        seen.walk = u32::MAX - 1;
        for _ in 0..3 {
            seen.clear();
            for row in [0, 8, 16, u32::MAX] {
                assert!(seen.insert(row));
                assert!(!seen.insert(row));
            }
        }
    }
}
