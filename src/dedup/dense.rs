//! Dense groups: entries of which so many are alike that their pairs are not listed.
//!
//! The near-copies of a template are in one large bucket after the other, in each of them nearly all. Their sets are held
//! once, for all groups that have most members in common: a *family*.

use std::sync::Arc;

use super::{alike::Alike, reduced::Reduced};
use crate::index::sample::spread;

/// So many members of a group are looked for in a family.
const LOOKED_FOR: usize = 256;

/// A dense group: its ranks, and their sets as far as they can be told apart quickly.
pub(crate) struct Group {
    /// Ascending.
    pub(crate) ranks: Vec<u32>,
    /// The sets of the family, if it is Jaccard coefficients that count.
    pub(crate) sets: Option<Arc<Reduced>>,
    /// Where those of the group are among them.
    pub(crate) places: Vec<u32>,
}

/// Groups of ranks, each ascending, with their sets.
pub(crate) fn groups(alike: &Alike<'_>, mut groups: Vec<Vec<u32>>) -> Vec<Group> {
    // The largest first: the others are mostly parts of them. Threads found them in any order.
    groups.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let mut families: Vec<(Vec<u32>, Vec<Vec<u32>>)> = Vec::new();
    for group in groups {
        let family = families.iter_mut().find(|(all, _)| has_most_of(all, &group));
        match family {
            Some((all, members)) => {
                all.extend_from_slice(&group);
                all.sort_unstable();
                all.dedup();
                members.push(group);
            }
            None => families.push((group.clone(), vec![group])),
        }
    }
    let mut found = Vec::new();
    for (all, members) in families {
        let entries: Vec<u32> = all.iter().map(|&rank| alike.at(rank)).collect();
        let sets = alike.reduced(&entries).map(Arc::new);
        found.extend(members.into_iter().map(|ranks| {
            let places = places(&ranks, &all);
            Group { ranks, sets: sets.clone(), places }
        }));
    }
    found
}

/// Whether at least half of a group is in a family, as far as some of its members tell.
fn has_most_of(all: &[u32], group: &[u32]) -> bool {
    let some = spread(group.len(), LOOKED_FOR);
    let there = some.iter().filter(|&&i| all.binary_search(&group[i]).is_ok()).count();
    2 * there >= some.len()
}

/// Where some of many ranks are; both ascending.
fn places(some: &[u32], all: &[u32]) -> Vec<u32> {
    let mut place = 0;
    let place_of = |&rank: &u32| {
        place += all[place..].iter().take_while(|&&other| other < rank).count();
        place as u32
    };
    some.iter().map(place_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_know_their_places() {
        assert_eq!(places(&[3, 4, 90], &[1, 3, 4, 5, 90]), [1, 2, 4]);
        assert!(places(&[], &[1]).is_empty());
        let all: Vec<u32> = (0..10_000).collect();
        let shifted = |by: u32| (by..by + 5000).collect::<Vec<u32>>();
        assert!(has_most_of(&all, &shifted(7000)));
        assert!(!has_most_of(&all, &shifted(8000)));
    }
}
