//! What is searched: a file of signatures, or an index, which knows where its signatures are.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lookalike::{
    SignatureFile, Signatures,
    index::{GraphFile, IndexFile, IsslFile, Method, Shape},
};

use crate::{failure::hinted, output::open_signatures};

/// Signatures, and an index over them if a file of one was named.
pub(crate) struct Opened {
    pub(crate) file: SignatureFile,
    /// Where the signatures are.
    pub(crate) path: PathBuf,
    pub(crate) index: Option<OpenedIndex>,
    pub(crate) took: Duration,
}

impl Opened {
    /// Opens what the user named.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        let started = Instant::now();
        let index = OpenedIndex::new(path)?;
        let path = match &index {
            Some(index) => signatures_of(index, path)?,
            None => path.to_owned(),
        };
        let file = open_signatures(&path)?;
        Ok(Opened { file, path, index, took: started.elapsed() })
    }
}

/// The file of an index, of whatever kind.
pub(crate) enum OpenedIndex {
    Tables(IndexFile),
    Graph(GraphFile),
    Issl(IsslFile),
}

/// What an index file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexKind {
    Tables(Method),
    Graph(Shape),
    Issl { bits: u32, width: u32 },
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexKind::Tables(method) => method.fmt(f),
            IndexKind::Graph(shape) => shape.fmt(f),
            IndexKind::Issl { width, .. } => write!(f, "issl-{width}"),
        }
    }
}

impl OpenedIndex {
    /// Opens a file if it says that it holds an index.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Option<Self>> {
        Ok(if IndexFile::is_in(path) {
            Some(OpenedIndex::Tables(IndexFile::open(path)?))
        } else if GraphFile::is_in(path) {
            Some(OpenedIndex::Graph(GraphFile::open(path)?))
        } else if IsslFile::is_in(path) {
            Some(OpenedIndex::Issl(IsslFile::open(path)?))
        } else {
            None
        })
    }

    pub(crate) fn kind(&self) -> IndexKind {
        match self {
            OpenedIndex::Tables(file) => IndexKind::Tables(file.composition().method()),
            OpenedIndex::Graph(file) => IndexKind::Graph(file.shape()),
            OpenedIndex::Issl(file) => IndexKind::Issl { bits: file.bits(), width: file.width() },
        }
    }

    /// Refuses signatures that it was not built over. Whoever asks an index has that from it; for those who pass it over.
    pub(crate) fn check_rows(&self, rows: &Signatures) -> lookalike::Result<()> {
        match self {
            OpenedIndex::Tables(file) => file.tables(rows).map(drop),
            OpenedIndex::Graph(file) => file.check_rows(rows),
            OpenedIndex::Issl(file) => file.check_rows(rows),
        }
    }

    /// Where the signatures are, if the index knows.
    fn signatures(&self) -> Option<PathBuf> {
        match self {
            OpenedIndex::Tables(file) => file.signatures(),
            OpenedIndex::Graph(file) => file.signatures(),
            OpenedIndex::Issl(file) => file.signatures(),
        }
    }
}

fn signatures_of(index: &OpenedIndex, path: &Path) -> anyhow::Result<PathBuf> {
    let path = path.display();
    match index.signatures() {
        Some(signatures) if signatures.exists() => Ok(signatures),
        Some(signatures) => Err(hinted(
            format!("{path} belongs to {}, which is not there", signatures.display()),
            "an index needs its signatures: put them there, or beside it",
        )),
        None => Err(hinted(
            format!("{path} does not say which signatures it belongs to"),
            "build it again with `lookalike build FILE.sig -o FILE.idx`",
        )),
    }
}
