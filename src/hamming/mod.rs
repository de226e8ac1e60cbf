//! Hamming distances between rows of words: how many bits differ, and which rows are within a threshold?
//!
//! [`kernel`] chooses once the best instructions that this CPU has (AVX-512, AVX2, NEON, or plain words), unless the
//! environment variable `LOOKALIKE_SIMD` names others. A few queries take the direct form, many the bit-sliced one.
//!
//! A level is a value that only its `detect` makes: having one is the proof that its instructions exist.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod check;
mod direct;
mod lanes;
mod minima;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod shared;
mod sliced;
#[cfg(test)]
mod tests;

use std::{fmt, sync::OnceLock};

use crate::{Error, Result};

pub use check::{Besides, InOrder, Met, Near, Pair, Probe, READ_PAST, Stretch};
pub(crate) use check::{Head, LINE_WORDS};
pub use minima::Functions;
#[cfg(test)]
pub(crate) use minima::mix32;
pub(crate) use shared::merged;
pub use sliced::Match;

/// The environment variable that forces a level.
pub const VARIABLE: &str = "LOOKALIKE_SIMD";

/// The kernels, compiled for one set of instructions.
trait Level: Copy {
    type Lanes: lanes::Lanes<Proof = Self>;

    fn distance(self, a: &[u64], b: &[u64]) -> u32;
    fn distances(self, query: &[u64], rows: &[u64], out: &mut [u32]);
    fn distances_of(self, query: &[u64], rows: &[u64], numbers: &[u32], out: &mut [u32]);
    fn within(self, query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]);
    fn slice_step(self, block: &mut sliced::Block<'_, Self::Lanes>);
    fn within_sliced(self, task: sliced::Task<'_>);
    fn check_whole(
        self,
        of: &[Stretch],
        rows: &[u64],
        and: &mut Besides<'_>,
        found: &mut Vec<Near>,
    );
    fn check_halves(self, stretches: &[Stretch], rows: &[u32], found: &mut Vec<Near>);
    fn check_lines(self, of: &[Probe], lines: &[u64], and: &mut Besides<'_>, found: &mut Vec<Near>);
    fn check_pairs(self, task: PairTask<'_>);
    fn check_in_order(self, task: InOrder<'_>, found: &mut Vec<Met>);
    fn minima(self, set: &[u32], functions: &Functions, minima: &mut [u32]);
    fn bits_of_minima(self, minima: &[u32], words: &mut [u64]);
    fn keys_of_minima(self, minima: &[u32], keys: &mut [u32]);
    fn shared(self, a: &[u32], b: &[u32], needed: usize) -> Option<usize>;
}

/// Pairs of rows and queries to compare.
struct PairTask<'a> {
    pairs: &'a [Pair],
    queries: &'a [u64],
    rows: &'a [u64],
    stride: usize,
    radius: u32,
    found: &'a mut Vec<(u32, u32)>,
}

/// Compiles the forms for a level: the same code, with that level's instructions.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! compile_level {
    ($level:ident, $lanes:ty, $features:literal) => {
        impl crate::hamming::Level for $level {
            type Lanes = $lanes;

            fn distance(self, a: &[u64], b: &[u64]) -> u32 {
                #[target_feature(enable = $features)]
                fn run(level: $level, a: &[u64], b: &[u64]) -> u32 {
                    direct::distance::<$lanes>(level, a, b)
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, a, b) }
            }

            fn distances(self, query: &[u64], rows: &[u64], out: &mut [u32]) {
                #[target_feature(enable = $features)]
                fn run(level: $level, query: &[u64], rows: &[u64], out: &mut [u32]) {
                    direct::distances::<$lanes>(level, query, rows, out);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, query, rows, out) }
            }

            fn distances_of(self, query: &[u64], rows: &[u64], numbers: &[u32], out: &mut [u32]) {
                #[target_feature(enable = $features)]
                fn run(
                    level: $level,
                    query: &[u64],
                    rows: &[u64],
                    numbers: &[u32],
                    out: &mut [u32],
                ) {
                    direct::distances_of::<$lanes>(level, query, rows, numbers, out);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, query, rows, numbers, out) }
            }

            fn within(self, query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]) {
                #[target_feature(enable = $features)]
                fn run(
                    level: $level,
                    query: &[u64],
                    rows: &[u64],
                    threshold: u32,
                    masks: &mut [u64],
                ) {
                    direct::within::<$lanes>(level, query, rows, threshold, masks);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, query, rows, threshold, masks) }
            }

            fn slice_step(self, block: &mut sliced::Block<'_, $lanes>) {
                #[target_feature(enable = $features)]
                fn run(level: $level, block: &mut sliced::Block<'_, $lanes>) {
                    block.slice_step(level);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, block) }
            }

            fn within_sliced(self, task: sliced::Task<'_>) {
                #[target_feature(enable = $features)]
                fn run(level: $level, task: sliced::Task<'_>) {
                    task.run(level);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, task) }
            }

            fn check_whole(
                self,
                of: &[Stretch],
                rows: &[u64],
                and: &mut Besides<'_>,
                found: &mut Vec<Near>,
            ) {
                #[target_feature(enable = $features)]
                fn run(
                    level: $level,
                    of: &[Stretch],
                    rows: &[u64],
                    and: &mut Besides<'_>,
                    found: &mut Vec<Near>,
                ) {
                    check::whole::<$lanes>(level, of, rows, and, found);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, of, rows, and, found) }
            }

            fn check_halves(self, stretches: &[Stretch], rows: &[u32], found: &mut Vec<Near>) {
                #[target_feature(enable = $features)]
                fn run(level: $level, of: &[Stretch], rows: &[u32], found: &mut Vec<Near>) {
                    check::halves::<$lanes>(level, of, rows, found);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, stretches, rows, found) }
            }

            fn check_lines(
                self,
                of: &[Probe],
                lines: &[u64],
                and: &mut Besides<'_>,
                found: &mut Vec<Near>,
            ) {
                #[target_feature(enable = $features)]
                fn run(
                    level: $level,
                    of: &[Probe],
                    lines: &[u64],
                    and: &mut Besides<'_>,
                    found: &mut Vec<Near>,
                ) {
                    check::lines::<$lanes>(level, of, lines, and, found);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, of, lines, and, found) }
            }

            fn check_pairs(self, task: PairTask<'_>) {
                #[target_feature(enable = $features)]
                fn run(level: $level, task: PairTask<'_>) {
                    check::pairs::<$lanes>(level, task);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, task) }
            }

            fn check_in_order(self, task: InOrder<'_>, found: &mut Vec<Met>) {
                #[target_feature(enable = $features)]
                fn run(level: $level, task: InOrder<'_>, found: &mut Vec<Met>) {
                    check::in_order::<$lanes>(level, task, found);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(self, task, found) }
            }

            fn minima(self, set: &[u32], functions: &Functions, minima: &mut [u32]) {
                #[target_feature(enable = $features)]
                fn run(set: &[u32], functions: &Functions, minima: &mut [u32]) {
                    minima::lower(set, functions, minima);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(set, functions, minima) }
            }

            fn bits_of_minima(self, minima: &[u32], words: &mut [u64]) {
                #[target_feature(enable = $features)]
                fn run(minima: &[u32], words: &mut [u64]) {
                    minima::bits(minima, words);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(minima, words) }
            }

            fn keys_of_minima(self, minima: &[u32], keys: &mut [u32]) {
                #[target_feature(enable = $features)]
                fn run(minima: &[u32], keys: &mut [u32]) {
                    minima::keys(minima, keys);
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(minima, keys) }
            }

            fn shared(self, a: &[u32], b: &[u32], needed: usize) -> Option<usize> {
                #[target_feature(enable = $features)]
                fn run(a: &[u32], b: &[u32], needed: usize) -> Option<usize> {
                    shared::shared(a, b, needed)
                }
                // SAFETY: whoever has the level has the features.
                unsafe { run(a, b, needed) }
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use compile_level;

/// The kernels of one level.
#[derive(Clone, Copy)]
pub struct Kernel(Chosen);

#[derive(Clone, Copy)]
enum Chosen {
    Scalar(scalar::Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

/// Calls a method of the chosen level.
macro_rules! chosen {
    ($kernel:expr, $level:ident => $call:expr) => {
        match $kernel.0 {
            Chosen::Scalar($level) => $call,
            #[cfg(target_arch = "x86_64")]
            Chosen::Avx2($level) => $call,
            #[cfg(target_arch = "x86_64")]
            Chosen::Avx512($level) => $call,
            #[cfg(target_arch = "aarch64")]
            Chosen::Neon($level) => $call,
        }
    };
}

/// The kernel for this process: the best that the CPU has, or the one that `LOOKALIKE_SIMD` names.
pub fn kernel() -> Result<Kernel> {
    static KERNEL: OnceLock<Result<Kernel, String>> = OnceLock::new();
    let chosen =
        KERNEL.get_or_init(|| match std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
            None => Ok(Kernel::best()),
            Some(name) => {
                let name = name.to_string_lossy().into_owned();
                Kernel::named(&name).ok_or(name)
            }
        });
    chosen.clone().map_err(|given| Error::Simd { given, available: Kernel::names() })
}

impl Kernel {
    /// All that this CPU has, best first.
    pub fn available() -> impl Iterator<Item = Kernel> {
        [
            #[cfg(target_arch = "x86_64")]
            avx512::Avx512::detect().map(Chosen::Avx512),
            #[cfg(target_arch = "x86_64")]
            avx2::Avx2::detect().map(Chosen::Avx2),
            #[cfg(target_arch = "aarch64")]
            neon::Neon::detect().map(Chosen::Neon),
            Some(Chosen::Scalar(scalar::Scalar)),
        ]
        .into_iter()
        .flatten()
        .map(Kernel)
    }

    fn best() -> Kernel {
        Kernel::available().next().expect("plain words are always there")
    }

    fn named(name: &str) -> Option<Kernel> {
        Kernel::available().find(|kernel| kernel.name() == name)
    }

    fn names() -> String {
        Kernel::available().map(Kernel::name).collect::<Vec<_>>().join(", ")
    }

    /// The name, as `LOOKALIKE_SIMD` takes it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Chosen::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            Chosen::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Chosen::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Chosen::Neon(_) => "neon",
        }
    }

    /// How many bits of two rows differ.
    pub fn distance(self, a: &[u64], b: &[u64]) -> u32 {
        assert_eq!(a.len(), b.len(), "rows of one width");
        chosen!(self, level => level.distance(a, b))
    }

    /// The distance of each row to the query.
    pub fn distances(self, query: &[u64], rows: &[u64], out: &mut [u32]) {
        assert_eq!(rows.len(), query.len() * out.len(), "one distance for each row");
        chosen!(self, level => level.distances(query, rows, out))
    }

    /// The distance of each of the rows with these numbers to the query.
    pub fn distances_of(self, query: &[u64], rows: &[u64], numbers: &[u32], out: &mut [u32]) {
        assert_eq!(numbers.len(), out.len(), "one distance for each row");
        chosen!(self, level => level.distances_of(query, rows, numbers, out))
    }

    /// The rows within the threshold (inclusive) of one query: bit `i` of mask `m` is row `64 m + i`. Bits past the
    /// last row are zero.
    pub fn within(self, query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]) {
        assert_eq!(rows.len() % query.len(), 0, "whole rows");
        assert_eq!(masks.len(), (rows.len() / query.len()).div_ceil(64), "a mask for 64 rows");
        chosen!(self, level => level.within(query, rows, threshold, masks))
    }
}

