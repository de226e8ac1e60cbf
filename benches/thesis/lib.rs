//! The experiments of "Probabilistic Simhash Matching" (Sood, 2011), to be measured again beside our own indexes.
//!
//! - [`workload`]: documents, edited copies and queries, in place of the 70 million pages of its crawl;
//! - [`bphs`]: block-permuted Hamming search (Manku et al., 2007) in the form that the thesis compares with;
//! - [`psm`]: probabilistic simhash matching, with the heap of [`flips`];
//! - [`batch`]: both in batch mode, where the stored file streams past the queries (figure 10);
//! - [`weak_bits`]: how soon the heap finds the bits that differ (figure 2);
//! - [`plot`]: the figures.
//!
//! These are baselines, written as the thesis describes them and not as we would: one query at a time, binary search,
//! a heap for each query. Signatures are words of 64 bits, bit 0 the most significant.
//!
//! ```
//! use lookalike_thesis::{bphs::Bphs, psm::Psm, workload::Workload};
//!
//! let workload = Workload::new(2_000, 100, 1);
//! let (bphs, psm) = (Bphs::build(&workload.stored, 4, 1), Psm::build(&workload.stored, 11));
//! let mut searcher = psm.searcher(3, 23);
//! let (mut truth, mut found) = (Vec::new(), Vec::new());
//! for (query, margins) in workload.queries() {
//!     bphs.all(query, 3, &mut truth);
//!     searcher.all(query, margins, &mut found);
//!     assert!(found.len() <= truth.len());
//! }
//! ```

pub mod batch;
pub mod bphs;
pub mod flips;
pub mod plot;
pub mod psm;
mod random;
pub mod weak_bits;
pub mod workload;
