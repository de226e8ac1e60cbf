//! Errors as users see them: what is wrong and where, then the way out on a line of its own.

use std::{fmt, io, path::Path, process::ExitCode};

use lookalike::{Error, sigfile::suffix_of};

use crate::{
    input::{BadRecord, InputError},
    output::tell,
};

/// An error with the way out.
#[derive(Debug)]
pub(crate) struct Hinted {
    problem: String,
    hint: String,
}

/// An error that says what is wrong, and what the user may do about it.
pub(crate) fn hinted(problem: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Hinted { problem: problem.into(), hint: hint.into() }.into()
}

/// Refuses a radius that all signatures are within.
pub(crate) fn check_radius(radius: u32, bits: u32) -> anyhow::Result<()> {
    if radius <= bits {
        return Ok(());
    }
    let problem = format!("signatures have {bits} bits, so no two are {radius} apart");
    Err(hinted(problem, "say a smaller radius; near-duplicates are within a quarter of the bits"))
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Hinted {}

/// Tells the user, and the exit code of it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // Whoever read our output has seen enough, as `head` does.
        return ExitCode::SUCCESS;
    }
    tell(format!("lookalike: {error:#}"));
    if let Some(hint) = hint_of(error) {
        tell(format!("hint: {hint}"));
    }
    ExitCode::from(2)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |io: &io::Error| io.kind() == io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(broken)
}

fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(hinted) = cause.downcast_ref::<Hinted>() {
            return Some(hinted.hint.clone());
        }
        if let Some(bad) = cause.downcast_ref::<BadRecord>() {
            let skip = "`--on-error skip` leaves such records out and counts them";
            return Some(bad.hint.as_ref().map_or(skip.into(), |hint| format!("{hint}; {skip}")));
        }
        if let Some(input) = cause.downcast_ref::<InputError>() {
            return input.hint.clone();
        }
        cause.downcast_ref::<Error>().and_then(hint_of_engine).map(str::to_owned)
    })
}

fn hint_of_engine(error: &Error) -> Option<&'static str> {
    match error {
        Error::RecipeMismatch { .. } => {
            Some("sign both with the same recipe; `lookalike info FILE` shows the one of a file")
        }
        Error::WidthMismatch { .. } => Some("sign both with the same recipe and `--bits`"),
        Error::Terms { .. } => Some(
            "make them with `lookalike terms INPUT... --recipe R -o FILE` and say `--terms FILE`",
        ),
        Error::Recipe { .. } => Some("`lookalike recipe text` prints a recipe file to start from"),
        Error::OtherSignatures { .. } => Some(
            "the signatures have changed since: build it again with `lookalike build FILE.sig -o FILE.idx`",
        ),
        Error::Method { .. } => {
            Some("leave the numbers out, as in `--index multi`, to get some that suit")
        }
        Error::TooManyPairs { .. } => Some(
            "a smaller `--radius` finds fewer; `--at-most N` allows more, if there is room for them",
        ),
        Error::JoinMemory { .. } => Some("allow more with `--memory`"),
        Error::Memory { .. } => {
            Some("`--memory` asks for a smaller index; a scan (`--index scan`) needs none")
        }
        Error::Damaged { path, .. } => Some(way_out_of_damage(path)),
        Error::Store { source, .. } if is_full(source.as_ref()) => Some(FULL),
        Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(FULL),
        Error::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
            let is_signatures = suffix_of(path).as_deref() == Some("sig");
            is_signatures.then_some("`lookalike sign INPUT... -o FILE.sig` makes such a file")
        }
        Error::Locked { .. } => Some(
            "only one process writes to a SQLite collection at a time; searches may go on meanwhile",
        ),
        Error::IdExists { .. } => Some(
            "`--if-exists replace` puts the new one in its place, `--if-exists skip` leaves it out",
        ),
        Error::NoSlices | Error::BeyondSlices { .. } => {
            Some("make them with `lookalike reslice COLLECTION --radius H`")
        }
        Error::Filter { .. } => Some("a filter is written as `lang = \"en\" and year >= 2020`"),
        _ => None,
    }
}

const DAMAGED_RECORDS: &str = "`lookalike check COLLECTION` lists what is wrong; put the latest `lookalike backup` in its place, \
     or add the documents to a new collection";
const FULL: &str =
    "the disk is full; what was acknowledged is safe, so make room and run the same again";

fn way_out_of_damage(path: &Path) -> &'static str {
    match suffix_of(path).as_deref() {
        Some("idx") => "make it again with `lookalike build`",
        Some("sqlite") => DAMAGED_RECORDS,
        _ => "make it again with `lookalike sign` or `lookalike terms`",
    }
}

/// Whether a database had no room to write: SQLite and PostgreSQL have words of their own for it.
fn is_full(said: &(dyn std::error::Error + 'static)) -> bool {
    let said = said.to_string();
    said.contains("disk is full") || said.contains("No space left on device")
}
