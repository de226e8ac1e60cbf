//! Which index: the user's words for it, and the choice where they leave one.

use std::str::FromStr;

use lookalike::{
    index::{Build, Composition, Issl, Method, PermutedMethod, Shape},
    plan::{self, Plan},
    table::{Stored, key_width},
};

use crate::{failure::hinted, opened::IndexKind, output::counted, size};

/// What `--index` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The best for the question.
    Auto,
    /// Every row against every query.
    Scan,
    /// A method, with numbers that suit.
    Named(Name),
    /// A method with its numbers.
    Method(Method),
    /// Sorted orders, which are no tables.
    Permuted(PermutedMethod),
    /// A graph of neighbors, of this shape if one is said.
    Graph(Option<Shape>),
    /// Slice lists, with slices of so many bits if it is said.
    Issl(Option<u32>),
    /// The database of a collection.
    Sql,
}

/// The methods that tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Pieces,
    Blocks,
    Multi,
    Psm,
}

/// Each method, and how it is written with its numbers.
const NAMES: [(&str, Name, &str); 4] = [
    ("pieces", Name::Pieces, "pieces-4"),
    ("blocks", Name::Blocks, "blocks-5-2"),
    ("multi", Name::Multi, "multi-3 or multi-2x4"),
    ("psm", Name::Psm, "psm-1-23"),
];

const PERMUTED: &str = "permuted";
const GRAPH: &str = "graph";
const ISSL: &str = "issl";

/// A share from 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1, as 0.9".to_owned())
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Wanted::Auto),
            "scan" => return Ok(Wanted::Scan),
            "sql" => return Ok(Wanted::Sql),
            _ => {}
        }
        let name = text.split('-').next().unwrap_or_default();
        if name == PERMUTED {
            let how = "with its numbers, permuted is written as permuted-16 or permuted-16x512";
            return text.parse().map(Wanted::Permuted).map_err(|_| how.to_owned());
        }
        if name == GRAPH {
            return Shape::named(text).map(Wanted::Graph);
        }
        if name == ISSL {
            return parse_issl(text).map(Wanted::Issl);
        }
        let Some((_, named, example)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            let names = NAMES.map(|(name, ..)| name).join(", ");
            return Err(format!("there are auto, scan, {names}, {PERMUTED}, {GRAPH}, {ISSL}, sql"));
        };
        match text == name {
            true => Ok(Wanted::Named(*named)),
            false => text.parse().map(Wanted::Method).map_err(|_| {
                format!("with its numbers, {name} is written as {example}; {name} alone takes numbers that suit")
            }),
        }
    }
}

impl Wanted {
    /// Whether an index of this method is one that is wanted.
    fn admits(self, method: Method) -> bool {
        match self {
            Wanted::Auto => true,
            Wanted::Named(name) => name.is_of(method),
            Wanted::Method(wanted) => wanted == method,
            Wanted::Scan
            | Wanted::Permuted(_)
            | Wanted::Graph(_)
            | Wanted::Issl(_)
            | Wanted::Sql => false,
        }
    }

    /// Whether the index of a file is one that is wanted.
    pub(crate) fn admits_file(self, file: IndexKind) -> bool {
        match (self, file) {
            (Wanted::Auto, _) => true,
            (_, IndexKind::Tables(method)) => self.admits(method),
            (Wanted::Graph(wanted), IndexKind::Graph(shape)) => {
                wanted.is_none_or(|wanted| wanted == shape)
            }
            // As many slices as slices of that width are: none of them need be as wide.
            (Wanted::Issl(wanted), IndexKind::Issl { bits, width }) => {
                wanted.is_none_or(|wanted| bits.div_ceil(bits.div_ceil(wanted)) == width)
            }
            _ => false,
        }
    }
}

fn parse_issl(text: &str) -> Result<Option<u32>, String> {
    let Some(width) = text.strip_prefix("issl-") else { return Ok(None) };
    let width = width.parse().ok().filter(|width| (8..=28).contains(width));
    width.map(Some).ok_or_else(|| {
        "with the width of its slices, 8 to 28 bits, issl is written as issl-16".to_owned()
    })
}

