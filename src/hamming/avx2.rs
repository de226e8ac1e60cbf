//! AVX2: 256 bits at a time.

use std::arch::x86_64::*;

use super::{compile_level, scalar, sliced};

/// Proof that this CPU has AVX2 and the bit instructions of its time; only `detect` makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx2(()))
    }
}

compile_level!(Avx2, Ymm, "avx2,bmi1,bmi2,popcnt");

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn within(query: &[u64], rows: &[u64], threshold: u32, masks: &mut [u64]) {
    if let [query] = query {
        within_one_word(*query, rows, threshold, masks);
    } else {
        scalar::within(query, rows, threshold, masks);
    }
}

/// Rows of one word: four rows a vector.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn within_one_word(query: u64, rows: &[u64], threshold: u32, masks: &mut [u64]) {
    let (blocks, rest) = rows.as_chunks::<64>();
    for (block, mask) in blocks.iter().zip(&mut *masks) {
        *mask = mask_of_64(query, block, threshold);
    }
    scalar::within(&[query], rest, threshold, &mut masks[blocks.len()..]);
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn mask_of_64(query: u64, rows: &[u64; 64], threshold: u32) -> u64 {
    let query = _mm256_set1_epi64x(query as i64);
    let threshold = _mm256_set1_epi64x(i64::from(threshold));
    let mut mask = 0;
    for (i, rows) in rows.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: four words are 32 bytes; the load may be unaligned.
        let rows = unsafe { _mm256_loadu_si256(rows.as_ptr().cast()) };
        let counts = count_bytes(_mm256_xor_si256(rows, query));
        let distances = _mm256_sad_epu8(counts, _mm256_setzero_si256());
        let over =
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(distances, threshold)));
        mask |= (over as u64) << (4 * i);
    }
    !mask
}

/// The number of ones in each byte: two look-ups of four bits each.
#[inline]
#[target_feature(enable = "avx2")]
fn count_bytes(bytes: __m256i) -> __m256i {
    let ones =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    let nibble = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(bytes, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
    _mm256_add_epi8(_mm256_shuffle_epi8(ones, low), _mm256_shuffle_epi8(ones, high))
}

/// 256 bits. Only made with an `Avx2` at hand.
#[derive(Clone, Copy)]
pub(super) struct Ymm(__m256i);

impl sliced::Lanes for Ymm {
    type Proof = Avx2;
    type Words = [u64; 4];

    #[inline(always)]
    fn load(_: Avx2, words: &[u64; 4]) -> Self {
        // SAFETY: the proof is given; four words are 32 bytes; the load may be unaligned.
        Ymm(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; 4]) {
        // SAFETY: `self` proves AVX2; four words are 32 bytes; the store may be unaligned.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn splat(_: Avx2, word: u64) -> Self {
        // SAFETY: the proof is given.
        Ymm(unsafe { _mm256_set1_epi64x(word as i64) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_and_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_or_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn shift_left(self, by: u32) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    #[inline(always)]
    fn shift_right(self, by: u32) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    #[inline(always)]
    fn is_ones(self) -> bool {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_testc_si256(self.0, _mm256_set1_epi64x(-1)) == 1 }
    }
}
