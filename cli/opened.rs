//! What is searched: a file of signatures, or an index, which knows where its signatures are.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lookalike::{SignatureFile, index::IndexFile};

use crate::{failure::hinted, output::open_signatures};

/// Signatures, and an index over them if a file of one was named.
pub(crate) struct Opened {
    pub(crate) file: SignatureFile,
    /// Where the signatures are.
    pub(crate) path: PathBuf,
    pub(crate) index: Option<IndexFile>,
    pub(crate) took: Duration,
}

impl Opened {
    /// Opens what the user named.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        let started = Instant::now();
        let index = IndexFile::is_in(path).then(|| IndexFile::open(path)).transpose()?;
        let path = match &index {
            Some(index) => signatures_of(index, path)?,
            None => path.to_owned(),
        };
        let file = open_signatures(&path)?;
        Ok(Opened { file, path, index, took: started.elapsed() })
    }
}

fn signatures_of(index: &IndexFile, path: &Path) -> anyhow::Result<PathBuf> {
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
