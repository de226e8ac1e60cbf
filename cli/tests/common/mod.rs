//! A temporary folder with the examples in it, and the program run there.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses its part of it")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

pub struct Place {
    folder: tempfile::TempDir,
}

/// What the program said.
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        copy(&examples, &folder.path().join("examples"));
        Place { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookalike"));
        command.args(words(line)).current_dir(self.folder.path()).env_remove("LOOKALIKE_SIMD");
        // The user's own is left alone.
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    pub fn run(&self, line: &str) -> Said {
        said(self.command(line).output().unwrap())
    }

    pub fn run_with_input(&self, line: &str, input: &[u8]) -> Said {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        said(child.wait_with_output().unwrap())
    }

    /// Runs it, and it must end with this code.
    pub fn expect(&self, code: i32, line: &str) -> Said {
        let said = self.run(line);
        assert_eq!(said.code, code, "lookalike {line}\n{}{}", said.out, said.err);
        said
    }
}

fn said(output: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Said { out: text(output.stdout), err: text(output.stderr), code }
}

/// The words of a command line; double quotes keep spaces.
pub fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => fs::copy(entry.path(), target).map(drop).unwrap(),
        }
    }
}
