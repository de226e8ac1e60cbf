//! The last stage: the input is read again, and each record goes where it was decided that it goes.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter_record_batch;
use clap::ValueEnum;
use csv::ByteRecord;
use lookalike::{
    dedup::{Decision, sketches::SketchFile},
    partial::Partial,
};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::groups::Groups;
use crate::{
    commands::Global,
    failure::hinted,
    input::{Chunk, OnError, Original, Record, Sources},
    output::Reading,
};

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Kept and removed documents, apart; the removed ones say what they duplicate
    Remove,
    /// All documents, each with its cluster and its keeper
    Annotate,
    /// Only ids: of those that are kept, and of those that are not, with what they duplicate
    Ids,
}

/// Everything that decides where a record goes.
pub(crate) struct WriteStage<'a> {
    pub(crate) sketches: &'a SketchFile,
    pub(crate) decisions: &'a [Decision],
    pub(crate) groups: &'a Groups,
    /// The ids of earlier documents that rows are alike.
    pub(crate) elsewhere: &'a BTreeMap<u32, String>,
    pub(crate) mode: Mode,
    pub(crate) folder: &'a Path,
    /// Where input files are; what they are called below it they are called in the output.
    pub(crate) root: PathBuf,
    /// The fields of text and id, for documents that are written as objects.
    pub(crate) fields: (String, String),
    /// How many records each chunk of the input has.
    pub(crate) plan: Vec<PlannedChunk>,
}

/// What the first stage found in a chunk.
#[derive(Debug, Clone)]
pub(crate) struct PlannedChunk {
    first_row: u32,
    records: u32,
    bad: Vec<u32>,
}

impl PlannedChunk {
    /// The first document's row.
    pub(crate) fn first_row(&self) -> u32 {
        self.first_row
    }

    /// The rows of its documents.
    pub(crate) fn rows(&self) -> std::ops::Range<usize> {
        let documents = self.records as usize - self.bad.len();
        self.first_row as usize..self.first_row as usize + documents
    }

    /// As the first stage noted it.
    pub(crate) fn noted(&self) -> Vec<u32> {
        let mut noted = vec![self.records, self.bad.len() as u32];
        noted.extend_from_slice(&self.bad);
        noted
    }
}

/// What the first stage noted about all chunks.
pub(crate) fn planned(noted: &[u32]) -> Vec<PlannedChunk> {
    let (mut chunks, mut at, mut first_row) = (Vec::new(), 0, 0);
    while let [records, bad, rest @ ..] = &noted[at..] {
        let bad = rest[..*bad as usize].to_vec();
        at += 2 + bad.len();
        let next = first_row + records - bad.len() as u32;
        chunks.push(PlannedChunk { first_row, records: *records, bad });
        first_row = next;
    }
    chunks
}

/// A part of an output file. The name is below `kept/`, `removed/` or the folder itself.
struct Piece {
    name: String,
    /// Written once, before anything else: to what is kept, and to what is removed.
    headers: [Vec<u8>; 2],
    body: Body,
}

enum Body {
    Bytes { kept: Vec<u8>, removed: Vec<u8> },
    Rows { kept: Vec<RecordBatch>, removed: Vec<RecordBatch> },
}

