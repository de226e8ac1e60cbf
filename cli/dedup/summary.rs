//! The report in a few lines.

use std::path::Path;

use lookalike::dedup::Keep;

use super::report::Report;
use crate::{output::counted, size};

/// From so many documents with near-duplicates on, the share that was found says something.
const ENOUGH: usize = 30;

impl Report {
    /// In words, for people at a terminal; `output` is where it all was written.
    pub(crate) fn summary(&self, keep: &Keep, output: Option<&Path>) -> String {
        let Report { documents, kept, removed, copies, .. } = self;
        let share = 100.0 * *removed as f64 / (*documents).max(1) as f64;
        let mut text = format!(
            "{removed} of {} {}removed ({share:.1}%): {copies} with the same words, {} near-duplicates; {kept} kept",
            counted(*documents, "document"),
            if output.is_some() || self.added.is_some() { "" } else { "would be " },
            removed - copies,
        );
        text += &format!(
            "\n{} of text removed, {} of near-duplicates at {} or more alike",
            size::display(self.removed_bytes),
            counted(self.clusters as u64, "cluster"),
            self.dial.similarity
        );
        let checked = &self.checked;
        if let Some(recall) = checked.recall {
            text += &format!(
                "\nchecked: of {} compared with all others, {} have near-duplicates; {:.1}% of these are found",
                counted(checked.documents as u64, "document"),
                checked.with_pairs,
                100.0 * recall,
            );
            text +=
                &format!("; {} of {} kept are left with one", checked.left_behind, checked.kept);
            if recall < self.dial.recall && checked.with_pairs >= ENOUGH {
                let promised = 100.0 * self.dial.recall;
                text +=
                    &format!("\nthat is less than the {promised:.0}% promised: see docs/dedup.md");
            }
        }
        let by_signature = self.elsewhere - self.elsewhere_compared;
        if by_signature > 0 {
            text += &format!(
                "\nof these, {} for their signatures are near those of `--against`; texts were not compared",
                counted(by_signature, "document")
            );
        }
        if self.elsewhere_compared > 0 {
            text += &format!(
                "\nof these, {} for `--against` has them already, by their texts",
                counted(self.elsewhere_compared, "document")
            );
        }
        if let Some(added) = self.added {
            text += &format!(
                "\n{} added to the collection, {} of them in place of one with the same id",
                counted(added.documents, "document"),
                added.replaced
            );
        }
        if self.without_field > 0 {
            text += &format!(
                "\nkept last of their clusters, without what `--keep {}` looks at: {}",
                keep,
                counted(self.without_field, "document")
            );
        }
        if self.unsigned > 0 {
            text += &format!(
                "\nkept without a look, for they have no words: {}",
                counted(self.unsigned, "document")
            );
        }
        for alarm in &self.alarms {
            text += &format!("\nalarm: {alarm}");
        }
        let seconds: f64 = self.stages.iter().map(|stage| stage.seconds).sum();
        if seconds >= 1.0 {
            let stages: Vec<String> = self
                .stages
                .iter()
                .map(|stage| format!("{} {:.1} s", stage.name, stage.seconds))
                .collect();
            text += &format!(
                "\n{seconds:.1} s ({}): {:.0} documents a second, {} of memory at most",
                stages.join(", "),
                *documents as f64 / seconds,
                self.peak_memory.map_or("?".into(), size::display),
            );
        }
        if let Some(output) = output {
            text += &format!("\n{}: see report.html", output.display());
        }
        text
    }
}
