//! Clusters: from pairs that are alike to groups, each with one document that is kept.
//!
//! Documents are numbered by rank: those that are rather kept come first. Pairs come in the order of their later member;
//! whether a candidate pair is really alike is asked only where the answer matters.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Which documents belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Linkage {
    /// All that are connected by alike pairs, through others if need be.
    Components,
    /// Those that are alike the one that is kept.
    Star,
    /// Those that are all alike each other.
    Complete,
}

impl FromStr for Linkage {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "components" => Ok(Linkage::Components),
            "star" => Ok(Linkage::Star),
            "complete" => Ok(Linkage::Complete),
            _ => {
                let problem = format!("is `{text}`, not components, star or complete");
                Err(Error::Setting { name: "linkage", problem })
            }
        }
    }
}

impl fmt::Display for Linkage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Linkage::Components => "components",
            Linkage::Star => "star",
            Linkage::Complete => "complete",
        })
    }
}

/// A candidate pair: the later and the earlier rank.
pub type Candidate = (u32, u32);

/// Groups of which nearly all members are candidates of each other: too many pairs to be listed.
#[derive(Debug, Clone, Default)]
pub struct Dense {
    /// The ranks of each group, ascending.
    groups: Vec<Vec<u32>>,
    /// Which groups each rank is in, and at which place: sorted.
    of: Vec<(u32, u32, u32)>,
}

impl Dense {
    /// Groups of ranks, each ascending.
    pub fn new(groups: Vec<Vec<u32>>) -> Self {
        let mut of = Vec::new();
        for (group, ranks) in groups.iter().enumerate() {
            let places = ranks.iter().zip(0..);
            of.extend(places.map(|(&rank, place)| (rank, group as u32, place)));
        }
        of.sort_unstable();
        Dense { groups, of }
    }

    /// The groups that a rank is in, and its place in each.
    fn groups_of(&self, rank: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let start = self.of.partition_point(|&(other, ..)| other < rank);
        let of = self.of[start..].iter().take_while(move |&&(other, ..)| other == rank);
        of.map(|&(_, group, place)| (group as usize, place))
    }
}

/// What is known of the documents.
pub trait Likeness {
    /// The similarity of two documents that are alike.
    fn alike(&self, a: u32, b: u32) -> Option<f64>;
    /// The similarity of two documents of a dense group that are alike, by their places in it.
    fn alike_in_group(&self, group: usize, a: u32, b: u32) -> Option<f64>;
    /// Some bits of a document of a dense group by which to tell quickly who may be alike it.
    fn row_in_group(&self, group: usize, place: u32) -> &[u64];
    /// Adds to `found` which of such rows of others, who are at these places, may be alike a document.
    fn possible_in_group(
        &self,
        group: usize,
        place: u32,
        others: (&[u64], &[u32]),
        found: &mut Vec<usize>,
    );
}

/// Those of a dense group that are kept so far, with their signatures.
#[derive(Debug, Clone, Default)]
struct Kept {
    ranks: Vec<u32>,
    /// Their places in the group.
    places: Vec<u32>,
    words: Vec<u64>,
}

/// What is known of the next ranks of dense groups before their turn, from those that were kept before all of them: all
/// threads find that out, and it is most of the work.
#[derive(Debug, Clone, Default)]
struct Ahead {
    from: u32,
    /// The first keeper that each is alike, and how much.
    keepers: Vec<Option<(u32, f64)>>,
    /// How many of each group were kept before.
    seen: Vec<usize>,
}

/// How many ranks are looked at ahead.
const AHEAD: u32 = 1 << 12;

impl Ahead {
    fn keeper_of(&self, rank: u32) -> Option<(u32, f64)> {
        *self.keepers.get(rank.checked_sub(self.from)? as usize)?
    }
}

impl Kept {
    /// The first that a document of the group is alike, of those from the `from`th on with a rank below `before`.
    fn first_alike(
        &self,
        likeness: &impl Likeness,
        (group, place): (usize, u32),
        (from, before): (usize, u32),
        asked: &AtomicU64,
    ) -> Option<(u32, f64)> {
        let until = self.ranks.partition_point(|&other| other < before);
        if from >= until {
            return None;
        }
        let stride = self.words.len() / self.ranks.len();
        let mut near = Vec::new();
        let others = (&self.words[from * stride..until * stride], &self.places[from..until]);
        likeness.possible_in_group(group, place, others, &mut near);
        near.into_iter().find_map(|i| {
            asked.fetch_add(1, Ordering::Relaxed);
            let similarity = likeness.alike_in_group(group, place, self.places[from + i])?;
            Some((self.ranks[from + i], similarity))
        })
    }
}