impl WriteStage<'_> {
    pub(crate) fn run(&self, sources: &Sources, global: &Global) -> anyhow::Result<()> {
        if self.mode == Mode::Ids {
            return self.write_ids();
        }
        let mut files = OutputFiles::new(self.folder, self.mode);
        // What was skipped at first is skipped again; nothing is told twice.
        let mut reading = Reading::new(sources, OnError::Skip, global);
        let work = |number: usize, chunk: Chunk| self.piece(sources, number, chunk);
        let mut chunks = 0;
        reading.run_on_chunks(global.threads(), work, |piece, reading| {
            files.write(piece?)?;
            chunks += 1;
            reading.note(0, Vec::new())
        })?;
        if chunks != self.plan.len() {
            return Err(changed());
        }
        files.finish()
    }

    /// A chunk as it is to be written.
    fn piece(&self, sources: &Sources, number: usize, chunk: Chunk) -> anyhow::Result<Piece> {
        let planned = self.plan.get(number).ok_or_else(changed)?;
        let original = sources.original(chunk);
        let rows = Rows { planned, next: 0, row: planned.first_row, stage: self };
        match original {
            Original::Lines { file, bytes, records, json } => {
                check(records.len(), planned)?;
                let lines = records.into_iter().map(|range| &bytes[range]);
                self.lines(&file, lines, json, rows)
            }
            Original::Rows { file, names, rows: records } => {
                check(records.len(), planned)?;
                self.table(&file, &names, &records, rows)
            }
            Original::Batches { file, batches } => {
                let records: usize = batches.iter().map(RecordBatch::num_rows).sum();
                // One more record tells of rows that were lost.
                if records + 1 != planned.records as usize {
                    check(records, planned)?;
                }
                self.batches(&file, batches, rows)
            }
            Original::Documents(records) => {
                check(records.len(), planned)?;
                self.documents(records, rows)
            }
        }
    }

    fn lines<'l>(
        &self,
        file: &str,
        lines: impl Iterator<Item = &'l [u8]>,
        is_json: bool,
        mut rows: Rows<'_>,
    ) -> anyhow::Result<Piece> {
        let (mut kept, mut removed) = (Vec::new(), Vec::new());
        for line in lines {
            let Some(row) = rows.next() else { continue };
            let is_kept = self.is_kept(row);
            let out = if is_kept || self.mode == Mode::Annotate { &mut kept } else { &mut removed };
            match (is_kept && self.mode == Mode::Remove, is_json) {
                (true, _) => out.extend_from_slice(line),
                (false, true) => extend_object(line, &self.said(row), out),
                (false, false) => {
                    let mut object =
                        Map::from_iter([("text".into(), String::from_utf8_lossy(line).into())]);
                    object.extend(self.said(row));
                    serde_json::to_writer(&mut *out, &object)?;
                }
            }
            out.push(b'\n');
        }
        let name = self.name_of(file);
        Ok(Piece { name, headers: Default::default(), body: Body::Bytes { kept, removed } })
    }

    fn table(
        &self,
        file: &str,
        names: &[String],
        records: &[ByteRecord],
        mut rows: Rows<'_>,
    ) -> anyhow::Result<Piece> {
        let name = self.name_of(file);
        let tabs = [".tsv", ".tsv.gz", ".tsv.zst"].iter().any(|suffix| name.ends_with(suffix));
        let writer = || {
            let separator = if tabs { b'\t' } else { b',' };
            csv::WriterBuilder::new().delimiter(separator).flexible(true).from_writer(Vec::new())
        };
        let (mut kept, mut removed) = (writer(), writer());
        for record in records {
            let Some(row) = rows.next() else { continue };
            let is_kept = self.is_kept(row);
            let mut record = record.clone();
            if !(is_kept && self.mode == Mode::Remove) {
                self.said(row)
                    .values()
                    .for_each(|value| record.push_field(plain(value).as_bytes()));
            }
            let to_kept = is_kept || self.mode == Mode::Annotate;
            if to_kept { &mut kept } else { &mut removed }.write_byte_record(&record)?;
        }
        let header = |more: &[&str]| -> anyhow::Result<Vec<u8>> {
            let mut header = writer();
            let taken = |name: &str| names.iter().any(|other| other == name);
            let more = more.iter().map(|name| free_name(name, taken));
            header.write_record(names.iter().cloned().chain(more))?;
            Ok(header.into_inner()?)
        };
        let more = if self.mode == Mode::Annotate { &ANNOTATED[..] } else { &[] };
        let headers = [header(more)?, header(&REMOVED)?];
        let body = Body::Bytes { kept: kept.into_inner()?, removed: removed.into_inner()? };
        Ok(Piece { name, headers, body })
    }

    fn batches(
        &self,
        file: &str,
        batches: Vec<RecordBatch>,
        mut rows: Rows<'_>,
    ) -> anyhow::Result<Piece> {
        let (mut kept, mut removed) = (Vec::new(), Vec::new());
        for batch in batches {
            let of_batch: Vec<Option<u32>> = (0..batch.num_rows()).map(|_| rows.next()).collect();
            let select = |wanted: &dyn Fn(u32) -> bool| {
                let mask: BooleanArray =
                    of_batch.iter().map(|row| Some(row.is_some_and(wanted))).collect();
                let chosen: Vec<u32> =
                    of_batch.iter().flatten().copied().filter(|&row| wanted(row)).collect();
                Ok::<_, anyhow::Error>((filter_record_batch(&batch, &mask)?, chosen))
            };
            if self.mode == Mode::Annotate {
                let (rows, chosen) = select(&|_| true)?;
                kept.push(self.with_columns(rows, &chosen)?);
                continue;
            }
            kept.push(select(&|row| self.is_kept(row))?.0);
            let (rows, chosen) = select(&|row| !self.is_kept(row))?;
            removed.push(self.with_columns(rows, &chosen)?);
        }
        let name = self.name_of(file);
        Ok(Piece { name, headers: Default::default(), body: Body::Rows { kept, removed } })
    }

    /// Files, pages and members of archives become JSON lines.
    fn documents(&self, records: Vec<Record>, mut rows: Rows<'_>) -> anyhow::Result<Piece> {
        let (mut kept, mut removed) = (Vec::new(), Vec::new());
        for record in records {
            let (Some(row), Ok(document)) = (rows.next(), record) else { continue };
            let is_kept = self.is_kept(row);
            let mut object = Map::new();
            let (text, id) = &self.fields;
            // An id that is a place must not hide a field of that name.
            let id = free_name(id, |name| document.payload.contains_key(name));
            object.insert(id, document.id.into());
            object.insert(text.clone(), document.text.into());
            object.extend(document.payload);
            if !(is_kept && self.mode == Mode::Remove) {
                add_fields(&mut object, self.said(row));
            }
            let out = if is_kept || self.mode == Mode::Annotate { &mut kept } else { &mut removed };
            serde_json::to_writer(&mut *out, &object)?;
            out.push(b'\n');
        }
        let body = Body::Bytes { kept, removed };
        Ok(Piece { name: DOCUMENTS.into(), headers: Default::default(), body })
    }

    fn is_kept(&self, row: u32) -> bool {
        self.decisions[row as usize].keeper == row
    }

    /// The id of the document that is kept in place of another.
    fn keeper_of(&self, row: u32) -> String {
        match self.elsewhere.get(&row) {
            Some(id) => id.clone(),
            None => self.sketches.id(self.decisions[row as usize].keeper as usize).into_owned(),
        }
    }

    /// What is said of a document beside what its file says.
    fn said(&self, row: u32) -> Map<String, Value> {
        let Decision { keeper, distance, similarity } = self.decisions[row as usize];
        let keeper_id = self.keeper_of(row);
        let similarity = rounded(similarity);
        let values = match self.mode {
            Mode::Annotate => vec![
                self.groups.number_of(keeper).into(),
                keeper_id.into(),
                distance.into(),
                similarity.into(),
            ],
            _ => vec![keeper_id.into(), distance.into(), similarity.into()],
        };
        let names = if self.mode == Mode::Annotate { &ANNOTATED[..] } else { &REMOVED[..] };
        names.iter().map(|&name| name.to_owned()).zip(values).collect()
    }

    /// The same as columns.
    fn with_columns(&self, rows: RecordBatch, chosen: &[u32]) -> anyhow::Result<RecordBatch> {
        let decisions = || chosen.iter().map(|&row| self.decisions[row as usize]);
        let keepers: StringArray = chosen.iter().map(|&row| Some(self.keeper_of(row))).collect();
        let distances: UInt32Array = decisions().map(|d| Some(d.distance)).collect();
        let similarities: Float32Array = decisions().map(|d| Some(d.similarity)).collect();
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(keepers), Arc::new(distances), Arc::new(similarities)];
        let mut names = &REMOVED[..];
        if self.mode == Mode::Annotate {
            let clusters: Int64Array =
                decisions().map(|d| self.groups.number_of(d.keeper).map(|n| n as i64)).collect();
            columns.insert(0, Arc::new(clusters));
            names = &ANNOTATED[..];
        }
        let new = names
            .iter()
            .zip(&columns)
            .map(|(name, column)| Arc::new(Field::new(*name, column.data_type().clone(), true)));
        let fields: Vec<_> = rows.schema().fields().iter().cloned().chain(new).collect();
        let columns = rows.columns().iter().cloned().chain(columns).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    fn name_of(&self, file: &str) -> String {
        output_name(&self.root, file)
    }

    fn write_ids(&self) -> anyhow::Result<()> {
        let paths = ["kept.txt", "removed.jsonl"].map(|name| self.folder.join(name));
        let [mut kept, mut removed] = [open(&paths[0])?, open(&paths[1])?];
        for row in 0..self.sketches.len() as u32 {
            let id = self.sketches.id(row as usize);
            if self.is_kept(row) {
                writeln!(kept, "{id}").context("kept.txt")?;
            } else {
                let mut object = Map::from_iter([("id".to_owned(), json!(id))]);
                object.extend(self.said(row));
                writeln!(removed, "{}", Value::Object(object)).context("removed.jsonl")?;
            }
        }
        kept.into_inner().map_err(|error| error.into_error())?.complete()?;
        removed.into_inner().map_err(|error| error.into_error())?.complete()?;
        Ok(())
    }
}

