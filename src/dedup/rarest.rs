//! Which of many sets can be alike? Exactly, without comparing all with all.
//!
//! Two sets that are alike have one of their rarest elements in common: if they must share `m` of the `n` elements of one of
//! them, at most `n - m` of its elements are not shared, and so one of any `n - m + 1` is. If both take their rarest, by one and
//! the same order, both have the rarest that they share. So sets are listed under their rarest elements only, and compared
//! with those on the same lists: nothing is missed, and what all of them have in common, as a footer, is on no list.
//!
//! Of two sets that are alike, the rarest element that they share has only rarer ones before it that they do not share. So the
//! further behind it stands in one of them, the fewer can be shared, and the smaller the other must be: most of a list
//! is passed over by that.

use rayon::prelude::*;

use crate::verify::Verify;

/// So many sets are looked at to tell how common elements are.
const LOOKED_AT: usize = 1 << 13;
/// So many sets are work for one thread.
const CHUNK: usize = 1 << 10;

/// Sets, which come smallest first, on the lists of their rarest elements.
pub(crate) struct Rarest {
    /// Who is on each list, ascending.
    listed: Vec<Listed>,
    /// Where each list ends.
    ends: Vec<usize>,
    /// The lists of each set.
    lists: Vec<List>,
    /// Where those of each set end.
    ends_of_sets: Vec<usize>,
    sizes: Vec<u32>,
}

/// A set on a list.
#[derive(Clone, Copy)]
struct Listed {
    set: u32,
    /// The size of the largest set that it can be alike, if this element is the rarest that they share.
    largest: u32,
}

/// A list of a set.
#[derive(Clone, Copy, Default)]
struct List {
    list: u32,
    /// The size of the largest set that this one can be alike, if the element of the list is the rarest that they share.
    largest: u32,
}

/// An element of a set, and how many of the set are rarer. In the order of elements, then of sets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    element: u32,
    set: u32,
    place: u32,
}

impl Rarest {
    /// Lists sets that are alike by their Jaccard coefficient.
    pub(crate) fn new<'a>(
        len: usize,
        verify: Verify,
        set: impl Fn(usize) -> &'a [u32] + Sync,
    ) -> Self {
        let sizes: Vec<u32> = (0..len).map(|i| set(i).len() as u32).collect();
        let items = rare_elements(len, verify, set);
        let (mut listed, mut ends) = (Vec::new(), Vec::new());
        let (mut ends_of_sets, mut lists) = (vec![0; len], Vec::new());
        // Most elements belong to one set: they lead to nobody.
        let shared = || items.chunk_by(|a, b| a.element == b.element).filter(|list| list.len() > 1);
        for item in shared().flatten() {
            ends_of_sets[item.set as usize] += 1;
        }
        let mut end = 0;
        for ends in &mut ends_of_sets {
            end += std::mem::replace(ends, end);
        }
        // Until its lists are filled in, the end of each set is where it begins.
        lists.resize(end, List::default());
        for (list, items) in shared().enumerate() {
            for &Item { set, place, .. } in items {
                let largest = largest(sizes[set as usize], place, verify.least());
                listed.push(Listed { set, largest });
                let next = &mut ends_of_sets[set as usize];
                lists[*next] = List { list: list as u32, largest };
                *next += 1;
            }
            ends.push(listed.len());
        }
        Rarest { listed, ends, lists, ends_of_sets, sizes }
    }

    fn range(&self, list: usize) -> std::ops::Range<usize> {
        let start = if list == 0 { 0 } else { self.ends[list - 1] };
        start..self.ends[list]
    }

    /// The lists with more than so many sets, and the sets on each, ascending.
    pub(crate) fn longer_than(&self, most: usize) -> impl Iterator<Item = (u32, Vec<u32>)> + '_ {
        let long = (0..self.ends.len()).filter(move |&list| self.range(list).len() > most);
        let sets = |list| self.listed[self.range(list)].iter().map(|listed| listed.set).collect();
        long.map(move |list| (list as u32, sets(list)))
    }

    /// Adds the sets from `from` on that are smaller than one, or as large and before it, and can be alike it: each once. The
    /// lists that `without` tells of are not looked at; `seen` has a place for each set.
    pub(crate) fn add_smaller(
        &self,
        set: u32,
        from: u32,
        without: &[bool],
        seen: &mut [u32],
        found: &mut Vec<u32>,
    ) {
        if from >= set {
            return;
        }
        let start = if set == 0 { 0 } else { self.ends_of_sets[set as usize - 1] };
        let (smallest, size) = (self.sizes[from as usize], self.sizes[set as usize]);
        for &List { list, largest } in &self.lists[start..self.ends_of_sets[set as usize]] {
            if largest < smallest || without.get(list as usize).is_some_and(|&left_out| left_out) {
                continue;
            }
            let until = self.sizes[..set as usize].partition_point(|&other| other <= largest);
            let listed = &self.listed[self.range(list as usize)];
            let first = listed.partition_point(|other| other.set < from);
            for other in listed[first..].iter().take_while(|other| other.set < until as u32) {
                if size <= other.largest && seen[other.set as usize] != set {
                    seen[other.set as usize] = set;
                    found.push(other.set);
                }
            }
        }
    }
}

