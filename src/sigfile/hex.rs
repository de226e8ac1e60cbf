//! Signatures as text: one a line in hexadecimal digits, leading bit first, then a tab and its id if it has one.

use std::{
    borrow::Cow,
    io::{BufRead, BufWriter, Write},
    path::Path,
};

use crate::{
    Error, Result, Signature, SignatureFile, Signatures, partial::Partial,
    signature::bytes_of_words,
};

/// Signatures with the ids that some or all of them have.
#[derive(Debug, Clone)]
pub struct HexLines {
    /// The signatures.
    pub signatures: Signatures,
    /// As many ids, if there are any; a line without one has its row number.
    pub ids: Option<Vec<String>>,
}

/// Reads signatures from lines. Blank lines are passed over.
pub fn read(path: &Path, lines: impl BufRead) -> Result<HexLines> {
    let mut found: Option<Signatures> = None;
    let mut ids = Vec::new();
    let mut any_id = false;
    for (number, line) in lines.lines().enumerate() {
        let line = line.map_err(|error| Error::io(path, error))?;
        let (digits, id) = match line.trim().split_once(char::is_whitespace) {
            Some((digits, id)) => (digits, Some(id.trim())),
            None => (line.trim(), None),
        };
        if digits.is_empty() {
            continue;
        }
        let at_line = |error: Error| Error::format(path, format!("line {}: {error}", number + 1));
        let signature = Signature::from_hex(digits).map_err(at_line)?;
        let row = found.as_ref().map_or(0, Signatures::len);
        match &mut found {
            Some(signatures) => signatures.push(&signature).map_err(at_line)?,
            None => found = Some(signature.into()),
        }
        any_id |= id.is_some();
        ids.push(id.map_or_else(|| row.to_string(), unescape));
    }
    let signatures = found.ok_or_else(|| Error::format(path, "has no signature in it"))?;
    Ok(HexLines { signatures, ids: any_id.then_some(ids) })
}

/// Writes signatures with their ids, if they have any.
pub fn write(path: &Path, file: &SignatureFile) -> Result<()> {
    let write = || {
        let mut out = BufWriter::with_capacity(1 << 20, Partial::create(path)?);
        let (signatures, has_ids) = (file.signatures(), file.columns().ids);
        for (row, words) in signatures.rows().enumerate() {
            let id = has_ids.then(|| file.id(row));
            write_line(&mut out, signatures.bits(), words, id.as_deref())?;
        }
        out.into_inner()?.complete()
    };
    write().map_err(|error: std::io::Error| Error::io(path, error))
}

/// An id on one line and without tabs: control characters and backslashes are escaped as in JSON.
pub fn escape(id: &str) -> Cow<'_, str> {
    if !id.contains(|c: char| c.is_control() || c == '\\') {
        return Cow::Borrowed(id);
    }
    let mut escaped = String::with_capacity(id.len() + 2);
    for c in id.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            c if c.is_control() => escaped.push_str(&format!("\\u{:04x}", c as u32)),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// The id that was escaped so; anything else stays as it is.
fn unescape(id: &str) -> String {
    let quoted = format!("\"{}\"", id.replace('"', "\\\""));
    serde_json::from_str(&quoted).unwrap_or_else(|_| id.to_owned())
}

/// Writes one signature.
fn write_line(
    to: &mut impl Write,
    bits: u32,
    words: &[u64],
    id: Option<&str>,
) -> std::io::Result<()> {
    bytes_of_words(bits, words).try_for_each(|byte| write!(to, "{byte:02x}"))?;
    match id {
        Some(id) => writeln!(to, "\t{}", escape(id)),
        None => writeln!(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were() {
        let text = "0123456789abcdef\tfirst doc\nffffffffffffffff\tsecond\n";
        let lines = read(Path::new("x.hex"), text.as_bytes()).unwrap();
        let ids = lines.ids.unwrap();
        let mut again = Vec::new();
        for (row, id) in lines.signatures.rows().zip(&ids) {
            write_line(&mut again, 64, row, Some(id)).unwrap();
        }
        assert_eq!(String::from_utf8(again).unwrap(), text);
        assert!(read(Path::new("x.hex"), &b"00000000\n\n11111111"[..]).unwrap().ids.is_none());
    }

    #[test]
    fn ids_survive_whatever_is_in_them() {
        for id in ["plain", "tab\there", "two\nlines", r"C:\new\x", "quote \" and \u{1}", "é 文"]
        {
            assert!(!escape(id).contains(char::is_control));
            assert_eq!(unescape(&escape(id)), id);
        }
        assert_eq!(unescape(r"not \escaped"), r"not \escaped");
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, problem) in [
            ("00000000\nxyz12345", "x.hex: line 2: `xyz12345`"),
            (
                "00000000\n0000000000",
                "line 2: signatures of 40 bits do not go with signatures of 32",
            ),
            ("", "no signature"),
        ] {
            let error = read(Path::new("x.hex"), text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