impl Name {
    fn is_of(self, method: Method) -> bool {
        matches!(
            (self, method),
            (Name::Pieces, Method::Pieces { .. })
                | (Name::Blocks, Method::Blocks { .. })
                | (Name::Multi, Method::Multi { .. })
                | (Name::Psm, Method::Psm { .. })
        )
    }
}

/// What is to be indexed, and what for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) bits: u32,
    pub(crate) rows: usize,
    /// The radius of the questions, if it is known.
    pub(crate) radius: Option<u32>,
    /// The so many nearest are asked for.
    pub(crate) nearest: Option<usize>,
    /// The share of the hits that is enough.
    pub(crate) recall: f64,
    /// The most bytes that the index may take.
    pub(crate) memory: Option<u64>,
    pub(crate) key_bits: Option<u32>,
    pub(crate) stored: Option<Stored>,
    /// How many queries it is built for. None if it is kept: then it pays, however few there are today.
    pub(crate) queries: Option<u64>,
}

/// What to search with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Choice {
    Scan,
    Tables(Method, Build),
    Permuted(PermutedMethod),
    Graph(Shape),
    Issl(Option<u32>),
}

/// A choice, and why it was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) choice: Choice,
    pub(crate) why: &'static str,
}

const SAID: &str = "`--index` says so";
const USUAL_NUMBERS: &str = "`--index` names it; the numbers are the usual ones";
const PLANNED_NUMBERS: &str =
    "`--index` names it; the numbers are predicted to be nearly the fastest";
const PLANNED: &str = "predicted to be the fastest for so many queries, time to build included";
/// An index is built that the planner would not build.
pub(crate) const SCAN_WINS: &str = "the fastest of its kind; a scan is predicted to be faster";
const KEPT: &str = "exact for every radius";
const SMALL: &str =
    "rows and queries are so few that to compare them all takes no longer than to choose";
const NEAREST: &str = "the nearest are found by comparing every row";

/// For fewer rows no plan is made: any index does.
pub(crate) const FEW_ROWS: usize = 10_000;
/// Nor for fewer queries, as to build an index would take longer than to compare...
const FEW_QUERIES: u64 = 1000;
/// ...nor if fewer words are to be compared than a core does in about a second.
const FEW_WORDS: u64 = 1 << 33;
/// How many queries come together, if there are many.
pub(crate) const BATCH: u64 = 256;

/// Chooses an index for a task. All choices are made here: by the planner, which is asked for `plans` where they are worth
/// the time to make them, otherwise the first of those that come into question that fits into the memory. Exact answers do
/// not depend on the choice.
pub(crate) fn choose(
    wanted: Wanted,
    task: &Task,
    plans: impl FnOnce(&plan::Task) -> anyhow::Result<Vec<Plan>>,
) -> anyhow::Result<Chosen> {
    if task.is_worth_a_plan(wanted) {
        let plans = plans(&task.to_plan())?;
        let scan_wins = plans.first().is_some_and(|plan| plan.index == plan::Choice::Scan);
        let best = plans.into_iter().find(|plan| task.admits(wanted, plan.index));
        if let Some(plan) = best {
            let why = match wanted {
                _ if scan_wins && plan.index != plan::Choice::Scan => SCAN_WINS,
                Wanted::Auto => PLANNED,
                _ => PLANNED_NUMBERS,
            };
            return Ok(Chosen { choice: plan.index.into(), why });
        }
    }
    let scan = |why| Ok(Chosen { choice: Choice::Scan, why });
    match wanted {
        Wanted::Scan => scan(SAID),
        Wanted::Auto if task.queries.is_some() && task.radius.is_none() => scan(NEAREST),
        Wanted::Auto if task.queries.is_some() => scan(SMALL),
        Wanted::Auto => task.first_that_fits(&Method::exact(task.bits, task.rows), KEPT),
        Wanted::Named(name) => task.first_that_fits(&task.methods(name)?, USUAL_NUMBERS),
        Wanted::Method(method) => task.first_that_fits(&[method], SAID),
        Wanted::Permuted(method) => {
            let bytes = method.bytes(task.rows);
            task.if_it_fits(Choice::Permuted(method), bytes, || method.to_string())
        }
        Wanted::Graph(shape) => {
            let shape = shape.unwrap_or(Shape::usual(task.bits));
            let bytes = shape.bytes(task.rows, task.bits);
            task.if_it_fits(Choice::Graph(shape), bytes, || shape.to_string())
        }
        Wanted::Sql => Err(hinted(
            "`--index sql` asks the database of a collection, and a file of signatures has none",
            "leave `--index` out, or make a collection of it with `lookalike create` and `lookalike add`",
        )),
        Wanted::Issl(width) => {
            let bytes = Issl::most_bytes(task.rows, task.bits, width)?;
            task.if_it_fits(Choice::Issl(width), bytes, || ISSL.to_owned())
        }
    }
}

