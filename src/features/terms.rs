//! Term statistics: how often each feature occurs in a collection, and in how many of its documents.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    fs::File,
    hash::{BuildHasherDefault, Hasher},
    io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{FeatureSettings, counts::Counts, weights::fixed};
use crate::{
    Error, Result,
    container::{self, Container, ContainerWriter},
    mapped::Cells,
};

const KIND: &str = "terms";

/// What a file of term statistics says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    /// Which features were counted.
    features: FeatureSettings,
    documents: u64,
    /// Occurrences of all features.
    occurrences: u64,
    /// Distinct features, those that occur once included.
    distinct: u64,
    /// Entries stored: the features that occur more than once.
    entries: u64,
}

/// What term statistics sum up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TermTotals {
    /// Documents that were counted.
    pub documents: u64,
    /// Occurrences of all features.
    pub occurrences: u64,
    /// Distinct features.
    pub distinct: u64,
}

impl About {
    fn totals(&self) -> TermTotals {
        let About { documents, occurrences, distinct, .. } = *self;
        TermTotals { documents, occurrences, distinct }
    }
}

/// How often each feature occurs in a collection; memory-mapped.
///
/// Features that occur once are not stored, so a feature that is not found counts as one that occurs once, in one
/// document: nothing is lost by that, and a file has about half the entries.
#[derive(Debug, Clone)]
pub struct TermStatistics {
    container: Container<About>,
    /// Two words each, by rising hash: the hash; documents (upper half) and occurrences (lower half), both saturating.
    entries: Cells<u64>,
    /// Where the entries of each value of the hash's leading bits begin.
    starts: Vec<u32>,
    shift: u32,
    fingerprint: String,
}

impl TermStatistics {
    /// Whether a file says that it holds term statistics.
    pub fn is_in(path: &Path) -> bool {
        container::kind_of(path).as_deref() == Some(KIND)
    }

    /// Opens a file of term statistics.
    pub fn open(path: &Path) -> Result<Self> {
        let container: Container<About> = Container::open(path, KIND)?;
        let count =
            usize::try_from(container.about.entries).ok().filter(|&n| n < u32::MAX as usize);
        let count = count.ok_or_else(|| container.damaged("entries", "has too many entries"))?;
        let entries = container.cells::<u64>("entries", count * 2)?;
        let entry_words = entries.as_slice().as_chunks::<2>().0;
        let rising = entry_words.is_sorted_by(|a, b| a[0] < b[0]);
        // Weights divide by both numbers.
        if !rising || entry_words.iter().any(|entry| entry[1] as u32 == 0 || entry[1] >> 32 == 0) {
            return Err(container.damaged("entries", "has entries that cannot be"));
        }
        let leading = (count as u64).checked_ilog2().unwrap_or(0).max(1);
        let shift = 64 - leading;
        let starts = starts_of(entries.as_slice(), leading, shift);
        let fingerprint = fingerprint_of(&container.about, entries.as_slice());
        Ok(TermStatistics { container, entries, starts, shift, fingerprint })
    }

    /// Which features were counted.
    pub fn features(&self) -> &FeatureSettings {
        &self.container.about.features
    }

    /// What the statistics sum up to.
    pub fn totals(&self) -> TermTotals {
        self.container.about.totals()
    }

    /// A hash of all that these statistics say: the recipe holds it, so that signatures weighed by other statistics are
    /// not mixed with these.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Occurrences of a feature, and documents that have it.
    pub fn of(&self, hash: u64) -> (u32, u32) {
        let bucket = (hash >> self.shift) as usize;
        let range = self.starts[bucket] as usize * 2..self.starts[bucket + 1] as usize * 2;
        let entry = self.entries.as_slice()[range].chunks_exact(2).find(|entry| entry[0] == hash);
        entry.map_or((1, 1), |entry| (entry[1] as u32, (entry[1] >> 32) as u32))
    }

