//! What the memory gives: random lines of the cache a second, many asked for at once.

use std::{hint::black_box, time::Instant};

use lookalike::{Signatures, hamming::prefetch};

use super::{
    digest::mix,
    measure::{Meter, times},
    results::Group,
};

/// Lines asked for at once.
const GROUPS: [usize; 3] = [32, 48, 64];
/// Lines that a measurement reads.
const LINES: usize = 1 << 22;
/// Words of a line.
const WORDS: usize = 8;

/// Lines a second over so many bytes, in huge pages where the system has them, by lines asked for at once.
pub(super) fn limit(bytes: u64, meter: &Meter<'_>) -> lookalike::Result<Vec<Group>> {
    let words = (bytes as usize / 8).max(WORDS).next_multiple_of(WORDS);
    let memory = Signatures::from_words(64, vec![0; words])?.in_huge_pages();
    let group = |&at_once: &usize| {
        let lines_a_second = rate(memory.words(), at_once, meter)?;
        Ok(Group { at_once, lines_a_second })
    };
    GROUPS.iter().map(group).collect()
}

fn rate(words: &[u64], group: usize, meter: &Meter<'_>) -> lookalike::Result<f64> {
    let taken = times(meter.repeats, || {
        let start = Instant::now();
        meter.pool.broadcast(|thread| black_box(walk(words, group, thread.index() as u64)));
        Ok(start.elapsed().as_secs_f64())
    })?;
    Ok((LINES * meter.pool.current_num_threads()) as f64 / taken.median)
}

/// Reads random lines. While those of one group are on their way, those of the group before it are read.
fn walk(words: &[u64], group: usize, seed: u64) -> u64 {
    let lines = (words.len() / WORDS) as u128;
    let (mut asked, mut due) = (vec![0; group], vec![0; group]);
    let (mut random, mut sum) = (mix(seed), 0);
    for _ in 0..LINES / group {
        for place in &mut asked {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            *place = ((u128::from(mix(random)) * lines) >> 64) as usize * WORDS;
            prefetch(words, *place);
        }
        due.iter().for_each(|&place: &usize| sum ^= words[place]);
        std::mem::swap(&mut asked, &mut due);
    }
    sum
}
