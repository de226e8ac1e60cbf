//! Joins of rows that are apart, on many machines: keys by which near rows meet, and the comparison of those that met.
//!
//! The bits are cut into blocks, more than the radius, and a key has all blocks but `radius` of them: rows within the radius
//! have some key in common (Manku's blocks). Rows with the same key are a *bucket*. Whoever brings the rows of a bucket
//! together has [`Buckets`] compare them: a pair belongs to the first key that both have in common, so it is found once,
//! and nobody needs to know of the other buckets.
//!
//! A bucket that is too large is cut by further bits: what is not in its key still differs by at most the radius, so it is
//! cut into blocks again. Its rows have several keys in place of one.
//!
//! ```
//! use lookalike::join::apart::{Buckets, KeyPlan, Met};
//!
//! let plan = KeyPlan::new(64, 3, &[4])?;
//! let rows: [[u8; 8]; 3] = [[0; 8], [0, 0, 0, 0, 0, 0, 0, 7], [255; 8]];
//! let mut keys = Vec::new();
//! for row in &rows {
//!     plan.keys_of(&[u64::from_be_bytes(*row)], |_| false, |path, key| keys.push((key, path, row)));
//! }
//! // On many machines, each sorts its share of the keys.
//! keys.sort();
//! let (mut buckets, mut met) = (Buckets::new(8, 64, 3, Some(plan))?, Met::default());
//! keys.iter().try_for_each(|(key, path, row)| buckets.push(&[*key], &[*path], *row, &mut met))?;
//! buckets.finish(&mut met);
//! assert_eq!((met.a, met.b, met.distances), (rows[0].to_vec(), rows[1].to_vec(), vec![3]));
//! # Ok::<(), lookalike::Error>(())
//! ```

use std::ops::Range;

use super::plan::choose;
use crate::{
    Error, Result,
    features::hash::mix,
    hamming::{self, Kernel},
    index::slice,
    signature::{words_for, words_of_bytes},
};

/// Keys are made longer until a bucket has about so many rows. A row with a key is shuffled and sorted, which takes as long
/// as thousands of comparisons; but real rows are never spread evenly.
const ROWS_A_BUCKET: f64 = 256.0;
/// More keys a row are too many to be sorted.
const MOST_KEYS: u64 = 100;
/// More masks than this are not kept: deep cuts of wide radii.
const MOST_NODES: usize = 1 << 20;

/// Which keys a row has.
#[derive(Debug, Clone)]
pub struct KeyPlan {
    words: usize,
    nodes: Vec<Node>,
    /// The bits of each node's key, as words.
    masks: Vec<u64>,
    /// How many nodes come first: those whose keys all rows have.
    top: u32,
}

/// One choice of bits. Its key has those of the nodes above it, too.
#[derive(Debug, Clone)]
struct Node {
    above: Option<u32>,
    /// The choices that come before it, among those that cut the same bucket.
    earlier: Range<u32>,
    /// What its buckets are cut by, if they are too large.
    below: Range<u32>,
}

impl KeyPlan {
    /// Keys for rows of so many bits by which all within the radius meet: cut into `blocks[0]` blocks, large buckets
    /// into `blocks[1]` more, and so on. More blocks make longer keys, and more of them.
    pub fn new(bits: u32, radius: u32, blocks: &[u32]) -> Result<Self> {
        if blocks.iter().any(|&blocks| blocks <= radius) || blocks.is_empty() {
            let problem = format!("are {blocks:?}; a radius of {radius} takes more than that");
            return Err(Error::Setting { name: "blocks", problem });
        }
        let mut plan =
            KeyPlan { words: words_for(bits), nodes: Vec::new(), masks: Vec::new(), top: 0 };
        let all: Vec<u32> = (0..bits).collect();
        let mut left = plan.cut(&all, radius, blocks[0], None)?;
        plan.top = left.len() as u32;
        for &blocks in &blocks[1..] {
            let mut deeper = Vec::new();
            for (node, bits) in left {
                let first = plan.nodes.len() as u32;
                deeper.extend(plan.cut(&bits, radius, blocks, Some(node))?);
                plan.nodes[node as usize].below = first..plan.nodes.len() as u32;
            }
            left = deeper;
        }
        Ok(plan)
    }

    /// How many blocks to cut so many rows of so many bits into.
    pub fn blocks_for(bits: u32, radius: u32, rows: u64) -> u32 {
        let mut blocks = radius + 1;
        let fits = |blocks| choose(blocks, radius).is_some_and(|keys| keys <= MOST_KEYS);
        let rows_a_bucket = |blocks: u32| {
            let width = f64::from(bits) * f64::from(blocks - radius) / f64::from(blocks);
            rows as f64 / width.exp2()
        };
        while blocks < bits && rows_a_bucket(blocks) > ROWS_A_BUCKET && fits(blocks + 1) {
            blocks += 1;
        }
        blocks
    }

