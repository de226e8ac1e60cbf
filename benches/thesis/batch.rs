//! Batch mode (chapters V and VI, figure 10 of the thesis): the queries are in memory and the stored file streams past.
//!
//! The file is a row of sorted chunks as large as a batch: each earlier batch was sorted and appended to it.
//!
//! - BPHS builds its tables on the *queries* and looks up every stored row in them. It searches from the file to the
//!   batch, so it cannot stop at a match: another query may match the same row. The first match of a query therefore takes
//!   as long as all.
//! - PSM searches from the batch to the file. The flips of all queries are computed once, ahead of the file. A query that
//!   wants one match leaves the batch with it.
//!
//! The thesis does not say how a chunk is searched in batch mode. Its model has a term for rows compared and none for a
//! search, so there are two forms here: an index of 2^p offsets on each chunk, as for single queries, with the flips of a
//! query in their order; or all flips sorted once, and a chunk merged with them, which reads both in sequence.

use rayon::prelude::*;

use crate::{bphs::Bphs, flips::Flips, psm::offsets};

/// The stored file: cuts it into chunks of the size of a batch, and sorts each.
pub fn sorted_chunks(stored: &[u64], batch: usize) -> Vec<u64> {
    let mut file = stored.to_vec();
    file.par_chunks_mut(batch.max(1)).for_each(<[u64]>::sort_unstable);
    file
}

/// Which rows near a query are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of them.
    All,
    /// One of them.
    First,
}

/// A query's signature, a row of the file. Queries with the same signature are found once each.
pub type Found = (u64, u32);

/// The queries in permuted sorted tables.
#[derive(Debug)]
pub struct BphsBatch {
    tables: Bphs,
    /// Which queries are matched, by their signatures.
    sorted: Vec<u64>,
    matched: Vec<bool>,
    found: Vec<u64>,
}

impl BphsBatch {
    /// Builds the tables on the queries; see [`Bphs::build`].
    ///
    /// # Panics
    /// As [`Bphs::build`] does.
    pub fn build(queries: &[u64], blocks: u32, lead: u32) -> Self {
        let mut sorted = queries.to_vec();
        sorted.par_sort_unstable();
        let (matched, found) = (vec![false; sorted.len()], Vec::new());
        BphsBatch { tables: Bphs::build(queries, blocks, lead), sorted, matched, found }
    }

    /// Bytes a query: of the tables, and of what says which are matched.
    pub fn bytes(&self) -> f64 {
        self.tables.bytes() + 9.0
    }

    /// Looks up a chunk of the file, whose first row has number `first`, and hands out what is found.
    pub fn pass(
        &mut self,
        chunk: &[u64],
        first: u32,
        (wanted, radius): (Wanted, u32),
        mut each: impl FnMut(Found),
    ) {
        for (number, &row) in (first..).zip(chunk) {
            self.tables.all(row, radius, &mut self.found);
            match wanted {
                Wanted::All => self.found.iter().for_each(|&query| each((query, number))),
                Wanted::First => {
                    // Each query comes once: all with its signature are matched by the first of them.
                    self.found.sort_unstable();
                    self.found.dedup();
                    for &query in &self.found {
                        let start = self.sorted.partition_point(|&other| other < query);
                        let same = self.sorted[start..].iter().take_while(|&&other| other == query);
                        if !std::mem::replace(&mut self.matched[start], true) {
                            same.for_each(|&query| each((query, number)));
                        }
                    }
                }
            }
        }
    }
}

/// How a chunk is searched for the flips of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Query by query, likeliest flips first, by an index on the chunk's leading bits.
    ByQuery,
    /// All flips in the order of their leading bits, as the rows of the chunk are.
    Sorted,
}

/// The queries with their flips.
#[derive(Debug)]
pub struct PsmBatch {
    queries: Vec<u64>,
    /// The leading bits to look for, and the query whose they are in the lower half. By query there are `probes` of each,
    /// but for those that have left.
    flips: Vec<u64>,
    matched: Vec<bool>,
    order: Order,
    probes: usize,
    leading: u32,
}

