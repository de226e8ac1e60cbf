//! The bit-sliced form: many queries against a block of rows, all rows of the block at once.
//!
//! A block is turned on its side, so that plane `b` holds bit `b` of every row. Counting the planes in which the rows
//! differ from a query is then addition with one adder for each row, one vector instruction serves hundreds of rows,
//! and a query leaves as soon as every row is past its threshold, for most after a part of the bits.
//!
//! Three bits of a query have eight values. For each of them the two planes that count the differences (0 to 3) are
//! made once a block and shared by all queries: a query only picks and adds, and three planes become two.

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};

use super::{Level, lanes::Lanes};

/// Bits of a query that choose among ready counts.
const GROUP: usize = 3;
/// Groups added between two looks at whether any row is left.
const GROUPS: usize = 8;
/// Bits of a step.
const STEP: usize = GROUP * GROUPS;
/// Counter levels that live in registers; wider thresholds carry on in `high`.
const LOW: usize = 5;
/// Levels for thresholds up to 4096 bits, less those in registers.
const HIGH: usize = 13 - LOW;

/// Rows in a block: as many as a vector has bits.
pub(super) const fn block_rows<L: Lanes>() -> usize {
    size_of::<L::Words>() * 8
}

/// A batch of queries, each cut into groups of three bits.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    steps: usize,
    /// Eight times the value of each group: ready for addressing.
    patterns: Vec<[Scaled; GROUPS]>,
}

/// Eight times a value below eight; only `Scaled::new` makes one.
#[derive(Debug, Clone, Copy)]
struct Scaled(u8);

impl Scaled {
    fn new(value: u64) -> Self {
        Scaled((value % (1 << GROUP)) as u8 * 8)
    }
}

impl Patterns {
    pub(super) fn new(queries: &[u64], stride: usize) -> Self {
        let steps = steps(stride);
        let cut = |query| {
            (0..steps).map(move |step| {
                let bits = bits_at(query, step * STEP);
                std::array::from_fn(|group| Scaled::new(bits >> (group * GROUP)))
            })
        };
        Patterns { steps, patterns: queries.chunks_exact(stride).flat_map(cut).collect() }
    }

    #[inline(always)]
    fn of(&self, query: usize) -> &[[Scaled; GROUPS]] {
        &self.patterns[query * self.steps..][..self.steps]
    }
}

/// Steps for rows of `stride` words.
fn steps(stride: usize) -> usize {
    (stride * 64).div_ceil(STEP)
}

/// The bits of a row from bit `start` on, counted from the low end of the first word; zeros past the end.
fn bits_at(row: &[u64], start: usize) -> u64 {
    let (word, shift) = (start / 64, start % 64);
    let next = row.get(word + 1).map_or(0, |next| (next << 1) << (63 - shift));
    row[word] >> shift | next
}

/// Rows near one query: bit `i` of `mask` is row `start + i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The query's number in its batch.
    pub query: u32,
    /// The row of bit 0.
    pub start: u32,
    /// The rows, at least one.
    pub mask: u64,
}

impl Match {
    /// The rows, in order.
    pub fn rows(self) -> impl Iterator<Item = usize> {
        let first = (self.mask != 0).then_some(self.mask);
        let masks = std::iter::successors(first, |mask| match mask & (mask - 1) {
            0 => None,
            rest => Some(rest),
        });
        masks.map(move |mask| self.start as usize + mask.trailing_zeros() as usize)
    }
}

/// A cache line, so that no vector straddles two.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

// SAFETY: eight words, of which zeros are a value.
unsafe impl Zeroable for Line {}
// SAFETY: words without padding, every pattern of bits is a value, and no pointers.
unsafe impl Pod for Line {}

/// Memory for a block on its side, reused from block to block.
#[derive(Debug, Clone, Default)]
pub(super) struct Workspace {
    planes: Vec<Line>,
    counts: Vec<Line>,
}

/// The counts of one group: for each value of the query's three bits, the planes of weight 1 and 2.
type Counts<L> = [[<L as Lanes>::Words; 2]; 1 << GROUP];