    /// How many keys a row has, as long as no bucket is cut.
    pub fn keys(&self) -> usize {
        self.top as usize
    }

    /// How many keys a row has if all its buckets are cut as often as can be.
    pub fn most_keys(&self) -> usize {
        self.nodes.iter().filter(|node| node.below.is_empty()).count()
    }

    /// Adds a node for each choice of blocks that leaves out `radius` of them. What each leaves out is returned.
    fn cut(
        &mut self,
        bits: &[u32],
        radius: u32,
        blocks: u32,
        above: Option<u32>,
    ) -> Result<Vec<(u32, Vec<u32>)>> {
        // So few bits tell nobody apart: one bucket for all, or no cut.
        if bits.len() <= radius as usize {
            if above.is_none() {
                self.add(&[], above, 0)?;
            }
            return Ok((0..u32::from(above.is_none())).map(|node| (node, Vec::new())).collect());
        }
        let blocks = blocks.min(bits.len() as u32);
        let first = self.nodes.len() as u32;
        let mut left = Vec::new();
        for out in choices(blocks, radius) {
            let block = |block: u32| {
                let range = slice(0..bits.len() as u32, blocks, block);
                bits[range.start as usize..range.end as usize].iter().copied()
            };
            let kept: Vec<u32> = (0..blocks).filter(|i| !out.contains(i)).flat_map(block).collect();
            let node = self.add(&kept, above, first)?;
            left.push((node, out.iter().flat_map(|&i| block(i)).collect()));
        }
        Ok(left)
    }

    fn add(&mut self, bits: &[u32], above: Option<u32>, first: u32) -> Result<u32> {
        let node = self.nodes.len();
        if node == MOST_NODES {
            let problem = "are too many for this radius; fewer levels do".to_owned();
            return Err(Error::Setting { name: "blocks", problem });
        }
        let mut mask = vec![0; self.words];
        bits.iter().for_each(|&bit| mask[bit as usize / 64] |= 1 << (63 - bit % 64));
        self.masks.extend(mask);
        self.nodes.push(Node { above, earlier: first..node as u32, below: 0..0 });
        Ok(node as u32)
    }

    /// The keys of a row, each with its *path*: which bits it is of. They have signs, as numbers of other systems do.
    /// `large` tells of a key whether its bucket is too large, and must tell the same of it everywhere.
    pub fn keys_of(
        &self,
        row: &[u64],
        large: impl Fn(i64) -> bool,
        mut each: impl FnMut(u32, i64),
    ) {
        self.keys_below(row, 0..self.top, 0, &large, &mut each);
    }

    fn keys_below(
        &self,
        row: &[u64],
        nodes: Range<u32>,
        above: u64,
        large: &impl Fn(i64) -> bool,
        each: &mut impl FnMut(u32, i64),
    ) {
        for node in nodes {
            let start = mix(above ^ mix(u64::from(node) + 1));
            let masked = row.iter().zip(self.mask(node)).map(|(word, mask)| word & mask);
            // Different rows may get one key: they are compared in vain, no more.
            let key = masked.fold(start, |key, word| mix(key.rotate_left(23) ^ word));
            let below = &self.nodes[node as usize].below;
            match !below.is_empty() && large(key as i64) {
                true => self.keys_below(row, below.clone(), key, large, each),
                false => each(node, key as i64),
            }
        }
    }

    fn mask(&self, node: u32) -> &[u64] {
        &self.masks[node as usize * self.words..][..self.words]
    }

    fn agrees(&self, node: u32, differences: &[u64]) -> bool {
        differences.iter().zip(self.mask(node)).all(|(word, mask)| word & mask == 0)
    }

    /// Whether a pair with these differences belongs to a path: whether no earlier key is common to both.
    fn belongs(&self, path: u32, differences: &[u64]) -> bool {
        let mut here = Some(path);
        while let Some(node) = here {
            let Node { above, earlier, .. } = &self.nodes[node as usize];
            let met_before = || earlier.clone().any(|other| self.agrees(other, differences));
            if !self.agrees(node, differences) || met_before() {
                return false;
            }
            here = *above;
        }
        true
    }
}

