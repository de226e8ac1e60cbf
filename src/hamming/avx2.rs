//! AVX2: 256 bits at a time.

use std::arch::x86_64::*;

use super::{
    Besides, Functions, InOrder, Met, Near, PairTask, Probe, Stretch, check, compile_level, direct,
    lanes::Lanes, minima, shared, sliced,
};

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

/// 256 bits. Only made with an `Avx2` at hand.
#[derive(Clone, Copy)]
pub(super) struct Ymm(__m256i);

impl Lanes for Ymm {
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

    /// In each byte, by looking up four bits at a time.
    #[inline(always)]
    fn count_ones(self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe {
            let ones = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
            let ones = _mm256_broadcastsi128_si256(ones);
            let four = _mm256_set1_epi8(0x0f);
            let low = _mm256_and_si256(self.0, four);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), four);
            _mm256_add_epi8(_mm256_shuffle_epi8(ones, low), _mm256_shuffle_epi8(ones, high))
        })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_add_epi8(self.0, other.0) })
    }

    #[inline(always)]
    fn totals(self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe { _mm256_sad_epu8(self.0, _mm256_setzero_si256()) })
    }

    #[inline(always)]
    fn pair_sums(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX2.
        Ymm(unsafe {
            let low = _mm256_unpacklo_epi64(self.0, other.0);
            let high = _mm256_unpackhi_epi64(self.0, other.0);
            // The sums come as self, other, self, other.
            _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_add_epi64(low, high))
        })
    }

    #[inline(always)]
    fn at_most(self, threshold: u32) -> u64 {
        // SAFETY: `self` proves AVX2.
        let over = unsafe {
            let threshold = _mm256_set1_epi64x(i64::from(threshold));
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(self.0, threshold)))
        };
        over as u64 ^ 0b1111
    }

    #[inline(always)]
    fn zeros(self) -> u64 {
        // SAFETY: `self` proves AVX2.
        let zeros = unsafe {
            let zeros = _mm256_cmpeq_epi64(self.0, _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(zeros))
        };
        zeros as u64
    }

    #[inline(always)]
    fn halves_at_most(self, threshold: u32) -> u64 {
        let counts = self.count_ones();
        // SAFETY: `self` proves AVX2.
        let over = unsafe {
            let pairs = _mm256_maddubs_epi16(counts.0, _mm256_set1_epi8(1));
            let sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
            let over = _mm256_cmpgt_epi32(sums, _mm256_set1_epi32(threshold.min(32) as i32));
            _mm256_movemask_ps(_mm256_castsi256_ps(over))
        };
        over as u64 ^ 0xff
    }
}
