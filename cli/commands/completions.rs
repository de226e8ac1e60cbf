//! `lookalike completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Outcome};
use crate::output::print;

/// Print a script that teaches your shell to complete commands and flags
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lookalike completions bash > ~/.local/share/bash-completion/completions/lookalike"
)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "lookalike", &mut script);
        print(String::from_utf8_lossy(&script).trim_end())?;
        Ok(Outcome::Done)
    }
}
