//! Deduplication from outside: what it decides against what the definitions say.

use std::collections::{BTreeSet, HashMap};

use lookalike::{
    Recipe, Signer,
    cluster::Linkage,
    dedup::{
        AlikePair, Dedup, Deduplicated, Dial, Limits,
        sketches::{Facts, SketchFile, SketchWriter, Sketches},
    },
    recipe::{Scratch, SketchSettings},
    verify::{FeatureSet, Verify},
};

const NOTHING: Facts = Facts { set_hash: 0, preference: 0, text_bytes: 0, source: 0, signed: 0 };

/// A random number generator that is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (lookalike::features::hash::mix(self.0) % n as u64) as usize
    }

    fn words(&mut self, n: usize) -> Vec<String> {
        (0..n).map(|_| format!("w{}", self.below(100_000))).collect()
    }
}

/// Texts of which many are edited copies of earlier ones.
fn texts(seed: u64, n: usize) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts: Vec<Vec<String>> = Vec::new();
    for _ in 0..n {
        let text = match random.below(2) {
            0 if !texts.is_empty() => {
                let mut text = texts[random.below(texts.len())].clone();
                for _ in 0..random.below(5) {
                    let at = random.below(text.len());
                    text[at] = format!("w{}", random.below(100_000));
                }
                text
            }
            _ => {
                let length = 20 + random.below(60);
                random.words(length)
            }
        };
        texts.push(text);
    }
    texts.into_iter().map(|words| words.join(" ")).collect()
}