/// The check of rows that a table led to.
impl Kernel {
    /// The rows of one word that are near the queries of their stretches, added to `found`. Behind the last row there must
    /// be [`READ_PAST`] bytes.
    pub fn check_whole(
        self,
        stretches: &[Stretch],
        rows: &[u64],
        and: &mut Besides<'_>,
        found: &mut Vec<Near>,
    ) {
        chosen!(self, level => level.check_whole(stretches, rows, and, found));
    }

    /// The same for rows in the lines of their keys. In `found` the number of the probe is in the place of a stretch's, and of
    /// the word in the place of a row's. Of a line without all rows of its key the head is added, too.
    pub fn check_lines(
        self,
        probes: &[Probe],
        lines: &[u64],
        and: &mut Besides<'_>,
        found: &mut Vec<Near>,
    ) {
        chosen!(self, level => level.check_lines(probes, lines, and, found));
    }

    /// The rows of 32 bits of stretches that are near, compared with the low half of the query.
    pub fn check_halves(self, stretches: &[Stretch], rows: &[u32], found: &mut Vec<Near>) {
        chosen!(self, level => level.check_halves(stretches, rows, found));
    }

    /// The pairs within the radius, added to `found` as the number of the pair and the distance.
    pub fn check_pairs(
        self,
        pairs: &[Pair],
        (queries, rows): (&[u64], &[u64]),
        stride: usize,
        radius: u32,
        found: &mut Vec<(u32, u32)>,
    ) {
        let task = PairTask { pairs, queries, rows, stride, radius, found };
        chosen!(self, level => level.check_pairs(task));
    }

