//! Candidates: entries that have a key in common and whose signatures are near each other.
//!
//! Band by band, entries are sorted by their key and those with the same one, a *bucket*, are compared. A pair is
//! reported by the first band that both have in common, so that no set of pairs is kept. Large buckets of strangers, as a
//! common footer makes them in one band after the other, are put aside: at the end all of their entries are compared at
//! once, by their rarest features.

use std::{
    collections::HashSet,
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rayon::prelude::*;

use super::{
    SMALL,
    alike::Alike,
    dense::{Group, groups},
    pairs::{Pairs, locked, pair, unlocked},
    rarest::Rarest,
    reduced::Reduced,
};
use crate::{Error, Result, features::hash::mix, table::Parts};

/// Keys are turned from rows of a document into columns of a band in blocks of so many documents.
const BLOCK: usize = 1 << 12;
/// Keys in a line of the cache, which is filled at once: columns are as far apart as lines that take each other's place.
const LINE: usize = 16;
/// About how many entries a part of the key space has: what is sorted at once should stay in the first-level cache.
const PART: usize = 1 << 12;
/// Up to so many entries, a band is work for one thread. No bucket of theirs is too large to be compared.
const BY_BAND: usize = 1 << 16;
const _: () = assert!(BY_BAND < HUGE);
/// A bucket larger than this is looked at before it is compared.
const LARGE: usize = 1 << 11;
/// A large bucket is dense if more of its pairs are alike than this, and at least such a share of them: they are not listed.
/// Its entries need to be compared with keepers only, of which there are few, but that waits until it is known who they are.
const DENSE: f64 = (1 << 20) as f64;
const DENSE_SHARE: f64 = 1.0 / 16.0;
/// Whatever the share, more pairs than this are never listed.
const LISTED: f64 = (1 << 27) as f64;
/// A bucket of so many is not compared: it takes a second key in common to find its pairs. Nor are more strangers put aside at
/// a time, for which there has to be room.
const HUGE: usize = 1 << 18;
/// So many rows of a large bucket are work for one thread.
const ROWS: usize = 64;
/// How many pairs of a large bucket are looked at to tell whether it is dense.
const LOOKS: usize = 1 << 12;

/// What was found beside the pairs.
#[derive(Default)]
pub(crate) struct Found {
    /// Pairs whose signatures were compared.
    pub(crate) compared: u64,
    /// Buckets in which nearly all are alike.
    pub(crate) dense: Vec<Group>,
    /// Buckets that were too large to be compared, and the entries in them.
    pub(crate) huge: Vec<usize>,
}

/// How candidates are looked for.
pub(crate) struct Finder<'a> {
    alike: Alike<'a>,
    /// Whether dense buckets are left for later.
    lazy: bool,
    compared: AtomicU64,
    /// The keys of buckets that were not compared, by their bands.
    huge: HashSet<(usize, u32)>,
}

/// What buckets leave behind.
#[derive(Default)]
struct Aside {
    /// Ranks, ascending.
    dense: Vec<Vec<u32>>,
    /// Bands, keys and sizes.
    huge: Vec<(usize, u32, usize)>,
    /// Bands, keys and members.
    strangers: Vec<(usize, u32, Vec<u32>)>,
}

/// Large buckets of entries that are mostly not alike.
#[derive(Default)]
struct Strangers {
    /// Their bands and keys.
    buckets: HashSet<(usize, u32)>,
    /// The entries of all of them, ascending.
    entries: Vec<u32>,
}

