//! Permuted orders (Charikar): the signatures sorted under several random permutations of their bits. What is near a
//! query agrees with it in a long prefix of some order, and so is near its place there.
//!
//! An order sorts by the 64 leading permuted bits, or by all if there are fewer. They are kept next to each row, so that
//! neither the search for a place nor the walk reads signatures; up to 64 bits, they even are the distance.

mod method;
mod order;
mod recall;
mod walk;

use std::{collections::BinaryHeap, ops::Range, sync::Mutex};

use rayon::prelude::*;

pub use self::method::PermutedMethod;
use self::{
    order::Order,
    recall::Calibrations,
    walk::{Look, Walker},
};
use super::{Answers, Index, Neighbor, Promise, Queries, Scan, sample::Random};
use crate::{
    Error, Result, Signatures,
    hamming::{self, Kernel},
    table::{Copies, Distinct},
};

/// Sorted orders of rows that stay where they are.
#[derive(Debug)]
pub struct Permuted<'a> {
    rows: &'a Signatures,
    orders: Vec<Order>,
    walks: usize,
    copies: Copies,
    distinct: usize,
    kernel: Kernel,
    /// What the answers are worth.
    calibrations: Mutex<Calibrations>,
}

/// Queries that one thread answers before it looks for more.
const PART: usize = 64;

impl<'a> Permuted<'a> {
    /// Sorts `rows` in so many orders, on all cores. A query looks at `walks` distinct signatures, and at no fewer than
    /// two for each order. The same seed gives the same permutations.
    pub fn build(rows: &'a Signatures, orders: usize, walks: usize, seed: u64) -> Result<Self> {
        let method = PermutedMethod { orders, walks }.checked()?;
        if u32::try_from(rows.len()).is_err() {
            return Err(Error::TooManyRows { rows: rows.len() });
        }
        let kernel = hamming::kernel()?;
        let Distinct { firsts, copies, .. } = Distinct::of(rows)?;
        let mut random = Random(seed);
        let order = |_| Order::build(rows, &firsts, &mut random);
        Ok(Permuted {
            rows,
            orders: (0..method.orders).map(order).collect::<Result<_>>()?,
            walks: method.walks.max(2 * method.orders),
            copies,
            distinct: firsts.len(),
            kernel,
            calibrations: Mutex::default(),
        })
    }

    /// How many orders there are, and how many rows a query looks at.
    pub fn method(&self) -> PermutedMethod {
        PermutedMethod { orders: self.orders.len(), walks: self.walks }
    }

    /// How many signatures are distinct.
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// How much memory the orders take, with what leads from a signature to its copies.
    pub fn bytes(&self) -> u64 {
        self.orders.iter().map(Order::bytes).sum::<u64>() + self.copies.bytes()
    }

    /// The scan, if so many looks are enough for every signature: it takes them in the fastest order.
    fn scan(&self, walks: usize) -> Result<Option<Scan<'a>>> {
        match walks >= self.distinct {
            true => Scan::with_kernel(self.rows, self.kernel).map(Some),
            false => Ok(None),
        }
    }

    /// Answers every query with what `answer` adds for it, on all cores.
    fn ask(
        &self,
        queries: Queries<'_>,
        walks: usize,
        found: &mut Answers,
        answer: impl Fn(&mut Walker<'_>, &[u64], &mut Vec<Neighbor>) + Sync,
    ) -> Result<()> {
        if queries.bits() != self.rows.bits() {
            return Err(Error::WidthMismatch { stored: self.rows.bits(), given: queries.bits() });
        }
        let run = |part: Range<usize>| {
            let (mut answers, mut neighbors) = (Answers::new(), Vec::new());
            let mut walker = Walker::new(&self.orders, walks);
            for query in part {
                neighbors.clear();
                answer(&mut walker, queries.signatures().row(query), &mut neighbors);
                neighbors.sort_unstable_by_key(|neighbor| (neighbor.distance, neighbor.row));
                answers.push(&neighbors);
            }
            answers
        };
        let len = queries.len();
        let part = len.div_ceil(rayon::current_num_threads()).clamp(1, PART);
        found.clear();
        if len == 1 {
            found.append(&run(0..1));
        } else {
            let starts: Vec<_> = (0..len).step_by(part).collect();
            let parts = starts.into_par_iter().map(|start| run(start..(start + part).min(len)));
            parts.collect::<Vec<_>>().iter().for_each(|part| found.append(part));
        }
        Ok(())
    }

    /// The distance of a row, if it is at most so much.
    fn distance(&self, query: &[u64], look: &Look, most: u32) -> Option<u32> {
        let distance = look.differences.count_ones();
        match query {
            // An order has all their bits.
            [_] => Some(distance),
            // It has some: most often they already are too many.
            _ if distance > most => None,
            _ => Some(self.kernel.distance(query, self.rows.row(look.row as usize))),
        }
        .filter(|&distance| distance <= most)
    }

    /// The signatures within the radius that a walk comes to.
    fn matches<'w>(
        &'w self,
        walker: &'w mut Walker<'_>,
        query: &'w [u64],
        radius: u32,
    ) -> impl Iterator<Item = Neighbor> + 'w {
        walker.walk(query).filter_map(move |look| {
            let distance = self.distance(query, &look, radius)?;
            Some(Neighbor { row: look.row, distance })
        })
    }

    fn all(&self, walker: &mut Walker<'_>, query: &[u64], radius: u32, found: &mut Vec<Neighbor>) {
        for Neighbor { row, distance } in self.matches(walker, query, radius) {
            found.extend(self.copies.view().rows(row).map(|row| Neighbor { row, distance }));
        }
    }

    fn closest(&self, walker: &mut Walker<'_>, query: &[u64], k: usize, found: &mut Vec<Neighbor>) {
        // Distance and row, the worst on top.
        let mut best = BinaryHeap::new();
        for look in walker.walk(query) {
            let worst = match best.peek() {
                Some(&(worst, _)) if best.len() >= k => worst,
                _ => self.rows.bits(),
            };
            let Some(distance) = self.distance(query, &look, worst) else { continue };
            for row in self.copies.view().rows(look.row).take(k) {
                best.push((distance, row));
                // Later copies would lose, too.
                if best.len() > k && best.pop() == Some((distance, row)) {
                    break;
                }
            }
        }
        found.extend(best.into_iter().map(|(distance, row)| Neighbor { row, distance }));
    }
}

