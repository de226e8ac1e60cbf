//! `--explain`: how a search was done, with what was predicted of it beside what was measured.

use std::time::Duration;

use lookalike::{
    SignatureFile,
    plan::{Plan, Task},
    search::Question,
};

use super::{
    ready::{IndexArgs, radius_of, seconds},
    searched::About,
};
use crate::{
    commands::Global,
    index::BATCH,
    output::{counted, tell},
    planner::{Planner, line, short},
    size,
};

/// A search that was done.
pub(super) struct Explain<'a> {
    pub(super) args: &'a IndexArgs,
    /// The signatures, if they are in a file: others are not planned for.
    pub(super) file: Option<&'a SignatureFile>,
    pub(super) about: &'a About,
    pub(super) question: Question,
    pub(super) queries: usize,
    pub(super) time: Duration,
    pub(super) answers: String,
}

/// How many other indexes are told of.
const ALTERNATIVES: usize = 2;

impl Explain<'_> {
    /// Tells it on standard error.
    pub(super) fn tell(&self, global: &Global) -> anyhow::Result<()> {
        let (plan, others) = self.predicted(global)?;
        let measured = [
            ("search", self.search()),
            ("query", self.query(global)),
            ("answers", self.answers.clone()),
        ];
        for (name, text) in self.about.lines.iter().chain(&measured) {
            let predicted = plan.as_ref().and_then(|plan| prediction(name, plan));
            let predicted = predicted.map_or(String::new(), |text| format!(" (predicted: {text})"));
            tell(format!("{name:<12} {text}{predicted}"));
        }
        let rows = self.file.map_or(0, |file| file.signatures().len());
        others.iter().for_each(|plan| tell(format!("{:<12} {}", "instead", line(plan, rows))));
        Ok(())
    }

    /// What the planner says about the index, and about the best others. It has nothing to say of the nearest.
    fn predicted(&self, global: &Global) -> anyhow::Result<(Option<Plan>, Vec<Plan>)> {
        let (Some(radius), Some(file), true) =
            (radius_of(self.question), self.file, self.queries > 0)
        else {
            return Ok((None, Vec::new()));
        };
        let queries = self.queries as u64;
        let task = Task {
            radius,
            nearest: None,
            batch: queries.min(BATCH) as usize,
            // Another index would be kept as well as the one that was there.
            queries: (!self.about.was_built).then_some(queries),
            memory: self.args.memory,
            recall: self.args.recall.unwrap_or(1.0),
        };
        let planner = Planner::new(file, &task, global)?;
        let plan = self.about.planned.and_then(|index| planner.price(&task, index));
        let others = planner.plans(&task).into_iter();
        let others = others.filter(|other| Some(other.index) != self.about.planned);
        Ok((plan, others.take(ALTERNATIVES).collect()))
    }

    fn search(&self) -> String {
        let rate = self.queries as f64 / self.time.as_secs_f64().max(1e-9);
        let asked = counted(self.queries as u64, "query");
        format!("{} for {asked}: {rate:.0} queries a second", seconds(self.time))
    }

    fn query(&self, global: &Global) -> String {
        let each = self.time.as_secs_f64() / self.queries.max(1) as f64;
        format!("{} with {}", short(each), counted(global.threads() as u64, "thread"))
    }
}

/// What was predicted of what a line tells.
fn prediction(name: &str, plan: &Plan) -> Option<String> {
    match name {
        "built" => Some(short(plan.build_seconds)),
        "memory" if plan.bytes > 0 => Some(size::display(plan.bytes)),
        "query" => Some(format!("{} with one", short(plan.query_seconds))),
        "answers" if !plan.exact && plan.expected_recall > 0.0 => {
            Some(format!("{:.2}", plan.expected_recall))
        }
        _ => None,
    }
}
