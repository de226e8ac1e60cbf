//! splitmix64 (Steele, Lea and Flood, 2014): a few instructions a number, and a stream of its own for every document.

pub(crate) struct Random(u64);

impl Random {
    /// The numbers of thing number `index` of a kind, e.g. of one document: they depend on nothing else.
    pub(crate) fn of(seed: u64, kind: u64, index: usize) -> Self {
        Random(mix(seed ^ mix(kind ^ mix(index as u64))))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`.
    #[inline]
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Fisher and Yates.
    pub(crate) fn shuffle(&mut self, rows: &mut [u64]) {
        for last in (1..rows.len()).rev() {
            rows.swap(last, self.below(last + 1));
        }
    }
}

#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
