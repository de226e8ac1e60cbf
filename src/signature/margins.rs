//! Margins: how far each bit is from tipping over.

use super::{Signature, words_for};
use crate::Result;

/// The signature of votes: a bit is 1 where they are positive. Zero is 0.
pub(crate) fn signature_of(votes: &[i64]) -> Result<Signature> {
    let bits = votes.len() as u32;
    let mut words = vec![0; words_for(bits)];
    for (word, votes) in words.iter_mut().zip(votes.chunks(64)) {
        *word = votes.iter().fold(0, |word, &vote| word << 1 | u64::from(vote > 0));
    }
    Signature::from_words(bits, words)
}

/// The margins of votes in a byte each: 255 is the strongest bit of the signature, the others in proportion. Only a vote
/// of exactly zero has margin 0: such bits flip less often than those with a small margin.
pub(crate) fn margins_of(votes: &[i64]) -> Vec<u8> {
    let strongest = votes.iter().map(|vote| vote.unsigned_abs()).max().unwrap_or(0).max(1);
    let margin = |vote: &i64| {
        let vote = u128::from(vote.unsigned_abs());
        let rounded = (vote * 255 + u128::from(strongest) / 2) / u128::from(strongest);
        rounded.max(u128::from(vote > 0)) as u8
    };
    votes.iter().map(margin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_votes_are_ones() {
        let mut votes = vec![-3_i64; 64];
        (votes[0], votes[1], votes[63]) = (1, 0, 900_000);
        assert_eq!(signature_of(&votes).unwrap().words(), [1 << 63 | 1]);
        let margins = margins_of(&votes);
        assert_eq!((margins[0], margins[1], margins[2], margins[63]), (1, 0, 1, 255));
        assert_eq!(margins_of(&[-100, 50, 0]), [255, 128, 0]);
        assert_eq!(margins_of(&[0, 0]), [0, 0]);
    }
}
