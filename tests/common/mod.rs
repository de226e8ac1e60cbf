//! Signatures to test with: uniform, skewed, and near-copies of others. Files with other things in them.
#![allow(dead_code, reason = "each test uses some of it")]

use std::ops::Range;

use lookalike::Signatures;
use xxhash_rust::xxh3::xxh3_64;

/// A small generator of numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

/// Every bit is as likely as any other.
pub(crate) fn uniform(bits: u32, rows: usize, random: &mut Random) -> Signatures {
    let bytes = (0..rows * bits as usize / 8).map(|_| random.next() as u8);
    Signatures::from_bytes(bits, &bytes.collect::<Vec<_>>()).unwrap()
}

/// Bytes of a few values, some of them far more often: keys are very unlike in how many rows they have.
pub(crate) fn skewed(bits: u32, rows: usize, random: &mut Random) -> Signatures {
    let byte = |random: &mut Random| match random.next() % 16 {
        0 => random.next() as u8,
        1..4 => 0xff,
        _ => 0,
    };
    let bytes: Vec<u8> = (0..rows * bits as usize / 8).map(|_| byte(random)).collect();
    Signatures::from_bytes(bits, &bytes).unwrap()
}

/// The rows, and `copies` of each with 0 to `errors` bits flipped.
pub(crate) fn near_copies(
    rows: &Signatures,
    copies: usize,
    errors: u32,
    random: &mut Random,
) -> Signatures {
    let mut all = Vec::new();
    for row in rows.rows() {
        all.extend_from_slice(row);
        for _ in 0..copies {
            let mut copy = row.to_vec();
            for _ in 0..random.below(errors as usize + 1) {
                let bit = random.below(rows.bits() as usize);
                copy[bit / 64] ^= 1 << (63 - bit % 64);
            }
            all.extend(copy);
        }
    }
    Signatures::from_words(rows.bits(), all).unwrap()
}

pub(crate) fn part(rows: &Signatures, part: Range<usize>) -> Signatures {
    let stride = rows.stride();
    let words = rows.words()[part.start * stride..part.end * stride].to_vec();
    Signatures::from_words(rows.bits(), words).unwrap()
}

pub(crate) fn joined(a: &Signatures, b: &Signatures) -> Signatures {
    Signatures::from_words(a.bits(), [a.words(), b.words()].concat()).unwrap()
}

pub(crate) fn map_rows(rows: &Signatures, map: impl Fn(&[u64]) -> Vec<u64>) -> Signatures {
    Signatures::from_words(rows.bits(), rows.rows().flat_map(map).collect()).unwrap()
}

/// The numbers below `len` in some order.
pub(crate) fn shuffled(len: u32, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len).collect();
    (1..order.len()).rev().for_each(|i| order.swap(i, random.below(i + 1)));
    order
}

/// The rows with their bits in another order.
pub(crate) fn permuted(rows: &Signatures, order: &[u32]) -> Signatures {
    map_rows(rows, |row| {
        let mut permuted = vec![0; row.len()];
        for (to, &from) in order.iter().enumerate() {
            let bit = row[from as usize / 64] >> (63 - from % 64) & 1;
            permuted[to / 64] |= bit << (63 - to % 64);
        }
        permuted
    })
}

/// Signatures with margins, as votes that are near to normal make them, and near-copies of some of them as queries:
/// the same votes, a little changed. Weak bits flip more often.
pub(crate) fn voted(
    rows: usize,
    queries: usize,
    noise: f64,
    random: &mut Random,
) -> (Signatures, Signatures, Vec<u8>) {
    let mut normal = || {
        let sum: u64 = (0..6).map(|_| random.next() >> 40).sum();
        sum as f64 / (1_u64 << 24) as f64 - 3.0
    };
    let (mut stored, mut asked, mut margins) = (Vec::new(), Vec::new(), Vec::new());
    let word =
        |votes: &[f64]| votes.iter().fold(0, |word, &vote| word << 1 | u64::from(vote > 0.0));
    for row in 0..rows {
        let votes: Vec<f64> = (0..64).map(|_| normal()).collect();
        stored.push(word(&votes));
        if row < queries {
            let votes: Vec<f64> = votes.iter().map(|vote| vote + noise * normal()).collect();
            asked.push(word(&votes));
            let strongest = votes.iter().fold(0.0_f64, |most, vote| most.max(vote.abs()));
            margins.extend(votes.iter().map(|vote| (vote.abs() / strongest * 255.0) as u8));
        }
    }
    let signatures = |words| Signatures::from_words(64, words).unwrap();
    (signatures(stored), signatures(asked), margins)
}

/// The file with another header, and checksums that fit it.
pub(crate) fn with_header(file: &[u8], change: impl FnOnce(String) -> String) -> Vec<u8> {
    let header = header_range(file);
    let text = change(String::from_utf8(file[header.clone()].to_vec()).unwrap());
    let mut changed = file[..header.start].to_vec();
    changed[24..32].copy_from_slice(&(text.len() as u64).to_le_bytes());
    changed[32..40].copy_from_slice(&xxh3_64(text.as_bytes()).to_le_bytes());
    let check = xxh3_64(&changed[..56]);
    changed[56..64].copy_from_slice(&check.to_le_bytes());
    changed.extend_from_slice(text.as_bytes());
    changed
}

/// The file with another section, and checksums that fit it; nothing if it has no such section.
pub(crate) fn with_section(
    file: &[u8],
    name: &str,
    change: impl FnOnce(&mut [u8]),
) -> Option<Vec<u8>> {
    let header: serde_json::Value = serde_json::from_slice(&file[header_range(file)]).unwrap();
    let sections = header["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["name"] == name)?;
    let number = |of: &str| section[of].as_u64().unwrap() as usize;
    let range = number("offset")..number("offset") + number("length");
    let mut changed = file.to_vec();
    change(&mut changed[range.clone()]);
    let new = format!("{:016x}", xxh3_64(&changed[range]));
    let old = section["xxh3"].as_str().unwrap();
    Some(with_header(&changed, |header| header.replace(old, &new)))
}

fn header_range(file: &[u8]) -> Range<usize> {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    word(16)..word(16) + word(24)
}