    /// The TF-IDF weight of a feature that occurs `count` times in a document.
    pub(super) fn tf_idf(&self, hash: u64, count: u32) -> u64 {
        let (_, with_it) = self.of(hash);
        let ratio = (self.container.about.documents as f64 + 1.0) / (f64::from(with_it) + 1.0);
        fixed(f64::from(count) * libm::log(ratio))
    }

    /// TopSig's weight of a feature that occurs `count` times in a document with `all` occurrences of features.
    pub(super) fn log_likelihood(&self, hash: u64, count: u32, all: u64) -> u64 {
        let (occurrences, _) = self.of(hash);
        let expected = f64::from(occurrences) / self.container.about.occurrences as f64;
        fixed(log_likelihood(f64::from(count), all as f64, expected))
    }
}

/// TopSig's weight: a term that occurs `count` times in a document of `all` terms, where a share of `expected` of the
/// collection's terms is that term.
fn log_likelihood(count: f64, all: f64, expected: f64) -> f64 {
    (libm::log(count / all / expected) * (count - 0.5)).max(0.0)
}

fn starts_of(entries: &[u64], leading: u32, shift: u32) -> Vec<u32> {
    let mut starts = vec![0; (1 << leading) + 1];
    for entry in entries.chunks_exact(2) {
        starts[(entry[0] >> shift) as usize + 1] += 1;
    }
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    starts
}

fn fingerprint_of(about: &About, entries: &[u64]) -> String {
    let about = serde_json::to_vec(about).expect("plain data becomes JSON");
    let entries = xxhash_rust::xxh3::xxh3_64(bytemuck::cast_slice(entries));
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64_with_seed(&about, entries))
}

/// Hashes are random already.
#[derive(Debug, Default, Clone, Copy)]
pub struct HashOfHash(u64);

impl Hasher for HashOfHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64")
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Occurrences and documents of each feature, in memory.
#[derive(Debug, Default)]
pub struct TermCounts {
    terms: HashMap<u64, (u64, u64), BuildHasherDefault<HashOfHash>>,
    documents: u64,
    occurrences: u64,
}

impl TermCounts {
    /// Counts one document.
    pub fn add(&mut self, counts: &Counts) {
        self.documents += 1;
        self.occurrences += counts.total();
        for counted in counts.distinct() {
            let (occurrences, documents) = self.terms.entry(counted.hash[0]).or_default();
            *occurrences += u64::from(counted.count);
            *documents += 1;
        }
    }

    fn absorb(&mut self, other: &TermCounts) {
        self.documents += other.documents;
        self.occurrences += other.occurrences;
        for (&hash, &(more_occurrences, more_documents)) in &other.terms {
            let (occurrences, documents) = self.terms.entry(hash).or_default();
            *occurrences += more_occurrences;
            *documents += more_documents;
        }
    }
}

/// One counted feature: hash, occurrences, documents.
type Term = (u64, u64, u64);

/// Collects term statistics of any size in bounded memory: when the counts fill their share they go to disk, sorted, and
/// are merged at the end.
#[derive(Debug)]
pub struct TermCollector {
    folder: PathBuf,
    counts: TermCounts,
    at_most: usize,
    runs: Vec<File>,
}

impl TermCollector {
    /// A collector that keeps at most about `memory` bytes of counts in memory, the others in files in `folder`.
    pub fn new(memory: usize, folder: &Path) -> Self {
        // A hash map entry of 24 bytes and a control byte, at a load between 7/16 and 7/8, doubled while it grows.
        TermCollector {
            folder: folder.to_owned(),
            counts: TermCounts::default(),
            at_most: (memory / 96).max(16),
            runs: Vec::new(),
        }
    }

    /// Adds the counts of some documents. The order of the calls does not matter.
    pub fn add(&mut self, counts: &TermCounts) -> std::io::Result<()> {
        self.counts.absorb(counts);
        if self.counts.terms.len() > self.at_most {
            self.spill()?;
        }
        if self.runs.len() >= MOST_RUNS {
            self.merge_runs()?;
        }
        Ok(())
    }

