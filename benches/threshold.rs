//! scratch
use lookalike::{Signatures, index::*, table::Stored};
use std::time::Instant;
fn next(s: &mut u64) -> u64 {
    *s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *s;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
fn main() {
    let n: usize = std::env::var("N").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let m: usize = std::env::var("M").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let mut s = 1;
    let rows: Vec<u64> = (0..n).map(|_| next(&mut s)).collect();
    let queries: Vec<u64> = (0..m)
        .map(|i| {
            if i % 100 < 27 {
                let mut q = rows[next(&mut s) as usize % n];
                for _ in 0..next(&mut s) % 4 {
                    q ^= 1 << (next(&mut s) % 64)
                }
                q
            } else {
                next(&mut s)
            }
        })
        .collect();
    let rows = Signatures::from_words(64, rows).unwrap();
    let queries = Signatures::from_words(64, queries).unwrap();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for arg in std::env::args().skip(1).filter(|a| !a.starts_with("--")) {
        let mut parts = arg.split(',');
        let method: Method = parts.next().unwrap().parse().unwrap();
        let stored = match parts.next() {
            Some("s") => Some(Stored::Split),
            Some("w") => Some(Stored::Whole),
            _ => None,
        };
        let key_width = parts.next().and_then(|p| p.parse().ok());
        let t = Instant::now();
        let index = Tables::build(&rows, method, Build { key_width, stored }).unwrap();
        let build = t.elapsed().as_secs_f64();
        let mut found = Answers::new();
        one.install(|| {
            let mut rates = vec![];
            for first in [false, true] { for _ in 0..3 {
                let t = Instant::now();
                if first { index.first((&queries).into(), 3, &mut found).unwrap(); } else { index.within((&queries).into(), 3, &mut found).unwrap(); }
                rates.push(m as f64 / t.elapsed().as_secs_f64() / 1e3);
            }}
            let singles: Vec<Signatures> = queries.words().iter().take(50000).map(|&w| Signatures::from_words(64, vec![w]).unwrap()).collect();
            let t = Instant::now();
            for q in &singles { index.within(q.into(), 3, &mut found).unwrap(); }
            let single = singles.len() as f64 / t.elapsed().as_secs_f64() / 1e3;
            println!("{arg} n={n} build {build:.1}s {:.1} B + {:.1} B  all {:.0} {:.0} {:.0}  first {:.0} {:.0} {:.0} single {single:.0} K/s", index.bytes() as f64/n as f64, index.row_bytes() as f64/n as f64, rates[0], rates[1], rates[2], rates[3], rates[4], rates[5]);
        });
    }
}
