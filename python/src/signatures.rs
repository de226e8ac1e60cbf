//! Signatures: an array of bytes as Python sees them, words as the engine does. Either is made of the other when it is first
//! needed.

use std::{path::PathBuf, sync::Arc};

use lookalike::{
    Recipe as EngineRecipe, SignatureFile, Signatures as Engine,
    sigfile::{Columns, Row, SignatureWriter, npy, suffix_of},
    signature::check_width,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::{prelude::*, sync::PyOnceLock};

use crate::{
    error::{OrRaise, wrong},
    recipe::Recipe,
    rows::{bytes_of_rows, rows_of_bytes, words_of_rows},
    threads::detached,
};

/// Rows of one width.
#[pyclass(frozen, module = "lookalike._engine")]
pub(crate) struct Signatures {
    bits: u32,
    len: usize,
    recipe: Option<EngineRecipe>,
    array: PyOnceLock<Py<PyArray2<u8>>>,
    packed: PyOnceLock<Packed>,
    /// Which rows have a signature, if not all have one.
    signed: Option<Vec<bool>>,
    margins: Option<Py<PyArray2<u8>>>,
    file: Option<Arc<SignatureFile>>,
}

fn known<T>(py: Python<'_>, value: T) -> PyOnceLock<T> {
    let cell = PyOnceLock::new();
    let _ = cell.set(py, value);
    cell
}

/// The rows that have a signature, as the engine has them.
#[derive(Clone)]
pub(crate) struct Packed {
    pub(crate) rows: Arc<Engine>,
    /// The number of each row, if some are left out.
    pub(crate) numbers: Option<Arc<[u32]>>,
}

impl Packed {
    /// The number that users know a row by.
    pub(crate) fn number(&self, row: u32) -> u32 {
        self.numbers.as_ref().map_or(row, |numbers| numbers[row as usize])
    }
}

impl Signatures {
    /// What was signed just now.
    pub(crate) fn signed(
        py: Python<'_>,
        bytes: Vec<u8>,
        margins: Option<Vec<u8>>,
        signed: Option<Vec<bool>>,
        recipe: EngineRecipe,
    ) -> PyResult<Self> {
        let bits = recipe.signature.bits;
        let row_bytes = bits as usize / 8;
        let len = bytes.len() / row_bytes;
        let array = rows_of_bytes(py, bytes, len, row_bytes)?;
        let margins = margins.map(|margins| rows_of_bytes(py, margins, len, bits as usize));
        Ok(Signatures {
            bits,
            len,
            recipe: Some(recipe),
            array: known(py, array.unbind()),
            packed: PyOnceLock::new(),
            signed,
            margins: margins.transpose()?.map(Bound::unbind),
            file: None,
        })
    }

    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn recipe(&self) -> Option<&EngineRecipe> {
        self.recipe.as_ref()
    }

    /// The rows as the engine has them. They are converted once.
    pub(crate) fn packed(&self, py: Python<'_>) -> PyResult<&Packed> {
        if let Some(packed) = self.packed.get(py) {
            return Ok(packed);
        }
        let array = self.array(py)?;
        let array = array.bind(py).readonly();
        let bytes = array.as_slice()?;
        let packed = py.detach(|| self.pack(bytes))?;
        Ok(self.packed.get_or_init(py, || packed))
    }

    fn pack(&self, bytes: &[u8]) -> PyResult<Packed> {
        let row_bytes = self.bits as usize / 8;
        let Some(signed) = &self.signed else {
            let rows = Engine::from_words(self.bits, words_of_rows(self.bits, bytes)).or_raise()?;
            return Ok(Packed { rows: Arc::new(rows), numbers: None });
        };
        let numbers: Arc<[u32]> =
            (0..self.len as u32).filter(|&row| signed[row as usize]).collect();
        let row = |&row: &u32| &bytes[row as usize * row_bytes..][..row_bytes];
        let bytes: Vec<u8> = numbers.iter().flat_map(row).copied().collect();
        let rows = Engine::from_words(self.bits, words_of_rows(self.bits, &bytes)).or_raise()?;
        Ok(Packed { rows: Arc::new(rows), numbers: Some(numbers) })
    }

    /// Refuses signatures that another recipe made, if both are known.
    pub(crate) fn check_recipe(&self, stored: Option<&EngineRecipe>) -> PyResult<()> {
        match (stored, &self.recipe) {
            (Some(stored), Some(given)) => stored.check_same(given).or_raise(),
            _ => Ok(()),
        }
    }

    /// Refuses another width.
    pub(crate) fn of_width(&self, bits: u32) -> PyResult<&Self> {
        match self.bits == bits {
            true => Ok(self),
            false => Err(wrong(format!(
                "uint8 (n, {}) is wanted for {bits} bits; this is (n, {}): {} bits",
                bits / 8,
                self.bits / 8,
                self.bits
            ))),
        }
    }

    /// The margins of the rows that have a signature.
    pub(crate) fn all_margins(&self, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        let Some(margins) = &self.margins else { return Ok(None) };
        let margins = margins.bind(py).readonly();
        let margins = margins.as_slice()?;
        Ok(Some(match &self.signed {
            None => margins.to_vec(),
            Some(signed) => {
                let rows = margins.chunks_exact(self.bits as usize).zip(signed);
                rows.filter(|(_, signed)| **signed).flat_map(|(row, _)| row).copied().collect()
            }
        }))
    }

    fn array(&self, py: Python<'_>) -> PyResult<&Py<PyArray2<u8>>> {
        if let Some(array) = self.array.get(py) {
            return Ok(array);
        }
        // Without an array they are those of a file, of which every row has a signature.
        let packed = self.packed.get(py).ok_or_else(|| wrong("there are no rows"))?;
        let bytes = py.detach(|| bytes_of_rows(self.bits, packed.rows.words()));
        let array = rows_of_bytes(py, bytes, self.len, self.bits as usize / 8)?;
        Ok(self.array.get_or_init(py, || array.unbind()))
    }
}

#[pymethods]
impl Signatures {
    /// Rows of an array, which stays where it is.
    #[staticmethod]
    #[pyo3(signature = (array, recipe))]
    fn from_array(
        py: Python<'_>,
        array: &Bound<'_, PyArray2<u8>>,
        recipe: Option<&Recipe>,
    ) -> PyResult<Self> {
        let (len, row_bytes) = (array.shape()[0], array.shape()[1]);
        let bits = check_width(row_bytes * 8).or_raise()?;
        let made = Signatures {
            bits,
            len,
            recipe: recipe.map(|recipe| recipe.0.clone()),
            array: known(py, array.clone().unbind()),
            packed: PyOnceLock::new(),
            signed: None,
            margins: None,
            file: None,
        };
        if let Some(recipe) = recipe {
            made.of_width(recipe.0.signature.bits)?;
        }
        Ok(made)
    }

    /// The signatures of a file: `.sig`, `.npy` or `.hex`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = detached(py, || SignatureFile::open(&path)).or_raise()?;
        Signatures::of_file(py, file)
    }

    /// Writes the rows that have a signature.
    fn save(&self, py: Python<'_>, path: PathBuf, ids: Option<Vec<String>>) -> PyResult<()> {
        let packed = self.packed(py)?.clone();
        let margins = self.all_margins(py)?;
        py.detach(|| self.write(&path, &packed, margins.as_deref(), ids.as_deref())).or_raise()
    }

    #[getter(bits)]
    fn get_bits(&self) -> u32 {
        self.bits
    }

    fn __len__(&self) -> usize {
        self.len
    }

    #[getter(recipe)]
    fn get_recipe(&self) -> Option<Recipe> {
        self.recipe.clone().map(Recipe)
    }

    #[getter(array)]
    fn get_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u8>>> {
        Ok(self.array(py)?.bind(py).clone())
    }

    #[getter(signed)]
    fn get_signed<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<bool>>> {
        self.signed.as_ref().map(|signed| PyArray1::from_slice(py, signed))
    }

    #[getter(margins)]
    fn get_margins<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<u8>>> {
        self.margins.as_ref().map(|margins| margins.bind(py).clone())
    }

    /// The ids that the file has.
    #[getter]
    fn ids(&self) -> Option<Vec<String>> {
        let file = self.file.as_ref().filter(|file| file.columns().ids)?;
        Some((0..self.len).map(|row| file.id(row).into_owned()).collect())
    }

    /// How alike documents are whose signatures are so many bits apart.
    fn similarity(&self, distance: u32) -> f64 {
        let distance = distance.min(self.bits);
        lookalike::verify::similarity_of_distance(self.recipe.as_ref(), distance, self.bits)
    }
}

