//! Reading as the user sees it: progress while it runs, and at the end what was left out.

use std::{
    io::IsTerminal,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{counted, tell};
use crate::{
    commands::{Global, Outcome},
    input::{self, BadRecord, Chunk, OnError, Record, Sources},
};

/// So many bad records are shown at the end; the others are counted.
const SHOWN: usize = 5;
/// Where no bar can be drawn, a line tells the progress this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// One pass over the input.
pub(crate) struct Reading<'a> {
    sources: &'a Sources,
    on_error: OnError,
    progress: Progress,
    started: Instant,
    documents: u64,
    skipped: u64,
    first_bad: Vec<BadRecord>,
}

enum Progress {
    Bar(ProgressBar),
    Lines { last: Instant },
    Quiet,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(sources: &'a Sources, on_error: OnError, global: &Global) -> Self {
        let started = Instant::now();
        let progress = match (global.quiet, std::io::stderr().is_terminal()) {
            (true, _) => Progress::Quiet,
            (false, true) => Progress::Bar(bar(sources.total_bytes())),
            (false, false) => Progress::Lines { last: started },
        };
        Reading {
            sources,
            on_error,
            progress,
            started,
            documents: 0,
            skipped: 0,
            first_bad: Vec::new(),
        }
    }

    /// Has all threads do `work` on the records of the input, and `consume` take the results in the input's order.
    pub(crate) fn run<T: Send>(
        &mut self,
        threads: usize,
        work: impl Fn(Vec<Record>) -> T + Sync,
        consume: impl FnMut(T, &mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sources = self.sources;
        self.run_on_chunks(threads, |_, chunk| work(sources.parse(chunk)), consume)
    }

    /// The same on the chunks of the input, each with its number.
    pub(crate) fn run_on_chunks<T: Send>(
        &mut self,
        threads: usize,
        work: impl Fn(usize, Chunk) -> T + Sync,
        mut consume: impl FnMut(T, &mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sources = self.sources;
        let result = input::run(sources, threads, work, |result| {
            consume(result, self)?;
            Ok(ControlFlow::Continue(()))
        });
        if let Progress::Bar(bar) = &self.progress {
            bar.finish_and_clear();
        }
        result
    }

    /// Takes note of documents and bad records; fails at the first of these if that is what the user chose.
    pub(crate) fn note(&mut self, documents: u64, bad: Vec<BadRecord>) -> anyhow::Result<()> {
        self.documents += documents;
        for bad in bad {
            if self.on_error == OnError::Stop {
                return Err(bad.into());
            }
            self.skipped += 1;
            if self.first_bad.len() < SHOWN {
                self.first_bad.push(bad);
            }
        }
        self.show();
        Ok(())
    }

    fn show(&mut self) {
        let read = self.sources.bytes_read();
        match &mut self.progress {
            Progress::Bar(bar) => {
                bar.set_message(format!("{} documents", self.documents));
                bar.set_position(read);
            }
            Progress::Lines { last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                let part = self.sources.total_bytes().filter(|&total| total > 0);
                let part =
                    part.map_or(String::new(), |total| format!(" ({}%)", 100 * read / total));
                let seconds = self.started.elapsed().as_secs();
                tell(format!(
                    "{} documents, {} MB read{part}, {seconds} s",
                    self.documents,
                    read / 1_000_000
                ));
            }
            _ => {}
        }
    }

    /// Tells what was left out, and how the command ended.
    pub(crate) fn finish(&mut self) -> Outcome {
        let left_out = self.sources.left_out();
        if !matches!(self.progress, Progress::Quiet) {
            if left_out.files > 0 {
                let suffixes = match left_out.suffixes.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", left_out.suffixes.join(", ")),
                };
                tell(format!(
                    "left out, of no known format: {}{suffixes}",
                    counted(left_out.files, "file")
                ));
            }
            if left_out.records > 0 {
                tell(format!("left out, no pages: {}", counted(left_out.records, "web record")));
            }
        }
        if self.skipped == 0 {
            return Outcome::Done;
        }
        tell(format!("skipped: {}", counted(self.skipped, "bad record")));
        self.first_bad.iter().for_each(|bad| tell(format!("  {bad}")));
        if self.skipped > self.first_bad.len() as u64 {
            tell(format!("  ... and {} more", self.skipped - self.first_bad.len() as u64));
        }
        if let Some(hint) = self.first_bad.iter().find_map(|bad| bad.hint.as_ref()) {
            tell(format!("hint: {hint}"));
        }
        Outcome::Skipped
    }

    /// How many bad records were skipped.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How fast it went, if it took long enough to be worth telling.
    pub(crate) fn rate(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        if seconds < 1.0 {
            return String::new();
        }
        let megabytes = self.sources.bytes_read() as f64 / 1e6;
        let documents = self.documents as f64 / seconds;
        format!(
            "\n{seconds:.1} s: {documents:.0} documents and {:.1} MB of input a second",
            megabytes / seconds
        )
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{bar:30} {percent:>3}%  {binary_bytes_per_sec}  ETA {eta}  {msg}",
        ),
        None => {
            (ProgressBar::new_spinner(), "{spinner} {binary_bytes}  {binary_bytes_per_sec}  {msg}")
        }
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style)
}
