//! The workload: signatures of documents that nobody wrote, in place of the pages that the thesis crawled.
//!
//! - Words are drawn from a vocabulary of a million by Zipf's law; about 140 distinct ones make a document.
//! - A word weighs its TF-IDF. Each occurrence votes with the IDF alone: that sums to TF-IDF by itself.
//! - Documents come in clusters of edited copies, whose sizes follow a power law. Most clusters are a single document.
//! - A query is a further copy from the cluster of some stored document, or a document of its own. About 27% of the
//!   queries have a neighbor within 3 bits, and a query has about 0.85 of them, whatever the size.
//!
//! The thesis tells the features and weights of its pages, but not how many had neighbors; it quotes a study in which
//! 29% of pages were very similar to others. The sizes of clusters and the number of edits are our choice, made to come
//! near an earlier workload of ours: in the two numbers above, and in the recall of PSM. So that recall, and how soon
//! weak bits are found, are properties of this choice; they confirm nothing about the crawl.
//!
//! Every document has its own random numbers, so the workload depends on the seed alone and not on threads. Stored
//! rows are shuffled: the first `n` of them are a random sample, as the smaller datasets of the thesis' figure 8 are.

use rayon::prelude::*;

use crate::random::{Random, mix};

/// Distinct words.
const VOCABULARY: usize = 1_000_000;
/// Words of a document, repeated ones counted: 165 on average, of which about 140 are distinct.
const LENGTHS: std::ops::Range<usize> = 90..241;
/// Words that a copy has changed. Fewer make weak bits flip more surely, and the recall of PSM higher.
const EDITS: std::ops::Range<usize> = 1..4;
/// The share of the queries that are copies, in percent.
const COPIED_QUERIES: usize = 38;
/// No cluster is larger.
const LARGEST_CLUSTER: usize = 600;
/// Weights are whole numbers of 1/16: 241 words of at most 12 stay below 2^16.
const ONE: f64 = 16.0;

/// Stored signatures, queries, and the margins of the queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The stored signatures, in random order.
    pub stored: Vec<u64>,
    /// The signatures of the queries.
    pub queries: Vec<u64>,
    /// 64 bytes a query, leading bit first: 255 is its strongest bit, the others in proportion.
    pub margins: Vec<u8>,
}

impl Workload {
    /// Makes a workload of so many stored signatures and queries.
    ///
    /// # Panics
    /// If there are queries and nothing stored, or more stored signatures than 2^32.
    pub fn new(stored: usize, queries: usize, seed: u64) -> Self {
        assert!(stored > 0 || queries == 0, "queries are copies of stored documents");
        let maker = Maker { words: Words::new(seed), starts: cluster_starts(stored, seed), seed };
        let (queries, margins) = maker.queries(queries, stored);
        let mut stored = maker.stored(stored);
        Random::of(seed, KIND_SHUFFLE, 0).shuffle(&mut stored);
        Workload { stored, queries, margins }
    }

    /// Each query with its margins.
    pub fn queries(&self) -> impl ExactSizeIterator<Item = (u64, &[u8; 64])> {
        self.queries.iter().copied().zip(self.margins.as_chunks().0)
    }
}

// What random numbers are for: each kind of thing has its own.
const KIND_CLUSTER_SIZES: u64 = 1;
const KIND_ORIGINAL: u64 = 2;
const KIND_COPY: u64 = 3;
const KIND_QUERY: u64 = 4;
const KIND_SHUFFLE: u64 = 5;

struct Maker {
    words: Words,
    /// The first row of each cluster: it holds the original, and the rows up to the next cluster its copies.
    starts: Vec<u32>,
    seed: u64,
}

