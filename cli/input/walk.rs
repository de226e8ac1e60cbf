//! From what the user wrote to the files to read, in an order that does not depend on the machine.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use walkdir::WalkDir;

use super::format::{self, Compression, Format};
use super::record::InputError;

/// One stream to read.
pub(crate) struct Input {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
    pub(crate) format: Format,
    /// What the name tells; the first bytes have the last word.
    pub(crate) compression: Option<Compression>,
    /// `None` for pipes.
    pub(crate) bytes: Option<u64>,
}

pub(crate) enum Origin {
    Path(PathBuf),
    /// A stream that can be read once, such as standard input.
    Stream(Mutex<Option<Box<dyn Read + Send>>>),
}

/// The files to read, and what was left out on the way.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) inputs: Vec<Input>,
    /// Files of folders and globs whose names tell no format.
    pub(crate) left_out: u64,
    /// Some of their suffixes.
    pub(crate) unknown: BTreeSet<String>,
    /// Whether the user asked for lines of text.
    lines: bool,
}

/// Who chose a file: an unknown suffix is a mistake in the one case, and expected in the other.
#[derive(Clone, Copy, PartialEq)]
enum Chosen {
    ByName,
    ByWalking,
}

/// How many unknown suffixes are remembered for the report.
const REMEMBERED: usize = 8;

/// All files behind `patterns`, in the order given, folders and globs by name. `lines`: what the user
/// names without telling its format is text.
pub(crate) fn find(
    patterns: &[String],
    format: Option<Format>,
    lines: bool,
) -> Result<Found, InputError> {
    let mut found = Found { lines, ..Found::default() };
    for pattern in patterns {
        found.pattern(pattern, format)?;
    }
    Ok(found)
}

impl Input {
    /// Standard input, or what stands in for it.
    pub(crate) fn stream(stream: Box<dyn Read + Send>, format: Format) -> Self {
        Input {
            name: Arc::from("-"),
            origin: Origin::Stream(Mutex::new(Some(stream))),
            format,
            compression: None,
            bytes: None,
        }
    }
}

impl Found {
    fn pattern(&mut self, pattern: &str, format: Option<Format>) -> Result<(), InputError> {
        if pattern == "-" {
            return self.stdin(format);
        }
        let path = Path::new(pattern);
        match path.metadata() {
            Ok(about) => self.path(path, &about, format, Chosen::ByName),
            Err(_) if pattern.contains(['*', '?', '[']) => self.glob(pattern, format),
            Err(error) => Err(InputError::new(format!("{pattern}: {}", describe(&error)))),
        }
    }

    fn stdin(&mut self, format: Option<Format>) -> Result<(), InputError> {
        if self.inputs.iter().any(|input| matches!(input.origin, Origin::Stream(_))) {
            return Err(InputError::new("standard input (`-`) can be read only once"));
        }
        let usual = if self.lines { Format::Text } else { Format::Jsonl };
        self.inputs.push(Input::stream(Box::new(io::stdin()), format.unwrap_or(usual)));
        Ok(())
    }

    fn path(
        &mut self,
        path: &Path,
        about: &Metadata,
        format: Option<Format>,
        chosen: Chosen,
    ) -> Result<(), InputError> {
        if about.is_dir() {
            self.folder(path, format)
        } else {
            self.file(path, about, format, chosen)
        }
    }

    fn file(
        &mut self,
        path: &Path,
        about: &Metadata,
        format: Option<Format>,
        chosen: Chosen,
    ) -> Result<(), InputError> {
        let name = path.to_string_lossy();
        let (told, compression) = format::of_name(&name);
        let text = (self.lines && chosen == Chosen::ByName).then_some(Format::Text);
        let Some(format) = format.or(told).or(text) else {
            return self.unknown(path, chosen);
        };
        self.inputs.push(Input {
            name: Arc::from(name),
            origin: Origin::Path(path.to_owned()),
            format,
            compression,
            bytes: about.is_file().then_some(about.len()),
        });
        Ok(())
    }

