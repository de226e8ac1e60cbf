//! Documents from Parquet. Only the columns that are needed are read.
//!
//! A row group of reasonable size is decoded by the worker that gets it; a huge one is decoded batch by
//! batch in the reading thread, so that memory stays bounded.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Fields};
use bytes::Bytes;
use lookalike::Document;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use serde_json::{Map, Value};

use super::args::Options;
use super::arrow_json;
use super::chunk::{Body, CHUNK_BYTES, Flow, Outlet, Record};
use super::jsonl::{Field, hint_of_columns, id_of_value, id_or_place, take};
use super::lines::utf8;
use super::record::{At, BadRecord, Place};
use super::source::{Reading, panic_message};
use super::text;

/// Row groups up to this size, decoded, go to the workers as they are.
const WHOLE_GROUP_BYTES: i64 = 32 << 20;

/// A file whose footer was read and makes sense.
pub(super) struct Table {
    file: Arc<str>,
    store: Store,
    metadata: ArrowReaderMetadata,
    /// Leaf columns to read.
    mask: ProjectionMask,
    text: Vec<String>,
    id: Option<Vec<String>>,
}

/// Where the bytes are. Files are opened once per row group: threads must not share a position.
enum Store {
    Path(PathBuf),
    Bytes(Bytes),
}

/// A row group to be decoded.
pub(super) struct RowGroup {
    table: Arc<Table>,
    group: usize,
    /// Rows before it in the file.
    before: u64,
}

/// Some decoded rows.
pub(super) struct Batch {
    table: Arc<Table>,
    rows: RecordBatch,
    /// Rows before them in the file.
    before: u64,
}

impl RowGroup {
    pub(super) fn file(&self) -> Arc<str> {
        Arc::clone(&self.table.file)
    }

    /// Its rows as far as they can be read.
    pub(super) fn batches(&self) -> Vec<RecordBatch> {
        let mut batches = Vec::new();
        // What is lost was told when the documents were read.
        let _ = self.table.decode(self.group, |rows| {
            batches.push(rows);
            ControlFlow::Continue(())
        });
        batches
    }
}

impl Batch {
    pub(super) fn file(&self) -> Arc<str> {
        Arc::clone(&self.table.file)
    }

    pub(super) fn into_rows(self) -> RecordBatch {
        self.rows
    }
}

/// Reads a file of its own.
pub(super) fn read(path: PathBuf, reading: &Reading<'_>, out: &mut Outlet<'_>) -> Flow {
    let bytes = path.metadata().map_or(0, |about| about.len());
    read_table(Store::Path(path), bytes, reading, out)
}

/// Reads what cannot be read in any order, after taking it into memory.
pub(super) fn read_stream(
    mut stream: impl Read,
    reading: &Reading<'_>,
    out: &mut Outlet<'_>,
) -> Flow {
    match text::whole(&mut stream, reading) {
        Ok(bytes) => read_table(Store::Bytes(Bytes::from(bytes)), 0, reading, out),
        Err(bad) => out.bad(bad),
    }
}

fn read_table(store: Store, bytes: u64, reading: &Reading<'_>, out: &mut Outlet<'_>) -> Flow {
    let mut uncounted = bytes;
    let mut count = |bytes: u64| {
        uncounted -= bytes;
        reading.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    };
    let flow = match Table::open(store, reading) {
        // Columns are read here and there; its share is what a group is said to be worth.
        Ok(table) => read_groups(&Arc::new(table), out, |groups| count(bytes / groups)),
        Err(bad) => out.bad(bad),
    };
    reading.bytes_read.fetch_add(uncounted, Ordering::Relaxed);
    flow
}

/// Hands out the row groups; tells `done` after each how many there are.
fn read_groups(table: &Arc<Table>, out: &mut Outlet<'_>, mut done: impl FnMut(u64)) -> Flow {
    let groups = table.metadata.metadata().num_row_groups();
    let mut before = 0;
    for group in 0..groups {
        if table.decoded_bytes(group) <= WHOLE_GROUP_BYTES {
            out.put(Body::RowGroup(RowGroup { table: Arc::clone(table), group, before }))?;
        } else {
            table.put_batches(group, before, out)?;
        }
        before = before.saturating_add(table.rows_of(group));
        done(groups as u64);
    }
    Ok(())
}

impl Store {
    fn with<T>(
        &self,
        path: impl FnOnce(File) -> T,
        bytes: impl FnOnce(Bytes) -> T,
    ) -> io::Result<T> {
        Ok(match self {
            Store::Path(file) => path(File::open(file)?),
            Store::Bytes(all) => bytes(all.clone()),
        })
    }
}

