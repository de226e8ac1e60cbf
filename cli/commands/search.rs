//! `lookalike search`.

mod explain;
mod ready;
mod records;
mod rows;
mod searched;
mod walks;

use std::{
    io::{BufWriter, Write},
    num::NonZeroUsize,
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::{ArgGroup, Args};
use lookalike::{
    Document, Signature, SignatureFile, Signer,
    collection::Collection,
    index::Promise,
    recipe::{Scratch, Signed},
    search::Question,
    sigfile::{hex::escape, suffix_of},
};
use serde_json::{Value, json};

use self::{
    explain::Explain,
    ready::{Demand, IndexArgs, Ready},
    records::Records,
    rows::Rows,
    searched::{ConditionArgs, Hit, Queries, QueryName, Searched},
};
use super::{Global, Outcome, at_least_one, recipe::TermsArg};
use crate::{
    failure::hinted,
    input::{BadRecord, ReadArgs, Record, Sources},
    opened::Opened,
    output::{Reading, counted, say},
};

/// Find the documents of a collection, a signature file, or an index over one, that look like a query
///
/// The radius is inclusive: 3 finds what is at most 3 bits away. Without --radius and --nearest, the ten nearest are
/// shown. Text output has a line for each hit, with tabs between: the query (with --queries), the distance, the id, the
/// passage and the payload if there are any.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("query").required(true).args(["text", "document", "id", "signature", "queries"]))]
#[command(after_help = "\
Examples:
  lookalike search news.sig --file story.txt --radius 60
  lookalike search news.sig --text \"the harbour reopened on Monday\" --nearest 5
  lookalike search news.sig --id news.jsonl:17 --radius 60
  lookalike search codes.npy --signature 8f00c35a9d1e77b2 --radius 3 --first
  lookalike search crawl.sig --queries new.jsonl --radius 3 --format json
  lookalike search crawl.idx --queries new.jsonl --radius 3 --explain
  lookalike search crawl.sig --queries new.jsonl --radius 3 --index psm --recall 0.9
  lookalike search essays.idx --queries new.jsonl --nearest 10 --recall 0.95
  lookalike search crawl/ --id https://a.example/1 --nearest 5 --exclude-same source
  lookalike search crawl/ --queries new.jsonl --radius 3 --filter 'lang = \"en\" and year >= 2020'")]
pub(crate) struct Search {
    /// What to search: a collection; signatures: .sig, .npy, .hex or .parquet; or an index over them: .idx
    #[arg(value_name = "COLLECTION|FILE")]
    file: PathBuf,

    /// The query is this text
    #[arg(long, value_name = "TEXT", help_heading = "Query")]
    text: Option<String>,

    /// The query is the document in this file
    #[arg(long = "file", value_name = "FILE", help_heading = "Query")]
    document: Option<String>,

    /// The query is the document of this id in what is searched itself; it is not among its own hits
    #[arg(long, value_name = "ID", help_heading = "Query")]
    id: Option<String>,

    /// The query is this signature, in hexadecimal digits
    #[arg(long, value_name = "HEX", help_heading = "Query")]
    signature: Option<String>,

    /// Each document of this input is a query (or each signature, if it is .sig, .npy or .hex)
    #[arg(long, value_name = "INPUT", help_heading = "Query")]
    queries: Option<String>,

    /// Every document at most so many bits away
    #[arg(long, short, value_name = "BITS", help_heading = "Question", conflicts_with = "nearest")]
    radius: Option<u32>,

    /// With --radius: one such document is enough, as for "have I seen this?"
    #[arg(long, help_heading = "Question", requires = "radius", conflicts_with = "nearest")]
    first: bool,

    /// The so many nearest documents
    #[arg(long, short = 'k', value_name = "K", help_heading = "Question", value_parser = at_least_one)]
    nearest: Option<NonZeroUsize>,

    #[command(flatten)]
    conditions: ConditionArgs,

    #[command(flatten)]
    index: IndexArgs,

    #[command(flatten)]
    terms: TermsArg,

    #[command(flatten)]
    read: ReadArgs,
}

impl Search {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Outcome> {
        let queries = self.signature_queries()?;
        if Collection::is_in(&self.file) {
            return self.answer(Box::new(Records::open(&self, global)?), queries.as_ref(), global);
        }
        if self.file.is_dir() {
            let problem = format!("{} is a folder, but no collection", self.file.display());
            return Err(hinted(
                problem,
                "`lookalike create FOLDER` makes one; signatures are in files",
            ));
        }
        let opened = Opened::new(&self.file)?;
        let expected = self.expected_queries(queries.as_ref());
        let question = self.question();
        let demand = Demand { args: &self.index, question, queries: expected, global };
        let rows = Rows::new(&self, &opened, Ready::new(demand, &opened)?)?;
        self.answer(Box::new(rows), queries.as_ref(), global)
    }

    /// Asks all queries, and tells what became of them.
    fn answer(
        &self,
        searched: Box<dyn Searched + '_>,
        queries: Option<&SignatureFile>,
        global: &Global,
    ) -> anyhow::Result<Outcome> {
        let mut session = Session::new(self, searched, global);
        let mut outcome = Outcome::Done;
        match (queries, &self.queries) {
            (Some(queries), _) => session.ask_signatures(queries)?,
            (None, Some(input)) => outcome = session.ask_documents(input, global)?,
            (None, None) => session.ask_one()?,
        }
        session.lines.out.flush().context("standard output")?;
        if self.index.explain {
            session.explain(global)?;
        }
        session.tell(global);
        Ok(match outcome {
            Outcome::Done if session.hits == 0 => Outcome::NothingFound,
            outcome => outcome,
        })
    }

    /// Whether queries are documents that are not to find themselves.
    fn not_self(&self) -> bool {
        self.conditions.exclude_self || self.id.is_some()
    }

    /// The queries, if they are signatures.
    fn signature_queries(&self) -> lookalike::Result<Option<SignatureFile>> {
        let input = self.queries.as_ref().filter(|input| is_signature_file(input));
        input.map(|input| SignatureFile::open(Path::new(input))).transpose()
    }

    /// How many queries there will be: nobody has counted the documents yet.
    fn expected_queries(&self, signatures: Option<&SignatureFile>) -> u64 {
        match (signatures, &self.queries) {
            (Some(signatures), _) => signatures.signatures().len() as u64,
            (None, Some(_)) => 1000,
            (None, None) => 1,
        }
    }

    fn question(&self) -> Question {
        match (self.radius, self.first, self.nearest) {
            (Some(radius), true, _) => Question::First(radius),
            (Some(radius), false, _) => Question::Within(radius),
            (None, _, k) => Question::Nearest(k.map_or(10, NonZeroUsize::get)),
        }
    }
}

fn is_signature_file(input: &str) -> bool {
    matches!(suffix_of(Path::new(input)).as_deref(), Some("sig" | "npy" | "hex"))
}

/// One run of the command: queries go in, hits come out.
struct Session<'a> {
    search: &'a Search,
    searched: Box<dyn Searched + 'a>,
    lines: Lines,
    queries: usize,
    unsigned: u64,
    hits: usize,
    worth: Worth,
    time: Duration,
}

