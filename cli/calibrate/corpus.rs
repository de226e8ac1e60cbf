//! The documents that recipes are tried on, and what is true of them.

use std::collections::HashMap;

use lookalike::{
    Signer,
    features::hash::{FeatureHash, mix},
    quality::{Alike, Links, Measure, Pairs, WeightedRow, alike, half},
    recipe::Scratch,
};
use rayon::prelude::*;

/// Pairs that are all compared: those of 30,000 documents. Of more documents only some are compared with all.
const MOST_PAIRS: u64 = 450_000_000;

/// Documents in memory.
#[derive(Default)]
pub(crate) struct Corpus {
    pub(crate) ids: Vec<String>,
    pub(crate) texts: Vec<String>,
}

/// Which pairs belong together.
pub(crate) enum Truth {
    /// As labels say; each document has the name of its cluster.
    Labels(Links, Vec<String>),
    /// Those whose word 3-grams have at least this Jaccard.
    Jaccard(f64),
    /// Those whose features have at least this cosine, as the signer weighs them.
    Cosine(f64, Box<Signer>),
}

/// Documents that are compared with each other, and the truth about them.
pub(crate) struct Part<'a> {
    pub(crate) texts: Vec<&'a str>,
    /// The documents that are compared with all behind them: all, or a sample.
    pub(crate) first: Vec<u32>,
    pub(crate) links: Links,
    /// How many pairs there are to be found.
    pub(crate) wanted: u64,
    /// All pairs that are somewhat alike, by Jaccard.
    pub(crate) alike: Vec<Alike>,
}

impl Corpus {
    /// The documents whose half is `wanted`, or all, and what is true of them. Pairs less alike than `least` are not kept.
    pub(crate) fn part(
        &self,
        truth: &Truth,
        wanted: Option<bool>,
        shingles: &Signer,
        least: f64,
    ) -> Part<'_> {
        let is_in = |row: &usize| wanted.is_none_or(|wanted| self.half(truth, *row) == wanted);
        let rows: Vec<usize> = (0..self.ids.len()).filter(is_in).collect();
        let texts: Vec<&str> = rows.iter().map(|&row| self.texts[row].as_str()).collect();
        let first = self.sample(&rows);
        let alike = alike(&weigh(shingles, &texts), &first, Measure::Jaccard, least);
        let pairs = |alike: &[Alike], least: f64| {
            let alike = alike.iter().filter(|pair| pair.similarity >= least);
            Links::Pairs(Pairs::new(alike.map(|pair| (pair.a, pair.b))))
        };
        let links = match truth {
            Truth::Labels(links, _) => within(links, &rows),
            Truth::Jaccard(least) => pairs(&alike, *least),
            Truth::Cosine(least, signer) => {
                let rows = weigh(signer, &texts);
                pairs(&lookalike::quality::alike(&rows, &first, Measure::Cosine, *least), *least)
            }
        };
        let mut part = Part { texts, first, links, wanted: 0, alike };
        let mut wanted = 0;
        part.for_each_true(|_, _| wanted += 1);
        part.wanted = wanted;
        part
    }

    fn half(&self, truth: &Truth, row: usize) -> bool {
        match truth {
            Truth::Labels(_, names) => half(&names[row]),
            _ => half(&self.ids[row]),
        }
    }

    /// Numbers of documents, all if they are not too many; otherwise those that the hash of their id picks.
    fn sample(&self, rows: &[usize]) -> Vec<u32> {
        let pairs = rows.len() as u64 * rows.len() as u64 / 2;
        let share = (MOST_PAIRS as f64 / pairs.max(1) as f64).min(1.0);
        let limit = (share * u64::MAX as f64) as u64;
        let picked =
            |&row: &usize| mix(FeatureHash::default().of(self.ids[row].as_bytes())[0]) <= limit;
        (0..).zip(rows).filter(|(_, row)| picked(row)).map(|(number, _)| number).collect()
    }
}

