//! What was tried and chosen, for people, for programs, and drawn.

use lookalike::quality::{Curve, Score};
use lookalike_thesis::plot::{Axis, Plot, Series};
use serde_json::{Value, json};

use super::choose::{Candidate, Tried};
use crate::{bench::table, commands::score_json};

/// Radii shown of a curve, about.
const SHOWN: usize = 16;

/// A table of the best setting of each recipe, the chosen one, and its curve.
pub(crate) fn text(best: &[Candidate], winner: Option<usize>, tried: &[Tried]) -> String {
    let held_out = best.iter().any(|candidate| candidate.held_out.is_some());
    let header = "recipe | radius | check | precision | recall | f1 | candidates a true pair";
    let header = if held_out { format!("{header} | f1 held out") } else { header.to_owned() };
    let mut text =
        table(&header, best.iter().map(|candidate| cells(candidate, held_out)).collect());
    let Some(chosen) = winner.map(|winner| &best[winner]) else {
        return text + "\n\nno setting reaches the goal";
    };
    let (recipe, radius) = (&chosen.recipe.name, chosen.radius);
    let check = match chosen.check {
        Some(least) => format!("then a check of the texts: Jaccard >= {least}"),
        None => "no check of the texts".to_owned(),
    };
    text += &format!("\n\nchosen: {recipe}, radius {radius}, {check}\n");
    text += &format!("  where it was chosen  {}\n", in_words(&chosen.score));
    if let Some(score) = &chosen.held_out {
        text += &format!("  on the other half    {}\n", in_words(score));
    }
    match curve_of(chosen, tried) {
        Some(curve) => text + "\n" + &curve_table(curve, radius),
        None => text,
    }
}

fn cells(candidate: &Candidate, held_out: bool) -> Vec<String> {
    let score = &candidate.score;
    let share = |share: f64, (low, high): (f64, f64)| format!("{share:.3} ({low:.3}-{high:.3})");
    let mut cells = vec![
        candidate.recipe.name.clone(),
        candidate.radius.to_string(),
        candidate.check.map_or("none".into(), |least| least.to_string()),
        share(score.precision(), score.precision_interval()),
        share(score.recall(), score.recall_interval()),
        share(score.f1(), score.f1_interval()),
        candidate.per_pair().map_or("none".into(), |ratio| format!("{ratio:.1}")),
    ];
    if held_out {
        let score = candidate.held_out.unwrap_or_default();
        cells.push(share(score.f1(), score.f1_interval()));
    }
    cells
}

fn in_words(score: &Score) -> String {
    let share = |name: &str, share: f64, (low, high): (f64, f64)| {
        format!("{name} {share:.3} ({low:.3} to {high:.3})")
    };
    [
        share("precision", score.precision(), score.precision_interval()),
        share("recall", score.recall(), score.recall_interval()),
        share("f1", score.f1(), score.f1_interval()),
    ]
    .join(", ")
}

fn curve_of<'a>(chosen: &Candidate, tried: &'a [Tried]) -> Option<&'a Curve> {
    let tried = tried.iter().find(|tried| tried.recipe == chosen.recipe)?;
    Some(tried.chosen_on.curve(chosen.check))
}

/// Some radii, the chosen one among them.
fn curve_table(curve: &Curve, chosen: u32) -> String {
    let scores = curve.scores();
    let last = (chosen as usize * 2).clamp(SHOWN, scores.len() - 1);
    let step = last.div_ceil(SHOWN);
    let shown = |radius: &usize| radius.is_multiple_of(step) || *radius == chosen as usize;
    let line = |radius: usize| {
        let score = &scores[radius];
        let mark = if radius == chosen as usize { "*" } else { "" };
        let shares = [score.precision(), score.recall(), score.f1()];
        let shares = shares.iter().map(|share| format!("{share:.3}"));
        [format!("{radius}{mark}")].into_iter().chain(shares).collect()
    };
    table("radius | precision | recall | f1", (0..=last).filter(shown).map(line).collect())
}

/// A line for each recipe's best settings, and one for the chosen, with its curve.
pub(crate) fn json_lines(best: &[Candidate], winner: Option<usize>, tried: &[Tried]) -> Vec<Value> {
    let mut lines: Vec<Value> = best.iter().map(|candidate| candidate.json("best")).collect();
    if let Some(chosen) = winner.map(|winner| &best[winner]) {
        let mut line = chosen.json("chosen");
        line["recipe_file"] = json!(chosen.recipe);
        let scores = curve_of(chosen, tried).map(Curve::scores).unwrap_or_default();
        let points =
            scores.iter().map(|score| json!([score.precision(), score.recall(), score.f1()]));
        line["curve"] = points.collect();
        lines.push(line);
    }
    lines
}

impl Candidate {
    /// Pairs within the radius for each that is right.
    fn per_pair(&self) -> Option<f64> {
        (self.score.both > 0).then(|| self.candidates as f64 / self.score.both as f64)
    }

    fn json(&self, what: &str) -> Value {
        let mut line = score_json(&self.score);
        line["what"] = what.into();
        line["recipe"] = self.recipe.name.clone().into();
        line["bits"] = self.recipe.signature.bits.into();
        line["radius"] = self.radius.into();
        line["check"] = json!(self.check);
        line["true_pairs"] = self.score.wanted.into();
        line["candidates"] = self.candidates.into();
        line["held_out"] = json!(self.held_out.as_ref().map(score_json));
        line
    }
}

/// Precision and recall by the radius, for the chosen recipe: with its check, if it has one, and without.
pub(crate) fn figure(title: &str, chosen: &Candidate, tried: &[Tried]) -> String {
    let mut series = Vec::new();
    let checks = [chosen.check, None];
    let trial = tried.iter().find(|tried| tried.recipe == chosen.recipe).map(|t| &t.chosen_on);
    let last = trial.map_or(0, |trial| last_of_interest(&trial.unchecked));
    for check in &checks[usize::from(chosen.check.is_none())..] {
        let scores = trial.map(|trial| trial.curve(*check).scores()).unwrap_or_default();
        let how = check.map_or(String::new(), |least| format!(", J >= {least}"));
        let curve = |name: &str, of: fn(&Score) -> f64| Series {
            name: format!("{name}{how}"),
            points: (0..=last).zip(&scores).map(|(radius, s)| (radius as f64, of(s))).collect(),
        };
        series.push(curve("precision", Score::precision));
        series.push(curve("recall", Score::recall));
        if checks[0].is_none() {
            series.push(curve("F1", Score::f1));
        }
    }
    let axis = |title: &str| Axis { title: title.to_owned(), log: false };
    let plot = Plot {
        title: title.to_owned(),
        x: axis("radius, bits"),
        y: axis("share of pairs"),
        series,
    };
    plot.svg()
}

/// From here on nearly everything is within the radius, and wrong.
fn last_of_interest(curve: &Curve) -> usize {
    let scores = curve.scores();
    scores.iter().position(|score| score.precision() < 0.02).unwrap_or(scores.len() / 2)
}

/// The figure and the tables as a page.
pub(crate) fn page(title: &str, figure: &str, text: &str) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{0}</title>\n\
         <style>:root{{color-scheme:light dark}}body{{max-width:70em;margin:2em auto;font-family:system-ui,sans-serif}}\
         pre{{overflow-x:auto}}svg{{max-width:100%}}</style>\n<h1>{0}</h1>\n{figure}\n<pre>{1}</pre>\n</html>\n",
        escape(title),
        escape(text)
    )
}
