//! The signatures that an index file was built over: where they are, and how it knows them again.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Signatures, partial::folder_of};

/// The signatures that an index was built over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Their file, as seen from the folder of the index.
    pub(super) file: Option<String>,
    /// XXH3-64 of their words.
    xxh3: String,
}

impl Origin {
    /// What an index at `index` says of its signatures, which are in the file `of`.
    pub(super) fn new(rows: &Signatures, index: &Path, of: Option<&Path>) -> Self {
        Origin {
            file: of.and_then(|of| name_from(folder_of(index), of)),
            xxh3: format!("{:016x}", rows.checksum()),
        }
    }

    /// Where the signatures are, if the index knows: in their place, or beside the index if the two were moved.
    pub(super) fn path(&self, index: &Path) -> Option<PathBuf> {
        let named = index.with_file_name(self.file.as_deref()?);
        let beside = index.with_file_name(named.file_name()?);
        Some(if !named.exists() && beside.exists() { beside } else { named })
    }

    /// Other signatures than these many of so many bits would give wrong answers, so they are refused.
    pub(super) fn check(
        &self,
        index: &Path,
        (count, bits): (u64, u32),
        given: &Signatures,
    ) -> Result<()> {
        let xxh3 = format!("{:016x}", given.checksum());
        if (bits, count) == (given.bits(), given.len() as u64) && self.xxh3 == xxh3 {
            return Ok(());
        }
        let name = self.file.as_deref().map_or(String::new(), |name| format!("{name} with "));
        let say = |rows: u64, bits: u32, xxh3: &str| {
            format!("{rows} signatures of {bits} bits (checksum {xxh3})")
        };
        Err(Error::OtherSignatures {
            index: index.to_owned(),
            wanted: name + &say(count, bits, &self.xxh3),
            given: say(given.len() as u64, given.bits(), &xxh3),
        })
    }
}

/// How a file is called from a folder: relative to it, unless they have nothing in common.
fn name_from(folder: &Path, file: &Path) -> Option<String> {
    let folder = fs::canonicalize(folder).ok()?;
    let file = fs::canonicalize(folder_of(file)).ok()?.join(file.file_name()?);
    let common = folder.components().zip(file.components()).take_while(|(a, b)| a == b);
    let common: Vec<Component<'_>> = common.map(|(a, _)| a).collect();
    if !common.iter().any(|part| matches!(part, Component::Normal(_))) {
        return file.to_str().map(str::to_owned);
    }
    let up = folder.components().skip(common.len()).map(|_| Some(".."));
    let down = file.components().skip(common.len()).map(|part| part.as_os_str().to_str());
    Some(up.chain(down).collect::<Option<Vec<_>>>()?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_as_seen_from_the_index() {
        let place = tempfile::tempdir().unwrap();
        let (a, b) = (place.path().join("a"), place.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        let name = |folder: &Path, file: PathBuf| name_from(folder, &file);
        assert_eq!(name(&a, a.join("x.sig")).as_deref(), Some("x.sig"));
        assert_eq!(name(&a, b.join("x.sig")).as_deref(), Some("../b/x.sig"));
        assert_eq!(name(place.path(), b.join("x.sig")).as_deref(), Some("b/x.sig"));
        assert_eq!(name(&a, "/x.sig".into()).as_deref(), Some("/x.sig"));
        assert_eq!(name(&a, b.join("nowhere/x.sig")), None);
    }
}
