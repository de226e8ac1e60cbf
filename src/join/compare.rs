//! Which rows of a bucket are near? Small buckets are compared row by row, large ones by the kernel of the scan; where the
//! rest of the bits tells rows apart better than that, they are sorted by it once more.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rayon::prelude::*;

use super::{
    Pair,
    block::{Block, View},
    output::Output,
    plan::{Mask, Plan, Task},
    spread::Spread,
};
use crate::{
    hamming::{self, Batch, Besides, InOrder, Kernel, Met, Near, READ_PAST, Stretch, Workspace},
    probe,
};

/// What all threads of a join share.
pub(super) struct Context<'a> {
    pub(super) output: Output<'a>,
    pub(super) kernel: Kernel,
    pub(super) bits: u32,
    pub(super) radius: u32,
    /// The share of the pairs that sorting a large bucket again must find.
    pub(super) recall: f64,
    pub(super) limits: Limits,
    pub(super) compared: AtomicU64,
    /// Whether some bucket was sorted again in a way that is not sure to find all.
    pub(super) lossy: AtomicBool,
}

/// What is small.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Buckets with more pairs than this may be sorted again.
    pub(crate) pairs: u64,
    /// Exact joins of so many nanoseconds are preferred to others.
    pub(crate) quick: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { pairs: 1 << 21, quick: 2e9 }
    }
}

/// Sorting again and again must end, whatever the rows are.
const DEEPEST: usize = 5;
/// Pairs that wait to be compared.
const WAITING: usize = 1 << 14;
/// Rows at a time for the kernel of the scan.
const TILE: usize = 256;
/// Pairs whose copies are on their way while one is handed in.
const AHEAD: usize = 8;
/// Larger blocks are shared among threads.
const SHARED: usize = 1 << 16;

/// One thread's part of the comparing.
pub(super) struct Comparer<'a> {
    context: &'a Context<'a>,
    /// The masks of each time that the rows were sorted, and which of them it is. A pair belongs to the first that finds it.
    sorted_by: Vec<(Arc<[Mask]>, usize)>,
    /// The earlier masks as words, if they are that simple.
    earlier: Option<Vec<u64>>,
    stretches: Vec<Stretch>,
    near: Vec<Near>,
    met: Vec<Met>,
    waiting: Vec<hamming::Pair>,
    found: Vec<(u32, u32)>,
    pairs: Vec<Pair>,
    compared: u64,
}

/// The masks that come before those that the rows are sorted by.
fn earlier(sorted_by: &[(Arc<[Mask]>, usize)]) -> impl Iterator<Item = &Mask> {
    sorted_by.iter().flat_map(|(masks, now)| &masks[..*now])
}

/// Rows that meet: those of one bucket, or those of two, each with each.
#[derive(Clone, Copy)]
struct Node<'b> {
    left: View<'b>,
    right: Option<View<'b>>,
}

impl Node<'_> {
    fn pairs(&self) -> u64 {
        let len = self.left.len() as u64;
        self.right.map_or(len * len.saturating_sub(1) / 2, |right| len * right.len() as u64)
    }

    fn len(&self) -> usize {
        self.left.len() + self.right.map_or(0, |right| right.len())
    }
}

impl<'a> Comparer<'a> {
    pub(super) fn new(context: &'a Context<'a>, sorted_by: Vec<(Arc<[Mask]>, usize)>) -> Self {
        let earlier = earlier(&sorted_by).map(Mask::word).collect();
        Comparer {
            context,
            sorted_by,
            earlier,
            stretches: Vec::new(),
            near: Vec::new(),
            met: Vec::new(),
            waiting: Vec::new(),
            found: Vec::new(),
            pairs: Vec::new(),
            compared: 0,
        }
    }

    /// For another block, while pairs of this one wait.
    fn fork(&self) -> Self {
        Comparer::new(self.context, self.sorted_by.clone())
    }

    /// Compares the rows of a block whose keys differ by one of the flips, the first of which is none.
    pub(super) fn within(&mut self, block: &Block, flips: &[u32]) {
        if block.len() <= SHARED || block.keys().len() < TILE {
            return self.within_keys(block, block.keys(), flips);
        }
        let size = block.keys().len().div_ceil(rayon::current_num_threads() * 16);
        let starts: Vec<usize> = block.keys().step_by(size).collect();
        starts.into_par_iter().for_each(|start| {
            let keys = start..(start + size).min(block.keys().end);
            self.fork().within_keys(block, keys, flips);
        });
    }

    fn within_keys(&mut self, block: &Block, keys: Range<usize>, flips: &[u32]) {
        if flips.len() == 1 && self.in_order(block, keys.clone()) {
            return self.hand_in();
        }
        for key in keys.filter(|&key| flips.len() == 1 || !block.is_empty(key)) {
            let [left, right] = block.sides(key);
            match block.sided {
                true => self.product((block, left), (block, right)),
                false => self.triangle(block, left),
            }
            for flip in &flips[1..] {
                let other = key ^ *flip as usize;
                if other > key {
                    self.buckets((block, key), (block, other));
                }
            }
        }
        self.finish(block, block);
    }

