//! The planner: which index for which task, how long it will take, and why.
//!
//! A cost model: [`Costs`] says what a key, a line of memory and a row cost on this machine, a [`Sample`] of the rows how
//! many rows a key leads to, however skewed they are. Every composition that could do is priced, and the cheapest one
//! that fits into the memory is the plan; the others are the alternatives.

mod costs;
mod kept;
mod nearest;
mod sample;

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    iter::once,
};

use serde::Serialize;

pub use costs::{Costs, LineCost, ScanCost};
pub use nearest::{TABLES_BITS, TABLES_FROM};
pub use sample::Sample;

use crate::{
    index::{Build, Composition, Method, Shape, Step},
    probe::{RankList, count_within},
    table::{Fields, KeyLayout, Stored, WIDEST_KEY, expected_elsewhere, key_width},
};
use sample::{NearRows, WeighedPair};

/// What an index is wanted for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Rows within this radius are to be found...
    pub radius: u32,
    /// ...or the so many nearest, wherever they are.
    pub nearest: Option<usize>,
    /// How many queries come together.
    pub batch: usize,
    /// How many queries there will be in all, if an index has to be built for them first.
    pub queries: Option<u64>,
    /// The memory that the index may take, in bytes.
    pub memory: Option<u64>,
    /// The share of the rows that is to be found at least: 1 for all of them.
    pub recall: f64,
}

/// An index that would do, and what it would cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Which index.
    pub index: Choice,
    /// Whether it finds everything.
    pub exact: bool,
    /// The share of the rows that it is expected to find.
    pub expected_recall: f64,
    /// Its memory, besides the signatures.
    pub bytes: u64,
    /// The time to build it.
    pub build_seconds: f64,
    /// The time for a query.
    pub query_seconds: f64,
    /// What the time for a query is made of.
    pub work: Work,
}

impl Plan {
    /// Why it takes what it takes, of so many rows.
    pub fn why(&self, task: &Task, rows: usize) -> String {
        let Work { probes, rows: met, lines } = self.work;
        match self.index {
            Choice::Scan => {
                let bounds = match (task.queries, task.memory) {
                    (Some(queries), _) => {
                        format!(", the time to build it included, for {queries} queries")
                    }
                    (None, Some(_)) => " that fits into the memory".to_owned(),
                    (None, None) => String::new(),
                };
                let asked = task.asked();
                format!(
                    "each of the {rows} rows is compared: no index{bounds} is faster for {asked}"
                )
            }
            Choice::Graph(_) => format!(
                "a query walks along the edges of some {probes:.0} nodes and compares about {met:.0} rows; what it finds is measured when it is built"
            ),
            Choice::Tables(..) => format!(
                "a query looks up {probes:.0} keys, meets about {met:.1} rows and reads {lines:.0} lines of memory"
            ),
        }
    }
}

impl Task {
    /// What is asked for, in words.
    pub fn asked(&self) -> String {
        match self.nearest {
            Some(k) => format!("the {k} nearest"),
            None => format!("a radius of {}", self.radius),
        }
    }
}

/// An index, and how it is built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// The exhaustive scan.
    Scan,
    /// Tables.
    Tables(Method, Build),
    /// A graph of neighbors.
    Graph(Shape),
}

/// What is done for a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Work {
    /// Keys that are looked up.
    pub probes: f64,
    /// Rows that are compared.
    pub rows: f64,
    /// Lines of memory that are read at random.
    pub lines: f64,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Choice::Scan => f.write_str("scan"),
            Choice::Tables(method, _) => method.fmt(f),
            Choice::Graph(shape) => shape.fmt(f),
        }
    }
}

