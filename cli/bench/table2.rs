//! The whole run: the workload, each method in turn, and what they are compared with.

use std::time::{Duration, Instant};

use lookalike::Signatures;
use lookalike_thesis::{bphs::Bphs, workload::Workload};
use rayon::ThreadPoolBuilder;

use super::{
    assemble::results,
    close,
    contenders::{Contender, Form, Spec, bphs, contenders, psm_in_thesis_form},
    growth::growth,
    limit::limit,
    lines::lines,
    measure::{Chunk, Measured, Meter, Question, RADIUS, Subject, chunks},
    results::{Group, Lines, Results, Unbatched, WeakRow},
    subjects::{InThesisForm, OneByOne, Ours, PROBES_ALL, PROBES_FIRST},
};

/// A pass over the queries ends with the chunk that takes it past this: rates are what counts.
const BUDGET: Duration = Duration::from_secs(10);
/// The same for each size of the growth.
const GROWTH_BUDGET: Duration = Duration::from_secs(2);
/// How long each turn of the baseline takes.
const BASELINE_SECONDS: f64 = 0.5;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) rows: usize,
    pub(crate) queries: usize,
    pub(crate) seed: u64,
    pub(crate) repeats: usize,
    pub(crate) threads: usize,
}

/// Measures everything; `tell` hears how far it is. Tables are built on all cores and searched with as many threads as
/// the setup says.
pub(crate) fn run(setup: &Setup, tell: &dyn Fn(String)) -> anyhow::Result<Results> {
    let pool = ThreadPoolBuilder::new().num_threads(setup.threads).build()?;
    let meter = Meter { pool: &pool, repeats: setup.repeats, budget: BUDGET };
    let start = Instant::now();
    let mut workload = Workload::new(setup.rows, setup.queries, setup.seed);
    let stored = Signatures::from_words(64, std::mem::take(&mut workload.stored))?;
    let chunks = chunks(&workload)?;
    tell(format!("made the workload in {:.1} s", start.elapsed().as_secs_f64()));
    let (done, looks) = methods(&stored, &chunks, &meter, tell)?;
    tell("measuring smaller sets".to_owned());
    let growth = growth(&stored, &chunks, &Meter { budget: GROWTH_BUDGET, ..meter })?;
    results(setup, &done, looks, growth)
}

/// Measures BPHS-4, and the others in turn with it.
fn methods(
    stored: &Signatures,
    chunks: &[Chunk<'_>],
    meter: &Meter<'_>,
    tell: &dyn Fn(String),
) -> lookalike::Result<(Vec<Done>, Looks)> {
    let start = Instant::now();
    let bphs = bphs(stored, 4, 1);
    let about = about_bphs("BPHS-4".to_owned(), &bphs, 16);
    let (baseline, build) = (InThesisForm::new(bphs), start.elapsed());
    let looks = Looks::default();
    let mut run = Run { stored, chunks, meter, baseline, few: chunks, looks };
    let mut done = vec![run.measure_baseline(about, build)?];
    tell(done[0].line());
    for contender in contenders(stored.len()) {
        let measured = run.measure(contender)?;
        tell(measured.line());
        done.push(measured);
    }
    Ok((done, run.looks))
}

/// What all methods share.
struct Run<'a> {
    stored: &'a Signatures,
    chunks: &'a [Chunk<'a>],
    meter: &'a Meter<'a>,
    /// BPHS-4, which stays while the others come and go.
    baseline: InThesisForm<Bphs>,
    /// What it is asked when it has its turn.
    few: &'a [Chunk<'a>],
    looks: Looks,
}

/// What a closer look at some of our indexes showed.
#[derive(Default)]
pub(super) struct Looks {
    pub(super) distinct: usize,
    /// Of the tables of the index whose answers are the truth.
    pub(super) bytes: u64,
    pub(super) lines: Lines,
    /// What the memory gives, measured next to that index: the machine may be busier later.
    pub(super) groups: Vec<Group>,
    /// The rate of that index at that time.
    pub(super) rate: f64,
    pub(super) weak_bits: Vec<WeakRow>,
    pub(super) unbatched: Vec<Unbatched>,
}

/// A method that was measured.
pub(super) struct Done {
    pub(super) about: Method,
    pub(super) build_seconds: f64,
    pub(super) all: Measured,
    pub(super) first: Measured,
    pub(super) is_truth: bool,
}

/// What is known of a method before it is asked.
pub(super) struct Method {
    pub(super) name: String,
    pub(super) form: &'static str,
    pub(super) tables: usize,
    pub(super) key_bits: u32,
    pub(super) exact: bool,
    pub(super) bytes: f64,
    pub(super) bytes_with_rows: Option<f64>,
    pub(super) note: Option<String>,
}

