//! The engine's planner, with what it has to know of this machine and of the rows.

use lookalike::{
    SignatureFile,
    index::{Build, Method, Queries},
    plan::{self, Choice, Costs, Plan, Sample, Task},
    table::Stored,
};

use crate::{commands::Global, output::say, size};

/// Makes plans for one file of signatures.
pub(crate) struct Planner {
    costs: Costs,
    sample: Sample,
}

impl Planner {
    /// Looks at a file. Its own rows are the sample of queries, as far as the task asks what weak bits are worth.
    pub(crate) fn new(file: &SignatureFile, task: &Task, global: &Global) -> anyhow::Result<Self> {
        let rows = file.signatures();
        let mut sample = Sample::of(rows)?;
        let weak = task.recall < 1.0 && task.nearest.is_none();
        if let (true, Some(margins)) = (weak, file.all_margins()) {
            sample.look_at(rows, Queries::with_margins(rows, margins)?, task.radius)?;
        }
        Ok(Planner { costs: costs(global)?, sample })
    }

    /// What could do a task, the best first.
    pub(crate) fn plans(&self, task: &Task) -> Vec<Plan> {
        plan::plans(&self.costs, &self.sample, task)
    }

    /// What one index costs.
    pub(crate) fn price(&self, task: &Task, index: Choice) -> Option<Plan> {
        match index {
            Choice::Scan | Choice::Graph(_) => {
                self.plans(task).into_iter().find(|plan| plan.index == index)
            }
            Choice::Tables(method, build) => self.price_of_tables(task, method, build),
        }
    }

    fn price_of_tables(&self, task: &Task, method: Method, build: Build) -> Option<Plan> {
        plan::price(&self.costs, &self.sample, task, method, build)
    }
}

/// The costs of this machine. Who waits for them is told.
pub(crate) fn costs(global: &Global) -> anyhow::Result<Costs> {
    Ok(Costs::of_this_machine(|| say(global, || "measuring this machine, once".to_owned()))?)
}

/// A plan in a line.
pub(crate) fn line(plan: &Plan, rows: usize) -> String {
    let built = match plan.index {
        Choice::Scan => String::new(),
        Choice::Tables(_, build) => format!(" ({})", tables(plan, build, rows)),
        Choice::Graph(_) => format!(" ({})", memory(plan, rows)),
    };
    let recall = match plan.exact {
        true => "exact".to_owned(),
        false => format!("expected recall {:.3}", plan.expected_recall),
    };
    format!("{}{built}: {} a query, {recall}", plan.index, short(plan.query_seconds))
}

fn tables(plan: &Plan, build: Build, rows: usize) -> String {
    let stored = match build.stored {
        None => "",
        Some(Stored::Whole) => ", whole signatures",
        Some(Stored::Split) => ", split signatures",
        Some(Stored::Lines) => ", lines of signatures",
        Some(Stored::Numbers) => ", row numbers",
    };
    format!("keys of {} bits{stored}; {}", build.key_width.unwrap_or(0), memory(plan, rows))
}

/// What an index takes, and how long.
fn memory(plan: &Plan, rows: usize) -> String {
    let each = plan.bytes as f64 / rows.max(1) as f64;
    let (bytes, built) = (size::display(plan.bytes), short(plan.build_seconds));
    format!("{bytes}, {each:.1} bytes a row; built in {built}")
}

/// A time for people, in the unit that suits it.
pub(crate) fn short(seconds: f64) -> String {
    match seconds {
        less if less < 1e-5 => format!("{:.2} µs", less * 1e6),
        less if less < 1e-3 => format!("{:.1} µs", less * 1e6),
        less if less < 1.0 => format!("{:.1} ms", less * 1e3),
        more => format!("{more:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (seconds, text) in [
            (1.24e-7, "0.12 µs"),
            (3.4e-5, "34.0 µs"),
            (3.4e-3, "3.4 ms"),
            (0.25, "250.0 ms"),
            (12.34, "12.3 s"),
        ] {
            assert_eq!(short(seconds), text);
        }
    }
}
