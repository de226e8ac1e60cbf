//! Sets that have much in common, as those of documents with the same footer have.
//!
//! Which of the common elements a set has is told by bits, the others are listed. What two sets share is then the bits
//! that both have and what their short lists share: exact, and several times faster than comparing the whole sets. A
//! second row of bits stands for the lists, by hashes: from both follows how much two sets can share at most, with the
//! speed of a distance. Most pairs of strangers are told apart by that alone.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::{hamming::Kernel, verify::Verify};

/// So many sets are looked at to tell what is common.
const LOOKED_AT: usize = 256;
/// Elements that at least one in so many sets has are common.
const COMMON: usize = 4;
/// At most so many elements are told by bits.
const BITS: usize = 256;
const WORDS: usize = BITS / 64;
/// So many bits stand for the others. Two elements with the same bit hide that they are two: of documents of some dozens of
/// words, few have.
const OTHERS: usize = 768;
/// Words of a row.
const ROW: usize = (BITS + OTHERS) / 64;
/// So many rows are told apart at once.
const BLOCK: usize = 64;
/// So many sets are work for one thread.
const CHUNK: usize = 1 << 12;

/// Many sets, each as the common elements that it has and a list of the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reduced {
    /// For each set a row of bits: which common elements it has, then which hashes the others have.
    rows: Vec<u64>,
    /// By how many bits its row has more than a row must share to be alike, as far as that is up to it. Two sets are not alike
    /// if their rows differ in more bits than both have to spare.
    spare: Vec<f32>,
    /// What may be added to that: its other elements whose hash another one of them has, too, twice.
    doubled: Vec<f32>,
    sizes: Vec<u32>,
    /// Where the list of each ends in `others`.
    ends: Vec<usize>,
    others: Vec<u32>,
}

impl Reduced {
    pub(crate) fn new<'a>(
        len: usize,
        verify: Verify,
        set: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Self {
        let common = common(len, &set);
        let of_chunk = |chunk: usize| {
            let mut reduced = Reduced::default();
            for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(len) {
                reduced.push(set(i), &common, verify);
            }
            reduced
        };
        let chunks: Vec<Reduced> = (0..len.div_ceil(CHUNK)).into_par_iter().map(of_chunk).collect();
        let mut reduced = Reduced::default();
        chunks.into_iter().for_each(|chunk| reduced.append(chunk));
        reduced
    }

    fn push(&mut self, set: &[u32], common: &[u32], verify: Verify) {
        let (mut row, mut at) = ([0_u64; ROW], 0);
        let start = self.others.len();
        for &element in set {
            at += common[at..].iter().take_while(|&&other| other < element).count();
            match common.get(at) {
                Some(&other) if other == element => row[at / 64] |= 1 << (at % 64),
                _ => {
                    // Elements are hashes.
                    let bit = BITS + element as usize % OTHERS;
                    row[bit / 64] |= 1 << (bit % 64);
                    self.others.push(element);
                }
            }
        }
        let ones = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum::<u32>();
        let others = (self.others.len() - start) as u32;
        self.doubled.push(2.0 * (others - ones(&row[WORDS..])) as f32 + 0.01);
        // Of all elements of both sets, twice this share must be shared, counted in both.
        let share = verify.least() / (1.0 + verify.least());
        let needed = 2.0 * share * set.len() as f64;
        self.spare.push((f64::from(ones(&row)) - needed) as f32);
        self.rows.extend_from_slice(&row);
        self.sizes.push(set.len() as u32);
        self.ends.push(self.others.len());
    }

    /// Takes the sets of another, with the same common elements, behind its own.
    fn append(&mut self, mut more: Reduced) {
        let before = self.others.len();
        self.ends.extend(more.ends.iter().map(|end| before + end));
        self.rows.append(&mut more.rows);
        self.spare.append(&mut more.spare);
        self.doubled.append(&mut more.doubled);
        self.sizes.append(&mut more.sizes);
        self.others.append(&mut more.others);
    }

