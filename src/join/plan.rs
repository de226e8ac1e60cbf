//! Which bits to sort rows by, so that near rows meet.
//!
//! - *Left out*: of `radius` errors over some slices, one slice has at most its share. Cut it into blocks: if as many of
//!   them are left out as there are errors, some choice leaves out all that differ. Two slices of 3 blocks find all within 3
//!   bits by 6 keys of 21 of 64 bits. With one slice these are Manku's blocks, with one block to a slice plain pieces.
//! - *Slices*: the keys of near rows differ in at most some bits of some slice. With enough slices that finds all, with
//!   fewer of them most: as many as the wanted recall takes.
//! - *Scan*: every row with every other.
//!
//! What is cheapest is chosen, by a rough price for each row that is sorted, each key looked at, each pair compared.

use crate::{index::slice, probe::count_within, table::KeyLayout};

use super::spread::Spread;

/// One order of the rows: rows meet if their keys differ in at most `errors` bits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mask {
    pub(super) layout: KeyLayout,
    pub(super) errors: u32,
    /// The same bits as words.
    words: Vec<u64>,
}

/// What is done to find the pairs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// None of them: every row is compared with every other.
    pub(super) masks: Vec<Mask>,
    /// The share of the pairs at the very radius that is expected to be found, if bits differ at random; 1 if that is sure.
    pub(super) recall: f64,
    /// How many pairs are expected to be compared.
    pub(super) compared: f64,
    /// Roughly, in nanoseconds of one core.
    cost: f64,
}

/// What is to be joined.
pub(super) struct Task<'a> {
    pub(super) rows: usize,
    /// Pairs of rows, near or not.
    pub(super) pairs: f64,
    pub(super) bits: u32,
    pub(super) radius: u32,
    pub(super) recall: f64,
    pub(super) spread: &'a Spread,
    /// An exact join that takes no longer than so many nanoseconds is preferred.
    pub(super) quick: f64,
}

/// Up to so many of 64 bits, a join is exact unless that is asked against.
const SMALL_RADIUS: u32 = 6;
/// The widest key of a slice: each key has an offset.
const WIDEST: u32 = 24;
/// More blocks or masks than these are not considered.
const MOST_BLOCKS: u32 = 16;
const MOST_MASKS: u64 = 1000;

impl Mask {
    fn new(order: &[u32], width: u32, errors: u32, bits: u32) -> Self {
        let ranges = order.iter().take(width as usize).map(|&bit| bit..bit + 1);
        let layout = KeyLayout::new(ranges);
        let mut words = vec![0; bits.div_ceil(64) as usize];
        layout.positions().for_each(|bit| words[bit as usize / 64] |= 1 << (63 - bit % 64));
        Mask { layout, errors, words }
    }

    /// The bits as one word, if rows with the same bits meet and signatures are no wider.
    pub(super) fn word(&self) -> Option<u64> {
        match self.words[..] {
            [word] if self.errors == 0 => Some(word),
            _ => None,
        }
    }

    /// Whether two rows with these differences meet.
    #[inline(always)]
    pub(super) fn finds(&self, differences: &[u64]) -> bool {
        let words = differences.iter().zip(&self.words).map(|(a, b)| a & b);
        match self.errors {
            0 => words.fold(0, |all, word| all | word) == 0,
            errors => words.map(u64::count_ones).sum::<u32>() <= errors,
        }
    }
}

impl Plan {
    /// The best plan for a task.
    pub(super) fn new(task: &Task<'_>) -> Self {
        let exact = task.cheapest([task.scan(), task.left_out(), task.sure_slices()]);
        let small = task.radius * 64 <= SMALL_RADIUS * task.bits;
        if small || task.recall >= 1.0 || exact.cost <= task.quick {
            return exact;
        }
        task.cheapest([Some(exact), task.likely_slices()])
    }

    pub(super) fn is_scan(&self) -> bool {
        self.masks.is_empty()
    }
}

