//! How speed falls as the stored rows grow: figures 7 and 8 of the thesis. All neighbors; keys as wide as a size asks.

use lookalike::{Signatures, index::Method, table::Stored};

use super::{
    contenders::{Spec, bphs, log2, multi, psm_in_thesis_form, widest},
    digest::{Digest, in_common, share},
    measure::{Chunk, Measured, Meter, Question},
    results::GrowthRow,
    subjects::{InThesisForm, OneByOne, Ours},
};

/// Parts of the rows: a sixty-fourth, a sixteenth, a quarter, all.
const PARTS: [usize; 4] = [64, 16, 4, 1];

/// Measures at each size. The first rows are a random sample of all, as the thesis' smaller sets are.
pub(super) fn growth(
    stored: &Signatures,
    chunks: &[Chunk<'_>],
    meter: &Meter<'_>,
) -> lookalike::Result<Vec<GrowthRow>> {
    let mut rows = Vec::new();
    for part in PARTS {
        let sample = &stored.words()[..stored.len() / part];
        let sample = Signatures::from_words(64, sample.to_vec())?;
        rows.extend(Size { stored: &sample, chunks, meter }.measure()?);
    }
    compare_with_smallest(&mut rows);
    Ok(rows)
}

fn compare_with_smallest(rows: &mut [GrowthRow]) {
    for at in 0..rows.len() {
        let smallest = rows.iter().find(|row| row.name == rows[at].name);
        let smallest = smallest.map_or(1.0, |row| row.queries_a_second);
        rows[at].to_smallest = rows[at].queries_a_second / smallest;
    }
}

/// One size.
struct Size<'a> {
    stored: &'a Signatures,
    chunks: &'a [Chunk<'a>],
    meter: &'a Meter<'a>,
}

/// A method at that size.
struct Point {
    name: &'static str,
    key_bits: u32,
    measured: Measured,
}

impl Size<'_> {
    /// One method after the other; each is gone before the next is built.
    fn measure(&self) -> lookalike::Result<Vec<GrowthRow>> {
        let exact = self.ours("multi-2x4", multi(2, 4), Stored::Whole)?;
        let truth = exact.measured.digests.clone();
        let points = [
            exact,
            self.ours("multi-2x3", multi(2, 3), Stored::Split)?,
            self.thesis("BPHS-4", 16, bphs(self.stored, 4, 1))?,
            self.thesis("PSM, heap", log2(self.stored.len()), psm_in_thesis_form(self.stored))?,
        ];
        Ok(points.into_iter().map(|point| self.row(point, &truth)).collect())
    }

    fn ours(&self, name: &'static str, method: Method, wanted: Stored) -> lookalike::Result<Point> {
        let spec = Spec::new(method, widest(self.stored.len()), wanted);
        let mut ours = Ours::new(spec.build(self.stored)?, self.stored);
        let key_bits = ours.key_bits();
        let measured = self.meter.measure(&mut ours, Question::All, self.chunks)?;
        Ok(Point { name, key_bits, measured })
    }

    fn thesis(
        &self,
        name: &'static str,
        key_bits: u32,
        method: impl OneByOne,
    ) -> lookalike::Result<Point> {
        let mut subject = InThesisForm::new(method);
        let measured = self.meter.measure(&mut subject, Question::All, self.chunks)?;
        Ok(Point { name, key_bits, measured })
    }

    fn row(&self, point: Point, truth: &[Digest]) -> GrowthRow {
        let (found, there) = in_common(&point.measured.digests, truth);
        GrowthRow {
            name: point.name.to_owned(),
            rows: self.stored.len(),
            key_bits: point.key_bits,
            queries: point.measured.queries,
            queries_a_second: point.measured.rate(),
            recall: share(found.pairs, there.pairs),
            to_smallest: 1.0,
        }
    }
}