/// The rarest elements of each set: sorted.
fn rare_elements<'a>(
    len: usize,
    verify: Verify,
    set: impl Fn(usize) -> &'a [u32] + Sync,
) -> Vec<Item> {
    let order = Order::of(len, &set);
    let of_set = |i: usize, ordered: &mut Vec<u64>, items: &mut Vec<Item>| {
        order.put(set(i), ordered);
        items.extend(
            rarest(ordered, verify.least()).iter().zip(0..).map(|(&element, place)| Item {
                element: element as u32,
                set: i as u32,
                place,
            }),
        );
    };
    let of_chunk = |chunk: usize| {
        let (mut ordered, mut items) = (Vec::new(), Vec::new());
        for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(len) {
            of_set(i, &mut ordered, &mut items);
        }
        items
    };
    let chunks: Vec<Vec<Item>> = (0..len.div_ceil(CHUNK)).into_par_iter().map(of_chunk).collect();
    let mut items = chunks.concat();
    drop(chunks);
    items.par_sort_unstable();
    items
}

/// The size of the largest set that one of this size can be alike, if the rarest element that they share stands at such a
/// place: nothing before it is shared.
fn largest(size: u32, place: u32, least: f64) -> u32 {
    // Of all elements of both, so many must be shared at least. A little more for rounding: the check itself is exact.
    let most_shared = f64::from(size - place);
    (most_shared * (1.0 + least) / least - f64::from(size) + 1e-6) as u32
}

/// Of so many elements, how many of the rarest have one of those that are shared among them, if such a share is shared.
fn needed(size: usize, share: f64) -> usize {
    // A little more for rounding: the check itself is exact.
    let shared = (share * size as f64 - 1e-6).ceil() as usize;
    (size + 1).saturating_sub(shared.max(1))
}

/// As many of the rarest of a set as have one of those that are shared among them, rarest first.
pub(super) fn rarest(ordered: &mut [u64], share: f64) -> &[u64] {
    let many = needed(ordered.len(), share);
    if many < ordered.len() {
        ordered.select_nth_unstable(many);
    }
    let rarest = &mut ordered[..many];
    rarest.sort_unstable();
    rarest
}

/// From the rarest to the most common element, as far as a sample of the sets tells.
pub(super) struct Order {
    /// How often elements were seen, by the leading bits of each: elements are hashes, and hardly two of them share a place.
    counts: Vec<u32>,
    shift: u32,
}