impl Task<'_> {
    fn cheapest(&self, plans: impl IntoIterator<Item = Option<Plan>>) -> Plan {
        let plans = plans.into_iter().flatten();
        plans.min_by(|a, b| a.cost.total_cmp(&b.cost)).unwrap_or_else(|| self.all_pairs())
    }

    fn words(&self) -> f64 {
        f64::from(self.bits.div_ceil(64))
    }

    fn usable(&self) -> u32 {
        self.spread.order.len() as u32
    }

    fn scan(&self) -> Option<Plan> {
        Some(self.all_pairs())
    }

    fn all_pairs(&self) -> Plan {
        // Most rows are told apart by their first words.
        let cost = self.pairs * (0.1 + 0.05 * self.words());
        Plan { masks: Vec::new(), recall: 1.0, compared: self.pairs, cost }
    }

    /// The widest key that is worth it: a key of its own for each row.
    fn widest(&self) -> u32 {
        (self.rows.max(1).ilog2() + 1).min(WIDEST + 2)
    }

    /// What a mask of so many bits costs, and how many pairs it makes meet.
    fn mask(&self, width: u32, errors: u32) -> (f64, f64) {
        let keys = 2_f64.powf(f64::from(width) * self.spread.worth);
        let near = count_within(width, errors) as f64;
        let met = self.pairs * (near / keys).min(1.0);
        let looked_at = match errors {
            0 => 0.0,
            _ => 2_f64.powi(width as i32) + (self.rows as f64).min(keys) * near,
        };
        let words = self.words();
        let row = if words > 1.0 { 30.0 } else { 15.0 };
        let pair = if words > 1.0 { 2.0 + 0.5 * words } else { 1.0 };
        (row * self.rows as f64 + 3.0 * looked_at + pair * met, met)
    }

    /// Keys of bits of which nothing differs.
    fn left_out(&self) -> Option<Plan> {
        let options = (1..=(self.radius + 1).min(32)).filter_map(|slices| {
            let shares = self.shares(slices)?;
            let cost: f64 = shares.iter().map(|share| share.cost).sum();
            Some((cost, shares))
        });
        let (cost, shares) = options.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let slices = shares.len() as u32;
        let slices =
            (0..).zip(&shares).map(|(i, share)| (slice(0..self.usable(), slices, i), share));
        let masks = slices.flat_map(|(range, share)| {
            let (start, end) = (range.start as usize, range.end as usize);
            self.choices(&self.spread.order[start..end], share)
        });
        let compared = shares.iter().map(|share| share.met).sum();
        Some(Plan { masks: masks.collect(), recall: 1.0, compared, cost })
    }

    /// The errors that each of so many slices covers, and the best number of blocks for it. If slice i covers `c[i]` errors,
    /// and the `c[i] + 1` sum to the radius + 1, rows that no slice covers are farther apart than the radius.
    fn shares(&self, slices: u32) -> Option<Vec<Share>> {
        let (each, more) = ((self.radius + 1) / slices, (self.radius + 1) % slices);
        let width = self.usable() / slices;
        let (many, few) = (self.share(each, width), self.share(each - 1, width)?);
        let share = |i| if i < more { many } else { Some(few) };
        (0..slices).map(share).collect()
    }

    fn share(&self, errors: u32, width: u32) -> Option<Share> {
        let blocks = if errors == 0 { 1..=1 } else { errors + 1..=errors + 8 };
        let blocks = blocks.filter(|&blocks| blocks <= width.min(MOST_BLOCKS));
        let shares = blocks.filter_map(|blocks| {
            let masks = choose(blocks, errors).filter(|&masks| masks <= MOST_MASKS)? as f64;
            let (cost, met) = self.mask((width / blocks * (blocks - errors)).min(self.widest()), 0);
            Some(Share { errors, blocks, cost: masks * cost, met: masks * met })
        });
        shares.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// A mask for each choice of the blocks that are left out of a slice.
    fn choices(&self, slice_bits: &[u32], share: &Share) -> Vec<Mask> {
        let Share { blocks, errors, .. } = *share;
        let choices = (0_u32..1 << blocks).filter(|choice| choice.count_ones() == errors);
        let kept = |choice: u32| (0..blocks).filter(move |block| choice >> block & 1 == 0);
        let bits = |choice: u32| {
            kept(choice)
                .flat_map(|block| slice(0..slice_bits.len() as u32, blocks, block))
                .map(|place| slice_bits[place as usize])
                .collect::<Vec<_>>()
        };
        choices.map(|choice| Mask::new(&bits(choice), self.widest(), 0, self.bits)).collect()
    }

    /// So many slices that one of them has few enough errors for sure.
    fn sure_slices(&self) -> Option<Plan> {
        let plans = (1..=3).filter_map(|errors: u32| {
            let slices = (self.radius + 1).div_ceil(errors + 1);
            let width = (self.usable() / slices).min(WIDEST);
            (width > errors).then(|| self.slices(slices, width, errors, 1.0))
        });
        plans.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// So many that one of them probably has: the errors are binomial. That they are `radius` in all and no more makes it
    /// a little likelier still.
    fn likely_slices(&self) -> Option<Plan> {
        let differs = f64::from(self.radius) / f64::from(self.bits);
        if differs >= 1.0 {
            return None;
        }
        let shapes = (6..=WIDEST).flat_map(|width| (0..=3).map(move |errors| (width, errors)));
        let plans = shapes.filter_map(|(width, errors)| {
            let missed = 1.0 - at_most(width, errors, differs);
            let wanted = ((1.0 - self.recall).ln() / missed.ln()).ceil().max(1.0);
            let there = self.usable() / width;
            (wanted <= f64::from(there)).then(|| {
                let recall = 1.0 - missed.powf(wanted);
                self.slices(wanted as u32, width, errors, recall)
            })
        });
        plans.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    fn slices(&self, slices: u32, width: u32, errors: u32, recall: f64) -> Plan {
        let (cost, met) = self.mask(width, errors);
        let order = |i: u32| &self.spread.order[(i * width) as usize..];
        let masks = (0..slices).map(|i| Mask::new(order(i), width, errors, self.bits)).collect();
        let count = f64::from(slices);
        Plan { masks, recall, compared: count * met, cost: count * cost }
    }
}

/// How a slice covers its errors.
#[derive(Clone, Copy)]
struct Share {
    errors: u32,
    blocks: u32,
    cost: f64,
    met: f64,
}

/// How many choices of some of the blocks there are; nothing if there are very many.
pub(super) fn choose(blocks: u32, some: u32) -> Option<u64> {
    (0..some).try_fold(1_u64, |choices, i| {
        Some(choices.checked_mul(u64::from(blocks - i))? / u64::from(i + 1))
    })
}

/// The probability that at most so many of `width` bits differ, if each does with probability `differs`.
fn at_most(width: u32, errors: u32, differs: f64) -> f64 {
    let mut exactly = (1.0 - differs).powi(width as i32);
    let mut sum = exactly;
    for i in 0..errors.min(width) {
        exactly *= f64::from(width - i) / f64::from(i + 1) * differs / (1.0 - differs);
        sum += exactly;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(bits: u32, radius: u32, rows: usize, recall: f64) -> Plan {
        let spread = Spread { order: (0..bits).collect(), worth: 1.0 };
        let pairs = rows as f64 * rows as f64 / 2.0;
        Plan::new(&Task { rows, pairs, bits, radius, recall, spread: &spread, quick: 0.0 })
    }

    #[test]
    fn three_of_64_bits_are_two_halves_of_three_blocks() {
        let plan = plan(64, 3, 10_000_000, 0.98);
        assert_eq!((plan.masks.len(), plan.recall), (6, 1.0));
        assert!(plan.masks.iter().all(|mask| (21..=22).contains(&mask.layout.width())));
    }

    #[test]
    fn small_radii_are_exact_and_few_rows_are_scanned() {
        for (bits, radius) in [(32, 1), (64, 6), (72, 3), (128, 12), (256, 24)] {
            assert_eq!(plan(bits, radius, 1_000_000, 0.5).recall, 1.0);
            assert!(plan(bits, radius, 100, 0.5).is_scan());
        }
        assert!(plan(256, 80, 1000, 1.0).is_scan());
    }

    #[test]
    fn a_wide_radius_gets_as_many_slices_as_the_recall_takes() {
        let (most, all) = (plan(256, 40, 2_000_000, 0.9), plan(256, 40, 2_000_000, 0.99));
        assert!((0.9..0.99).contains(&most.recall) && all.recall >= 0.99);
        assert!(most.cost < all.cost && !all.is_scan());
    }

    #[test]
    fn what_is_left_out_is_every_choice() {
        assert_eq!([choose(5, 2), choose(9, 6), choose(4, 0)], [Some(10), Some(84), Some(1)]);
        assert!((at_most(16, 1, 0.25) - 0.063_48).abs() < 1e-4);
    }
}