    /// Makes one run of all: each takes a file descriptor and a buffer.
    fn merge_runs(&mut self) -> std::io::Result<()> {
        let runs = std::mem::take(&mut self.runs).into_iter().map(terms_of).collect();
        let mut merged = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(&self.folder)?);
        Merged::of(runs)?.try_for_each(|term| write_term(&mut merged, term?))?;
        self.runs.push(rewound(merged)?);
        Ok(())
    }

    fn sorted(&mut self) -> Vec<Term> {
        let terms = std::mem::take(&mut self.counts.terms);
        let mut sorted: Vec<Term> = terms.into_iter().map(|(h, (o, d))| (h, o, d)).collect();
        sorted.sort_unstable();
        sorted
    }

    fn spill(&mut self) -> std::io::Result<()> {
        let mut run = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(&self.folder)?);
        self.sorted().into_iter().try_for_each(|term| write_term(&mut run, term))?;
        self.runs.push(rewound(run)?);
        Ok(())
    }

    /// Writes the statistics to `path`; tells what they sum up to.
    pub fn finish(mut self, path: &Path, features: &FeatureSettings) -> Result<TermTotals> {
        let mut runs = vec![Box::new(self.sorted().into_iter().map(Ok)) as Run];
        runs.extend(self.runs.into_iter().map(terms_of));
        let mut about = About {
            features: features.clone(),
            documents: self.counts.documents,
            occurrences: self.counts.occurrences,
            distinct: 0,
            entries: 0,
        };
        let mut writer = ContainerWriter::create(path, KIND, &["entries"])?;
        for term in Merged::of(runs).map_err(|error| Error::io(path, error))? {
            let (hash, occurrences, documents) = term.map_err(|error| Error::io(path, error))?;
            about.distinct += 1;
            if occurrences == 1 {
                continue;
            }
            about.entries += 1;
            let half = |n: u64| n.min(u64::from(u32::MAX));
            let entry = [hash, half(documents) << 32 | half(occurrences)].map(u64::to_le_bytes);
            writer.write(0, entry.as_flattened())?;
        }
        let totals = about.totals();
        writer.finish(about)?;
        Ok(totals)
    }
}

/// Sorted terms.
type Run = Box<dyn Iterator<Item = std::io::Result<Term>>>;

/// More runs than this are merged into one.
const MOST_RUNS: usize = 64;

fn terms_of(run: File) -> Run {
    let mut run = BufReader::with_capacity(1 << 18, run);
    Box::new(std::iter::from_fn(move || read_term(&mut run).transpose()))
}

fn write_term(run: &mut impl Write, (hash, occurrences, documents): Term) -> std::io::Result<()> {
    run.write_all(bytemuck::cast_slice(&[hash, occurrences, documents]))
}

fn rewound(run: BufWriter<File>) -> std::io::Result<File> {
    let mut run = run.into_inner()?;
    run.seek(SeekFrom::Start(0))?;
    Ok(run)
}

