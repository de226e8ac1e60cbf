//! `lookalike dedup`.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use clap::Args;
use lookalike::{
    Document, Recipe, Signer,
    cluster::Linkage,
    dedup::{
        AlikePair, Decision, Dedup as Engine, Deduplicated, Dial, Limits,
        audit::{ClusterAudit, audit_cluster, audit_sources},
        sketches::SketchFile,
    },
    recipe::SketchSettings,
    verify::Verify,
};
use rayon::prelude::*;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::{Global, Outcome};
use crate::{
    dedup::{
        elsewhere::Elsewhere,
        estimate::estimate,
        groups::Groups,
        html,
        keep::Keep,
        listing::PairFile,
        parts::{merge_parts, part_name, parts_in},
        report::{ClusterReport, Example, Report, SourceReport, Stage, peak_memory},
        sign::{SignStage, SignedInput},
        work::{Spool, Work, clear_output},
        write::{Mode, WriteStage, output_name, planned, rounded},
    },
    failure::hinted,
    input::{self, InputArgs, ReadArgs, Sources},
    output::{PairFormat, Steps, check_output, counted, print, say},
    size,
};

/// A source of fewer documents is no source that somebody would miss.
const LEAST_OF_A_SOURCE: u64 = 10;

const EXPERTS: &str = "For experts";
const SAFETY: &str = "Safety";

/// Remove near-duplicates from a collection
///
/// Two documents are near-duplicates if they have enough word 3-grams in common: at least --similarity of
/// all that either has. Of each cluster of near-duplicates one document is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike dedup corpus/ -o out
  lookalike dedup crawl.jsonl.zst -o out --similarity 0.8 --keep longest
  lookalike dedup pages.parquet --text-field body --id-field url -o out --mode annotate
  lookalike dedup corpus/ --pairs pairs.csv --similarity 0.5
  lookalike dedup corpus/ -o out --dry-run")]
pub(crate) struct Dedup {
    #[command(flatten)]
    input: InputArgs,

    /// The folder to write to: kept/, removed/, report.json and report.html
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,

    /// From which similarity on documents are near-duplicates: the Jaccard coefficient of their sets of
    /// word 3-grams, from 0.1 to 1
    #[arg(long, value_name = "S", default_value_t = 0.7)]
    similarity: f64,

    /// Which of a cluster is kept: first, longest, newest:FIELD, max:FIELD, min:FIELD, prefer:FIELD=VALUE,VALUE
    #[arg(long, value_name = "RULE", default_value = "first")]
    keep: Keep,

    /// What is written: kept and removed documents, all documents with their clusters, or only ids
    #[arg(long, value_enum, default_value_t = Mode::Remove)]
    mode: Mode,

    /// Write all pairs of near-duplicates to this file: .csv, .jsonl or .parquet
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,

    /// Write the clusters to this file, as JSON lines
    #[arg(long, value_name = "FILE.jsonl")]
    clusters: Option<PathBuf>,

    /// Remove also what looks like a document signed earlier (recipe minhash-256), by its signature alone
    #[arg(long, value_name = "FILE.sig", num_args = 1)]
    against: Vec<PathBuf>,