impl Strangers {
    /// The entries with those of another bucket.
    fn with(&self, members: &[u32]) -> Vec<u32> {
        let mut all = [&self.entries[..], members].concat();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Memory that is used again from bucket to bucket.
#[derive(Default)]
struct Scratch {
    members: Vec<u32>,
    sizes: Vec<u32>,
    words: Vec<u64>,
    masks: Vec<u64>,
    pairs: Vec<u64>,
    seen: Seen,
    ordered: Ordered,
}

/// Items with the same key side by side, in the order of their entries.
#[derive(Default)]
struct Ordered {
    items: Vec<u64>,
    ends: Vec<usize>,
}

/// At most so many bins: as many lines are written to, which stay in the cache.
const MOST_BINS: usize = 1 << 11;

impl Ordered {
    /// Keys are hashes, so a part of their bits puts few of them into the same bin, and only those have to be sorted.
    fn put(&mut self, items: &[u64]) {
        let bins = (items.len() / 2).next_power_of_two().min(MOST_BINS);
        let bin = |item: u64| (item >> 32) as usize & (bins - 1);
        self.ends.clear();
        self.ends.resize(bins, 0);
        items.iter().for_each(|&item| self.ends[bin(item)] += 1);
        let mut end = 0;
        for ends in &mut self.ends {
            end += std::mem::replace(ends, end);
        }
        self.items.resize(items.len(), 0);
        for &item in items {
            let next = &mut self.ends[bin(item)];
            self.items[*next] = item;
            *next += 1;
        }
        let mut start = 0;
        for &end in &self.ends {
            self.items[start..end].sort_unstable();
            start = end;
        }
    }
}

/// Slots for each item, of which most have a key of their own; in a part with very many of one key there need not be more.
const SLOTS: usize = 4;
const MOST_SLOTS: usize = 1 << 20;

/// Which keys were met more than once; of some others it is thought, too.
#[derive(Default)]
struct Seen {
    slots: Vec<u8>,
}

impl Seen {
    fn clear(&mut self, keys: usize) {
        self.slots.clear();
        self.slots.resize((keys * SLOTS).next_power_of_two().min(MOST_SLOTS), 0);
    }

    #[inline(always)]
    fn note(&mut self, key: u32) {
        let slot = key as usize & (self.slots.len() - 1);
        self.slots[slot] = self.slots[slot] << 1 | 1;
    }

    #[inline(always)]
    fn is_shared(&self, key: u32) -> bool {
        self.slots[key as usize & (self.slots.len() - 1)] > 1
    }
}

/// Puts the items whose keys others may have as well into `kept`, in place of what was there: not many of so many, so that not
/// many have to be sorted. Those that have a key in common are all among them.
#[inline(always)]
fn keep_shared(
    items: impl Iterator<Item = u64> + Clone,
    most: usize,
    seen: &mut Seen,
    kept: &mut Vec<u64>,
) {
    seen.clear(most);
    items.clone().for_each(|item| seen.note((item >> 32) as u32));
    kept.resize(most, 0);
    let mut len = 0;
    items.for_each(|item| {
        kept[len] = item;
        len += usize::from(seen.is_shared((item >> 32) as u32));
    });
    kept.truncate(len);
}

/// The keys of some bands, block after block, in each band after band.
struct Columns {
    cells: Vec<u32>,
    width: usize,
}

impl Columns {
    /// The keys of a band, each with its entry.
    fn items(&self, band: usize, entries: usize) -> impl Iterator<Item = u64> + Clone {
        let blocks = self.cells.chunks(BLOCK * self.width).zip((0..entries).step_by(BLOCK));
        blocks.flat_map(move |(cells, first)| {
            let keys = &cells[band * BLOCK..][..BLOCK.min(entries - first)];
            keys.iter().zip(first as u64..).map(|(&key, entry)| u64::from(key) << 32 | entry)
        })
    }

    #[inline(always)]
    fn key(&self, band: usize, entry: usize) -> u32 {
        self.cells[entry / BLOCK * (BLOCK * self.width) + band * BLOCK + entry % BLOCK]
    }
}

impl<'a> Finder<'a> {
    pub(crate) fn new(alike: Alike<'a>, lazy: bool) -> Self {
        Finder { alike, lazy, compared: AtomicU64::new(0), huge: HashSet::new() }
    }

    /// Puts all candidates into `pairs`; `done` hears of each band.
    pub(crate) fn find(
        mut self,
        memory: usize,
        pairs: &Pairs,
        mut done: impl FnMut(usize, usize),
    ) -> Result<Found> {
        let (entries, bands) = (self.alike.entries.len(), self.alike.dial.bands.count);
        if entries <= SMALL {
            return self.find_in_all(pairs);
        }
        // A column has 4 bytes an entry; half of the memory is for them.
        let at_once = memory / 8 / entries.max(1);
        if entries <= BY_BAND && bands <= at_once {
            return self.find_by_band(pairs);
        }
        let at_once = at_once.clamp(1, 16);
        let (mut found, mut strangers) = (Aside::default(), Strangers::default());
        for first in (0..bands).step_by(at_once) {
            let width = at_once.min(bands - first);
            let columns = self.columns(first, width);
            for band in 0..width {
                let column = |entry: usize| columns.key(band, entry);
                let aside = self.find_in_band(first + band, column, pairs)?;
                self.huge.extend(aside.huge.iter().map(|&(band, key, _)| (band, key)));
                self.take_aside(aside, &mut strangers, &mut found, pairs)?;
                done(first + band + 1, bands + 1);
            }
        }
        found.dense.extend(self.compare_strangers(strangers, pairs)?);
        done(bands + 1, bands + 1);
        Ok(self.finished(found))
    }

    /// Takes what was put aside. If strangers become too many, those so far are compared.
    fn take_aside(
        &self,
        mut aside: Aside,
        strangers: &mut Strangers,
        found: &mut Aside,
        pairs: &Pairs,
    ) -> Result<()> {
        found.dense.extend(aside.dense);
        found.huge.extend(aside.huge);
        // Threads end in any order.
        aside.strangers.sort_unstable();
        for (band, key, members) in aside.strangers {
            let mut entries = strangers.with(&members);
            if entries.len() > HUGE && !strangers.entries.is_empty() {
                found.dense.extend(self.compare_strangers(std::mem::take(strangers), pairs)?);
                entries = strangers.with(&members);
            }
            strangers.entries = entries;
            strangers.buckets.insert((band, key));
        }
        Ok(())
    }

    /// What was found, in an order that no thread had a part in.
    fn finished(self, found: Aside) -> Found {
        let mut huge: Vec<usize> = found.huge.iter().map(|&(.., size)| size).collect();
        huge.sort_unstable();
        let dense = groups(&self.alike, found.dense);
        Found { compared: self.compared.into_inner(), dense, huge }
    }

    /// A few entries are one bucket.
    fn find_in_all(self, pairs: &Pairs) -> Result<Found> {
        if self.alike.entries.len() > 1 {
            let mut scratch = Scratch::default();
            self.gather(0..self.alike.entries.len() as u32, &mut scratch);
            self.compare_rows(0, &scratch, pairs)?;
        }
        Ok(Found { compared: self.compared.into_inner(), ..Found::default() })
    }

    /// The keys of some bands.
    fn columns(&self, first: usize, width: usize) -> Columns {
        let blocks = self.alike.entries.len().div_ceil(BLOCK);
        let mut cells = vec![0; blocks * BLOCK * width];
        cells
            .par_chunks_mut(BLOCK * width)
            .zip(self.alike.entries.rows.par_chunks(BLOCK))
            .for_each(|(block, rows)| {
                for (group, rows) in rows.chunks(LINE).enumerate() {
                    let mut keys = [&[][..]; LINE];
                    for (keys, &row) in keys.iter_mut().zip(rows) {
                        *keys = &self.alike.sketches.keys(row as usize)[first..first + width];
                    }
                    for band in 0..width {
                        let cells = &mut block[band * BLOCK + group * LINE..][..rows.len()];
                        cells.iter_mut().zip(keys).for_each(|(cell, keys)| *cell = keys[band]);
                    }
                }
            });
        Columns { cells, width }
    }

    fn find_in_band(
        &self,
        band: usize,
        key: impl Fn(usize) -> u32 + Sync,
        pairs: &Pairs,
    ) -> Result<Aside> {
        let entries = self.alike.entries.len();
        let bits = (entries / PART).max(1).ilog2();
        let item = |entry: usize| u64::from(key(entry)) << 32 | entry as u64;
        let part_of = |item: &u64| (item >> 32 >> (32 - bits)) as usize;
        let mut parts = Parts::new(entries, 1 << bits, item, part_of)
            .map_err(|source| Error::Memory { source })?;
        let aside = Mutex::new(Aside::default());
        parts.split_mut().into_par_iter().try_for_each_init(
            Default::default,
            |(kept, scratch): &mut (_, Scratch), part| {
                keep_shared(part.iter().copied(), part.len(), &mut scratch.seen, kept);
                self.find_in_shared(band, kept, scratch, pairs, &aside)
            },
        )?;
        Ok(unlocked(aside))
    }

    /// Finds buckets among items, which are keys with their entries.
    fn find_in_shared(
        &self,
        band: usize,
        items: &[u64],
        scratch: &mut Scratch,
        pairs: &Pairs,
        aside: &Mutex<Aside>,
    ) -> Result<()> {
        let mut ordered = std::mem::take(&mut scratch.ordered);
        ordered.put(items);
        for bucket in ordered.items.chunk_by(|a, b| a >> 32 == b >> 32) {
            match *bucket {
                [] | [_] => {}
                // Most are of two, for which there is nothing to get ready.
                [a, b] => self.compare_two(band, a as u32, b as u32, &mut scratch.pairs),
                _ => self.compare(band, bucket, scratch, pairs, aside)?,
            }
        }
        scratch.ordered = ordered;
        pairs.add(&mut scratch.pairs)
    }

    /// Not so many entries are not worth parts: each thread takes a band.
    fn find_by_band(self, pairs: &Pairs) -> Result<Found> {
        let aside = Mutex::new(Aside::default());
        let (entries, bands) = (self.alike.entries.len(), self.alike.dial.bands.count);
        let columns = self.columns(0, bands);
        (0..bands).into_par_iter().try_for_each_init(
            || (Vec::new(), Scratch::default()),
            |(kept, scratch), band| {
                keep_shared(columns.items(band, entries), entries, &mut scratch.seen, kept);
                self.find_in_shared(band, kept, scratch, pairs, &aside)
            },
        )?;
        let (mut found, mut strangers) = (Aside::default(), Strangers::default());
        self.take_aside(unlocked(aside), &mut strangers, &mut found, pairs)?;
        found.dense.extend(self.compare_strangers(strangers, pairs)?);
        Ok(self.finished(found))
    }

    /// Compares all in a bucket, or puts the bucket aside.
    fn compare(
        &self,
        band: usize,
        bucket: &[u64],
        scratch: &mut Scratch,
        pairs: &Pairs,
        aside: &Mutex<Aside>,
    ) -> Result<()> {
        self.gather(bucket.iter().map(|&item| item as u32), scratch);
        if bucket.len() > LARGE {
            return self.compare_large(band, bucket, scratch, pairs, aside);
        }
        let Scratch { members, sizes, words, masks, pairs: found, .. } = scratch;
        let bucket = Bucket { members, sizes, words };
        (0..members.len() - 1).for_each(|i| self.compare_one(band, i, &bucket, masks, found));
        if found.len() > 1 << 14 {
            pairs.add(found)?;
        }
        Ok(())
    }

    /// Puts a large bucket aside, unless there is no better way than to compare all with all.
    fn compare_large(
        &self,
        band: usize,
        bucket: &[u64],
        scratch: &Scratch,
        pairs: &Pairs,
        aside: &Mutex<Aside>,
    ) -> Result<()> {
        let (key, members) = ((bucket[0] >> 32) as u32, &scratch.members);
        if self.lazy && self.is_dense(members) {
            let ranks = self.ranks(members);
            locked(aside).dense.push(ranks);
        } else if bucket.len() > HUGE {
            locked(aside).huge.push((band, key, bucket.len()));
        } else if self.alike.by_rarest() {
            locked(aside).strangers.push((band, key, members.clone()));
        } else {
            return self.compare_rows(band, scratch, pairs);
        }
        Ok(())
    }

    /// The ranks of entries, ascending.
    fn ranks(&self, members: &[u32]) -> Vec<u32> {
        let rank = |&entry: &u32| self.alike.entries.ranks[entry as usize];
        let mut ranks: Vec<u32> = members.iter().map(rank).collect();
        ranks.sort_unstable();
        ranks
    }

    /// Of the entries of large buckets, only those are compared that have one of their rarest features in common: each pair
    /// once, however many buckets both are in. That is work for all threads. Gives groups in which nearly all are alike.
    fn compare_strangers(&self, strangers: Strangers, pairs: &Pairs) -> Result<Vec<Vec<u32>>> {
        let Strangers { buckets, entries } = strangers;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut scratch = Scratch::default();
        self.gather(entries.iter().copied(), &mut scratch);
        let Scratch { members, sizes, words, .. } = &scratch;
        let bucket = Bucket { members, sizes, words };
        let (Some(rarest), Some(sets)) = (self.alike.rarest(members), self.alike.reduced(members))
        else {
            return Ok(Vec::new());
        };
        let (without, groups) = match self.lazy {
            true => self.dense_lists(&rarest, &bucket),
            false => Default::default(),
        };
        (0..members.len()).into_par_iter().step_by(ROWS).try_for_each_init(
            || vec![u32::MAX; members.len()],
            |seen, start| {
                let (mut near, mut found) = (Vec::new(), Vec::new());
                for i in start..(start + ROWS).min(members.len()) {
                    near.clear();
                    let from = self.smallest(i, &bucket);
                    rarest.add_smaller(i as u32, from as u32, &without, seen, &mut near);
                    self.compare_listed(&buckets, i, (&bucket, &sets), &near, &mut found);
                }
                pairs.add(&mut found)
            },
        )?;
        Ok(groups)
    }

    /// Which of the lists are long ones on which nearly all are alike, and the groups that all of these are in.
    fn dense_lists(&self, rarest: &Rarest, bucket: &Bucket<'_>) -> (Vec<bool>, Vec<Vec<u32>>) {
        let mut long: Vec<(u32, Vec<u32>)> = rarest.longer_than(LARGE).collect();
        long.sort_by_key(|(_, sets)| usize::MAX - sets.len());
        let (mut dense, mut groups) = (Vec::new(), Vec::new());
        let mut grouped: Vec<HashSet<u32>> = Vec::new();
        for (list, sets) in long {
            // What short documents have of a footer is in one list after the other: mostly those of one are on another.
            let is_part = || grouped.iter().any(|group| sets.iter().all(|set| group.contains(set)));
            if !is_part() {
                let entries = sets.iter().map(|&set| bucket.members[set as usize]);
                let entries: Vec<u32> = entries.collect();
                if !self.is_dense(&entries) {
                    continue;
                }
                groups.push(self.ranks(&entries));
                grouped.push(sets.into_iter().collect());
            }
            if dense.len() <= list as usize {
                dense.resize(list as usize + 1, false);
            }
            dense[list as usize] = true;
        }
        (dense, groups)
    }

    /// Compares one of many strangers with others. There may be very many candidates that are not alike, for which there
    /// would be no room: they are looked at here and now.
    fn compare_listed(
        &self,
        buckets: &HashSet<(usize, u32)>,
        i: usize,
        (bucket, sets): (&Bucket<'_>, &Reduced),
        others: &[u32],
        found: &mut Vec<u64>,
    ) {
        let Alike { kernel, dial, .. } = self.alike;
        self.compared.fetch_add(others.len() as u64, Ordering::Relaxed);
        let rows: Vec<u64> = others.iter().flat_map(|&j| sets.row(j as usize)).copied().collect();
        let mut possible = Vec::new();
        sets.add_possible(kernel, i, (&rows, |row| others[row] as usize), &mut possible);
        let stride = bucket.words.len() / bucket.members.len();
        let signature = |i: usize| &bucket.words[i * stride..][..stride];
        for j in possible.into_iter().map(|row| others[row] as usize) {
            let (a, b) = (bucket.members[i], bucket.members[j]);
            let near = kernel.distance(signature(i), signature(j)) <= dial.radius;
            if near
                && sets.alike(kernel, dial.verify, i, j).is_some()
                && self.met_as_strangers(buckets, a, b)
            {
                found.push(self.ranked(a, b));
            }
        }
    }

    /// Whether the first bucket that two have in common is one of these. Otherwise that one has them, or they have none.
    fn met_as_strangers(&self, buckets: &HashSet<(usize, u32)>, a: u32, b: u32) -> bool {
        let (a, b) = (self.keys(a), self.keys(b));
        let first = (0..a.len()).find(|&band| a[band] == b[band] && !self.is_huge(band, a[band]));
        first.is_some_and(|band| buckets.contains(&(band, a[band])))
    }

    /// The first member of a bucket that is not too small for another.
    fn smallest(&self, i: usize, bucket: &Bucket<'_>) -> usize {
        let largest = |size: u32| self.alike.dial.verify.largest(size as usize);
        bucket.sizes[..i].partition_point(|&size| largest(size) < bucket.sizes[i] as usize)
    }

    /// Has all threads compare the members of a bucket, a few at a time.
    fn compare_rows(&self, band: usize, scratch: &Scratch, pairs: &Pairs) -> Result<()> {
        let Scratch { members, sizes, words, .. } = scratch;
        let bucket = Bucket { members, sizes, words };
        (0..members.len()).into_par_iter().step_by(ROWS).try_for_each(|start| {
            let (mut masks, mut found) = (Vec::new(), Vec::new());
            for i in start..(start + ROWS).min(members.len()) {
                self.compare_one(band, i, &bucket, &mut masks, &mut found);
            }
            pairs.add(&mut found)
        })
    }

    /// Those behind a member of a bucket that are not too large for it.
    fn behind(&self, i: usize, bucket: &Bucket<'_>) -> Range<usize> {
        let largest = self.alike.dial.verify.largest(bucket.sizes[i] as usize);
        let behind = &bucket.sizes[i + 1..];
        let behind = behind.partition_point(|&size| size as usize <= largest);
        self.compared.fetch_add(behind as u64, Ordering::Relaxed);
        i + 1..i + 1 + behind
    }

    /// Adds a pair, unless an earlier band has it.
    fn report(&self, band: usize, a: u32, b: u32, found: &mut Vec<u64>) {
        if !self.met_before(band, a, b) {
            found.push(self.ranked(a, b));
        }
    }

    /// Two entries by their ranks.
    fn ranked(&self, a: u32, b: u32) -> u64 {
        let ranks = &self.alike.entries.ranks;
        pair(ranks[a as usize], ranks[b as usize])
    }

    /// Compares the members of a bucket of two.
    fn compare_two(&self, band: usize, a: u32, b: u32, found: &mut Vec<u64>) {
        let size = |entry: u32| self.alike.entries.sizes[entry as usize] as usize;
        let (small, large) = (size(a).min(size(b)), size(a).max(size(b)));
        if large <= self.alike.dial.verify.largest(small) {
            self.compared.fetch_add(1, Ordering::Relaxed);
            if self.alike.distance(a, b) <= self.alike.dial.radius {
                self.report(band, a, b, found);
            }
        }
    }

    /// Compares a member of a bucket with those behind it, by their signatures.
    fn compare_one(
        &self,
        band: usize,
        i: usize,
        bucket: &Bucket<'_>,
        masks: &mut Vec<u64>,
        found: &mut Vec<u64>,
    ) {
        let stride = bucket.words.len() / bucket.members.len();
        let behind = self.behind(i, bucket);
        masks.resize(behind.len().div_ceil(64), 0);
        let (query, rows) = bucket.words[i * stride..].split_at(stride);
        let rows = &rows[..behind.len() * stride];
        self.alike.kernel.within(query, rows, self.alike.dial.radius, masks);
        for (block, &mask) in masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                let j = behind.start + block * 64 + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                self.report(band, bucket.members[i], bucket.members[j], found);
            }
        }
    }

    /// Entries with what is compared of them, smallest sets first.
    fn gather(&self, entries: impl Iterator<Item = u32>, scratch: &mut Scratch) {
        let Scratch { members, sizes, words, .. } = scratch;
        let size = |entry: u32| self.alike.entries.sizes[entry as usize];
        members.clear();
        members.extend(entries);
        // They are in order already, and the sort keeps that.
        members.sort_by_key(|&entry| size(entry));
        sizes.clear();
        sizes.extend(members.iter().map(|&entry| size(entry)));
        words.clear();
        for &entry in members.iter() {
            words.extend_from_slice(self.alike.signature_of(entry));
        }
    }

    fn keys(&self, entry: u32) -> &'a [u32] {
        self.alike.sketches.keys(self.alike.entries.row(entry))
    }