    /// The rows that are near each other and have the same key, added to `found`.
    pub fn check_in_order(self, task: InOrder<'_>, found: &mut Vec<Met>) {
        chosen!(self, level => level.check_in_order(task, found));
    }
}

/// MinHash.
impl Kernel {
    /// Lowers each of `minima` to the smallest value of its function over the set.
    pub fn minima(self, set: &[u32], functions: &Functions, minima: &mut [u32]) {
        assert_eq!(functions.multipliers.len(), minima.len(), "a minimum for each function");
        chosen!(self, level => level.minima(set, functions, minima));
    }

    /// One well-mixed bit of each minimum, the first as the leading bit of the first word.
    pub fn bits_of_minima(self, minima: &[u32], words: &mut [u64]) {
        assert_eq!(minima.len(), words.len() * 64, "a minimum for each bit");
        chosen!(self, level => level.bits_of_minima(minima, words));
    }

    /// As many keys as there is room for, each a hash of as many minima as there are for each.
    pub fn keys_of_minima(self, minima: &[u32], keys: &mut [u32]) {
        assert_eq!(minima.len() % keys.len().max(1), 0, "as many minima for each key");
        chosen!(self, level => level.keys_of_minima(minima, keys));
    }
}

/// Sets.
impl Kernel {
    /// How many elements two ascending sets share, if it is at least `needed`.
    pub fn shared(self, a: &[u32], b: &[u32], needed: usize) -> Option<usize> {
        chosen!(self, level => level.shared(a, b, needed))
    }
}