    /// How much memory to use; what does not fit waits on disk
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size::parse)]
    memory: u64,

    /// Name documents by file and line, whatever ids they have
    #[arg(long)]
    by_place: bool,

    /// Sign only part I of N of the input, on this machine; the run without it takes all parts together
    #[arg(long, value_name = "I/N", value_parser = part)]
    part: Option<(usize, usize)>,

    /// Only estimate: documents, pairs, memory, disk and time
    #[arg(long)]
    dry_run: bool,

    /// Replace the result of an earlier run in the output folder
    #[arg(long)]
    overwrite: bool,

    /// Drop the unfinished work of an earlier run and begin again
    #[arg(long)]
    restart: bool,

    /// The field that tells where a document comes from; without it, its file does
    #[arg(long, value_name = "FIELD", default_value = "source", help_heading = SAFETY)]
    source_field: String,

    /// Stop before anything is written if a source would lose more than this share of its documents
    #[arg(long, value_name = "PERCENT", default_value = "50%", value_parser = percent, help_heading = SAFETY)]
    max_loss: f64,

    /// Stop before anything is written if a cluster has more documents
    #[arg(long, value_name = "N", help_heading = SAFETY)]
    max_cluster: Option<usize>,

    /// Compare so many documents with all others to see whether the rest was right; up to 1000 if not said
    #[arg(long, value_name = "N", help_heading = SAFETY)]
    check: Option<usize>,

    /// Write all the same
    #[arg(long, help_heading = SAFETY)]
    force: bool,

    /// The distance up to which signatures of candidates may differ, in place of what follows from --similarity
    #[arg(long, value_name = "BITS", help_heading = EXPERTS)]
    radius: Option<u32>,

    /// Which documents make a cluster: those alike the keeper (star), all alike each other (complete), or
    /// connected by alike pairs (components)
    #[arg(long, value_name = "LINKAGE", default_value = "star", help_heading = EXPERTS)]
    linkage: Linkage,

    /// What decides: none, jaccard:S, containment:S or cosine:S; jaccard at --similarity if not said
    #[arg(long, value_name = "CHECK", help_heading = EXPERTS)]
    verify: Option<Verify>,
}

/// What tells whether a file is still the same.
fn fingerprint(path: &Path) -> Value {
    let about = path.metadata().ok();
    let changed = about.as_ref().and_then(|about| about.modified().ok());
    json!([path, about.map(|about| about.len()), changed.map(|time| format!("{time:?}"))])
}

/// A share as `50%`, `50` or `0.5`.
fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let share = match number {
        Some(number) if text.ends_with('%') || number > 1.0 => number / 100.0,
        Some(number) => number,
        None => f64::NAN,
    };
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err("a share is written as 50% or 0.5".into()),
    }
}

/// A part as `2/8`, counted from 1.
fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((i, n)) if 1 <= i && i <= n && n <= 10_000 => Ok((i, n)),
        _ => Err("a part is written as 2/8".into()),
    }
}

/// One run.
struct Run<'a> {
    args: &'a Dedup,
    global: &'a Global,
    dial: Dial,
    signer: Signer,
    stages: Vec<Stage>,
}

impl Dedup {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let recipe = Recipe::named("minhash-256").context("the recipe of dedup")?;
        let mut dial = Dial::new(self.similarity, recipe.signature.bits, self.verify)?;
        dial.radius = self.radius.unwrap_or(dial.radius);
        let signer = Signer::new(recipe, None)?;
        Run { args: &self, global, dial, signer, stages: Vec::new() }.run()
    }

    /// The fields that are needed of documents besides text and id.
    fn fields(&self) -> Vec<String> {
        let mut fields = vec![self.source_field.clone()];
        fields.extend(self.keep.field().map(str::to_owned));
        fields.dedup();
        fields
    }
}

/// Which fields of the documents are wanted, besides text and id.
enum Wanted {
    All,
    Fields(Vec<String>),
    Nothing,
    /// Nothing, and documents are named by their place.
    Places,
}

