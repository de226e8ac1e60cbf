//! What a score says about the distance.
//!
//! A row gains `width - errors` in each slice whose list it was met in. In every other slice it has more errors than the
//! expansion reached. So a score leaves the distance between two bounds: the optimistic one tells which rows need no true
//! distance, and when the nearest rows are proven to be the nearest.

/// The distances that are possible for each score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    bits: u32,
    /// The least distance of a row with this score; none if it is not met, and all rows are.
    optimistic: Vec<u32>,
    /// The least distance of a row that was met and has this score or a lower one.
    floor: Vec<u32>,
}

/// No row is so far away.
const NEVER: u32 = u32::MAX;

impl Bounds {
    /// After all values within `reached - 1` errors were looked at in all slices, those within `admitted - 1` first: rows
    /// that were not met by these were let go. (One more than the errors, as 0 is "not even the own value".)
    pub(super) fn new(widths: &[u32], reached: u32, admitted: u32) -> Self {
        let bits: u32 = widths.iter().sum();
        let slices = widths.len() as i64;
        let mut optimistic: Vec<u32> = least_excess(widths, reached)
            .into_iter()
            .enumerate()
            .map(|(score, excess)| (excess + slices * i64::from(reached) - score as i64) as u32)
            .collect();
        // A slice whose every value was looked at has met all rows.
        let met_all = widths.iter().any(|&width| admitted > width);
        let unseen = if met_all { NEVER } else { slices as u32 * admitted };
        let mut least = NEVER;
        let mut floor = vec![NEVER];
        floor.extend(optimistic[1..].iter().map(|&distance| {
            least = least.min(distance);
            least
        }));
        optimistic[0] = unseen;
        Bounds { bits, optimistic, floor }
    }

    /// No row with this score is nearer. 0 is that of rows which were not met.
    pub(super) fn optimistic(&self, score: u16) -> u32 {
        self.optimistic[usize::from(score)]
    }

    /// No row that was met and has at most this score is nearer.
    pub(super) fn floor(&self, score: u16) -> u32 {
        self.floor[usize::from(score)]
    }

    /// No row with this score is farther away: where it was not met, it may differ in all bits.
    pub(super) fn pessimistic(&self, score: u16) -> u32 {
        self.bits - u32::from(score)
    }
}

/// For each score the least sum of `width - reached` over slices that can give so much: the fewer slices a score comes
/// from, the fewer errors are left to it. Widths are of two kinds at most, so all numbers of each are tried.
fn least_excess(widths: &[u32], reached: u32) -> Vec<i64> {
    let bits: u32 = widths.iter().sum();
    let wide = widths.iter().copied().max().unwrap_or(0);
    let wides = widths.iter().filter(|&&width| width == wide).count() as u32;
    let narrows = widths.len() as u32 - wides;
    let excess = |width: u32| i64::from(width) - i64::from(reached);
    let mut least = vec![i64::MAX; bits as usize + 1];
    for (a, b) in (0..=wides).flat_map(|a| (0..=narrows).map(move |b| (a, b))) {
        let narrow = wide.saturating_sub(1);
        let most = &mut least[(a * wide + b * narrow) as usize];
        *most = (*most).min(i64::from(a) * excess(wide) + i64::from(b) * excess(narrow));
    }
    for score in (0..bits as usize).rev() {
        least[score] = least[score].min(least[score + 1]);
    }
    least
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of the paper: four slices of 8 bits.
    #[test]
    fn bounds_of_the_paper() {
        let bounds = Bounds::new(&[8; 4], 1, 1);
        let range = |bounds: &Bounds, score| (bounds.optimistic(score), bounds.pessimistic(score));
        assert_eq!(range(&bounds, 4 * 8), (0, 0));
        assert_eq!(range(&bounds, 3 * 8), (1, 8));
        assert_eq!(range(&bounds, 0), (4, 32));
        assert_eq!(range(&Bounds::new(&[8; 4], 2, 2), 0), (8, 32));
        // Gains beyond the admission do not change what is known of rows that were not met.
        assert_eq!(range(&Bounds::new(&[8; 4], 3, 2), 0), (8, 32));
        assert_eq!(Bounds::new(&[8; 4], 9, 9).optimistic(0), NEVER);
    }

    #[test]
    fn with_everything_looked_at_the_score_is_the_distance() {
        for widths in [vec![8; 4], vec![9, 8, 9, 9]] {
            let bounds = Bounds::new(&widths, 10, 10);
            let bits: u32 = widths.iter().sum();
            for score in 1..=bits as u16 {
                assert_eq!(bounds.optimistic(score), bits - u32::from(score));
            }
        }
    }

    proptest! {
        #[test]
        fn no_distance_is_out_of_its_bounds(
            errors in prop::collection::vec(0_u32..=8, 1..12),
            narrow in prop::collection::vec(any::<bool>(), 12),
            reached in 0_u32..11,
            admitted in 0_u32..11,
        ) {
            let admitted = admitted.min(reached);
            let widths: Vec<u32> = errors.iter().zip(&narrow).map(|(_, &n)| 9 - u32::from(n)).collect();
            let errors: Vec<u32> = errors.iter().zip(&widths).map(|(&e, &w)| e.min(w)).collect();
            let bounds = Bounds::new(&widths, reached, admitted);
            let met = errors.iter().any(|&e| e < admitted);
            let points = errors.iter().zip(&widths).filter(|&(&e, _)| e < reached);
            let score = if met { points.map(|(e, w)| w - e).sum() } else { 0 } as u16;
            let distance: u32 = errors.iter().sum();
            // A row may be met and gain nothing: it has all bits of the slices wrong, and is as good as not met.
            prop_assume!(!met || score > 0);
            prop_assert!(bounds.optimistic(score) <= distance && distance <= bounds.pessimistic(score));
            prop_assert!(!met || bounds.floor(score) <= distance);
        }
    }
}
