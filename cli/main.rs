//! The `lookalike` program: documents to signatures, and those that look alike.
//!
//! Data goes to standard output, talk and progress to standard error. Exit codes: 0 found or done, 1 nothing found,
//! 2 error, 3 done but some records were skipped.

mod bench;
mod calibrate;
mod collection;
mod commands;
mod dedup;
mod failure;
mod index;
mod input;
mod labels;
mod opened;
mod output;
mod planner;
mod size;
mod texts;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = commands::Cli::parse();
    match cli.run() {
        Ok(outcome) => outcome.into(),
        Err(error) => failure::report(&error),
    }
}