impl Maker {
    /// Rows are filled in pieces that may begin and end within a cluster, whose original is then made once more.
    fn stored(&self, count: usize) -> Vec<u64> {
        const PIECE: usize = 4096;
        let mut rows = vec![0; count];
        rows.par_chunks_mut(PIECE).enumerate().for_each(|(piece, rows)| {
            let first = piece * PIECE;
            let mut cluster = self.cluster_of(first);
            let mut original = self.original(cluster);
            for (row, signature) in (first..).zip(rows) {
                if self.starts.get(cluster + 1).is_some_and(|&start| start as usize == row) {
                    cluster += 1;
                    original = self.original(cluster);
                }
                *signature = match self.starts[cluster] as usize == row {
                    true => original.votes.signature(),
                    false => self.copy(&original, &mut self.random(KIND_COPY, row)).signature(),
                };
            }
        });
        rows
    }

    fn queries(&self, count: usize, stored: usize) -> (Vec<u64>, Vec<u8>) {
        let (mut queries, mut margins) = (vec![0; count], vec![0; 64 * count]);
        let rows = queries.par_iter_mut().zip(margins.as_chunks_mut::<64>().0.par_iter_mut());
        rows.enumerate().for_each(|(number, (query, margins))| {
            let votes = self.query(number, stored);
            (*query, *margins) = (votes.signature(), votes.margins());
        });
        (queries, margins)
    }

    fn query(&self, number: usize, stored: usize) -> Votes {
        let mut random = self.random(KIND_QUERY, number);
        if random.below(100) < COPIED_QUERIES {
            // A random row, not a random cluster: most documents that have copies have many.
            let cluster = self.cluster_of(random.below(stored));
            self.copy(&self.original(cluster), &mut random)
        } else {
            self.document(&mut random).votes
        }
    }

    fn random(&self, kind: u64, index: usize) -> Random {
        Random::of(self.seed, kind, index)
    }

    fn cluster_of(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start as usize <= row) - 1
    }

    fn original(&self, cluster: usize) -> Document {
        self.document(&mut self.random(KIND_ORIGINAL, cluster))
    }

    fn document(&self, random: &mut Random) -> Document {
        let length = LENGTHS.start + random.below(LENGTHS.len());
        let words: Vec<Word> = (0..length).map(|_| self.words.draw(random)).collect();
        let votes = Votes::of(&words);
        Document { words, votes }
    }

    /// Some words in a row are replaced, or taken out, or others are put in.
    fn copy(&self, original: &Document, random: &mut Random) -> Votes {
        let mut votes = original.votes.clone();
        let edits = EDITS.start + random.below(EDITS.len());
        let first = random.below(original.words.len() - edits);
        for &word in &original.words[first..first + edits] {
            let (remove, add) =
                [(true, true), (true, true), (true, false), (false, true)][random.below(4)];
            if remove {
                votes.remove(word);
            }
            if add {
                votes.add(self.words.draw(random));
            }
        }
        votes
    }
}

/// Cuts the rows into clusters: of size `s` with a probability in proportion to s^-3.
fn cluster_starts(rows: usize, seed: u64) -> Vec<u32> {
    assert!(u32::try_from(rows).is_ok(), "rows are numbered with 32 bits");
    let mut shares: Vec<f64> =
        (1..=LARGEST_CLUSTER).map(|size| size as f64).map(|s| 1.0 / (s * s * s)).collect();
    let all: f64 = shares.iter().sum();
    let mut sum = 0.0;
    for share in &mut shares {
        sum += *share / all;
        *share = sum;
    }
    let mut random = Random::of(seed, KIND_CLUSTER_SIZES, 0);
    let (mut starts, mut row) = (Vec::new(), 0);
    while row < rows {
        starts.push(row as u32);
        let drawn = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        // Single documents first: most are.
        row += 1 + shares.iter().take_while(|&&share| share <= drawn).count();
    }
    starts
}

struct Document {
    words: Vec<Word>,
    votes: Votes,
}

/// What a word does to a document: on each bit that its hash has, it votes with its weight.
#[derive(Clone, Copy)]
struct Word {
    hash: u64,
    weight: u16,
}