/// Makes clusters of pairs, rank by rank.
pub struct Clustering<L> {
    linkage: Linkage,
    likeness: L,
    dense: Dense,
    /// Of each dense group those that are kept so far.
    kept: Vec<Kept>,
    ahead: Ahead,
    /// The keeper of each rank so far; itself if it is kept. For components, a way to it.
    keeper: Vec<u32>,
    /// The similarity of each rank to what it was joined to.
    similarity: Vec<f32>,
    /// The other members of each cluster, if they must all be alike.
    members: Vec<Vec<u32>>,
    /// For components, the pairs that joined two of them.
    joined: Vec<(u32, u32)>,
    /// The next rank to be decided.
    next: u32,
    asked: AtomicU64,
    candidates: Vec<u32>,
}

/// Who is kept, and who goes with whom. Everything by rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// The keeper of each document; itself if it is kept.
    pub keeper: Vec<u32>,
    /// How alike each is to its keeper; 1 for keepers.
    pub similarity: Vec<f32>,
    /// The longest way from a keeper to a member over alike pairs, for keepers of components.
    pub chains: Vec<(u32, u32)>,
    /// How many pairs were looked at closely.
    pub asked: u64,
}

impl<L: Likeness + Sync> Clustering<L> {
    /// Begins with so many documents, each on its own.
    pub fn new(documents: usize, linkage: Linkage, dense: Dense, likeness: L) -> Self {
        let complete = if linkage == Linkage::Complete { documents } else { 0 };
        Clustering {
            linkage,
            likeness,
            kept: vec![Kept::default(); dense.groups.len()],
            ahead: Ahead { seen: vec![0; dense.groups.len()], ..Ahead::default() },
            dense,
            keeper: (0..documents as u32).collect(),
            similarity: vec![1.0; documents],
            members: vec![Vec::new(); complete],
            joined: Vec::new(),
            next: 0,
            asked: AtomicU64::new(0),
            candidates: Vec::new(),
        }
    }

    /// Takes candidates: sorted by the later rank, then by the earlier one, and behind those that came before.
    pub fn take(&mut self, candidates: impl Iterator<Item = Candidate>) {
        let mut candidates = candidates.peekable();
        while let Some(&(later, _)) = candidates.peek() {
            self.decide_until(later);
            let mut earlier = std::mem::take(&mut self.candidates);
            earlier.clear();
            while let Some((_, rank)) = candidates.next_if(|pair| pair.0 == later) {
                earlier.push(rank);
            }
            self.decide(later, &mut earlier);
            self.candidates = earlier;
        }
    }

    /// The clusters, when all candidates came.
    pub fn finish(mut self) -> Clusters {
        self.decide_until(self.keeper.len() as u32);
        let mut chains = Vec::new();
        if self.linkage == Linkage::Components {
            self.join_dense_groups();
            (0..self.keeper.len() as u32)
                .for_each(|rank| self.keeper[rank as usize] = self.root(rank));
            chains = chains_of(&self.joined, &self.keeper);
        }
        let Clustering { keeper, similarity, asked, .. } = self;
        Clusters { keeper, similarity, chains, asked: asked.into_inner() }
    }

    /// Decides those that have no candidates of their own.
    fn decide_until(&mut self, rank: u32) {
        while self.next < rank {
            self.decide(self.next, &mut Vec::new());
        }
    }

