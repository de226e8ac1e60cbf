//! The work folder: what was done so far, so that a run that was stopped goes on where it was.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde_json::Value;

use crate::failure::hinted;

const SETTINGS: &str = "settings.json";

/// Standard input, kept in a file because it is read more than once.
pub(crate) struct Spool(Option<tempfile::NamedTempFile>);

impl Spool {
    /// Reads standard input, if it is among the inputs.
    pub(crate) fn of(inputs: &[String], output: Option<&Path>) -> anyhow::Result<Self> {
        if !inputs.iter().any(|input| input == "-") {
            return Ok(Spool(None));
        }
        let folder = match output {
            Some(output) => {
                fs::create_dir_all(output).with_context(|| output.display().to_string())?;
                output.to_owned()
            }
            None => std::env::temp_dir(),
        };
        let name = || folder.display().to_string();
        let mut file = tempfile::NamedTempFile::new_in(&folder).with_context(name)?;
        std::io::copy(&mut std::io::stdin().lock(), &mut file).with_context(name)?;
        Ok(Spool(Some(file)))
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(|file| file.path())
    }
}

/// A folder for what is not the result. It goes away when that is there.
pub(crate) struct Work {
    folder: PathBuf,
    /// Gone with the work if the user gave no folder.
    _temporary: Option<tempfile::TempDir>,
    /// Whether an earlier run left something to go on with.
    pub(crate) resumed: bool,
    /// Whether it left anything at all.
    found: bool,
}

impl Work {
    /// Opens `.work` in the output folder, or makes it. What is there must be of the same input and settings.
    pub(crate) fn open(
        output: Option<&Path>,
        settings: &Value,
        restart: bool,
    ) -> anyhow::Result<Self> {
        let (folder, temporary) = match output {
            Some(output) => (output.join(".work"), None),
            None => {
                let temporary = tempfile::tempdir().context("temporary folder")?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let name = || folder.display().to_string();
        let found = folder.join(SETTINGS).exists();
        if restart && folder.exists() && temporary.is_none() {
            fs::remove_dir_all(&folder).with_context(name)?;
        }
        let noted = folder.join(SETTINGS);
        // Work in which no stage was completed is worth nothing, whatever its settings.
        let resumed = noted.exists() && has_sketches(&folder);
        if resumed {
            let before = fs::read(&noted).with_context(name)?;
            let before: Value = serde_json::from_slice(&before).unwrap_or_default();
            check_same(&before, settings, output)?;
        } else {
            fs::create_dir_all(&folder).with_context(name)?;
            let text = serde_json::to_string_pretty(settings)?;
            fs::write(&noted, text).with_context(name)?;
        }
        Ok(Work { folder, _temporary: temporary, resumed, found })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes it all, since it is of no use. If that fails, it is only in the way.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Removes it all: the result is there.
    pub(crate) fn done(self) -> anyhow::Result<()> {
        fs::remove_dir_all(&self.folder).with_context(|| self.folder.display().to_string())
    }
}

/// Whether all or a part of the input was signed.
fn has_sketches(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.any(|name| name.ends_with("sketches") && !name.starts_with('.'))
}

/// What a run leaves in its output folder.
const RESULTS: [&str; 7] =
    ["kept", "removed", "annotated", "kept.txt", "removed.jsonl", "report.json", "report.html"];

/// Refuses to mix the results of two runs, or removes those of the earlier one if the user says so. What is no result of a
/// run is never removed.
pub(crate) fn clear_output(output: &Path, overwrite: bool, work: &Work) -> anyhow::Result<()> {
    if output.exists() && !output.is_dir() {
        let problem = format!("{} is a file, not a folder", output.display());
        return Err(hinted(problem, "name another folder with `-o`"));
    }
    let there: Vec<PathBuf> =
        RESULTS.iter().map(|name| output.join(name)).filter(|path| path.exists()).collect();
    let Some(first) = there.first() else { return Ok(()) };
    if !work.found && !output.join("report.json").exists() {
        let problem =
            format!("{} is there, and no report.json beside it: no run wrote it", first.display());
        return Err(hinted(problem, "name another folder with `-o`, or move it away"));
    }
    if !overwrite {
        let problem = format!("{} is there already, from an earlier run", first.display());
        let hint =
            "name another folder with `-o`, or say `--overwrite` to replace what is in this one";
        return Err(hinted(problem, hint));
    }
    for path in there {
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Refuses to go on with the work of another input or of other settings.
fn check_same(before: &Value, now: &Value, output: Option<&Path>) -> anyhow::Result<()> {
    if before == now {
        return Ok(());
    }
    let of = |value: &Value, key: &str| value.get(key).cloned().unwrap_or_default();
    let keys = now.as_object().into_iter().flat_map(|now| now.keys());
    let changed = keys.filter(|key| of(before, key) != of(now, key)).cloned().collect::<Vec<_>>();
    let output = output.map_or(String::new(), |output| output.display().to_string());
    Err(hinted(
        format!(
            "{output} has unfinished work of a run with other {}, which this run cannot go on with",
            changed.join(", ")
        ),
        "say `--restart` to drop it and begin again, or name another folder with `-o`",
    ))
}