impl Serialize for Choice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Everything that could do the task and fits into the memory, the best first. The scan is always among them.
pub fn plans(costs: &Costs, sample: &Sample, task: &Task) -> Vec<Plan> {
    if let Some(k) = task.nearest {
        return sorted(nearest::plans(costs, sample, task, k), task);
    }
    // All rows are that near.
    let task = &Task { radius: task.radius.min(sample.bits()), ..*task };
    let pricing =
        Pricing { costs, sample, task, shares: RefCell::default(), near: OnceCell::new() };
    let plans = candidates(sample.bits(), task.radius)
        .into_iter()
        .filter_map(|method| pricing.best_build(method))
        .chain(pricing.weakest_first())
        .chain([pricing.scan()])
        .collect();
    sorted(plans, task)
}

/// The cheapest first.
fn sorted(mut plans: Vec<Plan>, task: &Task) -> Vec<Plan> {
    let total = |plan: &Plan| match task.queries {
        Some(queries) => plan.build_seconds + plan.query_seconds * queries as f64,
        None => plan.query_seconds,
    };
    plans.sort_by(|a, b| total(a).total_cmp(&total(b)));
    // Two names for the same tables are one plan.
    plans.dedup_by(|b, a| (a.bytes, a.work, a.query_seconds) == (b.bytes, b.work, b.query_seconds));
    plans
}

/// What one index would cost, whether or not it is among the best or fits into the memory, if it can be built. `build` says
/// all. Where rows may be missed, the expected recall is the share of the sample's pairs that is found, or 0 if they are
/// too few to tell.
pub fn price(
    costs: &Costs,
    sample: &Sample,
    task: &Task,
    method: Method,
    build: Build,
) -> Option<Plan> {
    let pricing =
        Pricing { costs, sample, task, shares: RefCell::default(), near: OnceCell::new() };
    let (composition, stored) = pricing.compose(method, build)?;
    let recall = pricing.recall(&composition);
    let plan = pricing.plan(&composition, stored, build, recall);
    Some(match composition.is_scanned(task.radius, sample.total()) {
        true => Plan {
            index: plan.index,
            bytes: plan.bytes,
            build_seconds: plan.build_seconds,
            ..pricing.scan()
        },
        false => plan,
    })
}

/// The methods worth a price for exact answers.
fn candidates(bits: u32, radius: u32) -> Vec<Method> {
    let pieces = Method::Pieces { slices: radius + 1 };
    let blocks = Method::Blocks { blocks: radius + 2, leading: 2 };
    let slices = (1..=radius + 1).take_while(|slices| slices * 6 <= bits);
    // With many slices, one more or less makes no difference.
    let slices = slices.filter(|&slices| slices <= 12 || slices % (slices / 8) == 0);
    // To leave parts out helps where every slice may have an error.
    let most_parts = |slices: u32| if radius + 1 >= 2 * slices { 5 } else { 1 };
    let multi = slices.flat_map(|slices| {
        (1..=most_parts(slices)).map(move |parts| Method::Multi { slices, parts })
    });
    let few_tables = |method: &Method| match *method {
        Method::Multi { slices, parts } => parts == 1 || slices * parts <= 16,
        Method::Blocks { blocks, .. } => blocks <= 6,
        Method::Pieces { slices } => slices > 12 && slices <= bits / 4,
        Method::Psm { .. } => false,
    };
    // Up to 12 slices, pieces are among the multis: own keys are what a radius below the slices needs.
    // Of two that cost the same the first is taken: a multi is exact for other radii, too.
    multi.chain([pieces, blocks]).filter(few_tables).collect()
}

/// Prices for one task.
struct Pricing<'a> {
    costs: &'a Costs,
    sample: &'a Sample,
    task: &'a Task,
    shares: RefCell<HashMap<(KeyLayout, u32), f64>>,
    near: OnceCell<NearRows>,
}