    fn decide(&mut self, rank: u32, earlier: &mut Vec<u32>) {
        debug_assert_eq!(rank, self.next, "ranks come in order");
        self.next = rank + 1;
        if self.linkage == Linkage::Components {
            for &other in earlier.iter() {
                self.join(rank, other);
            }
            return;
        }
        let looks_ahead = !self.dense.of.is_empty() && self.linkage == Linkage::Star;
        if looks_ahead && rank >= self.ahead.from + self.ahead.keepers.len() as u32 {
            self.look_ahead(rank);
        }
        let groups: Vec<(usize, u32)> = self.dense.groups_of(rank).collect();
        if self.linkage == Linkage::Complete {
            groups.iter().for_each(|&(group, _)| earlier.extend(&self.kept[group].ranks));
            earlier.sort_unstable();
            earlier.dedup();
        }
        let known = match looks_ahead {
            true => self.ahead.keeper_of(rank).or_else(|| {
                let new = |group: usize| self.ahead.seen[group];
                self.first_keeper(&groups, new)
            }),
            false => None,
        };
        let before = known.map_or(u32::MAX, |(keeper, _)| keeper);
        for &other in earlier.iter().take_while(|&&other| other < before) {
            if self.keeper[other as usize] == other
                && let Some(similarity) = self.belongs(rank, other)
            {
                return self.put(rank, other, similarity);
            }
        }
        if let Some((keeper, similarity)) = known {
            return self.put(rank, keeper, similarity);
        }
        for (group, place) in groups {
            self.kept[group].ranks.push(rank);
            self.kept[group].places.push(place);
            self.kept[group].words.extend_from_slice(self.likeness.row_in_group(group, place));
        }
    }

    fn put(&mut self, rank: u32, keeper: u32, similarity: f64) {
        self.keeper[rank as usize] = keeper;
        self.similarity[rank as usize] = similarity as f32;
        if self.linkage == Linkage::Complete {
            self.members[keeper as usize].push(rank);
        }
    }

    /// Looks at the next ranks, all at once.
    fn look_ahead(&mut self, from: u32) {
        let until = (from + AHEAD).min(self.keeper.len() as u32);
        let this = &*self;
        let first = |rank: u32| {
            let groups: Vec<(usize, u32)> = this.dense.groups_of(rank).collect();
            this.first_keeper(&groups, |_| 0)
        };
        let keepers = (from..until).into_par_iter().map(first).collect();
        let seen = self.kept.iter().map(|kept| kept.ranks.len()).collect();
        self.ahead = Ahead { from, keepers, seen };
    }

    /// The first keeper of the dense groups of a document that it is alike; of each group from a place on.
    fn first_keeper(
        &self,
        groups: &[(usize, u32)],
        from: impl Fn(usize) -> usize,
    ) -> Option<(u32, f64)> {
        let mut first: Option<(u32, f64)> = None;
        for &(group, place) in groups {
            let before = first.map_or(u32::MAX, |(keeper, _)| keeper);
            let found = self.kept[group].first_alike(
                &self.likeness,
                (group, place),
                (from(group), before),
                &self.asked,
            );
            first = found.or(first);
        }
        first
    }

    /// How alike a document is to a keeper in whose cluster it may be.
    fn belongs(&mut self, rank: u32, keeper: u32) -> Option<f64> {
        let similarity = self.ask(rank, keeper)?;
        if self.linkage == Linkage::Complete {
            for member in 0..self.members[keeper as usize].len() {
                self.ask(rank, self.members[keeper as usize][member])?;
            }
        }
        Some(similarity)
    }

    fn ask(&mut self, a: u32, b: u32) -> Option<f64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.likeness.alike(a, b)
    }

    /// Joins the components of two documents, if they are alike and it makes a difference.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (of_a, of_b) = (self.root(a), self.root(b));
        if of_a == of_b || self.ask(a, b).is_none() {
            return of_a == of_b;
        }
        join(&mut self.keeper, of_a, of_b);
        self.joined.push((a.min(b), a.max(b)));
        true
    }

    fn root(&mut self, rank: u32) -> u32 {
        root(&mut self.keeper, rank)
    }

    /// Goes through each dense group from neighbor to neighbor: those already reached are not asked about again.
    fn join_dense_groups(&mut self) {
        for mut waiting in std::mem::take(&mut self.dense.groups) {
            while let Some(start) = waiting.pop() {
                let mut reached = vec![start];
                while let Some(rank) = reached.pop() {
                    waiting.retain(|&other| {
                        let joined = self.join(rank, other);
                        if joined {
                            reached.push(other);
                        }
                        !joined
                    });
                }
            }
        }
    }
}

/// Everybody who is paired is alike.
struct AllAlike;

impl Likeness for AllAlike {
    fn alike(&self, _: u32, _: u32) -> Option<f64> {
        Some(1.0)
    }

    fn alike_in_group(&self, _: usize, _: u32, _: u32) -> Option<f64> {
        Some(1.0)
    }

    fn row_in_group(&self, _: usize, _: u32) -> &[u64] {
        &[]
    }

