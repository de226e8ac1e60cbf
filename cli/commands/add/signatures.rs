//! Signatures are added as they are, with what their file has beside them.

use std::{path::Path, time::Instant};

use lookalike::{
    Error, SignatureFile,
    collection::{Collection, Entry},
};

use super::{Read, batches::Batches};
use crate::{
    commands::{Global, Outcome},
    failure::hinted,
    output::{Steps, counted, open_signatures},
};

/// Adds the rows of signature files. All files are looked at before any row is written.
pub(super) fn add(
    inputs: &[String],
    batches: &mut Batches<'_>,
    global: &Global,
) -> anyhow::Result<(Read, Outcome)> {
    let started = Instant::now();
    let files: Vec<SignatureFile> = inputs
        .iter()
        .map(|input| open(Path::new(input), batches.collection))
        .collect::<anyhow::Result<_>>()?;
    let mut read = Read::default();
    let (all, mut steps) =
        (files.iter().map(|file| file.signatures().len()).sum(), Steps::new(global));
    for (input, file) in inputs.iter().zip(&files) {
        for row in 0..file.signatures().len() {
            batches.push(entry(input, file, row))?;
            read.documents += 1;
            if read.documents % 1024 == 0 {
                steps.show("adding", read.documents as usize, all);
            }
        }
    }
    batches.write()?;
    steps.finish();
    read.rate = rate(read.documents, started.elapsed().as_secs_f64());
    Ok((read, Outcome::Done))
}

/// Opens a file whose signatures go with those of the collection.
fn open(path: &Path, collection: &Collection) -> anyhow::Result<SignatureFile> {
    let file = open_signatures(path)?;
    let about = collection.about();
    if let (Some(stored), Some(given)) = (&about.recipe, file.recipe()) {
        stored.check_same(given)?;
    }
    let given = file.signatures().bits();
    if given != about.bits {
        return Err(Error::WidthMismatch { stored: about.bits, given }.into());
    }
    if file.columns().passages {
        let problem = format!("{} has signatures of passages", path.display());
        return Err(hinted(
            problem,
            "a record has one signature: sign with a recipe without `passages`",
        ));
    }
    Ok(file)
}

/// The entry of a row. One without an id is named by its file and number, as documents are: those of another file do not
/// take its place.
fn entry(input: &str, file: &SignatureFile, row: usize) -> Entry {
    let id = match file.columns().ids {
        true => file.id(row).into_owned(),
        false => format!("{input}:{row}"),
    };
    let payload = file.payload(row).filter(|payload| payload != "{}");
    Entry {
        id,
        signature: file.signatures().get(row),
        margins: file.margins(row).map(<[u8]>::to_vec),
        payload: payload.map(|payload| payload.into_owned()),
        text: None,
    }
}

/// How fast it went, if it took long enough to be worth telling.
fn rate(rows: u64, seconds: f64) -> String {
    match seconds < 1.0 {
        true => String::new(),
        false => {
            let rows = counted((rows as f64 / seconds) as u64, "signature");
            format!("\n{seconds:.1} s: {rows} a second")
        }
    }
}
