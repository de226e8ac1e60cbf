//! Which keys a search looks up, and which rows that finds.

use std::ops::Range;

use crate::{
    index::{Composition, Queries, composition::Step},
    probe::{RankList, exactly, within},
    table::KeyLayout,
};

/// What is looked up in each table for a radius.
#[derive(Debug)]
pub(super) struct Looking {
    pub(super) radius: u32,
    /// Whether that finds every row within the radius.
    pub(super) exact: bool,
    /// Whether that would be more keys than there are rows.
    pub(super) scan: bool,
    pub(super) steps: Vec<Step>,
    flips: Vec<Flips>,
    /// The bits of the keys of the steps that look up own keys only, of signatures of one word: who has these in common with
    /// a query is found by such a step.
    own: Vec<u64>,
}

/// How the keys of a step differ from the query's own.
#[derive(Debug)]
enum Flips {
    /// In at most so many bits.
    Within { errors: u32, flips: Vec<u32> },
    /// In so many bits.
    Exactly { errors: u32, flips: Vec<u32> },
    /// In these bits, by their rank among the query's weakest.
    Weakest { margins: Vec<usize>, list: RankList },
}

impl Looking {
    /// What a composition looks up among so many rows.
    pub(super) fn new(composition: &Composition, radius: u32, rows: usize) -> Self {
        let exact = composition.is_exact(radius);
        let scan = composition.is_scanned(radius, rows);
        let steps = if scan { Vec::new() } else { composition.steps(radius) };
        let flips: Vec<_> = steps.iter().map(|step| Flips::of(composition, step)).collect();
        let own = own_keys(composition, &steps, &flips);
        Looking { radius, exact, scan, steps, flips, own }
    }

    /// Ring after ring: keys with just so many errors. Such steps find all rows with fewer errors than there are steps.
    pub(super) fn rings(composition: &Composition, steps: Vec<Step>) -> Self {
        let flips = |step: &Step| {
            let (width, errors) = (composition.layouts()[step.table].width(), step.errors);
            Flips::Exactly { errors, flips: exactly(width.max(1), errors) }
        };
        let flips = steps.iter().map(flips).collect();
        let radius = (steps.len() as u32).saturating_sub(1);
        Looking { radius, exact: true, scan: false, steps, flips, own: Vec::new() }
    }

    /// Whether a step looks up own keys only.
    pub(super) fn is_own(&self, step: usize) -> bool {
        self.flips[step].are_none()
    }

    /// Keys of earlier steps: those who have the bits of one in common with a query are no news.
    #[inline(always)]
    pub(super) fn others(&self, step: usize) -> &[u64] {
        &self.own[..step.min(self.own.len())]
    }

    /// Whether these are the keys of all earlier steps.
    #[inline(always)]
    pub(super) fn are_all_others(&self, step: usize) -> bool {
        step <= self.own.len()
    }
}

/// The bits of the keys of the first steps, as long as these look up own keys only.
fn own_keys(composition: &Composition, steps: &[Step], flips: &[Flips]) -> Vec<u64> {
    let word = |layout: &KeyLayout| {
        let bits = layout.width().min(64);
        layout.fields().put_word(u64::MAX.checked_shr(64 - bits).unwrap_or(0))
    };
    let own = steps.iter().zip(flips).take_while(|(_, flips)| flips.are_none());
    match composition.bits {
        ..=64 => own.map(|(step, _)| word(&composition.layouts()[step.table])).collect(),
        _ => Vec::new(),
    }
}

impl Flips {
    fn of(composition: &Composition, step: &Step) -> Self {
        let layout = &composition.layouts()[step.table];
        // A table of very few rows has a key of no bits: as good as one bit that is never flipped.
        let (width, errors) = (layout.width().max(1), step.errors);
        match step.at_most {
            None => Flips::Within { errors, flips: within(width, errors) },
            Some(_) => Flips::Weakest {
                margins: layout.positions().map(|bit| bit as usize).collect(),
                list: RankList::new(width, errors, composition.probes_of(step) as usize),
            },
        }
    }

    /// Whether the query's own key is all that is looked up.
    fn are_none(&self) -> bool {
        matches!(self, Flips::Within { errors: 0, .. })
    }

    /// How many there are.
    fn len(&self) -> usize {
        match self {
            Flips::Within { flips, .. } | Flips::Exactly { flips, .. } => flips.len(),
            Flips::Weakest { list, .. } => list.len(),
        }
    }
}

/// What is looked up for each query of a batch.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The flips of the steps that look at the weakest bits: step after step, query after query.
    weakest: Vec<u32>,
    /// Where those of each step begin.
    starts: Vec<usize>,
    margins: Vec<u8>,
}

impl Reach {
    /// Makes ready for the next queries.
    pub(super) fn begin(&mut self, looking: &Looking, queries: Queries<'_>, batch: Range<usize>) {
        self.weakest.clear();
        self.starts.clear();
        for flips in &looking.flips {
            self.starts.push(self.weakest.len());
            let Flips::Weakest { margins: positions, list } = flips else { continue };
            for query in batch.clone() {
                let start = self.weakest.len();
                self.weakest.resize(start + list.len(), 0);
                let out = &mut self.weakest[start..];
                match queries.margins(query) {
                    Some(margins) => {
                        self.margins.clear();
                        self.margins.extend(positions.iter().map(|&bit| margins[bit]));
                        self.margins.resize(list.bits() as usize, u8::MAX);
                        list.flips_into(&self.margins, out);
                    }
                    None => out.copy_from_slice(list.fixed()),
                }
            }
        }
    }

    /// How the keys of a step differ from the query's own.
    #[inline]
    pub(super) fn flips<'a>(
        &'a self,
        looking: &'a Looking,
        step: usize,
        query: usize,
    ) -> &'a [u32] {
        match &looking.flips[step] {
            Flips::Within { flips, .. } | Flips::Exactly { flips, .. } => flips,
            weakest @ Flips::Weakest { .. } => {
                let len = weakest.len();
                &self.weakest[self.starts[step] + query * len..][..len]
            }
        }
    }

    /// Whether a step finds a row whose key differs so from the query's own.
    pub(super) fn finds(&self, looking: &Looking, step: usize, query: usize, flip: u32) -> bool {
        match &looking.flips[step] {
            Flips::Within { errors, .. } => flip.count_ones() <= *errors,
            Flips::Exactly { errors, .. } => flip.count_ones() == *errors,
            Flips::Weakest { .. } => self.flips(looking, step, query).contains(&flip),
        }
    }
}