    fn unknown(&mut self, path: &Path, chosen: Chosen) -> Result<(), InputError> {
        if chosen == Chosen::ByName {
            let problem = format!("{}: its name does not tell its format", path.display());
            return Err(InputError::new(problem)
                .hint("say it with --input-format, for example --input-format text"));
        }
        self.left_out += 1;
        if self.unknown.len() < REMEMBERED {
            let suffix = path.extension().map(|suffix| format!(".{}", suffix.to_string_lossy()));
            self.unknown.insert(suffix.unwrap_or_else(|| "no suffix".into()));
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Path, format: Option<Format>) -> Result<(), InputError> {
        let before = self.inputs.len();
        let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
        // The folder itself may be hidden: the user named it.
        for entry in walk.filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry.path())) {
            let about = entry.and_then(|entry| Ok((entry.metadata()?, entry.into_path())));
            match about {
                Ok((about, path)) if about.is_file() => {
                    self.file(&path, &about, format, Chosen::ByWalking)?;
                }
                Ok(_) => {}
                Err(error) if leads_nowhere(&error) => self.left_out += 1,
                Err(error) => return Err(InputError::new(error.to_string())),
            }
        }
        self.must_have_grown(before, &format!("folder `{}`", folder.display()))
    }

    fn glob(&mut self, pattern: &str, format: Option<Format>) -> Result<(), InputError> {
        let before = self.inputs.len();
        let rules = glob::MatchOptions {
            case_sensitive: true,
            require_literal_leading_dot: true,
            ..Default::default()
        };
        let paths = glob::glob_with(pattern, rules).map_err(|error| {
            InputError::new(format!("`{pattern}` is neither a file nor a pattern: {error}"))
        })?;
        let mut matches = 0;
        for path in paths {
            let path = path.map_err(|error| InputError::new(error.to_string()))?;
            // A link to nothing matches by its name.
            let Ok(about) = path.metadata() else { continue };
            matches += 1;
            self.path(&path, &about, format, Chosen::ByWalking)?;
        }
        if matches == 0 {
            return Err(InputError::new(format!("nothing matches `{pattern}`")));
        }
        self.must_have_grown(before, &format!("`{pattern}`"))
    }

    fn must_have_grown(&self, before: usize, what: &str) -> Result<(), InputError> {
        if self.inputs.len() > before {
            return Ok(());
        }
        let error = InputError::new(format!("{what} has no documents"));
        if self.unknown.is_empty() {
            return Err(error);
        }
        let suffixes: Vec<&str> = self.unknown.iter().map(String::as_str).collect();
        Err(error.hint(format!(
            "its files ({}) tell no format by their names; say it with --input-format",
            suffixes.join(", ")
        )))
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Links in a circle, or to nothing.
fn leads_nowhere(error: &walkdir::Error) -> bool {
    let missing = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound && error.raw_os_error().is_some()
    };
    error.loop_ancestor().is_some() || (error.depth() > 0 && error.io_error().is_some_and(missing))
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        root
    }

    fn names(root: &Path, pattern: &str) -> Result<Vec<String>, InputError> {
        let pattern = root.join(pattern).to_string_lossy().into_owned();
        let found = find(&[pattern], None, false)?;
        let cut = |input: &Input| input.name[root.to_string_lossy().len() + 1..].to_owned();
        Ok(found.inputs.iter().map(cut).collect())
    }

    #[test]
    fn folders_are_walked_in_order_without_hidden_and_unknown_files() {
        let root =
            tree(&["d/b.txt", "d/a/z.md", "d/a.jsonl.gz", "d/.git/x.txt", "d/p.jpg", "d/.y.txt"]);
        assert_eq!(names(root.path(), "d").unwrap(), ["d/a/z.md", "d/a.jsonl.gz", "d/b.txt"]);
        let found = find(&[root.path().join("d").to_string_lossy().into()], None, false).unwrap();
        assert_eq!(found.left_out, 1);
        let all =
            find(&[root.path().join("d").to_string_lossy().into()], Some(Format::Text), false);
        assert_eq!(all.unwrap().inputs.len(), 4);
    }

    #[test]
    fn globs_match_what_the_shell_did_not_expand() {
        let root = tree(&["a1.txt", "a2.txt", "b.txt", "deep/er/a3.txt", "we[i]rd.txt", "x/c.png"]);
        assert_eq!(names(root.path(), "a?.txt").unwrap(), ["a1.txt", "a2.txt"]);
        assert_eq!(
            names(root.path(), "**/a*.txt").unwrap(),
            ["a1.txt", "a2.txt", "deep/er/a3.txt"]
        );
        assert_eq!(names(root.path(), "we[i]rd.txt").unwrap(), ["we[i]rd.txt"]);
        let error = names(root.path(), "q*").unwrap_err();
        assert!(error.problem.starts_with("nothing matches"), "{error}");
        let error = names(root.path(), "x/*").unwrap_err();
        assert!(error.problem.ends_with("has no documents"), "{error}");
        assert!(error.hint.unwrap().contains(".png"));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let root = tree(&["photo.jpg", "empty/.hidden"]);
        let error = names(root.path(), "none.txt").unwrap_err();
        assert!(error.problem.ends_with("none.txt: there is no such file or folder"), "{error}");
        let error = names(root.path(), "photo.jpg").unwrap_err();
        assert!(error.hint.unwrap().contains("--input-format"));
        let error = names(root.path(), "empty").unwrap_err();
        assert!(error.problem.ends_with("has no documents"), "{error}");
        let twice = find(&["-".into(), "-".into()], None, false);
        assert!(twice.err().unwrap().problem.contains("only once"));
    }
}
