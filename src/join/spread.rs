//! How much each bit tells rows apart. Keys are made of bits that do.

use super::block::View;

/// Bits in the order in which keys take them.
pub(super) struct Spread {
    pub(super) order: Vec<u32>,
    /// How many random bits one of them is worth, on average.
    pub(super) worth: f64,
}

/// Rows that are looked at.
const SAMPLE: usize = 4096;
/// A bit that tells less than this is left out of keys.
const LEAST: f64 = 0.01;
/// If every bit tells as much as this, they stay in their order: keys of neighboring bits are quicker to take.
const EVEN: f64 = 0.7;

impl Spread {
    /// Looks at a sample of rows. Of two sides, a bit counts as much as on the side where it tells less: one that is the
    /// same all over a side tells nothing within it.
    pub(super) fn of(sides: &[View<'_>], bits: u32) -> Self {
        let mut told = vec![1.0_f64; bits as usize];
        for side in sides.iter().filter(|side| side.len() > 0) {
            let ones = ones(side, bits);
            let looked_at = side.len().div_ceil(side.len().div_ceil(SAMPLE)) as f64;
            told.iter_mut().zip(ones).for_each(|(told, ones)| {
                let share = f64::from(ones) / looked_at;
                // The probability that two rows agree.
                let agree = share * share + (1.0 - share) * (1.0 - share);
                *told = told.min(-agree.log2());
            });
        }
        let mut order: Vec<u32> = (0..bits).filter(|&bit| told[bit as usize] >= LEAST).collect();
        let worth = order.iter().map(|&bit| told[bit as usize]).sum::<f64>();
        let worth = worth / order.len().max(1) as f64;
        if order.len() < bits as usize || told.iter().any(|&told| told < EVEN) {
            order.sort_by(|&a, &b| told[b as usize].total_cmp(&told[a as usize]).then(a.cmp(&b)));
            order = dealt(&order);
        }
        Spread { order, worth }
    }
}

fn ones(side: &View<'_>, bits: u32) -> Vec<u32> {
    let mut ones = vec![0; bits as usize];
    for row in (0..side.len()).step_by(side.len().div_ceil(SAMPLE)) {
        let row = side.row(row);
        for (bit, ones) in ones.iter_mut().enumerate() {
            *ones += (row[bit / 64] >> (63 - bit % 64) & 1) as u32;
        }
    }
    ones
}

/// Deals bits out, so that every stretch of them has strong and weak ones: steps of the golden ratio.
fn dealt(bits: &[u32]) -> Vec<u32> {
    let place = |i: usize| (i as f64 * 0.618_033_988_75).fract();
    let mut places: Vec<usize> = (0..bits.len()).collect();
    places.sort_by(|&a, &b| place(a).total_cmp(&place(b)));
    places.into_iter().map(|i| bits[i]).collect()
}
