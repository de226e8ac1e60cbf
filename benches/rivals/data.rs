//! Rows and queries: the workload of the thesis, or random ones.

use lookalike::Signatures;
use lookalike_thesis::workload::Workload;

use crate::options::Options;

pub(crate) struct Data {
    pub(crate) rows: Signatures,
    pub(crate) queries: Signatures,
}

impl Data {
    pub(crate) fn new(options: &Options) -> Self {
        let Options { rows, queries, seed, planted, .. } = *options;
        let (rows, queries) = match options.uniform {
            true => uniform(rows, queries, seed, planted),
            false => {
                let workload = Workload::new(rows, queries, seed);
                (workload.stored, workload.queries)
            }
        };
        let pack = |words| Signatures::from_words(64, words).expect("64 is a width");
        Data { rows: pack(rows), queries: pack(queries) }
    }
}

/// Random rows; so many of 100 queries are a row with 0 to 3 bits flipped, the others are random, too.
fn uniform(rows: usize, queries: usize, seed: u64, planted: u64) -> (Vec<u64>, Vec<u64>) {
    let mut state = seed;
    let mut random = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let rows: Vec<u64> = (0..rows).map(|_| random()).collect();
    let query = |_| match random() % 100 < planted {
        true => {
            let row = rows[random() as usize % rows.len()];
            (0..random() % 4).fold(row, |row, _| row ^ 1 << (random() % 64))
        }
        false => random(),
    };
    let queries = (0..queries).map(query).collect();
    (rows, queries)
}