/// Where hits are written, a line for each.
struct Lines {
    out: BufWriter<std::io::StdoutLock<'static>>,
    json: bool,
    /// Whether the query is told, as there are several.
    with_query: bool,
    /// What found them, for scripts.
    index: Option<String>,
}

/// What all answers together are worth.
#[derive(Default)]
struct Worth {
    found: f64,
    /// How many there are to be found.
    there: f64,
    /// The least that was expected of a batch; nothing if all were exact.
    least: Option<f32>,
}

impl Worth {
    fn add(&mut self, promise: Promise, hits: usize) {
        let share = match promise {
            Promise::Exact => 1.0,
            Promise::Expected { recall } => {
                self.least = Some(self.least.map_or(recall, |least| least.min(recall)));
                recall
            }
        };
        self.found += hits as f64;
        self.there += hits as f64 / f64::from(share);
    }

    /// The share of the hits that was found, or nothing if it is all of them for sure.
    fn recall(&self) -> Option<f32> {
        let least = self.least?;
        Some(if self.found > 0.0 { (self.found / self.there) as f32 } else { least })
    }

    fn in_words(&self) -> String {
        match self.recall() {
            None => "exact".to_owned(),
            // Rounded down: 1.00 would say that none is missing.
            Some(recall) => {
                format!("expected recall {:.2}", (recall * 100.0).floor().min(99.0) / 100.0)
            }
        }
    }
}