const REMOVED: [&str; 3] = ["duplicate_of", "distance", "similarity"];
const ANNOTATED: [&str; 4] = ["cluster", "keeper", "distance", "similarity"];
/// Where documents go that are files or members of archives.
const DOCUMENTS: &str = "documents.jsonl";

/// A similarity as people read it.
pub(crate) fn rounded(similarity: f32) -> f64 {
    (f64::from(similarity) * 1e4).round() / 1e4
}

/// What an input file is called in the output: as it is below the folder that all are in.
pub(crate) fn output_name(root: &Path, file: &str) -> String {
    let path = Path::new(file);
    let path = path.strip_prefix(root).unwrap_or(path);
    let parts = path.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        _ => None,
    });
    match parts.collect::<Vec<_>>().join("/") {
        name if file == "-" || name.is_empty() => "stdin.jsonl".into(),
        name => name,
    }
}

/// The rows of a chunk's records, in order.
struct Rows<'a> {
    planned: &'a PlannedChunk,
    next: u32,
    row: u32,
    stage: &'a WriteStage<'a>,
}

impl Rows<'_> {
    /// The row of the next record; nothing if it is no document.
    fn next(&mut self) -> Option<u32> {
        self.next += 1;
        if self.planned.bad.binary_search(&(self.next - 1)).is_ok() {
            return None;
        }
        self.row += 1;
        Some(self.row - 1).filter(|&row| (row as usize) < self.stage.decisions.len())
    }
}