    fn possible_in_group(&self, _: usize, _: u32, _: (&[u64], &[u32]), _: &mut Vec<usize>) {}
}

/// The keeper of each document, itself if it is kept, from pairs of ranks that are alike, in any order. A complete cluster is one
/// in which every two are paired; that takes all pairs to tell, so it cannot be asked for here.
///
/// ```
/// use lookalike::cluster::{Linkage, keepers};
///
/// let chain = [(1, 0), (2, 1), (4, 3)];
/// assert_eq!(keepers(5, Linkage::Components, chain.to_vec())?, [0, 0, 0, 3, 3]);
/// assert_eq!(keepers(5, Linkage::Star, chain.to_vec())?, [0, 0, 2, 3, 3]);
/// # Ok::<(), lookalike::Error>(())
/// ```
pub fn keepers(documents: usize, linkage: Linkage, mut pairs: Vec<Candidate>) -> Result<Vec<u32>> {
    if linkage == Linkage::Complete {
        let problem = "is complete, which pairs alone do not tell: components or star".to_owned();
        return Err(Error::Setting { name: "linkage", problem });
    }
    pairs.iter_mut().for_each(|pair| *pair = (pair.0.max(pair.1), pair.0.min(pair.1)));
    if let Some(&(rank, _)) = pairs.iter().find(|pair| pair.0 as usize >= documents) {
        let problem = format!("name document {rank}, and there are {documents}");
        return Err(Error::Setting { name: "pairs", problem });
    }
    if linkage == Linkage::Components {
        let mut above: Vec<u32> = (0..documents as u32).collect();
        pairs.iter().for_each(|&(a, b)| join(&mut above, a, b));
        (0..documents as u32).for_each(|rank| above[rank as usize] = root(&mut above, rank));
        return Ok(above);
    }
    pairs.par_sort_unstable();
    pairs.retain(|(later, earlier)| later != earlier);
    let mut clustering = Clustering::new(documents, linkage, Dense::default(), AllAlike);
    clustering.take(pairs.into_iter());
    Ok(clustering.finish().keeper)
}

/// The longest way from each keeper over the pairs that joined its component.
fn chains_of(joined: &[(u32, u32)], keeper: &[u32]) -> Vec<(u32, u32)> {
    let mut keepers: Vec<u32> = joined.iter().map(|&(a, _)| keeper[a as usize]).collect();
    keepers.sort_unstable();
    keepers.dedup();
    let (ways, mut seen) = (Ways::along(joined.iter().copied()), vec![false; keeper.len()]);
    keepers.into_iter().map(|keeper| (keeper, ways.longest_from(keeper, &mut seen))).collect()
}

/// The first of a component. From each rank `above` leads to an earlier one of its component, or to itself if it is the
/// first; ways are halved as they are gone.
pub(crate) fn root(above: &mut [u32], mut rank: u32) -> u32 {
    while above[rank as usize] != rank {
        above[rank as usize] = above[above[rank as usize] as usize];
        rank = above[rank as usize];
    }
    rank
}

/// Makes one component of those of two ranks.
pub(crate) fn join(above: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(above, a), root(above, b));
    // The first leads, so that it does not depend on the order of the pairs.
    above[a.max(b) as usize] = a.min(b);
}

/// Pairs of ranks, as ways in both directions.
pub(crate) struct Ways(
    /// From where to where, sorted.
    Vec<(u32, u32)>,
);

impl Ways {
    pub(crate) fn along(pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut ways: Vec<_> = pairs.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        ways.par_sort_unstable();
        Ways(ways)
    }

    fn from(&self, rank: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.0.partition_point(|&(from, _)| from < rank);
        self.0[start..].iter().take_while(move |&&(from, _)| from == rank).map(|&(_, to)| to)
    }

    /// How many steps the farthest rank is away that can be reached from one, each by the shortest way. All that are
    /// reached are marked as seen, and nobody was seen before.
    pub(crate) fn longest_from(&self, start: u32, seen: &mut [bool]) -> u32 {
        let (mut steps, mut here) = (0, vec![start]);
        seen[start as usize] = true;
        loop {
            let on = here.iter().flat_map(|&rank| self.from(rank));
            let next: Vec<u32> =
                on.filter(|&to| !std::mem::replace(&mut seen[to as usize], true)).collect();
            if next.is_empty() {
                return steps;
            }
            (steps, here) = (steps + 1, next);
        }
    }
}
