//! How many elements two sets share: what a Jaccard coefficient is made of.

/// So many elements of each set are compared at once, all with all.
const BLOCK: usize = 8;

/// How many elements two ascending sets share, if it can be at least `needed`; otherwise it is not counted to the end.
#[inline(always)]
pub(super) fn shared(a: &[u32], b: &[u32], needed: usize) -> Option<usize> {
    if a.len().min(b.len()) < needed {
        return None;
    }
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a[i..].first_chunk::<BLOCK>(), b[j..].first_chunk::<BLOCK>()) {
        let mut met = [0_u32; BLOCK];
        for element in x {
            for lane in 0..BLOCK {
                met[lane] |= u32::from(*element == y[lane]);
            }
        }
        shared += met.iter().sum::<u32>() as usize;
        // The block that ends first has met all that it can meet.
        let (last_x, last_y) = (x[BLOCK - 1], y[BLOCK - 1]);
        i += if last_x <= last_y { BLOCK } else { 0 };
        j += if last_y <= last_x { BLOCK } else { 0 };
        if shared + (a.len() - i).min(b.len() - j) < needed {
            return None;
        }
    }
    shared += merged(&a[i..], &b[j..]);
    (shared >= needed).then_some(shared)
}

/// The same for all of them, an element at a time.
#[inline(always)]
pub(crate) fn merged(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        // No branches to guess wrong.
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::hamming::Kernel;

    proptest! {
        #[test]
        fn shared_elements_are_counted(
            a in prop::collection::btree_set(0..200_u32, 0..90),
            b in prop::collection::btree_set(0..200_u32, 0..90),
            needed in 0..100_usize,
        ) {
            let common = a.intersection(&b).count();
            let list = |set: &BTreeSet<u32>| set.iter().copied().collect::<Vec<u32>>();
            for kernel in Kernel::available() {
                let shared = kernel.shared(&list(&a), &list(&b), needed);
                prop_assert_eq!(shared, (common >= needed).then_some(common), "{:?}", kernel);
            }
        }
    }
}