impl From<plan::Choice> for Choice {
    fn from(choice: plan::Choice) -> Self {
        match choice {
            plan::Choice::Scan => Choice::Scan,
            plan::Choice::Tables(method, build) => Choice::Tables(method, build),
            plan::Choice::Graph(shape) => Choice::Graph(shape),
        }
    }
}

impl Task {
    /// Whether plans may save more time than it takes to make them.
    fn is_worth_a_plan(&self, wanted: Wanted) -> bool {
        // The planner has its own keys and rows.
        if self.rows < FEW_ROWS || self.key_bits.is_some() || self.stored.is_some() {
            return false;
        }
        match (wanted, self.queries) {
            (Wanted::Auto | Wanted::Named(_), None) => true,
            (Wanted::Named(_), Some(_)) => self.radius.is_some(),
            (Wanted::Auto, Some(queries)) => {
                let words = self.rows as u64 * u64::from(self.bits.div_ceil(64));
                let many = words.saturating_mul(queries) >= FEW_WORDS;
                let asked = self.radius.is_some() || self.nearest_may_pay();
                asked && queries >= FEW_QUERIES && many
            }
            _ => false,
        }
    }

    /// Whether anything but a scan may find the nearest sooner.
    fn nearest_may_pay(&self) -> bool {
        let tables = self.bits <= plan::TABLES_BITS && self.rows >= plan::TABLES_FROM;
        self.nearest.is_some() && (self.recall < 1.0 || tables)
    }

    /// The task as the planner has it.
    fn to_plan(self) -> plan::Task {
        plan::Task {
            radius: self.radius(),
            nearest: self.nearest,
            batch: self.queries.unwrap_or(BATCH).clamp(1, BATCH) as usize,
            queries: self.queries,
            memory: self.memory,
            recall: self.recall,
        }
    }

    /// Whether an index of a plan may be chosen.
    fn admits(&self, wanted: Wanted, index: plan::Choice) -> bool {
        match (wanted, index) {
            (Wanted::Auto, plan::Choice::Scan) => self.queries.is_some(),
            // If nobody says for which radius it is kept, it has to be good for every one.
            (Wanted::Auto, plan::Choice::Tables(method, _)) => {
                self.radius.is_some() || Name::Multi.is_of(method)
            }
            (Wanted::Auto, plan::Choice::Graph(_)) => self.queries.is_some(),
            (_, plan::Choice::Scan | plan::Choice::Graph(_)) => false,
            (_, plan::Choice::Tables(method, _)) => wanted.admits(method),
        }
    }

    /// The first of some methods that fits into the memory.
    fn first_that_fits(&self, methods: &[Method], why: &'static str) -> anyhow::Result<Chosen> {
        let mut least: Option<(u64, String)> = None;
        for &method in methods {
            let composition = method.compose(self.bits, self.key_width())?;
            for stored in self.ways_to_store(&composition) {
                let bytes = self.bytes(&composition, stored);
                if self.memory.is_none_or(|memory| bytes <= memory) {
                    let build = Build { key_width: self.key_bits, stored: Some(stored) };
                    return Ok(Chosen { choice: Choice::Tables(method, build), why });
                }
                let this = [(bytes, method.to_string())];
                least = least.into_iter().chain(this).min_by_key(|(bytes, _)| *bytes);
            }
        }
        Err(self.no_room(least))
    }