impl Table {
    fn open(store: Store, reading: &Reading<'_>) -> Result<Self, BadRecord> {
        let options = reading.options;
        let broken = |problem: String| BadRecord::broken(reading.place(At::File), problem);
        let loaded = unpanicked(|| {
            store
                .with(|file| load(&file), |bytes| load(&bytes))
                .map_err(|error| error.to_string())?
        });
        let metadata = loaded.map_err(broken)?;
        let fields = metadata.schema().fields();
        let missing = |field: &str, flag: &str| {
            let columns = fields.iter().map(|column| column.name().as_str());
            broken(format!("no column `{field}`")).hint(hint_of_columns(columns, flag))
        };
        let (text, kind) = resolve(fields, &options.text_field)
            .ok_or_else(|| missing(&options.text_field, "--text-field"))?;
        if !is_text(kind) {
            return Err(broken(format!("column `{}` is {kind}, not text", options.text_field)));
        }
        let id = match (resolve(fields, options.id_path()), &options.id_field) {
            (None, Some(field)) => return Err(missing(field, "--id-field")),
            (found, _) => found.map(|(id, _)| id),
        };
        let mask = match options.payload {
            true => ProjectionMask::all(),
            false => projection(&metadata, &text, id.as_ref()),
        };
        Ok(Table { file: Arc::clone(&reading.name), store, metadata, mask, text, id })
    }

    fn rows_of(&self, group: usize) -> u64 {
        self.metadata.metadata().row_group(group).num_rows().try_into().unwrap_or(0)
    }

    /// What the columns of a row group take, uncompressed. All of them, whichever are needed: a file is
    /// cut into the same chunks every time.
    fn decoded_bytes(&self, group: usize) -> i64 {
        let columns = self.metadata.metadata().row_group(group).columns().iter();
        columns.fold(0, |sum, column| sum.saturating_add(column.uncompressed_size().max(0)))
    }

