//! Signatures as NumPy arrays: `.npy`, `uint8` of shape (n, bits/8), as `numpy.packbits` and FAISS have them.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    path::Path,
};

use crate::{
    Error, Result, Signatures,
    partial::Partial,
    signature::{bytes_of_words, check_width},
};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Reads an array of `uint8` (n, bits/8), or of `uint64` (n,) or (n, bits/64) whose first bit is the most significant.
pub fn read(path: &Path) -> Result<Signatures> {
    let io = |error| Error::io(path, error);
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut file = BufReader::with_capacity(1 << 20, file);
    let header = read_header(&mut file).map_err(|problem| Error::format(path, problem))?;
    let array = Array::parse(&header).map_err(|problem| Error::format(path, problem))?;
    let bits = check_width(array.row_bytes.saturating_mul(8)).map_err(|error| {
        Error::format(path, format!("has rows of {} bytes: {error}", array.row_bytes))
    })?;
    let bytes = array.rows.checked_mul(array.row_bytes).filter(|&bytes| bytes as u64 <= length);
    let bytes = bytes.ok_or_else(|| Error::format(path, "is cut: its header says more rows"))?;
    let mut data = vec![0; bytes];
    file.read_exact(&mut data)
        .map_err(|_| Error::format(path, format!("is cut: it should have {} rows", array.rows)))?;
    if array.words {
        // The integer's most significant bit leads; its bytes are little-endian in the file.
        data.as_chunks_mut::<8>().0.iter_mut().for_each(|word| word.reverse());
    }
    Signatures::from_bytes(bits, &data)
}

/// Writes rows of `bits` bits as `uint8` (n, bits/8).
pub fn write<'a>(
    path: &Path,
    bits: u32,
    rows: impl ExactSizeIterator<Item = &'a [u64]>,
) -> Result<()> {
    let write = || {
        let mut file = BufWriter::with_capacity(1 << 20, Partial::create(path)?);
        let shape = format!("({}, {})", rows.len(), bits / 8);
        file.write_all(&header("|u1", &shape))?;
        for row in rows {
            let bytes: Vec<u8> = bytes_of_words(bits, row).collect();
            file.write_all(&bytes)?;
        }
        file.into_inner()?.complete()
    };
    write().map_err(|error: std::io::Error| Error::io(path, error))
}

/// The header of version 1.0: padded so that the data starts at a multiple of 64.
fn header(descr: &str, shape: &str) -> Vec<u8> {
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    dict.extend(std::iter::repeat_n(' ', padded - dict.len() - 1));
    dict.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&(dict.len() as u16).to_le_bytes());
    header.extend_from_slice(dict.as_bytes());
    header
}

fn read_header(file: &mut impl Read) -> Result<String, String> {
    let cut = |_| "is cut inside of its header".to_owned();
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(cut)?;
    if &start[..6] != MAGIC {
        return Err("is not a .npy file".into());
    }
    let mut length = [0; 4];
    let wide = start[6] >= 2;
    file.read_exact(&mut length[..if wide { 4 } else { 2 }]).map_err(cut)?;
    let length = u32::from_le_bytes(length);
    if length > 1 << 20 {
        return Err("has a header of more than a megabyte".into());
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(cut)?;
    String::from_utf8(header).map_err(|_| "has a header that is not text".into())
}

/// What the header says.
struct Array {
    rows: usize,
    row_bytes: usize,
    /// Elements are 64-bit words, not bytes.
    words: bool,
}

impl Array {
    fn parse(header: &str) -> Result<Self, String> {
        let descr = value_of(header, "descr")?.trim_matches(['\'', '"']);
        let words = match descr {
            "|u1" | "<u1" | "u1" => false,
            "<u8" => true,
            "|b1" => return Err("holds booleans: pack them with numpy.packbits(x, axis=1)".into()),
            other => {
                return Err(format!("holds `{other}`, not uint8 of shape (n, bits/8)"));
            }
        };
        if value_of(header, "fortran_order")? != "False" {
            return Err("is in Fortran order: save numpy.ascontiguousarray(x)".into());
        }
        let shape = value_of(header, "shape")?.trim_matches(['(', ')']);
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let sizes: Option<Vec<usize>> = sizes.map(|size| size.parse().ok()).collect();
        let (rows, columns) = match (sizes.as_deref(), words) {
            (Some(&[rows, columns]), _) => (rows, columns),
            (Some(&[rows]), true) => (rows, 1),
            _ => return Err(format!("has shape ({shape}), not (n, bits/8)")),
        };
        let row_bytes = columns.checked_mul(if words { 8 } else { 1 });
        let row_bytes = row_bytes.ok_or_else(|| format!("has shape ({shape})"))?;
        Ok(Array { rows, row_bytes, words })
    }
}

/// The value of a key in the Python dictionary of the header.
fn value_of<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let missing = || format!("has no `{key}` in its header");
    let at = header.find(&format!("'{key}':")).ok_or_else(missing)? + key.len() + 3;
    let rest = header[at..].trim_start();
    let end = match rest.starts_with('(') {
        true => rest.find(')').map(|end| end + 1),
        false => rest.find([',', '}']),
    };
    end.map(|end| rest[..end].trim()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Signatures> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn arrays_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        for bits in [32, 64, 72, 1024] {
            let bytes: Vec<u8> = (0..bits / 8 * 5).map(|i| (i * 37) as u8).collect();
            let signatures = Signatures::from_bytes(bits, &bytes).unwrap();
            write(&path, bits, signatures.rows()).unwrap();
            let again = read(&path).unwrap();
            assert_eq!((again.bits(), again.words()), (bits, signatures.words()));
            assert_eq!(std::fs::read(&path).unwrap().len() % 64, bytes.len() % 64);
        }
    }

    #[test]
    fn words_lead_with_their_most_significant_bit() {
        let mut file = header("<u8", "(2,)");
        file.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0x80]);
        file.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read_bytes(&file).unwrap().words(), [0x8000_0000_0000_0001, 2]);
    }

    #[test]
    fn other_arrays_are_refused_with_a_reason() {
        let with = |descr, shape| {
            let mut file = header(descr, shape);
            file.extend_from_slice(&[0; 100]);
            read_bytes(&file).unwrap_err().to_string()
        };
        assert!(with("<f4", "(2, 8)").contains("holds `<f4`"));
        assert!(with("|b1", "(2, 64)").contains("packbits"));
        assert!(with("|u1", "(100000, 8)").contains("is cut"));
        assert!(with("|u1", "(20, 8)").contains("20 rows"));
        assert!(with("|u1", "(2, 3)").contains("rows of 3 bytes"));
        assert!(with("|u1", "(2, 8, 8)").contains("has shape"));
        assert!(read_bytes(b"PK..").unwrap_err().to_string().contains("is cut"));
        assert!(read_bytes(b"0123456789abcdef").unwrap_err().to_string().contains("not a .npy"));
    }
}