    /// Whether a bucket was not compared.
    fn is_huge(&self, band: usize, key: u32) -> bool {
        !self.huge.is_empty() && self.huge.contains(&(band, key))
    }

    /// Whether an earlier band has both in one bucket, which was compared or will be.
    fn met_before(&self, band: usize, a: u32, b: u32) -> bool {
        let (a, b) = (&self.keys(a)[..band], &self.keys(b)[..band]);
        let equal = |(a, b): (&[u32], &[u32])| {
            // Without a way out in between, this is done several at a time.
            a.iter().zip(b).fold(false, |any, (a, b)| any | (a == b))
        };
        a.chunks(16).zip(b.chunks(16)).any(equal)
            && (self.huge.is_empty()
                || (0..band).any(|band| a[band] == b[band] && !self.is_huge(band, a[band])))
    }

    /// Whether so many of a large bucket are alike that their pairs are not listed.
    fn is_dense(&self, members: &[u32]) -> bool {
        let share = self.alike_share(members);
        let alike = share * (members.len() as f64).powi(2) / 2.0;
        alike > DENSE && share > DENSE_SHARE || alike > LISTED
    }

    /// Which share of the pairs of a bucket is alike, by a sample.
    fn alike_share(&self, members: &[u32]) -> f64 {
        let mut random = 0_u64;
        let mut draw = || {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            members[(mix(random) % members.len() as u64) as usize]
        };
        let alike = |&(a, b): &(u32, u32)| {
            let near = || self.alike.distance(a, b) <= self.alike.dial.radius;
            a != b && near() && self.alike.verified(a, b).is_some()
        };
        let looks = (0..LOOKS).map(|_| (draw(), draw()));
        looks.filter(alike).count() as f64 / LOOKS as f64
    }
}

