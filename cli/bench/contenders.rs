//! Which methods are measured, and with which numbers.

use lookalike::{
    Signatures,
    index::{Build, Method, Tables},
    table::{Stored, key_width},
};
use lookalike_thesis::{bphs::Bphs, psm::Psm};

/// Something to be measured.
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) form: Form,
}

#[derive(Clone, Copy)]
pub(super) enum Form {
    /// BPHS in the thesis' form: so many blocks, so many of them lead.
    Bphs(u32, u32),
    /// PSM in the thesis' form.
    Psm,
    /// An index of ours.
    Ours(Spec),
}

/// A method of ours with the keys and the layout that it has here.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    method: Method,
    key_width: u32,
    stored: Stored,
    /// Whether rows were to be split, for which keys are too short here.
    pub(super) too_short_to_split: bool,
}

/// The thesis' methods in its form, but for BPHS-4, which the others take turns with; then ours.
pub(super) fn contenders(rows: usize) -> Vec<Contender> {
    let thesis = [("BPHS-10", Form::Bphs(5, 2)), ("PSM, heap", Form::Psm)];
    let thesis = thesis.map(|(name, form)| Contender { name: name.to_owned(), form });
    let narrow = widest(rows).min(22);
    let ours = [
        (multi(2, 4), widest(rows), Stored::Whole),
        (multi(2, 4), key_width(rows), Stored::Lines),
        (multi(2, 3), widest(rows), Stored::Split),
        (Method::Pieces { slices: 4 }, widest(rows), Stored::Split),
        (multi(2, 1), narrow, Stored::Whole),
        (multi(2, 1), narrow, Stored::Split),
        (psm(1, 23), log2(rows), Stored::Whole),
        (psm(1, 15), log2(rows), Stored::Whole),
        (psm(2, 10), narrow, Stored::Whole),
        (psm(2, 15), narrow, Stored::Whole),
    ];
    let ours = ours.map(|(method, key_width, stored)| {
        let spec = Spec::new(method, key_width, stored);
        Contender { name: spec.name(), form: Form::Ours(spec) }
    });
    thesis.into_iter().chain(ours).collect()
}

pub(super) fn multi(slices: u32, parts: u32) -> Method {
    Method::Multi { slices, parts }
}

fn psm(tables: u32, probes: u32) -> Method {
    Method::Psm { tables, probes }
}

/// The keys of the exact methods: 24 bits at 60 million rows, a row or a few to a key.
pub(super) fn widest(rows: usize) -> u32 {
    (key_width(rows) + 1).min(24)
}

/// The leading bits of PSM: log2 of the rows, rounded, so 26 for the thesis' 60 million.
pub(super) fn log2(rows: usize) -> u32 {
    (rows.max(2) as f64).log2().round() as u32
}

impl Spec {
    /// Takes the layout that is wanted, or whole rows if keys are too short for it.
    pub(super) fn new(method: Method, key_width: u32, wanted: Stored) -> Self {
        let suits = wanted.suits(64, key_width);
        let stored = if suits { wanted } else { Stored::Whole };
        Spec { method, key_width, stored, too_short_to_split: !suits }
    }

    pub(super) fn name(&self) -> String {
        match self.stored {
            Stored::Split | Stored::Lines => format!("{} {}", self.method, self.stored.name()),
            Stored::Whole | Stored::Numbers => self.method.to_string(),
        }
    }

    pub(super) fn build<'a>(&self, stored: &'a Signatures) -> lookalike::Result<Tables<'a>> {
        let build = Build { key_width: Some(self.key_width), stored: Some(self.stored) };
        Tables::build(stored, self.method, build)
    }

    /// The index that is looked at closely, and whose answers are the truth.
    pub(super) fn is_truth(&self) -> bool {
        self.method == multi(2, 4) && self.stored == Stored::Whole
    }

    /// Whether it is also measured without batches.
    pub(super) fn is_asked_singly(&self) -> bool {
        [multi(2, 3), multi(2, 4)].contains(&self.method)
    }
}

pub(super) fn bphs(stored: &Signatures, blocks: u32, lead: u32) -> Bphs {
    Bphs::build(stored.words(), blocks, lead)
}

pub(super) fn psm_in_thesis_form(stored: &Signatures) -> Psm {
    Psm::build(stored.words(), log2(stored.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_thesis_at_its_size() {
        assert_eq!((widest(60_000_000), log2(60_000_000)), (24, 26));
        assert_eq!((widest(1_000_000), log2(1_000_000)), (18, 20));
    }

    #[test]
    fn rows_are_whole_where_keys_are_too_short_to_split_them() {
        let of = |rows| Spec::new(multi(2, 3), widest(rows), Stored::Split);
        assert_eq!(
            (of(60_000_000).name(), of(20_000).name()),
            ("multi-2x3 split".into(), "multi-2x3".into())
        );
        assert_eq!(
            (of(60_000_000).too_short_to_split, of(20_000).too_short_to_split),
            (false, true)
        );
    }
}