/// Fewer rows than this have keys of hardly any bits.
const FEWEST_ROWS: usize = 1 << 10;
/// Fewer pairs than this say too little about a recall.
const FEWEST_PAIRS: usize = 200;
/// With more probes than this in a table, exact answers cost less.
const MOST_PROBES: u32 = 256;
/// So many keys of a batch are on their way together.
const MANY_KEYS: f64 = 64.0;
/// So many queries go through a table together.
const TOGETHER: f64 = 64.0;
/// Who takes at most so much more time is nearly as fast.
const NEARLY: f64 = 1.1;
/// Tables whose keys are looked at in the sample; the others are like them.
const LOOKED_AT: usize = 8;

impl Pricing<'_> {
    fn rows(&self) -> f64 {
        self.sample.total() as f64
    }

    fn scan(&self) -> Plan {
        let (bits, batch) = (self.sample.bits(), self.task.batch);
        let nanoseconds = self.costs.scan(bits, self.rows(), self.task.radius, batch);
        Plan {
            index: Choice::Scan,
            exact: true,
            expected_recall: 1.0,
            bytes: 0,
            build_seconds: 0.0,
            query_seconds: nanoseconds / 1e9,
            work: Work { probes: 0.0, rows: self.rows(), lines: 0.0 },
        }
    }

    /// A method with the key width and the layout that suit it best.
    fn best_build(&self, method: Method) -> Option<Plan> {
        best(self.builds().filter_map(|build| self.tables(method, build, None)).collect())
    }

    fn builds(&self) -> impl Iterator<Item = Build> + use<> {
        let usual = key_width(self.sample.total());
        let widths = usual.saturating_sub(4)..=(usual + 2).min(WIDEST_KEY);
        widths.flat_map(|width| {
            [Stored::Whole, Stored::Lines, Stored::Split, Stored::Numbers]
                .map(|stored| Build { key_width: Some(width), stored: Some(stored) })
        })
    }

    /// Weakest bits first, with as many probes as the wanted recall takes, if pairs of the sample can tell.
    fn weakest_first(&self) -> Vec<Plan> {
        let few = self.sample.total() < FEWEST_ROWS || self.sample.near().len() < FEWEST_PAIRS;
        if self.task.recall >= 1.0 || few {
            return Vec::new();
        }
        let of = |tables: u32| {
            let plans = self.builds().filter_map(|build| {
                let (probes, recall) = self.probes_for(tables, build.key_width?)?;
                self.tables(Method::Psm { tables, probes }, build, Some(recall))
            });
            best(plans.collect())
        };
        [1, 2].into_iter().filter_map(of).collect()
    }

    /// How many probes find the wanted share of the pairs of the sample, and which share that is.
    fn probes_for(&self, tables: u32, key_width: u32) -> Option<(u32, f64)> {
        let method = Method::Psm { tables, probes: MOST_PROBES };
        let composition = method.compose(self.sample.bits(), key_width).ok()?;
        let steps = composition.steps(self.task.radius);
        let lists = steps.iter().map(|step| ProbeList::new(&composition, step)).collect::<Vec<_>>();
        let place = |pair: &WeighedPair| lists.iter().filter_map(|list| list.place(pair)).min();
        let near = self.sample.near();
        let mut places: Vec<usize> = near.iter().filter_map(place).collect();
        places.sort_unstable();
        let wanted = (self.task.recall * near.len() as f64).ceil() as usize;
        let probes = places.get(wanted.max(1) - 1)? + 1;
        let found = places.partition_point(|&place| place < probes);
        Some((probes as u32, found as f64 / near.len() as f64))
    }

    /// The tables of a method, if they can be built so.
    fn compose(&self, method: Method, build: Build) -> Option<(Composition, Stored)> {
        let bits = self.sample.bits();
        let composition = method.compose(bits, build.key_width?).ok()?;
        let stored = build.stored?;
        let fits = |layout: &KeyLayout| stored.suits(bits, layout.width());
        composition.layouts().iter().all(fits).then_some((composition, stored))
    }

    /// What tables would cost, if they can be built and fit, and are exact or have a recall.
    fn tables(&self, method: Method, build: Build, recall: Option<f64>) -> Option<Plan> {
        let (composition, stored) = self.compose(method, build)?;
        let radius = self.task.radius;
        if !composition.is_exact(radius) && recall.is_none() {
            return None;
        }
        // At most: what is allowed is kept, however many rows share a key.
        let most = composition.bytes(self.sample.total(), stored) as f64 + self.leads(stored);
        if self.task.memory.is_some_and(|memory| most > memory as f64) {
            return None;
        }
        // More keys than rows: such tables are scanned.
        if composition.probes(radius) as f64 > self.rows() {
            return None;
        }
        Some(self.plan(&composition, stored, build, recall.unwrap_or(1.0)))
    }

    fn plan(&self, composition: &Composition, stored: Stored, build: Build, recall: f64) -> Plan {
        let bytes = self.bytes(composition, stored);
        let exact = composition.is_exact(self.task.radius);
        let (nanoseconds, work) = self.query(composition, stored, bytes);
        let tables = composition.layouts().len() as f64;
        let far = self.costs.line(f64::MAX, true);
        // Lines are made of tables with offsets, one after the other.
        let lines = match stored {
            Stored::Lines => {
                composition.layouts().iter().map(|of| 2_f64.powi(of.width() as i32)).sum()
            }
            _ => 0.0,
        };
        Plan {
            index: Choice::Tables(composition.method(), build),
            exact,
            expected_recall: if exact { 1.0 } else { recall },
            bytes: bytes as u64,
            // Each row is sorted into each table: written twice, and to places that are not near.
            build_seconds: (self.rows() * (tables + 3.0) * 2.0 + lines) * far / 1e9,
            query_seconds: nanoseconds / 1e9,
            work,
        }
    }

    /// The share of the sample's pairs that is found, or 0 if they are too few to tell.
    fn recall(&self, composition: &Composition) -> f64 {
        let (near, radius) = (self.sample.near(), self.task.radius);
        if composition.is_exact(radius) {
            return 1.0;
        }
        // To look through longer lists for every pair would take too long.
        if near.len() < FEWEST_PAIRS || composition.probes(radius) > u64::from(16 * MOST_PROBES) {
            return 0.0;
        }
        let lists: Vec<ProbeList> = composition
            .steps(radius)
            .iter()
            .map(|step| ProbeList::new(composition, step))
            .collect();
        let is_found = |pair: &&WeighedPair| lists.iter().any(|list| list.place(pair).is_some());
        near.iter().filter(is_found).count() as f64 / near.len() as f64
    }

    /// The tables, and what leads from their rows to documents and from copy to copy: all that there may be.
    fn bytes(&self, composition: &Composition, stored: Stored) -> f64 {
        let tables = match stored {
            Stored::Lines => self.line_bytes(composition),
            _ => composition.bytes(self.sample.total(), stored) as f64,
        };
        tables + self.leads(stored)
    }

    /// What leads from rows of tables to documents, and from copy to copy.
    fn leads(&self, stored: Stored) -> f64 {
        self.rows() * if stored == Stored::Numbers { 4.0 } else { 8.0 }
    }

    /// Lines, and the rows that they have no room for. How many these are the most common keys say: a row's key has as many
    /// other rows as the sample's rows share keys.
    fn line_bytes(&self, composition: &Composition) -> f64 {
        let layouts = composition.layouts();
        let table = |(i, layout): (usize, &KeyLayout)| {
            let lines = 64.0 * 2_f64.powi(layout.width() as i32);
            let step = Step { table: i, errors: 0, at_most: None };
            let met = self.rows_met(composition, &step, &[step]).max(1e-9);
            // With skew, fewer keys have the rows.
            let keys = self.rows() / met;
            lines + 8.0 * keys * expected_elsewhere(met).1
        };
        layouts.iter().enumerate().map(table).sum()
    }

    /// Nanoseconds for a query, and what they are made of.
    fn query(&self, composition: &Composition, stored: Stored, bytes: f64) -> (f64, Work) {
        let costs = self.costs;
        let steps = composition.steps(self.task.radius);
        let batch = self.task.batch.max(1) as f64;
        // Keys of one query are as good as those of several.
        let many = (batch * composition.probes(self.task.radius) as f64 / MANY_KEYS).min(1.0);
        let mixed = |alone: f64, among_many: f64| alone + (among_many - alone) * many;
        let line = mixed(costs.line(bytes, false), costs.line(bytes, true));
        let mut work = Work::default();
        let mut time = costs.query + costs.call / batch;
        for i in 0..steps.len() {
            let (of_step, done) = self.step(composition, &steps, i, stored, line);
            time += costs.step / batch.min(TOGETHER) + of_step;
            work.probes += done.probes;
            work.rows += done.rows;
            work.lines += done.lines;
        }
        time += self.found_again(composition, &steps, stored) * (costs.again + 0.25 * line);
        if stored == Stored::Numbers {
            let words = f64::from(self.sample.bits().div_ceil(64));
            let row_line = costs.line(self.rows() * words * 8.0, true);
            let lines = (words / 8.0).max(1.0);
            time += work.rows * (costs.pair * (0.75 + words / 16.0) + row_line * lines);
            work.lines += work.rows * lines;
        }
        (time, work)
    }

    /// Nanoseconds for the keys of a step and the check of their rows, if a line of memory takes so many.
    fn step(
        &self,
        composition: &Composition,
        steps: &[Step],
        number: usize,
        stored: Stored,
        line: f64,
    ) -> (f64, Work) {
        let (costs, step) = (self.costs, &steps[number]);
        let probes = composition.probes_of(step) as f64;
        let rows = self.rows_met(composition, step, steps);
        let width = composition.layouts()[step.table].width();
        // What earlier own keys lead to is left out, row by row.
        let other = costs.other * own_steps(steps).min(number) as f64;
        let check = match stored {
            Stored::Whole | Stored::Lines => costs.check + other,
            Stored::Split | Stored::Numbers => costs.check_split,
        };
        // Sixteen offsets share a line. Lines have no offsets, and of most keys all rows.
        let (offsets, row_lines, probe) = match stored {
            Stored::Lines => {
                let (share, elsewhere) = expected_elsewhere(rows / probes);
                // Rows elsewhere are looked up as those behind offsets are.
                let probe = costs.lined + other + share * costs.probe;
                (probes, probes * (share + elsewhere / 8.0), probe)
            }
            _ => {
                let offsets = count_within(width.saturating_sub(4), step.errors) as f64;
                let row_lines = probes.min(rows) + rows * checked_bytes(stored) / 64.0;
                (offsets.min(probes), row_lines, costs.probe)
            }
        };
        // The lines of a long stretch are asked for together, and come sooner than as many from anywhere.
        let random_lines = row_lines.min(4.0 * probes);
        let mut time = probes * probe + row_lines * check + (offsets + random_lines) * line;
        time += (row_lines - random_lines) * 0.3 * line;
        if stored == Stored::Split {
            // Rows that are near by half have to be looked at as a whole.
            let half = self.half_near(self.task.radius.saturating_sub(step.errors));
            time += rows * half * (costs.again + line);
        }
        (time, Work { probes, rows, lines: offsets + random_lines })
    }

    /// Which share of the rows is near by 32 bits of its own.
    fn half_near(&self, radius: u32) -> f64 {
        let bits = self.sample.bits();
        let half = KeyLayout::new(once(bits.saturating_sub(32)..bits));
        // Fewer pairs are compared for keys that differ, which is enough here.
        let key = (half, radius.max(1));
        let mut shares = self.shares.borrow_mut();
        let share = |(half, radius): &(KeyLayout, u32)| self.sample.share(half, *radius);
        *shares.entry(key).or_insert_with_key(share)
    }

    /// How many times a query meets rows within the radius again that an earlier step has found, and has to find that out:
    /// where whole signatures are compared, what earlier own keys lead to is left out before.
    fn found_again(&self, composition: &Composition, steps: &[Step], stored: Stored) -> f64 {
        let near = self.near.get_or_init(|| self.sample.near_rows(self.task.radius));
        let fields: Vec<Fields> = composition.layouts().iter().map(KeyLayout::fields).collect();
        let filtered = match stored {
            Stored::Whole | Stored::Lines => own_steps(steps),
            Stored::Split | Stored::Numbers => 0,
        };
        let again = |differences: &[u64]| {
            let finds = |step: &Step| {
                let errors = step.at_most.map_or(step.errors, |_| 0);
                fields[step.table].take(differences).count_ones() <= errors
            };
            match steps[..filtered].iter().any(finds) {
                true => 0,
                false => {
                    steps[filtered..].iter().filter(|step| finds(step)).count().saturating_sub(1)
                }
            }
        };
        let again: usize = near.differences.iter().map(|pair| again(pair)).sum();
        self.rows() * near.share * again as f64 / near.differences.len().max(1) as f64
    }

    /// How many rows a step meets: as many as if keys were uniform, or more if the sample says so.
    fn rows_met(&self, composition: &Composition, step: &Step, steps: &[Step]) -> f64 {
        let layouts = composition.layouts();
        let width = layouts[step.table].width();
        let probes = composition.probes_of(step) as f64;
        let uniform = probes / 2_f64.powi(width as i32);
        // Of many steps some are looked at.
        let every = steps.len().div_ceil(LOOKED_AT);
        let table = steps[step_number(step, steps) / every * every].table;
        let layout = &layouts[table];
        let mut shares = self.shares.borrow_mut();
        // Of the likeliest keys each is like the query's own.
        let (errors, times) = match step.at_most {
            Some(_) => (0, probes),
            None => (step.errors, 1.0),
        };
        let key = (layout.clone(), errors);
        let share = *shares.entry(key).or_insert_with(|| self.sample.share(layout, errors));
        self.rows() * (share * times).max(uniform)
    }
}