/// Entries with the same key, smallest sets first.
struct Bucket<'a> {
    members: &'a [u32],
    sizes: &'a [u32],
    words: &'a [u64],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_the_same_key_are_side_by_side() {
        let mut ordered = Ordered::default();
        for n in [0, 1, 2, 3, 100, 9000_u64] {
            let items: Vec<u64> = (0..n).rev().map(|i| mix(i % 70) << 32 | i).collect();
            ordered.put(&items);
            let buckets = ordered.items.chunk_by(|a, b| a >> 32 == b >> 32);
            assert_eq!(buckets.clone().count() as u64, n.min(70));
            assert!(buckets.into_iter().all(|bucket| bucket.is_sorted()));
            let mut all = ordered.items.clone();
            all.sort_unstable_by_key(|item| u64::MAX - (item & 0xffff));
            assert_eq!(all, items);
        }
    }

    #[test]
    fn whoever_has_a_key_in_common_is_kept() {
        for n in [0, 1, 2, 100, 5000] {
            // About a third have a key of their own.
            let key = |i: u64| mix(mix(i) % (n * 2 / 3).max(1)) << 32 | i;
            let all: Vec<u64> = (0..n).map(key).collect();
            let count = |item: u64| all.iter().filter(|other| **other >> 32 == item >> 32).count();
            let mut kept = vec![7];
            keep_shared(all.iter().copied(), all.len(), &mut Seen::default(), &mut kept);
            assert!(kept.iter().all(|item| all.contains(item)));
            let common: Vec<u64> = all.iter().copied().filter(|&item| count(item) > 1).collect();
            assert!(common.iter().all(|item| kept.contains(item)), "{n}");
            assert!(kept.len() <= common.len() + n as usize / 4, "{n}: {}", kept.len());
        }
    }
}