/// The vocabulary, commonest word first.
struct Words {
    /// Word `rank` has probability ln((rank + 1) / rank) / ln(words + 1): Zipf's law, and simple to invert, as the
    /// logarithm of the rank is uniform. These are the ranks at equal steps of that logarithm.
    ranks: Vec<f64>,
    /// IDF: minus the logarithm of the share of the documents that have the word.
    weights: Vec<u16>,
    seed: u64,
}

/// Between two steps ranks are drawn uniformly: a step is a third of a percent.
const STEP_BITS: u32 = 12;

impl Words {
    fn new(seed: u64) -> Self {
        let span = libm::log((VOCABULARY + 1) as f64);
        let steps = 1 << STEP_BITS;
        let ranks =
            (0..=steps).map(|i| libm::exp(span * f64::from(i) / f64::from(steps))).collect();
        let length = (LENGTHS.start + LENGTHS.end) as f64 / 2.0;
        let weight = |rank: usize| {
            let probability = libm::log1p(1.0 / rank as f64) / span;
            let documents = -libm::expm1(-length * probability);
            libm::round(-libm::log(documents) * ONE) as u16
        };
        Words { ranks, weights: (1..=VOCABULARY).map(weight).collect(), seed: mix(seed) }
    }

    #[inline]
    fn draw(&self, random: &mut Random) -> Word {
        let drawn = random.next();
        let step = (drawn >> (64 - STEP_BITS)) as usize;
        let between = (drawn as u32) as f64 / (1_u64 << 32) as f64;
        let (low, high) = (self.ranks[step], self.ranks[step + 1]);
        let rank = ((low + (high - low) * between) as usize).min(VOCABULARY);
        // Quicker to make than to fetch.
        let hash = mix(self.seed.wrapping_add((rank as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Word { hash, weight: self.weights[rank - 1] }
    }
}

/// The votes on each bit. Only the weight of the words that have the bit is summed: the vote is twice that, less the
/// weight of all words.
#[derive(Clone)]
struct Votes {
    /// Eight bits at a time, as many as fit in a vector.
    sums: [[u16; 8]; 8],
    all: u16,
}

/// For each byte a mask for each of its bits, leading bit first.
static MASKS: [[u16; 8]; 256] = {
    let mut masks = [[0; 8]; 256];
    let mut place = 0;
    while place < 256 * 8 {
        let (byte, bit) = (place / 8, place % 8);
        masks[byte][bit] = if byte >> (7 - bit) & 1 == 1 { u16::MAX } else { 0 };
        place += 1;
    }
    masks
};

impl Votes {
    fn of(words: &[Word]) -> Self {
        let mut votes = Votes { sums: [[0; 8]; 8], all: 0 };
        words.iter().for_each(|&word| votes.add(word));
        votes
    }

    #[inline]
    fn add(&mut self, word: Word) {
        self.all += word.weight;
        self.change(word.hash, word.weight);
    }

    #[inline]
    fn remove(&mut self, word: Word) {
        self.all -= word.weight;
        self.change(word.hash, word.weight.wrapping_neg());
    }

    /// Adds to the sums of the bits that are set, without a branch.
    #[inline]
    fn change(&mut self, bits: u64, by: u16) {
        for (sums, byte) in self.sums.iter_mut().zip(bits.to_be_bytes()) {
            let masks = &MASKS[usize::from(byte)];
            for (sum, mask) in sums.iter_mut().zip(masks) {
                *sum = sum.wrapping_add(by & mask);
            }
        }
    }

    fn votes(&self) -> [i32; 64] {
        let sums = self.sums.as_flattened();
        std::array::from_fn(|bit| 2 * i32::from(sums[bit]) - i32::from(self.all))
    }

    fn signature(&self) -> u64 {
        self.votes().iter().fold(0, |word, &vote| word << 1 | u64::from(vote > 0))
    }

    /// As the engine rounds them: only a vote of exactly zero has margin 0.
    fn margins(&self) -> [u8; 64] {
        let votes = self.votes().map(i32::unsigned_abs);
        let strongest = votes.iter().copied().max().unwrap_or(0).max(1);
        votes.map(|vote| ((vote * 255 + strongest / 2) / strongest).max(u32::from(vote > 0)) as u8)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bphs::Bphs;

    #[test]
    fn threads_do_not_matter() {
        let with = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Workload::new(10_000, 300, seed))
        };
        let one = with(1, 7);
        assert_eq!(one, with(3, 7));
        assert_ne!(one, with(1, 8));
        assert_eq!((one.stored.len(), one.queries().len()), (10_000, 300));
        assert_eq!(Workload::new(0, 0, 7).stored, []);
    }

    #[test]
    fn documents_have_about_140_distinct_features() {
        let maker = Maker { words: Words::new(1), starts: Vec::new(), seed: 1 };
        let distinct = |number| {
            let document = maker.original(number);
            let weighed = document.words.iter().filter(|word| word.weight > 0);
            weighed.map(|word| word.hash).collect::<HashSet<_>>().len()
        };
        let mean = (0..1000).map(distinct).sum::<usize>() as f64 / 1000.0;
        assert!((137.0..143.0).contains(&mean), "{mean} features a document");
    }

    #[test]
    fn sums_do_not_overflow() {
        let heaviest = *Words::new(1).weights.iter().max().unwrap();
        let words = LENGTHS.end - 1 + EDITS.end - 1;
        assert!(words * usize::from(heaviest) <= usize::from(u16::MAX));
    }

    #[test]
    fn edited_votes_are_those_of_the_edited_words() {
        let words = Words::new(3);
        let mut random = Random::of(3, 0, 0);
        let mut drawn: Vec<Word> = (0..100).map(|_| words.draw(&mut random)).collect();
        let mut votes = Votes::of(&drawn);
        votes.remove(drawn.swap_remove(40));
        votes.remove(drawn.swap_remove(7));
        drawn.push(words.draw(&mut random));
        votes.add(drawn[drawn.len() - 1]);
        assert_eq!(votes.votes(), Votes::of(&drawn).votes());
        for (bit, vote) in votes.votes().into_iter().enumerate() {
            let sign = |word: &Word| if word.hash >> (63 - bit) & 1 == 1 { 1 } else { -1 };
            let plain: i32 = drawn.iter().map(|word| sign(word) * i32::from(word.weight)).sum();
            assert_eq!(vote, plain);
        }
    }

    #[test]
    fn positive_votes_are_ones_and_margins_their_share_of_the_strongest() {
        let word = |hash, weight| Word { hash, weight };
        // Bit 0 gets 100 + 20, bit 1 gets 100 - 20, the others -100 - 20.
        let votes = Votes::of(&[word(0b11 << 62, 100), word(1 << 63, 20)]);
        assert_eq!(votes.signature(), 0b11 << 62);
        assert_eq!(votes.margins()[..3], [255, 170, 255]);
        let even = Votes::of(&[word(u64::MAX, 50), word(0, 50)]);
        assert_eq!((even.signature(), even.margins()), (0, [0; 64]));
        // -1 of 1199 rounds to 0, which is for votes of zero.
        let weak = Votes::of(&[word(1 << 63, 600), word(u64::MAX, 599)]);
        assert_eq!((weak.margins()[0], weak.margins()[1]), (255, 1));
    }

    #[test]
    fn about_27_percent_of_the_queries_have_neighbors() {
        let workload = Workload::new(200_000, 10_000, 1);
        let bphs = Bphs::build(&workload.stored, 5, 2);
        let (mut with, mut all, mut found) = (0, 0, Vec::new());
        for (query, _) in workload.queries() {
            bphs.all(query, 3, &mut found);
            with += usize::from(!found.is_empty());
            all += found.len();
        }
        let [with, all] = [with, all].map(|count| count as f64 / workload.queries.len() as f64);
        assert!((0.25..0.29).contains(&with), "{with} of the queries have a neighbor");
        // Large clusters are few: their part of the sum depends on the seed.
        assert!((0.6..1.2).contains(&all), "{all} neighbors a query");
    }
}
