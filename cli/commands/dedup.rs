//! `lookalike dedup`.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf, absolute},
    time::Instant,
};

use anyhow::Context;
use clap::Args;
use lookalike::{
    Recipe, Signer,
    cluster::Linkage,
    dedup::{
        AlikePair, Decision, Dedup as Engine, Deduplicated, Dial, Keep, Limits,
        sketches::SketchFile,
    },
    recipe::SketchSettings,
    sigfile::suffix_of,
    signature::minhash::Bands,
    verify::Verify,
};
use serde_json::{Value, json};

use super::{Global, Outcome};
use crate::{
    dedup::{
        add::{AddStage, Added},
        elsewhere::{Against, Alike, Elsewhere},
        estimate::estimate,
        examples::examples,
        groups::Groups,
        html,
        ids::check_ids,
        listing::PairFile,
        parts::{merge_parts, part_name, parts_in},
        report::{Findings, Report, Stage, peak_memory},
        sign::{SignStage, SignedInput},
        work::{Spool, Work, clear_output},
        write::{Mode, WriteStage, output_name, planned},
    },
    failure::{check_radius, hinted},
    input::{InputArgs, ReadArgs, Sources},
    output::{RowFormat, Steps, check_output, counted, print, say},
    size,
};

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
  lookalike dedup today.jsonl -o new --against archive/ --add
  lookalike dedup corpus/ -o out --dry-run")]
pub(crate) struct Dedup {
    #[command(flatten)]
    input: InputArgs,

    /// The folder to write to: kept/, removed/, report.json and report.html
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,

    /// From which similarity on documents are near-duplicates: the Jaccard coefficient of their sets of
    /// word 3-grams, from 0.1 to 1
    #[arg(long, value_name = "S", default_value_t = 0.7, value_parser = parse_similarity)]
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

    /// Remove also what looks like a document of a collection, or of a file signed earlier (recipe minhash-256): by its
    /// text if the collection keeps texts, otherwise by its signature alone
    #[arg(long, value_name = "COLLECTION|FILE.sig", num_args = 1)]
    against: Vec<PathBuf>,

    /// Add what is kept to the collection of --against, when all is written
    #[arg(long, requires = "against", conflicts_with_all = ["dry_run", "part"])]
    add: bool,

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
    #[arg(long, value_name = "FIELD", default_value = SOURCE_FIELD, help_heading = SAFETY)]
    source_field: String,

    /// Stop before anything is written if a source would lose more than this share of its documents: 30%, 30 or 0.3; 1 is all
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

/// Where a document comes from, if nobody says another field.
const SOURCE_FIELD: &str = "source";

impl Dedup {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let recipe = Recipe::named("minhash-256").context("the recipe of dedup")?;
        let mut dial = Dial::new(self.similarity, recipe.signature.bits, self.verify)?;
        if let Some(radius) = self.radius {
            check_radius(radius, recipe.signature.bits)?;
            dial.radius = radius;
        }
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

/// The folder among the inputs that an output folder would be read with; hidden ones are not.
fn walked_over<'i>(inputs: &'i [String], output: &Path) -> Option<&'i String> {
    let output = absolute(output).ok()?;
    let is_hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
    inputs.iter().find(|input| {
        let folder = absolute(input).ok().filter(|folder| folder.is_dir());
        let inside = folder.as_ref().and_then(|folder| output.strip_prefix(folder).ok());
        inside.is_some_and(|inside| !inside.iter().any(is_hidden))
    })
}

