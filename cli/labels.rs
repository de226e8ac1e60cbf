//! Files that say which documents belong together: labels, and what was found. Clusters (`id`, `cluster`) or pairs (`id_a`,
//! `id_b`, perhaps a `value`), as JSON lines, CSV, TSV or Parquet.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
    sync::Arc,
};

use anyhow::Context;
use arrow_array::{Array, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use lookalike::quality::{Clusters, Links, Pairs};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::value::RawValue;

use crate::{
    failure::hinted,
    input::{Format, decompressed, of_name},
    output::counted,
};

/// Documents, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    rows: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Ids {
    pub(crate) fn row(&mut self, id: &str) -> u32 {
        if let Some(&row) = self.rows.get(id) {
            return row;
        }
        let row = self.names.len() as u32;
        let id: Arc<str> = id.into();
        self.rows.insert(Arc::clone(&id), row);
        self.names.push(id);
        row
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.rows.get(id).copied()
    }

    pub(crate) fn name(&self, row: u32) -> &str {
        &self.names[row as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn into_names(self) -> Vec<Arc<str>> {
        self.names
    }
}

/// How such a file is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reader<'a> {
    pub(crate) id_field: Option<&'a str>,
    pub(crate) cluster_field: Option<&'a str>,
    /// Pairs of a lower value do not belong together; not said, the value must be above 0.
    pub(crate) min_value: Option<f64>,
}

/// What a file says.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) links: Links,
    /// The documents that it names.
    pub(crate) rows: Vec<u32>,
    /// The names of the clusters, by their numbers; none for pairs.
    pub(crate) clusters: Vec<String>,
}

/// The fields of a record that may be of use; an empty one is not there.
pub(crate) type Fields<'a> = HashMap<&'a str, Option<String>>;

/// Names of the first and second document of a pair, as files have them.
const PAIR_FIELDS: [[&str; 2]; 2] = [["id_a", "id_b"], ["id1", "id2"]];
const VALUE: &str = "value";

/// Gives `each` the fields of every record of a file, with its place; what it says is wrong is an error there.
pub(crate) fn each_record(
    path: &Path,
    hint: &str,
    mut each: impl FnMut(&Fields<'_>) -> Result<(), String>,
) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let each = |place: &str, fields: Fields<'_>| {
        each(&fields).map_err(|problem| hinted(format!("{name}{place}: {problem}"), hint))
    };
    if path == Path::new("-") {
        return read_standard_input(&name, each);
    }
    let source = File::open(path).with_context(|| name.clone())?;
    let (format, compression) = of_name(&name);
    if format == Some(Format::Parquet) {
        return read_parquet(source, &name, each);
    }
    let stream = decompressed(source, compression).with_context(|| name.clone())?;
    let stream = BufReader::new(stream);
    match format {
        Some(Format::Jsonl) => read_json_lines(stream, &name, each),
        Some(Format::Csv) => read_table(stream, &name, b',', each),
        Some(Format::Tsv) => read_table(stream, &name, b'\t', each),
        _ => Err(hinted(
            format!("{name}: labels, pairs and clusters are not in files of this name"),
            "they are .jsonl, .csv, .tsv (also .gz or .zst) or .parquet",
        )),
    }
}

/// Standard input has no name that tells: JSON lines begin with a brace, and everything else is CSV.
fn read_standard_input(
    name: &str,
    each: impl FnMut(&str, Fields<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let stream = decompressed(io::stdin().lock(), None).with_context(|| name.to_owned())?;
    let mut stream = BufReader::new(stream);
    match stream.fill_buf().with_context(|| name.to_owned())?.first() {
        Some(b'{') => read_json_lines(stream, name, each),
        _ => read_table(stream, name, b',', each),
    }
}

/// The two documents of a record that is a pair.
pub(crate) fn pair_of<'f>(fields: &'f Fields<'_>) -> Option<(&'f str, &'f str)> {
    let of = |field: &str| fields.get(field).and_then(Option::as_deref);
    PAIR_FIELDS.iter().find_map(|[a, b]| of(a).zip(of(b)))
}

