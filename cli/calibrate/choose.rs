//! The best of all settings that were tried.

use lookalike::{
    Recipe,
    quality::{Curve, Goal, Score},
};

use super::trial::Trial;

/// What differs by less is the same: the fewest candidates win.
const ALIKE: f64 = 0.001;

/// A recipe, on the documents to choose on and on those to score on.
pub(crate) struct Tried {
    pub(crate) recipe: Recipe,
    pub(crate) chosen_on: Trial,
    pub(crate) scored_on: Option<Trial>,
}

/// A setting, and what it finds.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) recipe: Recipe,
    pub(crate) radius: u32,
    /// The threshold of the check, if there is one.
    pub(crate) check: Option<f64>,
    pub(crate) score: Score,
    /// On the documents that it was not chosen on.
    pub(crate) held_out: Option<Score>,
    /// Pairs within the radius.
    pub(crate) candidates: u64,
}

/// The best radius of each recipe, without a check and with the best one; and which of all is the best, if any reaches the
/// goal.
pub(crate) fn choose(tried: &[Tried], goal: Goal) -> (Vec<Candidate>, Option<usize>) {
    let mut best = Vec::new();
    for tried in tried {
        let unchecked = tried.candidates(None, &tried.chosen_on.unchecked, goal);
        best.extend(preferred(unchecked, goal));
        let checked = tried.chosen_on.checked.iter();
        let checked =
            checked.flat_map(|(least, curve)| tried.candidates(Some(*least), curve, goal));
        best.extend(preferred(checked.collect(), goal));
    }
    let winner = preferred(best.clone(), goal)
        .and_then(|winner| best.iter().position(|other| other.is_same(&winner)));
    (best, winner)
}

impl Tried {
    /// All radii that are good enough.
    fn candidates(&self, check: Option<f64>, curve: &Curve, goal: Goal) -> Vec<Candidate> {
        let held_out = self.scored_on.as_ref().map(|trial| trial.curve(check).scores());
        let mut pairs = 0;
        let mut candidates = Vec::new();
        for (radius, score) in curve.scores().into_iter().enumerate() {
            pairs += self.chosen_on.candidates[radius];
            if goal.admits(&score) {
                candidates.push(Candidate {
                    recipe: self.recipe.clone(),
                    radius: radius as u32,
                    check,
                    score,
                    held_out: held_out.as_ref().map(|scores| scores[radius]),
                    candidates: pairs,
                });
            }
        }
        candidates
    }
}

impl Trial {
    /// What each radius finds with this check.
    pub(super) fn curve(&self, check: Option<f64>) -> &Curve {
        let checked = self.checked.iter().find(|(least, _)| Some(*least) == check);
        checked.map_or(&self.unchecked, |(_, curve)| curve)
    }
}

impl Candidate {
    fn is_same(&self, other: &Candidate) -> bool {
        (&self.recipe, self.radius, self.check) == (&other.recipe, other.radius, other.check)
    }

    /// Bits that are compared.
    fn cost(&self) -> u64 {
        self.candidates.saturating_mul(self.recipe.signature.bits.into())
    }
}

/// The cheapest of the best.
fn preferred(candidates: Vec<Candidate>, goal: Goal) -> Option<Candidate> {
    let value = |candidate: &Candidate| goal.value(&candidate.score);
    let best = candidates.iter().map(value).max_by(f64::total_cmp)?;
    let as_good = candidates.into_iter().filter(|candidate| value(candidate) >= best - ALIKE);
    as_good.min_by(|a, b| a.cost().cmp(&b.cost()).then(value(b).total_cmp(&value(a))))
}