impl Order {
    pub(super) fn of<'a>(len: usize, set: &impl Fn(usize) -> &'a [u32]) -> Self {
        let sample = || (0..len).step_by(len.div_ceil(LOOKED_AT).max(1));
        let elements: usize = sample().map(|i| set(i).len()).sum();
        let places = (2 * elements).next_power_of_two().clamp(1 << 10, 1 << 22);
        let mut order = Order { counts: vec![0; places], shift: 32 - places.ilog2() };
        for i in sample() {
            set(i).iter().for_each(|&element| order.counts[(element >> order.shift) as usize] += 1);
        }
        order
    }

    /// The elements of a set, each with how common it is before it.
    pub(super) fn put(&self, set: &[u32], ordered: &mut Vec<u64>) {
        let common = |element: u32| u64::from(self.counts[(element >> self.shift) as usize]);
        ordered.clear();
        ordered.extend(set.iter().map(|&element| common(element) << 32 | u64::from(element)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::verify::FeatureSet;

    /// Elements are hashes.
    fn hashed(set: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut set: Vec<u32> = set.map(|element| element.wrapping_mul(0x9e37_79b1)).collect();
        set.sort_unstable();
        set
    }

    /// All that are compared, and how often.
    fn compared(rarest: &Rarest, sets: usize) -> BTreeMap<(u32, u32), usize> {
        let (mut seen, mut compared) = (vec![u32::MAX; sets], BTreeMap::new());
        for set in 0..sets as u32 {
            let mut found = Vec::new();
            rarest.add_smaller(set, 0, &[], &mut seen, &mut found);
            found.iter().for_each(|&other| *compared.entry((other, set)).or_default() += 1);
        }
        compared
    }

    proptest! {
        #[test]
        fn sets_that_are_alike_are_compared_once(
            own in prop::collection::vec(prop::collection::btree_set(0..60_u32, 1..30), 2..30),
            footer in prop::collection::btree_set(60..200_u32, 0..100),
            least in 1..=20_u32,
            first in 0..30_u32,
        ) {
            let with_footer = |(i, own): (usize, &BTreeSet<u32>)| {
                // Not all have it.
                let set = if i % 5 == 4 { own.clone() } else { own | &footer };
                hashed(set.into_iter())
            };
            let mut sets: Vec<Vec<u32>> = own.iter().enumerate().map(with_footer).collect();
            sets.sort_by_key(Vec::len);
            let verify = Verify::Jaccard(f64::from(least) / 20.0);
            let rarest = Rarest::new(sets.len(), verify, |i| &sets[i]);
            let compared = compared(&rarest, sets.len());
            prop_assert!(compared.values().all(|&times| times == 1));
            // Without some lists, all are found but those that are together on one of them; and none before a first one.
            let long: Vec<(u32, Vec<u32>)> = rarest.longer_than(3).collect();
            let mut without = vec![false; rarest.ends.len()];
            long.iter().for_each(|(list, _)| without[*list as usize] = true);
            let (mut seen, from) = (vec![u32::MAX; sets.len()], first.min(sets.len() as u32));
            for set in 0..sets.len() as u32 {
                let mut found = Vec::new();
                rarest.add_smaller(set, from, &without, &mut seen, &mut found);
                prop_assert!(found.iter().all(|other| compared.contains_key(&(*other, set))));
                prop_assert!(found.iter().all(|&other| other >= from));
                for other in (from..set).filter(|&other| compared.contains_key(&(other, set))) {
                    let both = |list: &(u32, Vec<u32>)| [other, set].iter().all(|of| list.1.contains(of));
                    prop_assert!(found.contains(&other) || long.iter().any(both));
                }
            }
            for b in 0..sets.len() as u32 {
                for a in 0..b {
                    let of = |i: u32| FeatureSet { elements: &sets[i as usize], weights: &[] };
                    let alike = verify.similarity(of(a), of(b)) >= verify.least();
                    prop_assert!(!alike || compared.contains_key(&(a, b)), "{} and {}", a, b);
                }
            }
        }
    }

    /// Sets of 20 elements of their own and 80 common ones: the first that two share stands at place 20 in both, so that at most
    /// 80 of 120 are shared.
    #[test]
    fn whoever_shares_too_little_behind_a_place_is_passed_over() {
        assert_eq!(largest(100, 0, 0.8), 125);
        assert_eq!(largest(100, 20, 0.8), 80);
        assert_eq!(largest(100, 20, 0.6), 113);
        let own = |i: u32| 1000 + i * 20..1020 + i * 20;
        let sets: Vec<Vec<u32>> = (0..300).map(|i| hashed((0..80).chain(own(i)))).collect();
        for (least, all) in [(0.6, 300 * 299 / 2), (0.7, 0)] {
            let rarest = Rarest::new(sets.len(), Verify::Jaccard(least), |i| &sets[i]);
            assert!(rarest.longer_than(100).count() > 0, "common elements are on lists");
            assert_eq!(compared(&rarest, sets.len()).len(), all, "{least}");
        }
    }

    #[test]
    fn strangers_with_the_same_footer_are_not_compared() {
        let own = |i: u32| 1000 + i * 40..1040 + i * 40;
        let sets: Vec<Vec<u32>> = (0..1000).map(|i| hashed((0..80).chain(own(i)))).collect();
        let rarest = Rarest::new(sets.len(), Verify::Jaccard(0.8), |i| &sets[i]);
        assert_eq!(rarest.longer_than(100).count(), 0);
        assert!(compared(&rarest, sets.len()).len() < 1000);
    }
}
