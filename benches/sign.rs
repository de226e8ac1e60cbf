//! How fast documents in memory become signatures, and what limits it: one core, MB of text a second.
//!
//! `cargo bench --bench sign -- CORPUS.jsonl` (one JSON object a line with a `text` field; any large English
//! collection); without a corpus, the sample in `examples/` is repeated. Medians of several rounds over the same
//! documents; the rounds of all rows take turns, so that a noisy moment of the machine hits all of them alike.
#![allow(missing_docs, clippy::print_stdout)]

use std::{
    fs::File,
    hint::black_box,
    io::{BufRead, BufReader},
    path::PathBuf,
    time::Instant,
};

use lookalike::{
    Recipe, Signer,
    features::{
        Buffers, Extractor,
        counts::Counts,
        hash::{FeatureHash, HashFunction},
        shingles::{Shingle, Unit},
        terms::{TermCollector, TermCounts, TermStatistics},
        weights::Weight,
    },
    recipe::{Scratch, SignatureKind, SignatureSettings},
};

const ROUNDS: usize = 7;
const MEGABYTES: usize = 128;

type Row<'a> = (String, Box<dyn FnMut() + 'a>);

fn main() {
    let texts = read_texts();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!(
        "{} documents, {:.1} MB of text, one thread, {ROUNDS} rounds",
        texts.len(),
        bytes as f64 / 1e6
    );

    let folder = tempfile::tempdir().expect("a temporary folder");
    let terms = count_terms(&texts, &folder.path().join("terms"));
    let mut rows: Vec<Row> = vec![tokenise(&texts), hash(&texts), count(&texts)];
    for (name, weight, length, bits) in [
        ("words, set", Weight::One, 1, 64),
        ("words, counts", Weight::Count, 1, 64),
        ("words, log counts", Weight::LogCount, 1, 64),
        ("words, TF-IDF", Weight::TfIdf, 1, 64),
        ("3-grams, set", Weight::One, 3, 64),
        ("3-grams, set", Weight::One, 3, 256),
        ("3-grams, set", Weight::One, 3, 1024),
    ] {
        let recipe = recipe(SignatureKind::SimHash, weight, length, bits);
        rows.push(sign(
            &texts,
            format!("sign: SimHash {bits}, {name}"),
            recipe,
            Some(terms.clone()),
        ));
    }
    let topsig = recipe(SignatureKind::TopSig, Weight::LogLikelihood, 1, 1024);
    rows.push(sign(&texts, "sign: TopSig 1024, words, log-likelihood".into(), topsig, Some(terms)));
    report(rows, bytes);
}

fn read_texts() -> Vec<String> {
    let corpus =
        std::env::args().skip(1).find(|argument| !argument.starts_with("--")).map(PathBuf::from);
    let sample = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/docs.jsonl");
    let path = corpus.clone().unwrap_or(sample);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut texts = Vec::new();
    let mut bytes = 0;
    for line in BufReader::new(file).lines() {
        let document: serde_json::Value =
            serde_json::from_str(&line.expect("a line")).expect("JSON");
        let text = document["text"].as_str().expect("a text").to_owned();
        // Every part of the corpus has a share: it is sorted by source.
        bytes += text.len();
        texts.push(text);
    }
    let keep = (bytes / (MEGABYTES << 20)).max(1);
    let mut kept: Vec<String> = texts.into_iter().step_by(keep).collect();
    while corpus.is_none() && kept.iter().map(String::len).sum::<usize>() < MEGABYTES << 17 {
        kept.extend_from_within(..);
    }
    kept
}

fn recipe(kind: SignatureKind, weight: Weight, length: usize, bits: u32) -> Recipe {
    let mut recipe =
        Recipe { weight, signature: SignatureSettings { kind, bits }, ..Recipe::default() };
    recipe.features.shingle = Shingle { unit: Unit::Words, length };
    recipe
}

fn words_extractor() -> Extractor {
    Extractor::new(&recipe(SignatureKind::SimHash, Weight::One, 1, 64).features)
        .expect("good settings")
}

fn count_terms(texts: &[String], path: &std::path::Path) -> TermStatistics {
    let (extractor, mut buffers, mut counts) =
        (words_extractor(), Buffers::default(), Counts::default());
    let mut terms = TermCounts::default();
    for text in texts {
        extractor.count(text, &mut buffers, &mut counts);
        terms.add(&counts);
    }
    let mut collector = TermCollector::new(1 << 30, &std::env::temp_dir());
    collector.add(&terms).expect("enough memory");
    let features = recipe(SignatureKind::SimHash, Weight::One, 1, 64).features;
    collector.finish(path, &features).expect("a temporary file");
    TermStatistics::open(path).expect("what was just written")
}

fn tokenise(texts: &[String]) -> Row<'_> {
    let (extractor, mut buffers) = (words_extractor(), Buffers::default());
    let run = move || {
        for text in texts {
            black_box(extractor.words(text, &mut buffers).len());
        }
    };
    ("tokenise alone: words, folded".into(), Box::new(run))
}

/// The words are there already: what hashing them costs by itself.
fn hash(texts: &[String]) -> Row<'_> {
    let (extractor, mut buffers) = (words_extractor(), Buffers::default());
    let words: Vec<_> =
        texts.iter().map(|text| extractor.words(text, &mut buffers).clone()).collect();
    let hash = FeatureHash { function: HashFunction::Xxh3, bits: 64, seed: 0 };
    let run = move || {
        for words in &words {
            black_box(words.iter().fold(0, |sum: u64, word| sum.wrapping_add(hash.of(word)[0])));
        }
    };
    ("hash alone: words, XXH3-64".into(), Box::new(run))
}

fn count(texts: &[String]) -> Row<'_> {
    let (extractor, mut buffers, mut counts) =
        (words_extractor(), Buffers::default(), Counts::default());
    let run = move || {
        for text in texts {
            extractor.count(text, &mut buffers, &mut counts);
            black_box(counts.distinct().len());
        }
    };
    ("tokenise, hash and count: words".into(), Box::new(run))
}

fn sign(texts: &[String], name: String, recipe: Recipe, terms: Option<TermStatistics>) -> Row<'_> {
    let signer = Signer::new(recipe, terms).expect("a good recipe");
    let mut scratch = Scratch::default();
    let run = move || {
        for text in texts {
            black_box(signer.sign_text(text, &mut scratch));
        }
    };
    (name, Box::new(run))
}

fn report(mut rows: Vec<Row>, bytes: usize) {
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for ((_, run), times) in rows.iter_mut().zip(&mut times) {
            let start = Instant::now();
            run();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    println!("{:<44} {:>7} {:>7} {:>7}", "", "MB/s", "best", "worst");
    for ((name, _), times) in rows.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
        let (median, best, worst) = (times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
        println!("{name:<44} {:>7.0} {:>7.0} {:>7.0}", rate(median), rate(best), rate(worst));
    }
}