fn check(records: usize, planned: &PlannedChunk) -> anyhow::Result<()> {
    if records == planned.records as usize { Ok(()) } else { Err(changed()) }
}

fn changed() -> anyhow::Error {
    hinted(
        "the input is not what it was when it was signed",
        "leave it alone while it is deduplicated; `--restart` begins again",
    )
}

/// Adds fields to a JSON object as it is written.
fn extend_object(line: &[u8], fields: &Map<String, Value>, out: &mut Vec<u8>) {
    let there = |name: &str| memchr::memmem::find(line, format!("\"{name}\"").as_bytes()).is_some();
    if fields.keys().any(|name| there(name)) {
        // Perhaps only in the text: this takes a closer look.
        if let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(line) {
            add_fields(&mut object, fields.clone());
            return out.extend_from_slice(Value::Object(object).to_string().as_bytes());
        }
    }
    let object = line.trim_ascii_end();
    let object = object.strip_suffix(b"}").unwrap_or(object);
    out.extend_from_slice(object);
    let mut comma = !object.trim_ascii().ends_with(b"{");
    for (name, value) in fields {
        if comma {
            out.extend_from_slice(b", ");
        }
        comma = true;
        out.extend_from_slice(format!("{}: {value}", Value::from(name.as_str())).as_bytes());
    }
    out.push(b'}');
}

/// Adds fields to an object; where it has one of that name, ours gets a longer one.
fn add_fields(object: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (name, value) in fields {
        let name = free_name(&name, |name| object.contains_key(name));
        object.insert(name, value);
    }
}

/// A name for a field of ours that is not there yet.
fn free_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = name.to_owned();
    while taken(&name) {
        name.insert_str(0, "lookalike_");
    }
    name
}

/// A value as a field of a table.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

type Out = BufWriter<Partial>;

fn open(path: &Path) -> anyhow::Result<Out> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let file = Partial::create(path).with_context(|| path.display().to_string())?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// The files being written.
struct OutputFiles<'a> {
    folder: &'a Path,
    mode: Mode,
    open: HashMap<PathBuf, Sink>,
    /// The input file of which chunks come now: when the next one begins, its output is complete.
    current: Option<String>,
}

enum Sink {
    Bytes(Out),
    Rows(Box<ArrowWriter<Out>>),
}