/// All choices of some of the blocks, in a fixed order.
fn choices(blocks: u32, some: u32) -> Vec<Vec<u32>> {
    let mut choices = vec![Vec::new()];
    for chosen in 0..some {
        let longer = |choice: &Vec<u32>| {
            let from = choice.last().map_or(0, |last| last + 1);
            let until = blocks - (some - chosen) + 1;
            let with = |next: u32| choice.iter().copied().chain([next]).collect();
            (from..until).map(with).collect::<Vec<Vec<u32>>>()
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    choices
}

/// Pairs of rows, as their bytes: `a` before `b` in the order of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Met {
    /// The first rows of the pairs, one behind the other.
    pub a: Vec<u8>,
    /// The second rows.
    pub b: Vec<u8>,
    /// How many bits each pair differs in.
    pub distances: Vec<u32>,
}

/// Compares rows that come in the order of their keys.
#[derive(Debug)]
pub struct Buckets {
    /// Without a plan, keys are from elsewhere, and a pair is found as often as it has a key in common.
    plan: Option<KeyPlan>,
    kernel: Kernel,
    radius: u32,
    /// How many bytes a row has: its signature first, then whatever tells it from others with the same one.
    width: usize,
    signature: usize,
    key: Option<i64>,
    /// The bucket that the rows so far end with.
    paths: Vec<u32>,
    rows: Vec<u8>,
    words: Vec<u64>,
    masks: Vec<u64>,
}

impl Buckets {
    /// For rows of `width` bytes that begin with a signature of `bits` bits.
    pub fn new(width: usize, bits: u32, radius: u32, plan: Option<KeyPlan>) -> Result<Self> {
        let signature = bits as usize / 8;
        if width < signature {
            let problem = format!("are {width}, and the signature has {signature}");
            return Err(Error::Setting { name: "bytes of a row", problem });
        }
        Ok(Buckets {
            plan,
            kernel: hamming::kernel()?,
            radius,
            width,
            signature,
            key: None,
            paths: Vec::new(),
            rows: Vec::new(),
            words: Vec::new(),
            masks: Vec::new(),
        })
    }

    /// Takes rows with their keys and paths, behind those that came before, and adds the pairs of buckets that are
    /// complete.
    pub fn push(&mut self, keys: &[i64], paths: &[u32], rows: &[u8], met: &mut Met) -> Result<()> {
        for ((&key, &path), row) in keys.iter().zip(paths).zip(rows.chunks_exact(self.width)) {
            if self.key != Some(key) {
                if self.key.is_some_and(|before| before > key) {
                    let problem = "are not in order".to_owned();
                    return Err(Error::Setting { name: "keys", problem });
                }
                self.finish(met);
                self.key = Some(key);
            }
            self.paths.push(path);
            self.rows.extend_from_slice(row);
            self.words.extend(words_of_bytes(&row[..self.signature]));
        }
        Ok(())
    }

    /// Adds the pairs of the last bucket.
    pub fn finish(&mut self, met: &mut Met) {
        let len = self.paths.len();
        if len > 1 {
            (0..len - 1).for_each(|i| self.compare(i, met));
        }
        self.paths.clear();
        self.rows.clear();
        self.words.clear();
    }

    /// Compares a row of the bucket with those behind it.
    fn compare(&mut self, i: usize, met: &mut Met) {
        let stride = self.words.len() / self.paths.len();
        let behind = self.paths.len() - i - 1;
        let (query, others) = self.words[i * stride..].split_at(stride);
        self.masks.resize(behind.div_ceil(64), 0);
        self.kernel.within(query, others, self.radius, &mut self.masks);
        for (block, &mask) in self.masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                let j = i + 1 + block * 64 + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                self.report(i, j, met);
            }
        }
    }

    fn report(&self, i: usize, j: usize, met: &mut Met) {
        let stride = self.words.len() / self.paths.len();
        let words = |i: usize| &self.words[i * stride..][..stride];
        let differences: Vec<u64> = words(i).iter().zip(words(j)).map(|(a, b)| a ^ b).collect();
        let path = self.paths[i];
        if let Some(plan) = &self.plan
            && (path != self.paths[j] || !plan.belongs(path, &differences))
        {
            return;
        }
        let row = |i: usize| &self.rows[i * self.width..][..self.width];
        let (a, b) = (row(i).min(row(j)), row(i).max(row(j)));
        // Two keys of one row may be the same by chance.
        if a != b {
            met.a.extend_from_slice(a);
            met.b.extend_from_slice(b);
            met.distances.push(differences.iter().map(|word| word.count_ones()).sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use proptest::prelude::*;

    use super::*;

    type Pairs = BTreeSet<(Vec<u8>, Vec<u8>, u32)>;

    /// All pairs of different rows within the radius, each with every other.
    fn oracle(rows: &BTreeSet<Vec<u8>>, radius: u32) -> Pairs {
        let rows: Vec<&Vec<u8>> = rows.iter().collect();
        let mut pairs = BTreeSet::new();
        for (i, a) in rows.iter().enumerate() {
            for b in &rows[i + 1..] {
                let distance = a.iter().zip(*b).map(|(a, b)| (a ^ b).count_ones()).sum();
                if distance <= radius {
                    pairs.insert((a.to_vec(), b.to_vec(), distance));
                }
            }
        }
        pairs
    }

    /// The same by keys; buckets of more than `most` rows are cut.
    fn joined(
        rows: &BTreeSet<Vec<u8>>,
        bits: u32,
        radius: u32,
        blocks: &[u32],
        most: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>, u32)> {
        let plan = KeyPlan::new(bits, radius, blocks).unwrap();
        let mut large = Vec::new();
        let mut keyed = Vec::new();
        for _ in blocks {
            keyed.clear();
            for row in rows {
                let is_large = |key| large.contains(&key);
                plan.keys_of(&words_of_bytes(row).collect::<Vec<_>>(), is_large, |path, key| {
                    keyed.push((key, path, row))
                });
            }
            let mut counts: HashMap<i64, usize> = HashMap::new();
            keyed.iter().for_each(|keyed| *counts.entry(keyed.0).or_default() += 1);
            large.extend(counts.iter().filter(|(_, count)| **count > most).map(|(key, _)| *key));
        }
        keyed.sort();
        let (mut buckets, mut met) =
            (Buckets::new(bits as usize / 8, bits, radius, Some(plan)).unwrap(), Met::default());
        for (key, path, row) in &keyed {
            buckets.push(&[*key], &[*path], row, &mut met).unwrap();
        }
        buckets.finish(&mut met);
        let width = bits as usize / 8;
        let rows = met.a.chunks(width).zip(met.b.chunks(width));
        rows.zip(met.distances)
            .map(|((a, b), distance)| (a.to_vec(), b.to_vec(), distance))
            .collect()
    }

    proptest! {
        #[test]
        fn keys_find_every_pair_once(
            (bits, radius) in prop::sample::select(vec![(32_u32, 0_u32), (32, 2), (64, 3), (64, 1), (72, 4), (128, 6), (256, 9), (64, 70)]),
            seeds in prop::collection::vec((0..4_u8, prop::collection::vec(0..256_usize, 0..10)), 2..60),
            more in 1..4_u32,
            most in 1..20_usize,
            depth in 1..4_usize,
        ) {
            // Rows near a few centers: some within the radius, some a little beyond it.
            let row = |(center, flips): &(u8, Vec<usize>)| {
                let mut row: Vec<u8> = (0..bits as usize / 8).map(|i| center.wrapping_mul(i as u8 + 37)).collect();
                flips.iter().map(|flip| flip % bits as usize).for_each(|bit| row[bit / 8] ^= 1 << (bit % 8));
                row
            };
            let rows: BTreeSet<Vec<u8>> = seeds.iter().map(row).collect();
            let blocks: Vec<u32> = (0..depth as u32).map(|level| radius + if level == 0 { more } else { 1 }).collect();
            let found = joined(&rows, bits, radius, &blocks, most);
            let once: Pairs = found.iter().cloned().collect();
            prop_assert_eq!(found.len(), once.len());
            prop_assert_eq!(once, oracle(&rows, radius));
        }
    }

    #[test]
    fn keys_grow_with_the_rows() {
        let plan = |rows: u64| {
            let blocks = KeyPlan::blocks_for(64, 3, rows);
            let plan = KeyPlan::new(64, 3, &[blocks]).unwrap();
            (plan.keys(), plan.mask(0)[0].count_ones())
        };
        assert_eq!(plan(1_000_000), (4, 16));
        assert_eq!(plan(100_000_000), (10, 26));
        assert_eq!(plan(8_000_000_000), (10, 26));
        assert_eq!(plan(100_000_000_000), (20, 32));
        assert_eq!(KeyPlan::blocks_for(256, 0, 1 << 40), 1);
        assert_eq!(KeyPlan::blocks_for(256, 60, 1 << 30), 61);
    }

    #[test]
    fn keys_from_elsewhere_find_pairs_as_often_as_they_meet() {
        let mut buckets = Buckets::new(9, 64, 3, None).unwrap();
        let mut met = Met::default();
        // The ninth byte tells rows apart that have one signature.
        let rows =
            [[0; 9], [0, 0, 0, 0, 0, 0, 0, 0, 1], [9; 9], [0; 9], [0, 0, 0, 0, 0, 0, 0, 0, 1]];
        buckets.push(&[-1, -1, -1, 5, 5], &[0; 5], rows.as_flattened(), &mut met).unwrap();
        buckets.finish(&mut met);
        assert_eq!((met.distances.len(), met.a.len()), (2, 18));
        assert!(buckets.push(&[1], &[0], &[0; 9], &mut met).is_err(), "out of order");
        assert!(Buckets::new(7, 64, 3, None).is_err());
        assert!(KeyPlan::new(64, 3, &[3]).is_err());
    }
}
