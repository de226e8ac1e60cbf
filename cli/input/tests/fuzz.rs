//! Every good file, damaged at random many times: no panic, no hang, no flood, and errors that name the file.

use std::fs;
use std::time::{Duration, Instant};

use super::*;

/// Small numbers that look random, the same on every run (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        let length = dice.below(64).min(bytes.len() - at);
        match dice.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let piece = bytes[at..at + length].to_vec();
                let to = dice.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            3 => bytes.iter_mut().skip(at).take(length).for_each(|byte| *byte = 0xff),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = dice.below(256) as u8;
                }
            }
        }
    }
}

#[test]
fn damaged_files_never_do_worse_than_an_error() {
    let files = [
        "news.jsonl",
        "news.jsonl.gz",
        "news.jsonl.zst",
        "array.json",
        "table.csv",
        "table.tsv",
        "table.parquet",
        "snappy.parquet",
        "lz4.parquet",
        "brotli.parquet",
        "crawl.warc",
        "crawl.warc.gz",
        "crawl.warc.wet.gz",
        "page.html",
        "site.tar",
        "site.tgz",
    ];
    let folder = tempfile::tempdir().unwrap();
    // All at once: most of the time goes into waiting for reading threads to start.
    std::thread::scope(|scope| {
        for (seed, file) in files.into_iter().enumerate() {
            let path = folder.path().join(file);
            scope.spawn(move || damage_and_read(file, &path, Dice(seed as u64)));
        }
    });
}

fn damage_and_read(file: &str, path: &Path, mut dice: Dice) {
    let good = fs::read(fixture(file)).unwrap();
    let mut errors = 0;
    for round in 0..300 {
        let mut bytes = good.clone();
        damage(&mut bytes, &mut dice);
        fs::write(path, &bytes).unwrap();
        let began = Instant::now();
        // `read` checks that errors name the file.
        let records = read(path, &["--max-document-bytes", "1M"], round % 2 == 0);
        assert!(began.elapsed() < Duration::from_secs(10), "{file}, round {round}");
        assert!(records.len() < 10_000, "{file}, round {round}: {}", records.len());
        errors += records.iter().filter(|record| record.is_err()).count();
    }
    // Text stays text whatever happens to it; the others notice.
    assert!(errors > 20 || file == "page.html", "{file}: only {errors} errors");
}
