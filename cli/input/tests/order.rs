//! Many threads, one order, bounded memory, and an early end.

use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::run;
use super::*;

/// Files of several chunks each, and small ones between them.
fn corpus(folder: &Path) -> usize {
    let mut number = 0;
    for file in 0..6 {
        let mut jsonl = String::new();
        for _ in 0..[20_000, 1, 300][file % 3] {
            jsonl += &format!("{{\"id\":{number},\"text\":\"{}\"}}\n", "some words ".repeat(20));
            number += 1;
        }
        let path = folder.join(format!("{file}.jsonl"));
        match file % 2 {
            0 => fs::write(path, jsonl).unwrap(),
            _ => fs::write(path, zstd::encode_all(jsonl.as_bytes(), 1).unwrap()).unwrap(),
        }
    }
    number
}

#[test]
fn results_come_in_the_order_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let number = corpus(folder.path());
    for threads in [1, 2, 7] {
        let sources = open(&args([folder.path().to_str().unwrap()]), false);
        let mut next = 0;
        let turn = AtomicUsize::new(0);
        let parse = |_, chunk| {
            // The first to start is not the first to end.
            let turn = turn.fetch_add(1, Ordering::SeqCst) as u64;
            std::thread::sleep(Duration::from_millis(turn * 5 % 7));
            sources.parse(chunk)
        };
        run(&sources, threads, parse, |records| {
            for record in records {
                assert_eq!(record.unwrap().id, next.to_string());
                next += 1;
            }
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert_eq!(next, number);
        assert_eq!(Some(sources.bytes_read()), sources.total_bytes());
    }
}

#[test]
fn a_slow_consumer_holds_up_the_readers() {
    let folder = tempfile::tempdir().unwrap();
    corpus(folder.path());
    let sources = open(&args([folder.path().to_str().unwrap()]), false);
    let (worked, mut consumed) = (AtomicUsize::new(0), 0);
    run(
        &sources,
        2,
        |_, _| worked.fetch_add(1, Ordering::SeqCst),
        |_| {
            consumed += 1;
            std::thread::sleep(Duration::from_millis(20));
            assert!(worked.load(Ordering::SeqCst) <= consumed + 10);
            Ok(ControlFlow::Continue(()))
        },
    )
    .unwrap();
    assert!(consumed > 10);
}

/// Like a terminal at which nobody types.
struct Silence(usize);

impl Read for Silence {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            std::thread::sleep(Duration::from_secs(3600));
        }
        let line = b"{\"text\":\"x\"}\n";
        let n = self.0.min(buffer.len());
        buffer[..n].iter_mut().zip(line.iter().cycle()).for_each(|(to, from)| *to = *from);
        self.0 -= n;
        Ok(n)
    }
}

#[test]
fn stopping_does_not_wait_for_input() {
    let stream = Silence(13 * 100_000);
    let sources = Sources::of_stream(stream, options([]));
    let mut calls = 0;
    run(
        &sources,
        2,
        |_, chunk| sources.parse(chunk),
        |_| {
            calls += 1;
            Ok(ControlFlow::Break(()))
        },
    )
    .unwrap();
    assert_eq!(calls, 1);
    let sources = Sources::of_stream(Silence(13 * 100_000), options([]));
    let failed = run(&sources, 2, |_, _| (), |()| anyhow::bail!("no more"));
    assert_eq!(failed.unwrap_err().to_string(), "no more");
}
