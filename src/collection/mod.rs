//! The collection: where documents stay. Added, replaced, removed and searched at the same time, with where each comes from.
//!
//! The truth is in a [`Store`], a database: what it has committed survives every crash. Everything else is derived from it.

mod kept;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod slices;
mod sqlite;
mod store;

pub use kept::Kept;
pub use record::{Entry, Record};
pub use slices::{guarantee, slices_for};
pub use store::{About, Applied, BySql, Change, Counts, End, IfExists, Keeps, Logged, Store};