    /// The similarity of two sets that are alike by such a check.
    pub(crate) fn alike(&self, kernel: Kernel, verify: Verify, i: usize, j: usize) -> Option<f64> {
        let sizes = (self.sizes[i] as usize, self.sizes[j] as usize);
        let needed = verify.needed(sizes.0, sizes.1);
        let bits = self.row(i)[..WORDS].iter().zip(&self.row(j)[..WORDS]);
        let common: u32 = bits.map(|(a, b)| (a & b).count_ones()).sum();
        let others = kernel.shared(
            self.others(i),
            self.others(j),
            needed.saturating_sub(common as usize),
        )?;
        verify.of_shared(common as usize + others, sizes.0, sizes.1)
    }

    /// The bits of a set.
    pub(crate) fn row(&self, i: usize) -> &[u64] {
        &self.rows[i * ROW..][..ROW]
    }

    /// Adds to `found` which of these rows can be alike a set; `at` tells the set of a row.
    pub(crate) fn add_possible(
        &self,
        kernel: Kernel,
        i: usize,
        (rows, at): (&[u64], impl Fn(usize) -> usize),
        found: &mut Vec<usize>,
    ) {
        let mut distances = vec![0; rows.len() / ROW];
        kernel.distances(self.row(i), rows, &mut distances);
        // Two sets share at most the bits that both have, and as many more as have lost theirs to others. Twice the bits
        // that both have are all bits of both less the distance.
        let own = self.spare[i] + self.doubled[i];
        let possible = |distance: u32, spare: f32| own + spare >= distance as f32;
        let mut spares = [0.0; BLOCK];
        for (block, distances) in distances.chunks(BLOCK).enumerate() {
            let start = block * BLOCK;
            let spares = &mut spares[..distances.len()];
            spares.iter_mut().zip(start..).for_each(|(spare, row)| *spare = self.spare[at(row)]);
            let pairs = || distances.iter().zip(&*spares);
            // Without a way out in between, this is done several at a time, and mostly all there is to do.
            if pairs().fold(false, |any, (&distance, &spare)| any | possible(distance, spare)) {
                let rows = pairs().zip(start..).filter(|((d, s), _)| possible(**d, **s));
                found.extend(rows.map(|(_, row)| row));
            }
        }
    }

    fn others(&self, i: usize) -> &[u32] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.others[start..self.ends[i]]
    }
}

/// The elements that many of the sets have, ascending.
fn common<'a>(len: usize, set: &impl Fn(usize) -> &'a [u32]) -> Vec<u32> {
    let step = len.div_ceil(LOOKED_AT).max(1);
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for i in (0..len).step_by(step) {
        set(i).iter().for_each(|&element| *counts.entry(element).or_default() += 1);
    }
    let least = len.div_ceil(step).div_ceil(COMMON).max(2);
    let mut common: Vec<(usize, u32)> = counts
        .into_iter()
        .filter(|&(_, count)| count >= least)
        .map(|(element, count)| (usize::MAX - count, element))
        .collect();
    common.sort_unstable();
    common.truncate(BITS);
    let mut common: Vec<u32> = common.into_iter().map(|(_, element)| element).collect();
    common.sort_unstable();
    common
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{hamming::kernel, verify::FeatureSet};

    proptest! {
        #[test]
        fn reduced_sets_are_as_alike_as_whole_ones(
            own in prop::collection::vec(prop::collection::btree_set(0..2000_u32, 1..30), 2..20),
            footer in prop::collection::btree_set(0..2000_u32, 0..400),
            least in 1..10_u32,
        ) {
            let with_footer = |(i, own): (usize, &BTreeSet<u32>)| -> Vec<u32> {
                // Not all have it.
                if i % 3 == 2 { own.iter().copied().collect() } else { own.union(&footer).copied().collect() }
            };
            let sets: Vec<Vec<u32>> = own.iter().enumerate().map(with_footer).collect();
            let (verify, kernel) = (Verify::Jaccard(f64::from(least) / 10.0), kernel().unwrap());
            let reduced = Reduced::new(sets.len(), verify, |i| &sets[i]);
            for i in 0..sets.len() {
                for j in 0..sets.len() {
                    let [a, b] = [i, j].map(|i| FeatureSet { elements: &sets[i], weights: &[] });
                    let alike = reduced.alike(kernel, verify, i, j);
                    prop_assert_eq!(alike, verify.alike(kernel, a, b));
                    let mut possible = Vec::new();
                    reduced.add_possible(kernel, i, (&reduced.rows, |row| row), &mut possible);
                    prop_assert!(alike.is_none() || possible.contains(&j));
                }
            }
        }
    }
}