impl Reader<'_> {
    pub(crate) fn read(&self, path: &Path, ids: &mut Ids) -> anyhow::Result<Linked> {
        let mut found = Found::default();
        each_record(
            path,
            "a record is a document with its cluster (`id`, `cluster`), or a pair (`id_a`, `id_b`, perhaps `value`)",
            |fields| self.add(fields, ids, &mut found),
        )?;
        found.finish(&path.display().to_string())
    }

    /// Adds what a record says.
    fn add(&self, fields: &Fields<'_>, ids: &mut Ids, found: &mut Found) -> Result<(), String> {
        if let Some((a, b)) = pair_of(fields) {
            let (a, b) = (ids.row(a), ids.row(b));
            found.rows.extend([a, b]);
            if self.belong_together(fields)? {
                found.pairs.push((a, b));
            }
            found.has_pairs = true;
            return Ok(());
        }
        let of = |field: &str| fields.get(field).and_then(Option::as_deref);
        let (id, cluster) =
            (self.id_field.unwrap_or("id"), self.cluster_field.unwrap_or("cluster"));
        let id = of(id).ok_or_else(|| format!("there is no field `{id}`"))?;
        if !fields.contains_key(cluster) {
            return Err(format!("there is no field `{cluster}`"));
        }
        found.put(ids.row(id), of(cluster)).map_err(|before| {
            let name = |cluster: Option<&str>| cluster.map_or("none".into(), |c| format!("`{c}`"));
            format!(
                "`{id}` is in cluster {}, but before it was in {}",
                name(of(cluster)),
                name(before.as_deref())
            )
        })
    }

    fn belong_together(&self, fields: &Fields<'_>) -> Result<bool, String> {
        match (fields.get(VALUE).and_then(Option::as_deref), self.min_value) {
            (Some(value), least) => {
                let value: f64 =
                    value.trim().parse().map_err(|_| format!("value `{value}` is no number"))?;
                Ok(least.map_or(value > 0.0, |least| value >= least))
            }
            (None, None) => Ok(true),
            (None, Some(_)) => Err("this pair has no `value` for `--min-value`".to_owned()),
        }
    }
}

/// What was read so far.
#[derive(Default)]
struct Found {
    pairs: Vec<(u32, u32)>,
    has_pairs: bool,
    clusters: HashMap<String, u32>,
    names: Vec<String>,
    of: HashMap<u32, Option<u32>>,
    rows: Vec<u32>,
}

impl Found {
    /// Puts a document into a cluster; the name of the one where it was, if that is another.
    fn put(&mut self, row: u32, cluster: Option<&str>) -> Result<(), Option<String>> {
        let cluster = cluster.map(|name| match self.clusters.get(name) {
            Some(&number) => number,
            None => {
                let number = self.names.len() as u32;
                self.clusters.insert(name.to_owned(), number);
                self.names.push(name.to_owned());
                number
            }
        });
        match self.of.insert(row, cluster) {
            None => self.rows.push(row),
            Some(before) if before == cluster => {}
            Some(before) => return Err(before.map(|before| self.names[before as usize].clone())),
        }
        Ok(())
    }

    fn finish(mut self, name: &str) -> anyhow::Result<Linked> {
        if self.has_pairs && !self.of.is_empty() {
            let problem =
                format!("{name}: some records are pairs, some are documents with clusters");
            return Err(hinted(problem, "put them into two files"));
        }
        self.rows.sort_unstable();
        self.rows.dedup();
        let links = match self.of.is_empty() {
            true => Links::Pairs(Pairs::new(self.pairs)),
            false => {
                let last = self.rows.last().map_or(0, |&last| last + 1);
                let of = (0..last).map(|row| self.of.get(&row).copied().flatten());
                Links::Clusters(Clusters::new(of))
            }
        };
        Ok(Linked { links, rows: self.rows, clusters: self.names })
    }
}