impl<'a> Session<'a> {
    fn new(search: &'a Search, searched: Box<dyn Searched + 'a>, global: &Global) -> Self {
        let lines = Lines {
            out: BufWriter::new(std::io::stdout().lock()),
            json: global.json(),
            with_query: search.queries.is_some(),
            index: searched.about().name.clone(),
        };
        Session {
            search,
            searched,
            lines,
            queries: 0,
            unsigned: 0,
            hits: 0,
            worth: Worth::default(),
            time: Duration::ZERO,
        }
    }

    fn ask_one(&mut self) -> anyhow::Result<()> {
        let search = self.search;
        if let Some(id) = &search.id {
            let stored = self.searched.stored(id)?;
            return self.ask(&stored);
        }
        let mut queries = Queries::new(self.searched.bits())?;
        match (&search.signature, &search.text, &search.document) {
            (Some(hex), _, _) => {
                queries.names.push(QueryName::number(0));
                queries.signatures.push(&Signature::from_hex(hex)?)?;
            }
            (_, Some(text), _) => self.sign(Document::new("0", text), &mut queries)?,
            (_, _, Some(file)) => self.sign(search.read.one_document(file)?, &mut queries)?,
            _ => unreachable!("one of them is required"),
        }
        self.ask(&queries)
    }

    fn ask_signatures(&mut self, queries: &SignatureFile) -> anyhow::Result<()> {
        if let (Some(stored), Some(given)) = (self.searched.recipe(), queries.recipe()) {
            stored.check_same(given)?;
        }
        let (rows, most) = (queries.signatures().len(), self.searched.about().batch);
        for start in (0..rows).step_by(most) {
            let mut batch = Queries::new(queries.signatures().bits())?;
            for row in start..rows.min(start + most) {
                batch.push_row(queries, row)?;
            }
            self.ask(&batch)?;
        }
        Ok(())
    }

    fn ask_documents(&mut self, input: &str, global: &Global) -> anyhow::Result<Outcome> {
        let signer = self.signer()?;
        let payload = !self.search.conditions.exclude_same.is_empty();
        let sources = Sources::open(&[input.to_owned()], &self.search.read, payload)?;
        let mut reading = Reading::new(&sources, self.search.read.on_error, global);
        let (bits, most) = (self.searched.bits(), self.searched.about().batch);
        let mut waiting = Queries::new(bits)?;
        let work = |records: Vec<Record>| sign_queries(&signer, records);
        reading.run(global.threads(), work, |chunk, reading| {
            self.unsigned += chunk.unsigned;
            reading.note(chunk.documents, chunk.bad)?;
            for (id, payload, signed) in chunk.signed {
                waiting.push(&id, &payload, &signed)?;
                if waiting.names.len() == most {
                    self.ask(&std::mem::replace(&mut waiting, Queries::new(bits)?))?;
                }
            }
            Ok(())
        })?;
        self.ask(&waiting)?;
        Ok(reading.finish())
    }

    fn signer(&self) -> anyhow::Result<Signer> {
        self.searched.signer(self.search.terms.terms.as_deref())
    }

    /// Adds the signatures of a document to the queries: one, or one for each passage.
    fn sign(&self, document: Document, queries: &mut Queries) -> anyhow::Result<()> {
        let signer = self.signer()?;
        let signed = signer.sign(&document, &mut Scratch::default());
        if signed.is_empty() {
            let wanted = signer.recipe().min_features;
            let problem = match wanted {
                1 => "the query has no words, so it has no signature".to_owned(),
                _ => format!("the query has fewer than {wanted} features, so it has no signature"),
            };
            return Err(hinted(problem, "give a longer text"));
        }
        let payload = Value::Object(document.payload);
        Ok(signed.iter().try_for_each(|signed| queries.push(&document.id, &payload, signed))?)
    }

    /// Asks, and writes the hits.
    fn ask(&mut self, queries: &Queries) -> anyhow::Result<()> {
        if queries.names.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let promise = self.searched.ask(queries)?;
        self.time += started.elapsed();
        let before = self.hits;
        for (query, name) in queries.names.iter().enumerate() {
            for hit in self.searched.hits(queries, query) {
                self.hits += 1;
                self.lines.write(name, &hit, promise).context("standard output")?;
            }
        }
        self.queries += queries.names.len();
        self.worth.add(promise, self.hits - before);
        Ok(())
    }

    /// How the search was done.
    fn explain(&self, global: &Global) -> anyhow::Result<()> {
        let explain = Explain {
            args: &self.search.index,
            file: self.searched.file(),
            about: self.searched.about(),
            question: self.search.question(),
            queries: self.queries,
            time: self.time,
            answers: self.worth.in_words(),
        };
        explain.tell(global)
    }

