//! Errors that name the thing and the place. The way out is told by the doors, which know the user's words for it.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// What can go wrong in the engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A signature width that we do not store.
    #[error("{bits} bits is not a signature width: widths are multiples of 8 from 32 to 4096")]
    Width {
        /// The width asked for.
        bits: usize,
    },

    /// Two signatures, or a query and an index, have different widths.
    #[error("signatures of {given} bits do not go with signatures of {stored} bits")]
    WidthMismatch {
        /// The width already there.
        stored: u32,
        /// The width that came.
        given: u32,
    },

    /// Margins that do not fit their queries.
    #[error("{given} bytes of margins for queries that have {wanted} bits")]
    Margins {
        /// A byte for each bit of each query.
        wanted: usize,
        /// How many bytes came.
        given: usize,
    },

    /// Words that are not whole rows of a width, or that have bits past it.
    #[error("{words} words are not signatures of {bits} bits: {problem}")]
    Words {
        /// How many words there are.
        words: usize,
        /// The width.
        bits: u32,
        /// What is wrong with them.
        problem: &'static str,
    },

    /// Signatures of two recipes were about to be mixed.
    #[error(
        "signatures made with recipe {given} do not go with signatures made with recipe {stored}"
    )]
    RecipeMismatch {
        /// The recipe already there, as name and hash.
        stored: String,
        /// The recipe that came, as name and hash.
        given: String,
    },

    /// A recipe that says something impossible.
    #[error("recipe: `{field}` {problem}")]
    Recipe {
        /// The field at fault, as written in the recipe file.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },

    /// A setting that is out of its bounds.
    #[error("{name} {problem}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },

    /// A recipe that weighs terms by their statistics, without the statistics it was made with.
    #[error("recipe `{recipe}` needs {wanted}, but {given}")]
    Terms {
        /// The recipe's name.
        recipe: String,
        /// The statistics it asks for.
        wanted: String,
        /// What was there instead.
        given: String,
    },

    /// A filter that cannot be read.
    #[error("filter `{text}`: at character {at}, {problem}")]
    Filter {
        /// The whole filter.
        text: String,
        /// Which of its characters is at fault, counted from 1; one past the last if more should follow.
        at: usize,
        /// What is wrong there, or what was expected.
        problem: String,
    },

    /// Instructions that are unknown, or that this CPU does not have.
    #[error("`LOOKALIKE_SIMD={given}`: this CPU has {available}")]
    Simd {
        /// What was asked for.
        given: String,
        /// What could be asked for, best first.
        available: String,
    },

    /// More rows than an index can number.
    #[error("{rows} rows are more than the {} that an index can number", u32::MAX)]
    TooManyRows {
        /// How many there are.
        rows: usize,
    },

    /// A join that finds more pairs than its user is ready for.
    #[error("there are at least {pairs} pairs, more than the {most} that are allowed")]
    TooManyPairs {
        /// How many there are, or are expected, so far.
        pairs: u64,
        /// The limit.
        most: u64,
    },

    /// Work that was stopped by whoever had begun it.
    #[error("it was stopped")]
    Stopped,

    /// A join that does not get along with so little memory.
    #[error("the join needs {needed} bytes at a time, but may only use {given}")]
    JoinMemory {
        /// What the rows that have to be together take.
        needed: u64,
        /// What there is for them.
        given: u64,
    },

    /// A method of search with numbers that do not suit.
    #[error("`{method}` {problem}")]
    Method {
        /// The method.
        method: String,
        /// Why not.
        problem: String,
    },

    /// An index that was built over other signatures.
    #[error("{}: belongs to {wanted}, not to {given}", index.display())]
    OtherSignatures {
        /// The file of the index.
        index: PathBuf,
        /// The signatures that it was built over.
        wanted: String,
        /// The signatures that came with it.
        given: String,
    },

    /// A line of hexadecimal digits that is no signature.
    #[error("`{text}` is not a signature: {problem}")]
    Hex {
        /// The start of what was given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// A file that is not in the format it should be in.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        problem: String,
    },

    /// A file of ours that something has happened to.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        problem: String,
    },

    /// A record of a collection that something has happened to.
    #[error("{store}: the record at position {position} {problem}")]
    DamagedRecord {
        /// The file or the address of the database.
        store: String,
        /// The position of the record.
        position: u64,
        /// What is wrong with it.
        problem: String,
    },

    /// A database that refuses.
    #[error("{store}")]
    Store {
        /// The file or the address of the database.
        store: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// An id that is in the collection already.
    #[error("`{id}` is in the collection already")]
    IdExists {
        /// The id.
        id: String,
    },

    /// A question that was not answered within the time it was given.
    #[error("it was not answered in time")]
    OutOfTime,

    /// Records that are more than what was asked for may take.
    #[error("the records that were found have more than {most} bytes")]
    TooManyBytes {
        /// The most that they may have.
        most: u64,
    },

    /// A radius that the slices in the database are too few for.
    #[error(
        "a radius of {radius} is more than the {guarantee} that the slices in the database guarantee"
    )]
    BeyondSlices {
        /// What was asked for.
        radius: u32,
        /// What all is found within.
        guarantee: u32,
    },

    /// A collection whose database has no slices.
    #[error("the database has no indexes on slices of the signatures")]
    NoSlices,

    /// An entry that a collection cannot keep.
    #[error("`{id}` {problem}")]
    Entry {
        /// Its id.
        id: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A collection that was opened to be read.
    #[error("{}: was opened to be read", path.display())]
    ReadOnly {
        /// The collection.
        path: PathBuf,
    },

    /// A collection that another process writes to.
    #[error("{}: another process is writing to it", path.display())]
    Locked {
        /// The collection.
        path: PathBuf,
    },

    /// The system has no memory left.
    #[error("there is not enough memory")]
    Memory {
        /// What the system said.
        source: std::io::Error,
    },

    /// The system refused to read or write.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the system about `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { path: path.to_owned(), source }
    }

    /// A file that is not in the format it should be in.
    pub fn format(path: &Path, problem: impl Into<String>) -> Self {
        Error::Format { path: path.to_owned(), problem: problem.into() }
    }

    /// A file of ours that something has happened to.
    pub fn damaged(path: &Path, problem: impl Into<String>) -> Self {
        Error::Damaged { path: path.to_owned(), problem: problem.into() }
    }
}