/// A similarity, as 0.7 or 70%.
fn parse_similarity(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let number = number.parse::<f64>().map_err(|_| "a similarity is written as 0.7, or 70%")?;
    Ok(number / unit)
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
        let against = self.against()?;
        let settings = self.settings(&sources, &against)?;
        let work = Work::open(args.output.as_deref(), &settings, args.restart)?;
        if let Some(output) = args.output.as_deref().filter(|_| !work.resumed) {
            clear_output(output, args.overwrite, &work).inspect_err(|_| work.forget())?;
        }
        if let Some((i, n)) = args.part {
            return self.sign_part(&sources, &work, (i - 1, n));
        }
        let (sketches, input, outcome) = self.sign(&sources, &work)?;
        // What was signed with these ids is of no use.
        check_ids(&sketches, || self.sources(&spool, Wanted::Places))
            .inspect_err(|_| work.forget())?;
        self.check_fields(&input).inspect_err(|_| work.forget())?;
        let elsewhere = self.elsewhere(&sketches, &against)?;
        let mut decided = self.decide(&sketches, &elsewhere, &work)?;
        elsewhere.decide(&mut decided.decisions);
        let groups = Groups::new(&decided.decisions);
        let findings = Findings {
            sketches: &sketches,
            input: &input,
            decided: &decided,
            groups: &groups,
            dial: self.dial,
            compared: elsewhere.compared(),
            max_loss: args.max_loss,
            max_cluster: args.max_cluster,
            // Nobody reads an audit of what is not written.
            audited: args.output.is_some() || self.global.json(),
        };
        let mut report = findings.report(settings);
        if !report.alarms.is_empty() && !args.force && (args.output.is_some() || args.add) {
            return Err(alarmed(&report.alarms));
        }
        if let Some(path) = &args.clusters {
            groups.write(path, &sketches, &decided.decisions)?;
        }
        if let Some(output) = &args.output {
            let ids = &elsewhere.ids;
            self.write(output, &sketches, &decided.decisions, &groups, ids, &spool)?;
            let sources = self.sources(&spool, Wanted::Nothing)?;
            let threads = self.global.threads();
            report.examples = examples(&sketches, &decided.decisions, &sources, threads)?;
        }
        if args.add {
            report.added = Some(self.add(&sketches, &decided.decisions, against, &spool)?);
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
        let Dedup { memory, input, .. } = self.args;
        let on_error = input.read.on_error;
        let estimate = estimate(sources, &self.signer, self.dial, *memory, threads, on_error)?;
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
        if let Some(output) = &args.output
            && let Some(folder) = walked_over(&args.input.inputs, output)
        {
            let problem = format!("{} is in {folder}, which is read", output.display());
            return Err(hinted(
                problem,
                "the next run would read it as well: name another folder with `-o`",
            ));
        }
        for path in [&args.pairs, &args.clusters].into_iter().flatten() {
            check_output(path, sources)?;
        }
        if let Some(path) = &args.clusters
            && matches!(suffix_of(path).as_deref(), Some("csv" | "tsv" | "parquet"))
        {
            let problem = format!("{}: clusters are written as JSON lines", path.display());
            return Err(hinted(
                problem,
                "name it .jsonl; `lookalike cluster` makes a table of the file of `--pairs`",
            ));
        }
        args.pairs.as_deref().map(RowFormat::of).transpose()?;
        if let (Some(pairs), Some(clusters)) = (&args.pairs, &args.clusters)
            && pairs == clusters
        {
            let problem = format!("{} cannot have both pairs and clusters", pairs.display());
            return Err(hinted(problem, "name another file with `--pairs` or `--clusters`"));
        }
        if let Some(pipe) = sources.pipe() {
            let problem = format!("{pipe} is a pipe, but the input is read twice");
            return Err(hinted(problem, "give it on standard input, with `-` as its name"));
        }
        if args.output.is_some() && args.mode != Mode::Ids {
            check_names(sources)?;
        }
        Ok(())
    }

    /// What was there before, open: whatever is wrong with it is told before any work is done.
    fn against(&self) -> anyhow::Result<Vec<Against>> {
        let Dedup { against, add, .. } = self.args;
        let open = |path: &PathBuf| Against::open(path, self.signer.recipe(), *add, self.global);
        let opened: Vec<Against> = against.iter().map(open).collect::<anyhow::Result<_>>()?;
        if *add && opened.iter().filter_map(Against::collection).count() != 1 {
            let problem = "`--add` adds to one collection, and `--against` does not name just one";
            return Err(hinted(
                problem,
                "`lookalike create COLLECTION --recipe minhash-256` makes one",
            ));
        }
        Ok(opened)
    }

    /// Refuses a source that no document tells, and a rule for keepers that applies to none: it would be that of the first.
    fn check_fields(&self, input: &SignedInput) -> anyhow::Result<()> {
        let args = self.args;
        let none = |without: u64| input.documents > 0 && without == input.documents;
        if args.source_field != SOURCE_FIELD && none(input.without_source) {
            return Err(hinted(
                format!(
                    "no document has a field `{}`, which `--source-field` says",
                    args.source_field
                ),
                "without `--source-field`, a document comes from its field `source`, or from its file",
            ));
        }
        let Some(field) = args.keep.field() else { return Ok(()) };
        if !none(input.without_field) {
            return Ok(());
        }
        Err(hinted(
            format!(
                "no document has a field `{field}` with a value by which `--keep {}` could choose",
                args.keep
            ),
            "numbers are wanted for max and min, numbers or dates as 2024-05-31 for newest",
        ))
    }

    /// All that the result depends on: work with other settings is not gone on with.
    fn settings(&self, sources: &Sources, against: &[Against]) -> anyhow::Result<Value> {
        let args = self.args;
        let against: Vec<Value> =
            against.iter().zip(&args.against).map(|(old, path)| old.fingerprint(path)).collect();
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
            "keys": Bands::SCHEME,
            "pairs": args.pairs,
            "radius": self.dial.radius,
            "against": against,
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

    /// What was there before.
    fn elsewhere(&self, sketches: &SketchFile, against: &[Against]) -> anyhow::Result<Elsewhere> {
        let mut found = Elsewhere::default();
        let strict = Dial::new(self.args.similarity, sketches.bits(), Some(Verify::None))?;
        let alike = Alike {
            sketches,
            signer: &self.signer,
            dial: self.dial,
            radius: self.args.radius.unwrap_or(strict.radius),
            memory: self.args.memory,
        };
        against.iter().try_for_each(|old| found.find(&alike, old))?;
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
            if let Some(file) = &mut file {
                elsewhere.pairs().try_for_each(|(row, earlier, distance, similarity)| {
                    file.push(earlier, &sketches.id(row as usize), distance, similarity)
                })?;
            }
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

    /// Adds what is kept to the collection.
    fn add(
        &mut self,
        sketches: &SketchFile,
        decisions: &[Decision],
        against: Vec<Against>,
        spool: &Spool,
    ) -> anyhow::Result<Added> {
        self.stage("add", |run| {
            let sources = run.sources(spool, Wanted::All)?;
            let mut added = Added::default();
            for old in against {
                let Against::Collection(collection) = old else { continue };
                let plan = planned(sketches.records());
                let signer = &run.signer;
                let stage = AddStage { collection: &collection, signer, sketches, decisions, plan };
                added = stage.run(&sources, run.global)?;
                collection.close()?;
            }
            Ok((added, false))
        })
    }

    fn tell(&self, report: &Report) -> anyhow::Result<()> {
        if self.global.json() {
            print(serde_json::to_string(&report)?)?;
        }
        say(self.global, || report.summary(&self.args.keep, self.args.output.as_deref()));
        Ok(())
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