impl<'a> OutputFiles<'a> {
    fn new(folder: &'a Path, mode: Mode) -> Self {
        OutputFiles { folder, mode, open: HashMap::new(), current: None }
    }

    fn write(&mut self, piece: Piece) -> anyhow::Result<()> {
        let changed = self.current.as_ref() != Some(&piece.name);
        if piece.name != DOCUMENTS && changed {
            self.complete(|path| !path.ends_with(DOCUMENTS))?;
            self.current = Some(piece.name.clone());
        }
        let (kept, removed) = self.paths(&piece.name, matches!(piece.body, Body::Bytes { .. }));
        match piece.body {
            Body::Bytes { kept: bytes, removed: more } => {
                self.write_bytes(kept, &piece.headers[0], &bytes)?;
                if !more.is_empty() {
                    self.write_bytes(removed, &piece.headers[1], &more)?;
                }
            }
            Body::Rows { kept: batches, removed: more } => {
                self.write_rows(kept, batches)?;
                self.write_rows(removed, more)?;
            }
        }
        Ok(())
    }

    fn paths(&self, name: &str, bytes: bool) -> (PathBuf, PathBuf) {
        if self.mode == Mode::Annotate {
            let annotated = match bytes && is_text(name) {
                true => format!("{name}.jsonl"),
                false => name.to_owned(),
            };
            return (self.folder.join("annotated").join(annotated), PathBuf::new());
        }
        // Lines of text cannot say what they duplicate.
        let removed =
            if bytes && is_text(name) { format!("{name}.jsonl") } else { name.to_owned() };
        (self.folder.join("kept").join(name), self.folder.join("removed").join(removed))
    }

    fn write_bytes(&mut self, path: PathBuf, header: &[u8], bytes: &[u8]) -> anyhow::Result<()> {
        let name = path.display().to_string();
        let squeeze = |bytes: &[u8]| compressed(&name, bytes);
        if !self.open.contains_key(&path) {
            let mut out = open(&path)?;
            out.write_all(&squeeze(header)?).with_context(|| name.clone())?;
            self.open.insert(path.clone(), Sink::Bytes(out));
        }
        if let Some(Sink::Bytes(out)) = self.open.get_mut(&path) {
            out.write_all(&squeeze(bytes)?).with_context(|| name.clone())?;
        }
        Ok(())
    }

    fn write_rows(&mut self, path: PathBuf, batches: Vec<RecordBatch>) -> anyhow::Result<()> {
        for batch in batches {
            let fresh = !self.open.contains_key(&path);
            // A file of what was removed is there only if something was.
            if fresh && batch.num_rows() == 0 && path.starts_with(self.folder.join("removed")) {
                continue;
            }
            if fresh {
                let properties =
                    WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(open(&path)?, batch.schema(), Some(properties))?;
                self.open.insert(path.clone(), Sink::Rows(Box::new(writer)));
            }
            if let Some(Sink::Rows(writer)) = self.open.get_mut(&path) {
                writer.write(&batch).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }

    /// Completes some of the files that are open.
    fn complete(&mut self, which: impl Fn(&Path) -> bool) -> anyhow::Result<()> {
        let mut paths: Vec<PathBuf> =
            self.open.keys().filter(|path| which(path)).cloned().collect();
        paths.sort();
        for path in paths {
            let Some(sink) = self.open.remove(&path) else { continue };
            let name = || path.display().to_string();
            let out = match sink {
                Sink::Bytes(out) => out,
                Sink::Rows(writer) => writer.into_inner().with_context(name)?,
            };
            let out = out.into_inner().map_err(|error| error.into_error()).with_context(name)?;
            out.complete().with_context(name)?;
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.complete(|_| true)
    }
}

/// Whether a file holds lines of text, by its name.
fn is_text(name: &str) -> bool {
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(name);
    let suffix = Path::new(name).extension().and_then(|suffix| suffix.to_str());
    !matches!(suffix, Some("jsonl" | "ndjson" | "json" | "csv" | "tsv" | "parquet"))
}

/// Bytes as a file of this name has them. Pieces of compressed files follow each other.
fn compressed(name: &str, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    if name.ends_with(".gz") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes)?;
        return Ok(encoder.finish()?);
    }
    match name.ends_with(".zst") {
        true => Ok(zstd::encode_all(bytes, 0)?),
        false => Ok(bytes.to_vec()),
    }
}