impl Index for Permuted<'_> {
    fn within(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        if let Some(scan) = self.scan(self.walks)? {
            return scan.within(queries, radius, found);
        }
        self.ask(queries, self.walks, found, |walker, query, found| {
            self.all(walker, query, radius, found);
        })?;
        self.expected(radius, found)
    }

    /// The first row that the walk comes to. The recall is that of queries with no other neighbor: those with several
    /// find one more often.
    fn first(&self, queries: Queries<'_>, radius: u32, found: &mut Answers) -> Result<Promise> {
        if let Some(scan) = self.scan(self.walks)? {
            return scan.first(queries, radius, found);
        }
        self.ask(queries, self.walks, found, |walker, query, found| {
            found.extend(self.matches(walker, query, radius).next());
        })?;
        self.expected(radius, found)
    }

    /// The nearest of those that the walk comes to; it looks at `k` at least. The recall is that of a sample: of the first
    /// batch of many queries, or of the rows until there is one. One row is as good as another at the same distance.
    fn nearest(&self, queries: Queries<'_>, k: usize, found: &mut Answers) -> Result<Promise> {
        let walks = self.walks.max(k);
        if let Some(scan) = self.scan(walks)? {
            return scan.nearest(queries, k, found);
        }
        self.ask(queries, walks, found, |walker, query, found| {
            self.closest(walker, query, k, found);
        })?;
        self.expected_nearest(queries, k, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Near copies around a few rows, some of them identical.
    fn clusters(bits: u32, random: &mut Random) -> Signatures {
        let mut rows = Signatures::new(bits).unwrap();
        let mut words = vec![0; rows.stride()];
        for i in 0..600 {
            random.differ_in(if i % 3 == 0 { bits / 3 } else { i % 5 }, bits, &mut words);
            rows.push(&Signatures::from_words(bits, words.clone()).unwrap().get(0)).unwrap();
        }
        rows
    }

    /// The index leaves this to the scan: here the walk itself has to come to every row.
    #[test]
    fn a_walk_that_looks_at_everything_agrees_with_the_scan() {
        for bits in [32, 40, 64, 72, 256, 1024] {
            let mut random = Random(u64::from(bits));
            let rows = clusters(bits, &mut random);
            let queries = clusters(bits, &mut random);
            let queries = Queries::from(&queries);
            let index = Permuted::build(&rows, 3, 1, 1).unwrap();
            let scan = Scan::new(&rows).unwrap();
            let (mut found, mut truth) = (Answers::new(), Answers::new());
            for radius in [0, 3, bits / 4, bits] {
                let all = |walker: &mut Walker<'_>, query: &[u64], found: &mut Vec<Neighbor>| {
                    index.all(walker, query, radius, found);
                };
                index.ask(queries, index.distinct(), &mut found, all).unwrap();
                scan.within(queries, radius, &mut truth).unwrap();
                assert_eq!(found, truth, "{bits} bits within {radius}");
            }
            for k in [0, 1, 7, 300, 1000] {
                let closest =
                    |walker: &mut Walker<'_>, query: &[u64], found: &mut Vec<Neighbor>| {
                        index.closest(walker, query, k, found);
                    };
                index.ask(queries, index.distinct(), &mut found, closest).unwrap();
                scan.nearest(queries, k, &mut truth).unwrap();
                assert_eq!(found, truth, "{bits} bits, {k} nearest");
            }
        }
    }

    #[test]
    fn the_paper_has_two_looks_for_each_order_at_least() {
        let rows = clusters(64, &mut Random(1));
        assert_eq!(Permuted::build(&rows, 5, 3, 1).unwrap().method().walks, 10);
        assert_eq!(Permuted::build(&rows, 5, 11, 1).unwrap().method().walks, 11);
    }

    #[test]
    fn the_memory_is_known_before_they_are_sorted() {
        let rows = clusters(64, &mut Random(2));
        let index = Permuted::build(&rows, 5, 11, 1).unwrap();
        let most = index.method().bytes(rows.len());
        assert!(index.distinct() < rows.len() && index.bytes() <= most && index.bytes() * 2 > most);
    }
}