impl Run<'_> {
    /// How documents are read.
    fn read(&self) -> ReadArgs {
        let read = self.args.input.read.clone();
        match self.args.by_place {
            true => ReadArgs { by_place: true, id_field: None, ..read },
            false => read,
        }
    }

    /// The input, to be read once more.
    fn sources(&self, spool: &Spool, wanted: Wanted) -> anyhow::Result<Sources> {
        let (inputs, read) = (&self.args.input.inputs, &self.read());
        let sources = match wanted {
            Wanted::All => Sources::open(inputs, read, true)?,
            Wanted::Nothing => Sources::open(inputs, read, false)?,
            Wanted::Places => Sources::open_by_place(inputs, read)?,
            Wanted::Fields(fields) => Sources::open_with_fields(inputs, read, fields)?,
        };
        Ok(match spool.path() {
            Some(path) => sources.with_standard_input(path),
            None => sources,
        })
    }

    fn run(mut self) -> anyhow::Result<Outcome> {
        let args = self.args;
        let spool = Spool::of(&args.input.inputs, args.output.as_deref())?;
        let sources = self.sources(&spool, Wanted::Fields(args.fields()))?;
        if args.dry_run {
            return self.estimate(&sources);
        }
        self.check_outputs(&sources)?;
        let settings = self.settings(&sources)?;
        let work = Work::open(args.output.as_deref(), &settings, args.restart)?;
        if let Some(output) = args.output.as_deref().filter(|_| !work.resumed) {
            clear_output(output, args.overwrite).inspect_err(|_| work.forget())?;
        }
        if let Some((i, n)) = args.part {
            return self.sign_part(&sources, &work, (i - 1, n));
        }
        let (sketches, input, outcome) = self.sign(&sources, &work)?;
        // What was signed with these ids is of no use.
        self.check_ids(&sketches, &spool).inspect_err(|_| work.forget())?;
        self.check_fields(&input).inspect_err(|_| work.forget())?;
        let elsewhere = self.elsewhere(&sketches)?;
        let mut decided = self.decide(&sketches, &elsewhere, &work)?;
        elsewhere.decide(&mut decided.decisions);
        let groups = Groups::new(&decided.decisions);
        let mut report = self.report(&sketches, &input, &decided, &groups, settings);
        if !report.alarms.is_empty() && !args.force && args.output.is_some() {
            return Err(alarmed(&report.alarms));
        }
        if let Some(path) = &args.clusters {
            write_clusters(path, &sketches, &decided.decisions, &groups)?;
        }
        if let Some(output) = &args.output {
            let ids = &elsewhere.ids;
            self.write(output, &sketches, &decided.decisions, &groups, ids, &spool)?;
            report.examples = self.examples(&sketches, &decided.decisions, &spool)?;
        }
        report.stages = std::mem::take(&mut self.stages);
        report.peak_memory = peak_memory();
        if let Some(output) = &args.output {
            let text = serde_json::to_string_pretty(&report)?;
            let path = output.join("report.json");
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            html::write(&report, &output.join("report.html"))?;
        }
        work.done()?;
        self.tell(&report)?;
        Ok(outcome)
    }

    /// What it would take; nothing is written.
    fn estimate(&self, sources: &Sources) -> anyhow::Result<Outcome> {
        let threads = self.global.threads();
        let estimate = estimate(sources, &self.signer, self.dial, self.args.memory, threads)?;
        match self.global.json() {
            true => print(serde_json::to_string(&estimate)?)?,
            false => print(estimate.summary())?,
        }
        Ok(Outcome::Done)
    }

    /// Refuses to write over what is read, and checks what will be needed late.
    fn check_outputs(&self, sources: &Sources) -> anyhow::Result<()> {
        let args = self.args;
        if let Some(output) = &args.output
            && let Some(file) = sources.file_in(output)
        {
            let problem =
                format!("{file} is read, but it is in {}, which is written", output.display());
            return Err(hinted(problem, "name another folder with `-o`"));
        }
        for path in [&args.pairs, &args.clusters].into_iter().flatten() {
            check_output(path, sources)?;
        }
        args.pairs.as_deref().map(PairFormat::of).transpose()?;
        if let Some(pipe) = sources.pipe() {
            let problem = format!("{pipe} is a pipe, but the input is read twice");
            return Err(hinted(problem, "give it on standard input, with `-` as its name"));
        }
        if args.output.is_some() && args.mode != Mode::Ids {
            check_names(sources)?;
        }
        for path in &args.against {
            Elsewhere::open(path, self.signer.recipe())?;
        }
        Ok(())
    }

    /// Refuses a rule for keepers that applies to no document: it would be that of the first.
    fn check_fields(&self, input: &SignedInput) -> anyhow::Result<()> {
        let args = self.args;
        let Some(field) = args.keep.field() else { return Ok(()) };
        if input.documents == 0 || input.without_field < input.documents {
            return Ok(());
        }
        Err(hinted(
            format!(
                "no document has a field `{field}` by which `--keep {}` could choose",
                args.keep
            ),
            "numbers are wanted for max and min, numbers or dates as 2024-05-31 for newest",
        ))
    }

    /// All that the result depends on: work with other settings is not gone on with.
    fn settings(&self, sources: &Sources) -> anyhow::Result<Value> {
        let args = self.args;
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "input": sources.fingerprint(),
            "by_place": args.by_place,
            "fields": {
                "text": args.input.read.text_field, "id": args.input.read.id_field,
                "source": args.source_field, "lines": args.input.read.lines,
            },
            "similarity": args.similarity,
            "verify": self.dial.verify.to_string(),
            "keep": args.keep.to_string(),
            "linkage": args.linkage.to_string(),
            "recipe": self.signer.recipe().hash(),
            "pairs": args.pairs,
            "radius": self.dial.radius,
            "against": args.against.iter().map(|path| fingerprint(path)).collect::<Vec<_>>(),
        }))
    }

    fn stage<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> anyhow::Result<(T, bool)>,
    ) -> anyhow::Result<T> {
        let started = Instant::now();
        let (result, resumed) = work(self)?;
        let seconds = started.elapsed().as_secs_f64();
        self.stages.push(Stage { name, seconds, peak_memory: peak_memory(), resumed });
        Ok(result)
    }

    fn sign(
        &mut self,
        sources: &Sources,
        work: &Work,
    ) -> anyhow::Result<(SketchFile, SignedInput, Outcome)> {
        let path = work.file("sketches");
        self.stage("sign", |run| {
            let before = work.resumed.then(|| SketchFile::open(&path).ok()).flatten();
            let resumed = before.is_some();
            let (sketches, outcome) = match before {
                Some(sketches) => (sketches, None),
                None => {
                    let parts = parts_in(work.folder())?;
                    let outcome = match parts.is_empty() {
                        true => Some(run.sign_to(sources, &path, (0, 1))?.1),
                        false => {
                            merge_parts(&parts, &path)?;
                            None
                        }
                    };
                    (SketchFile::open(&path)?, outcome)
                }
            };
            let input: SignedInput = serde_json::from_value(sketches.about.clone())?;
            let skipped = if input.skipped > 0 { Outcome::Skipped } else { Outcome::Done };
            Ok(((sketches, input, outcome.unwrap_or(skipped)), resumed))
        })
    }

    fn sign_to(
        &self,
        sources: &Sources,
        path: &Path,
        part: (usize, usize),
    ) -> anyhow::Result<(SignedInput, Outcome)> {
        let args = self.args;
        let sketch = SketchSettings {
            bands: Some(self.dial.bands),
            weights: self.dial.verify.needs_weights(),
        };
        let stage = SignStage {
            signer: &self.signer,
            sketch,
            keep: &args.keep,
            source_field: &args.source_field,
            id_field: &self.id_field(),
            part,
        };
        stage.run(sources, args.input.read.on_error, path, self.global)
    }

    /// The field that ids come from, and go to.
    fn id_field(&self) -> String {
        self.args.input.read.id_field.clone().unwrap_or_else(|| "id".into())
    }

    /// Signs a part of the input, and that is all.
    fn sign_part(
        &self,
        sources: &Sources,
        work: &Work,
        (part, parts): (usize, usize),
    ) -> anyhow::Result<Outcome> {
        if self.args.output.is_none() {
            return Err(hinted("a part has to be kept somewhere", "name a folder with `-o`"));
        }
        let path = work.file(&part_name(part, parts));
        let (input, outcome) = self.sign_to(sources, &path, (part, parts))?;
        say(self.global, || {
            let documents = counted(input.documents, "document");
            format!(
                "part {} of {parts}: {documents} signed; run without --part when all are",
                part + 1
            )
        });
        Ok(outcome)
    }

    /// What an earlier collection has already.
    fn elsewhere(&self, sketches: &SketchFile) -> anyhow::Result<Elsewhere> {
        let mut found = Elsewhere::default();
        let bits = sketches.bits();
        // Nothing but the distance decides, so it must not be generous.
        let radius = Dial::new(self.args.similarity, bits, Some(Verify::None))?.radius;
        for path in &self.args.against {
            found.find(sketches, path, self.signer.recipe(), radius, self.args.memory)?;
        }
        Ok(found)
    }

    fn decide(
        &mut self,
        sketches: &SketchFile,
        elsewhere: &Elsewhere,
        work: &Work,
    ) -> anyhow::Result<Deduplicated> {
        let path = work.file("decisions");
        self.stage("decide", |run| {
            if let Some(decided) = work.resumed.then(|| Deduplicated::open(&path).ok()).flatten() {
                return Ok((decided, true));
            }
            let limits = Limits {
                memory: run.args.memory as usize,
                check: run.args.check,
                left_out: elsewhere.ids.keys().copied().collect(),
            };
            let engine = Engine::new(sketches, run.dial, limits)?;
            let mut steps = Steps::new(run.global);
            let mut progress =
                |stage: &'static str, done: usize, all: usize| steps.show(stage, done, all);
            let mut file = run.args.pairs.as_deref().map(PairFile::create).transpose()?;
            let decided = match &mut file {
                None => engine.run(run.args.linkage, work.folder(), None, &mut progress)?,
                Some(file) => {
                    let mut failure = None;
                    let mut each = |pair: AlikePair| {
                        let (a, b) = (sketches.id(pair.a as usize), sketches.id(pair.b as usize));
                        file.push(&a, &b, pair.distance, pair.similarity).map_err(|error| {
                            // The engine is told to stop, the user the whole story.
                            failure = Some(error);
                            lookalike::Error::io(
                                Path::new("pairs"),
                                std::io::Error::other("stopped"),
                            )
                        })
                    };
                    let decided =
                        engine.run(run.args.linkage, work.folder(), Some(&mut each), &mut progress);
                    failure.map_or(Ok(()), Err)?;
                    decided?
                }
            };
            steps.finish();
            file.map_or(Ok(()), PairFile::finish)?;
            decided.save(&path)?;
            Ok((decided, false))
        })
    }

    fn write(
        &mut self,
        output: &Path,
        sketches: &SketchFile,
        decisions: &[Decision],
        groups: &Groups,
        elsewhere: &BTreeMap<u32, String>,
        spool: &Spool,
    ) -> anyhow::Result<()> {
        self.stage("write", |run| {
            let args = run.args;
            let sources = run.sources(spool, Wanted::All)?;
            let stage = WriteStage {
                sketches,
                decisions,
                groups,
                elsewhere,
                mode: args.mode,
                folder: output,
                root: sources.root(),
                fields: (args.input.read.text_field.clone(), run.id_field()),
                plan: planned(sketches.records()),
            };
            stage.run(&sources, run.global)?;
            Ok(((), false))
        })
    }

    fn report(
        &self,
        sketches: &SketchFile,
        input: &SignedInput,
        decided: &Deduplicated,
        groups: &Groups,
        settings: Value,
    ) -> Report {
        let decisions = &decided.decisions;
        let chains: BTreeMap<u32, u32> = decided.chains.iter().copied().collect();
        let audit = |rows: &Vec<u32>| {
            let chain = chains.get(&rows[0]).copied();
            audit_cluster(sketches, decisions, self.dial.verify, rows, chain)
        };
        // Nobody reads an audit of what is not written.
        let audited = if self.is_reported() { &groups.members[..] } else { &[] };
        let mut audits: Vec<ClusterAudit> = audited.par_iter().map(audit).collect();
        let named = |audit: &ClusterAudit| {
            let id = sketches.id(audit.keeper as usize).into_owned();
            ClusterReport::new(id, audit, &input.sources)
        };
        let mut sizes = BTreeMap::new();
        audits.iter().for_each(|audit| {
            *sizes.entry(audit.size.next_power_of_two()).or_insert(0) += 1;
        });
        audits.sort_by(|a, b| a.least.total_cmp(&b.least).then(a.keeper.cmp(&b.keeper)));
        let loosest: Vec<ClusterReport> = audits.iter().take(20).map(named).collect();
        audits.sort_by_key(|audit| (std::cmp::Reverse(audit.size), audit.keeper));
        let largest: Vec<ClusterReport> = audits.iter().take(20).map(named).collect();

        let removed = || decisions.iter().enumerate().filter(|(row, d)| d.keeper as usize != *row);
        let mut distances = vec![0; self.dial.radius as usize + 1];
        let mut similarities = vec![0; 101];
        let (mut removed_bytes, mut copies, mut number, mut elsewhere) = (0, 0, 0, 0);
        for (row, decision) in removed() {
            number += 1;
            let at = (decision.distance as usize).min(distances.len() - 1);
            distances[at] += 1;
            similarities[(decision.similarity * 100.0).floor() as usize] += 1;
            removed_bytes += sketches.facts()[row].text_bytes;
            let set = |row: usize| sketches.facts()[row].set_hash;
            let here = decision.keeper != Decision::ELSEWHERE;
            elsewhere += u64::from(!here);
            copies += u64::from(here && set(row) == set(decision.keeper as usize));
        }
        let sources = audit_sources(sketches, decisions);
        let mut sources: Vec<SourceReport> = (input.sources.iter().zip(sources))
            .map(|(source, audit)| SourceReport { source: source.clone(), audit })
            .collect();
        sources.sort_by(|a, b| b.audit.removed.cmp(&a.audit.removed).then(a.source.cmp(&b.source)));
        let mut report = Report {
            program: format!("lookalike {}", env!("CARGO_PKG_VERSION")),
            settings,
            dial: self.dial,
            documents: input.documents,
            kept: input.documents - number,
            removed: number,
            copies,
            unsigned: input.unsigned,
            without_field: input.without_field,
            elsewhere,
            skipped: input.skipped,
            text_bytes: input.text_bytes,
            removed_bytes,
            clusters: groups.members.len(),
            checked: decided.checked.clone(),
            counts: decided.counts.clone(),
            max_loss: self.args.max_loss,
            alarms: Vec::new(),
            sources,
            largest,
            loosest,
            sizes: sizes.into_iter().collect(),
            distances,
            similarities,
            examples: Vec::new(),
            stages: Vec::new(),
            peak_memory: None,
        };
        report.alarms = self.alarms(&report);
        report.sources.truncate(100);
        report
    }

    fn is_reported(&self) -> bool {
        self.args.output.is_some() || self.global.json()
    }

    /// What should make somebody look before documents are removed.
    fn alarms(&self, report: &Report) -> Vec<String> {
        let mut alarms = Vec::new();
        let most = self.args.max_loss;
        let large = |source: &&SourceReport| source.audit.documents >= LEAST_OF_A_SOURCE;
        for source in
            report.sources.iter().filter(large).filter(|source| source.audit.loss() > most)
        {
            let (lost, all) = (source.audit.removed, source.audit.documents);
            let share = 100.0 * source.audit.loss();
            alarms.push(format!(
                "`{}` would lose {lost} of {all} documents ({share:.0}%)",
                source.source
            ));
        }
        let largest = report.largest.first();
        if let (Some(most), Some(largest)) = (self.args.max_cluster, largest)
            && largest.size > most
        {
            let size = largest.size;
            alarms.push(format!("the cluster of `{}` has {size} documents", largest.id));
        }
        alarms
    }

    /// Some removed documents with their keepers, from the beginning of the input: nobody waits for examples.
    fn examples(
        &self,
        sketches: &SketchFile,
        decisions: &[Decision],
        spool: &Spool,
    ) -> anyhow::Result<Vec<Example>> {
        const CHUNKS: usize = 64;
        const EXAMPLES: usize = 12;
        let plan = planned(sketches.records());
        let rows = plan.get(CHUNKS).map_or(sketches.len(), |chunk| chunk.first_row() as usize);
        let near = |row: &usize| {
            let decision = decisions[*row];
            decision.keeper as usize != *row
                && (decision.keeper as usize) < rows
                && decision.similarity < 1.0
        };
        let candidates: Vec<usize> = (0..rows).filter(near).collect();
        let step = candidates.len().div_ceil(EXAMPLES).max(1);
        let chosen: Vec<usize> = candidates.into_iter().step_by(step).collect();
        let mut texts: BTreeMap<usize, Option<Document>> = BTreeMap::new();
        for &row in &chosen {
            texts.insert(row, None);
            texts.insert(decisions[row].keeper as usize, None);
        }
        let sources = self.sources(spool, Wanted::Nothing)?;
        let wanted: Vec<bool> = (0..plan.len().min(CHUNKS))
            .map(|number| {
                let first = plan[number].first_row() as usize;
                let end =
                    plan.get(number + 1).map_or(sketches.len(), |chunk| chunk.first_row() as usize);
                texts.range(first..end).next().is_some()
            })
            .collect();
        let work = |number: usize, chunk| match wanted.get(number) {
            Some(true) => (number, sources.parse(chunk)),
            _ => (number, Vec::new()),
        };
        input::run(&sources, self.global.threads(), work, |(number, records)| {
            let Some(chunk) = plan.get(number).filter(|_| number < CHUNKS) else {
                return Ok(ControlFlow::Break(()));
            };
            let first = chunk.first_row() as usize;
            for (i, document) in records.into_iter().flatten().enumerate() {
                if let Some(text) = texts.get_mut(&(first + i)) {
                    *text = Some(document);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let example = |&row: &usize| {
            let Decision { keeper, distance, similarity } = decisions[row];
            let (removed, kept) =
                (texts.get(&row)?.as_ref()?, texts.get(&(keeper as usize))?.as_ref()?);
            Some(Example {
                removed: removed.id.clone(),
                keeper: kept.id.clone(),
                distance,
                similarity: rounded(similarity),
                removed_text: shortened(&removed.text),
                keeper_text: shortened(&kept.text),
            })
        };
        Ok(chosen.iter().filter_map(example).collect())
    }

    /// Refuses documents that share an id: nobody could tell which of them was removed.
    fn check_ids(&self, sketches: &SketchFile, spool: &Spool) -> anyhow::Result<()> {
        let mut hashes: Vec<(u64, u32)> = (0..sketches.len() as u32)
            .into_par_iter()
            .map(|row| (xxh3_64(sketches.id(row as usize).as_bytes()), row))
            .collect();
        hashes.par_sort_unstable();
        let same = |pair: &&[(u64, u32)]| {
            let id = |i: usize| sketches.id(pair[i].1 as usize);
            pair[0].0 == pair[1].0 && id(0) == id(1)
        };
        let twice: Vec<&[(u64, u32)]> = hashes.windows(2).filter(same).collect();
        let Some(first) = twice.iter().min_by_key(|pair| pair[0].1) else { return Ok(()) };
        let rows = [first[0].1 as usize, first[1].1 as usize];
        let places = self
            .places(spool, rows)
            .unwrap_or_else(|_| rows.map(|row| format!("document {}", row + 1)));
        let others = match twice.len() - 1 {
            0 => String::new(),
            others => format!(", and {} more", counted(others as u64, "document")),
        };
        Err(hinted(
            format!(
                "two documents have the id `{}`: {} and {}{others}",
                sketches.id(rows[0]),
                places[0],
                places[1]
            ),
            "ids must tell documents apart: choose another field with `--id-field`, or `--by-place` names them by file and line",
        ))
    }

    /// Where two documents are.
    fn places(&self, spool: &Spool, rows: [usize; 2]) -> anyhow::Result<[String; 2]> {
        let sources = self.sources(spool, Wanted::Places)?;
        let mut found = [String::new(), String::new()];
        let mut row = 0;
        input::run(
            &sources,
            1,
            |_, chunk| sources.parse(chunk),
            |records| {
                for document in records.into_iter().flatten() {
                    if let Some(i) = rows.iter().position(|&wanted| wanted == row) {
                        found[i] = document.id;
                    }
                    row += 1;
                }
                Ok(if row > rows[0].max(rows[1]) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            },
        )?;
        Ok(found)
    }

    fn tell(&self, report: &Report) -> anyhow::Result<()> {
        if self.global.json() {
            print(serde_json::to_string(&report)?)?;
        }
        say(self.global, || self.summary(report));
        Ok(())
    }

    fn summary(&self, report: &Report) -> String {
        let Report { documents, kept, removed, copies, .. } = report;
        let share = 100.0 * *removed as f64 / (*documents).max(1) as f64;
        let mut text = format!(
            "{removed} of {} {}removed ({share:.1}%): {copies} with the same words, {} near-duplicates; {kept} kept",
            counted(*documents, "document"),
            if self.args.output.is_some() { "" } else { "would be " },
            removed - copies,
        );
        text += &format!(
            "\n{} of text removed, {} of near-duplicates at {} or more alike",
            size::display(report.removed_bytes),
            counted(report.clusters as u64, "cluster"),
            self.args.similarity
        );
        let checked = &report.checked;
        if let Some(recall) = checked.recall {
            text += &format!(
                "\nchecked: of {} compared with all others, {} have near-duplicates; {:.1}% of these are found",
                counted(checked.documents as u64, "document"),
                checked.with_pairs,
                100.0 * recall,
            );
            text +=
                &format!("; {} of {} kept are left with one", checked.left_behind, checked.kept);
        }
        if report.elsewhere > 0 {
            text += &format!(
                "\nof these, {} for their signatures are near those of `--against`; texts were not compared",
                counted(report.elsewhere, "document")
            );
        }
        if report.without_field > 0 {
            text += &format!(
                "\nkept last of their clusters, without what `--keep {}` looks at: {}",
                self.args.keep,
                counted(report.without_field, "document")
            );
        }
        if report.unsigned > 0 {
            text += &format!(
                "\nkept without a look, for they have no words: {}",
                counted(report.unsigned, "document")
            );
        }
        for alarm in &report.alarms {
            text += &format!("\nalarm: {alarm}");
        }
        let seconds: f64 = report.stages.iter().map(|stage| stage.seconds).sum();
        if seconds >= 1.0 {
            let stages: Vec<String> = report
                .stages
                .iter()
                .map(|stage| format!("{} {:.1} s", stage.name, stage.seconds))
                .collect();
            text += &format!(
                "\n{seconds:.1} s ({}): {:.0} documents a second, {} of memory at most",
                stages.join(", "),
                *documents as f64 / seconds,
                report.peak_memory.map_or("?".into(), size::display),
            );
        }
        if let Some(output) = &self.args.output {
            text += &format!("\n{}: see report.html", output.display());
        }
        text
    }
}

/// The start of a long text.
fn shortened(text: &str) -> String {
    const MOST: usize = 2000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Refuses inputs that would be written to one and the same file.
fn check_names(sources: &Sources) -> anyhow::Result<()> {
    let root = sources.root();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for file in sources.names() {
        let name = output_name(&root, &file);
        if let Some(other) = names.insert(name.clone(), file.clone()) {
            let problem = format!("{other} and {file} would both be written as {name}");
            return Err(hinted(
                problem,
                "deduplicate the folder that they are in, or rename one of them",
            ));
        }
    }
    Ok(())
}

fn alarmed(alarms: &[String]) -> anyhow::Error {
    let shown = alarms.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    let more = alarms.len().saturating_sub(5);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    hinted(
        format!("nothing was written: {shown}{more}"),
        "look at the clusters (`--clusters FILE`, without -o), then raise `--max-loss` or `--max-cluster`, or say `--force`",
    )
}

fn write_clusters(
    path: &Path,
    sketches: &SketchFile,
    decisions: &[Decision],
    groups: &Groups,
) -> anyhow::Result<()> {
    use std::io::Write;
    let name = || path.display().to_string();
    let file = lookalike::partial::Partial::create(path).with_context(name)?;
    let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
    for (number, rows) in groups.members.iter().enumerate() {
        for &row in rows {
            let Decision { keeper, distance, similarity } = decisions[row as usize];
            let line = json!({
                "id": sketches.id(row as usize), "cluster": number, "keeper": sketches.id(keeper as usize),
                "distance": distance, "similarity": rounded(similarity),
            });
            writeln!(out, "{line}").with_context(name)?;
        }
    }
    out.into_inner()
        .map_err(|error| error.into_error())
        .with_context(name)?
        .complete()
        .with_context(name)
}
