//! How soon do flips find the bits that differ? Figure 2 of the thesis, and what a number of probes can reach.

use crate::flips::Flips;

/// The attempts that it takes to turn a query into its neighbor by flipping combinations of as many bits as differ,
/// likeliest first. `difference` has these bits; all 64 may flip.
pub fn attempts(flips: &mut Flips, margins: &[u8; 64], difference: u64) -> usize {
    let size = difference.count_ones();
    flips.start(margins, 64, size..=size);
    1 + flips.take_while(|&flipped| flipped != difference).count()
}

/// The number of the PSM probe that reaches a neighbor: the query's own value of the leading bits is probe 1, and
/// combinations of up to `radius` of these bits follow. The neighbor has to be within the radius.
pub fn probe(
    flips: &mut Flips,
    margins: &[u8; 64],
    difference: u64,
    leading: u32,
    radius: u32,
) -> usize {
    let leading_difference = difference & !u64::MAX.unbounded_shr(leading);
    flips.start(margins, leading, 1..=radius);
    let probes = std::iter::once(0).chain(flips);
    1 + probes.take_while(|&flipped| flipped != leading_difference).count()
}

/// How often each number of attempts was needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Of 1 attempt, of 2, ...
    counts: Vec<u64>,
}

impl Histogram {
    /// Counts one more; attempts count from 1.
    pub fn add(&mut self, attempts: usize) {
        if self.counts.len() < attempts {
            self.counts.resize(attempts, 0);
        }
        self.counts[attempts - 1] += 1;
    }

    /// Both together: threads count on their own.
    pub fn merge(mut self, other: Histogram) -> Histogram {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(other.counts).for_each(|(count, other)| *count += other);
        self
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share that needed at most so many attempts; 0 of nothing.
    pub fn share_within(&self, attempts: usize) -> f64 {
        let within: u64 = self.counts.iter().take(attempts).sum();
        within as f64 / self.total().max(1) as f64
    }

    /// The attempts within which that share is found; none of nothing.
    pub fn attempts_for(&self, share: f64) -> Option<usize> {
        let wanted = share * self.total() as f64;
        let mut sum = 0;
        let enough = |count: &u64| {
            sum += count;
            sum as f64 >= wanted
        };
        self.counts.iter().position(enough).map(|before| before + 1)
    }

    /// The curve of the figure: attempts, and the share that they find. Only where it rises.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let (total, mut sum) = (self.total() as f64, 0);
        let rising = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        rising
            .map(|(before, count)| {
                sum += count;
                ((before + 1) as f64, sum as f64 / total)
            })
            .collect()
    }
}

/// Figure 2: the attempts for neighbors at distance 1, 2 and 3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WeakBits {
    histograms: [Histogram; 3],
}

impl WeakBits {
    /// Counts a query and its neighbor; those at other distances do not belong in the figure.
    pub fn add(&mut self, flips: &mut Flips, query: u64, margins: &[u8; 64], neighbor: u64) {
        let difference = query ^ neighbor;
        if let distance @ 1..=3 = difference.count_ones() {
            let attempts = attempts(flips, margins, difference);
            self.histograms[distance as usize - 1].add(attempts);
        }
    }

    /// Both together.
    pub fn merge(self, other: WeakBits) -> WeakBits {
        let [a, b, c] = self.histograms;
        let [x, y, z] = other.histograms;
        WeakBits { histograms: [a.merge(x), b.merge(y), c.merge(z)] }
    }

    /// The attempts of neighbors at a distance of 1 to 3.
    ///
    /// # Panics
    /// At any other distance.
    pub fn at(&self, distance: u32) -> &Histogram {
        &self.histograms[distance as usize - 1]
    }
}

/// The share that so many attempts find in random order, the thesis' comparison: any of the C(64, distance)
/// combinations is the right one.
pub fn random_share(distance: u32, attempts: usize) -> f64 {
    let combinations = (0..distance).fold(1, |all, i| all * u64::from(64 - i) / u64::from(i + 1));
    (attempts as f64 / combinations as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit 0 is the weakest, then bit 1, and so on.
    fn rising() -> [u8; 64] {
        std::array::from_fn(|bit| bit as u8 + 1)
    }

    fn bits(places: &[u32]) -> u64 {
        places.iter().fold(0, |bits, place| bits | 1 << (63 - place))
    }

    #[test]
    fn attempts_count_combinations_of_as_many_bits() {
        let mut flips = Flips::new();
        let mut of = |places: &[u32]| attempts(&mut flips, &rising(), bits(places));
        assert_eq!([of(&[0]), of(&[3]), of(&[63])], [1, 4, 64]);
        assert_eq!([of(&[0, 1]), of(&[0, 2]), of(&[62, 63])], [1, 2, 2016]);
        assert_eq!([of(&[0, 1, 2]), of(&[0, 1, 3]), of(&[61, 62, 63])], [1, 2, 41_664]);
    }

    #[test]
    fn probes_count_the_own_value_and_no_bits_past_the_leading_ones() {
        let mut flips = Flips::new();
        let mut of = |places: &[u32]| probe(&mut flips, &rising(), bits(places), 8, 3);
        assert_eq!([of(&[]), of(&[20, 30, 40])], [1, 1]);
        assert_eq!([of(&[0]), of(&[0, 60]), of(&[1, 8])], [2, 2, 3]);
    }

    #[test]
    fn histograms_tell_shares() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.share_within(9), histogram.attempts_for(0.5)), (0.0, None));
        [1, 1, 3].into_iter().for_each(|attempts| histogram.add(attempts));
        let mut other = Histogram::default();
        other.add(10);
        for both in [histogram.clone().merge(other.clone()), other.merge(histogram)] {
            assert_eq!(both.total(), 4);
            assert_eq!(
                [1, 3, 9, 10, 99].map(|n| both.share_within(n)),
                [0.5, 0.75, 0.75, 1.0, 1.0]
            );
            assert_eq!([0.5, 0.6, 1.0].map(|share| both.attempts_for(share)), [1, 3, 10].map(Some));
            assert_eq!(both.curve(), [(1.0, 0.5), (3.0, 0.75), (10.0, 1.0)]);
        }
    }

    #[test]
    fn pairs_are_counted_by_distance() {
        let (mut flips, margins) = (Flips::new(), rising());
        let mut weak = WeakBits::default();
        for neighbor in [bits(&[]), bits(&[5]), bits(&[0, 1]), bits(&[0, 2]), bits(&[0, 1, 2, 3])] {
            weak.add(&mut flips, 0, &margins, neighbor);
        }
        let weak = weak.clone().merge(weak);
        assert_eq!([1, 2, 3].map(|distance| weak.at(distance).total()), [2, 4, 0]);
        assert_eq!(weak.at(1).attempts_for(1.0), Some(6));
        assert_eq!(weak.at(2).share_within(1), 0.5);
    }

    #[test]
    fn random_order_needs_them_all() {
        assert_eq!(
            [(1, 64), (2, 2016), (3, 41_664)].map(|(d, all)| random_share(d, all)),
            [1.0; 3]
        );
        assert_eq!((random_share(2, 1008), random_share(1, 100)), (0.5, 1.0));
    }
}