/// Sketches of texts; the preference of each is its own.
fn sketched(
    texts: &[String],
    dial: &Dial,
    preferences: Option<&[u64]>,
) -> (tempfile::TempDir, SketchFile) {
    let signer = Signer::new(Recipe::named("minhash-256").unwrap(), None).unwrap();
    let settings = SketchSettings { bands: Some(dial.bands), weights: dial.verify.needs_weights() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sketches");
    let mut writer = SketchWriter::create(&path, 256, dial.bands.count, settings.weights).unwrap();
    let (mut scratch, mut sketches) = (Scratch::default(), Sketches::default());
    for (row, text) in texts.iter().enumerate() {
        let sketch = signer.sketch(text, settings, &mut scratch);
        let preference = preferences.map_or(0, |preferences| preferences[row]);
        let facts = Facts { preference, ..NOTHING };
        sketches.push(&row.to_string(), facts, sketch.as_ref(), (256, dial.bands.count));
    }
    writer.append(&sketches).unwrap();
    writer.finish(serde_json::Value::Null).unwrap();
    let file = SketchFile::open(&path).unwrap();
    (folder, file)
}

fn dial(similarity: f64) -> Dial {
    Dial::new(similarity, 256, None).unwrap()
}

fn run(file: &SketchFile, dial: Dial, linkage: Linkage, memory: usize) -> Deduplicated {
    let folder = tempfile::tempdir().unwrap();
    let dedup = Dedup::new(file, dial, Limits { memory, ..Limits::default() }).unwrap();
    dedup.run(linkage, folder.path(), None, &mut |_, _, _| {}).unwrap()
}

fn listed(file: &SketchFile, dial: Dial, linkage: Linkage) -> (Deduplicated, Vec<AlikePair>) {
    let folder = tempfile::tempdir().unwrap();
    let dedup = Dedup::new(file, dial, Limits { memory: 1 << 30, ..Limits::default() }).unwrap();
    let mut pairs = Vec::new();
    let mut each = |pair| {
        pairs.push(pair);
        Ok(())
    };
    let decided = dedup.run(linkage, folder.path(), Some(&mut each), &mut |_, _, _| {}).unwrap();
    (decided, pairs)
}

fn jaccard(file: &SketchFile, a: usize, b: usize) -> f64 {
    let set = |row| FeatureSet { elements: file.set(row), weights: &[] };
    Verify::Jaccard(0.5).similarity(set(a), set(b))
}

fn distance(file: &SketchFile, a: usize, b: usize) -> u32 {
    let words = file.signature(a).iter().zip(file.signature(b));
    words.map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// All pairs as the definition has them: features alike, signatures near enough to be candidates.
fn all_pairs(file: &SketchFile, dial: &Dial) -> BTreeSet<(u32, u32)> {
    let signed = |row: &usize| file.facts()[*row].signed == 1;
    let rows: Vec<usize> = (0..file.len()).filter(signed).collect();
    let mut pairs = BTreeSet::new();
    for (i, &a) in rows.iter().enumerate() {
        for &b in &rows[i + 1..] {
            let near = distance(file, a, b) <= dial.radius;
            if near && jaccard(file, a, b) >= dial.similarity {
                pairs.insert((a as u32, b as u32));
            }
        }
    }
    pairs
}

/// Stars by their definition: in the order of preference, whoever is like no keeper is one.
fn stars(file: &SketchFile, pairs: &BTreeSet<(u32, u32)>) -> Vec<bool> {
    let mut order: Vec<u32> = (0..file.len() as u32).collect();
    order.sort_by_key(|&row| (file.facts()[row as usize].preference, row));
    let mut kept: Vec<u32> = Vec::new();
    for row in order {
        if !kept.iter().any(|&k| pairs.contains(&(row.min(k), row.max(k)))) {
            kept.push(row);
        }
    }
    let kept: BTreeSet<u32> = kept.into_iter().collect();
    (0..file.len() as u32).map(|row| kept.contains(&row)).collect()
}

fn kept(decided: &Deduplicated) -> Vec<bool> {
    decided.decisions.iter().enumerate().map(|(row, d)| d.keeper as usize == row).collect()
}

#[test]
fn few_documents_are_decided_as_defined() {
    for (seed, similarity) in [(1, 0.5), (2, 0.7), (3, 0.8), (4, 1.0)] {
        let mut texts = texts(seed, 300);
        texts.extend(["".into(), "...".into(), "one".into(), "one".into(), "".into()]);
        let preferences: Vec<u64> = (0..texts.len() as u64).map(|row| row * 7 % 5).collect();
        let dial = dial(similarity);
        let (_folder, file) = sketched(&texts, &dial, Some(&preferences));
        let expected = all_pairs(&file, &dial);
        let (decided, pairs) = listed(&file, dial, Linkage::Star);
        let found: BTreeSet<(u32, u32)> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        assert_eq!(found.len(), pairs.len(), "each pair once");
        assert_eq!(found, expected, "similarity {similarity}");
        for pair in pairs {
            let (a, b) = (pair.a as usize, pair.b as usize);
            assert!((pair.similarity - jaccard(&file, a, b)).abs() < 1e-9);
            assert_eq!(pair.distance, distance(&file, a, b));
        }
        let stars = stars(&file, &expected);
        assert_eq!(kept(&decided), stars);
        let lazy = run(&file, dial, Linkage::Star, 1 << 30);
        assert_eq!(lazy.decisions, decided.decisions);
        for (row, decision) in lazy.decisions.iter().enumerate() {
            assert!(stars[decision.keeper as usize]);
            if decision.keeper as usize != row {
                let truth = jaccard(&file, row, decision.keeper as usize);
                assert!(
                    (f64::from(decision.similarity) - truth).abs() < 1e-6 && truth >= similarity
                );
            }
        }
        assert_eq!(lazy.checked.left_behind, 0);
    }
}

#[test]
fn many_documents_are_found_by_their_keys_whatever_threads_and_memory() {
    let texts = texts(9, 12_000);
    for similarity in [0.5, 0.7, 0.8] {
        let dial = dial(similarity);
        let (_folder, file) = sketched(&texts, &dial, None);
        let (decided, pairs) = listed(&file, dial, Linkage::Star);
        let found: BTreeSet<(u32, u32)> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        assert_eq!(found.len(), pairs.len(), "each pair once");
        assert!(pairs.iter().all(|p| jaccard(&file, p.a as usize, p.b as usize) >= similarity));
        let recall = decided.checked.recall_of_pairs.unwrap();
        assert!(recall >= 0.98, "{similarity}: {recall}");
        // One in 200, or one by chance.
        let left = decided.checked.left_behind;
        assert!(left <= (decided.checked.kept / 200).max(1), "{:?}", decided.checked);
        let lazy = run(&file, dial, Linkage::Star, 1 << 30);
        assert_eq!(lazy.decisions, decided.decisions);
        assert!(lazy.counts.verified < decided.counts.verified);
        for (threads, memory) in [(1, 1 << 30), (3, 1 << 16), (2, 1 << 20)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let again = pool.install(|| run(&file, dial, Linkage::Star, memory));
            assert_eq!(again.decisions, lazy.decisions, "{threads} threads, {memory} bytes");
        }
    }
}

/// A template with thousands of near-copies has millions of pairs; only those with its keeper are looked at.
#[test]
fn a_template_costs_little() {
    let mut random = Random(5);
    let template = random.words(100);
    let copy = |random: &mut Random| {
        let mut words = template.clone();
        let at = random.below(words.len());
        words[at] = format!("x{}", random.below(1 << 40));
        words.join(" ")
    };
    let mut texts: Vec<String> = (0..10_000).map(|_| copy(&mut random)).collect();
    texts.extend(self::texts(6, 2000));
    let dial = dial(0.8);
    let (_folder, file) = sketched(&texts, &dial, None);
    let lazy = run(&file, dial, Linkage::Star, 1 << 28);
    assert!(lazy.counts.dense > 0);
    assert!(lazy.counts.verified < 1_000_000, "{:?}", lazy.counts);
    assert!(lazy.counts.candidates < 10_000_000, "{:?}", lazy.counts);
    // A document of the sample is not compared with all of its copies, and still it is told how many pairs there are.
    let pairs = lazy.checked.pairs_expected as f64 / (10_000.0 * 9_999.0 / 2.0);
    assert!((0.9..1.1).contains(&pairs), "{:?}", lazy.checked);
    assert_eq!(lazy.checked.left_behind, 0);
    let kept = kept(&lazy);
    // With the first, nearly all have a key in common: .85 of 10,000 have none, by the formula.
    let keepers = kept[..10_000].iter().filter(|kept| **kept).count();
    assert!((1..=4).contains(&keepers), "{keepers}");
    // One cluster of them all, whichever way they are linked.
    let components = run(&file, dial, Linkage::Components, 1 << 28);
    assert!(components.decisions[..10_000].iter().all(|decision| decision.keeper == 0));
}

#[test]
fn a_common_footer_costs_little() {
    let mut random = Random(11);
    let footer = random.words(60).join(" ");
    let mut texts: Vec<String> = Vec::new();
    for i in 0..12_000 {
        let length = 4 + random.below(40);
        texts.push(match i % 20 {
            // A near-copy of the one before, with one word more.
            19 => format!("once {}", texts[i - 1]),
            _ => format!("{} {footer}", random.words(length).join(" ")),
        });
    }
    let dial = dial(0.8);
    let (_folder, file) = sketched(&texts, &dial, None);
    let decided = run(&file, dial, Linkage::Star, 1 << 28);
    let is_kept = kept(&decided);
    for (row, decision) in decided.decisions.iter().enumerate() {
        assert!(jaccard(&file, row, decision.keeper as usize) >= 0.8);
        assert!(row % 20 != 19 || !(is_kept[row] && is_kept[row - 1]), "{row} is a near-copy");
    }
    let (eager, pairs) = listed(&file, dial, Linkage::Star);
    assert_eq!(eager.decisions, decided.decisions);
    let distinct: BTreeSet<(u32, u32)> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
    assert_eq!(distinct.len(), pairs.len(), "each pair once");
    let copies = pairs.iter().filter(|pair| pair.b % 20 == 19 && pair.a + 1 == pair.b).count();
    assert!(copies > 590, "{copies} of 600 near-copies are listed");
    assert!(decided.checked.recall.unwrap() > 0.98, "{:?}", decided.checked);
    // If all in a large bucket were compared with all others in it, it would be 46 million.
    assert!(decided.counts.compared < 25_000_000, "{:?}", decided.counts);
}

/// Near-copies of a template, in buckets that are put aside as dense unless their pairs are listed, beside strangers with a
/// footer, in buckets that are put aside in any case. Whoever has no key in common does not meet, whichever way.
#[test]
fn whoever_lists_pairs_keeps_the_same() {
    let mut random = Random(21);
    let (template, footer) = (random.words(60), random.words(60).join(" "));
    let mut texts = self::texts(22, 3000);
    for _ in 0..4500 {
        let mut copy = template.clone();
        copy[random.below(60)] = format!("x{}", random.below(1 << 40));
        texts.push(copy.join(" "));
        let length = 4 + random.below(30);
        texts.push(format!("{} {footer}", random.words(length).join(" ")));
    }
    for similarity in [0.7, 0.8] {
        let dial = dial(similarity);
        let (_folder, file) = sketched(&texts, &dial, None);
        let lazy = run(&file, dial, Linkage::Star, 1 << 28);
        let (eager, pairs) = listed(&file, dial, Linkage::Star);
        assert!(lazy.counts.dense > 0 && eager.counts.dense == 0);
        assert_eq!(eager.decisions, lazy.decisions);
        let mut found: Vec<(u32, u32)> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        found.sort_unstable();
        assert!(found.is_sorted_by(|a, b| a < b), "each pair once");
        let share_a_key = |a: u32, b: u32| {
            let keys = [a, b].map(|row| file.keys(row as usize));
            keys[0].iter().zip(keys[1]).any(|(a, b)| a == b)
        };
        // All that there should be, and nothing else.
        let kernel = lookalike::hamming::kernel().unwrap();
        let near = |a: u32, b: u32| {
            let [a, b] = [a, b].map(|row| file.signature(row as usize));
            kernel.distance(a, b) <= dial.radius
        };
        for row in (0..texts.len() as u32).step_by(90) {
            for other in (0..texts.len() as u32).filter(|&other| other != row) {
                let pair = (row.min(other), row.max(other));
                let alike = jaccard(&file, row as usize, other as usize) >= similarity;
                let listed = alike && near(row, other) && share_a_key(row, other);
                assert_eq!(found.binary_search(&pair).is_ok(), listed, "{pair:?}");
            }
        }
    }
}

#[test]
fn chains_are_cut_by_stars_and_joined_by_components() {
    // Each differs from the one before in one word, and after a while nothing is left of the first.
    let mut random = Random(7);
    let mut words = random.words(60);
    let mut texts = vec![words.join(" ")];
    for step in 0..10_000 {
        words[step * 7 % 60] = format!("y{step}");
        texts.push(words.join(" "));
    }
    let dial = dial(0.7);
    let (_folder, file) = sketched(&texts, &dial, None);
    let star = run(&file, dial, Linkage::Star, 1 << 28);
    for (row, decision) in star.decisions.iter().enumerate() {
        assert!(jaccard(&file, row, decision.keeper as usize) >= 0.7);
    }
    let keepers = kept(&star).iter().filter(|kept| **kept).count();
    assert!((1000..4000).contains(&keepers), "{keepers}");
    let components = run(&file, dial, Linkage::Components, 1 << 28);
    let connected: BTreeSet<u32> = components.decisions.iter().map(|d| d.keeper).collect();
    assert!(connected.len() <= 3, "{}", connected.len());
    assert!(components.chains.iter().any(|&(_, steps)| steps > 1000));
    let complete = run(&file, dial, Linkage::Complete, 1 << 28);
    let mut clusters: HashMap<u32, Vec<usize>> = HashMap::new();
    for (row, decision) in complete.decisions.iter().enumerate() {
        clusters.entry(decision.keeper).or_default().push(row);
    }
    for members in clusters.values() {
        for (i, &a) in members.iter().enumerate() {
            assert!(members[i + 1..].iter().all(|&b| jaccard(&file, a, b) >= 0.7));
        }
    }
}

#[test]
fn copies_and_nothing_at_all() {
    let dial = dial(0.7);
    for texts in [vec![], vec!["".to_owned(); 3], vec!["only one here".to_owned()]] {
        let (_folder, file) = sketched(&texts, &dial, None);
        assert!(kept(&run(&file, dial, Linkage::Star, 1 << 20)).iter().all(|kept| *kept));
    }
    let copies = vec!["the same words again and again".to_owned(); 100_000];
    let (_folder, file) = sketched(&copies, &dial, None);
    let decided = run(&file, dial, Linkage::Star, 1 << 20);
    assert!(decided.decisions.iter().all(|d| d.keeper == 0 && d.similarity == 1.0));
    assert_eq!(decided.counts.entries, 1);
    let different: Vec<String> = (0..20_000).map(|i| format!("a{i} b{i} c{i} d{i} e{i}")).collect();
    let (_folder, file) = sketched(&different, &dial, None);
    assert!(kept(&run(&file, dial, Linkage::Star, 1 << 20)).iter().all(|kept| *kept));
}

#[test]
fn other_checks_decide_otherwise() {
    let whole = Random(1).words(200).join(" ");
    let part = whole.split(' ').take(120).collect::<Vec<_>>().join(" ");
    let texts = vec![whole, part, "something else entirely, of a few words".into()];
    let removed = |verify: &str| {
        let dial = Dial::new(0.5, 256, Some(verify.parse().unwrap())).unwrap();
        let (_folder, file) = sketched(&texts, &dial, None);
        kept(&run(&file, dial, Linkage::Star, 1 << 20)).iter().filter(|kept| !**kept).count()
    };
    assert_eq!(removed("jaccard:0.7"), 0);
    assert_eq!(removed("jaccard:0.5"), 1);
    assert_eq!(removed("containment:0.95"), 1);
    assert_eq!(removed("cosine:0.75"), 1);
    assert_eq!(removed("cosine:0.9"), 0);
}