impl PsmBatch {
    /// Computes the `probes` likeliest values of the `leading` bits of each query, its own among them.
    ///
    /// # Panics
    /// Unless `leading` is from 1 to 32, or if `radius` flips of that many bits are fewer than the probes.
    pub fn build<'a>(
        queries: impl Iterator<Item = (u64, &'a [u8; 64])>,
        (radius, probes): (u32, usize),
        leading: u32,
        order: Order,
    ) -> Self {
        assert!((1..=32).contains(&leading), "an index on {leading} bits");
        let (mut heap, mut flips, mut words) = (Flips::new(), Vec::new(), Vec::new());
        for (number, (query, margins)) in queries.enumerate() {
            heap.start(margins, leading, 1..=radius);
            let values = std::iter::once(0).chain(&mut heap).take(probes);
            let value = |flipped: u64| (query ^ flipped) >> (64 - leading) << 32 | number as u64;
            flips.extend(values.map(value));
            words.push(query);
        }
        assert_eq!(flips.len(), words.len() * probes, "so many flips of {leading} bits");
        if order == Order::Sorted {
            flips.par_sort_unstable();
        }
        PsmBatch {
            matched: vec![false; words.len()],
            queries: words,
            flips,
            order,
            probes,
            leading,
        }
    }

    /// Bytes a query, with the index on a chunk of so many rows.
    pub fn bytes(&self, chunk: usize) -> f64 {
        let index = match self.order {
            Order::ByQuery => 4.0 * f64::from(2_u32).powi(self.leading as i32),
            Order::Sorted => 0.0,
        };
        let shared = (index + 8.0 * chunk as f64) / self.queries.len().max(1) as f64;
        (8 * self.probes + 9) as f64 + shared
    }

    /// Whether every query has left.
    pub fn is_done(&self) -> bool {
        self.flips.is_empty()
    }

    /// Searches a sorted chunk of the file, whose first row has number `first`, and hands out what is found.
    pub fn pass(
        &mut self,
        chunk: &[u64],
        first: u32,
        (wanted, radius): (Wanted, u32),
        mut each: impl FnMut(Found),
    ) {
        match self.order {
            Order::ByQuery => self.by_query(chunk, first, (wanted, radius), &mut each),
            Order::Sorted => self.merge(chunk, first, (wanted, radius), &mut each),
        }
        if wanted == Wanted::First {
            let matched = &self.matched;
            self.flips.retain(|flip| !matched[*flip as u32 as usize]);
        }
    }

    fn by_query(
        &mut self,
        chunk: &[u64],
        first: u32,
        (wanted, radius): (Wanted, u32),
        each: &mut impl FnMut(Found),
    ) {
        let offsets = offsets(chunk, self.leading);
        for flips in self.flips.chunks_exact(self.probes) {
            let number = flips[0] as u32 as usize;
            let query = self.queries[number];
            let rows = flips.iter().flat_map(|flip| {
                let value = (flip >> 32) as usize;
                offsets[value]..offsets[value + 1]
            });
            let mut near = rows.filter(|&row| (chunk[row as usize] ^ query).count_ones() <= radius);
            match wanted {
                Wanted::All => near.for_each(|row| each((query, first + row))),
                Wanted::First => {
                    if let Some(row) = near.next() {
                        self.matched[number] = true;
                        each((query, first + row));
                    }
                }
            }
        }
    }