    /// What `--index` says, if there is room for it.
    fn if_it_fits(
        &self,
        choice: Choice,
        bytes: u64,
        name: impl FnOnce() -> String,
    ) -> anyhow::Result<Chosen> {
        match self.memory.is_none_or(|memory| bytes <= memory) {
            true => Ok(Chosen { choice, why: SAID }),
            false => Err(self.no_room(Some((bytes, name())))),
        }
    }

    fn key_width(&self) -> u32 {
        self.key_bits.unwrap_or_else(|| key_width(self.rows))
    }

    /// Three of 64 bits is what the papers ask for; other widths in proportion.
    fn radius(&self) -> u32 {
        self.radius.unwrap_or(self.bits * 3 / 64)
    }

    /// The numbers that suit a method, best first.
    fn methods(&self, name: Name) -> anyhow::Result<Vec<Method>> {
        let (radius, bits) = (self.radius(), self.bits);
        Ok(match name {
            Name::Pieces if radius >= bits => return Err(too_wide("pieces", radius, bits)),
            Name::Pieces => vec![Method::Pieces { slices: radius + 1 }],
            // One block is enough if it is as wide as a key; otherwise two of more blocks are. There are 16 at most.
            Name::Blocks if radius < 16 && bits / (radius + 1) >= self.key_width() => {
                vec![Method::Blocks { blocks: radius + 1, leading: 1 }]
            }
            Name::Blocks if radius <= 14 => {
                vec![Method::Blocks { blocks: radius + 2, leading: 2 }]
            }
            Name::Blocks => return Err(too_wide("blocks", radius, bits)),
            Name::Multi => Method::exact(self.bits, self.rows),
            Name::Psm => vec![Method::Psm { tables: 1, probes: 23 }],
        })
    }

    /// What tables can store, the fastest first. Lines take memory for keys that no row has: only the planner, which knows the
    /// rows, takes them unasked.
    fn ways_to_store(&self, composition: &Composition) -> Vec<Stored> {
        if let Some(stored) = self.stored {
            return vec![stored];
        }
        let narrowest = composition.layouts().iter().map(|key| key.width()).min().unwrap_or(0);
        let all = [Stored::Whole, Stored::Split, Stored::Numbers];
        all.into_iter().filter(|stored| stored.suits(self.bits, narrowest)).collect()
    }

    /// What an index takes at most: its tables, and what leads from signatures to rows.
    fn bytes(&self, composition: &Composition, stored: Stored) -> u64 {
        composition.bytes(self.rows, stored) + 8 * self.rows as u64
    }

    fn no_room(&self, least: Option<(u64, String)>) -> anyhow::Error {
        let rows = counted(self.rows as u64, "signature");
        let memory = size::display(self.memory.unwrap_or_default());
        let needed = least.map_or(String::new(), |(bytes, method)| {
            format!(": {method} takes {}", size::display(bytes))
        });
        hinted(
            format!("no such index over {rows} fits into {memory}{needed}"),
            "give it more with `--memory`; a scan (`search FILE.sig --index scan`) needs no memory at all",
        )
    }
}

