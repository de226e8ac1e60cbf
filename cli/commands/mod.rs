//! The commands, one file each: its flags, and what it does.

mod add;
mod backup;
mod bench;
mod build;
mod calibrate;
mod check;
mod cluster;
mod compact;
mod compare;
mod completions;
mod convert;
mod create;
mod dedup;
mod export;
mod get;
mod info;
mod join;
mod plan;
mod quality;
mod recipe;
mod remove;
mod reslice;
mod search;
mod serve;
mod sign;
mod terms;

use std::{num::NonZeroUsize, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use quality::score_json;

/// Finds documents that look alike.
///
/// Documents become short bit strings (signatures) that change by a few bits when a document changes a
/// little; documents whose signatures are a few bits apart look alike.
#[derive(Debug, Parser)]
#[command(name = "lookalike", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 found or done, 1 nothing found, 2 error, 3 done but records were skipped."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    global: Global,
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// Threads to work with; all cores if not said. Results never depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Results as text for people, or as JSON with one object a line
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// No progress and no summary; errors are still told
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs: one JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dedup(Box<dedup::Dedup>),
    Sign(sign::Sign),
    Terms(terms::Terms),
    Build(build::Build),
    Search(Box<search::Search>),
    Join(join::Join),
    Cluster(cluster::Cluster),
    Create(create::Create),
    Add(add::Add),
    Remove(remove::Remove),
    Get(get::Get),
    Export(export::Export),
    Compact(compact::Compact),
    Check(check::Check),
    Backup(backup::Backup),
    Reslice(reslice::Reslice),
    Serve(Box<serve::Serve>),
    Compare(compare::Compare),
    Info(info::Info),
    Plan(plan::PlanCommand),
    Quality(Box<quality::Quality>),
    Calibrate(Box<calibrate::Calibrate>),
    Convert(convert::Convert),
    Bench(bench::Bench),
    Recipe(recipe::ShowRecipe),
    Completions(completions::Completions),
}

/// How a command ended, if not with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Found something, or did what it should.
    Done,
    /// Found nothing.
    NothingFound,
    /// Did what it should, but left records out.
    Skipped,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::NothingFound => ExitCode::from(1),
            Outcome::Skipped => ExitCode::from(3),
        }
    }
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        // A wrong LOOKALIKE_SIMD is told before any work is done.
        lookalike::hamming::kernel()?;
        rayon::ThreadPoolBuilder::new().num_threads(self.global.threads()).build_global()?;
        let global = &self.global;
        match self.command {
            Command::Dedup(command) => command.run(global),
            Command::Sign(command) => command.run(global),
            Command::Terms(command) => command.run(global),
            Command::Build(command) => command.run(global),
            Command::Search(command) => command.run(global),
            Command::Join(command) => command.run(global),
            Command::Cluster(command) => command.run(global),
            Command::Create(command) => command.run(global),
            Command::Add(command) => command.run(global),
            Command::Remove(command) => command.run(global),
            Command::Get(command) => command.run(global),
            Command::Export(command) => command.run(global),
            Command::Compact(command) => command.run(global),
            Command::Check(command) => command.run(global),
            Command::Backup(command) => command.run(global),
            Command::Reslice(command) => command.run(global),
            Command::Serve(command) => command.run(global),
            Command::Compare(command) => command.run(global),
            Command::Info(command) => command.run(global),
            Command::Plan(command) => command.run(global),
            Command::Quality(command) => command.run(global),
            Command::Calibrate(command) => command.run(global),
            Command::Convert(command) => command.run(global),
            Command::Bench(command) => command.run(global),
            Command::Recipe(command) => command.run(global),
            Command::Completions(command) => command.run(),
        }
    }
}

/// A whole number that is not 0.
fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a whole number from 1 on is wanted".to_owned())
}

impl Global {
    pub(crate) fn threads(&self) -> usize {
        match self.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }

    pub(crate) fn json(&self) -> bool {
        self.format == Format::Json
    }
}