    fn merge(
        &mut self,
        chunk: &[u64],
        first: u32,
        (wanted, radius): (Wanted, u32),
        each: &mut impl FnMut(Found),
    ) {
        let (mut start, after) = (0, 64 - self.leading);
        for &flip in &self.flips {
            let value = flip >> 32;
            start += chunk[start..].iter().take_while(|&&row| row >> after < value).count();
            let run = chunk[start..].iter().take_while(|&&row| row >> after == value);
            for (row, signature) in (first + start as u32..).zip(run) {
                let number = flip as u32 as usize;
                let query = self.queries[number];
                if (signature ^ query).count_ones() <= radius
                    && !(wanted == Wanted::First
                        && std::mem::replace(&mut self.matched[number], true))
                {
                    each((query, row));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    const RADIUS: u32 = 3;

    fn scan(workload: &Workload, file: &[u64]) -> Vec<Found> {
        let near = |query: u64| {
            let rows =
                (0..).zip(file).filter(move |(_, row)| (*row ^ query).count_ones() <= RADIUS);
            rows.map(move |(row, _)| (query, row))
        };
        let mut found: Vec<Found> =
            workload.queries.iter().flat_map(|&query| near(query)).collect();
        found.sort_unstable();
        found
    }

    /// Some queries twice, and some that are stored.
    fn workload() -> (Workload, Vec<u64>) {
        let mut workload = Workload::new(5_000, 700, 3);
        workload.queries[500..600].copy_from_slice(&workload.stored[..100]);
        workload.queries.copy_within(450..550, 600);
        workload.margins.copy_within(64 * 450..64 * 550, 64 * 600);
        let file = sorted_chunks(&workload.stored, 700);
        (workload, file)
    }

    /// The lowest row of each query, as often as it was asked.
    fn firsts(all: &[Found], queries: &[u64]) -> Vec<Found> {
        let first = |&query: &u64| all.iter().find(|found| found.0 == query).copied();
        let mut firsts: Vec<Found> = queries.iter().filter_map(first).collect();
        firsts.sort_unstable();
        firsts
    }

    #[test]
    fn bphs_finds_what_a_scan_finds() {
        let (workload, file) = workload();
        let all = scan(&workload, &file);
        for (blocks, lead) in [(4, 1), (5, 2)] {
            for (wanted, expected) in
                [(Wanted::All, all.clone()), (Wanted::First, firsts(&all, &workload.queries))]
            {
                let (mut found, mut first) = (Vec::new(), 0);
                let mut batch = BphsBatch::build(&workload.queries, blocks, lead);
                for chunk in file.chunks(700) {
                    batch.pass(chunk, first, (wanted, RADIUS), |pair| found.push(pair));
                    first += chunk.len() as u32;
                }
                found.sort_unstable();
                assert_eq!(found, expected);
            }
        }
    }

    /// With all flips it finds all, in either order.
    #[test]
    fn psm_finds_what_a_scan_finds() {
        let (workload, file) = workload();
        let all = scan(&workload, &file);
        let of_first: Vec<u64> =
            firsts(&all, &workload.queries).into_iter().map(|found| found.0).collect();
        // 1 + 8 + 28 + 56 combinations of up to 3 of 8 bits.
        for (order, wanted) in [Order::ByQuery, Order::Sorted]
            .into_iter()
            .flat_map(|order| [Wanted::All, Wanted::First].map(|wanted| (order, wanted)))
        {
            let (mut found, mut first) = (Vec::new(), 0);
            let mut batch = PsmBatch::build(workload.queries(), (RADIUS, 93), 8, order);
            for chunk in file.chunks(700) {
                batch.pass(chunk, first, (wanted, RADIUS), |pair| found.push(pair));
                first += chunk.len() as u32;
            }
            found.sort_unstable();
            match wanted {
                Wanted::All => assert_eq!(found, all),
                Wanted::First => {
                    assert!(found.iter().all(|pair| all.binary_search(pair).is_ok()));
                    assert_eq!(found.into_iter().map(|pair| pair.0).collect::<Vec<_>>(), of_first);
                }
            }
            assert!(!batch.is_done());
        }
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let queries = [(7, &[1; 64])];
        let mut batch = PsmBatch::build(queries.into_iter(), (3, 23), 8, Order::Sorted);
        batch.pass(&[], 0, (Wanted::First, 3), |_| panic!("nothing is there"));
        batch.pass(&[7, 7], 0, (Wanted::First, 3), |pair| assert_eq!(pair, (7, 0)));
        assert!(batch.is_done());
        let mut none = BphsBatch::build(&[], 4, 1);
        none.pass(&[7], 0, (Wanted::All, 3), |_| panic!("nobody asked"));
    }
}
