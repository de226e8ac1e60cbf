//! AVX-512 with VPOPCNTDQ: 512 bits at a time, and a count of ones in hardware.

use std::arch::x86_64::*;

use super::{
    Besides, Functions, InOrder, Met, Near, PairTask, Probe, Stretch, check, compile_level, direct,
    lanes::Lanes, minima, shared, sliced,
};

/// Proof that this CPU has AVX-512 F, BW and VPOPCNTDQ; only `detect` makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx512(()))
    }
}

compile_level!(Avx512, Zmm, "avx512f,avx512bw,avx512vpopcntdq,bmi1,bmi2,popcnt");

/// 512 bits. Only made with an `Avx512` at hand.
#[derive(Clone, Copy)]
pub(super) struct Zmm(__m512i);

impl Lanes for Zmm {
    type Proof = Avx512;
    type Words = [u64; 8];

    #[inline(always)]
    fn load(_: Avx512, words: &[u64; 8]) -> Self {
        // SAFETY: the proof is given; eight words are 64 bytes; the load may be unaligned.
        Zmm(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; 8]) {
        // SAFETY: `self` proves AVX-512; eight words are 64 bytes; the store may be unaligned.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn splat(_: Avx512, word: u64) -> Self {
        // SAFETY: the proof is given.
        Zmm(unsafe { _mm512_set1_epi64(word as i64) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe { _mm512_and_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe { _mm512_or_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn shift_left(self, by: u32) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe { _mm512_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    #[inline(always)]
    fn shift_right(self, by: u32) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }

    #[inline(always)]
    fn is_ones(self) -> bool {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_cmpneq_epi64_mask(self.0, _mm512_set1_epi64(-1)) == 0 }
    }

    /// Each output bit is one look-up of three input bits.
    #[inline(always)]
    fn add(self, b: Self, c: Self) -> (Self, Self) {
        const ODD: i32 = 0x96;
        const MAJORITY: i32 = 0xe8;
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let sum = _mm512_ternarylogic_epi64::<ODD>(self.0, b.0, c.0);
            (Zmm(sum), Zmm(_mm512_ternarylogic_epi64::<MAJORITY>(self.0, b.0, c.0)))
        }
    }

    #[inline(always)]
    fn count_ones(self) -> Self {
        // SAFETY: `self` proves AVX-512 with VPOPCNTDQ.
        Zmm(unsafe { _mm512_popcnt_epi64(self.0) })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe { _mm512_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn totals(self) -> Self {
        self
    }

    #[inline(always)]
    fn sum(self) -> u64 {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_reduce_add_epi64(self.0) as u64 }
    }

    #[inline(always)]
    fn pair_sums(self, other: Self) -> Self {
        // SAFETY: `self` proves AVX-512.
        Zmm(unsafe {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            let even = _mm512_permutex2var_epi64(self.0, even, other.0);
            _mm512_add_epi64(even, _mm512_permutex2var_epi64(self.0, odd, other.0))
        })
    }

    #[inline(always)]
    fn at_most(self, threshold: u32) -> u64 {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let threshold = _mm512_set1_epi64(i64::from(threshold));
            u64::from(_mm512_cmple_epi64_mask(self.0, threshold))
        }
    }

    #[inline(always)]
    fn zeros(self) -> u64 {
        // SAFETY: `self` proves AVX-512.
        u64::from(unsafe { _mm512_testn_epi64_mask(self.0, self.0) })
    }

    #[inline(always)]
    fn halves_at_most(self, threshold: u32) -> u64 {
        // SAFETY: `self` proves AVX-512 with VPOPCNTDQ.
        unsafe {
            let threshold = _mm512_set1_epi32(threshold.min(32) as i32);
            u64::from(_mm512_cmple_epi32_mask(_mm512_popcnt_epi32(self.0), threshold))
        }
    }
}
