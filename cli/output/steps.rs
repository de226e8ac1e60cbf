//! Progress of work that is no reading: so many of so many steps.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::tell;
use crate::commands::Global;

/// Where no bar can be drawn, a line tells the progress this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What is shown of the steps of a stage.
pub(crate) enum Steps {
    Bar(ProgressBar),
    Lines { last: Instant },
    Quiet,
}

impl Steps {
    pub(crate) fn new(global: &Global) -> Self {
        match (global.quiet, std::io::stderr().is_terminal()) {
            (true, _) => Steps::Quiet,
            (false, true) => {
                let style =
                    ProgressStyle::with_template("{msg:10} {bar:30} {percent:>3}%  ETA {eta}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                Steps::Bar(ProgressBar::new(0).with_style(style))
            }
            (false, false) => Steps::Lines { last: Instant::now() },
        }
    }

    /// So many of so many steps of a stage are done.
    pub(crate) fn show(&mut self, stage: &'static str, done: usize, all: usize) {
        match self {
            Steps::Bar(bar) => {
                if bar.message() != stage {
                    bar.reset();
                    bar.set_message(stage);
                }
                bar.set_length(all as u64);
                bar.set_position(done as u64);
            }
            Steps::Lines { last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                tell(format!("{stage}: {}%", 100 * done / all.max(1)));
            }
            _ => {}
        }
    }

    pub(crate) fn finish(self) {
        if let Steps::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
