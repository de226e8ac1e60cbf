//! One order: the distinct signatures, sorted by the bits that a random permutation puts first.

use rayon::prelude::*;

use crate::{Result, Signatures, index::sample::Random, mapped::Cells, table::no_memory};

/// The signatures, sorted by their leading permuted bits, ties by row.
#[derive(Debug)]
pub(super) struct Order {
    permutation: Permutation,
    /// The leading permuted bits of each signature, rising.
    keys: Cells<u64>,
    /// The lowest row that has the signature.
    rows: Cells<u32>,
}

impl Order {
    /// Sorts the signatures of `firsts`, on all cores.
    pub(super) fn build(rows: &Signatures, firsts: &[u32], random: &mut Random) -> Result<Self> {
        let permutation = Permutation::new(rows.bits(), random);
        let item = |&first: &u32| (permutation.take(rows.row(first as usize)), first);
        let mut items: Vec<(u64, u32)> = firsts.par_iter().map(item).collect();
        items.par_sort_unstable();
        let keys: Vec<u64> = items.iter().map(|item| item.0).collect();
        let keys = Cells::copy_of(&keys).map_err(no_memory)?;
        let firsts: Vec<u32> = items.into_iter().map(|item| item.1).collect();
        let rows = Cells::copy_of(&firsts).map_err(no_memory)?;
        Ok(Order { permutation, keys, rows })
    }

    /// The leading permuted bits of a query.
    pub(super) fn key(&self, query: &[u64]) -> u64 {
        self.permutation.take(query)
    }

    pub(super) fn keys(&self) -> &[u64] {
        self.keys.as_slice()
    }

    pub(super) fn rows(&self) -> &[u32] {
        self.rows.as_slice()
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(self.keys()) + size_of_val(self.rows())) as u64
    }
}

/// Which bits lead, in which order. At most a word of them: hardly any two rows agree in so many bits and are not
/// neighbors anyway.
#[derive(Debug)]
struct Permutation {
    nibbles: Vec<Nibble>,
}

/// Where four bits go: they are permuted by one look into a small table.
#[derive(Debug)]
struct Nibble {
    word: usize,
    shift: u32,
    to: [u64; 16],
}

impl Permutation {
    fn new(bits: u32, random: &mut Random) -> Self {
        let mut nibbles: Vec<Nibble> = (0..bits.div_ceil(4)).map(Nibble::new).collect();
        for (place, bit) in chosen(bits, random).into_iter().enumerate() {
            nibbles[bit as usize / 4].put(3 - bit % 4, 1 << (63 - place));
        }
        nibbles.retain(|nibble| nibble.to[15] != 0);
        Permutation { nibbles }
    }

    /// The leading permuted bits of a signature, the first one highest.
    #[inline]
    fn take(&self, words: &[u64]) -> u64 {
        let part = |nibble: &Nibble| nibble.to[(words[nibble.word] >> nibble.shift & 15) as usize];
        self.nibbles.iter().fold(0, |key, nibble| key | part(nibble))
    }
}

impl Nibble {
    /// The nibble with this number, whose bits go nowhere yet.
    fn new(number: u32) -> Self {
        Nibble { word: number as usize / 16, shift: 60 - number % 16 * 4, to: [0; 16] }
    }

    /// Lets one of the four bits go somewhere.
    fn put(&mut self, bit: u32, to: u64) {
        let values = self.to.iter_mut().enumerate();
        values.filter(|(value, _)| value >> bit & 1 == 1).for_each(|(_, parts)| *parts |= to);
    }
}

/// The bits that lead: every choice and order is as likely as any other.
fn chosen(bits: u32, random: &mut Random) -> Vec<u32> {
    let leading = bits.min(u64::BITS);
    let mut order: Vec<u32> = (0..bits).collect();
    for place in 0..leading {
        order.swap(place as usize, (place + random.below(bits - place)) as usize);
    }
    order.truncate(leading as usize);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_takes_the_chosen_bits_in_order() {
        for bits in [32, 40, 64, 72, 256, 4096] {
            let order = chosen(bits, &mut Random(7));
            let permutation = Permutation::new(bits, &mut Random(7));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len() as u32, bits.min(64), "each bit once");
            let mut random = Random(u64::from(bits));
            for ones in [0, 1, 5, bits / 2, bits] {
                let mut words = vec![0; bits.div_ceil(64) as usize];
                random.differ_in(ones, bits, &mut words);
                let bit = |&bit: &u32| words[bit as usize / 64] >> (63 - bit % 64) & 1;
                let plain = order
                    .iter()
                    .enumerate()
                    .fold(0, |key, (place, from)| key | bit(from) << (63 - place));
                assert_eq!(permutation.take(&words), plain);
            }
        }
    }

    #[test]
    fn an_order_is_sorted_and_has_every_row() {
        let mut random = Random(3);
        let words = (0..1000).map(|_| random.next() & 0xff00_ff00_0000_00ff).collect();
        let rows = Signatures::from_words(64, words).unwrap();
        let firsts: Vec<u32> = (0..1000).collect();
        let order = Order::build(&rows, &firsts, &mut random).unwrap();
        assert!(order.keys().is_sorted());
        let key = |&row: &u32| order.key(rows.row(row as usize));
        assert!(order.rows().iter().map(key).eq(order.keys().iter().copied()));
        let mut all = order.rows().to_vec();
        all.sort_unstable();
        assert_eq!(all, firsts);
        assert_eq!(order.bytes(), 12_000);
    }
}
