//! From ids to rows: the rows of a part by the hashes of their ids.

use xxhash_rust::xxh3::xxh3_64;

use crate::{Result, mapped::Cells, table::no_memory};

/// By what an id is looked up.
pub(super) fn hash_of(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// The rows of a part in the order of the hashes of their ids. Two ids may have one hash: whoever finds a row asks the store
/// whether it is the right one.
#[derive(Debug)]
pub(super) struct Ids {
    pub(super) hashes: Cells<u64>,
    pub(super) rows: Cells<u32>,
}

impl Ids {
    /// Of hashes and rows in any order; stretches that are in order are merged rather than sorted.
    pub(super) fn build(mut ids: Vec<(u64, u32)>) -> Result<Self> {
        ids.sort();
        let hashes: Vec<u64> = ids.iter().map(|(hash, _)| *hash).collect();
        let rows: Vec<u32> = ids.iter().map(|(_, row)| *row).collect();
        let hashes = Cells::copy_of(&hashes).map_err(no_memory)?;
        Ok(Ids { hashes, rows: Cells::copy_of(&rows).map_err(no_memory)? })
    }

    /// Whether hashes are in order, and every row is one of so many.
    pub(super) fn are_right(&self, rows: usize) -> bool {
        let hashes = self.hashes.as_slice();
        hashes.windows(2).all(|pair| pair[0] <= pair[1])
            && self.rows.as_slice().iter().all(|&row| (row as usize) < rows)
    }

    /// Hashes and rows, in the order of the hashes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.hashes.as_slice().iter().copied().zip(self.rows.as_slice().iter().copied())
    }

    /// The rows whose ids have this hash.
    pub(super) fn rows_of(&self, hash: u64) -> &[u32] {
        let hashes = self.hashes.as_slice();
        let start = first_from(hashes, hash);
        let same = hashes[start..].iter().take_while(|&&other| other == hash).count();
        &self.rows.as_slice()[start..start + same]
    }

    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(self.hashes.as_slice()) + size_of_val(self.rows.as_slice())) as u64
    }
}

/// The first of sorted hashes that is not less than one. Hashes are spread evenly, so it is near where it would be if they
/// were exactly so: from there, in steps that double.
fn first_from(hashes: &[u64], hash: u64) -> usize {
    let guess = ((u128::from(hash) * hashes.len() as u128) >> 64) as usize;
    let (mut low, mut high, mut step) = (guess, guess, 16);
    while low > 0 && hashes[low - 1] >= hash {
        (high, low) = (low, low.saturating_sub(step));
        step *= 2;
    }
    while high < hashes.len() && hashes[high] < hash {
        (low, high) = (high + 1, (high + step).min(hashes.len()));
        step *= 2;
    }
    low + hashes[low..high].partition_point(|&other| other < hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_found_where_it_is() {
        for len in [0_u64, 1, 2, 100, 5000] {
            // Even, and as uneven as can be.
            for spread in [u64::MAX / (len + 1), 3, 0] {
                let hashes: Vec<u64> = (0..len).map(|i| i * spread).collect();
                for hash in hashes.iter().flat_map(|&hash| [hash.saturating_sub(1), hash, hash + 1])
                {
                    let right = hashes.partition_point(|&other| other < hash);
                    assert_eq!(first_from(&hashes, hash), right, "{len} {spread} {hash}");
                }
                assert_eq!(first_from(&hashes, u64::MAX), hashes.len());
            }
        }
    }

    #[test]
    fn rows_are_found_by_their_ids() {
        let ids = [(7, 0), (3, 1), (7, 2), (9, 3)];
        let ids = Ids::build(ids.to_vec()).unwrap();
        assert_eq!(ids.rows_of(7), [0, 2]);
        assert_eq!(ids.rows_of(3), [1]);
        assert!(ids.rows_of(8).is_empty() && ids.are_right(4) && !ids.are_right(3));
    }
}
