//! The collection: records with payloads, and which of them are meant.

mod filter;

pub use filter::Filter;