    /// Compares rows that have the same key all at once, if no key has very many, and rows and masks are that simple.
    fn in_order(&mut self, block: &Block, keys: Range<usize>) -> bool {
        let key = self.sorted_by.last().and_then(|(masks, now)| masks[*now].word());
        let (Some(key), Some(others), false) = (key, &self.earlier, block.sided) else {
            return false;
        };
        let (rows, pairs, most) = block.pairs(keys);
        if most > self.context.limits.pairs {
            return false;
        }
        self.compared += pairs;
        let words = &block.words()[rows.start..rows.end + READ_PAST / 8];
        let task = InOrder { rows: words, key, radius: self.context.radius, others };
        self.context.kernel.check_in_order(task, &mut self.met);
        let numbers = block.view(rows).numbers;
        let pair = |met: &Met| (numbers[met.a as usize], numbers[met.b as usize]);
        for (i, met) in self.met.iter().enumerate() {
            if let Some(next) = self.met.get(i + AHEAD) {
                self.context.output.prefetch(pair(next));
            }
            self.context.output.expand(pair(met), met.distance, &mut self.pairs);
            self.context.output.take_if_many(&mut self.pairs);
        }
        self.met.clear();
        true
    }

    /// Compares rows of two blocks.
    pub(super) fn between(&mut self, left: &Block, right: &Block, flips: &[u32]) {
        for key in left.keys() {
            if left.is_empty(key) {
                continue;
            }
            for flip in flips {
                self.buckets((left, key), (right, key ^ *flip as usize));
            }
        }
        self.finish(left, right);
    }

    #[inline(always)]
    fn buckets(&mut self, (left, key): (&Block, usize), (right, other): (&Block, usize)) {
        let ([a, b], [c, d]) = (left.sides(key), right.sides(other));
        self.product((left, a), (right, d));
        if left.sided {
            // The other way round the rows are the same pairs: the comparison has no direction.
            self.product((left, b), (right, c));
        }
    }

    #[inline(always)]
    fn triangle(&mut self, block: &Block, rows: Range<usize>) {
        let len = rows.len() as u64;
        if len < 2 {
            return;
        }
        if len * (len - 1) / 2 > self.context.limits.pairs {
            return self.large(Node { left: block.view(rows), right: None });
        }
        self.compared += len * (len - 1) / 2;
        for row in rows.start..rows.end - 1 {
            self.ask(block, row, block, row + 1..rows.end);
        }
    }

    #[inline(always)]
    fn product(&mut self, (left, a): (&Block, Range<usize>), (right, b): (&Block, Range<usize>)) {
        if a.is_empty() || b.is_empty() {
            return;
        }
        let pairs = a.len() as u64 * b.len() as u64;
        if pairs > self.context.limits.pairs {
            return self.large(Node { left: left.view(a), right: Some(right.view(b)) });
        }
        self.compared += pairs;
        for row in a {
            self.ask(left, row, right, b.clone());
        }
    }

    /// One row of the left block with some of the right one.
    #[inline(always)]
    fn ask(&mut self, left: &Block, row: usize, right: &Block, rows: Range<usize>) {
        let radius = self.context.radius;
        if left.stride() == 1 {
            let (start, end) = (rows.start as u32, rows.end as u32);
            let query = left.words()[row];
            self.stretches.push(Stretch { query, start, end, allowed: radius, tag: row as u32 });
            if self.stretches.len() >= WAITING {
                self.compare(left, right);
            }
        } else {
            let pair = |other: usize| hamming::Pair { query: row as u32, row: other as u32 };
            self.waiting.extend(rows.map(pair));
            if self.waiting.len() >= WAITING {
                self.compare(left, right);
            }
        }
    }

    /// Compares what waits.
    fn compare(&mut self, left: &Block, right: &Block) {
        let (all_left, all_right) = (left.view(0..left.len()), right.view(0..right.len()));
        let (kernel, radius) = (self.context.kernel, self.context.radius);
        if left.stride() == 1 {
            let (stretches, mut near) =
                (std::mem::take(&mut self.stretches), std::mem::take(&mut self.near));
            kernel.check_whole(&stretches, right.words(), &mut Besides::default(), &mut near);
            for near in &near {
                let row = stretches[near.stretch as usize].tag;
                self.report(all_left, row as usize, all_right, near.row as usize);
            }
            (self.stretches, self.near) = (stretches, near);
            self.stretches.clear();
            self.near.clear();
        } else {
            let (waiting, mut found) =
                (std::mem::take(&mut self.waiting), std::mem::take(&mut self.found));
            let words = (left.words(), right.words());
            kernel.check_pairs(&waiting, words, all_left.stride, radius, &mut found);
            for &(pair, _) in &found {
                let pair = waiting[pair as usize];
                self.report(all_left, pair.query as usize, all_right, pair.row as usize);
            }
            (self.waiting, self.found) = (waiting, found);
            self.waiting.clear();
            self.found.clear();
        }
    }

