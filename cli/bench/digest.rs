//! What was found, in a few numbers: enough to tell whether two methods found the same.

use std::ops::Add;

use super::measure::{Chunk, RADIUS, Subject};

/// What was found for some queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest {
    /// Queries for which something was found.
    pub(super) matched: u64,
    /// Pairs of a query and a row.
    pub(super) pairs: u64,
    /// Pairs of a query and a signature, however many rows have it.
    pub(super) distinct: u64,
    /// Of these pairs: a sum of hashes, so that their order does not matter.
    pub(super) checksum: u64,
    /// Rows that are no neighbors. There must be none.
    pub(super) wrong: u64,
}

impl Digest {
    /// What a subject found for the queries of a chunk.
    pub(super) fn of(subject: &impl Subject, chunk: &Chunk<'_>) -> Self {
        let (mut digest, mut found) = (Digest::default(), Vec::new());
        for (query, &signature) in chunk.signatures.words().iter().enumerate() {
            found.clear();
            found.extend(subject.found(query));
            digest = digest + Digest::of_query((chunk.first + query) as u64, signature, &mut found);
        }
        digest
    }

    fn of_query(number: u64, query: u64, found: &mut Vec<u64>) -> Self {
        let pairs = found.len() as u64;
        let wrong = found.iter().filter(|&row| (row ^ query).count_ones() > RADIUS).count();
        found.sort_unstable();
        found.dedup();
        let hash = |&row: &u64| mix(mix(number).wrapping_add(row));
        Digest {
            matched: u64::from(pairs > 0),
            pairs,
            distinct: found.len() as u64,
            checksum: found.iter().map(hash).fold(0, u64::wrapping_add),
            wrong: wrong as u64,
        }
    }
}

impl Add for Digest {
    type Output = Digest;

    fn add(self, other: Digest) -> Digest {
        Digest {
            matched: self.matched + other.matched,
            pairs: self.pairs + other.pairs,
            distinct: self.distinct + other.distinct,
            checksum: self.checksum.wrapping_add(other.checksum),
            wrong: self.wrong + other.wrong,
        }
    }
}

/// The sums of two lists of digests over the chunks that both have.
pub(super) fn in_common(a: &[Digest], b: &[Digest]) -> (Digest, Digest) {
    a.iter().zip(b).fold(Default::default(), |(a, b): (Digest, Digest), (&x, &y)| (a + x, b + y))
}

/// A share; of nothing, everything.
pub(super) fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

/// The last step of splitmix64: every bit depends on every other.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_copies_do_not_matter_but_the_query_does() {
        let of = |number, rows: &[u64]| Digest::of_query(number, 7, &mut rows.to_vec());
        let (a, b) = (of(3, &[6, 7, 5]), of(3, &[5, 6, 6, 7]));
        assert_eq!((a.distinct, a.checksum), (b.distinct, b.checksum));
        assert_eq!((a.pairs, b.pairs), (3, 4));
        assert_ne!(a.checksum, of(4, &[5, 6, 7]).checksum);
        assert_eq!(of(3, &[]), Digest::default());
        assert_eq!(of(3, &[u64::MAX, 7]).wrong, 1);
    }

    #[test]
    fn only_chunks_that_both_have_are_compared() {
        let digest = |pairs| Digest { pairs, ..Digest::default() };
        let (a, b) = in_common(&[digest(1), digest(2), digest(4)], &[digest(1), digest(1)]);
        assert_eq!((a.pairs, b.pairs), (3, 2));
    }
}