impl Signatures {
    pub(crate) fn of_file(py: Python<'_>, file: SignatureFile) -> PyResult<Self> {
        let rows = file.signatures().clone();
        let (bits, len) = (rows.bits(), rows.len());
        let margins =
            file.all_margins().map(|all| rows_of_bytes(py, all.to_vec(), len, bits as usize));
        Ok(Signatures {
            bits,
            len,
            recipe: file.recipe().cloned(),
            array: PyOnceLock::new(),
            packed: known(py, Packed { rows: Arc::new(rows), numbers: None }),
            signed: None,
            margins: margins.transpose()?.map(Bound::unbind),
            file: Some(Arc::new(file)),
        })
    }

    fn write(
        &self,
        path: &std::path::Path,
        packed: &Packed,
        margins: Option<&[u8]>,
        ids: Option<&[String]>,
    ) -> lookalike::Result<()> {
        if suffix_of(path).as_deref() == Some("npy") {
            return npy::write(path, self.bits, packed.rows.rows());
        }
        let columns =
            Columns { ids: ids.is_some(), margins: margins.is_some(), ..Columns::default() };
        let mut writer = SignatureWriter::create(path, self.bits, self.recipe.as_ref(), columns)?;
        let bits = self.bits as usize;
        for (row, words) in packed.rows.rows().enumerate() {
            let number = packed.number(row as u32) as usize;
            writer.push(&Row {
                words,
                id: ids.map_or("", |ids| &ids[number]),
                margins: margins.map(|margins| &margins[row * bits..][..bits]),
                ..Row::default()
            })?;
        }
        writer.finish((self.len - packed.rows.len()) as u64)
    }
}
