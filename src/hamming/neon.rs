//! NEON: 128 bits at a time.

use std::arch::aarch64::*;

use super::{
    Besides, Functions, InOrder, Met, Near, PairTask, Probe, Stretch, check, compile_level, direct,
    lanes::Lanes, minima, shared, sliced,
};

/// Proof that this CPU has NEON; only `detect` makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Neon(()))
    }
}

compile_level!(Neon, Quad, "neon");

/// 128 bits. Only made with a `Neon` at hand.
#[derive(Clone, Copy)]
pub(super) struct Quad(uint64x2_t);

impl Lanes for Quad {
    type Proof = Neon;
    type Words = [u64; 2];

    #[inline(always)]
    fn load(_: Neon, words: &[u64; 2]) -> Self {
        // SAFETY: the proof is given; two words are read.
        Quad(unsafe { vld1q_u64(words.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; 2]) {
        // SAFETY: `self` proves NEON; two words are written.
        unsafe { vst1q_u64(words.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn splat(_: Neon, word: u64) -> Self {
        // SAFETY: the proof is given.
        Quad(unsafe { vdupq_n_u64(word) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vandq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vorrq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { veorq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn shift_left(self, by: u32) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vshlq_u64(self.0, vdupq_n_s64(i64::from(by))) })
    }

    /// NEON shifts right by shifting left by a negative number.
    #[inline(always)]
    fn shift_right(self, by: u32) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vshlq_u64(self.0, vdupq_n_s64(-i64::from(by))) })
    }

    #[inline(always)]
    fn is_ones(self) -> bool {
        // SAFETY: `self` proves NEON.
        unsafe { vminvq_u32(vreinterpretq_u32_u64(self.0)) == u32::MAX }
    }

    /// In each byte.
    #[inline(always)]
    fn count_ones(self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vreinterpretq_u64_u8(vcntq_u8(vreinterpretq_u8_u64(self.0))) })
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe {
            let bytes = vaddq_u8(vreinterpretq_u8_u64(self.0), vreinterpretq_u8_u64(other.0));
            vreinterpretq_u64_u8(bytes)
        })
    }

    #[inline(always)]
    fn totals(self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vreinterpretq_u8_u64(self.0)))) })
    }

    #[inline(always)]
    fn pair_sums(self, other: Self) -> Self {
        // SAFETY: `self` proves NEON.
        Quad(unsafe { vpaddq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn at_most(self, threshold: u32) -> u64 {
        // SAFETY: `self` proves NEON.
        unsafe {
            let near = vcleq_u64(self.0, vdupq_n_u64(u64::from(threshold)));
            vgetq_lane_u64::<0>(near) & 1 | vgetq_lane_u64::<1>(near) & 2
        }
    }

    #[inline(always)]
    fn zeros(self) -> u64 {
        self.at_most(0)
    }

    #[inline(always)]
    fn halves_at_most(self, threshold: u32) -> u64 {
        // SAFETY: `self` proves NEON.
        unsafe {
            let counts = vcntq_u8(vreinterpretq_u8_u64(self.0));
            let near = vcleq_u32(vpaddlq_u16(vpaddlq_u8(counts)), vdupq_n_u32(threshold));
            let bits: [u32; 4] = [1, 2, 4, 8];
            u64::from(vaddvq_u32(vandq_u32(near, vld1q_u32(bits.as_ptr()))))
        }
    }
}