    /// Decodes a row group; errors and panics of the decoder end it.
    fn decode(
        &self,
        group: usize,
        mut each: impl FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), String> {
        unpanicked(|| {
            for batch in self.batches(group)? {
                if each(batch.map_err(|error| damaged(&error))?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn batches(&self, group: usize) -> Result<ParquetRecordBatchReader, String> {
        let rows = self.rows_of(group).max(1);
        let row_bytes = (self.decoded_bytes(group) as u64 / rows).max(1);
        let batch = (CHUNK_BYTES as u64 / row_bytes).clamp(1, 8192) as usize;
        let reader = self
            .store
            .with(|file| self.reader(file, group, batch), |bytes| self.reader(bytes, group, batch));
        let reader = reader.map_err(|error| error.to_string())?;
        reader.map_err(|error| damaged(&error))
    }

    fn reader<R: ChunkReader + 'static>(
        &self,
        bytes: R,
        group: usize,
        batch: usize,
    ) -> Result<ParquetRecordBatchReader, ParquetError> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, self.metadata.clone())
            .with_projection(self.mask.clone())
            .with_row_groups(vec![group])
            .with_batch_size(batch)
            .build()
    }

    fn put_batches(self: &Arc<Self>, group: usize, before: u64, out: &mut Outlet<'_>) -> Flow {
        let mut done = before;
        let mut flow = Ok(());
        let decoded = self.decode(group, |rows| {
            let number = rows.num_rows() as u64;
            flow = out.put(Body::Batch(Batch { table: Arc::clone(self), rows, before: done }));
            done += number;
            if flow.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        flow?;
        match self.lost(group, before, done, decoded) {
            Some(bad) => out.bad(bad),
            None => Ok(()),
        }
    }

    /// What to say of a group of which only `done - before` rows came out.
    fn lost(
        &self,
        group: usize,
        before: u64,
        done: u64,
        end: Result<(), String>,
    ) -> Option<BadRecord> {
        let rows = self.rows_of(group);
        let last = before.saturating_add(rows);
        let problem = match end {
            Err(problem) => problem,
            Ok(()) if done < last => "the column ends early".into(),
            Ok(()) => return None,
        };
        let place = Place::new(&self.file, At::Row(done + 1));
        let problem = format!("{problem}; rows {} to {last} are lost", done + 1);
        Some(BadRecord::new(place, problem))
    }
}

fn load<R: ChunkReader + Length>(bytes: &R) -> Result<ArrowReaderMetadata, String> {
    // The columns' own types say all we need; the copy of an Arrow schema is one more thing to be damaged.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ArrowReaderMetadata::load(bytes, options).map_err(|error| damaged(&error))
}

fn damaged(error: &dyn std::fmt::Display) -> String {
    format!("the Parquet data is damaged ({error})")
}

/// The decoder has been seen to panic on damaged files.
fn unpanicked<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|panic| Err(damaged(&panic_message(&*panic))))
}

/// The names on the way to a column and its type; a name with the dots in it wins over nesting.
fn resolve<'f>(fields: &'f Fields, path: &str) -> Option<(Vec<String>, &'f DataType)> {
    if let Some((_, field)) = fields.find(path) {
        return Some((vec![path.to_owned()], field.data_type()));
    }
    path.rmatch_indices('.').find_map(|(dot, _)| {
        let (_, field) = fields.find(&path[..dot])?;
        let DataType::Struct(inner) = field.data_type() else { return None };
        let (mut names, kind) = resolve(inner, &path[dot + 1..])?;
        names.insert(0, path[..dot].to_owned());
        Some((names, kind))
    })
}

fn is_text(kind: &DataType) -> bool {
    use DataType::*;
    match kind {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => true,
        Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// The leaf columns of text and id.
fn projection(
    metadata: &ArrowReaderMetadata,
    text: &[String],
    id: Option<&Vec<String>>,
) -> ProjectionMask {
    let schema = metadata.parquet_schema();
    let wanted = |leaf: &usize| {
        let path = schema.column(*leaf).path().parts().to_vec();
        path.starts_with(text) || id.is_some_and(|id| path.starts_with(id))
    };
    ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(wanted))
}

pub(super) fn parse_group(group: &RowGroup, options: &Options, found: &mut Vec<Record>) {
    let table = &group.table;
    let mut done = group.before;
    let decoded = table.decode(group.group, |rows| {
        parse_rows(table, &rows, done, options, found);
        done += rows.num_rows() as u64;
        ControlFlow::Continue(())
    });
    let lost = table.lost(group.group, group.before, done, decoded);
    found.extend(lost.map(Err));
}

pub(super) fn parse_batch(batch: &Batch, options: &Options, found: &mut Vec<Record>) {
    parse_rows(&batch.table, &batch.rows, batch.before, options, found);
}

fn parse_rows(
    table: &Table,
    rows: &RecordBatch,
    before: u64,
    options: &Options,
    found: &mut Vec<Record>,
) {
    let place = |row: usize| Place::new(&table.file, At::Row(before + row as u64 + 1));
    // Bytes, because some writers call their strings binary: whether they are text, we see row by row.
    let text = column(rows, &table.text).and_then(|column| column.cast(&DataType::LargeBinary));
    let Some(text) = text else {
        let problem = format!("column `{}` cannot be read as text", options.text_field);
        return found.push(Err(BadRecord::new(place(0), problem)));
    };
    let texts = arrow_array::cast::AsArray::as_binary::<i64>(&*text.array);
    let ids = table.id.as_ref().and_then(|id| column(rows, id));
    for row in 0..rows.num_rows() {
        if text.is_null(row) {
            let problem = format!("field `{}` is null", options.text_field);
            found.push(Err(BadRecord::new(place(row), problem)));
            continue;
        }
        let id = ids.as_ref().map_or(Field::Missing, |ids| ids.id(row));
        found.push(document(place(row), texts.value(row), id, options).map(|mut document| {
            if options.payload {
                document.payload = payload(rows, row, table);
            }
            document
        }));
    }
}

fn document(place: Place, text: &[u8], id: Field, options: &Options) -> Record {
    let text = utf8(text, &place)?.to_owned();
    let id = id_or_place(place, id, options)?;
    Ok(Document { id, text, ..Document::default() })
}

/// All fields of a row but text and id.
fn payload(rows: &RecordBatch, row: usize, table: &Table) -> Map<String, Value> {
    let schema = rows.schema_ref();
    let is_text = |name: &String| table.text.len() == 1 && table.text[0] == *name;
    let columns = schema.fields().iter().map(|field| field.name()).zip(rows.columns());
    let others = columns.filter(|(name, _)| !is_text(name));
    let mut payload: Map<String, Value> =
        others.map(|(name, column)| (name.clone(), arrow_json::value(column, row))).collect();
    for path in [Some(&table.text), table.id.as_ref()].into_iter().flatten() {
        take(&mut payload, &path.join("."));
    }
    payload
}

/// A column, perhaps inside others.
struct Column {
    array: ArrayRef,
    /// The structs around it: where they are null, so is it.
    around: Vec<ArrayRef>,
}

impl Column {
    fn cast(self, kind: &DataType) -> Option<Self> {
        Some(Column { array: cast(&self.array, kind).ok()?, ..self })
    }

    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row) || self.around.iter().any(|outer| outer.is_null(row))
    }

    fn id(&self, row: usize) -> Field {
        match self.is_null(row) {
            true => Field::Null,
            false => id_of_value(&arrow_json::value(&self.array, row)),
        }
    }
}

fn column(rows: &RecordBatch, names: &[String]) -> Option<Column> {
    let (first, inner) = names.split_first()?;
    let mut array = Arc::clone(rows.column_by_name(first)?);
    let mut around = Vec::new();
    for name in inner {
        let next = array.as_any().downcast_ref::<StructArray>()?.column_by_name(name).cloned()?;
        around.push(std::mem::replace(&mut array, next));
    }
    Some(Column { array, around })
}