fn too_wide(name: &str, radius: u32, bits: u32) -> anyhow::Error {
    hinted(
        format!("`{name}` has no numbers for a radius of {radius} of {bits} bits"),
        "`multi` is exact for every radius",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task {
        bits: 64,
        rows: 1 << 20,
        radius: Some(3),
        nearest: None,
        recall: 1.0,
        memory: None,
        key_bits: None,
        stored: None,
        queries: None,
    };

    /// What is chosen if the planner has these plans.
    fn chosen_of(plans: &[&str], wanted: &str, task: Task) -> String {
        let plans = |_: &plan::Task| Ok(plans.iter().map(|text| plan(text)).collect());
        match choose(wanted.parse().unwrap(), &task, plans).map(|chosen| chosen.choice) {
            Ok(Choice::Scan) => "scan".into(),
            Ok(Choice::Tables(method, build)) => format!("{method} {:?}", build.stored.unwrap()),
            Ok(Choice::Permuted(method)) => method.to_string(),
            Ok(Choice::Graph(shape)) => shape.to_string(),
            Ok(Choice::Issl(width)) => format!("issl {width:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    fn chosen(wanted: &str, task: Task) -> String {
        chosen_of(&[], wanted, task)
    }

    fn plan(text: &str) -> Plan {
        let build = Build { key_width: Some(18), stored: Some(Stored::Split) };
        Plan {
            index: match text {
                "scan" => plan::Choice::Scan,
                "graph" => plan::Choice::Graph(Shape::usual(1024)),
                method => plan::Choice::Tables(method.parse().unwrap(), build),
            },
            exact: !text.starts_with("psm"),
            expected_recall: 1.0,
            bytes: 0,
            build_seconds: 0.0,
            query_seconds: 0.0,
            work: plan::Work::default(),
        }
    }

    #[test]
    fn the_best_plan_that_suits_is_chosen() {
        let plans = ["blocks-5-2", "scan", "multi-4", "multi-2x4", "psm-1-9"];
        let many = Task { queries: Some(1 << 20), ..TASK };
        for (wanted, task, expected) in [
            ("auto", TASK, "blocks-5-2 Split"),
            ("auto", Task { radius: None, ..TASK }, "multi-4 Split"),
            ("auto", many, "blocks-5-2 Split"),
            ("multi", TASK, "multi-4 Split"),
            ("multi", Task { queries: Some(1), ..TASK }, "multi-4 Split"),
            ("psm", TASK, "psm-1-9 Split"),
            // The planner has none, or is not to say.
            ("pieces", TASK, "pieces-4 Whole"),
            ("multi-2x4", TASK, "multi-2x4 Whole"),
            ("scan", TASK, "scan"),
            ("permuted", TASK, "permuted-16"),
            ("graph-32", TASK, "graph-32-128"),
            ("issl-16", TASK, "issl Some(16)"),
            ("auto", Task { stored: Some(Stored::Whole), ..TASK }, "multi-2x4 Whole"),
            ("auto", Task { key_bits: Some(9), ..TASK }, "multi-2x4 Whole"),
            // It is not worth it.
            ("auto", Task { rows: 9999, ..TASK }, "multi-2x4 Whole"),
            ("auto", Task { rows: 9999, ..many }, "scan"),
            ("auto", Task { queries: Some(999), rows: 1 << 40, ..many }, "scan"),
            ("auto", Task { queries: Some(8000), ..many }, "scan"),
            ("auto", Task { radius: None, ..many }, "scan"),
            ("multi", Task { radius: None, ..many }, "multi-2x4 Whole"),
        ] {
            assert_eq!(chosen_of(&plans, wanted, task), expected, "{wanted} {task:?}");
        }
        assert_eq!(chosen_of(&plans[1..], "auto", many), "scan");
        assert_eq!(chosen_of(&plans[1..], "auto", TASK), "multi-4 Split");
        assert_eq!(chosen_of(&["scan"], "auto", TASK), "multi-2x4 Whole");
    }

    #[test]
    fn the_nearest_are_planned_where_it_may_pay() {
        let plans = ["graph", "multi-4", "scan"];
        let many = Task { radius: None, nearest: Some(10), queries: Some(1 << 20), ..TASK };
        let share = Task { recall: 0.9, bits: 1024, ..many };
        for (task, expected) in [
            (share, "graph-62-96"),
            (Task { queries: Some(9), ..share }, "scan"),
            (Task { rows: 9999, ..share }, "scan"),
            (Task { recall: 1.0, ..share }, "scan"),
            // Too few rows for tables.
            (many, "scan"),
        ] {
            assert_eq!(chosen_of(&plans, "auto", task), expected, "{task:?}");
        }
        let tables = Task { rows: 1 << 23, ..many };
        assert_eq!(chosen_of(&plans[1..], "auto", tables), "multi-4 Split");
    }

    #[test]
    fn the_planner_is_told_the_task() {
        let told = |task: Task| {
            let mut told = None;
            let note = |task: &plan::Task| {
                told = Some(*task);
                Ok(Vec::new())
            };
            choose(Wanted::Auto, &task, note).unwrap();
            told.unwrap()
        };
        let task = told(Task { radius: None, memory: Some(100 << 20), ..TASK });
        assert_eq!((task.radius, task.batch, task.queries), (3, 256, None));
        assert_eq!(task.memory, Some(100 << 20));
        let task = told(Task { recall: 0.9, queries: Some(1 << 20), ..TASK });
        assert_eq!((task.recall, task.batch, task.queries), (0.9, 256, Some(1 << 20)));
    }

    #[test]
    fn bare_names_take_numbers_that_suit() {
        let wide = Task { bits: 256, radius: Some(12), ..TASK };
        for (wanted, task, expected) in [
            ("auto", TASK, "multi-2x4 Whole"),
            ("auto", Task { queries: Some(1), ..TASK }, "scan"),
            ("scan", TASK, "scan"),
            ("pieces", TASK, "pieces-4 Whole"),
            ("pieces", Task { radius: None, ..TASK }, "pieces-4 Whole"),
            ("blocks", TASK, "blocks-5-2 Whole"),
            ("blocks", Task { rows: 1000, ..TASK }, "blocks-4-1 Whole"),
            ("psm", TASK, "psm-1-23 Whole"),
            ("multi-3", TASK, "multi-3 Whole"),
            ("auto", wide, "multi-13 Numbers"),
            ("pieces", wide, "pieces-13 Numbers"),
            ("blocks", wide, "blocks-13-1 Numbers"),
            (
                "blocks",
                Task { radius: Some(20), ..wide },
                "`blocks` has no numbers for a radius of 20 of 256 bits",
            ),
            (
                "pieces",
                Task { radius: Some(300), ..wide },
                "`pieces` has no numbers for a radius of 300 of 256 bits",
            ),
        ] {
            assert_eq!(chosen(wanted, task), expected, "{wanted}");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_chosen() {
        let with = |memory: u64| Task { memory: Some(memory << 20), ..TASK };
        for (wanted, memory, expected) in [
            ("auto", 100, "multi-2x4 Whole"),
            ("auto", 70, "multi-2x4 Split"),
            ("auto", 60, "multi-2x3 Split"),
            ("auto", 30, "multi-2 Whole"),
            ("auto", 17, "multi-1 Whole"),
        ] {
            assert_eq!(chosen(wanted, with(memory)), expected, "{memory}");
        }
        assert!(
            chosen("auto", with(1))
                .contains("no such index over 1048576 signatures fits into 1.0 MB")
        );
        assert!(
            chosen("multi-2x4", with(50)).contains("multi-2x4 takes 64.0 MB"),
            "{}",
            chosen("multi-2x4", with(50))
        );
        assert!(chosen("permuted", with(50)).contains("permuted-16 takes 196 MB"));
    }

    #[test]
    fn unknown_names_are_told_what_there_is() {
        let problem = |text: &str| text.parse::<Wanted>().unwrap_err();
        assert_eq!(
            problem("tree"),
            "there are auto, scan, pieces, blocks, multi, psm, permuted, graph, issl, sql"
        );
        assert!(problem("multi-2y4").contains("multi-3 or multi-2x4"));
        assert!(problem("psm-1").contains("psm-1-23"));
        assert!(problem("graph-62-x").contains("graph-62-96"));
        assert!(problem("issl-40").contains("8 to 28 bits"));
        assert!(problem("permuted-0").contains("permuted-16 or permuted-16x512"));
    }
}