/// The features of each text with their weights.
fn weigh(signer: &Signer, texts: &[&str]) -> Vec<WeightedRow> {
    let weigh = |scratch: &mut Scratch, text: &&str| -> WeightedRow {
        signer.weigh(text, scratch).iter().map(|(hash, weight)| (hash[0], weight as f32)).collect()
    };
    let mut rows: Vec<WeightedRow> = texts.par_iter().map_init(Scratch::default, weigh).collect();
    // Sets have weights of 1.
    let one = lookalike::features::weights::ONE as f32;
    rows.iter_mut().flatten().for_each(|(_, weight)| *weight /= one);
    rows
}

/// Labels of some rows, which are numbered anew.
fn within(links: &Links, rows: &[usize]) -> Links {
    match links {
        Links::Clusters(clusters) => {
            let of = rows.iter().map(|&row| clusters.of(row as u32));
            Links::Clusters(lookalike::quality::Clusters::new(of))
        }
        Links::Pairs(pairs) => {
            let new: HashMap<u32, u32> =
                (0..).zip(rows).map(|(new, &row)| (row as u32, new)).collect();
            let both = |(a, b): (u32, u32)| new.get(&a).copied().zip(new.get(&b).copied());
            Links::Pairs(Pairs::new(pairs.iter().filter_map(both)))
        }
    }
}

impl Part<'_> {
    /// Whether only some documents were compared with all.
    pub(crate) fn is_sampled(&self) -> bool {
        self.first.len() < self.texts.len()
    }

    /// Calls `each` with every pair that belongs together and was compared.
    pub(super) fn for_each_true(&self, mut each: impl FnMut(u32, u32)) {
        let is_first = |row: u32| self.first.binary_search(&row).is_ok();
        match &self.links {
            Links::Pairs(pairs) => {
                pairs.iter().filter(|&(a, _)| is_first(a)).for_each(|(a, b)| each(a, b));
            }
            Links::Clusters(clusters) => {
                let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
                for (row, cluster) in (0..).zip(clusters.iter()) {
                    cluster.into_iter().for_each(|c| members.entry(c).or_default().push(row));
                }
                for rows in members.values() {
                    for (at, &a) in rows.iter().enumerate().filter(|(_, a)| is_first(**a)) {
                        rows[at + 1..].iter().for_each(|&b| each(a, b));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lookalike::quality::Clusters;

    use super::*;
    use crate::texts::word_shingles;

    fn corpus(documents: usize) -> Corpus {
        let text =
            |number: usize| format!("one two three four five six seven eight nine {}", number / 2);
        Corpus {
            ids: (0..documents).map(|number| number.to_string()).collect(),
            texts: (0..documents).map(text).collect(),
        }
    }

    #[test]
    fn halves_divide_the_documents_and_no_cluster() {
        let corpus = corpus(40);
        let clusters: Vec<Option<u32>> = (0..40).map(|row| Some(row / 2)).collect();
        let names = clusters.iter().map(|cluster| format!("cluster {cluster:?}")).collect();
        let truth = Truth::Labels(Links::Clusters(Clusters::new(clusters)), names);
        let shingles = word_shingles().unwrap();
        let [all, one, other] =
            [None, Some(false), Some(true)].map(|half| corpus.part(&truth, half, &shingles, 0.3));
        assert_eq!((all.wanted, all.texts.len(), all.is_sampled()), (20, 40, false));
        assert_eq!(one.wanted + other.wanted, 20);
        assert_eq!(one.texts.len() + other.texts.len(), 40);
        assert!(one.wanted > 3 && other.wanted > 3);
        // All share seven of eight shingles; all pairs are met.
        assert_eq!(all.alike.len(), 40 * 39 / 2);
    }

    #[test]
    fn truth_is_what_is_alike() {
        let corpus = corpus(10);
        let shingles = word_shingles().unwrap();
        let part = corpus.part(&Truth::Jaccard(1.0), None, &shingles, 0.3);
        assert_eq!(part.wanted, 5);
        assert!(part.links.join(0, 1) && !part.links.join(1, 2));
    }

    #[test]
    fn too_many_documents_are_sampled() {
        let corpus = corpus(60_000);
        let rows: Vec<usize> = (0..60_000).collect();
        let sample = corpus.sample(&rows);
        assert!((14_000..16_000).contains(&sample.len()), "{}", sample.len());
        assert_eq!(corpus.sample(&rows[..30_000]).len(), 30_000);
    }
}