/// A block of rows on its side, made step by step as queries need it: most never look at the last bits.
pub(super) struct Block<'a, L: Lanes> {
    rows: &'a [u64],
    stride: usize,
    /// Words of each row that are already turned.
    turned: usize,
    /// Steps whose counts are ready.
    ready: usize,
    planes: &'a mut [L::Words],
    counts: &'a mut [[Counts<L>; GROUPS]],
}

impl<'a, L: Lanes> Block<'a, L> {
    fn new(rows: &'a [u64], stride: usize, workspace: &'a mut Workspace) -> Self {
        let steps = steps(stride);
        let planes = grown(&mut workspace.planes, steps * STEP * size_of::<L::Words>());
        let counts = grown(&mut workspace.counts, steps * GROUPS * size_of::<Counts<L>>());
        let planes: &mut [L::Words] = cast_slice_mut(planes);
        planes[stride * 64..].fill(L::Words::zeroed());
        Block { rows, stride, turned: 0, ready: 0, planes, counts: cast_slice_mut(counts) }
    }

    /// Makes the counts of the next step.
    #[inline(always)]
    pub(super) fn slice_step(&mut self, proof: L::Proof) {
        let step = self.ready;
        while self.turned < self.stride && self.turned * 64 < (step + 1) * STEP {
            self.turn_word(proof);
        }
        let planes = self.planes[step * STEP..][..STEP].chunks_exact(GROUP);
        for (planes, counts) in planes.zip(&mut self.counts[step]) {
            count_group::<L>(proof, planes, counts);
        }
        self.ready += 1;
    }

    /// Turns the next word of every row into 64 planes.
    #[inline(always)]
    fn turn_word(&mut self, proof: L::Proof) {
        let planes = &mut self.planes[self.turned * 64..][..64];
        let (words, rest) = cast_slice_mut(planes).split_at_mut(self.rows.len() / self.stride);
        for (word, row) in words.iter_mut().zip(self.rows.chunks_exact(self.stride)) {
            *word = row[self.turned];
        }
        rest.fill(0);
        transpose::<L>(proof, planes);
        self.turned += 1;
    }
}

/// At least `bytes` bytes, exactly.
fn grown(lines: &mut Vec<Line>, bytes: usize) -> &mut [Line] {
    let needed = bytes.div_ceil(size_of::<Line>());
    lines.resize(needed.max(lines.len()), Line([0; 8]));
    &mut lines[..needed]
}

/// Transposes 64 x 64 bits in each lane: swaps the off-diagonal quarters, then the same within the quarters, down to
/// single bits. Three of these six rounds need only eight vectors at a time, which fit the registers.
#[inline(always)]
fn transpose<L: Lanes>(proof: L::Proof, planes: &mut [L::Words]) {
    for first in 0..8 {
        swap_rounds::<L, 8>(proof, &mut planes[first..]);
    }
    for planes in planes.chunks_exact_mut(8) {
        swap_rounds::<L, 1>(proof, planes);
    }
}

/// Swaps in distances of 4, 2 and 1 times `APART`, among vectors that are `APART` apart.
#[inline(always)]
fn swap_rounds<L: Lanes, const APART: usize>(proof: L::Proof, planes: &mut [L::Words]) {
    let mut vectors: [L; 8] = std::array::from_fn(|i| L::load(proof, &planes[i * APART]));
    for apart in [4, 2, 1] {
        let distance = apart * APART;
        let low = L::splat(proof, !0 / ((1 << distance) + 1));
        for i in (0..8).filter(|i| i & apart == 0) {
            let (a, b) = (vectors[i], vectors[i + apart]);
            let swap = a.shift_right(distance as u32).xor(b).and(low);
            vectors[i] = a.xor(swap.shift_left(distance as u32));
            vectors[i + apart] = b.xor(swap);
        }
    }
    for (i, vector) in vectors.into_iter().enumerate() {
        vector.store(&mut planes[i * APART]);
    }
}

