//! Values of Arrow arrays as JSON, for payloads.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};
use serde_json::{Map, Value};

/// The value in `row`. Types that JSON does not have become their text, as in `2024-01-31T12:00:00`.
pub(super) fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::from(array.as_boolean().value(row)),
        DataType::Int8 => number::<Int8Type>(array, row),
        DataType::Int16 => number::<Int16Type>(array, row),
        DataType::Int32 => number::<Int32Type>(array, row),
        DataType::Int64 => number::<Int64Type>(array, row),
        DataType::UInt8 => number::<UInt8Type>(array, row),
        DataType::UInt16 => number::<UInt16Type>(array, row),
        DataType::UInt32 => number::<UInt32Type>(array, row),
        DataType::UInt64 => number::<UInt64Type>(array, row),
        DataType::Float32 => number::<Float32Type>(array, row),
        DataType::Float64 => number::<Float64Type>(array, row),
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Value::from(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Value::from(array.as_string_view().value(row)),
        DataType::Binary => bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(array.as_binary_view().value(row)),
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            columns.map(|(field, column)| (field.name().clone(), value(column, row))).collect()
        }
        DataType::Map(..) => map(array, row),
        DataType::Timestamp(unit, Some(_)) => timestamp(array, row, *unit),
        _ => as_text(array, row),
    }
}

fn number<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Value
where
    Value: From<T::Native>,
{
    Value::from(array.as_primitive::<T>().value(row))
}

/// Some writers call their strings binary.
fn bytes(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn list(items: &ArrayRef) -> Value {
    (0..items.len()).map(|item| value(items, item)).collect()
}

fn map(array: &ArrayRef, row: usize) -> Value {
    let entries = array.as_map().value(row);
    let (Some(keys), Some(values)) = (entries.columns().first(), entries.columns().get(1)) else {
        return Value::Null;
    };
    let key = |entry| match value(keys, entry) {
        Value::String(key) => key,
        other => other.to_string(),
    };
    let pairs = (0..entries.len()).map(|entry| (key(entry), value(values, entry)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Whatever the zone's name, the value counts from the epoch in UTC.
fn timestamp(array: &ArrayRef, row: usize, unit: TimeUnit) -> Value {
    let in_utc = DataType::Timestamp(unit, Some("+00:00".into()));
    cast(&array.slice(row, 1), &in_utc).map_or(Value::Null, |array| as_text(&array, 0))
}

fn as_text(array: &ArrayRef, row: usize) -> Value {
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) => formatter.value(row).try_to_string().map_or(Value::Null, Value::from),
        Err(_) => Value::Null,
    }
}