/// Tells the CPU that a cell will soon be read, so that many reads are under way at once. Only a hint: the cell need
/// not be there. It is brought into the second cache: the first can wait for fewer lines at a time, and whoever asks for
/// more has to wait, too.
#[inline(always)]
pub fn prefetch<T>(cells: &[T], at: usize) {
    prefetch_address(address_of(cells, at));
}

/// Where a cell is, which need not be there: for [`prefetch_address`].
#[inline(always)]
pub fn address_of<T>(cells: &[T], at: usize) -> usize {
    cells.as_ptr().wrapping_add(at).addr()
}

/// The same for an address, whatever is there.
#[inline(always)]
pub fn prefetch_address(address: usize) {
    let address = std::ptr::without_provenance::<i8>(address);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction, and it never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction never faults, whatever the address, and changes nothing.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

/// A batch of queries, made ready once.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    words: &'a [u64],
    stride: usize,
    patterns: Option<sliced::Patterns>,
}

/// From so many queries on, turning rows on their side pays at 64 and 1024 bits; from 8 on only for small radii.
const SLICED_FROM: usize = 16;

impl<'a> Batch<'a> {
    /// A batch of queries of `stride` words each.
    pub fn new(words: &'a [u64], stride: usize) -> Self {
        assert!((1..=64).contains(&stride), "a width from 32 to 4096 bits");
        assert_eq!(words.len() % stride, 0, "whole rows");
        let sliced = words.len() / stride >= SLICED_FROM;
        let patterns = sliced.then(|| sliced::Patterns::new(words, stride));
        Batch { words, stride, patterns }
    }

    /// The words of a query.
    pub fn query(&self, query: usize) -> &'a [u64] {
        &self.words[query * self.stride..][..self.stride]
    }

    /// How many queries there are.
    pub fn len(&self) -> usize {
        self.words.len() / self.stride
    }

    /// Whether there are no queries.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Memory that a scan reuses from block to block.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    sliced: sliced::Workspace,
    masks: Vec<u64>,
}

impl Kernel {
    /// How many rows at a time suit a batch: they stay in the cache while all queries pass.
    pub fn block_rows(self, batch: &Batch<'_>) -> usize {
        match batch.patterns {
            Some(_) => chosen!(self, level => block_rows(level)),
            None => (BLOCK_BYTES / 8 / batch.stride).next_multiple_of(64),
        }
    }

    /// The rows within the threshold (inclusive) of each query of a batch, added to `found`. A query without a
    /// threshold is left out.
    pub fn within_batch(
        self,
        batch: &Batch<'_>,
        rows: &[u64],
        thresholds: &[Option<u32>],
        workspace: &mut Workspace,
        found: &mut Vec<Match>,
    ) {
        assert_eq!(thresholds.len(), batch.len(), "a threshold for each query");
        let stride = batch.stride;
        assert_eq!(rows.len() % stride, 0, "whole rows");
        match &batch.patterns {
            Some(patterns) => {
                let workspace = &mut workspace.sliced;
                let task = sliced::Task { patterns, rows, stride, thresholds, workspace, found };
                chosen!(self, level => level.within_sliced(task));
            }
            None => self.within_each(batch, rows, thresholds, &mut workspace.masks, found),
        }
    }

    /// The same for a few queries, one after the other.
    fn within_each(
        self,
        batch: &Batch<'_>,
        rows: &[u64],
        thresholds: &[Option<u32>],
        masks: &mut Vec<u64>,
        found: &mut Vec<Match>,
    ) {
        masks.resize((rows.len() / batch.stride).div_ceil(64), 0);
        for (query, threshold) in thresholds.iter().enumerate() {
            let Some(threshold) = *threshold else { continue };
            self.within(batch.query(query), rows, threshold, masks);
            let matches = masks.iter().enumerate().filter(|(_, mask)| **mask != 0);
            found.extend(matches.map(|(i, &mask)| Match {
                query: query as u32,
                start: i as u32 * 64,
                mask,
            }));
        }
    }
}

/// Rows for a few queries: half of a small first-level cache.
const BLOCK_BYTES: usize = 16 << 10;

fn block_rows<L: Level>(_: L) -> usize {
    sliced::block_rows::<L::Lanes>()
}