fn read_json_lines(
    stream: impl BufRead,
    name: &str,
    mut each: impl FnMut(&str, Fields<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for (number, line) in (1..).zip(stream.lines()) {
        let line = line.with_context(|| format!("{name}:{number}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let fields: HashMap<String, &RawValue> = serde_json::from_str(&line).map_err(|error| {
            hinted(format!("{name}:{number}: {error}"), "each line is a JSON object")
        })?;
        // A text is long, and of no use here.
        let short = fields.iter().filter(|(name, _)| *name != "text");
        let fields = short.map(|(name, value)| (name.as_str(), plain(value.get()))).collect();
        each(&format!(":{number}"), fields)?;
    }
    Ok(())
}

/// A JSON value as the text of an id: strings without their quotes.
fn plain(json: &str) -> Option<String> {
    match json {
        "null" => None,
        json if json.starts_with('"') => serde_json::from_str(json).ok(),
        json => Some(json.to_owned()),
    }
}

fn read_table(
    stream: impl BufRead,
    name: &str,
    separator: u8,
    mut each: impl FnMut(&str, Fields<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut table = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        // Ids with quotes in them are common where tabs are between.
        .quoting(separator == b',')
        .from_reader(stream);
    let mut header: Option<Vec<String>> = None;
    let mut is_first = true;
    for row in table.records() {
        let row = row.with_context(|| name.to_owned())?;
        let line = row.position().map_or(0, csv::Position::line);
        if std::mem::take(&mut is_first) {
            header = header_of(&row);
            if header.is_some() {
                continue;
            }
        }
        if let Some(header) = header.as_ref().filter(|header| header.len() != row.len()) {
            return Err(hinted(
                format!(
                    "{name}:{line}: {} where the header has {}",
                    counted(row.len() as u64, "column"),
                    header.len()
                ),
                "perhaps a quote is missing, or a separator stands in an unquoted field",
            ));
        }
        let fields = match &header {
            Some(names) => fields_of(names.iter().map(String::as_str), &row),
            None => fields_of(["id_a", "id_b", VALUE].into_iter(), &row),
        };
        each(&format!(":{line}"), fields)?;
    }
    Ok(())
}

/// The names of the columns, if a row has them.
fn header_of(row: &csv::StringRecord) -> Option<Vec<String>> {
    let names: Vec<String> =
        row.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect();
    let has = |field: &str| names.iter().any(|name| name == field);
    let pairs = PAIR_FIELDS.iter().any(|[a, b]| has(a) && has(b));
    let documents = ["cluster", "id", "text"].into_iter().any(has);
    // Two or three columns without known names are pairs.
    (pairs || documents || names.len() > 3).then_some(names)
}

fn fields_of<'a>(names: impl Iterator<Item = &'a str>, row: &csv::StringRecord) -> Fields<'a> {
    let value = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    names.zip(row.iter().map(value)).collect()
}

fn read_parquet(
    source: File,
    name: &str,
    mut each: impl FnMut(&str, Fields<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut row_number = 0;
    let context = || name.to_owned();
    let reader = ParquetRecordBatchReaderBuilder::try_new(source).with_context(context)?;
    for batch in reader.build().with_context(context)? {
        let batch = batch.with_context(context)?;
        let schema = batch.schema();
        let mut columns = Vec::new();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            // Nested columns are no ids.
            let Ok(texts) = cast(column, &DataType::Utf8) else { continue };
            columns.push((field.name().as_str(), texts));
        }
        for row in 0..batch.num_rows() {
            row_number += 1;
            let fields = columns.iter().map(|(name, texts)| {
                let texts = texts.as_any().downcast_ref::<StringArray>();
                let value = texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row));
                (*name, value.map(str::to_owned))
            });
            each(&format!(": row {row_number}"), fields.collect())?;
        }
    }
    Ok(())
}
