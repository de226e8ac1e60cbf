//! All values within a number of errors.

use super::check_bits;

/// All flips of a key of `bits` bits with at most `errors` ones, fewest ones first, then by value.
///
/// There are [`count_within`] of them: look there first.
///
/// # Panics
///
/// If `bits` is not from 1 to 32.
pub fn within(bits: u32, errors: u32) -> Vec<u32> {
    check_bits(bits as usize);
    (0..=errors.min(bits)).flat_map(|ones| with_ones(bits, ones)).collect()
}

/// All flips of a key of `bits` bits with just `errors` ones, by value.
///
/// # Panics
///
/// If `bits` is not from 1 to 32.
pub fn exactly(bits: u32, errors: u32) -> Vec<u32> {
    check_bits(bits as usize);
    if errors > bits { Vec::new() } else { with_ones(bits, errors).collect() }
}

/// All masks of `bits` bits with exactly `ones` ones, ascending.
fn with_ones(bits: u32, ones: u32) -> impl Iterator<Item = u32> {
    // In 64 bits, since the mask after the last one is past the key.
    let first = (1_u64 << ones) - 1;
    let following = |&mask: &u64| (mask != 0).then(|| next_with_as_many_ones(mask));
    std::iter::successors(Some(first), following)
        .take_while(move |mask| mask >> bits == 0)
        .map(|mask| mask as u32)
}

/// The next larger number with as many ones: the lowest run of ones sends its top one up by a place, and the others fall
/// to the bottom.
fn next_with_as_many_ones(mask: u64) -> u64 {
    let raised = mask + (mask & mask.wrapping_neg());
    let fallen = (mask & !raised) >> (mask.trailing_zeros() + 1);
    raised | fallen
}

/// How many values are at most `errors` bits from one of `bits` bits; `u64::MAX` if there are more than that. What
/// [`within`] will cost, and for whole signatures, too.
pub fn count_within(bits: u32, errors: u32) -> u64 {
    let (mut count, mut with_ones) = (1_u64, 1_u128);
    for ones in 1..=errors.min(bits) {
        with_ones = with_ones * u128::from(bits - ones + 1) / u128::from(ones);
        let Ok(more) = u64::try_from(with_ones) else { return u64::MAX };
        count = count.saturating_add(more);
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lists that ISSL visits for slices of 16 bits.
    #[test]
    fn counts_of_the_papers() {
        let counts = [1, 17, 137, 697, 2517, 6885, 14893];
        for (errors, count) in counts.into_iter().enumerate() {
            assert_eq!(count_within(16, errors as u32), count);
            assert_eq!(within(16, errors as u32).len() as u64, count);
        }
    }

    #[test]
    fn counts_at_the_edges() {
        assert_eq!(count_within(64, 3) - count_within(64, 2), 41_664);
        assert_eq!(count_within(32, 32), 1 << 32);
        assert_eq!(count_within(32, 99), 1 << 32);
        assert_eq!(count_within(63, 63), 1 << 63);
        assert_eq!(count_within(64, 64), u64::MAX);
        assert_eq!(count_within(4096, 4096), u64::MAX);
        assert_eq!(count_within(4096, 1), 4097);
        assert_eq!(count_within(0, 3), 1);
    }

    #[test]
    fn small_orders() {
        assert_eq!(within(3, 0), [0]);
        assert_eq!(within(3, 2), [0, 0b001, 0b010, 0b100, 0b011, 0b101, 0b110]);
        assert_eq!(within(1, 5), [0, 1]);
        let widest = within(32, 1);
        assert_eq!((widest.len(), widest[32]), (33, 1 << 31));
    }

    proptest! {
        #[test]
        fn every_mask_once_and_in_order(bits in 1_u32..=14, errors in 0_u32..=15) {
            let mut expected: Vec<u32> =
                (0..1 << bits).filter(|mask: &u32| mask.count_ones() <= errors).collect();
            expected.sort_by_key(|mask| (mask.count_ones(), *mask));
            prop_assert_eq!(&within(bits, errors), &expected);
            expected.retain(|mask| mask.count_ones() == errors);
            prop_assert_eq!(exactly(bits, errors), expected);
        }
    }
}