/// In how many of three planes each row differs from the query, for each value that the query can have there.
#[inline(always)]
fn count_group<L: Lanes>(proof: L::Proof, planes: &[L::Words], counts: &mut Counts<L>) {
    let (zeros, ones) = (L::splat(proof, 0), L::splat(proof, !0));
    let planes: [L; GROUP] = std::array::from_fn(|bit| L::load(proof, &planes[bit]));
    for value in 0..4 {
        let query = |bit: usize| if value >> bit & 1 == 1 { ones } else { zeros };
        let differs = |bit: usize| planes[bit].xor(query(bit));
        let (one, two) = differs(0).add(differs(1), differs(2));
        one.store(&mut counts[value][0]);
        two.store(&mut counts[value][1]);
        // Three differences less: the same planes, inverted.
        one.xor(ones).store(&mut counts[7 - value][0]);
        two.xor(ones).store(&mut counts[7 - value][1]);
    }
}

/// One question to the bit-sliced form.
pub(super) struct Task<'a> {
    pub(super) patterns: &'a Patterns,
    pub(super) rows: &'a [u64],
    pub(super) stride: usize,
    /// One for each query; none leaves the query out.
    pub(super) thresholds: &'a [Option<u32>],
    pub(super) workspace: &'a mut Workspace,
    pub(super) found: &'a mut Vec<Match>,
}

impl Task<'_> {
    /// Adds the rows within the threshold of each query to `found`, block after block.
    #[inline(always)]
    pub(super) fn run<L: Level>(self, level: L) {
        let block_rows = block_rows::<L::Lanes>();
        let blocks = self.rows.chunks(block_rows * self.stride);
        for (block, rows) in blocks.enumerate() {
            let outside = outside::<L::Lanes>(level, rows.len() / self.stride);
            let mut sliced = Block::new(rows, self.stride, self.workspace);
            for (query, threshold) in self.thresholds.iter().enumerate() {
                let Some(threshold) = *threshold else { continue };
                let threshold = threshold.min(self.stride as u32 * 64);
                let patterns = self.patterns.of(query);
                if let Some(over) = count(level, &mut sliced, patterns, threshold, outside) {
                    push_matches(over, query, block * block_rows, self.found);
                }
            }
        }
    }
}

/// Ones for what is past the last row. Row `r` is bit `r / lanes` of lane `r % lanes`: rows are loaded in order.
#[inline(always)]
fn outside<L: Lanes>(proof: L::Proof, rows: usize) -> L {
    let mut words = [L::Words::zeroed()];
    for (lane, word) in cast_slice_mut::<_, u64>(&mut words).iter_mut().enumerate() {
        let rows = (rows + L::COUNT - 1 - lane) / L::COUNT;
        *word = if rows == 64 { 0 } else { !0 << rows };
    }
    L::load(proof, &words[0])
}

/// Adds the rows of a block that are not over, 64 in a row's order to a mask.
#[cold]
fn push_matches<L: Lanes>(over: L, query: usize, start: usize, found: &mut Vec<Match>) {
    let mut over_words = [L::Words::zeroed()];
    over.store(&mut over_words[0]);
    let over = cast_slice::<_, u64>(&over_words);
    for part in 0..L::COUNT {
        let near = |i: usize| {
            let row = part * 64 + i;
            u64::from(over[row % L::COUNT] >> (row / L::COUNT) & 1 == 0) << i
        };
        let mask = (0..64).fold(0, |mask, i| mask | near(i));
        if mask != 0 {
            found.push(Match { query: query as u32, start: (start + part * 64) as u32, mask });
        }
    }
}

/// Which rows are over the threshold, or nothing if all are.
///
/// The counters have just enough levels for the threshold and start so high that going over it carries out of the last
/// one: no comparison is needed, and a small threshold costs little.
#[inline(always)]
fn count<L: Level>(
    level: L,
    block: &mut Block<'_, L::Lanes>,
    patterns: &[[Scaled; GROUPS]],
    threshold: u32,
    outside: L::Lanes,
) -> Option<L::Lanes> {
    match u32::BITS - threshold.leading_zeros() {
        0..=2 => count_levels::<L, 2>(level, block, patterns, threshold, 2, outside),
        3 => count_levels::<L, 3>(level, block, patterns, threshold, 3, outside),
        4 => count_levels::<L, 4>(level, block, patterns, threshold, 4, outside),
        levels => {
            let levels = levels as usize;
            count_levels::<L, LOW>(level, block, patterns, threshold, levels, outside)
        }
    }
}