fn read_term(run: &mut impl Read) -> std::io::Result<Option<Term>> {
    let mut term = [0_u64; 3];
    match run.read_exact(bytemuck::cast_slice_mut(&mut term)) {
        Ok(()) => Ok(Some((term[0], term[1], term[2]))),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sorted runs as one; terms of one hash become one.
struct Merged {
    runs: Vec<Run>,
    /// The next term of each run, the lowest on top.
    heap: BinaryHeap<Reverse<(Term, usize)>>,
}

impl Merged {
    fn of(runs: Vec<Run>) -> std::io::Result<Self> {
        let mut merged = Merged { heap: BinaryHeap::with_capacity(runs.len()), runs };
        (0..merged.runs.len()).try_for_each(|run| merged.refill(run))?;
        Ok(merged)
    }

    fn refill(&mut self, run: usize) -> std::io::Result<()> {
        self.heap.extend(self.runs[run].next().transpose()?.map(|term| Reverse((term, run))));
        Ok(())
    }

    /// The lowest term of all runs, unless it has another hash.
    fn pop(&mut self, hash: Option<u64>) -> std::io::Result<Option<Term>> {
        match self.heap.peek() {
            Some(&Reverse((term, run))) if hash.is_none_or(|hash| hash == term.0) => {
                self.heap.pop();
                self.refill(run)?;
                Ok(Some(term))
            }
            _ => Ok(None),
        }
    }

    fn next_term(&mut self) -> std::io::Result<Option<Term>> {
        let Some((hash, mut occurrences, mut documents)) = self.pop(None)? else { return Ok(None) };
        while let Some((_, more_occurrences, more_documents)) = self.pop(Some(hash))? {
            occurrences += more_occurrences;
            documents += more_documents;
        }
        Ok(Some((hash, occurrences, documents)))
    }
}

impl Iterator for Merged {
    type Item = std::io::Result<Term>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_term().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::weights::ONE, *};

    fn counts(hashes: &[u64]) -> Counts {
        let mut counts = Counts::default();
        counts.reset(hashes.len());
        hashes.iter().for_each(|&hash| counts.add([hash, 0]));
        counts
    }

    /// Statistics of documents given as lists of hashes, written and read again.
    fn statistics(documents: &[&[u64]], memory: usize) -> TermStatistics {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("terms");
        let mut collector = TermCollector::new(memory, folder.path());
        for document in documents {
            let mut some = TermCounts::default();
            some.add(&counts(document));
            collector.add(&some).unwrap();
        }
        collector.finish(&path, &FeatureSettings::default()).unwrap();
        TermStatistics::open(&path).unwrap()
    }

    #[test]
    fn statistics_are_exact_in_little_memory() {
        let documents: Vec<Vec<u64>> = (0..200_u64)
            .map(|d| (0..40).map(|i| super::super::hash::mix((d * i) % 97)).collect())
            .collect();
        let documents: Vec<&[u64]> = documents.iter().map(|d| &d[..]).collect();
        let (roomy, tight) = (statistics(&documents, 1 << 30), statistics(&documents, 1));
        assert_eq!(roomy.fingerprint(), tight.fingerprint());
        assert_eq!(tight.totals(), TermTotals { documents: 200, occurrences: 8000, distinct: 97 });
        for term in 0..97 {
            let hash = super::super::hash::mix(term);
            let occurrences =
                documents.iter().flat_map(|d| d.iter()).filter(|&&h| h == hash).count();
            let with_it = documents.iter().filter(|d| d.contains(&hash)).count();
            assert_eq!(tight.of(hash), (occurrences as u32, with_it as u32));
        }
        assert_eq!(tight.of(12345), (1, 1), "what was not seen counts as seen once");
    }

    /// The weight of TopSig, as the paper defines it.
    #[test]
    fn log_likelihood_is_topsigs() {
        // A term 3 times in a document of 100, 50 times in a collection of 100,000: ln(60) x 2.5.
        let weight = log_likelihood(3.0, 100.0, 50.0 / 100_000.0);
        assert!((weight - 60_f64.ln() * 2.5).abs() < 1e-9);
        // A term that is as rare here as everywhere, or rarer, weighs nothing.
        assert_eq!(log_likelihood(1.0, 100.0, 0.01), 0.0);
        assert_eq!(log_likelihood(1.0, 100.0, 0.02), 0.0);
    }

    #[test]
    fn weights_come_from_the_statistics() {
        let terms =
            statistics(&[&[1 << 60, 1 << 60, 2 << 60], &[1 << 60, 3 << 60], &[1 << 60]], 1 << 20);
        assert_eq!((terms.of(1 << 60), terms.of(3 << 60)), ((4, 3), (1, 1)));
        assert_eq!(terms.tf_idf(1 << 60, 5), 0, "a term of every document weighs nothing");
        assert_eq!(terms.tf_idf(3 << 60, 2), fixed(2.0 * 2_f64.ln()));
        assert_eq!(terms.log_likelihood(3 << 60, 1, 2), fixed(3_f64.ln() * 0.5));
        assert!(terms.log_likelihood(3 << 60, 1, 2) > ONE / 2);
    }
}
