//! Signatures as Parquet: columns `id` (text) and `signature` (fixed-size binary, leading byte first).

use std::{fs::File, path::Path, sync::Arc};

use anyhow::Context;
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, RecordBatch, StringArray,
    builder::FixedSizeBinaryBuilder,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use lookalike::{SignatureFile, Signatures, partial::Partial, signature::bytes_of_words};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::Compression,
    file::properties::WriterProperties,
};

use crate::failure::hinted;

/// Rows in memory at a time.
const BATCH: usize = 64 * 1024;

/// Writes the ids and signatures of a file.
pub(crate) fn write_parquet(path: &Path, file: &SignatureFile) -> anyhow::Result<()> {
    let context = || path.display().to_string();
    let target = Partial::create(path).with_context(context)?;
    // Signatures are random bits: packing them is time lost.
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .build();
    let schema = batch(file, 0..0)?.schema();
    let mut writer = ArrowWriter::try_new(target, schema, Some(properties))?;
    let rows = file.signatures().len();
    for start in (0..rows).step_by(BATCH) {
        let batch = batch(file, start..rows.min(start + BATCH))?;
        writer.write(&batch).with_context(context)?;
    }
    writer.into_inner().with_context(context)?.complete().with_context(context)
}

fn batch(file: &SignatureFile, rows: std::ops::Range<usize>) -> anyhow::Result<RecordBatch> {
    let bits = file.signatures().bits();
    let ids = StringArray::from_iter_values(rows.clone().map(|row| file.id(row)));
    let mut signatures = FixedSizeBinaryBuilder::with_capacity(rows.len(), bits as i32 / 8);
    for row in rows {
        let bytes: Vec<u8> = bytes_of_words(bits, file.signatures().row(row)).collect();
        signatures.append_value(&bytes)?;
    }
    let columns: [(&str, ArrayRef); 2] =
        [("id", Arc::new(ids)), ("signature", Arc::new(signatures.finish()))];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Reads the column `signature` (binary, all of one length) and the column `id`, if there is one.
pub(crate) fn read_parquet(path: &Path) -> anyhow::Result<SignatureFile> {
    let name = path.display().to_string();
    let source = File::open(path).with_context(|| name.clone())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(source).with_context(|| name.clone())?;
    let fields: Vec<String> = reader.schema().fields().iter().map(|f| f.name().clone()).collect();
    if !fields.iter().any(|field| field == "signature") {
        let problem = format!("{name}: there is no column `signature`");
        return Err(hinted(problem, format!("it has {}", fields.join(", "))));
    }
    // A file without rows still tells the width.
    let width = match reader.schema().field_with_name("signature")?.data_type() {
        DataType::FixedSizeBinary(bytes) => Some(*bytes as u32 * 8),
        _ => None,
    };
    let mut signatures = width.map(Signatures::new).transpose().with_context(|| name.clone())?;
    let mut ids = fields.iter().any(|field| field == "id").then(Vec::new);
    for batch in reader.build()? {
        let batch = batch.with_context(|| name.clone())?;
        let column = batch.column_by_name("signature").context("column `signature` is gone")?;
        let first_row = signatures.as_ref().map_or(0, Signatures::len);
        add_signatures(column, first_row, &mut signatures).with_context(|| name.clone())?;
        if let (Some(ids), Some(column)) = (&mut ids, batch.column_by_name("id")) {
            let column = cast(column, &DataType::Utf8)?;
            let texts = column.as_any().downcast_ref::<StringArray>().context("ids as text")?;
            ids.extend(texts.iter().map(|id| id.unwrap_or_default().to_owned()));
        }
    }
    let signatures = signatures.with_context(|| format!("{name}: there is no row in it"))?;
    Ok(SignatureFile::foreign(signatures, ids))
}

fn add_signatures(
    column: &ArrayRef,
    first_row: usize,
    to: &mut Option<Signatures>,
) -> anyhow::Result<()> {
    let fixed = column.as_any().downcast_ref::<FixedSizeBinaryArray>();
    let binary = match fixed {
        Some(_) => None,
        None => Some(cast(column, &DataType::Binary).context("column `signature` is not binary")?),
    };
    let binary = binary.as_ref().and_then(|column| column.as_any().downcast_ref::<BinaryArray>());
    for row in 0..column.len() {
        let bytes = match (fixed, binary) {
            _ if column.is_null(row) => &[][..],
            (Some(fixed), _) => fixed.value(row),
            (_, Some(binary)) => binary.value(row),
            _ => &[][..],
        };
        let mut add = || -> lookalike::Result<()> {
            let signature = lookalike::Signature::from_bytes(bytes)?;
            match to {
                Some(signatures) => signatures.push(&signature),
                None => {
                    *to = Some(signature.into());
                    Ok(())
                }
            }
        };
        add().with_context(|| format!("row {}", first_row + row + 1))?;
    }
    Ok(())
}