#[inline(always)]
fn count_levels<L: Level, const IN_REGISTERS: usize>(
    level: L,
    block: &mut Block<'_, L::Lanes>,
    patterns: &[[Scaled; GROUPS]],
    threshold: u32,
    levels: usize,
    outside: L::Lanes,
) -> Option<L::Lanes> {
    let start = (1 << levels) - 1 - u64::from(threshold);
    let plane = |i: usize| L::Lanes::splat(level, (start >> i & 1).wrapping_neg());
    let mut counter = Counter::<_, IN_REGISTERS> { low: std::array::from_fn(plane), over: outside };
    let mut high: [_; HIGH] = std::array::from_fn(|i| plane(LOW + i));
    let mut step = 0;
    while step < patterns.len() {
        if step == block.ready {
            level.slice_step(block);
        }
        for (counts, pattern) in block.counts[step..block.ready].iter().zip(&patterns[step..]) {
            let mut carry = counter.add_step(level, counts, pattern);
            if IN_REGISTERS == LOW {
                for sum in &mut high[..levels - LOW] {
                    (*sum, carry) = (sum.xor(carry), sum.and(carry));
                }
                counter.over = counter.over.or(carry);
            }
            if counter.over.is_ones() {
                return None;
            }
        }
        step = block.ready;
    }
    Some(counter.over)
}

/// A number for each row, its bits in planes from the lowest up, and whether it ever went over.
struct Counter<L, const LEVELS: usize> {
    low: [L; LEVELS],
    over: L,
}

impl<L: Lanes, const LEVELS: usize> Counter<L, LEVELS> {
    /// Adds the differences in a step; what is carried out of the last level is returned.
    #[inline(always)]
    fn add_step(
        &mut self,
        proof: L::Proof,
        counts: &[Counts<L>; GROUPS],
        pattern: &[Scaled; GROUPS],
    ) -> L {
        let of = |group: usize| pick::<L>(proof, &counts[group], pattern[group]);
        let [a, b, c] = self.add_four([of(0), of(1), of(2), of(3)]);
        let [d, e, f] = self.add_four([of(4), of(5), of(6), of(7)]);
        let (ab, cd, ef) = (self.add(2, a, b), self.add(2, c, d), self.add(2, e, f));
        let (abcd, ef) = (self.add(3, ab, cd), self.add(3, ef, L::splat(proof, 0)));
        self.add(4, abcd, ef)
    }

    /// Adds the differences in four groups to the first two levels and returns their carries, all of weight 4.
    #[inline(always)]
    fn add_four(&mut self, [[a1, a2], [b1, b2], [c1, c2], [d1, d2]]: [[L; 2]; 4]) -> [L; 3] {
        let (ab, cd) = (self.add(0, a1, b1), self.add(0, c1, d1));
        [self.add(1, a2, b2), self.add(1, c2, d2), self.add(1, ab, cd)]
    }

    /// Adds two planes to a level and returns the carry. What is added above the last level is over.
    #[inline(always)]
    fn add(&mut self, level: usize, a: L, b: L) -> L {
        if level < LEVELS {
            // The running sum comes last: the others do not wait for it.
            let (sum, carry) = a.add(b, self.low[level]);
            self.low[level] = sum;
            carry
        } else {
            self.over = self.over.or(a.or(b));
            a.xor(a)
        }
    }
}

/// The planes of weight 1 and 2 for one value of a group.
#[inline(always)]
fn pick<L: Lanes>(proof: L::Proof, counts: &Counts<L>, value: Scaled) -> [L; 2] {
    let offset = usize::from(value.0) * (size_of::<[L::Words; 2]>() / 8);
    // SAFETY: eight times the value times an eighth of the element's size is the element's place, and values are
    // below eight, the number of elements.
    let planes = unsafe { &*counts.as_ptr().byte_add(offset) };
    planes.each_ref().map(|words| L::load(proof, words))
}