    /// Tells if less was found than the user asked for.
    fn tell_recall(&self, global: &Global) {
        let wanted = self.search.index.recall.unwrap_or(0.0);
        if self.worth.recall().is_some_and(|recall| recall < wanted as f32) {
            say(global, || {
                let more = self.searched.about().to_find_more;
                format!("note: that is less than `--recall {wanted}`: {more}")
            });
        }
    }

    /// What was searched and found, and what to try if it was nothing.
    fn tell(&self, global: &Global) {
        let (rows, bits) = (self.searched.len(), self.searched.bits());
        let asked = match self.search.question() {
            Question::Within(radius) => format!("within {radius} of {bits} bits"),
            Question::First(radius) => format!("first within {radius} of {bits} bits"),
            Question::Nearest(_) => "nearest".to_owned(),
        };
        let queries = match self.queries {
            1 => String::new(),
            queries => format!(" for {}", counted(queries as u64, "query")),
        };
        say(global, || {
            let thing = self.searched.about().thing;
            let (hits, rows) = (counted(self.hits as u64, "hit"), counted(rows as u64, thing));
            format!("{hits} {asked}{queries} among {rows} ({})", self.worth.in_words())
        });
        self.tell_recall(global);
        if self.unsigned > 0 {
            let unsigned = counted(self.unsigned, "query");
            say(global, || format!("not asked, for too few features: {unsigned}"));
        }
        let Some(radius) = self.search.radius else { return };
        if self.hits == 0 && radius < bits / 5 {
            let wider = bits / 5;
            say(global, || {
                format!(
                    "hint: a wider radius finds less alike documents: try --radius {wider}, or --nearest 5"
                )
            });
        } else if radius >= bits * 2 / 5 {
            let half = bits / 2;
            say(global, || {
                format!(
                    "hint: documents that have nothing in common are about {half} bits apart: a radius of {radius} finds them too"
                )
            });
        }
    }
}

impl Lines {
    fn write(&mut self, query: &QueryName, hit: &Hit<'_>, promise: Promise) -> std::io::Result<()> {
        if self.json {
            let mut line = json_of(query, hit, promise);
            if let Some(index) = &self.index {
                line["index"] = json!(index);
            }
            return writeln!(self.out, "{line}");
        }
        if self.with_query {
            write!(self.out, "{}\t", escape(&query.id))?;
        }
        write!(self.out, "{}\t{}", hit.distance, escape(&hit.id))?;
        if let Some(passage) = &hit.passage {
            write!(self.out, "\tbytes {} to {}", passage.start, passage.end)?;
        }
        if let Some(payload) = &hit.payload {
            write!(self.out, "\t{payload}")?;
        }
        writeln!(self.out)
    }
}

fn json_of(query: &QueryName, hit: &Hit<'_>, promise: Promise) -> Value {
    let range = |range: &Range<u64>| json!({ "start": range.start, "end": range.end });
    let mut line = json!({ "query": query.id, "id": hit.id, "distance": hit.distance });
    line["exact"] = json!(promise == Promise::Exact);
    if let Promise::Expected { recall } = promise {
        line["expected_recall"] = json!(recall);
    }
    if let Some(passage) = &hit.passage {
        line["passage"] = range(passage);
    }
    if let Some(passage) = &query.passage {
        line["query_passage"] = range(passage);
    }
    if let Some(payload) = &hit.payload {
        line["payload"] = serde_json::from_str(payload).unwrap_or_default();
    }
    line
}

/// What became of a chunk of queries.
#[derive(Default)]
struct SignedQueries {
    signed: Vec<(String, Value, Signed)>,
    bad: Vec<BadRecord>,
    documents: u64,
    unsigned: u64,
}

fn sign_queries(signer: &Signer, records: Vec<Record>) -> SignedQueries {
    let mut scratch = Scratch::default();
    let mut chunk = SignedQueries::default();
    for record in records {
        match record {
            Ok(document) => {
                chunk.documents += 1;
                let signed = signer.sign(&document, &mut scratch);
                chunk.unsigned += u64::from(signed.is_empty());
                let payload = Value::Object(document.payload);
                let named = |signed| (document.id.clone(), payload.clone(), signed);
                chunk.signed.extend(signed.into_iter().map(named));
            }
            Err(bad) => chunk.bad.push(bad),
        }
    }
    chunk
}