    /// A pair within the radius, unless an earlier mask finds it as well.
    fn report(&mut self, left: View<'_>, a: usize, right: View<'_>, b: usize) {
        let (x, y) = (left.row(a), right.row(b));
        let distance = match x {
            [x] => {
                let differences = [x ^ y[0]];
                if !self.is_new(&differences) {
                    return;
                }
                differences[0].count_ones()
            }
            _ => {
                let differences: Vec<u64> = x.iter().zip(y).map(|(x, y)| x ^ y).collect();
                if !self.is_new(&differences) {
                    return;
                }
                differences.iter().map(|word| word.count_ones()).sum()
            }
        };
        self.context.output.expand((left.numbers[a], right.numbers[b]), distance, &mut self.pairs);
        self.context.output.take_if_many(&mut self.pairs);
    }

    #[inline(always)]
    fn is_new(&self, differences: &[u64]) -> bool {
        match &self.earlier {
            Some(words) => words.iter().all(|word| word & differences[0] != 0),
            None => !earlier(&self.sorted_by).any(|mask| mask.finds(differences)),
        }
    }

    /// Compares what is left and hands in what was found.
    fn finish(&mut self, left: &Block, right: &Block) {
        self.compare(left, right);
        self.hand_in();
    }

    fn hand_in(&mut self) {
        self.context.output.take(&mut self.pairs);
        self.context.compared.fetch_add(std::mem::take(&mut self.compared), Ordering::Relaxed);
    }

    /// Many rows that meet.
    fn large(&mut self, node: Node<'_>) {
        if self.context.output.is_stopped() {
            return;
        }
        let views: Vec<View<'_>> = [Some(node.left), node.right].into_iter().flatten().collect();
        let spread = Spread::of(&views, self.context.bits);
        let plan = Plan::new(&Task {
            rows: node.len(),
            pairs: node.pairs() as f64,
            bits: self.context.bits,
            radius: self.context.radius,
            recall: self.context.recall,
            spread: &spread,
            quick: 0.0,
        });
        match plan.is_scan() || self.sorted_by.len() >= DEEPEST {
            true => self.fork().scan(node),
            false => self.sort_again(node, plan),
        }
    }

    fn sort_again(&self, node: Node<'_>, plan: Plan) {
        if plan.recall < 1.0 {
            self.context.lossy.store(true, Ordering::Relaxed);
        }
        let masks: Arc<[Mask]> = plan.masks.into();
        let lefts = node.left.len();
        let right = node.right.unwrap_or(node.left);
        let entry = |i: usize| if i < lefts { (node.left, i) } else { (right, i - lefts) };
        let words = |i: usize| {
            let (view, i) = entry(i);
            view.row(i)
        };
        for (number, mask) in masks.iter().enumerate() {
            let fields = mask.layout.fields();
            let sided = node.right.is_some();
            let slot = |i: usize| match sided {
                true => (fields.take(words(i)) as usize) << 1 | usize::from(i >= lefts),
                false => fields.take(words(i)) as usize,
            };
            let row_number = |i: usize| {
                let (view, i) = entry(i);
                view.numbers[i]
            };
            let mut block = Block::default();
            block.sided = sided;
            let slots = 1 << (mask.layout.width() + u32::from(sided));
            block.sort(node.left.stride, slots, node.len(), slot, row_number, words);
            let mut sorted_by = self.sorted_by.clone();
            sorted_by.push((masks.clone(), number));
            let mut inner = Comparer::new(self.context, sorted_by);
            inner.within(&block, &probe::within(mask.layout.width(), mask.errors));
        }
    }

    /// Every row with every other.
    fn scan(&mut self, node: Node<'_>) {
        self.compared += node.pairs();
        self.hand_in();
        let tiles: Vec<usize> = (0..node.left.len()).step_by(TILE).collect();
        tiles.into_par_iter().for_each(|start| {
            let tile = start..(start + TILE).min(node.left.len());
            let mut comparer = self.fork();
            comparer.tile(node, tile);
            comparer.hand_in();
        });
    }

    /// Some rows of the left with all of the right, or with those behind them.
    fn tile(&mut self, node: Node<'_>, tile: Range<usize>) {
        let (kernel, stride) = (self.context.kernel, node.left.stride);
        let batch = Batch::new(&node.left.words[tile.start * stride..tile.end * stride], stride);
        let thresholds = vec![Some(self.context.radius); tile.len()];
        let right = node.right.unwrap_or(node.left);
        let first = if node.right.is_some() { 0 } else { tile.start };
        let (mut workspace, mut matches) = (Workspace::default(), Vec::new());
        let block = kernel.block_rows(&batch);
        for start in (first..right.len()).step_by(block) {
            if self.context.output.is_stopped() {
                return;
            }
            let end = (start + block).min(right.len());
            let rows = &right.words[start * stride..end * stride];
            matches.clear();
            kernel.within_batch(&batch, rows, &thresholds, &mut workspace, &mut matches);
            for matched in &matches {
                let a = tile.start + matched.query as usize;
                for b in matched.rows().map(|row| start + row) {
                    if node.right.is_some() || b > a {
                        self.report(node.left, a, right, b);
                    }
                }
            }
        }
    }
}