/// The smallest of those that are nearly as fast as the fastest: lines for many more keys than there are rows hardly help.
fn best(plans: Vec<Plan>) -> Option<Plan> {
    let fastest = plans.iter().map(|plan| plan.query_seconds).min_by(f64::total_cmp)?;
    let fast = plans.into_iter().filter(|plan| plan.query_seconds <= NEARLY * fastest);
    fast.min_by_key(|plan| plan.bytes)
}

/// How many steps look up own keys only, before there is one that does not.
fn own_steps(steps: &[Step]) -> usize {
    steps.iter().take_while(|step| step.errors == 0 && step.at_most.is_none()).count()
}

/// The bytes of each row that are read to check it.
fn checked_bytes(stored: Stored) -> f64 {
    match stored {
        Stored::Whole | Stored::Lines => 8.0,
        // Of split rows the first half, and of few the second.
        Stored::Split | Stored::Numbers => 4.0,
    }
}

/// The order of probes of a step.
struct ProbeList {
    fields: Fields,
    positions: Vec<usize>,
    list: RankList,
}

impl ProbeList {
    fn new(composition: &Composition, step: &Step) -> Self {
        let layout = &composition.layouts()[step.table];
        ProbeList {
            fields: layout.fields(),
            positions: layout.positions().map(|bit| bit as usize).collect(),
            list: RankList::new(layout.width(), step.errors, composition.probes_of(step) as usize),
        }
    }

    /// At which probe a pair is found, from 0.
    fn place(&self, pair: &WeighedPair) -> Option<usize> {
        let margins: Vec<u8> = self.positions.iter().map(|&bit| pair.margins[bit]).collect();
        self.list.position(&margins, self.fields.take(&pair.differences) as u32)
    }
}

fn step_number(step: &Step, steps: &[Step]) -> usize {
    steps.iter().position(|other| other == step).unwrap_or(0)
}
