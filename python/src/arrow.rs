//! Arrow columns from whoever has the Arrow C data interface: pyarrow, polars, pandas, datasets. Nothing is copied: texts are
//! read where they are, and kept alive by what they are in.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef,
    cast::AsArray,
    ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi},
    ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream},
    make_array,
};
use arrow_schema::DataType;
use pyo3::{
    intern,
    prelude::*,
    types::{PyCapsule, PyTuple},
};

use crate::error::wrong;

/// The arrays of a column, one after the other.
pub(crate) type Arrays = Box<dyn Iterator<Item = PyResult<ArrayRef>> + Send>;

/// The arrays of an object that has any.
pub(crate) fn arrays(object: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    let py = object.py();
    if object.hasattr(intern!(py, "__arrow_c_stream__"))? {
        return stream(object).map(Some);
    }
    if object.hasattr(intern!(py, "__arrow_c_array__"))? {
        let array = single(object)?;
        return Ok(Some(Box::new(std::iter::once(Ok(array)))));
    }
    Ok(None)
}

fn bad(error: impl std::fmt::Display) -> PyErr {
    wrong(format!("this is no Arrow column: {error}"))
}

#[expect(unsafe_code, reason = "the interface is one of C pointers")]
fn stream(object: &Bound<'_, PyAny>) -> PyResult<Arrays> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: the name of the capsule says what it points to, and the stream is moved out of it once.
    let reader =
        unsafe { ArrayStreamReader::from_raw(pointer.cast::<FFI_ArrowArrayStream>().as_ptr()) };
    Ok(Box::new(reader.map_err(bad)?.map(|array| array.map_err(bad))))
}

#[expect(unsafe_code, reason = "the interface is one of C pointers")]
fn single(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let both = object.call_method0("__arrow_c_array__")?;
    let both = both.cast::<PyTuple>()?;
    let (schema, array) = (both.get_item(0)?, both.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_schema"))?;
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array"))?;
    // SAFETY: the names of the capsules say what they point to; the array is moved out of its capsule once, and the schema
    // is lent for the time of the call.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.cast::<FFI_ArrowArray>().as_ptr());
        from_ffi(array, schema.cast::<FFI_ArrowSchema>().as_ref())
    };
    Ok(make_array(data.map_err(bad)?))
}

/// A column of texts, whichever way Arrow keeps them.
#[derive(Clone)]
pub(crate) enum Column {
    Utf8(arrow_array::StringArray),
    Large(arrow_array::LargeStringArray),
    View(arrow_array::StringViewArray),
    /// The place of each text among the different ones.
    Dictionary(Arc<Column>, Arc<[Option<u32>]>),
    Null(usize),
}

impl Column {
    pub(crate) fn new(array: &ArrayRef) -> PyResult<Self> {
        // Whoever made the column may not have looked: Parquet and Spark have strings that are no Unicode.
        if let DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View = array.data_type() {
            let checked = array.to_data().validate_full();
            checked.map_err(|error| wrong(format!("the texts are not Unicode: {error}")))?;
        }
        Ok(match array.data_type() {
            DataType::Utf8 => Column::Utf8(array.as_string().clone()),
            DataType::LargeUtf8 => Column::Large(array.as_string().clone()),
            DataType::Utf8View => Column::View(array.as_string_view().clone()),
            DataType::Null => Column::Null(array.len()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.normalized_keys().into_iter().enumerate();
                let keys = keys.map(|(at, key)| array.is_valid(at).then_some(key as u32)).collect();
                Column::Dictionary(Arc::new(Column::new(dictionary.values())?), keys)
            }
            DataType::Struct(_) => {
                return Err(wrong("this is a table, not a column of texts: name a column"));
            }
            other => return Err(wrong(format!("texts are strings; this column has {other}"))),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Column::Utf8(array) => array.len(),
            Column::Large(array) => array.len(),
            Column::View(array) => array.len(),
            Column::Dictionary(_, keys) => keys.len(),
            Column::Null(len) => *len,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            Column::Utf8(array) => array.is_valid(at).then(|| array.value(at)),
            Column::Large(array) => array.is_valid(at).then(|| array.value(at)),
            Column::View(array) => array.is_valid(at).then(|| array.value(at)),
            Column::Dictionary(values, keys) => values.get(keys[at]? as usize),
            Column::Null(_) => None,
        }
    }
}
