//! Documents read whole, and the sets of their features.

use lookalike::{
    Document, Recipe, Signer,
    features::{FeatureSettings, words::WordRule},
    recipe::Scratch,
};

use crate::{
    commands::{Global, Outcome},
    input::{BadRecord, ReadArgs, Record, Sources},
    output::Reading,
};

/// Gives `each` every document of the input, with what `work` made of it on all threads.
pub(crate) fn read_documents<T: Send>(
    inputs: &[String],
    read: &ReadArgs,
    global: &Global,
    work: impl Fn(&Document) -> T + Sync,
    mut each: impl FnMut(Document, T),
) -> anyhow::Result<Outcome> {
    let sources = Sources::open(inputs, read, false)?;
    let mut reading = Reading::new(&sources, read.on_error, global);
    let work = |records: Vec<Record>| {
        let (mut done, mut bad): (Vec<(Document, T)>, Vec<BadRecord>) = Default::default();
        for record in records {
            match record {
                Ok(document) => {
                    let made = work(&document);
                    done.push((document, made));
                }
                Err(record) => bad.push(record),
            }
        }
        (done, bad)
    };
    reading.run(global.threads(), work, |(done, bad), reading| {
        let documents = done.len() as u64;
        done.into_iter().for_each(|(document, made)| each(document, made));
        reading.note(documents, bad)
    })?;
    Ok(reading.finish())
}

/// The signer whose features are the sets of word 3-grams that likeness is measured on. Words are runs of letters and
/// digits, `\w+` as labels have them that were computed elsewhere.
pub(crate) fn word_shingles() -> anyhow::Result<Signer> {
    let features = FeatureSettings { words: WordRule::Alphanumeric, ..FeatureSettings::default() };
    Ok(Signer::new(Recipe { features, ..Recipe::default() }, None)?)
}

/// The features of a text, each once, in order.
pub(crate) fn set_of(signer: &Signer, text: &str, scratch: &mut Scratch) -> Vec<u64> {
    let mut set: Vec<u64> = signer.weigh(text, scratch).iter().map(|(hash, _)| hash[0]).collect();
    set.sort_unstable();
    set
}

/// The share of the features of two sets that both have; 0 if one is empty.
pub(crate) fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut at, mut shared) = (0, 0_usize);
    for feature in a {
        at += b[at..].partition_point(|other| other < feature);
        shared += usize::from(b.get(at) == Some(feature));
    }
    match shared {
        0 => 0.0,
        shared => shared as f64 / (a.len() + b.len() - shared) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_compared() {
        assert_eq!(jaccard(&[1, 2, 3, 4], &[2, 3, 4, 5]), 0.6);
        assert_eq!(jaccard(&[1, 5], &[0, 1, 2, 3, 4, 5, 6, 7]), 0.25);
        assert_eq!((jaccard(&[], &[]), jaccard(&[1], &[]), jaccard(&[1], &[1])), (0.0, 0.0, 1.0));
    }
}
