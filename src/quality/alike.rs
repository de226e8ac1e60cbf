//! All pairs of rows that are truly alike, feature by feature: the truth where nobody has labelled any.

use rayon::prelude::*;

/// The features of a row with their weights, each feature once.
pub type WeightedRow = Vec<(u64, f32)>;

/// How likeness is measured. Where all weights are 1, rows are sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Features that both have, over features that either has; weights must be 1.
    Jaccard,
    /// The cosine of the angle between the weighted features.
    Cosine,
}

/// Two rows that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alike {
    /// The lower row.
    pub a: u32,
    /// The higher row.
    pub b: u32,
    /// How alike they are, from 0 to 1.
    pub similarity: f64,
}

impl Measure {
    /// The similarity from the product of two rows and from those of each with itself.
    fn of(self, product: f64, a: f64, b: f64) -> f64 {
        match self {
            Measure::Jaccard => product / (a + b - product),
            // Rounding must not make copies more than alike.
            Measure::Cosine => (product / (a * b).sqrt()).min(1.0),
        }
    }
}

/// The pairs that are at least so alike: the rows of `first`, each with all rows behind it, in order. Exact: an inverted
/// index leads from each feature to its rows, so what shares no feature is never met. `least` must be above 0.
pub fn alike(rows: &[WeightedRow], first: &[u32], measure: Measure, least: f64) -> Vec<Alike> {
    assert!(least > 0.0, "rows without a common feature are not found");
    let index = Inverted::new(rows);
    let run = |products: &mut Products, &row: &u32| {
        index.multiply(row, products);
        let of = |&other: &u32| {
            let product = products.of[other as usize];
            let norm = |row: u32| index.norms[row as usize];
            let similarity = measure.of(product, norm(row), norm(other));
            Alike { a: row, b: other, similarity }
        };
        let mut found: Vec<Alike> =
            products.met.iter().map(of).filter(|pair| pair.similarity >= least).collect();
        found.sort_unstable_by_key(|pair| pair.b);
        products.clear();
        found
    };
    let found = first.par_iter().map_init(|| Products::new(rows.len()), run);
    found.collect::<Vec<_>>().concat()
}

/// The products of one row with all others.
struct Products {
    of: Vec<f64>,
    /// Those that are not 0.
    met: Vec<u32>,
}

impl Products {
    fn new(rows: usize) -> Self {
        Products { of: vec![0.0; rows], met: Vec::new() }
    }

    fn clear(&mut self) {
        self.met.drain(..).for_each(|row| self.of[row as usize] = 0.0);
    }
}

/// From each feature to the rows that have it.
struct Inverted {
    /// Rows with their weights, feature after feature, in order.
    postings: Vec<(u32, f32)>,
    /// Where the feature of a posting ends, for each row's features that another row has, too.
    features: Vec<Vec<Place>>,
    norms: Vec<f64>,
}

/// A feature of a row: the postings of the rows behind it, and its weight.
struct Place {
    start: u32,
    end: u32,
    weight: f32,
}

impl Inverted {
    fn new(rows: &[WeightedRow]) -> Self {
        let numbered = rows.par_iter().enumerate().flat_map_iter(|(row, features)| {
            features.iter().map(move |&(feature, weight)| (feature, row as u32, weight))
        });
        let mut all: Vec<(u64, u32, f32)> = numbered.collect();
        all.par_sort_unstable_by_key(|&(feature, row, _)| (feature, row));
        let mut features: Vec<Vec<Place>> = Vec::new();
        features.resize_with(rows.len(), Vec::new);
        let mut end = 0;
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            let start = end;
            end += same.len();
            for (at, &(_, row, weight)) in (start + 1..end).zip(same) {
                let place = Place { start: at as u32, end: end as u32, weight };
                features[row as usize].push(place);
            }
        }
        let square = |row: &WeightedRow| row.iter().map(|&(_, w)| f64::from(w).powi(2)).sum();
        Inverted {
            postings: all.into_iter().map(|(_, row, weight)| (row, weight)).collect(),
            features,
            norms: rows.iter().map(square).collect(),
        }
    }

    fn multiply(&self, row: u32, products: &mut Products) {
        for place in &self.features[row as usize] {
            for &(other, weight) in &self.postings[place.start as usize..place.end as usize] {
                let product = &mut products.of[other as usize];
                if *product == 0.0 {
                    products.met.push(other);
                }
                *product += f64::from(weight) * f64::from(place.weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn set(features: &[u64]) -> WeightedRow {
        features.iter().map(|&feature| (feature, 1.0)).collect()
    }

    #[test]
    fn likeness_is_counted() {
        let rows = [set(&[1, 2, 3, 4]), set(&[2, 3, 4, 5]), set(&[]), set(&[9]), set(&[9])];
        let all = [0, 1, 2, 3, 4];
        let found = alike(&rows, &all, Measure::Jaccard, 0.5);
        let pair = |a, b, similarity| Alike { a, b, similarity };
        assert_eq!(found, [pair(0, 1, 0.6), pair(3, 4, 1.0)]);
        assert_eq!(alike(&rows, &all, Measure::Cosine, 0.75)[0], pair(0, 1, 0.75));
        assert_eq!(alike(&rows, &[3], Measure::Jaccard, 0.5), [pair(3, 4, 1.0)]);
    }

    proptest! {
        #[test]
        fn every_pair_is_met(rows in prop::collection::vec(prop::collection::btree_map(0..20_u64, 1..5_u8, 0..8), 0..20)) {
            let weighted = |row: &std::collections::BTreeMap<u64, u8>| -> WeightedRow {
                row.iter().map(|(&feature, &weight)| (feature, f32::from(weight))).collect()
            };
            let rows: Vec<WeightedRow> = rows.iter().map(weighted).collect();
            let product = |a: &WeightedRow, b: &WeightedRow| -> f64 {
                let b: HashMap<u64, f32> = b.iter().copied().collect();
                a.iter().filter_map(|(f, w)| Some(f64::from(*w) * f64::from(*b.get(f)?))).sum()
            };
            let mut expected = Vec::new();
            for (a, one) in rows.iter().enumerate() {
                for (b, other) in rows.iter().enumerate().skip(a + 1) {
                    let similarity = product(one, other) / (product(one, one) * product(other, other)).sqrt();
                    if similarity > 0.301 {
                        expected.push((a as u32, b as u32));
                    }
                }
            }
            let all: Vec<u32> = (0..rows.len() as u32).collect();
            let found = alike(&rows, &all, Measure::Cosine, 0.301);
            let found: Vec<_> = found.iter().map(|pair| (pair.a, pair.b)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
