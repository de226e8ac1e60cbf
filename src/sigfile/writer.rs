//! Writes signature files row by row, in memory that does not grow with them.

use std::{ops::Range, path::Path};

use super::{About, KIND, strings::ends_of};
use crate::{
    Recipe, Result,
    container::ContainerWriter,
    signature::{check_words, words_for},
};

/// Which columns a signature file has besides the signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    /// The ids of the documents.
    pub ids: bool,
    /// How weak each bit is.
    pub margins: bool,
    /// Which part of its document each row is the signature of.
    pub passages: bool,
    /// The documents' other fields.
    pub payloads: bool,
}

/// A row to be written. What the file has no column for is ignored.
#[derive(Debug, Clone, Default)]
pub struct Row<'a> {
    /// The signature.
    pub words: &'a [u64],
    /// The id of its document.
    pub id: &'a str,
    /// How weak each bit is, in a byte each.
    pub margins: Option<&'a [u8]>,
    /// The bytes of the document's text that it is the signature of.
    pub passage: Option<Range<u64>>,
    /// The document's other fields, as a JSON object.
    pub payload: Option<&'a str>,
}

/// A signature file being written. It takes its name when it is finished; before that nothing is there.
pub struct SignatureWriter {
    container: ContainerWriter,
    about: About,
    sections: Sections,
    id_bytes: u64,
    payload_bytes: u64,
}

/// Which section of the container each column is.
#[derive(Default)]
struct Sections {
    ids: Option<[usize; 2]>,
    margins: Option<usize>,
    passages: Option<usize>,
    payloads: Option<[usize; 2]>,
}

impl SignatureWriter {
    /// Begins a file of signatures of `bits` bits; `recipe` made them, if we know.
    pub fn create(
        path: &Path,
        bits: u32,
        recipe: Option<&Recipe>,
        columns: Columns,
    ) -> Result<Self> {
        crate::signature::check_width(bits as usize)?;
        let mut names = vec!["signatures"];
        let mut section = |name| {
            names.push(name);
            names.len() - 1
        };
        let mut texts =
            |wanted: bool, name| wanted.then(|| [section(name), section(ends_of(name))]);
        let ids = texts(columns.ids, "ids");
        let payloads = texts(columns.payloads, "payloads");
        let margins = columns.margins.then(|| section("margins"));
        let passages = columns.passages.then(|| section("passages"));
        let about = About {
            bits,
            rows: 0,
            recipe: recipe.cloned(),
            recipe_hash: recipe.map(Recipe::hash),
            unsigned: 0,
        };
        let container = ContainerWriter::create(path, KIND, &names)?;
        let sections = Sections { ids, margins, passages, payloads };
        Ok(SignatureWriter { container, about, sections, id_bytes: 0, payload_bytes: 0 })
    }

    /// How many rows there are so far.
    pub fn rows(&self) -> u64 {
        self.about.rows
    }

    /// Appends a row.
    pub fn push(&mut self, row: &Row<'_>) -> Result<()> {
        let bits = self.about.bits;
        check_words(bits, row.words)?;
        assert_eq!(row.words.len(), words_for(bits), "one row");
        for word in row.words {
            self.container.write(0, &word.to_le_bytes())?;
        }
        if let Some(sections) = self.sections.ids {
            write_text(&mut self.container, sections, &mut self.id_bytes, row.id)?;
        }
        if let Some(sections) = self.sections.payloads {
            let payload = row.payload.unwrap_or("{}");
            write_text(&mut self.container, sections, &mut self.payload_bytes, payload)?;
        }
        if let Some(section) = self.sections.margins {
            let margins = row.margins.expect("a file with margins has them for each row");
            assert_eq!(margins.len(), bits as usize, "a margin for each bit");
            self.container.write(section, margins)?;
        }
        if let Some(section) = self.sections.passages {
            let passage = row.passage.clone().unwrap_or(0..0);
            self.container.write(section, &passage.start.to_le_bytes())?;
            self.container.write(section, &passage.end.to_le_bytes())?;
        }
        self.about.rows += 1;
        Ok(())
    }

    /// Completes the file, makes it durable and gives it its name. `unsigned` documents had too few features.
    pub fn finish(mut self, unsigned: u64) -> Result<()> {
        self.about.unsigned = unsigned;
        self.container.finish(self.about)
    }
}

fn write_text(
    container: &mut ContainerWriter,
    [bytes, ends]: [usize; 2],
    written: &mut u64,
    text: &str,
) -> Result<()> {
    *written += text.len() as u64;
    container.write(bytes, text.as_bytes())?;
    container.write(ends, &written.to_le_bytes())
}