impl Run<'_> {
    fn measure_baseline(&mut self, about: Method, build: Duration) -> lookalike::Result<Done> {
        let all = self.meter.measure(&mut self.baseline, Question::All, self.chunks)?;
        let first = self.meter.measure(&mut self.baseline, Question::First, self.chunks)?;
        let affordable = (all.rate() * BASELINE_SECONDS) as usize;
        let few = self.chunks.iter().take_while(|chunk| chunk.first < affordable).count();
        self.few = &self.chunks[..few.max(1)];
        Ok(Done { about, build_seconds: build.as_secs_f64(), all, first, is_truth: false })
    }

    /// Builds a method, asks it both questions, and lets it go.
    fn measure(&mut self, contender: Contender) -> lookalike::Result<Done> {
        let (start, name) = (Instant::now(), contender.name);
        match contender.form {
            Form::Bphs(blocks, lead) => {
                let bphs = bphs(self.stored, blocks, lead);
                let about = about_bphs(name, &bphs, 64 * lead / blocks);
                self.ask_thesis(about, start.elapsed(), bphs)
            }
            Form::Psm => {
                let psm = psm_in_thesis_form(self.stored);
                let about = thesis(name, 1, psm.leading(), psm.bytes());
                let note = Some(format!("{PROBES_ALL} probes for all, {PROBES_FIRST} for first"));
                self.ask_thesis(Method { note, ..about }, start.elapsed(), psm)
            }
            Form::Ours(spec) => {
                let ours = Ours::new(spec.build(self.stored)?, self.stored);
                self.ask_ours(name, spec, start.elapsed(), ours)
            }
        }
    }

    fn ask_thesis(
        &mut self,
        about: Method,
        build: Duration,
        method: impl OneByOne,
    ) -> lookalike::Result<Done> {
        self.ask(about, build, &mut InThesisForm::new(method))
    }

    fn ask_ours(
        &mut self,
        name: String,
        spec: Spec,
        build: Duration,
        mut ours: Ours<'_>,
    ) -> lookalike::Result<Done> {
        let about = self.about_ours(name, &spec, &ours);
        let mut done = self.ask(about, build, &mut ours)?;
        if spec.is_asked_singly() {
            let (name, rate) = (&done.about.name, done.all.rate());
            let singly = close::unbatched(name, &ours, self.chunks, rate, self.meter)?;
            self.looks.unbatched.push(singly);
        }
        if spec.is_truth() {
            done.is_truth = true;
            self.look_closely(&mut ours)?;
        }
        Ok(done)
    }

    fn ask(
        &mut self,
        about: Method,
        build: Duration,
        subject: &mut impl Subject,
    ) -> lookalike::Result<Done> {
        let [all, first] = [Question::All, Question::First].map(|question| {
            let beside = (&mut self.baseline, self.few);
            self.meter.measure_beside(subject, question, self.chunks, beside)
        });
        let (all, first) = (all?, first?);
        Ok(Done { about, build_seconds: build.as_secs_f64(), all, first, is_truth: false })
    }

    fn about_ours(&self, name: String, spec: &Spec, ours: &Ours<'_>) -> Method {
        let (tables, a_row) = (&ours.tables, 1.0 / self.stored.len() as f64);
        let short = "keys are too short here to split rows: stored whole";
        Method {
            name,
            form: "ours",
            tables: tables.composition().layouts().len(),
            key_bits: ours.key_bits(),
            exact: tables.composition().is_exact(RADIUS),
            bytes: tables.bytes() as f64 * a_row,
            bytes_with_rows: Some((tables.bytes() + tables.row_bytes()) as f64 * a_row),
            note: spec.too_short_to_split.then(|| short.to_owned()),
        }
    }

    fn look_closely(&mut self, ours: &mut Ours<'_>) -> lookalike::Result<()> {
        self.looks.bytes = ours.tables.bytes();
        self.looks.groups = limit(self.looks.bytes, self.meter)?;
        self.looks.rate = self.meter.measure(ours, Question::All, self.chunks)?.rate();
        self.looks.weak_bits = close::weak_bits(ours, self.chunks)?;
        if let Some(chunk) = self.chunks.first() {
            ours.ask(Question::All, chunk)?;
            self.looks.lines = lines(ours, self.stored, chunk);
        }
        self.looks.distinct = ours.tables.distinct();
        Ok(())
    }
}

fn about_bphs(name: String, bphs: &Bphs, key_bits: u32) -> Method {
    let about = thesis(name, bphs.tables(), key_bits, bphs.bytes());
    Method { exact: true, ..about }
}

/// A method in the thesis' form, which is not exact unless said.
fn thesis(name: String, tables: usize, key_bits: u32, bytes: f64) -> Method {
    let (form, exact, bytes_with_rows, note) = ("thesis", false, None, None);
    Method { name, form, tables, key_bits, exact, bytes, bytes_with_rows, note }
}

impl Done {
    /// A line for those who wait.
    fn line(&self) -> String {
        let [all, first] = [&self.all, &self.first].map(|measured| measured.rate() / 1e3);
        let (name, form, build) = (&self.about.name, self.about.form, self.build_seconds);
        format!("{name} ({form}): built in {build:.1} s; {all:.0}K all, {first:.0}K first a second")
    }
}
